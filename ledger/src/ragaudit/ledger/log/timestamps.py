"""Time stamps of checkpoints, RFC 3161 (docs/spec 6.14): this tree existed no later than that.

The log's own clock is the provider's, a cosigner's its own; a time-stamping authority is nobody's
of the audit. What is stamped is the note's text, which no later signature changes. Needs the
library rfc3161-client (`ragaudit-ledger[timestamps]`), which has no network code.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC
from types import ModuleType
from typing import TYPE_CHECKING

from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.errors import StampRejected
from ragaudit.ledger.log.checkpoints import Checkpoint

if TYPE_CHECKING:
    from cryptography import x509

REQUEST_TYPE = "application/timestamp-query"
MAX_TOKEN_BYTES = 2**16  # a chain of certificates has some kilobytes
_SHA256 = "2.16.840.1.101.3.4.2.1"


@dataclass(frozen=True, slots=True)
class Stamp:
    """A verified time stamp.

    Attributes:
        not_after: Unix seconds, rounded up, the authority's accuracy added: the tree existed by
            then.
        serial: the token's number at its authority.
        policy: object identifier of the policy under which it was issued.
    """

    not_after: int
    serial: int
    policy: str


@dataclass(frozen=True, slots=True)
class StampRequest:
    """A request for a time stamp: what an authority is sent.

    Attributes:
        body: DER, of type `REQUEST_TYPE`.
        nonce: that the answer must repeat, so that none from earlier passes for it.
    """

    body: bytes
    nonce: int = field(repr=False)

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> "StampRequest":
        """Return a request with a fresh nonce that asks for the authority's certificates.

        Args:
            checkpoint: of which the note's text is stamped.

        Raises:
            UnsupportedError: the library is not installed.
        """
        client = _library()
        builder = client.TimestampRequestBuilder().data(checkpoint.text.encode())
        builder = builder.hash_algorithm(client.HashAlgorithm.SHA256)
        request = builder.nonce(nonce=True).cert_request(cert_request=True).build()
        assert request.nonce is not None
        return cls(request.as_bytes(), request.nonce)


def read_roots(data: bytes) -> "tuple[x509.Certificate, ...]":
    """Return the certificates of authorities that are trusted.

    Args:
        data: PEM, one certificate or more.

    Raises:
        MalformedError: anything else.
    """
    from cryptography import x509  # noqa: PLC0415 - few windows have time stamps

    try:
        return tuple(x509.load_pem_x509_certificates(data))
    except ValueError:
        raise MalformedError(
            "no certificates", where="roots of time stamps", expected="PEM"
        ) from None


def verify_stamp(
    token: bytes,
    checkpoint: Checkpoint,
    roots: "Sequence[x509.Certificate]",
    *,
    nonce: int | None = None,
) -> Stamp:
    """Return the time stamp of a checkpoint if an authority under ``roots`` issued it.

    The certificates must have been valid at the stamp's time, not today.

    Args:
        token: the answer of an authority, DER.
        checkpoint: that must be stamped.
        roots: trusted by the reader, at least one; never taken from the token.
        nonce: of the request, where it is known.

    Raises:
        MalformedError: not a time stamp response, or not in its one encoding.
        StampRejected: not granted; of another text, hash or nonce; an authority that no root
            vouches for, or a certificate that is not for time stamps.
        UnsupportedError: the library is not installed.
    """
    client = _library()
    if len(token) > MAX_TOKEN_BYTES:
        raise MalformedError("too long", where="time stamp", expected=f"{MAX_TOKEN_BYTES} bytes")
    try:
        response = client.decode_timestamp_response(token)
        # What stood behind it, nobody would have signed.
        if response.as_bytes() != token:
            raise ValueError
        granted = response.status == client.PKIStatus.GRANTED
        info = response.tst_info if granted else None
    except ValueError:
        raise MalformedError("not a time stamp", where="time stamp", expected="DER") from None
    if info is None:
        raise StampRejected("the authority did not grant it", where="time stamp")
    if info.message_imprint.hash_algorithm.dotted_string != _SHA256:
        raise StampRejected("a stamp with another hash", where="time stamp", expected="SHA-256")
    if info.message_imprint.message != hashlib.sha256(checkpoint.text.encode()).digest():
        raise StampRejected("a stamp of another checkpoint", where="time stamp")
    try:
        verifier = client.VerifierBuilder(roots=list(roots), nonce=nonce).build()
        verifier.verify_message(response, checkpoint.text.encode())
    except (client.VerificationError, ValueError) as error:
        raise StampRejected(str(error), where="time stamp", expected="a trusted root's") from None
    accuracy = info.accuracy
    parts = (0, 0, 0) if accuracy is None else (accuracy.seconds, accuracy.millis, accuracy.micros)
    seconds, millis, micros = (part or 0 for part in parts)
    # Rounded against the claim, in whole microseconds.
    moment = info.gen_time if info.gen_time.tzinfo else info.gen_time.replace(tzinfo=UTC)
    late = round(moment.timestamp() * 10**6) + seconds * 10**6 + millis * 1000 + micros
    return Stamp(-(-late // 10**6), info.serial_number, info.policy.dotted_string)


def check_library() -> None:
    """Check that time stamps can be verified here.

    Raises:
        UnsupportedError: the library is not installed.
    """
    _library()


def _library() -> ModuleType:
    try:
        import rfc3161_client  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise UnsupportedError(
            "the library for time stamps is not installed",
            expected='pip install "ragaudit-ledger[timestamps]"',
        ) from None
    return rfc3161_client
