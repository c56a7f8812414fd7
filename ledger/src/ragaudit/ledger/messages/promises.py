"""Promises and refusals of the provider (docs/spec/05-records.md §5.8), signed and portable."""

from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey, PublicKey, sign
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.identifiers import PSEUDONYM_BYTES
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.openings import Openings
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import MAX_BODY_BYTES, check_signature, read_origin
from ragaudit.ledger.messages.records import MAX_QUERIES, MAX_TIME, Record
from ragaudit.ledger.messages.requests import Request, load_canonical

PROMISE_FORMAT = "ragaudit/v1/promise"
REFUSAL_FORMAT = "ragaudit/v1/refusal"

Reason = Literal["budget", "closed", "unavailable"]


@dataclass(frozen=True, slots=True)
class Promise:
    """The record that will be logged for a request, but for nonce and selection; signed."""

    origin: str
    body: bytes
    request: Request
    openings: Openings
    signature: bytes

    @classmethod
    def issue(
        cls, key: PrivateKey, *, origin: str, body: bytes, request: Request, openings: Openings
    ) -> "Promise":
        """Sign a promise, with the provider's key; store it durably before it is sent."""
        return cls(origin, body, request, openings, sign(key, "promise", origin, body))

    def superseded_from(self, policy: Policy) -> int:
        """Return the instant from which the provider may make another, Unix milliseconds (8.7).

        By then nobody can claim this one any more, by any clock within the skew.
        """
        skew = 1000 * policy.clock_skew_seconds
        return self.record.time + policy.promise_life + 2 * skew + 1

    @property
    def identity(self) -> bytes:
        """What makes it one promise, 32 bytes: log and promised body, whatever the signature.

        The body names pseudonym and counter. An Ed25519 signer can sign one message in many ways.
        """
        return structure("promise", self.origin, self.body)

    @property
    def record(self) -> Record:
        """The promised record; MalformedRecord if the body is none."""
        return Record.decode_promised(self.body)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": PROMISE_FORMAT,
            "origin": self.origin,
            "body": self.body.hex(),
            "request": self.request.to_json(),
            **self.openings.to_json(),
            "signature": self.signature.hex(),
        }

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def parse(cls, data: bytes) -> "Promise":
        """Strict inverse of `encode`; raises MalformedRecord. Nothing is verified."""
        return cls.from_json(load_canonical(data, "promise"))

    @classmethod
    def from_json(cls, value: Any, where: str = "promise") -> "Promise":
        """Strict inverse of `to_json`; raises MalformedRecord. Nothing is verified."""
        names = f"format origin body request {Openings.MEMBERS} signature"
        f = Fields(value, names, MalformedRecord, where)
        f.constant("format", PROMISE_FORMAT)
        promise = cls(
            read_origin(f),
            f.hex("body", limit=MAX_BODY_BYTES),
            Request.from_json(f.raw("request"), f.path("request")),
            Openings.read(f),
            f.hex("signature", SIGNATURE_BYTES),
        )
        _ = promise.record
        return promise

    def verify(self, provider: PublicKey) -> None:
        """Check signature, openings, and that the record is of the request.

        Raises:
            ReceiptRejected: a bad signature, an opening that does not open, another counter or K.
        """
        check_signature(provider, self.signature, "promise", self.origin, self.body)
        record = self.record
        if (record.counter, record.top_k) != (self.request.counter, self.request.top_k):
            raise ReceiptRejected("another counter or K than asked", where="promise")
        self.openings.verify(record, self.request)

    def verify_kept(self, record: Record) -> None:
        """Check that ``record`` is the promised one but for nonce and selection.

        Raises:
            ReceiptRejected: it contradicts the promise.
        """
        if record.promised() != self.record:
            raise ReceiptRejected("the record contradicts the promise", where="promise")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A signed no: how many records the account has, why, and when (milliseconds)."""

    origin: str
    pseudonym: bytes
    counter: int
    reason: Reason
    time: int
    signature: bytes = field(repr=False)

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        origin: str,
        pseudonym: bytes,
        counter: int,
        reason: Reason,
        time: int,
    ) -> "Refusal":
        """Sign a refusal, with the provider's key."""
        signature = sign(key, "refusal", origin, pseudonym, counter, reason, time)
        return cls(origin, pseudonym, counter, reason, time, signature)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": REFUSAL_FORMAT,
            "origin": self.origin,
            "pseudonym": self.pseudonym.hex(),
            "counter": self.counter,
            "reason": self.reason,
            "time": self.time,
            "signature": self.signature.hex(),
        }

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def parse(cls, data: bytes) -> "Refusal":
        """Strict inverse of `encode`; raises MalformedRecord. Nothing is verified."""
        return cls.from_json(load_canonical(data, "refusal"))

    @classmethod
    def from_json(cls, value: Any, where: str = "refusal") -> "Refusal":
        """Strict inverse of `to_json`; raises MalformedRecord. Nothing is verified."""
        names = "format origin pseudonym counter reason time signature"
        f = Fields(value, names, MalformedRecord, where)
        f.constant("format", REFUSAL_FORMAT)
        return cls(
            read_origin(f),
            f.hex("pseudonym", PSEUDONYM_BYTES),
            f.integer("counter", 0, MAX_QUERIES),
            cast("Reason", f.choice("reason", "budget", "closed", "unavailable")),
            f.integer("time", 0, MAX_TIME),
            f.hex("signature", SIGNATURE_BYTES),
        )

    @property
    def identity(self) -> bytes:
        """What makes it one refusal, 32 bytes: all that can contradict a log, not its time."""
        return structure("refusal", self.origin, self.pseudonym, self.counter, self.reason)

    def verify_signature(self, provider: PublicKey) -> None:
        """Check the provider's signature; ReceiptRejected."""
        fields = (self.origin, self.pseudonym, self.counter, self.reason, self.time)
        check_signature(provider, self.signature, "refusal", *fields)

    def verify_budget(self, queries: int) -> None:
        """Check that a refusal for the budget came at its end, r = ``queries``.

        Raises:
            ReceiptRejected: the account had records left; this contradicts the policy.
        """
        if self.reason == "budget" and self.counter < queries:
            raise ReceiptRejected(
                f"refused after {self.counter} records", where="budget", expected=f"{queries}"
            )
