"""Ed25519 (RFC 8032) over tagged encodings (docs/spec/01-encoding.md §1.3)."""

import secrets
from dataclasses import dataclass, field
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.tagged import Field, enc

KEY_BYTES = 32
SEED_BYTES = 32
SIGNATURE_BYTES = 64
SIGN_PREFIX = "ragaudit/v1/sign/"

_P = 2**255 - 19
# y coordinates of the eight points of small order (order 1, 2, 4 and 8). A signature under
# such a key verifies for messages that nobody signed, so the key binds nothing.
_ORDER_8_Y = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER_Y = frozenset({0, 1, _P - 1, _ORDER_8_Y, _P - _ORDER_8_Y})


class SignatureRejected(RejectedError):
    """A signature does not verify under the given key, name and fields."""


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key.

    Attributes:
        raw: 32 bytes, canonical, not of small order.

    Raises:
        MalformedError: any other bytes.
    """

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != KEY_BYTES:
            raise MalformedError("public key has a wrong length", expected=f"{KEY_BYTES} bytes")
        y = int.from_bytes(self.raw, "little") & (2**255 - 1)
        # A second encoding of one key would count as another key where a policy wants them
        # different.
        if y >= _P:
            raise MalformedError("public key is not canonical", expected="y below 2^255 - 19")
        if y in _SMALL_ORDER_Y:
            raise MalformedError("public key has small order", expected="a key that was generated")

    @classmethod
    def from_raw(cls, raw: bytes) -> "PublicKey":
        """Return the key of 32 bytes.

        Args:
            raw: as RFC 8032 §5.1.2 encodes a point.

        Raises:
            MalformedError: another length, not canonical, or of small order.
        """
        return cls(bytes(raw))

    def pem(self) -> str:
        """Return the key as PEM (RFC 7468, SubjectPublicKeyInfo of RFC 8410)."""
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - loads slowly
            Encoding,
            PublicFormat,
        )

        key = Ed25519PublicKey.from_public_bytes(self.raw)
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode("ascii")

    def verify_raw(self, signature: bytes, message: bytes) -> None:
        """Check ``signature`` over bytes that have their own framing (notes, DSSE).

        Args:
            signature: 64 bytes.
            message: whole, with its framing.

        Raises:
            SignatureRejected: wrong length or not a signature of ``message``.
        """
        if len(signature) != SIGNATURE_BYTES:
            raise SignatureRejected("signature has a wrong length", expected="64 bytes")
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError) as error:
            raise SignatureRejected("signature does not verify under this key") from error


@dataclass(frozen=True)
class SeededKey:
    """A private key that follows from 32 secret bytes, which no representation shows."""

    _seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self._seed) != SEED_BYTES:
            raise MalformedError("private seed has a wrong length", expected=f"{SEED_BYTES} bytes")

    @classmethod
    def generate(cls) -> Self:
        """Return a fresh key from the operating system's randomness."""
        return cls(secrets.token_bytes(SEED_BYTES))

    @classmethod
    def from_seed(cls, seed: bytes) -> Self:
        """Return the key of a seed.

        Args:
            seed: 32 secret bytes, of RFC 8032 or of FIPS 204 ML-DSA.KeyGen.

        Raises:
            MalformedError: another length.
            UnsupportedError: this build of the cryptography library lacks the algorithm.
        """
        return cls(bytes(seed))

    def seed(self) -> bytes:
        """Return the 32 secret bytes, for writing the key file."""
        return self._seed


@dataclass(frozen=True)
class PrivateKey(SeededKey):
    """An Ed25519 private key; its representation shows the public key only.

    Attributes:
        public: the public key.
    """

    public: PublicKey = field(init=False)
    _key: Ed25519PrivateKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        key = Ed25519PrivateKey.from_private_bytes(self._seed)
        raw = key.public_key().public_bytes_raw()
        object.__setattr__(self, "public", PublicKey(raw))
        object.__setattr__(self, "_key", key)

    def sign_raw(self, message: bytes) -> bytes:
        """Return the 64-byte signature over bytes that have their own framing.

        Args:
            message: whole; one key signs one framing only (docs/spec/01-encoding.md §1.3).
        """
        return self._key.sign(message)


def sign(private: PrivateKey, what: str, *fields: Field) -> bytes:
    """Return the 64-byte signature over ``enc("ragaudit/v1/sign/" + what, *fields)``.

    Args:
        private: the key.
        what: name of the signed thing, part of its tag.
        fields: as of `ragaudit.encoding.tagged.enc`.

    Raises:
        MalformedError, TypeError: fields that `enc` refuses.
    """
    # The tag stands in every signed message, so none of one kind is one of another.
    return private.sign_raw(enc(SIGN_PREFIX + what, *fields))


def verify(public: PublicKey, signature: bytes, what: str, *fields: Field) -> None:
    """Check a signature made by :func:`sign` with the same name and fields.

    Args:
        public: of the party that must have signed; never a key that the message names.
        signature: 64 bytes.
        what: name of the signed thing, part of its tag.
        fields: as of `sign`.

    Raises:
        SignatureRejected: it does not verify.
    """
    try:
        public.verify_raw(signature, enc(SIGN_PREFIX + what, *fields))
    except SignatureRejected as error:
        raise SignatureRejected(error.what, where=what, expected=error.expected) from error
