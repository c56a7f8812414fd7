"""Bodies of the calls to verifier and arbiter: docs/spec/08-services.md §8.3, §8.9.

A body is an envelope. The signed messages in it stay JSON objects here: their own classes read
them, and say under their own names what is wrong. Members that are None are left out.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.errors import MalformedRequest
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES
from ragaudit.ledger.messages.beacon import BeaconRound
from ragaudit.ledger.messages.chains import NONCE_BYTES
from ragaudit.ledger.messages.evidence_access import (
    MAX_READER_BYTES,
    MAX_REASON_BYTES,
    read_said,
)
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES, Entry
from ragaudit.ledger.messages.shown_entries import RegistrationEntry
from ragaudit.ledger.messages.time_stamps import TimeStamp

__all__ = [
    "MAX_BATCH",
    "AccessBody",
    "Body",
    "CaseBody",
    "ClaimBody",
    "CloseBody",
    "CosignedBody",
    "DisputesBody",
    "EntriesBody",
    "FindingBody",
    "HeldBody",
    "OpeningBody",
    "ReceiptsBody",
    "ReferenceBody",
    "RefusalsBody",
    "StampsBody",
    "StatementBody",
    "WindowBody",
]

Json = dict[str, Any]

MAX_BATCH: Final = 1000
"""Entries, receipts, refusals or disputes in one call, each of which costs a signature's check."""

MAX_NOTES: Final = 100
"""Checkpoints in one call, each with as many signatures as its note has room for."""

MAX_STAMPS: Final = 16
"""Time stamps in one call, each with a chain of certificates."""


class Body(ABC):
    """The JSON object of a call."""

    @abstractmethod
    def to_json(self) -> Json:
        """Return the body as a JSON object."""

    @classmethod
    @abstractmethod
    def from_json(cls, value: Any) -> Self:
        """Return the body of a JSON value; what it envelops is not read.

        Args:
            value: as a JSON reader gives it, in any spelling.

        Raises:
            MalformedRequest: a missing or unknown member, or one of another type.
            MalformedError: not an entry (`EntriesBody`), not a registration's proof.
        """

    def encode(self) -> bytes:
        """Return the body in canonical JSON; a reader takes any spelling."""
        return canonical_json.dumps(self.to_json())


@dataclass(frozen=True, slots=True)
class WindowBody(Body):
    """`POST /v1/windows`: a policy and the manifest of the embedder that it names."""

    policy: Json
    embedder: Json

    def to_json(self) -> Json:
        return {"policy": self.policy, "embedder": self.embedder}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "policy embedder", MalformedRequest)
        return cls(f.object("policy"), f.object("embedder"))


@dataclass(frozen=True, slots=True)
class OpeningBody(Body):
    """`POST .../countersign`: the entry at index 0 and the checkpoint of the empty log."""

    opening: bytes
    salt: bytes = field(repr=False)
    empty_checkpoint: str

    def to_json(self) -> Json:
        return {
            "opening": self.opening.hex(),
            "salt": self.salt.hex(),
            "empty_checkpoint": self.empty_checkpoint,
        }

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "opening salt empty_checkpoint", MalformedRequest)
        return cls(
            opening=f.hex("opening", limit=MAX_OPENING_BYTES),
            salt=f.hex("salt", SALT_BYTES),
            empty_checkpoint=f.text("empty_checkpoint", 0, MAX_NOTE_BYTES),
        )


@dataclass(frozen=True, slots=True)
class EntriesBody(Body):
    """`POST .../entries`: log entries other than records."""

    entries: tuple[Entry, ...]

    def to_json(self) -> Json:
        return {"entries": [entry.to_json() for entry in self.entries]}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "entries", MalformedRequest)
        items = f.objects("entries", 0, MAX_BATCH)
        return cls(tuple(Entry.from_json(item, where) for where, item in items))


@dataclass(frozen=True, slots=True)
class CloseBody(Body):
    """`POST .../close`: the note of the final checkpoint, cosigned."""

    final_checkpoint: str

    def to_json(self) -> Json:
        return {"final_checkpoint": self.final_checkpoint}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "final_checkpoint", MalformedRequest)
        return cls(f.text("final_checkpoint", 0, MAX_NOTE_BYTES))


@dataclass(frozen=True, slots=True)
class CosignedBody(Body):
    """`POST .../cosigned`: notes with the quorum of further cosigners, at most MAX_NOTES."""

    checkpoints: tuple[str, ...]

    def to_json(self) -> Json:
        return {"checkpoints": list(self.checkpoints)}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "checkpoints", MalformedRequest)
        return cls(f.texts("checkpoints", MAX_NOTES, MAX_NOTE_BYTES))


@dataclass(frozen=True, slots=True)
class StampsBody(Body):
    """`POST .../time-stamps`: time stamps of checkpoints, at most MAX_STAMPS."""

    stamps: tuple[TimeStamp, ...]

    def to_json(self) -> Json:
        return {"stamps": [stamp.to_json() for stamp in self.stamps]}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "stamps", MalformedRequest)
        return cls(f.messages("stamps", TimeStamp, 0, MAX_STAMPS))


@dataclass(frozen=True, slots=True)
class RoundBody(Body):
    """`POST .../rounds`: a round of the policy's beacon."""

    round: BeaconRound

    def to_json(self) -> Json:
        return {"round": self.round.to_json()}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "round", MalformedRequest)
        return cls(BeaconRound.from_json(f.raw("round"), f.path("round")))


