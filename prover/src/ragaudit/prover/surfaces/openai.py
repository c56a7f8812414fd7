"""OpenAI's vector stores, which are searched, and chat completions, which are generated answers."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated, Any, Literal

from fastapi import Depends, Response
from pydantic import Field
from ragaudit.encoding.errors import MalformedRequest, UnsupportedError
from ragaudit.prover.errors import NotServed
from ragaudit.prover.surfaces.caller import Caller, bearer
from ragaudit.prover.surfaces.dialects import Body, Dialect, reply
from ragaudit.prover.surfaces.queries import (
    Answer,
    Completion,
    Condition,
    Hit,
    Query,
    all_of,
    any_of,
    check_threshold,
    leaf,
    passing,
)

DEFAULT_RESULTS = 10
MAX_RESULTS = 50
_OPERATORS = {
    "eq": "eq", "ne": "ne", "gt": "gt", "gte": "ge", "lt": "lt", "lte": "le", "in": "in",
    "nin": "nin",
}  # fmt: skip
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_PREFIXES = ("/v1/vector_stores", "/vector_stores", "/v1/chat", "/chat")
IGNORED = ("max_completion_tokens", "max_tokens", "seed", "temperature", "top_p", "user")
_REFUSED = (
    "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "logprobs",
    "top_logprobs", "response_format", "stop",
)  # fmt: skip


def _shape(text: str, status: int) -> dict[str, Any]:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    code = {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(status)
    return {"error": {"message": text, "type": kind, "param": None, "code": code}}


_SEARCHES = frozenset({"openaiSearch", "openaiSearchShort"})
OPENAI = Dialect("openai", _PREFIXES, bearer, _shape, _SEARCHES)
CallerOf = Annotated[Caller, Depends(OPENAI.caller)]


class RankingOptions(Body):
    """Only what leaves the order alone."""

    ranker: str | None = None
    score_threshold: float | None = Field(default=None, allow_inf_nan=False)


class FilterBody(Body):
    """A comparison, or several joined."""

    type: str
    key: str | None = None
    value: str | int | float | bool | list[str | int | float | bool] | None = None
    filters: "list[FilterBody] | None" = None


class SearchBody(Body):
    """A search."""

    query: str | list[str]
    max_num_results: int | None = Field(default=None, ge=1, le=MAX_RESULTS)
    filters: FilterBody | None = None
    ranking_options: RankingOptions | None = None
    rewrite_query: bool | None = None
    # A member of OGX's and llama-stack's clients.
    search_mode: str | None = None


router = OPENAI.router()


@router.post("/v1/vector_stores/{store}/search", operation_id="openaiSearch")
@router.post("/vector_stores/{store}/search", operation_id="openaiSearchShort")
def search(caller: CallerOf, store: str, body: SearchBody) -> Response:
    """Answer one text or several; several are as many queries, merged into one page."""
    caller.check_collection(store)
    threshold = checked_threshold(body)
    texts = [body.query] if isinstance(body.query, str) else body.query
    condition = None if body.filters is None else condition_of(body.filters)
    # What no client named is within the policy; what one did name is charged as named.
    top_k = body.max_num_results or min(DEFAULT_RESULTS, caller.index().top_k_max)
    answers = caller.ask([Query(text, top_k, condition) for text in texts])
    return reply(page(texts, answers, top_k, threshold), [answer.receipt for answer in answers])


@router.get("/v1/vector_stores/{store}", operation_id="openaiStore")
@router.get("/vector_stores/{store}", operation_id="openaiStoreShort")
def retrieve(caller: CallerOf, store: str) -> Response:
    """Show the store; its number of files is that of the index's rows, which the policy says."""
    caller.check_collection(store)
    rows = caller.index().rows
    counts = {"in_progress": 0, "completed": rows, "failed": 0, "cancelled": 0, "total": rows}
    return reply(
        {
            "id": store,
            "object": "vector_store",
            "created_at": 0,
            "name": store,
            "usage_bytes": 0,
            "file_counts": counts,
            "status": "completed",
            "expires_after": None,
            "expires_at": None,
            "last_active_at": None,
            "metadata": {},
        }
    )


def checked_threshold(body: SearchBody) -> float | None:
    """Return the score threshold of a search that asks for nothing that is not served.

    Raises:
        NotServed: a rewritten query, another search than by vectors, or a ranker.
        UnsupportedError: a threshold that no row can pass.
    """
    if body.rewrite_query:
        raise NotServed("rewrite_query", expected="false: the query that is logged is yours")
    if body.search_mode not in (None, "vector"):
        raise NotServed("search_mode", expected='"vector": words are searched by their meaning')
    options = body.ranking_options or RankingOptions()
    if options.ranker not in (None, "none", "auto"):
        raise NotServed("a ranker", expected='"none" or "auto"')
    check_threshold(options.score_threshold)
    return options.score_threshold


def condition_of(given: FilterBody) -> Condition:
    """Return the filter of OpenAI's filter object.

    Raises:
        UnsupportedError: an operator that is not served.
        MalformedRequest: members that do not belong to the type.
    """
    if given.type in ("and", "or"):
        if given.filters is None or given.key is not None or given.value is not None:
            raise MalformedRequest("a compound filter", where="filters", expected="type, filters")
        parts = [condition_of(part) for part in given.filters]
        return all_of(parts) if given.type == "and" else any_of(parts)
    if (operator := _OPERATORS.get(given.type)) is None:
        expected = ", ".join((*_OPERATORS, "and", "or"))
        raise UnsupportedError("comparison", where="filters", expected=expected)
    if given.key is None or given.value is None or given.filters is not None:
        raise MalformedRequest("a comparison", where="filters", expected="type, key, value")
    return leaf(operator, given.key, given.value)


