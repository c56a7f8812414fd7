"""Keys and digests as people give them: 64 hexadecimal digits, in either case.

For a command's options: what these raise is a ValueError too, to which the command line adds the
option's name.
"""

from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import hex_decode

__all__ = ["digest", "public_key"]

_BYTES = 32


def digest(text: str, where: str = "") -> bytes:
    """Return 32 bytes: of a key, a digest, an anchor or a pseudonym.

    Args:
        text: 64 hexadecimal digits.
        where: the option's name, where nothing else adds it.

    Raises:
        InvalidArgumentError: anything else; it repeats nothing, since it may be a secret.
    """
    try:
        return hex_decode(text.lower(), _BYTES)
    except MalformedError:
        raise InvalidArgumentError(
            f"{len(text)} characters" if len(text) != 2 * _BYTES else "not hexadecimal",
            where=where,
            expected=f"{2 * _BYTES} hexadecimal digits, {_BYTES} bytes",
        ) from None


def public_key(text: str, where: str = "") -> PublicKey:
    """Return an Ed25519 public key.

    Args:
        text: 64 hexadecimal digits.
        where: the option's name, where nothing else adds it.

    Raises:
        InvalidArgumentError: anything else, or no key of docs/spec/01-encoding.md §1.3.
    """
    raw = digest(text, where)
    try:
        return PublicKey.from_raw(raw)
    except MalformedError as error:
        raise InvalidArgumentError(error.what, where=where, expected=error.expected) from None
