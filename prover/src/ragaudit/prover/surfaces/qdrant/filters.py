"""Qdrant's filters: must, should and must_not over public columns."""

from typing import Any

from ragaudit.encoding.errors import MalformedRequest, UnsupportedError
from ragaudit.prover.surfaces.conditions import all_of, any_of, leaf, negated
from ragaudit.prover.surfaces.errors import NotServed
from ragaudit.prover.surfaces.queries import Condition
from ragaudit.prover.surfaces.wire import Body

_RANGE = {"lt": "lt", "lte": "le", "gt": "gt", "gte": "ge"}


class RangeBody(Body):
    """Bounds of a number."""

    lt: int | float | None = None
    lte: int | float | None = None
    gt: int | float | None = None
    gte: int | float | None = None


class ConditionBody(Body):
    """A condition on a field, or a filter within a filter."""

    key: str | None = None
    match: dict[str, Any] | None = None
    range: RangeBody | None = None
    geo_bounding_box: Any = None
    geo_radius: Any = None
    geo_polygon: Any = None
    values_count: Any = None
    is_empty: Any = None
    is_null: Any = None
    has_id: Any = None
    has_vector: Any = None
    nested: Any = None
    must: "list[ConditionBody] | ConditionBody | None" = None
    should: "list[ConditionBody] | ConditionBody | None" = None
    must_not: "list[ConditionBody] | ConditionBody | None" = None
    min_should: Any = None


FilterBody = ConditionBody


def condition_of(given: FilterBody, prefix: str | None) -> Condition | None:
    """Return the filter of a Qdrant filter; None if it states nothing.

    Args:
        prefix: key of the payload under which the metadata are; None if they are at its top.

    Raises:
        NotServed: a condition on anything but a public column's value.
        UnsupportedError: a match that means something else where the value is missing.
        MalformedRequest: a condition in no form.
    """
    if given.min_should is not None:
        raise NotServed("min_should", expected="must, should and must_not")
    parts = [_condition(one, prefix) for one in _list(given.must)]
    if should := _list(given.should):
        parts.append(any_of([_condition(one, prefix) for one in should]))
    parts += [negated(_condition(one, prefix)) for one in _list(given.must_not)]
    if given.key is not None or given.match is not None or given.range is not None:
        raise MalformedRequest("a condition where a filter stands", where="filter")
    return all_of(parts) if parts else None


def _list(given: "list[ConditionBody] | ConditionBody | None") -> list[ConditionBody]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _condition(given: ConditionBody, prefix: str | None) -> Condition:
    named = given.model_fields_set & set(ConditionBody.model_fields)
    stated = {name for name in named if getattr(given, name) is not None}
    if stated and stated <= {"must", "should", "must_not", "min_should"}:
        nested = condition_of(given, prefix)
        if nested is None:
            raise MalformedRequest("an empty filter within a filter", where="filter")
        return nested
    if stated == {"key", "match"}:
        return _match(_column(given.key, prefix), given.match or {})
    if stated == {"key", "range"} and given.range is not None:
        bounds = given.range.model_dump(exclude_none=True)
        column = _column(given.key, prefix)
        return all_of([leaf(_RANGE[name], column, bound) for name, bound in bounds.items()])
    raise NotServed(
        "a condition on anything but the value of a public column",
        where="filter",
        expected="key with match or range",
    )


def _match(column: str, given: dict[str, Any]) -> Condition:
    if set(given) == {"value"} and isinstance(given["value"], str | int):
        return leaf("eq", column, given["value"])
    if set(given) == {"any"}:
        return leaf("in", column, given["any"])
    raise UnsupportedError(
        "a match by words, or except, which rows without the value never pass",
        where="filter",
        expected="value or any; must_not for the contrary",
    )


def _column(key: str | None, prefix: str | None) -> str:
    """Return the public column of a payload's key."""
    start = "" if prefix is None else f"{prefix}."
    if key is None or not key.startswith(start):
        raise UnsupportedError("key", where="filter", expected=f"{start}<public column>")
    return key.removeprefix(start)
