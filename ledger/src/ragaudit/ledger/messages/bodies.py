"""Bodies of the calls to verifier and arbiter: docs/spec/08-services.md §8.3, §8.9.

A body is an envelope. The signed messages in it stay JSON objects here: their own classes read
them, and say under their own names what is wrong. Members that are None are left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, Final, Self, TypeAlias

from ragaudit.encoding.errors import MalformedError, MalformedRequest
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES
from ragaudit.ledger.messages.beacon import BeaconRound
from ragaudit.ledger.messages.custody import Reader, Reason
from ragaudit.ledger.messages.evidence import TimeStamp
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES, Entry
from ragaudit.ledger.messages.kernel import (
    OMITTED,
    Converted,
    Count,
    Digest,
    Hex,
    Integer,
    Items,
    KeyInHex,
    Message,
    Nested,
    Object,
    Text,
)
from ragaudit.ledger.messages.shown import RegistrationEntry

MAX_BATCH: Final = 1000
"""Entries, receipts, refusals or disputes in one call, each of which costs a signature's check."""

MAX_NOTES: Final = 100
"""Checkpoints in one call, each with as many signatures as its note has room for."""

MAX_STAMPS: Final = 16
"""Time stamps in one call, each with a chain of certificates."""

MAX_PARTS: Final = 244_142  # of a handover: 10^9 entries


def _proven(entry: RegistrationEntry) -> RegistrationEntry:
    # An account shows its registration because it is believed for its proof.
    if entry.proof is None:
        raise MalformedError("no proof", expected="a .tlog-proof")
    return entry


Note: TypeAlias = Annotated[str, Text(0, MAX_NOTE_BYTES)]
Documents: TypeAlias = Annotated[tuple[Object, ...], Items(0, MAX_BATCH)]
Holder: TypeAlias = Annotated[Object | None, OMITTED]
ProvenRegistration: TypeAlias = Annotated[
    Annotated[
        RegistrationEntry,
        Converted(Nested(RegistrationEntry), _proven, RegistrationEntry.to_json),
    ]
    | None,
    OMITTED,
]


class Body(Message):
    """The JSON object of a call, which a reader takes in any spelling."""

    ERROR: ClassVar[type[MalformedError]] = MalformedRequest

    @classmethod
    def read(cls, value: Any) -> Self:
        """Return the body of a JSON value, in which null says as much as no member."""
        if isinstance(value, dict):
            gone = [name for name in cls._omitted if value.get(name, "") is None]
            value = {name: each for name, each in value.items() if name not in gone}
        return super().read(value)


class WindowBody(Body):
    """`POST /v1/windows`: a policy and the manifest of the embedder that it names."""

    policy: Object
    embedder: Object


class OpeningBody(Body):
    """`POST .../countersign`: the entry at index 0 and the checkpoint of the empty log."""

    opening: Annotated[bytes, Hex(limit=MAX_OPENING_BYTES)]
    salt: Digest = field(repr=False)
    empty_checkpoint: Note


class EntriesBody(Body):
    """`POST .../entries`: log entries other than records."""

    entries: Annotated[tuple[Entry, ...], Items(0, MAX_BATCH)]


class CloseBody(Body):
    """`POST .../close`: the note of the final checkpoint, cosigned."""

    final_checkpoint: Note


class CosignedBody(Body):
    """`POST .../cosigned`: notes with the quorum of further cosigners, at most MAX_NOTES."""

    checkpoints: Annotated[tuple[Note, ...], Items(0, MAX_NOTES)]


class StampsBody(Body):
    """`POST .../time-stamps`: time stamps of checkpoints, at most MAX_STAMPS."""

    stamps: Annotated[tuple[TimeStamp, ...], Items(0, MAX_STAMPS)]


class RoundBody(Body):
    """`POST .../rounds`: a round of the policy's beacon."""

    round: BeaconRound


class RecordsBody(Body):
    """`POST .../records`: which parts are the handover.

    Attributes:
        parts: number of them.
        digest: SHA-256 of all their bytes, 32 bytes.
    """

    parts: Annotated[int, Integer(1, MAX_PARTS)]
    digest: Digest


class HeldBody(Body):
    """Documents for which their account may sign.

    Attributes:
        holder: the account's statement that they are its own.
        registration: of the account; the verifier may not have been given it.
    """

    holder: Holder = field(default=None, kw_only=True)
    registration: ProvenRegistration = field(default=None, kw_only=True)


class ReceiptsBody(HeldBody):
    """`POST .../receipts`: public parts of receipts."""

    receipts: Documents


class RefusalsBody(HeldBody):
    """`POST .../refusals`: signed refusals of the provider."""

    refusals: Documents


class ClaimBody(Body):
    """`POST .../claims`: a promise and its revealed nonce, 32 bytes."""

    promise: Object
    nonce: Digest = field(repr=False)
    registration: ProvenRegistration = None


class DisputesBody(Body):
    """`POST .../disputes`: disputes of one account."""

    disputes: Documents
    registration: ProvenRegistration = None


class StatementBody(Body):
    """`POST .../statements`: an account says that a registration is its own."""

    statement: Object
    registration: ProvenRegistration = None


class FindingBody(Body):
    """`POST .../findings` and the arbiter's reply: a finding, and the public part it is about."""

    finding: Object
    public: Object


class CaseBody(Body):
    """`POST /v1/findings` of the arbiter: a receipt file, and the window as it is shown."""

    file: Object
    window: Object


class AccessBody(Body):
    """`POST .../bundle/confidential` and `.../accounts/{pseudonym}`: who opens evidence, and why.

    Attributes:
        reader, reason: not blank.
    """

    reader: Reader
    reason: Reason


class ReferenceBody(Body):
    """`PUT .../test-results/{name}`: a signed test result (10.11), and the tester's key.

    Attributes:
        result: a DSSE envelope, which `ResultReference.of` reads.
    """

    key: KeyInHex
    result: Object


class HeldParts(Message, where="held parts"):
    """Answer of `GET .../records/parts`.

    Attributes:
        parts: how many the verifier holds, from the first on.
        complete: whether it has taken a handover.
    """

    parts: Annotated[int, Integer(0, MAX_PARTS)]
    complete: bool


class Submission(Message, where="submission"):
    """Answer to what is submitted: how many documents were new, and how many known.

    Attributes:
        accepted: new ones.
        known: those that the verifier had.
    """

    accepted: Count = 0
    known: Count = 0

    @classmethod
    def total(cls, parts: Iterable[Self]) -> Self:
        """Return the sum of the replies to several requests.

        Args:
            parts: one for each request; of none the sum is zero.
        """
        each = tuple(parts)
        return cls(sum(part.accepted for part in each), sum(part.known for part in each))


SHORT_BYTES: Final = 2**16
"""Of the JSON of a provider's call that is not named below, or that has none."""

LONGEST: Final[Mapping[type[Body], int]] = {
    WindowBody: 2**23,
    OpeningBody: 2**23,
    EntriesBody: 2**24,
    CosignedBody: 2**25,
    StampsBody: 2**21,
    CloseBody: 2 * MAX_NOTE_BYTES,
}
"""How long the JSON of a provider's call may be, in bytes, in any spelling (8.3)."""
