"""Our surfaces behind a proxy with holes: each forgets the tenant for one kind of request.

A hole is a condition on the request. Where it holds, the proxy answers as a service does that asked
its store without the tenant: with the rows of both tenants, or with what betrays the other's.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ragaudit.lab.attacks.scope.probes import NO_TAG, TAG
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from surface_app import KEYS, NAMES, MemoryPort


@dataclass(frozen=True)
class Asked:
    """A request as the proxy sees it."""

    tenant: str
    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def other(self) -> str:
        return "globex" if self.tenant == "acme" else "acme"

    @property
    def body(self) -> Any:
        try:
            return json.loads(self.raw)
        except ValueError:
            return None

    def get(self, *names: str) -> Any:
        """A member of the body, and of its members."""
        value = self.body
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def has(self, *names: str) -> bool:
        return isinstance(self.body, dict) and any(name in self.body for name in names)

    @property
    def text(self) -> str:
        return self.raw.decode("utf-8", "replace")

    @property
    def foreign_place(self) -> bool:
        """Whether the other's collection is named as it is spelled."""
        return f"/{NAMES[self.other]}/" in f"{self.path}/"

    @property
    def misspelled(self) -> bool:
        """Whether it is named in capitals, which a layer folds."""
        return f"/{NAMES[self.other].upper()}/" in f"{self.path}/"


Hole = Callable[[Asked], bool]
Says = Callable[["Proxy", Asked], tuple[int, Any] | None]


class Proxy:
    """An application before another; `hole` may change between requests."""

    def __init__(
        self, app: ASGIApp, port: MemoryPort, tenants: Mapping[str, str] | None = None
    ) -> None:
        """Stand before an application.

        Args:
            tenants: by key; None for those of `surface_app`.
        """
        self._app, self._port = app, port
        own = {key: account.tenant for key, account in KEYS.items()}
        self._tenants = own if tenants is None else tenants
        self.hole: Hole | None = None
        self.says: Says = rows
        self.remembered: dict[object, object] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        raw = b""
        while True:
            message = await receive()
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        key = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("api-key", "")
        if key in self._tenants and self.hole is not None:
            path = scope["raw_path"].decode()
            asked = Asked(self._tenants[key], scope["method"], path, headers, raw)
            if self.hole(asked) and (said := self.says(self, asked)) is not None:
                await _answer(send, *said)
                return

        async def again() -> Message:
            return {"type": "http.request", "body": raw, "more_body": False}

        await self._app(scope, again, send)

    def rows(self, tenant: str) -> list[dict[str, Any]]:
        found = self._port.rows[tenant]
        return [{"id": one.id, "text": one.content, **one.metadata} for one in found]


async def _answer(send: Send, status: int, value: Any) -> None:
    body = b"" if status == 304 else json.dumps(value).encode()
    start = {"type": "http.response.start", "status": status,
             "headers": [(b"content-type", b"application/json"),
                         (b"etag", hashlib.sha256(body).hexdigest().encode())]}  # fmt: skip
    await send(start)
    await send({"type": "http.response.body", "body": body})


# --- what a hole answers ---


def rows(proxy: Proxy, asked: Asked) -> tuple[int, Any] | None:
    """All rows."""
    return 200, {"data": [*proxy.rows(asked.tenant), *proxy.rows(asked.other)]}


def names(proxy: Proxy, asked: Asked) -> tuple[int, Any] | None:
    """All collections."""
    return 200, {"data": [{"name": name} for name in NAMES.values()]}


def cached(proxy: Proxy, asked: Asked) -> tuple[int, Any] | None:
    """What was answered to the same body first, whoever asked."""
    first = proxy.remembered.setdefault(asked.raw, asked.tenant)
    return 200, {"data": proxy.rows(str(first))}


def tagged(proxy: Proxy, asked: Asked) -> tuple[int, Any] | None:
    """304 for an entity tag that was given, whoever got it; an owner's question has one."""
    if asked.headers.get("if-none-match", NO_TAG) != NO_TAG:
        return 304, None
    return (200, {"data": proxy.rows(asked.tenant)}) if not asked.foreign_place else None


def forbidden(proxy: Proxy, asked: Asked) -> tuple[int, Any] | None:
    """403 for what exists elsewhere; the service's own answer for what exists nowhere."""
    text = unquote(asked.path) + asked.text
    there = any(one["id"] in text or one[TAG] in text for one in proxy.rows(asked.other))
    return (403, {"error": "not yours"}) if there else None


def slow(proxy: Proxy, asked: Asked) -> tuple[int, Any] | None:
    """The same answer, later if the thing exists elsewhere."""
    if forbidden(proxy, asked) is not None:
        time.sleep(0.02)
    return 404, {"error": "no such thing"}


def quoted(proxy: Proxy, asked: Asked) -> tuple[int, Any] | None:
    """An error that says on which row it failed."""
    return 400, {"error": f"no number: {proxy.rows(asked.other)[0]['text']}"}


# --- where it answers so, by store: (probe, hole, answer) ---

Holes = list[tuple[str, Hole, Says]]


