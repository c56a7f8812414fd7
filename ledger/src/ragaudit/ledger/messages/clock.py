"""What only the verifier's clock says: `public/clock.json` of docs/spec/10-verdict.md §10.1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import DIGEST_BYTES
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.signed import MAX_TIME

_WHERE: Final = "clock"


@dataclass(frozen=True, slots=True)
class Clock:
    """Times of receipt, in Unix milliseconds.

    Attributes:
        responses: when each response was received, by leaf index.
        claims: when each claim was taken, by the identity of its promise (32 bytes).
        close, records: when the window was closed and its log handed over, None if never.
    """

    responses: Mapping[int, int]
    claims: Mapping[bytes, int]
    close: int | None
    records: int | None

    def to_json(self) -> dict[str, Any]:
        """Return the clock as a JSON object."""
        return {
            "responses": {str(index): time for index, time in self.responses.items()},
            "claims": {identity.hex(): time for identity, time in self.claims.items()},
            "close": self.close,
            "records": self.records,
        }

    def encode(self) -> bytes:
        """Return the clock in canonical JSON, as the evidence holds it."""
        return canonical_json.dumps(self.to_json())

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the clock in ``data``, the strict inverse of `encode`.

        Raises:
            MalformedError: not canonical JSON, or (MalformedRecord) not a clock.
        """
        names = "responses claims close records"
        f = Fields(canonical_json.loads(data), names, MalformedRecord, _WHERE)
        responses, claims = _times(f, "responses"), _times(f, "claims")
        return cls(
            {_index(f, index): time for index, time in responses.items()},
            {_identity(f, identity): time for identity, time in claims.items()},
            None if f.raw("close") is None else f.integer("close", 0, MAX_TIME),
            None if f.raw("records") is None else f.integer("records", 0, MAX_TIME),
        )


def _times(f: Fields, name: str) -> dict[str, int]:
    value = f.raw(name)
    if not isinstance(value, dict):
        raise f.error(name, "not an object")
    times = Fields(value, " ".join(value), MalformedRecord, f.path(name))
    return {key: times.integer(key, 0, MAX_TIME) for key in value}


def _index(f: Fields, text: str) -> int:
    canonical = text.isascii() and text.isdecimal() and len(text) < 20
    if not canonical or str(int(text)) != text:
        raise f.error("responses", "not a leaf index", expected="its decimal digits")
    return int(text)


def _identity(f: Fields, text: str) -> bytes:
    try:
        return hex_decode(text, DIGEST_BYTES)
    except MalformedError as error:
        raise f.error("claims", error.what, expected=error.expected) from error
