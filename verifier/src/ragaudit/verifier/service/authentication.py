"""Who calls: providers by signatures, the auditor by a token (docs/spec/08-services.md §8.1)."""

import hashlib
import hmac
from dataclasses import dataclass

from fastapi import Request
from ragaudit.encoding.errors import MalformedError, NotAuthenticated
from ragaudit.encoding.signing import PublicKey, SignatureRejected
from ragaudit.ledger.messages.signed import (
    DIGEST_FORM,
    DIGEST_HEADER,
    SIGNATURE_HEADER,
    TIME_HEADER,
    SignedRequest,
)
from ragaudit.serving.bodies import Body
from ragaudit.serving.exchange import note

# Within it a recorded request can be sent again: so each provider's call is idempotent, or refused
# the second time (docs/spec/08-services.md §8.1).
TOLERANCE_MS = 60_000


@dataclass(frozen=True)
class Provider:
    """An authenticated provider."""

    name: str
    key: PublicKey


def claimed(request: Request, now: int) -> SignedRequest:
    """Return what the signature headers of a request say (docs/spec/08-services.md §8.1).

    Args:
        now: the verifier's clock, Unix milliseconds.

    Raises:
        NotAuthenticated: a missing, repeated or ill-formed header, or a time more than 60 s
            off.
    """
    try:
        claim = SignedRequest.parse(request.headers.getlist)
    except MalformedError as error:
        raise NotAuthenticated(error.what, where=error.where, expected=error.expected) from None
    if abs(claim.time - now) > TOLERANCE_MS:
        raise NotAuthenticated(
            "time too far from the verifier's clock",
            where=TIME_HEADER.lower(),
            expected=f"within {TOLERANCE_MS // 1000} s of {now}",
        )
    return claim


def verify_request(request: Request, claim: SignedRequest, key: PublicKey) -> Provider:
    """Check the signature over method, path with query, claimed digest of the body, and time.

    Needs nothing of the body, so that nobody else's is read: see `demand_digest`.

    Args:
        claim: of the request, as `claimed` returned it.
        key: the one that is pinned for ``claim.provider``.

    Raises:
        NotAuthenticated: it does not verify under the pinned key.
    """
    try:
        claim.verify(key, method=request.method, target=target(request))
    except SignatureRejected as error:
        raise NotAuthenticated(error.what, where=SIGNATURE_HEADER.lower()) from None
    note(account=claim.provider)
    return Provider(claim.provider, key)


def demand_digest(claim: SignedRequest, body: Body) -> None:
    """Check that the body is the one whose digest was signed.

    Args:
        body: as it arrived, with its SHA-256.

    Raises:
        NotAuthenticated: it is another one.
    """
    if body.digest != claim.digest:
        raise NotAuthenticated(
            "another body than the one that was signed",
            where=DIGEST_HEADER.lower(),
            expected=DIGEST_FORM,
        )


def target(request: Request) -> str:
    """Return path with query, as sent: percent-encoded, with ``?`` only where a query follows."""
    # Not the decoded path: two spellings of one path would share a signature.
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    path = raw.split(b"?", 1)[0]
    query: bytes = request.scope.get("query_string", b"")
    return (path + b"?" + query if query else path).decode("latin-1")


def verify_token(request: Request, digest: bytes) -> None:
    """Check the auditor's token against its stored digest, in constant time.

    Args:
        digest: SHA-256 of the token, 32 bytes.

    Raises:
        NotAuthenticated: no bearer token, or another one.
    """
    header = request.headers.get("authorization", "")
    scheme, _, token = header.partition(" ")
    given = hashlib.sha256(token.encode("utf-8")).digest()
    if scheme.lower() != "bearer" or not hmac.compare_digest(given, digest):
        raise NotAuthenticated("not the auditor's token", expected="Authorization: Bearer")
    note(operator=True)
