"""Questions that are answered in words as the log has them: charge entries, answers and voids."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from ragaudit.ledger.messages.charges import Charge, Generated, Void
from ragaudit.ledger.messages.records import Body, Registration
from ragaudit.verifier.procedure.logged_entries import (
    LoggedEntries,
    LoggedRegistrations,
    Pseudonyms,
)


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
