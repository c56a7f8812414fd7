"""The entries of a window's log, of which there may be a million: read again when they are needed.

Of an entry there stay its place in the file and in the log, some fifty bytes whatever stands in it;
of those that checks ask for by account, what they ask for. What most checks ask of a record (whose
it is, which query, when, under what) is kept in columns of numbers, some 120 bytes for each; the
rest, digests and sketch, is read from the handover again.
"""

import weakref
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, BinaryIO, Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.ledger.messages.accounts import ListedRecord
from ragaudit.ledger.messages.entries import (
    Body,
    Charge,
    EntryBody,
    Generated,
    Record,
    Registration,
    Void,
    parse_body,
)
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.handover import KINDS, Entry, read_frame

_KINDS: Final = tuple(sorted(KINDS))
_CODES: Final = {kind: code for code, kind in enumerate(_KINDS)}
_PSEUDONYM_BYTES: Final = 32
_ACCOUNTS_AT_HAND: Final = 2**16  # some 300 bytes each
_OWN_NAMES: Final = frozenset({Registration.KIND, Record.KIND})


B = TypeVar("B", bound=EntryBody)
S = TypeVar("S")
V = TypeVar("V")


def _called(kind: str, entry: int) -> str:
    """What findings call an entry."""
    return f"{kind} {entry}" if kind in _OWN_NAMES else f"{kind} entry {entry}"


@dataclass(frozen=True, slots=True)
class Logged(Generic[B]):
    """An entry in the log.

    Attributes:
        entry: its index in the log.
        data: the body's bytes, which a proof is bound to.
    """

    entry: int
    body: B
    data: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """What findings call it."""
        return _called(self.body.KIND, self.entry)


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
        return _called(Registration.KIND, self.entry)


class LoggedEntries:
    """The entries other than records in log order, each read from its item when it is asked for."""

    def __init__(self, file: BinaryIO) -> None:
        """Hold no entry yet.

        Args:
            file: `public/entries.json`; stays open as long as this object, closed with it.
        """
        self._file = file
        weakref.finalize(self, file.close)
        # No list is longer than 2^31 bytes.
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


class Repeated(Generic[V]):
    """A column of values of which few differ: each of these is kept once."""

    def __init__(self) -> None:
        self.numbers: dict[V, int] = {}
        self.of = array("I")
        self._values: list[V] = []

    def add(self, value: V) -> None:
        """Add the next value."""
        number = self.numbers.setdefault(value, len(self._values))
        if number == len(self._values):
            self._values.append(value)
        self.of.append(number)

    def __getitem__(self, at: int) -> V:
        return self._values[self.of[at]]


class Columns(ABC, Generic[B, S]):
    """Entries of a kind in log order, each read when it is asked for; a summary stays of each."""

    def __init__(self, entries: LoggedEntries) -> None:
        self._entries = entries
        self._positions = array("I")

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[Logged[B]]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> Logged[B]:
        entry = self._entries[self._positions[number]]
        body: Any = parse_body(entry.kind, entry.body)
        return Logged(entry.index, body, entry.body)

    @abstractmethod
    def summary(self, number: int) -> S:
        """Return what is kept of one; nothing is read."""

    def summaries(self) -> Iterator[S]:
        """Yield what is kept of each, in log order; nothing is read."""
        return map(self.summary, range(len(self)))


class LoggedRegistrations(Columns[Registration, RegistrationSummary]):
    """The registrations.

    Attributes:
        anchored: how many have an anchor.
        first: a function that returns, for a pseudonym, what is kept of its first registration
            (None without one), and whether there are more.
    """

    def __init__(self, entries: LoggedEntries) -> None:
        super().__init__(entries)
        self.anchored = 0
        self._pseudonyms = Pseudonyms()
        self._slots, self._times = array("I"), array("Q")
        self._names = Repeated[tuple[str, bool]]()
        # Checks ask for the same account's again and again, some of them for each of its records.
        self.first = lru_cache(_ACCOUNTS_AT_HAND)(self._first)

    def add(self, position: int, body: Registration) -> None:
        """Add the registration at a position among the entries."""
        self._positions.append(position)
        self._pseudonyms.add(body.pseudonym)
        self._slots.append(body.slot)
        self._times.append(body.time)
        self._names.add((body.tenant, body.anchor is not None))
        self.anchored += body.anchor is not None

    def summary(self, number: int) -> RegistrationSummary:
        """Return what is kept of one; nothing is read."""
        entry = self._entries.index(self._positions[number])
        times = self._slots[number], self._times[number]
        return RegistrationSummary(number, entry, *times, *self._names[number])

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