@dataclass(frozen=True, slots=True)
class HeldBody(Body):
    """Documents for which their account may sign.

    Attributes:
        documents: signed messages, JSON.
        holder: the account's statement that they are its own.
        registration: of the account; the verifier may not have been given it.
    """

    MEMBER = ""

    documents: list[Json]
    holder: Json | None = None
    registration: RegistrationEntry | None = None

    def to_json(self) -> Json:
        given = {"holder": self.holder, "registration": _shown(self.registration)}
        return {self.MEMBER: self.documents, **_present(given)}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, cls.MEMBER, MalformedRequest, optional="holder registration")
        holder = None if f.raw("holder") is None else f.object("holder")
        return cls(_documents(f, cls.MEMBER), holder, _registration(f))


class ReceiptsBody(HeldBody):
    """`POST .../receipts`: public halves of receipts."""

    MEMBER = "receipts"


class RefusalsBody(HeldBody):
    """`POST .../refusals`: signed refusals of the provider."""

    MEMBER = "refusals"


@dataclass(frozen=True, slots=True)
class ClaimBody(Body):
    """`POST .../claims`: a promise and its revealed nonce, 32 bytes."""

    promise: Json
    nonce: bytes = field(repr=False)
    registration: RegistrationEntry | None = None

    def to_json(self) -> Json:
        claim = {"promise": self.promise, "nonce": self.nonce.hex()}
        return {**claim, **_present({"registration": _shown(self.registration)})}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "promise nonce", MalformedRequest, optional="registration")
        return cls(f.object("promise"), f.hex("nonce", NONCE_BYTES), _registration(f))


@dataclass(frozen=True, slots=True)
class DisputesBody(Body):
    """`POST .../disputes`: disputes of one account."""

    disputes: list[Json]
    registration: RegistrationEntry | None = None

    def to_json(self) -> Json:
        return {
            "disputes": self.disputes,
            **_present({"registration": _shown(self.registration)}),
        }

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "disputes", MalformedRequest, optional="registration")
        return cls(_documents(f, "disputes"), _registration(f))


@dataclass(frozen=True, slots=True)
class StatementBody(Body):
    """`POST .../statements`: an account says that a registration is its own."""

    statement: Json
    registration: RegistrationEntry | None = None

    def to_json(self) -> Json:
        return {
            "statement": self.statement,
            **_present({"registration": _shown(self.registration)}),
        }

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "statement", MalformedRequest, optional="registration")
        return cls(f.object("statement"), _registration(f))


@dataclass(frozen=True, slots=True)
class FindingBody(Body):
    """`POST .../findings` and the arbiter's reply: a finding, and the public half it is about."""

    finding: Json
    public: Json

    def to_json(self) -> Json:
        return {"finding": self.finding, "public": self.public}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "finding public", MalformedRequest)
        return cls(f.object("finding"), f.object("public"))


@dataclass(frozen=True, slots=True)
class CaseBody(Body):
    """`POST /v1/findings` of the arbiter: a receipt file, and the window as it is shown."""

    file: Json
    window: Json

    def to_json(self) -> Json:
        return {"file": self.file, "window": self.window}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "file window", MalformedRequest)
        return cls(f.object("file"), f.object("window"))


@dataclass(frozen=True, slots=True)
class AccessBody(Body):
    """`POST .../bundle/confidential` and `.../accounts/{pseudonym}`: who opens evidence, and why.

    Attributes:
        reader, reason: not blank, at most MAX_READER_BYTES and MAX_REASON_BYTES of UTF-8.
    """

    reader: str
    reason: str

    def to_json(self) -> Json:
        return {"reader": self.reader, "reason": self.reason}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "reader reason", MalformedRequest)
        return cls(
            read_said(f, "reader", MAX_READER_BYTES), read_said(f, "reason", MAX_REASON_BYTES)
        )


@dataclass(frozen=True, slots=True)
class ReferenceBody(Body):
    """`PUT .../test-results/{name}`: a signed test result (10.11), and the tester's key.

    Attributes:
        result: a DSSE envelope, which `ResultReference.of` reads.
    """

    key: PublicKey
    result: Json

    def to_json(self) -> Json:
        return {"key": self.key.raw.hex(), "result": self.result}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        f = Fields(value, "key result", MalformedRequest)
        return cls(f.public_key("key"), f.object("result"))


def _documents(f: Fields, name: str) -> list[Json]:
    documents = [item for _, item in f.objects(name, 0, MAX_BATCH)]
    for number, document in enumerate(documents):
        # Nothing more is checked here: its own class says what a document is, and whose.
        if not isinstance(document, dict):
            raise f.error(f"{name}[{number}]", "not an object")
    return documents


def _registration(f: Fields) -> RegistrationEntry | None:
    value = f.raw("registration")
    if value is None:
        return None
    entry = RegistrationEntry.from_json(value, f.path("registration"))
    # An account shows its registration because it is believed for its proof.
    if entry.proof is None:
        raise f.error("registration.proof", "no proof", "a .tlog-proof")
    return entry


def _shown(entry: RegistrationEntry | None) -> Json | None:
    return None if entry is None else entry.to_json()


def _present(members: dict[str, Json | None]) -> Json:
    return {name: value for name, value in members.items() if value is not None}
