"""Lists that the evidence of a window holds as items: docs/spec/10-verdict.md §10.1.

The verifier writes each of them once, when a window is sealed; its audit, and whoever repeats the
audit from a bundle, reads them with the same classes.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Annotated, Any, BinaryIO, Final, Generic, Self, TypeAlias, TypeVar

from ragaudit.encoding import canonical_json
from ragaudit.encoding.canonical_json import located
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.ledger.log.timestamps import MAX_TOKEN_BYTES
from ragaudit.ledger.messages.challenge import Activation
from ragaudit.ledger.messages.disputes import Dispute, Finding, RegistrationStatement, Step
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.kernel import MAX_TIME, Converted, Integer, Message, Object, Text
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Claim, Refusal
from ragaudit.ledger.messages.receipts import PublicPart, read_public_part

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class EvidenceList(ABC, Generic[M]):
    """A list of messages of one kind; nothing of them has been verified."""

    messages: tuple[M, ...]

    @staticmethod
    @abstractmethod
    def read(value: Any) -> M:
        """Return the message of a JSON value.

        Raises:
            RagauditError: not such a message.
        """

    @staticmethod
    def write(message: Any) -> Any:
        """Return the JSON value of a message, which `read` reads."""
        return message.to_json()

    def encode(self) -> bytes:
        """Return the list in canonical JSON, as the evidence holds it."""
        return canonical_json.dumps([self.write(message) for message in self.messages])

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the list in ``data``, the inverse of `encode`.

        Args:
            data: an item of the evidence.

        Raises:
            MalformedError: not a canonical JSON list of such messages.
        """
        return cls(tuple(cls.stream(BytesIO(data))))

    @classmethod
    def stream(cls, file: BinaryIO) -> Iterator[M]:
        """Yield the messages of the list in a file, one by one: it may have 2 GiB.

        Args:
            file: of an item of the evidence.

        Raises:
            MalformedError: as of `parse`, if need be after messages that came before.
        """
        return (message for message, _, _ in cls.located(file))

    @classmethod
    def located(cls, file: BinaryIO) -> Iterator[tuple[M, int, int]]:
        """Yield the messages, each with the offsets between which `read_at` reads it again.

        Args:
            file: as for `stream`.

        Raises:
            MalformedError: as `stream`.
        """
        return cls._messages(located(file))

    @classmethod
    def read_at(cls, file: BinaryIO, start: int, end: int) -> M:
        """Return one message again.

        Args:
            start, end: as `located` gave them.

        Raises:
            RagauditError: the file is another one by now.
        """
        file.seek(start)
        return cls.read(canonical_json.loads(file.read(end - start)))

    @classmethod
    def _messages(cls, listed: Iterable[tuple[Any, int, int]]) -> Iterator[tuple[M, int, int]]:
        return ((cls.read(value), start, end) for value, start, end in listed)


class SubmittedList(EvidenceList[M]):
    """A list of what anybody could hand in; `parse` passes over what is no such message (§9.6)."""

    @classmethod
    def _messages(cls, listed: Iterable[tuple[Any, int, int]]) -> Iterator[tuple[M, int, int]]:
        for value, start, end in listed:
            try:
                yield cls.read(value), start, end
            except RagauditError:
                # Whoever hands in rubbish accuses nobody: it must not fail the provider's window.
                continue


class Activations(EvidenceList[Activation]):
    """`public/activations.json`: what the verifier released, by rising instant."""

    read = staticmethod(Activation.from_json)


class Checkpoints(EvidenceList[bytes]):
    """`public/checkpoints.json`: the notes that the cosigner signed, by rising size.

    `public/cosigned.json`, those with the quorum of the policy's further cosigners, likewise.
    """

    @staticmethod
    def read(value: Any) -> bytes:
        """Return the bytes of a note's text; MalformedError for what is no text."""
        if not isinstance(value, str):
            raise MalformedError("not a note")
        return value.encode()

    @staticmethod
    def write(message: bytes) -> str:
        """Return the text of a note."""
        return message.decode()


