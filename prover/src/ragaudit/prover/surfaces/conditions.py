"""Filters in the grammar of docs/spec (§15), made of those of other interfaces."""

import math
from collections.abc import Sequence
from typing import Any

from ragaudit.encoding.errors import MalformedRequest
from ragaudit.prover.surfaces.queries import Condition


def leaf(op: str, key: str, value: Any) -> Condition:
    """Return the condition on one public column.

    Args:
        op: eq, ne, in, nin, lt, le, gt or ge.
        key: name of the column.
        value: a scalar, or a list of them for in and nin.

    Raises:
        MalformedRequest: a value of another kind.
    """
    values = value if op in ("in", "nin") else [value]
    if not isinstance(values, list) or not all(map(_possible, values)):
        expected = "a list of texts, numbers or booleans" if op in ("in", "nin") else "a scalar"
        raise MalformedRequest("not a value", where="filter", expected=expected)
    plain = [_plain(one) for one in values]
    return {"op": op, "key": key, "value": plain if op in ("in", "nin") else plain[0]}


def _plain(value: Any) -> Any:
    """Return a whole number as an integer: clients send 10.0 to a column of integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _possible(value: Any) -> bool:
    # A text such as "nan" becomes a number in some interfaces.
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that all of these hold, of which there is one at least."""
    return _joined("and", conditions)


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that any of these holds, of which there is one at least."""
    return _joined("or", conditions)


def negated(condition: Condition) -> Condition:
    """Return the condition that this one does not hold."""
    return {"op": "not", "of": [condition]}


def _joined(op: str, conditions: Sequence[Condition]) -> Condition:
    if not conditions:
        raise MalformedRequest("an empty list", where="filter", expected="one condition at least")
    return conditions[0] if len(conditions) == 1 else {"op": op, "of": list(conditions)}