def _named_by_header(asked: Asked) -> bool:
    return asked.headers.get("x-tenant", "") == asked.other


def _leaf(asked: Asked, **members: Any) -> bool:
    """Whether the outermost filter has these members."""
    return all(asked.get("filters", name) == value for name, value in members.items())


OPENAI: Holes = [
    ("filter-tenant", lambda q: _leaf(q, type="eq", value=q.other), rows),
    ("filter-or", lambda q: _leaf(q, type="or"), rows),
    ("filter-not", lambda q: q.get("filters", "type") in ("ne", "nin"), rows),
    ("filter-list", lambda q: isinstance(q.get("filters", "value"), list), rows),
    ("filter-null", lambda q: q.has("filters") and not q.body["filters"], rows),
    ("filter-type", lambda q: isinstance(q.get("filters"), (list, bool, str)), rows),
    ("filter-nested", lambda q: q.text.count('"and"') > 1, rows),
    ("filter-sql", lambda q: "' OR " in q.text, rows),
    ("nearest", lambda q: q.method == "POST" and not q.has("filters"), rows),
    ("batch-member", lambda q: isinstance(q.get("query"), list), rows),
    ("top-k-overrun", lambda q: q.get("max_num_results") == 10**4, rows),
    ("error-texts", lambda q: q.get("filters", "type") == "gt", quoted),
    ("extra-member", lambda q: q.has("vector_store_ids"), rows),
    ("identity-header", _named_by_header, rows),
    ("files", lambda q: q.path.startswith("/v1/files/") and "content" in q.path, rows),
    ("attach-file", lambda q: q.method == "POST" and q.path.endswith("/files"), rows),
    ("cache", lambda q: q.path.endswith("/search"), cached),
    ("conditional", lambda q: q.path.endswith("/search"), tagged),
    ("cross-collection", lambda q: q.foreign_place, rows),
    ("listing", lambda q: q.method == "GET" and q.path == "/v1/vector_stores", names),
    ("collection-name", lambda q: q.misspelled, rows),
    ("path-traversal", lambda q: ".." in unquote(q.path), rows),
    ("existence-by-id", lambda q: "/files/" in q.path, forbidden),
    ("existence-of-file", lambda q: q.path.startswith("/v1/files/"), slow),
    ("existence-by-tag", lambda q: TAG in q.text, forbidden),
]


def _tool(asked: Asked, name: str) -> bool:
    return bool(asked.get("params", "name") == name)


def _argument(asked: Asked, name: str) -> Any:
    return asked.get("params", "arguments", name)


MCP: Holes = [
    ("nearest", lambda q: _tool(q, "search"), rows),
    ("extra-argument", lambda q: _argument(q, "tenant") is not None, rows),
    ("query-type", lambda q: _tool(q, "search") and not isinstance(_argument(q, "query"), str),
     rows),
    ("fetch-id", lambda q: _tool(q, "fetch"), rows),
    ("error-texts", lambda q: isinstance(_argument(q, "id"), dict), quoted),
    ("fetch-after-search", lambda q: _tool(q, "fetch"), rows),
    ("batch-member", lambda q: isinstance(q.body, list), rows),
    ("resources", lambda q: q.get("method") == "resources/read", rows),
    ("identity-header", _named_by_header, rows),
    ("session", lambda q: "mcp-session-id" in q.headers, rows),
    ("path", lambda q: q.misspelled, rows),
    ("cache", lambda q: _tool(q, "search"), cached),
    ("existence-by-id", lambda q: _tool(q, "fetch"), forbidden),
    ("existence-by-id", lambda q: _tool(q, "fetch"), forbidden),
    ("existence-by-id", lambda q: _tool(q, "fetch"), slow),
]  # fmt: skip


def _conditions(asked: Asked) -> list[Any]:
    found = asked.get("metadata_condition", "conditions")
    return found if isinstance(found, list) else []


DIFY: Holes = [
    ("filter", lambda q: q.get("metadata_condition", "logical_operator") == "or", rows),
    ("filter", lambda q: any(one["comparison_operator"] == "is not" for one in _conditions(q)),
     rows),
    ("nearest", lambda q: not q.has("metadata_condition"), rows),
    ("top-k-overrun", lambda q: q.get("retrieval_setting", "top_k") == 10**4, rows),
    ("error-texts", lambda q: any(one["comparison_operator"] == ">" for one in _conditions(q)),
     quoted),
    ("identity-header", _named_by_header, rows),
    ("cache", lambda q: q.path == "/retrieval", cached),
    ("cross-collection", lambda q: q.get("knowledge_id") == NAMES[q.other], rows),
    ("collection-name", lambda q: q.get("knowledge_id") == NAMES[q.other].upper(), rows),
    ("collection-name", lambda q: isinstance(q.get("knowledge_id"), (list, dict)), rows),
    ("existence-by-tag", lambda q: TAG in q.text, forbidden),
    ("existence-by-tag", lambda q: TAG in q.text, slow),
]  # fmt: skip

