"""Events made of events: what several accounts, windows or mechanisms released together.

An event says what happened and nothing about its cost. :func:`releases` takes it apart into the
noisy scores of which it consists; an unknown event is refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ragaudit.encoding.errors import InvalidArgumentError, UnsupportedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting.events import NoisyScores, check_scores
from ragaudit.privacy.numbers import count as whole
from ragaudit.privacy.numbers import instance

__all__ = [
    "Coalition",
    "Composition",
    "Event",
    "RealisedCoalition",
    "WholeTenant",
    "relation_of",
    "releases",
]


@dataclass(frozen=True, slots=True)
class Coalition:
    """Accounts of one tenant that pool their answers, each at its full allowance.

    Attributes:
        account: what one account is answered in one window (its ``queries`` is r).
        accounts: k, at least 1.
        windows: w, at least 1: windows over which the same records were indexed.

    Raises:
        InvalidArgumentError: a value out of its range, also of the total number of queries.
    """

    account: NoisyScores
    accounts: int
    windows: int = 1

    def __post_init__(self) -> None:
        check_scores(self.account, "account")
        whole(self.accounts, "accounts")
        whole(self.windows, "windows")
        self.release()

    def release(self) -> NoisyScores:
        """Return the same mechanism queried ``w·k·r`` times."""
        return self.account.with_queries(self.windows * self.accounts * self.account.queries)


@dataclass(frozen=True, slots=True)
class RealisedCoalition:
    """The accounts of a window's log that asked most, as if they had colluded.

    It prices what was asked, not what might have been: no guarantee for another window.

    Attributes:
        mechanism: the noise; its own ``queries`` is not used.
        counts: logged queries of every account.
        accounts: k, how many of them collude; all, if there are fewer.

    Raises:
        InvalidArgumentError: a value out of its range.
    """

    mechanism: NoisyScores
    counts: tuple[int, ...]
    accounts: int

    def __post_init__(self) -> None:
        check_scores(self.mechanism, "mechanism")
        whole(self.accounts, "accounts")
        instance(self.counts, tuple, "counts")
        for count in self.counts:
            whole(count, "counts", least=0)
        self.release()

    def release(self) -> NoisyScores:
        """Return the mechanism queried as often as the ``accounts`` largest counts together."""
        largest = sorted(self.counts, reverse=True)[: self.accounts]
        return self.mechanism.with_queries(sum(largest))


@dataclass(frozen=True, slots=True)
class WholeTenant:
    """All queries to a tenant's index, by whomever: needs no assumption about k.

    Attributes:
        mechanism: the noise; its own ``queries`` is not used.
        records: logged records of the tenant, at least 0.

    Raises:
        InvalidArgumentError: a value out of its range.
    """

    mechanism: NoisyScores
    records: int

    def __post_init__(self) -> None:
        check_scores(self.mechanism, "mechanism")
        whole(self.records, "records", least=0)
        self.release()

    def release(self) -> NoisyScores:
        """Return the mechanism queried ``records`` times."""
        return self.mechanism.with_queries(self.records)


@dataclass(frozen=True, slots=True)
class Composition:
    """Adaptive releases about the same records, by mechanisms that may differ in their noise.

    Attributes:
        parts: events of one relation, at least one.

    Raises:
        InvalidArgumentError: no part, or parts of different relations.
        UnsupportedError: a part that is no known event.
    """

    parts: tuple["Event", ...]

    def __post_init__(self) -> None:
        instance(self.parts, tuple, "parts")
        if not self.parts:
            raise InvalidArgumentError("nothing to compose", where="parts", expected="at least one")
        if len({release.relation for release in releases(self)}) > 1:
            raise InvalidArgumentError(
                "parts of different relations have no common neighbours",
                where="relation",
                expected="one relation for all parts",
            )


Event = NoisyScores | Coalition | RealisedCoalition | WholeTenant | Composition


def releases(event: Event) -> tuple[NoisyScores, ...]:
    """Return the noisy scores of which an event consists.

    Raises:
        UnsupportedError: not one of the known events; nothing is guessed about its cost.
    """
    match event:
        case NoisyScores():
            return (event,)
        case Coalition() | RealisedCoalition() | WholeTenant():
            return (event.release(),)
        case Composition():
            return tuple(_flat(event.parts))
        case _:
            raise UnsupportedError(
                f"unknown event of type {type(event).__name__}",
                where="event",
                expected="NoisyScores, Coalition, RealisedCoalition, WholeTenant or Composition",
            )


def relation_of(event: Event) -> NeighboringRelation:
    """Return the neighbouring relation under which an event is priced."""
    return releases(event)[0].relation


def _flat(parts: Iterable[Event]) -> Iterable[NoisyScores]:
    for part in parts:
        yield from releases(part)
