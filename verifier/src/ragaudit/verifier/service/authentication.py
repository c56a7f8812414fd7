"""Who calls: providers by signatures, the auditor by a token (docs/spec/08-services.md §8.1)."""

import hashlib
import hmac
import re
from dataclasses import dataclass

from fastapi import Request
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, PublicKey, SignatureRejected, verify
from ragaudit.encoding.tagged import DIGEST_BYTES
from ragaudit.encoding.text import b64_decode
from ragaudit.verifier.service.bodies import Body
from ragaudit.verifier.service.errors import UnauthenticatedError

PROVIDER_HEADER = "ragaudit-provider"
TIME_HEADER = "ragaudit-time"
SIGNATURE_HEADER = "ragaudit-signature"
DIGEST_HEADER = "content-digest"
TOLERANCE_MS = 60_000

_TIME = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_EXPECTED = "Ragaudit-Provider, Ragaudit-Time and Ragaudit-Signature"
_SHA256 = re.compile(r"sha-256=:([A-Za-z0-9+/=]{44}):", re.ASCII)
_DIGEST_FORM = "sha-256=:<base64>: (RFC 9530)"


@dataclass(frozen=True)
class Claimed:
    """What a request's headers claim; nothing is verified yet.

    Args:
        time: Unix milliseconds.
        digest: SHA-256 that the body is said to have; that of no bytes where nothing is said.
    """

    provider: str
    time: int
    signature: bytes
    digest: bytes


@dataclass(frozen=True)
class Provider:
    """An authenticated provider."""

    name: str
    key: PublicKey


def claimed(request: Request, now: int) -> Claimed:
    """The signature headers of a request, each exactly once, with a time near ``now``.

    Raises:
        UnauthenticatedError: a missing, repeated or ill-formed header, or a time too far off.
    """
    provider, time, signature = (
        _single(request, name) for name in (PROVIDER_HEADER, TIME_HEADER, SIGNATURE_HEADER)
    )
    if _TIME.fullmatch(time) is None:
        raise UnauthenticatedError("not a time", where=TIME_HEADER, expected="Unix milliseconds")
    if abs(int(time) - now) > TOLERANCE_MS:
        raise UnauthenticatedError(
            "time too far from the verifier's clock",
            where=TIME_HEADER,
            expected=f"within {TOLERANCE_MS // 1000} s of {now}",
        )
    try:
        signed = b64_decode(signature, SIGNATURE_BYTES)
    except MalformedError as error:
        raise UnauthenticatedError(error.what, where=SIGNATURE_HEADER) from None
    return Claimed(provider, int(time), signed, _digest(request))


def verify_request(request: Request, claim: Claimed, key: PublicKey) -> Provider:
    """Check the signature over method, path with query, claimed digest of the body, and time.

    Needs nothing of the body, so that nobody else's is read: see `demand_digest`.

    Raises:
        UnauthenticatedError: it does not verify under the pinned key.
    """
    try:
        verify(
            key,
            claim.signature,
            "request",
            request.method,
            target(request),
            claim.digest,
            claim.time,
        )
    except SignatureRejected as error:
        raise UnauthenticatedError(error.what, where=SIGNATURE_HEADER) from None
    return Provider(claim.provider, key)


def demand_digest(claim: Claimed, body: Body) -> None:
    """UnauthenticatedError unless the body is the one whose digest was signed."""
    if body.digest != claim.digest:
        raise UnauthenticatedError(
            "another body than the one that was signed", where=DIGEST_HEADER, expected=_DIGEST_FORM
        )


def target(request: Request) -> str:
    """Path with query, as sent: percent-encoded, with ``?`` only where a query follows."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    path = raw.split(b"?", 1)[0]
    query: bytes = request.scope.get("query_string", b"")
    return (path + b"?" + query if query else path).decode("latin-1")


def verify_token(request: Request, digest: bytes) -> None:
    """Check the auditor's token against its stored digest, in constant time.

    Raises:
        UnauthenticatedError: no bearer token, or another one.
    """
    header = request.headers.get("authorization", "")
    scheme, _, token = header.partition(" ")
    given = hashlib.sha256(token.encode("utf-8")).digest()
    if scheme.lower() != "bearer" or not hmac.compare_digest(given, digest):
        raise UnauthenticatedError("not the auditor's token", expected="Authorization: Bearer")


def _digest(request: Request) -> bytes:
    """SHA-256 of the field Content-Digest (RFC 9530), which has this one member."""
    values = request.headers.getlist(DIGEST_HEADER)
    if not values:
        return hashlib.sha256().digest()
    found = _SHA256.fullmatch(values[0])
    if len(values) != 1 or found is None:
        raise UnauthenticatedError("not one digest", where=DIGEST_HEADER, expected=_DIGEST_FORM)
    try:
        return b64_decode(found[1], DIGEST_BYTES)
    except MalformedError as error:
        raise UnauthenticatedError(error.what, where=DIGEST_HEADER) from None


def _single(request: Request, name: str) -> str:
    values = request.headers.getlist(name)
    if len(values) != 1:
        raise UnauthenticatedError(f"{len(values)} values", where=name, expected=_EXPECTED)
    return values[0]
