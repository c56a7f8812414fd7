"""DSSE v1 envelopes with one Ed25519 signature, around in-toto Statements (docs/spec 10.3)."""

import hashlib
from dataclasses import dataclass
from typing import Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey, PublicKey, SignatureRejected
from ragaudit.encoding.text import b64_decode, b64_encode

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