_QUERY = "/points/query"
QDRANT: Holes = [
    ("filter-tenant", lambda q: q.get("filter", "must") is not None, rows),
    ("filter-should", lambda q: q.get("filter", "should") is not None, rows),
    ("filter-must-not", lambda q: q.get("filter", "must_not") is not None, rows),
    ("filter-list", lambda q: '"any"' in q.text, rows),
    ("filter-null", lambda q: q.has("filter") and not q.body["filter"], rows),
    ("filter-nested", lambda q: '"nested"' in q.text, rows),
    ("filter-type", lambda q: isinstance(q.get("filter"), (list, bool, str)), rows),
    ("filter-has-id", lambda q: '"has_id"' in q.text, rows),
    ("nearest", lambda q: q.path.endswith(_QUERY) and not q.has("filter"), rows),
    ("scroll", lambda q: q.path.endswith("/scroll"), rows),
    ("top-k-overrun", lambda q: q.get("limit") == 10**5, rows),
    ("get-ids", lambda q: q.has("ids"), rows),
    ("error-texts", lambda q: '"range"' in q.text, quoted),
    ("facet", lambda q: q.path.endswith("/facet"), rows),
    ("matrix", lambda q: "/matrix/" in q.path, rows),
    ("maintenance", lambda q: q.path.startswith("/telemetry"), rows),
    ("identity-header", _named_by_header, rows),
    ("recommend", lambda q: "recommend" in q.path, rows),
    ("lookup-from", lambda q: q.has("lookup_from"), rows),
    ("with-lookup", lambda q: q.has("with_lookup"), rows),
    ("prefetch", lambda q: q.has("prefetch"), rows),
    ("batch-member", lambda q: len(q.get("searches") or ()) > 1, rows),
    ("older-search", lambda q: q.path.endswith("/points/search"), rows),
    ("cache", lambda q: q.path.endswith(_QUERY), cached),
    ("conditional", lambda q: q.path.endswith(_QUERY), tagged),
    ("cross-collection", lambda q: q.foreign_place, rows),
    ("listing", lambda q: q.path == "/collections", names),
    ("collection-name", lambda q: q.misspelled, rows),
    ("path-traversal", lambda q: ".." in unquote(q.path), rows),
    ("existence-by-id", lambda q: q.method == "GET" and "/points/" in q.path, forbidden),
    ("existence-by-ids", lambda q: q.has("ids"), slow),
    ("recommend-existence", lambda q: "recommend" in q.text, forbidden),
    ("count-by-tag", lambda q: q.path.endswith("/count"), forbidden),
]


def _filter(asked: Asked) -> str:
    """The filter of a query: canonical JSON in a text."""
    found = asked.get("filter")
    return found if isinstance(found, str) else ""


def _inner(asked: Asked) -> Any:
    try:
        return json.loads(_filter(asked))
    except ValueError:
        return None


def _query(asked: Asked) -> bool:
    return asked.method == "POST" and asked.path.endswith("/query")


PROVER: Holes = [
    ("nearest", lambda q: _query(q) and not q.has("filter"), rows),
    ("filter", lambda q: '"op":"not"' in _filter(q), rows),
    ("filter", lambda q: '"op":"or"' in _filter(q), rows),
    ("filter-tenant", lambda q: _inner(q) == {"tenant": q.other}, rows),
    ("filter-or", lambda q: '"$or"' in _filter(q), rows),
    ("filter-and", lambda q: '"$and"' in _filter(q), rows),
    ("filter-not", lambda q: '"$ne"' in _filter(q), rows),
    ("filter-range", lambda q: '"$gt"' in _filter(q), rows),
    ("filter-list", lambda q: '"$in"' in _filter(q), rows),
    ("filter-null", lambda q: _inner(q) == {}, rows),
    ("filter-regex", lambda q: '"$regex"' in _filter(q), rows),
    ("filter-nested", lambda q: '"metadata.tenant"' in _filter(q), rows),
    ("filter-type", lambda q: q.has("filter") and not isinstance(_inner(q), dict), rows),
    ("filter-sql", lambda q: "' OR " in _filter(q), rows),
    ("filter-spelling", lambda q: '"TENANT"' in _filter(q), rows),
    ("extra-member", lambda q: q.has("tenant"), rows),
    ("top-k-overrun", lambda q: q.get("top_k") == 10**4, rows),
    ("error-texts", lambda q: '"op":"gt"' in _filter(q), quoted),
    ("identity-header", _named_by_header, rows),
    ("idempotency-key", lambda q: "idempotency-key" in q.headers, cached),
    ("cache", _query, cached),
    ("receipts", lambda q: q.path.startswith("/v1/receipts/"), rows),
    ("log", lambda q: "/log/tile/entries/" in q.path, rows),
    ("window-name", lambda q: "/W1/" in q.path, rows),
    ("existence-by-tag", lambda q: TAG in _filter(q), forbidden),
    ("existence-by-tag", lambda q: TAG in _filter(q), slow),
]
"""Of the prover's own interface, with a window called w1."""

HOLES = {"openai": OPENAI, "mcp": MCP, "dify": DIFY, "qdrant": QDRANT}
