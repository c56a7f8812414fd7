"""The records of a window's log, of which there may be a million: read again when they are needed.

What most checks ask of a record (whose it is, which query, when, under what) is kept in columns of
numbers, some 120 bytes for each; the rest, digests and sketch, is read from the handover again.
"""

import weakref
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import BinaryIO, Final, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.ledger.messages.account_index import ListedRecord
from ragaudit.ledger.messages.handover import Entry, read_frame
from ragaudit.ledger.messages.records import Record

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
