"""How a provider signs what it asks of the verifier: docs/spec/08-services.md §8.1."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Self

from ragaudit.encoding.digests import DIGEST_BYTES
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey, PublicKey, sign, verify
from ragaudit.encoding.text import b64_decode, b64_encode

PROVIDER_HEADER: Final = "Ragaudit-Provider"
TIME_HEADER: Final = "Ragaudit-Time"
SIGNATURE_HEADER: Final = "Ragaudit-Signature"
DIGEST_HEADER: Final = "Content-Digest"
DIGEST_FORM: Final = "sha-256=:<base64>: (RFC 9530)"
_KIND: Final = "request"
_EXPECTED: Final = f"{PROVIDER_HEADER}, {TIME_HEADER} and {SIGNATURE_HEADER}"
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
            method: in upper case.
            target: path with query, as in the request line.
        """
        digest = sha256(body).digest()
        return cls(provider, time, digest, sign(key, _KIND, method, target, digest, time))

    def headers(self) -> dict[str, str]:
        """Return the headers that the request carries."""
        return {
            DIGEST_HEADER: f"sha-256=:{b64_encode(self.digest)}:",
            PROVIDER_HEADER: self.provider,
            TIME_HEADER: str(self.time),
            SIGNATURE_HEADER: b64_encode(self.signature),
        }

    @classmethod
    def from_headers(cls, values: Callable[[str], Sequence[str]]) -> Self:
        """Return what the headers of a request say, the strict inverse of `headers`.

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
        """Check the signature; SignatureRejected. Needs nothing of the body: see `digest`."""
        verify(key, self.signature, _KIND, method, target, self.digest, self.time)


def _single(values: Callable[[str], Sequence[str]], name: str) -> str:
    found = values(name)
    if len(found) != 1:
        raise MalformedError(f"{len(found)} values", where=name.lower(), expected=_EXPECTED)
    return found[0]


def _digest(values: Sequence[str]) -> bytes:
    """SHA-256 of the field Content-Digest (RFC 9530), which has this one member."""
    if not values:
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
