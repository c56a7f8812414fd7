"""Submitted messages that count, of which a window may have many: read when they are asked for."""

import weakref
from array import array
from collections.abc import Iterator
from typing import BinaryIO, Final, Generic, TypeVar

from ragaudit.ledger.messages.evidence import EvidenceList
from ragaudit.ledger.messages.public_halves import PublicHalf

M = TypeVar("M")

_IDENTITY_BYTES: Final = 32


class Submitted(Generic[M]):
    """Some of the messages of an item, in its order, each read from it when it is asked for.

    Of a message there stay two offsets.
    """

    def __init__(self, kind: type[EvidenceList[M]], file: BinaryIO) -> None:
        """Hold no message yet.

        Args:
            kind: the list's class.
            file: of the item; stays open as long as this object, closed with it.
        """
        self._kind, self._file = kind, file
        weakref.finalize(self, file.close)
        # No list is longer than 2^28 bytes.
        self._starts, self._ends = array("I"), array("I")

    def add(self, message: M, start: int, end: int) -> None:
        """Add the next message, which counts.

        Args:
            start, end: as `EvidenceList.located` gives them.
        """
        self._starts.append(start)
        self._ends.append(end)

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[M]:
        for start, end in zip(self._starts, self._ends, strict=True):
            yield self._kind.read_at(self._file, start, end)


class SubmittedReceipts(Submitted[PublicHalf]):
    """Public halves of receipts; what decides who submitted what needs no reading."""

    def __init__(self, kind: type[EvidenceList[PublicHalf]], file: BinaryIO) -> None:
        super().__init__(kind, file)
        self._indices, self._identities = array("Q"), bytearray()

    def add(self, message: PublicHalf, start: int, end: int) -> None:
        """Add the next receipt, see `Submitted.add`."""
        super().add(message, start, end)
        self._indices.append(message.index)
        self._identities += message.identity

    @property
    def indices(self) -> Iterator[int]:
        """Index in the log of each receipt's record, or charge; nothing is read."""
        return iter(self._indices)

    @property
    def identities(self) -> Iterator[tuple[int, bytes]]:
        """(index in the log, identity of 32 bytes) of each receipt; nothing is read."""
        for number, index in enumerate(self._indices):
            at = _IDENTITY_BYTES * number
            yield index, bytes(self._identities[at : at + _IDENTITY_BYTES])
