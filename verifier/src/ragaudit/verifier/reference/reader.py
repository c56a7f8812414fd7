"""Reading a proof: strictly in order, every element canonical, nothing left over (spec 4.1.1)."""

from .errors import MalformedProof
from .field import SCALAR_BYTES, decode_scalar
from .ristretto import POINT_BYTES, Point, decode
from .transcript import Transcript


class ProofReader:
    """Takes elements off a proof; an element read with a tag is absorbed into the transcript."""

    def __init__(self, proof: bytes, transcript: Transcript) -> None:
        self._rest = proof
        self._transcript = transcript

    def point(self, tag: str) -> Point:
        """The next point, absorbed under ``tag``."""
        return decode(self._take(POINT_BYTES, tag))

    def scalar(self, tag: str | None = None) -> int:
        """The next scalar, absorbed under ``tag`` if there is one."""
        return decode_scalar(self._take(SCALAR_BYTES, tag))

    def end(self) -> None:
        """Refuse a proof that is longer than what has been read."""
        if self._rest:
            raise MalformedProof(f"{len(self._rest)} bytes are left over after the proof")

    def _take(self, size: int, tag: str | None) -> bytes:
        data, self._rest = self._rest[:size], self._rest[size:]
        if len(data) != size:
            raise MalformedProof("the proof ends in the middle of a message")
        if tag is not None:
            self._transcript.absorb(tag, data)
        return data
