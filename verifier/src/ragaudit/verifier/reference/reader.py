"""Reading a proof: strictly in order, every element canonical, nothing left over (spec 4.1.1)."""

from collections.abc import Callable
from typing import TypeVar

from .errors import MalformedProof
from .field import SCALAR_BYTES, decode_scalar
from .ristretto import POINT_BYTES, Point, decode
from .transcript import Transcript

Element = TypeVar("Element")


class ProofReader:
    """Takes elements off a proof; an element read with a tag is absorbed into the transcript."""

    def __init__(self, proof: bytes, transcript: Transcript) -> None:
        self._rest = proof
        self._transcript = transcript

    def point(self, tag: str) -> Point:
        """The next point, absorbed under ``tag``."""
        return self._element(POINT_BYTES, decode, tag)

    def scalar(self, tag: str | None = None) -> int:
        """The next scalar, absorbed under ``tag`` if there is one."""
        return self._element(SCALAR_BYTES, decode_scalar, tag)

    def end(self) -> None:
        """Refuse a proof that is longer than what has been read."""
        if self._rest:
            raise MalformedProof(f"{len(self._rest)} bytes are left over after the proof")

    def _element(self, size: int, read: Callable[[bytes], Element], tag: str | None) -> Element:
        data, self._rest = self._rest[:size], self._rest[size:]
        if len(data) != size:
            raise MalformedProof("the proof ends in the middle of a message")
        element = read(data)  # before it is absorbed: no challenge depends on malformed bytes
        if tag is not None:
            self._transcript.absorb(tag, data)
        return element
