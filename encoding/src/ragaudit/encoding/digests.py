"""Salted digests, digests of structures, log leaves (docs/spec/01-encoding.md §1.2)."""

from hashlib import sha256

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import DIGEST_BYTES, Field, enc

__all__ = ["DIGEST_BYTES", "SALT_BYTES", "leaf_data", "salted", "structure"]

SALT_BYTES = 32
PREFIX = "ragaudit/v1/"


def salted(salt: bytes, value: Field) -> bytes:
    """Return H(salt, value), 32 bytes: hiding and binding while ``salt`` is secret and used once.

    Args:
        salt: 32 bytes, secret and used once.
        value: as of `enc`.

    Raises:
        MalformedError: a salt that is not 32 bytes, or a value that `enc` refuses.
    """
    return sha256(enc(PREFIX + "salted", _checked(salt), value)).digest()


def structure(kind: str, *fields: Field) -> bytes:
    """Return the digest of a structure: SHA-256 of ``enc("ragaudit/v1/" + kind, ...)``, 32 bytes.

    Args:
        kind: the tag after ``ragaudit/v1/``, one of the registry (docs/spec/01-encoding.md §1.7).
        fields: as of `enc`.

    Raises:
        MalformedError, TypeError: fields that `enc` refuses.
    """
    return sha256(enc(PREFIX + kind, *fields)).digest()


def leaf_data(salt: bytes, kind: str, body: bytes) -> bytes:
    """Return the 32 bytes that stand in the log for an entry (docs/spec/01-encoding.md §1.2).

    Args:
        salt: 32 bytes, secret.
        kind: of the entry.
        body: its canonical bytes.

    Raises:
        MalformedError: a salt of another length.
    """
    # The kind is hashed too: a body of one kind can never be shown as a leaf of another.
    return sha256(enc(PREFIX + "leaf", _checked(salt), kind, body)).digest()


def _checked(salt: bytes) -> bytes:
    if len(salt) != SALT_BYTES:
        # A short salt can be searched through, and the value behind a published digest guessed.
        raise MalformedError("salt has a wrong length", expected=f"{SALT_BYTES} bytes")
    return salt
