"""The Fiat-Shamir transcript: one SHA-512 state (spec 4.3)."""

from hashlib import sha512, shake_256

from .field import ORDER, le

# The bits of a byte, least significant first, one output byte per bit.
_BITS_OF_BYTE = [bytes(byte >> k & 1 for k in range(8)) for byte in range(256)]


class Transcript:
    """State S; every message and every challenge moves it.

    Args:
        argument: name of the argument, such as ``selection/v1``.
    """

    def __init__(self, argument: str) -> None:
        self.argument = argument
        self.state = sha512(b"ragaudit/transcript/v1").digest()
        self.absorb("argument", argument.encode("ascii"))

    def absorb(self, tag: str, message: bytes) -> None:
        """Bind ``message`` under ``tag``."""
        self._step(b"\x01", tag, le(len(message), 8) + message)

    def scalar(self, tag: str) -> int:
        """A challenge, uniform in the scalar field."""
        self._step(b"\x02", tag, b"")
        return int.from_bytes(sha512(b"\x03" + self.state).digest(), "little") % ORDER

    def bits(self, tag: str, count: int) -> bytes:
        """``count`` challenge bits, one byte (0 or 1) each."""
        self._step(b"\x02", tag, b"")
        stream = shake_256(b"\x04" + self.state).digest((count + 7) // 8)
        return b"".join(_BITS_OF_BYTE[byte] for byte in stream)[:count]

    def _step(self, kind: bytes, tag: str, message: bytes) -> None:
        name = tag.encode("ascii")
        self.state = sha512(kind + self.state + le(len(name), 2) + name + message).digest()
