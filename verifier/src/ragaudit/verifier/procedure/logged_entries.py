"""The log's entries other than records, of which a window in words has most: read when asked for.

Of each there stay its place in the file and in the log; of those that checks ask for by account,
what they ask for. A window holds some fifty bytes for each entry, whatever stands in it.
"""

import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.handover import KINDS, Entry
from ragaudit.ledger.messages.records import Registration

_KINDS: Final = tuple(sorted(KINDS))
_CODES: Final = {kind: code for code, kind in enumerate(_KINDS)}
_PSEUDONYM_BYTES: Final = 32
_ACCOUNTS_AT_HAND: Final = 2**16  # some 300 bytes each


@dataclass(frozen=True, slots=True)
class LoggedRegistration:
    """A registration in the log."""

    index: int
    registration: Registration

    @property
    def name(self) -> str:
        """What findings call it."""
        return f"registration {self.index}"


class RegistrationSummary(NamedTuple):
    """What is kept of a registration.

    Attributes:
        rank: among the registrations, from 0: its place in `LoggedRegistrations`.
        entry: its index in the log.
        time: Unix milliseconds.
        anchored: whether it has an anchor.
    """

    rank: int
    entry: int
    slot: int
    time: int
    tenant: str
    anchored: bool

    @property
    def name(self) -> str:
        """What findings call it."""
        return f"registration {self.entry}"


class LoggedEntries:
    """The entries other than records in log order, each read from its item when it is asked for."""

    def __init__(self, file: BinaryIO) -> None:
        """Hold no entry yet.

        Args:
            file: `public/entries.json`; stays open as long as this object, closed with it.
        """
        self._file = file
        weakref.finalize(self, file.close)
        # No list is longer than 2^28 bytes.
        self._starts, self._end = array("I"), 0
        self._indices, self._kinds = array("Q"), bytearray()

    def add(self, entry: Entry, start: int, end: int) -> int:
        """Add the next entry, and return its position.

        Args:
            start, end: as `Entries.located` gives them.
        """
        self._starts.append(start)
        self._end = end
        self._indices.append(entry.index)
        self._kinds.append(_CODES[entry.kind])
        return len(self._starts) - 1

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, position: int) -> Entry:
        at = range(len(self))[position]
        last = at == len(self) - 1
        end = self._end if last else self._starts[at + 1] - 1
        return Entries.read_at(self._file, self._starts[at], end)

    def index(self, position: int) -> int:
        """Return an entry's index in the log; nothing is read."""
        return self._indices[position]

    def kind(self, position: int) -> str:
        """Return an entry's kind; nothing is read."""
        return _KINDS[self._kinds[position]]

    @property
    def indices(self) -> npt.NDArray[np.uint64]:
        """Indices in the log, rising."""
        return np.frombuffer(self._indices, np.uint64)

    def kinds(self) -> Iterator[tuple[int, str]]:
        """Yield (index in the log, kind) of each entry; nothing is read."""
        return ((self._indices[at], _KINDS[code]) for at, code in enumerate(self._kinds))

    def of_kind(self, kind: str) -> Iterator[Entry]:
        """Return the entries of a kind, in log order."""
        return (self[at] for at, code in enumerate(self._kinds) if code == _CODES[kind])

    def count(self, kind: str) -> int:
        """Return how many entries of a kind there are."""
        return self._kinds.count(_CODES[kind])