# As they stand in `RecordSummary`.
_NUMBERS: Final = ("version", "rows", "top_k", "epoch", "slot", "counter", "activation", "time")
# Of the bits of a record's flags: anchored, sketched.
_FLAGS: Final = tuple(tuple(bool(each >> bit & 1) for bit in range(2)) for each in range(4))
_numbers_of: Final = attrgetter(*_NUMBERS)
NOT_COUNTED: Final = -1
"""Of `RecordSummary.withheld`, where the record does not count withheld rows at all."""

_LONGEST_SKETCH: Final = 64  # bytes: no policy has a longer one


@dataclass(frozen=True, slots=True)
class LoggedRecord(Logged[Record]):
    """A record in the log, with what was handed over beside it."""

    salt_s: bytes = field(repr=False)
    sketch: bytes = field(repr=False)

    @property
    def sketched(self) -> bool:
        """Whether the sketch that was handed over is the one that the body commits to."""
        if len(self.salt_s) != SALT_BYTES:
            return False
        return salted(self.salt_s, self.sketch) == self.body.sketch_digest


class RecordSummary(NamedTuple):
    """What is kept of a record.

    Attributes:
        position: among the records, from 0: its place in `LoggedRecords`.
        entry: its index in the log.
        withheld: how many rows of the answer it counts as withheld, or `NOT_COUNTED`.
        anchored: whether it has a nonce.
        sketched: whether the sketch that was handed over is the one that the body commits to.
        sketch_bytes: length of that sketch.
    """

    position: int
    entry: int
    pseudonym: bytes
    policy_digest: bytes
    window: str
    tenant: str
    version: int
    rows: int
    top_k: int
    epoch: int
    slot: int
    counter: int
    activation: int
    time: int
    withheld: int
    anchored: bool
    sketched: bool
    sketch_bytes: int

    @property
    def kind(self) -> str:
        """Of its entry."""
        return Record.KIND

    @property
    def name(self) -> str:
        """What findings call it."""
        return _called(self.kind, self.entry)


class LoggedRecords:
    """All records in log order, each read from the handover when it is asked for."""

    def __init__(self, handover: BinaryIO) -> None:
        """Hold no record yet.

        Args:
            handover: stays open as long as this object; closed with it.
        """
        self._file = handover
        weakref.finalize(self, handover.close)
        self._offsets, self._indices = array("Q"), array("Q")
        self._salts = bytearray()
        # Few accounts have many records, and all name the same policy.
        self._accounts = Repeated[bytes]()
        self._names = Repeated[tuple[bytes, str, str]]()
        self._numbers = array("q")  # those of a record beside one another
        self._flags = bytearray()
        self._sketch_bytes, self._sketches = array("H"), bytearray()

    def add(self, entry: Entry, offset: int) -> None:
        """Add the next record.

        Args:
            entry: of kind record, from the handover.
            offset: where its frame begins.

        Raises:
            MalformedError: its body is none.
        """
        logged = read_record(entry)
        record = logged.body
        self._numbers.extend(_numbers_of(record))
        self._numbers.append(NOT_COUNTED if record.withheld is None else record.withheld)
        self._offsets.append(offset)
        self._indices.append(logged.entry)
        self._salts += entry.salt
        self._accounts.add(record.pseudonym)
        self._names.add((record.policy_digest, record.window, record.tenant))
        self._flags.append((record.nonce is not None) + 2 * logged.sketched)
        self._sketch_bytes.append(len(entry.sketch))
        if len(entry.sketch) <= _LONGEST_SKETCH:
            self._sketches += entry.sketch

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[LoggedRecord]:
        return (self[position] for position in range(len(self)))

    def __getitem__(self, position: int) -> LoggedRecord:
        index = self._indices[position]
        return read_record(read_frame(self._file, self._offsets[position], index))

    def at(self, indices: frozenset[int]) -> tuple[LoggedRecord, ...]:
        """Return the records at these places of the log, in log order; others are passed over.

        Args:
            indices: of entries.
        """
        found = np.flatnonzero(np.isin(np.frombuffer(self._indices, np.uint64), sorted(indices)))
        return tuple(self[int(position)] for position in found)

    @property
    def sketches(self) -> Iterator[bytes]:
        """The sketches, in log order; nothing in place of one that is longer than any policy's."""
        at = 0
        for length in self._sketch_bytes:
            end = at + length if length <= _LONGEST_SKETCH else at
            yield bytes(self._sketches[at:end])
            at = end

    def listed(self) -> Iterator[ListedRecord]:
        """Return what an account index takes of the records, in log order; nothing is read."""
        for at, entry in enumerate(self._indices):
            salt = bytes(self._salts[SALT_BYTES * at : SALT_BYTES * (at + 1)])
            yield ListedRecord(entry, salt, self._accounts[at])

    def summaries(self) -> Iterator[RecordSummary]:
        """Return what is kept of each record, in log order; nothing is read."""
        return self.summaries_at(range(len(self)))

    def summaries_at(self, positions: Sequence[int]) -> Iterator[RecordSummary]:
        """Return what is kept of some records.

        Args:
            positions: among the records, in the order in which they come.
        """
        each = len(_NUMBERS) + 1
        for at in positions:
            yield RecordSummary._make(
                (
                    at,
                    self._indices[at],
                    self._accounts[at],
                    *self._names[at],
                    *self._numbers[each * at : each * (at + 1)],
                    *_FLAGS[self._flags[at]],
                    self._sketch_bytes[at],
                )
            )

    def by_account(self) -> "AccountRecords":
        """Return the records of each account."""
        return AccountRecords(self, self._accounts)


