"""Dify's external knowledge API: one call (docs.dify.ai, "External Knowledge API").

The smallest surface, and the one to copy for another (docs/surfaces.md).
"""

from typing import Annotated, Any, Literal

from fastapi import Depends, Response
from pydantic import Field
from ragaudit.encoding.errors import MalformedRequest, UnsupportedError
from ragaudit.prover.errors import NotServed
from ragaudit.prover.surfaces.caller import Caller, bearer
from ragaudit.prover.surfaces.dialects import Body, Dialect, OpenBody, reply
from ragaudit.prover.surfaces.queries import (
    Answer,
    Condition,
    Query,
    all_of,
    any_of,
    check_threshold,
    leaf,
    passing,
)

_CODES = {401: 1002, 403: 1002, 404: 2001}
DIFY = Dialect(
    "dify",
    ("/retrieval",),
    bearer,
    lambda text, status: {"error_code": _CODES.get(status, status), "error_msg": text},
    frozenset({"difyRetrieval"}),
)
_OPERATORS = {
    "is": "eq", "is not": "ne", "in": "in", "not in": "nin",
    "=": "eq", "≠": "ne", "<": "lt", "≤": "le", ">": "gt", "≥": "ge",
}  # fmt: skip
_NUMERIC = ("=", "≠", "<", "≤", ">", "≥")


class Setting(OpenBody):
    """How many rows, and from which score on."""

    top_k: int = Field(ge=1)
    score_threshold: float | None = Field(default=None, allow_inf_nan=False)
    score_threshold_enabled: bool | None = None
    reranking: Any = None
    reranking_enable: Any = None

    def threshold(self) -> float | None:
        """Return the score from which on rows are wanted; NotServed for another order of them."""
        if self.reranking or self.reranking_enable:
            raise NotServed("reranking", expected="the rows as they rank in the index")
        threshold = None if self.score_threshold_enabled is False else self.score_threshold
        check_threshold(threshold)
        return threshold


class MetadataTest(Body):
    """A condition on one member of the metadata."""

    name: str | list[str]
    comparison_operator: str
    value: str | int | float | list[str] | None = None


class MetadataCondition(Body):
    """All conditions, or any."""

    logical_operator: Literal["and", "or"] | None = "and"
    conditions: list[MetadataTest] | None = None


class RetrievalBody(OpenBody):
    """A retrieval."""

    knowledge_id: str
    query: str = Field(min_length=1)
    retrieval_setting: Setting
    metadata_condition: MetadataCondition | None = None


router = DIFY.router()


@router.post("/retrieval", operation_id="difyRetrieval")
def retrieval(caller: Annotated[Caller, Depends(DIFY.caller)], body: RetrievalBody) -> Response:
    """Answer a text; what comes back are the rows' texts and metadata."""
    caller.check_collection(body.knowledge_id)
    setting, threshold = body.retrieval_setting, body.retrieval_setting.threshold()
    condition = condition_of(body.metadata_condition, caller.index().columns)
    [answer] = caller.ask([Query(body.query, setting.top_k, condition)])
    return reply({"records": records(answer, threshold)}, [answer.receipt])


def records(answer: Answer, threshold: float | None) -> list[dict[str, Any]]:
    """Return the rows as Dify's records.

    Args:
        threshold: from which score on, None for all.
    """
    return [
        {
            "content": hit.content,
            "score": hit.similarity,
            "title": str(hit.metadata.get("title", hit.id)),
            "metadata": {"id": hit.id, **hit.metadata},
        }
        for hit in passing(answer.hits, threshold)
    ]


def condition_of(given: MetadataCondition | None, columns: Any) -> Condition | None:
    """Return the filter of a metadata condition, None if there is none.

    Args:
        columns: type of each public column, by name: Dify sends numbers as texts.

    Raises:
        UnsupportedError: an operator that is not served.
        MalformedRequest: several names, or a value that fits no operator.
    """
    if given is None or not given.conditions:
        return None
    tests = [_test(test, columns) for test in given.conditions]
    return any_of(tests) if given.logical_operator == "or" else all_of(tests)


def _test(test: MetadataTest, columns: Any) -> Condition:
    if (operator := _OPERATORS.get(test.comparison_operator)) is None:
        expected = ", ".join(_OPERATORS)
        what = f"comparison_operator {test.comparison_operator[:32]!r}"
        raise UnsupportedError(what, where="metadata_condition", expected=expected)
    names = [test.name] if isinstance(test.name, str) else test.name
    if len(names) != 1:
        raise MalformedRequest("several names", where="metadata_condition", expected="one")
    value: Any = test.value
    if test.comparison_operator in _NUMERIC or columns.get(names[0]) in ("integer", "number"):
        value = [_number(one) for one in value] if isinstance(value, list) else _number(value)
    elif operator in ("in", "nin") and isinstance(value, str):
        value = [value]
    return leaf(operator, names[0], value)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise MalformedRequest("not a number", where="metadata_condition") from None


DIFY.refuse_rest(router)
