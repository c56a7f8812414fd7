"""Messages with a signature, requests with one in their headers, and DSSE envelopes.

docs/spec/01-encoding.md §1.3 for what is signed, docs/spec/08-services.md §8.1 for requests,
docs/spec/10-verdict.md §10.3 for envelopes (DSSE v1, one Ed25519 signature).
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import DIGEST_BYTES
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import (
    SIGNATURE_BYTES,
    PrivateKey,
    PublicKey,
    SignatureRejected,
    sign,
    verify,
)
from ragaudit.encoding.tagged import Field
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.kernel import Message, Signature


class SignedMessage(Message):
    """A message with one signature, over all members but those that are declared `UNSIGNED`.

    Attributes:
        KIND: names the format, and the tag under which the fields are signed: a signature under
            one kind is none under another, whatever the fields are.
        signature: 64 bytes; nothing has been verified.
    """

    signature: Signature = field(default=bytes(SIGNATURE_BYTES), repr=False, kw_only=True)

    def __init_subclass__(cls, kind: str = "", where: str | None = None) -> None:
        """Check further that what the signature is to cover can be signed; TypeError."""
        super().__init_subclass__(kind=kind, where=where)
        if kind and cls.signed_fields is SignedMessage.signed_fields:
            for name in cls._signed:
                if not cls.FORMS[name].signable:
                    raise TypeError(f"{cls.__name__}.{name} cannot be signed as a field")

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        return tuple(getattr(self, name) for name in self._signed)

    def signed(self, key: PrivateKey) -> Self:
        """Return the message with the signature of ``key``."""
        return replace(self, signature=sign(key, self.KIND, *self.signed_fields()))

    def verify(self, key: PublicKey) -> None:
        """Check the signature, and nothing else that the message says.

        Args:
            key: of the party whose message this must be; never one that the message names.

        Raises:
            SignatureRejected: ``key`` did not sign this.
        """
        # Under the kind's own tag (1.3): a refusal's signature can never be shown as one of a
        # statement, even where the fields of both encode alike.
        verify(key, self.signature, self.KIND, *self.signed_fields())

    def demand(self, what: str, found: object, expected: object) -> None:
        """RejectedError unless the message names the expected thing."""
        if found != expected:
            shown = expected.hex() if isinstance(expected, bytes) else str(expected)
            raise RejectedError(f"another {what}", where=self.KIND, expected=shown)


class VerifierMessage(SignedMessage):
    """A message that the verifier signs with `keys.verifier` (docs/spec/08-services.md §8.4)."""


class AccountMessage(SignedMessage):
    """A message that an account keeps or hands on: receipt, promise, refusal, dispute, finding."""

    def verify(self, key: PublicKey) -> None:
        """Check the signature, and nothing else that the message says.

        Args:
            key: of the party whose message this must be: the policy's `keys.provider` or
                `keys.arbiter`, or the dispute key in the account's registration.

        Raises:
            ReceiptRejected: ``key`` did not sign this.
        """
        try:
            super().verify(key)
        except SignatureRejected as error:
            raise ReceiptRejected(error.what, where=self.KIND) from error


PROVIDER_HEADER: Final = "Ragaudit-Provider"
TIME_HEADER: Final = "Ragaudit-Time"
SIGNATURE_HEADER: Final = "Ragaudit-Signature"
DIGEST_HEADER: Final = "Content-Digest"
DIGEST_FORM: Final = "sha-256=:<base64>: (RFC 9530)"
_KIND: Final = "request"
_EXPECTED: Final = f"{PROVIDER_HEADER}, {TIME_HEADER} and {SIGNATURE_HEADER}"
# One spelling, since the number is signed and not its text; no more digits than 2^53 has.
_TIME: Final = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_SHA256: Final = re.compile(r"sha-256=:([A-Za-z0-9+/=]{44}):", re.ASCII)


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """What the headers of a request claim; nothing is verified yet.

    Attributes:
        time: Unix milliseconds.
        digest: SHA-256 that the body is said to have; that of no bytes where nothing is said.
        signature: 64 bytes, over method, path with query, digest and time.
    """

    provider: str
    time: int
    digest: bytes
    signature: bytes = field(repr=False)

    @classmethod
    def issue(
        cls, key: PrivateKey, *, provider: str, method: str, target: str, body: bytes, time: int
    ) -> Self:
        """Sign a request.

        Args:
            key: the provider's.
            provider: its name, under which the verifier looks up the key.
            method: in upper case.
            target: path with query, as in the request line.
            body: signed by its digest, so that headers can be checked before a body is taken.
            time: Unix milliseconds; the verifier refuses old requests, so none can be replayed.
        """
        # Method and target are signed with it: a body that is signed for one call must not serve
        # for another one.
        digest = sha256(body).digest()
        return cls(provider, time, digest, sign(key, _KIND, method, target, digest, time))

    def encode(self) -> dict[str, str]:
        """Return the headers that the request carries."""
        return {
            DIGEST_HEADER: f"sha-256=:{b64_encode(self.digest)}:",
            PROVIDER_HEADER: self.provider,
            TIME_HEADER: str(self.time),
            SIGNATURE_HEADER: b64_encode(self.signature),
        }

    @classmethod
    def parse(cls, values: Callable[[str], Sequence[str]]) -> Self:
        """Return what the headers of a request say, the strict inverse of `encode`.

        Args:
            values: the values of a header, whatever the case of its name.

        Raises:
            MalformedError: a missing, repeated or ill-formed header.
        """
        provider, time, signature = (
            _single(values, name) for name in (PROVIDER_HEADER, TIME_HEADER, SIGNATURE_HEADER)
        )
        if _TIME.fullmatch(time) is None:
            raise MalformedError(
                "not a time", where=TIME_HEADER.lower(), expected="Unix milliseconds"
            )
        signed = _decoded(signature, SIGNATURE_BYTES, SIGNATURE_HEADER)
        return cls(provider, int(time), _digest(values(DIGEST_HEADER)), signed)

    def verify(self, key: PublicKey, *, method: str, target: str) -> None:
        """Check the signature alone.

        That the body has `digest`, and that `time` is within 60 s of the clock, the caller checks
        (docs/spec/08-services.md §8.1).

        Args:
            key: of the provider that the request names.
            method, target: of the request that arrived, as for `issue`.

        Raises:
            SignatureRejected: ``key`` did not sign this request.
        """
        verify(key, self.signature, _KIND, method, target, self.digest, self.time)


def _single(values: Callable[[str], Sequence[str]], name: str) -> str:
    found = values(name)
    # Where a header comes twice, a proxy may judge one and this service the other.
    if len(found) != 1:
        raise MalformedError(f"{len(found)} values", where=name.lower(), expected=_EXPECTED)
    return found[0]


def _digest(values: Sequence[str]) -> bytes:
    """SHA-256 of the field Content-Digest (RFC 9530), which has this one member."""
    if not values:
        # A request without the header has signed that it has no body: one that is slipped in later
        # has another digest (8.1).
        return sha256().digest()
    found = _SHA256.fullmatch(values[0])
    if len(values) != 1 or found is None:
        raise MalformedError("not one digest", where=DIGEST_HEADER.lower(), expected=DIGEST_FORM)
    return _decoded(found[1], DIGEST_BYTES, DIGEST_HEADER)


def _decoded(text: str, length: int, where: str) -> bytes:
    try:
        return b64_decode(text, length)
    except MalformedError as error:
        raise MalformedError(error.what, where=where.lower()) from error


PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"


class EnvelopeRejected(RejectedError):
    """The envelope is not signed by the expected key."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """An envelope in its one accepted form, whoever signed it.

    Attributes:
        body: the payload, not yet verified.
        signed_by: the ``keyid`` that it names; decides nothing.
        signature: 64 bytes over `pae` of the payload.
    """

    body: bytes
    signed_by: str
    signature: bytes

    @staticmethod
    def seal(body: bytes, key: PrivateKey) -> bytes:
        """Return the envelope of ``body`` signed with ``key``, canonical JSON."""
        envelope = {
            "payload": b64_encode(body),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [
                {
                    "keyid": key_id(key.public),
                    "sig": b64_encode(key.sign_raw(pae(PAYLOAD_TYPE, body))),
                }
            ],
        }
        return canonical_json.dumps(envelope)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the envelope in ``data``.

        Args:
            data: bytes from anywhere.

        Raises:
            MalformedError: not an envelope with one signature, of this payload type.
        """
        match canonical_json.loads(data):
            case {
                "payload": str(payload),
                "payloadType": str(kind),
                "signatures": [{"keyid": str(signed_by), "sig": str(sig), **other}],
                **more,
            } if not other and not more:
                if kind != PAYLOAD_TYPE:
                    raise MalformedError("another payload type", expected=PAYLOAD_TYPE)
                return cls(b64_decode(payload), signed_by, b64_decode(sig, SIGNATURE_BYTES))
        raise MalformedError("not a DSSE envelope with one signature")

    def verify(self, public: PublicKey) -> None:
        """Check that ``public`` signed the payload.

        Args:
            public: the expected key, from the caller; ``keyid`` must be its.

        Raises:
            EnvelopeRejected: signed by another key, or not at all.
        """
        # Said apart from a bad signature: the usual cause is a key of another verifier.
        if self.signed_by != key_id(public):
            raise EnvelopeRejected("signed by another key", where="keyid", expected=key_id(public))
        try:
            public.verify_raw(self.signature, pae(PAYLOAD_TYPE, self.body))
        except SignatureRejected as error:
            raise EnvelopeRejected(error.what, where="envelope") from error


def in_toto(kind: str, subjects: Mapping[str, str], predicate: Mapping[str, Any]) -> dict[str, Any]:
    """Return an in-toto Statement v1, a JSON object.

    Args:
        kind: of the predicate, its URI.
        subjects: hexadecimal SHA-256 of what it is about, by name.
        predicate: what it says.
    """
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)
        ],
        "predicateType": kind,
        "predicate": dict(predicate),
    }


def pae(payload_type: str, body: bytes) -> bytes:
    """Return the DSSE v1 pre-authentication encoding: what is signed.

    Args:
        payload_type: of the envelope; signed too, so that no other document is taken for it.
        body: the payload.
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)


def key_id(public: PublicKey) -> str:
    """Return the ``keyid`` of a key: hexadecimal SHA-256 of its 32 bytes."""
    return hashlib.sha256(public.raw).hexdigest()