class AccountRecords(Mapping[bytes, tuple[RecordSummary, ...]]):
    """What is kept of the records of each pseudonym, in log order; made when it is asked for."""

    def __init__(self, records: LoggedRecords, accounts: Repeated[bytes]) -> None:
        """Group records.

        Args:
            accounts: pseudonym of each.
        """
        self._records, self._accounts = records, accounts.numbers
        numbers = np.frombuffer(accounts.of, np.uint32)
        # Stable: an account's records keep the order that they have in the log.
        self._order = np.argsort(numbers, kind="stable")
        self._ends = np.cumsum(np.bincount(numbers, minlength=len(self)))

    def __len__(self) -> int:
        return len(self._accounts)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._accounts)

    def __getitem__(self, pseudonym: bytes) -> tuple[RecordSummary, ...]:
        return tuple(self._records.summaries_at(self._positions(pseudonym).tolist()))

    def count(self, pseudonym: bytes) -> int:
        """Return how many records an account has.

        Args:
            pseudonym: of anybody.
        """
        return len(self._positions(pseudonym)) if pseudonym in self._accounts else 0

    def _positions(self, pseudonym: bytes) -> npt.NDArray[np.int64]:
        number = self._accounts[pseudonym]
        start = self._ends[number - 1] if number else 0
        found: npt.NDArray[np.int64] = self._order[start : self._ends[number]]
        return found


def read_record(entry: Entry) -> LoggedRecord:
    """Return the record of an entry of kind record.

    Raises:
        MalformedError: its body is none.
    """
    body = Record.parse(entry.body)
    return LoggedRecord(entry.index, body, entry.body, entry.salt_s, entry.sketch)


class ChargeSummary(NamedTuple):
    """What is kept of a charge entry.

    Attributes:
        number: among the charge entries, from 0: its place in `LoggedCharges`.
        entry: its index in the log.
    """

    number: int
    entry: int
    window: str
    tenant: str
    pseudonym: bytes
    slot: int
    counter: int
    time: int

    @property
    def kind(self) -> str:
        """Of its entry."""
        return Charge.KIND

    @property
    def name(self) -> str:
        """What findings call it."""
        return _called(self.kind, self.entry)


class ReplySummary(NamedTuple):
    """What is kept of an answer or a void.

    Attributes:
        entry: its index in the log.
    """

    entry: int
    kind: str
    time: int

    @property
    def name(self) -> str:
        """What findings call it."""
        return _called(self.kind, self.entry)


