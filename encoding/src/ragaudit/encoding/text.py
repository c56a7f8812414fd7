"""Bytes as text: lower-case hexadecimal and canonical base64 (docs/spec/01-encoding.md §1.5)."""

import base64
import binascii
import re

from ragaudit.encoding.errors import MalformedError

_HEX = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII)


def hex_encode(data: bytes) -> str:
    """Return ``data`` in lower-case hexadecimal."""
    return data.hex()


def hex_decode(text: str, length: int | None = None) -> bytes:
    """Return the bytes of lower-case hexadecimal ``text``.

    Args:
        text: an even number of the digits 0-9a-f, nothing else.
        length: the number of bytes required, if fixed.

    Raises:
        MalformedError: any other character or another length.
    """
    if _HEX.fullmatch(text) is None:
        raise MalformedError("not lower-case hexadecimal", expected="pairs of 0-9a-f")
    return _sized(bytes.fromhex(text), length)


def b64_encode(data: bytes) -> str:
    """Return ``data`` in base64 with padding (RFC 4648 §4)."""
    return base64.b64encode(data).decode("ascii")


def b64_decode(text: str, length: int | None = None) -> bytes:
    """Return the bytes of canonical base64 ``text``; the inverse of :func:`b64_encode`.

    Args:
        text: RFC 4648 §4, with padding.
        length: the number of bytes required, if fixed.

    Raises:
        MalformedError: another alphabet, missing padding, non-zero trailing bits, spaces, or
            another length than ``length``.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedError("not base64", expected="RFC 4648 §4") from error
    if b64_encode(data) != text:
        raise MalformedError("base64 is not canonical", expected="RFC 4648 §4 with zero bits")
    return _sized(data, length)


def _sized(data: bytes, length: int | None) -> bytes:
    if length is not None and len(data) != length:
        raise MalformedError("wrong length", expected=f"{length} bytes")
    return data
