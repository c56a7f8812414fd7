"""Filters of requests over public columns (docs/spec/05-records.md §5.12).

A filter is a text: canonical JSON with doubles, see `columns`. The empty text is no filter: every
row passes. Its bytes are what `filter_digest` covers, so there is one text for each filter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.columns import (
    PublicColumn,
    Value,
    canonical_text,
    parse_text,
)
from ragaudit.ledger.messages.policy import Policy

MAX_FILTER_BYTES: Final = 2**14
MAX_DEPTH: Final = 8
"""Of nested operators, a comparison counted as one."""
MAX_LEAVES: Final = 64
"""Comparisons of one filter."""
MAX_VALUES: Final = 1000
"""Of one `in` or `nin`."""

_EQUALITY: Final = ("eq", "ne")
_MEMBERSHIP: Final = ("in", "nin")
_ORDER: Final = ("lt", "le", "gt", "ge")
_NEGATIVE: Final = ("ne", "nin")
_LOGIC: Final = ("and", "or", "not")

M = TypeVar("M")


class Table(Protocol[M]):
    """The public columns of all rows of an index, compared all at once.

    `ragaudit.circuits.selection.ColumnArrays` is one; M is which rows pass.
    """

    def compare(self, op: str, key: str, value: "Value | tuple[Value, ...]", /) -> M:
        """Return which rows pass a comparison."""

    def combine(self, op: str, parts: Sequence[M], /) -> M:
        """Return which rows pass a combination of what passed its parts."""

    def allowed(self, passing: M | None, /) -> tuple[int, ...] | None:
        """Return the positions that a search may select, rising; None for all of them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A leaf of a filter.

    Attributes:
        op: "eq", "ne", "in", "nin", "lt", "le", "gt" or "ge".
        key: name of a public column.
        value: of the column's type; a list of such for "in" and "nin".
    """

    op: str
    key: str
    value: "Value | tuple[Value, ...]" = field(repr=False)
    _members: frozenset[Value] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Looked up once a row: a filter of thousands of values is evaluated on millions of rows.
        # The types were checked, so equal values have one hash: no boolean is among numbers.
        members = frozenset(self.value) if isinstance(self.value, tuple) else frozenset()
        object.__setattr__(self, "_members", members)

    def passes(self, values: Mapping[str, Value]) -> bool:
        """Return whether a row passes; one that lacks the value passes "ne" and "nin" only."""
        if self.key not in values:
            return self.op in _NEGATIVE
        found, wanted = values[self.key], self.value
        if isinstance(wanted, tuple):
            return (found in self._members) == (self.op == "in")
        if self.op in _EQUALITY:
            return (found == wanted) == (self.op == "eq")
        # The types were checked: numbers only, and integers of 53 bits are doubles exactly.
        left, right = float(found), float(wanted)
        match self.op:
            case "lt":
                return left < right
            case "le":
                return left <= right
            case "gt":
                return left > right
            case _:
                return left >= right

    def among(self, table: Table[M]) -> M:
        """Return which rows of a table pass."""
        return table.compare(self.op, self.key, self.value)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a JSON value with doubles."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {"op": self.op, "key": self.key, "value": value}


@dataclass(frozen=True, slots=True)
class Combination:
    """An inner node of a filter: "and", "or" of one part or more, "not" of exactly one."""

    op: str
    of: "tuple[Node, ...]"

    def passes(self, values: Mapping[str, Value]) -> bool:
        """Return whether a row passes."""
        passed = (part.passes(values) for part in self.of)
        match self.op:
            case "and":
                return all(passed)
            case "or":
                return any(passed)
            case _:
                return not next(passed)

    def among(self, table: Table[M]) -> M:
        """Return which rows of a table pass."""
        return table.combine(self.op, [part.among(table) for part in self.of])

    def to_json(self) -> dict[str, Any]:
        """Return the combination as a JSON value with doubles."""
        return {"op": self.op, "of": [part.to_json() for part in self.of]}


Node: TypeAlias = Comparison | Combination


@dataclass(frozen=True, slots=True)
class Filter:
    """A parsed filter; `root` None is no filter, which every row passes."""

    root: Node | None

    @property
    def text(self) -> str:
        """The canonical text, as the request has it and the digest covers it; empty: none."""
        return "" if self.root is None else canonical_text(self.root.to_json())

    def passes(self, values: Mapping[str, Value]) -> bool:
        """Return whether a row is allowed.

        Args:
            values: of the row's public columns, from `columns.read_columns`.
        """
        return self.root is None or self.root.passes(values)

    def allowed(self, rows: Sequence[Mapping[str, Value] | None]) -> tuple[int, ...]:
        """Return the positions that a search may select, rising.

        Args:
            rows: values of the public columns of all N rows, in order; None for a null row.
        """
        return tuple(
            position
            for position, values in enumerate(rows)
            if values is not None and self.passes(values)
        )

    def allowed_in(self, table: Table[M]) -> tuple[int, ...] | None:
        """Return `allowed` for many rows at once; None if it is all of them.

        Args:
            table: of the public columns of all N rows.
        """
        return table.allowed(None if self.root is None else self.root.among(table))

    @classmethod
    def parse(cls, text: str, columns: Sequence[PublicColumn]) -> "Filter":
        """Return the filter of a request's text, type-checked, the strict inverse of `text`.

        Args:
            text: canonical, at most 16 KiB; empty: no filter.
            columns: that the policy declares.

        Raises:
            MalformedRecord: not canonical, too long, deep or wide, an operator outside the grammar,
                an undeclared column, or a value of another type.
        """
        if not text:
            return cls(None)
        if len(text.encode(errors="replace")) > MAX_FILTER_BYTES:
            raise _wrong("too long", f"at most {MAX_FILTER_BYTES} bytes")
        value = parse_text(text, "filter")
        # "null" would be a second text without a filter.
        return cls(_Reader({column.name: column for column in columns}).node(value, 1))

    @classmethod
    def from_json(cls, value: Any, columns: Sequence[PublicColumn]) -> "Filter":
        """Return the filter of a JSON value, as a surface builds it; `text` then has its spelling.

        Args:
            value: JSON with doubles; None: no filter.
            columns: that the policy declares.

        Raises:
            MalformedRecord: as `parse`.
        """
        if value is None:
            return cls(None)
        reader = _Reader({column.name: column for column in columns})
        made = cls(reader.node(value, 1))
        if len(made.text.encode()) > MAX_FILTER_BYTES:
            raise _wrong("too long", f"at most {MAX_FILTER_BYTES} bytes")
        return made


class _Reader:
    """Reads nodes and counts comparisons."""

    def __init__(self, columns: Mapping[str, PublicColumn]) -> None:
        self._columns = columns
        self._leaves = 0

    def node(self, value: object, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise _wrong("nested too deep", f"at most {MAX_DEPTH} levels")
        match value:
            case {"op": str(op), "of": list(parts), **more} if not more and op in _LOGIC:
                # Neither "and" of nothing nor "or" of nothing: readers disagree on what they are.
                if not parts or (op == "not" and len(parts) != 1):
                    raise _wrong(f"{len(parts)} parts of {op!r}", "one for not, one or more else")
                return Combination(op, tuple(self.node(part, depth + 1) for part in parts))
            case {"op": str(op), "key": str(key), "value": operand, **more} if not more:
                return self._comparison(op, key, operand)
        raise _wrong("not a node", '{"op", "key", "value"} or {"op", "of"}')

    def _comparison(self, op: str, key: str, operand: object) -> Comparison:
        self._leaves += 1
        if self._leaves > MAX_LEAVES:
            raise _wrong("too many comparisons", f"at most {MAX_LEAVES}")
        if op not in (*_EQUALITY, *_MEMBERSHIP, *_ORDER):
            raise _wrong("an operator outside the grammar", "eq ne in nin lt le gt ge and or not")
        if key not in self._columns:
            raise _wrong("an undeclared column", "one of the policy's public columns")
        column = self._columns[key]
        if op in _ORDER and column.type not in ("integer", "number"):
            raise _wrong(f"{op!r} on a {column.type}", "a column of integers or numbers")
        if op in _MEMBERSHIP:
            if not isinstance(operand, list) or not 1 <= len(operand) <= MAX_VALUES:
                raise _wrong(f"no list of values for {op!r}", f"1..{MAX_VALUES} values")
            if not all(map(column.accepts, operand)):
                raise _wrong("a value of another type", column.type)
            return Comparison(op, key, tuple(cast("list[Value]", operand)))
        if not column.accepts(operand):
            raise _wrong("a value of another type", column.type)
        return Comparison(op, key, cast("Value", operand))


def request_filter(text: str, policy: Policy) -> Filter:
    """Return the filter of a request under a policy.

    Args:
        text: of `Request.filter`.
        policy: of the window, which declares the columns and the grammar.

    Raises:
        UnsupportedError: a filter where the policy has no grammar for them.
        MalformedRecord: as `Filter.parse`.
    """
    if text and not policy.retrieval.filters:
        # Refused and not passed over: the answer would be one to another question.
        raise UnsupportedError("filters", where="filter", expected="empty text in this window")
    return Filter.parse(text, policy.retrieval.public_columns)


def _wrong(what: str, expected: str) -> MalformedRecord:
    # Never the filter's values: they are the account's question.
    return MalformedRecord(what, where="filter", expected=expected)