class LoggedCharges(Columns[Charge, ChargeSummary]):
    """The charge entries."""

    def __init__(self, entries: LoggedEntries) -> None:
        super().__init__(entries)
        self._pseudonyms, self._names = Pseudonyms(), Repeated[tuple[str, str]]()
        self._slots, self._counters, self._times = array("I"), array("I"), array("Q")

    def add(self, position: int, body: Charge) -> None:
        """Add the charge entry at a position among the entries."""
        self._positions.append(position)
        self._pseudonyms.add(body.pseudonym)
        self._names.add((body.window, body.tenant))
        self._slots.append(body.slot)
        self._counters.append(body.counter)
        self._times.append(body.time)

    def summary(self, number: int) -> ChargeSummary:
        """Return what is kept of one; nothing is read."""
        return ChargeSummary(
            number,
            self._entries.index(self._positions[number]),
            *self._names[number],
            self._pseudonyms[number],
            self._slots[number],
            self._counters[number],
            self._times[number],
        )

    def number_of(self, entry: int) -> int | None:
        """Return the number of the charge entry at a place of the log; None if there is none."""

        def place(position: int) -> int:
            return self._entries.index(position)

        number = bisect_left(self._positions, entry, key=place)
        if number == len(self) or place(self._positions[number]) != entry:
            return None
        return number

    def at(self, places: Iterable[int]) -> tuple[Logged[Charge], ...]:
        """Return the charge entries at these places of the log, in log order; others are none."""
        numbers = map(self.number_of, sorted(places))
        return tuple(self[number] for number in numbers if number is not None)

    def of_tenant(self, tenant: str) -> npt.NDArray[np.int64]:
        """Return int64[R], numbers of the charge entries that name a tenant, rising."""
        named = [number for (_, name), number in self._names.numbers.items() if name == tenant]
        return np.flatnonzero(np.isin(np.frombuffer(self._names.of, np.uint32), named))

    def of_account(self, pseudonym: bytes) -> list[ChargeSummary]:
        """Return what is kept of an account's charge entries, in log order."""
        return [self.summary(number) for number in self._pseudonyms.find(pseudonym)]

    def count(self, pseudonym: bytes) -> int:
        """Return how many charge entries an account has."""
        return len(self._pseudonyms.find(pseudonym))

    def accounts(self) -> Iterator[bytes]:
        """Yield the pseudonym of each account with a charge entry, by the first of them."""
        return (self._pseudonyms[number] for number in self._pseudonyms.firsts.tolist())


class LoggedReplies(Columns[Generated | Void, ReplySummary]):
    """Answers and voids."""

    def __init__(self, entries: LoggedEntries) -> None:
        super().__init__(entries)
        self._charges, self._times = array("Q"), array("Q")

    def add(self, position: int, body: Generated | Void) -> None:
        """Add the answer or void at a position among the entries."""
        self._positions.append(position)
        self._charges.append(body.charge)
        self._times.append(body.time)

    def summary(self, number: int) -> ReplySummary:
        """Return what is kept of one; nothing is read."""
        at = self._positions[number]
        return ReplySummary(self._entries.index(at), self._entries.kind(at), self._times[number])

    def to(self, charge: int) -> list[ReplySummary]:
        """Return what is kept of the replies that name an entry of the log, in log order."""
        return [self.summary(number) for number in self._numbers(charge)]

    def voided(self) -> Iterator[int]:
        """Yield the entry of the log that each void names, in log order; nothing is read."""
        for number, position in enumerate(self._positions):
            if self._entries.kind(position) == Void.KIND:
                yield self._charges[number]

    def answer_to(self, charge: int) -> Generated | None:
        """Return the first answer that names an entry of the log, None without one."""
        for number in self._numbers(charge):
            if self.summary(number).kind == Generated.KIND:
                reply = self[number].body
                assert isinstance(reply, Generated)
                return reply
        return None

    def _numbers(self, charge: int) -> list[int]:
        key = self._charges.__getitem__
        start = bisect_left(self._order, charge, key=key)
        end = bisect_right(self._order, charge, start, key=key)
        return [int(number) for number in self._order[start:end]]

    @cached_property
    def _order(self) -> npt.NDArray[np.uint32]:
        return np.argsort(np.frombuffer(self._charges, np.uint64), kind="stable").astype(np.uint32)


class EntryColumns(NamedTuple):
    """What is kept of the entries that checks ask for by account."""

    registrations: LoggedRegistrations
    charges: LoggedCharges
    replies: LoggedReplies

    @classmethod
    def of(cls, entries: LoggedEntries) -> "EntryColumns":
        """Return the columns of entries to come."""
        return cls(LoggedRegistrations(entries), LoggedCharges(entries), LoggedReplies(entries))

    def add(self, position: int, body: Body) -> None:
        """Add the body of the entry at a position, of whatever kind."""
        if isinstance(body, Registration):
            self.registrations.add(position, body)
        elif isinstance(body, Charge):
            self.charges.add(position, body)
        elif isinstance(body, Generated | Void):
            self.replies.add(position, body)
