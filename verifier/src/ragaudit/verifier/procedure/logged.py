"""The entries of a window's log, of which there may be a million: read again when they are needed.

Of an entry there stay its place in the file and in the log, some fifty bytes whatever stands in it;
of those that checks ask for by account, what they ask for. What most checks ask of a record (whose
it is, which query, when, under what) is kept in columns of numbers, some 120 bytes for each; the
rest, digests and sketch, is read from the handover again.
"""

import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import BinaryIO, Final, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.ledger.messages.accounts import ListedRecord
from ragaudit.ledger.messages.entries import Body, Charge, Generated, Record, Registration, Void
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.handover import KINDS, Entry, read_frame

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


_K = TypeVar("_K")

# As they stand in `RecordSummary`.
_NUMBERS: Final = ("version", "rows", "top_k", "epoch", "slot", "counter", "activation", "time")
# Of the bits of a record's flags: anchored, sketched.
_FLAGS: Final = tuple(tuple(bool(each >> bit & 1) for bit in range(2)) for each in range(4))
_numbers_of: Final = attrgetter(*_NUMBERS)
NOT_COUNTED: Final = -1
"""Of `RecordSummary.withheld`, where the record does not count withheld rows at all."""

_LONGEST_SKETCH: Final = 64  # bytes: no policy has a longer one


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """A record in the log.

    Attributes:
        body: its bytes, which a proof is bound to.
    """

    index: int
    record: Record
    body: bytes = field(repr=False)
    salt_s: bytes = field(repr=False)
    sketch: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """What findings call it."""
        return f"record {self.index}"

    @property
    def sketched(self) -> bool:
        """Whether the sketch that was handed over is the one that the body commits to."""
        if len(self.salt_s) != SALT_BYTES:
            return False
        return salted(self.salt_s, self.sketch) == self.record.sketch_digest


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
        return f"record {self.entry}"


class LoggedRecords(Sequence[LoggedRecord]):
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
        # By number, both ways: few accounts have many records, and all name the same policy.
        self._pseudonyms: list[bytes] = []
        self._accounts: dict[bytes, int] = {}
        self._names: list[tuple[bytes, str, str]] = []
        self._named: dict[tuple[bytes, str, str], int] = {}
        self._account_of, self._names_of = array("L"), array("L")
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
        record = logged.record
        named = (record.policy_digest, record.window, record.tenant)
        self._numbers.extend(_numbers_of(record))
        self._numbers.append(NOT_COUNTED if record.withheld is None else record.withheld)
        self._offsets.append(offset)
        self._indices.append(logged.index)
        self._salts += entry.salt
        self._account_of.append(_number(self._accounts, self._pseudonyms, record.pseudonym))
        self._names_of.append(_number(self._named, self._names, named))
        self._flags.append((record.nonce is not None) + 2 * logged.sketched)
        self._sketch_bytes.append(len(entry.sketch))
        if len(entry.sketch) <= _LONGEST_SKETCH:
            self._sketches += entry.sketch

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[LoggedRecord]:
        return (self[position] for position in range(len(self)))

    @overload
    def __getitem__(self, position: int) -> LoggedRecord: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[LoggedRecord]: ...
    def __getitem__(self, position: int | slice) -> LoggedRecord | Sequence[LoggedRecord]:
        if isinstance(position, slice):
            return tuple(self[at] for at in range(*position.indices(len(self))))
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
        salts, accounts = self._salts, self._pseudonyms
        for at, (entry, account) in enumerate(zip(self._indices, self._account_of, strict=True)):
            salt = bytes(salts[SALT_BYTES * at : SALT_BYTES * (at + 1)])
            yield ListedRecord(entry, salt, accounts[account])

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
                    self._pseudonyms[self._account_of[at]],
                    *self._names[self._names_of[at]],
                    *self._numbers[each * at : each * (at + 1)],
                    *_FLAGS[self._flags[at]],
                    self._sketch_bytes[at],
                )
            )

    def by_account(self) -> "AccountRecords":
        """Return the records of each account."""
        return AccountRecords(self, self._accounts, np.frombuffer(self._account_of, np.uint64))


class AccountRecords(Mapping[bytes, tuple[RecordSummary, ...]]):
    """What is kept of the records of each pseudonym, in log order; made when it is asked for."""

    def __init__(
        self,
        records: LoggedRecords,
        accounts: Mapping[bytes, int],
        account_of: npt.NDArray[np.uint64],
    ) -> None:
        """Group records.

        Args:
            accounts: numbers of pseudonyms, from 0.
            account_of: uint64[R], number of the pseudonym of each record.
        """
        self._records, self._accounts = records, accounts
        # Stable: an account's records keep the order that they have in the log.
        self._order = np.argsort(account_of, kind="stable")
        self._ends = np.cumsum(np.bincount(account_of.astype(np.int64), minlength=len(accounts)))

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


def _number(numbers: dict[_K, int], values: list[_K], value: _K) -> int:
    """The number of a value, from 0 in the order in which they come."""
    number = numbers.setdefault(value, len(values))
    if number == len(values):
        values.append(value)
    return number


