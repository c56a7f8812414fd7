"""Public columns of rows (docs/spec/05-records.md §5.11): declared by a policy, one value a row.

Their JSON has numbers with fractions, which canonical JSON (1.4) has not. So column values and
filters travel as *texts*, in RFC 8785's encoding with IEEE doubles, and inside another document
such a text is a JSON string: its bytes are what the index leaf and the filter's digest cover.
"""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, NoReturn, TypeAlias, cast

import rfc8785
from ragaudit.encoding.canonical_json import MAX_INTEGER
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.json_structure import check_depth
from ragaudit.ledger.errors import MalformedPolicy, MalformedRecord
from ragaudit.ledger.messages.kernel import Message, Text

ColumnType: TypeAlias = Literal["string", "integer", "number", "boolean"]
Value: TypeAlias = "str | int | float | bool"

NO_COLUMNS: Final = "{}"
NULL_ROW: Final = "null"
"""In place of columns, in the leaf of a null row of a window without noise (5.4)."""
MAX_COLUMNS: Final = 64
MAX_NAME_BYTES: Final = 128
MAX_COLUMNS_BYTES: Final = 2**14
"""Of the text of one row's columns."""


class PublicColumn(Message):
    """A column that a policy declares.

    Attributes:
        name: 1..128 bytes of UTF-8.
        type: "string", "integer" (-(2^53 - 1)..2^53 - 1), "number" (finite IEEE double) or
            "boolean".
    """

    ERROR: ClassVar[type[MalformedError]] = MalformedPolicy

    name: Annotated[str, Text(1, MAX_NAME_BYTES)]
    type: ColumnType

    def accepts(self, value: object) -> bool:
        """Return whether a JSON value is one of the column's type: true is no integer."""
        match self.type:
            case "string":
                return isinstance(value, str)
            case "boolean":
                return isinstance(value, bool)
            case "integer":
                return type(value) is int and -MAX_INTEGER <= value <= MAX_INTEGER
            case "number":
                if type(value) is int:
                    return -MAX_INTEGER <= value <= MAX_INTEGER
                return type(value) is float and math.isfinite(value)


def canonical_text(value: object) -> str:
    """Return a JSON value with doubles in RFC 8785's encoding.

    Args:
        value: objects, lists, texts, booleans, null, finite doubles and integers of at most 53
            bits; the integer 1 and the double 1.0 have one encoding.

    Raises:
        MalformedRecord: anything else.
    """
    try:
        return rfc8785.dumps(cast("Any", value)).decode()
    except (rfc8785.CanonicalizationError, UnicodeError, ValueError, RecursionError) as error:
        raise MalformedRecord("no canonical JSON", where="columns") from error


def parse_text(text: str, where: str) -> Any:
    """Return the value of a text, the strict inverse of `canonical_text`.

    Args:
        text: from anybody; the caller has bounded its length.
        where: its place, for errors.

    Raises:
        MalformedRecord: not canonical JSON with doubles.
    """
    try:
        check_depth(text.encode())
        value = json.loads(
            text,
            parse_int=_number,
            parse_float=float,
            parse_constant=_no_constant,
            object_pairs_hook=_object,
        )
        canonical = rfc8785.dumps(value)
        same = canonical == text.encode()
    except (MalformedError, rfc8785.CanonicalizationError, UnicodeError, ValueError) as error:
        raise MalformedRecord("not JSON", where=where, expected="RFC 8785") from error
    # Two spellings of one filter would be two questions to the log, and one to the index.
    if not same:
        raise MalformedRecord("not in canonical form", where=where, expected="RFC 8785")
    return value


def columns_text(values: Mapping[str, Value], declared: Iterable[PublicColumn]) -> str:
    """Return the text of a row's columns, checked against their declaration.

    Args:
        values: by name; a column without a value is left out.
        declared: of the policy.

    Raises:
        MalformedRecord: an undeclared column, a value of another type, or a text too long.
    """
    _check_declared(values, declared)
    text = canonical_text(dict(values))
    if len(text.encode()) > MAX_COLUMNS_BYTES:
        raise MalformedRecord("columns too long", expected=f"at most {MAX_COLUMNS_BYTES} bytes")
    return text


def read_columns(text: str, declared: Iterable[PublicColumn]) -> dict[str, Value]:
    """Return the values of a row's columns, the strict inverse of `columns_text`.

    Args:
        text: as an index leaf, a document or a receipt has it.
        declared: of the policy.

    Raises:
        MalformedRecord: not such a text, or values that the policy does not declare.
    """
    if text == NO_COLUMNS:  # most rows of most indexes
        return {}
    if len(text.encode(errors="replace")) > MAX_COLUMNS_BYTES:
        raise MalformedRecord("columns too long", expected=f"at most {MAX_COLUMNS_BYTES} bytes")
    values = parse_text(text, "columns")
    if not isinstance(values, dict):
        raise MalformedRecord("not an object", where="columns")
    _check_declared(values, declared)
    # The policy's own texts: each row's would take more memory than its values.
    return {sys.intern(name): value for name, value in values.items()}


def _check_declared(values: Mapping[str, object], declared: Iterable[PublicColumn]) -> None:
    types = {column.name: column for column in declared}
    for name, value in values.items():
        # The values are a tenant's: an error names the column only, and that only if it is known.
        if name not in types:
            raise MalformedRecord("an undeclared column", where="columns")
        if not types[name].accepts(value):
            raise MalformedRecord(
                "another type", where=f"columns.{name}", expected=types[name].type
            )


def _number(text: str) -> int | float:
    # RFC 8785 writes doubles up to 10^21 without an exponent; as integers they would not fit.
    value = float(text)
    return int(text) if abs(value) <= MAX_INTEGER and len(text) < 20 else value


def _no_constant(_: str) -> NoReturn:
    raise ValueError("not a number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member twice")
    return members
