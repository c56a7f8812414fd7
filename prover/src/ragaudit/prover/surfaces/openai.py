"""OpenAI's vector stores: search, and the store that is searched (docs/surfaces.md).

The last route of both, which refuses the rest, is that of `openai_chat`.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated, Any

from fastapi import Depends, Response
from pydantic import Field
from ragaudit.encoding.errors import MalformedRequest, UnsupportedError
from ragaudit.prover.surfaces.caller import Caller, bearer
from ragaudit.prover.surfaces.conditions import all_of, any_of, leaf
from ragaudit.prover.surfaces.dialects import Dialect, reply
from ragaudit.prover.surfaces.errors import NotServed
from ragaudit.prover.surfaces.queries import Answer, Condition, Hit, Query
from ragaudit.prover.surfaces.thresholds import check_threshold, passing
from ragaudit.prover.surfaces.wire import Body

DEFAULT_RESULTS = 10
MAX_RESULTS = 50
_OPERATORS = {
    "eq": "eq", "ne": "ne", "gt": "gt", "gte": "ge", "lt": "lt", "lte": "le", "in": "in",
    "nin": "nin",
}  # fmt: skip
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def _shape(text: str, status: int) -> dict[str, Any]:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    code = {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(status)
    return {"error": {"message": text, "type": kind, "param": None, "code": code}}


_PREFIXES = ("/v1/vector_stores", "/vector_stores", "/v1/chat", "/chat")
OPENAI = Dialect("openai", _PREFIXES, bearer, _shape)
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
