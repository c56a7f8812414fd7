"""What a party holds of one account, as lines of JSON (docs/spec/10-verdict.md §10.8).

The same from verifier and provider. Neither writes, nor needs whoever reads, more than a line at a
time: an account may have a million records.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.generated import GenerationRequest
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.kernel import Digest, Message, ProviderName, WindowName
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Openings, Request, Salted

__all__ = ["KINDS", "PROVIDER", "VERIFIER", "AccountRecords", "Line", "read_lines"]

VERIFIER: Final = "verifier"
PROVIDER: Final = "provider"
KINDS: Final = frozenset(
    {
        *("entry", "opened", "promise", "receipt", "judged", "refusal"),
        *("claim", "statement", "dispute", "item"),
    }
)
_END: Final = "end"


class Line(NamedTuple):
    """Something of the account.

    Attributes:
        kind: one of `KINDS`.
        value: JSON.
    """

    kind: str
    value: Any

    @classmethod
    def of_entry(cls, entry: Entry) -> Self:
        """Return the line of an entry of the log; of a record with salt_s and sketch."""
        shown = entry.to_json()
        if entry.kind == Record.KIND:
            shown |= {"salt_s": entry.salt_s.hex(), "sketch": entry.sketch.hex()}
        return cls("entry", shown)

    @classmethod
    def opened(
        cls,
        index: int,
        request: Request | GenerationRequest,
        openings: Openings,
        *,
        issued: int | None,
        answer: Mapping[str, Any] | None,
        salt: bytes | None = None,
    ) -> Self:
        """Return what was asked and answered, of a record or a charge entry.

        Args:
            index: of the entry.
            issued: time of the receipt, Unix milliseconds; None without an answer.
            answer: what left, JSON; None if nothing did.
            salt: salt_a of a generated answer.
        """
        shown = openings.to_json()
        value = {
            "index": index,
            "request": request.to_json(),
            # Question and filter stand in the request.
            "openings": {name: shown[name] for name in Salted.FORMS},
            "issued": issued,
            "answer": answer,
            "salt": None if salt is None else salt.hex(),
        }
        return cls("opened", value)


class AccountRecords(Message, kind="account-records", where="account records"):
    """The first line: who holds what follows, and of whom it is.

    Attributes:
        holder: VERIFIER or PROVIDER.
        provider, window: whose window it is.
        pseudonym: of the account in it, 32 bytes.
    """

    holder: Literal["verifier", "provider"]
    provider: ProviderName
    window: WindowName
    pseudonym: Digest

    def lines(self, found: Iterable[Line]) -> Iterator[bytes]:
        """Yield all lines, each canonical JSON and LF.

        Args:
            found: everything of the account, taken one by one.
        """
        yield _line(self.to_json())
        count = 0
        for each in found:
            count += 1
            yield _line({each.kind: each.value})
        # Without it, what was cut off between two lines would look whole.
        yield _line({_END: count})


def read_lines(lines: Iterable[bytes]) -> Iterator[AccountRecords | Line]:
    """Yield what lines say, the strict inverse of `AccountRecords.lines`, of one window or several.

    Args:
        lines: each with its LF, of a file or an answer; values are not looked into.

    Raises:
        MalformedError: not such lines, or some are missing; if need be after lines that came
            before.
    """
    begun, ended, count = False, True, 0
    for number, line in enumerate(lines, 1):
        value = _value(line, f"line {number}")
        if ended:
            begun, ended, count = True, False, 0
            yield AccountRecords.from_json(value, f"line {number}")
        elif line == _line({_END: count}):
            ended = True
        else:
            count += 1
            yield _found(value, count, f"line {number}")
    if not (begun and ended):
        raise MalformedError("cut off", where="account records", expected='a last line {"end": n}')


def _found(value: dict[str, Any], count: int, where: str) -> Line:
    if len(value) == 1:
        for kind in KINDS & value.keys():
            return Line(kind, value[kind])
    expected = f"one of {', '.join(sorted(KINDS))}, or the end of {count - 1}"
    raise MalformedError("no such line here", where=where, expected=expected)


def _line(value: Mapping[str, Any]) -> bytes:
    return canonical_json.dumps(value) + b"\n"


def _value(line: bytes, where: str) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise MalformedError("a line that does not end", where=where)
    value = canonical_json.loads(line[:-1])
    if not isinstance(value, dict):
        raise MalformedError("not an object", where=where)
    return value