def read_record(entry: Entry) -> LoggedRecord:
    """Return the record of an entry of kind record.

    Raises:
        MalformedError: its body is none.
    """
    record = Record.parse(entry.body)
    return LoggedRecord(entry.index, record, entry.body, entry.salt_s, entry.sketch)


@dataclass(frozen=True, slots=True)
class LoggedCharge:
    """A charge entry in the log.

    Attributes:
        index: its place.
    """

    index: int
    body: bytes = field(repr=False)
    charge: Charge

    @property
    def name(self) -> str:
        """What findings call it."""
        return f"charge entry {self.index}"

    @property
    def entry(self) -> int:
        """Its place in the log, as records have it."""
        return self.index

    @property
    def activation(self) -> int:
        """a."""
        return self.charge.activation

    @property
    def time(self) -> int:
        """Unix milliseconds."""
        return self.charge.time


@dataclass(frozen=True, slots=True)
class LoggedReply:
    """An answer or a void in the log.

    Attributes:
        entry: its place.
    """

    entry: int
    reply: Generated | Void

    @property
    def name(self) -> str:
        """What findings call it."""
        return f"{self.reply.KIND} entry {self.entry}"


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
        return f"charge entry {self.entry}"


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
        return f"{self.kind} entry {self.entry}"


class LoggedCharges:
    """The charge entries in log order, each read when it is asked for."""

    def __init__(self, entries: LoggedEntries) -> None:
        self._entries = entries
        self._positions, self._pseudonyms = array("I"), Pseudonyms()
        # By number, both ways: a window has few tenants.
        self._names: list[tuple[str, str]] = []
        self._named: dict[tuple[str, str], int] = {}
        self._names_of = array("I")
        self._slots, self._counters, self._times = array("I"), array("I"), array("Q")

    def add(self, position: int, body: Charge) -> None:
        """Add the charge entry at a position among the entries."""
        self._positions.append(position)
        self._pseudonyms.add(body.pseudonym)
        name = (body.window, body.tenant)
        number = self._named.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        self._names_of.append(number)
        self._slots.append(body.slot)
        self._counters.append(body.counter)
        self._times.append(body.time)

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[LoggedCharge]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> LoggedCharge:
        entry = self._entries[self._positions[number]]
        return LoggedCharge(entry.index, entry.body, Charge.parse(entry.body))

    def summary(self, number: int) -> ChargeSummary:
        """Return what is kept of one; nothing is read."""
        return ChargeSummary(
            number,
            self._entries.index(self._positions[number]),
            *self._names[self._names_of[number]],
            self._pseudonyms[number],
            self._slots[number],
            self._counters[number],
            self._times[number],
        )

    def summaries(self) -> Iterator[ChargeSummary]:
        """Return what is kept of each, in log order; nothing is read."""
        return map(self.summary, range(len(self)))

    def number_of(self, entry: int) -> int | None:
        """Return the number of the charge entry at a place of the log; None if there is none."""

        def place(position: int) -> int:
            return self._entries.index(position)

        number = bisect_left(self._positions, entry, key=place)
        if number == len(self) or place(self._positions[number]) != entry:
            return None
        return number

    def at(self, places: Iterable[int]) -> tuple[LoggedCharge, ...]:
        """Return the charge entries at these places of the log, in log order; others are none."""
        numbers = map(self.number_of, sorted(places))
        return tuple(self[number] for number in numbers if number is not None)

    def of_tenant(self, tenant: str) -> npt.NDArray[np.int64]:
        """Return int64[R], numbers of the charge entries that name a tenant, rising."""
        named = [number for (_, name), number in self._named.items() if name == tenant]
        return np.flatnonzero(np.isin(np.frombuffer(self._names_of, np.uint32), named))

    def of_account(self, pseudonym: bytes) -> list[ChargeSummary]:
        """Return what is kept of an account's charge entries, in log order."""
        return [self.summary(number) for number in self._pseudonyms.find(pseudonym)]

    def count(self, pseudonym: bytes) -> int:
        """Return how many charge entries an account has."""
        return len(self._pseudonyms.find(pseudonym))

    def accounts(self) -> Iterator[bytes]:
        """Yield the pseudonym of each account with a charge entry, by the first of them."""
        return (self._pseudonyms[number] for number in self._pseudonyms.firsts.tolist())


class LoggedReplies:
    """Answers and voids in log order, each read when it is asked for."""

    def __init__(self, entries: LoggedEntries) -> None:
        self._entries = entries
        self._positions, self._charges, self._times = array("I"), array("Q"), array("Q")

    def add(self, position: int, body: Generated | Void) -> None:
        """Add the answer or void at a position among the entries."""
        self._positions.append(position)
        self._charges.append(body.charge)
        self._times.append(body.time)

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[LoggedReply]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> LoggedReply:
        entry = self._entries[self._positions[number]]
        kind: type[Generated] | type[Void] = Generated if entry.kind == Generated.KIND else Void
        return LoggedReply(entry.index, kind.parse(entry.body))

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
                reply = self[number].reply
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