class Entries(EvidenceList[Entry]):
    """`public/entries.json`: the log's entries of all kinds but record, by rising index."""

    read = staticmethod(Entry.from_json)

    @classmethod
    def _messages(cls, listed: Iterable[tuple[Any, int, int]]) -> Iterator[tuple[Entry, int, int]]:
        last = -1
        for value, start, end in listed:
            entry = cls.read(value)
            # With two entries of one index, readers could disagree on which one counts.
            if entry.index <= last:
                raise MalformedError("entries", expected="rising indices")
            last = entry.index
            yield entry, start, end


class Receipts(SubmittedList[PublicPart]):
    """`public/receipts.json` and `public/judged.json`: public parts of receipt files."""

    read = staticmethod(read_public_part)


class Refusals(SubmittedList[Refusal]):
    """`public/refusals.json`: refusals, which accounts say that the provider signed."""

    read = staticmethod(Refusal.from_json)


class Statements(SubmittedList[RegistrationStatement]):
    """`public/statements.json`: registration statements of accounts (§5.10)."""

    read = staticmethod(RegistrationStatement.from_json)


class Claims(SubmittedList[Claim]):
    """`confidential/claims.json`: promises with their nonces, as accounts handed them in."""

    read = staticmethod(Claim.from_json)


class KeptDispute(Message, where="dispute"):
    """A dispute as the evidence holds it.

    Attributes:
        step: that fails, 0 if none does; None while nobody judged the file.
        file: the receipt file, if the verifier judged it and upheld; it keeps no other.
        finding: the arbiter's, if there is one.
    """

    dispute: Dispute
    step: Step | None = None
    file: Object | None = field(default=None, repr=False)
    finding: Finding | None = None


class Disputes(EvidenceList[KeptDispute]):
    """`confidential/disputes.json`: what accounts disputed, by rising index and identity."""

    read = staticmethod(KeptDispute.from_json)


MAX_WINDOWS: Final = 10_000
"""As the chain of a provider's windows (8.11)."""

Number: TypeAlias = Annotated[int, Integer(0, MAX_WINDOWS)]


class OverlappingWindow(Message, where="overlapping window"):
    """A window that the verifier countersigned, at the same time as another one.

    Attributes:
        policy: of it.
        allowed: how many such windows with a tenant of its own the terms allow under which it was
            countersigned.
        shared: how many of these there are, the window that the evidence is of among them.
    """

    policy: Policy
    allowed: Number
    shared: Number


@dataclass(frozen=True, slots=True)
class Overlaps(EvidenceList[OverlappingWindow]):
    """`public/overlaps.json`: by rising name of the window, at least one."""

    @staticmethod
    def read(value: Any) -> OverlappingWindow:
        return OverlappingWindow.from_json(value)

    def __post_init__(self) -> None:
        names = [each.policy.window for each in self.messages]
        if not 1 <= len(names) <= MAX_WINDOWS or names != sorted(set(names)):
            raise MalformedError(
                "not by rising name", where="overlaps", expected=f"1..{MAX_WINDOWS} windows"
            )


def overlap(one: Policy, other: Policy) -> bool:
    """Return whether two windows are of one provider and at the same time, and one has noise.

    Without noise in either of them there is no budget that the other would spend.

    Args:
        one, other: their policies; of one window twice: no.
    """
    if one.provider != other.provider or one.window == other.window:
        return False
    return one.start < other.end and other.start < one.end and (one.noised or other.noised)


def shared_tenants(one: Policy, other: Policy) -> tuple[str, ...]:
    """Return the tenants of both, in the order of the first.

    Args:
        one, other: policies of windows that overlap.
    """
    return tuple(tenant for tenant in one.tenants if tenant in other.tenants)


_TOKEN: Final = Text(1, 4 * MAX_TOKEN_BYTES // 3 + 4)


class TimeStamp(Message, where="time stamp"):
    """An authority's token over the checkpoint of a size; nothing of it is verified.

    Attributes:
        size: of the checkpoint, in entries.
        token: DER, as it came.
    """

    size: Annotated[int, Integer(1, MAX_TIME)]
    token: Annotated[bytes, Converted(_TOKEN, b64_decode, b64_encode, "base64")] = field(repr=False)


class TimeStamps(EvidenceList[TimeStamp]):
    """`public/time-stamps.json`: by rising size and digest of the token."""

    read = staticmethod(TimeStamp.from_json)
