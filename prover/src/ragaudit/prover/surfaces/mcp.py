"""MCP over streamable HTTP: the tools ``search`` and ``fetch`` (docs/surfaces.md).

Every request stands for itself: it is its key that asks, not a session, and there are no sessions.
"""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from ragaudit.encoding.errors import InternalError, MethodNotAllowed, NotFound
from ragaudit.encoding.problems import problem_name
from ragaudit.prover.errors import MalformedQuery
from ragaudit.prover.surfaces.caller import Caller, bearer
from ragaudit.prover.surfaces.dialects import RECEIPT_MEMBER, Dialect
from ragaudit.prover.surfaces.queries import Hit, Query
from ragaudit.serving.exchange import note
from ragaudit.serving.problems import as_ours
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

DEFAULT_RESULTS = 10
PATH = "/mcp"
_CALLER = "ragaudit.caller"


def _shape(text: str, status: int) -> dict[str, Any]:
    # JSON-RPC 2.0 §5.1: -32000 to -32099 are the server's own.
    return {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": text}}


MCP = Dialect("mcp", (PATH,), bearer, _shape)


def _text(name: str, description: str) -> dict[str, Any]:
    member = {"type": "string", "description": description}
    return {"type": "object", "properties": {name: member}, "required": [name]}


_TEXTS = {"type": "string"}
_RESULT = {
    "type": "object",
    "properties": {"id": _TEXTS, "title": _TEXTS, "url": _TEXTS},
    "required": ["id", "title", "url"],
}
_READS = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
TOOLS = [
    types.Tool(
        name="search",
        description="Search the knowledge base; returns ids, titles and addresses of documents.",
        input_schema=_text("query", "What to look for, in words."),
        output_schema={
            "type": "object",
            "properties": {"results": {"type": "array", "items": _RESULT}},
            "required": ["results"],
        },
        annotations=_READS,
    ),
    types.Tool(
        name="fetch",
        description="Return the text of a document that a search returned.",
        input_schema=_text("id", "Of a document, from a search."),
        output_schema={
            "type": "object",
            "properties": {
                "id": _TEXTS,
                "title": _TEXTS,
                "text": _TEXTS,
                "url": _TEXTS,
                "metadata": {"type": "object"},
            },
            "required": ["id", "title", "text", "url"],
        },
        annotations=_READS,
    ),
]


def search(caller: Caller, text: str) -> types.CallToolResult:
    """Return the documents that answer a text, without their contents."""
    if not caller.collections:
        raise NotFound("no collection", expected="one that the settings map to the key's tenant")
    [answer] = caller.ask([Query(text, min(DEFAULT_RESULTS, caller.index().top_k_max))])
    results = [{"id": hit.id, "title": title(hit), "url": url(hit)} for hit in answer.hits]
    return _result({"results": results}, [answer.receipt])


def fetch(caller: Caller, name: str) -> types.CallToolResult:
    """Return a document that this account was served in this window.

    Raises:
        NotFound: any other, whether there is one or not.
    """
    hits = caller.fetch([name]) if caller.collections else []
    if not hits:
        raise NotFound("no such document", expected="an id that a search of this key returned")
    [hit] = hits
    return _result(
        {
            "id": hit.id,
            "title": title(hit),
            "text": hit.content,
            "url": url(hit),
            "metadata": dict(hit.metadata),
        }
    )


def title(hit: Hit) -> str:
    """Return what a person calls a document, its id if nothing says so."""
    found = hit.metadata.get("title")
    return found if isinstance(found, str) and found else hit.id


def url(hit: Hit) -> str:
    """Return where a person finds a document, empty if nothing says so."""
    found = hit.metadata.get("url", hit.metadata.get("source"))
    return found if isinstance(found, str) else ""


def _result(document: dict[str, Any], receipts: list[str] | None = None) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=json.dumps(document, ensure_ascii=False))],
        structured_content=document,
        _meta={RECEIPT_MEMBER: receipts} if receipts else None,
    )


_CALLS: dict[str, tuple[str, Callable[[Caller, str], types.CallToolResult]]] = {
    "search": ("query", search),
    "fetch": ("id", fetch),
}


async def _list_tools(
    context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def _call_tool(
    context: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    request = context.request
    assert isinstance(request, Request)
    try:
        return await run_in_threadpool(_called, request.scope[_CALLER], params)
    except Exception as error:
        ours = as_ours(request, error)
        # The answer's status says nothing of it: in MCP an error of a tool is a result.
        note(reason=problem_name(type(ours)))
        text = "internal error" if isinstance(ours, InternalError) else str(ours)
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _called(caller: Caller, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name not in _CALLS:
        raise NotFound("no such tool", expected=" or ".join(_CALLS))
    member, call = _CALLS[params.name]
    given = params.arguments or {}
    text = given.get(member)
    if isinstance(text, str) and len(given) == 1:
        return call(caller, text)
    raise MalformedQuery("not the tool's arguments", expected=f"{member}, a text")


class McpEndpoint:
    """The ASGI application at the path of this surface."""

    def __init__(self) -> None:
        server: Server[Any] = Server("ragaudit", on_list_tools=_list_tools, on_call_tool=_call_tool)
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    def run(self) -> AbstractAsyncContextManager[None]:
        """Return the context within which requests are answered."""
        return self._manager.run()

    def route(self) -> Route:
        """Return the route of this surface."""
        return Route(PATH, self, include_in_schema=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose key is an account's."""
        request = Request(scope, receive)
        note(surface=MCP.name)
        try:
            # A stream that waits for the server to say something would wait for ever.
            if request.method != "POST":
                raise MethodNotAllowed("no such method here", expected="POST")
            scope[_CALLER] = await run_in_threadpool(MCP.caller, request)
        except Exception as error:
            await MCP.error(as_ours(request, error))(scope, receive, send)
            return
        await self._manager.handle_request(scope, receive, send)