def page(
    texts: Sequence[str], answers: Sequence[Answer], limit: int, threshold: float | None
) -> dict[str, Any]:
    """Return the rows of all answers as one page.

    Args:
        texts: that were asked.
        answers: one for each, in that order.
        limit: of rows; those that do not fit any more were served and charged all the same.
        threshold: from which score on, None for all.
    """
    hits = passing(merged([answer.hits for answer in answers]), threshold)
    return {
        "object": "vector_store.search_results.page",
        "search_query": list(texts),
        "data": [_result(hit) for hit in hits[:limit]],
        "has_more": False,
        "next_page": None,
    }


def merged(answers: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Return the rows of several answers, best first, each once.

    Args:
        answers: each in its own order; rows of equal score keep it, the first ones first.
    """
    best: dict[str, Hit] = {}
    for rank in zip_longest(*answers):
        for hit in rank:
            if hit is not None and (hit.id not in best or hit.similarity > best[hit.id].similarity):
                best[hit.id] = hit
    return sorted(best.values(), key=lambda hit: -hit.similarity)


def _result(hit: Hit) -> dict[str, Any]:
    name = hit.metadata.get("filename", hit.id)
    return {
        "file_id": hit.id,
        "filename": name if isinstance(name, str) else hit.id,
        "score": hit.similarity,
        "attributes": _attributes(hit),
        "content": [{"type": "text", "text": hit.content}],
    }


def _attributes(hit: Hit) -> dict[str, object] | None:
    """Return the metadata that an attribute can hold: texts, numbers and booleans."""
    scalars: tuple[type, ...] = (str, int, float, bool)
    shown = {key: value for key, value in hit.metadata.items() if isinstance(value, scalars)}
    return shown or None


class TextPart(Body):
    """A part of a message."""

    type: Literal["text"]
    text: str


class Message(Body):
    """A message; the only one, and the user's, is the question."""

    role: str
    content: str | list[TextPart]
    name: str | None = None


class ChatBody(Body):
    """A question; how it is answered, the policy says.

    What clients send with every question, and what only asks for another draw of the same kind, is
    taken and not honoured (`IGNORED`). What asks for another kind of answer is refused by name
    (`_REFUSED`), and so is every other member.
    """

    model: str
    messages: list[Message] = Field(min_length=1)
    n: int | None = Field(default=None, ge=1)
    stream: bool | None = None
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None
    user: str | None = None
    tools: Any = None
    tool_choice: Any = None
    parallel_tool_calls: Any = None
    functions: Any = None
    function_call: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    response_format: Any = None
    stop: Any = None

    @property
    def ignored(self) -> list[str]:
        """Names of the members that were sent and change nothing."""
        return [name for name in IGNORED if getattr(self, name) is not None]


completions = OPENAI.router()


@completions.post("/v1/chat/completions", operation_id="openaiChat")
@completions.post("/chat/completions", operation_id="openaiChatShort")
async def chat(caller: CallerOf, body: ChatBody) -> Response:
    """Generate an answer; ``model`` is the name of a collection of the tenant's."""
    caller.check_collection(body.model)
    check_kind(body)
    completion = await caller.complete(question_of(body.messages), body.ignored)
    return reply(document(completion, body.model), [completion.receipt])


def check_kind(body: ChatBody) -> None:
    """Check that the answer that is wanted is one that there is: whole, one, and of words alone.

    Raises:
        NotServed: another one; the member is named.
    """
    if body.stream:
        raise NotServed("stream", expected="false: an answer leaves whole, at a fixed time")
    if body.n is not None and body.n > 1:
        raise NotServed(f"n = {body.n}", expected="1: each answer is a charge of its own")
    for name in _REFUSED:
        # Some clients send what asks for nothing.
        if getattr(body, name) not in (None, False, [], "none", {"type": "text"}):
            raise NotServed(name, expected="a question without it")


def question_of(messages: list[Message]) -> str:
    """Return the question of a conversation that is only a question.

    Raises:
        NotServed: more messages: what they say would be no part of what is logged and answered.
    """
    if [message.role for message in messages] != ["user"]:
        raise NotServed("a conversation", expected="one message, of the role user")
    content = messages[0].content
    return content if isinstance(content, str) else "".join(part.text for part in content)


def document(completion: Completion, model: str) -> dict[str, Any]:
    """Return the answer's body.

    Args:
        model: as it was asked for.
    """
    message = {"role": "assistant", "content": completion.text, "refusal": None}
    return {
        "id": f"chatcmpl-{completion.receipt}",
        "object": "chat.completion",
        "created": completion.time // 1000,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": "stop" if completion.ended else "length",
            }
        ],
        # Of the prompts nothing is said: how long they were depends on documents.
        "usage": {
            "prompt_tokens": 0,
            "completion_tokens": completion.tokens,
            "total_tokens": completion.tokens,
        },
    }


OPENAI.refuse_rest(completions)