class Pseudonyms:
    """Pseudonyms of entries, and which entries are whose."""

    def __init__(self) -> None:
        self._data: bytes | bytearray = bytearray()

    def add(self, pseudonym: bytes) -> None:
        """Add the pseudonym of the next entry, 32 bytes."""
        self._data += pseudonym

    def __getitem__(self, number: int) -> bytes:
        return bytes(self._data[_PSEUDONYM_BYTES * number : _PSEUDONYM_BYTES * (number + 1)])

    def find(self, pseudonym: bytes) -> list[int]:
        """Return the numbers of the account's entries, rising."""
        start = bisect_left(self._order, pseudonym, key=self.__getitem__)
        end = bisect_right(self._order, pseudonym, start, key=self.__getitem__)
        return [int(number) for number in self._order[start:end]]

    def first(self, pseudonym: bytes) -> tuple[int | None, bool]:
        """Return the number of its first entry, None without one, and whether there are more."""
        start = bisect_left(self._order, pseudonym, key=self.__getitem__)
        found = [
            int(number) for number in self._order[start : start + 2] if self[number] == pseudonym
        ]
        return (found[0] if found else None), len(found) > 1

    @cached_property
    def firsts(self) -> npt.NDArray[np.uint32]:
        """uint32[accounts], numbers of the first entry of each account, rising."""
        values = self._values[self._order]
        new = np.ones(len(values), dtype=bool)
        new[1:] = values[1:] != values[:-1]
        return np.sort(self._order[new])

    @cached_property
    def _order(self) -> npt.NDArray[np.uint32]:
        # Whole by now: it keeps no room to grow.
        self._data = bytes(self._data)
        # Stable: an account's entries keep the order that they have in the log.
        return np.argsort(self._values, kind="stable").astype(np.uint32)

    @property
    def _values(self) -> npt.NDArray[np.bytes_]:
        return np.frombuffer(self._data, f"S{_PSEUDONYM_BYTES}")


class LoggedRegistrations:
    """The registrations in log order.

    Attributes:
        anchored: how many have an anchor.
        first: a function that returns, for a pseudonym, what is kept of its first registration
            (None without one), and whether there are more.
    """

    def __init__(self, entries: LoggedEntries) -> None:
        self.anchored = 0
        self._entries = entries
        self._positions, self._pseudonyms = array("I"), Pseudonyms()
        self._slots, self._times = array("I"), array("Q")
        # By number, both ways: a window has few tenants.
        self._names: list[tuple[str, bool]] = []
        self._named: dict[tuple[str, bool], int] = {}
        self._names_of = array("I")
        # Checks ask for the same account's again and again, some of them for each of its records.
        self.first = lru_cache(_ACCOUNTS_AT_HAND)(self._first)

    def add(self, position: int, body: Registration) -> None:
        """Add the registration at a position among the entries."""
        self._positions.append(position)
        self._pseudonyms.add(body.pseudonym)
        self._slots.append(body.slot)
        self._times.append(body.time)
        name = (body.tenant, body.anchor is not None)
        number = self._named.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        self._names_of.append(number)
        self.anchored += body.anchor is not None

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[LoggedRegistration]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, rank: int) -> LoggedRegistration:
        entry = self._entries[self._positions[rank]]
        return LoggedRegistration(entry.index, Registration.parse(entry.body))

    def summary(self, rank: int) -> RegistrationSummary:
        """Return what is kept of one; nothing is read."""
        return RegistrationSummary(
            rank,
            self._entries.index(self._positions[rank]),
            self._slots[rank],
            self._times[rank],
            *self._names[self._names_of[rank]],
        )

    def summaries(self) -> Iterator[RegistrationSummary]:
        """Yield what is kept of each, in log order; nothing is read."""
        return map(self.summary, range(len(self)))

    @property
    def pseudonyms(self) -> Iterator[bytes]:
        """Pseudonyms, in log order; nothing is read."""
        return (self._pseudonyms[rank] for rank in range(len(self)))

    @property
    def accounts(self) -> int:
        """Number of distinct pseudonyms."""
        return len(self._pseudonyms.firsts)

    def _first(self, pseudonym: bytes) -> tuple[RegistrationSummary | None, bool]:
        """Return what is kept of an account's first one, None without one; if there are more."""
        rank, more = self._pseudonyms.first(pseudonym)
        return (None if rank is None else self.summary(rank)), more
