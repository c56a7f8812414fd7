"""What was released: events, apart from the accountants that price them.

An event documents the mechanism completely, so that an accountant needs nothing else: the
lattice parameter, who may differ from whom, the privacy unit, the number of queries and how
far the implemented sampler is from the law it claims (docs/notes/accounting.md §1).

Events are made of events where several accounts, windows or mechanisms released together.
:func:`releases` takes them apart into noisy scores; an unknown event is refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from ragaudit.encoding.errors import InvalidArgumentError, UnsupportedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.relations import FIXED_SIZE, NeighboringRelation
from ragaudit.privacy.normal import root_up
from ragaudit.privacy.numbers import Number, count, exact, instance

SCORE_UNIT = SQUARED_NORM
"""Lattice units of a score of 1 (docs/spec/02-integers.md); scores lie in ±16129."""

GAMMA = Fraction(1, 2**100)
"""Certified total-variation distance of one noise sample (docs/spec/03-noise.md §3.5)."""

# docs/notes/accounting.md claim 2: the part of the variance that the rounding kernel takes.
KERNEL_VARIANCE = 16
SIGMA_UNITS_MIN = 16
SIGMA_UNITS_MAX = 2**40
MAX_QUERIES = 10**13
MAX_GROUP = 1000


@dataclass(frozen=True)
class NoisyScores:
    """``queries`` adaptive releases of all scores plus discrete Gaussian noise.

    Attributes:
        sigma_units: parameter of the noise on the score lattice, 16 to 2^40.
        relation: the neighbouring relation.
        group_size: rows that one privacy unit may own (1: the unit is the row).
        queries: number of releases, 0 to 10^13.
        gamma: total-variation distance of one implemented sample from the discrete Gaussian.

    Raises:
        InvalidArgumentError: a value out of its range, or of another type.
    """

    sigma_units: Fraction
    relation: NeighboringRelation
    group_size: int
    queries: int
    gamma: Fraction = GAMMA

    def __post_init__(self) -> None:
        units = exact(self.sigma_units, "sigma_units", least=SIGMA_UNITS_MIN, most=SIGMA_UNITS_MAX)
        relation = NeighboringRelation.of(self.relation)
        # Under add-remove a position exists in one world only: no delta is small (claim 24).
        if relation not in FIXED_SIZE:
            raise InvalidArgumentError(
                f"positions are released: {relation} has no guarantee",
                where="relation",
                expected=" or ".join(FIXED_SIZE),
            )
        read = {
            "sigma_units": units,
            "relation": relation,
            "group_size": count(self.group_size, "group_size", most=MAX_GROUP),
            "queries": count(self.queries, "queries", least=0, most=MAX_QUERIES),
            "gamma": exact(self.gamma, "gamma", least=0, below=1),
        }
        # The class is frozen: what is stored is exact, whatever kind of number was given.
        for name, value in read.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_policy(
        cls,
        sigma: Number,
        relation: str,
        group_size: int,
        queries: int,
        gamma: Number = GAMMA,
    ) -> "NoisyScores":
        """Return the event for a policy's members (sigma in cosine units).

        Args:
            sigma: cosine units, 16/16129 to 2^40/16129.
            relation: "replace" or "null-replace".
            group_size: g, 1 to 1000.
            queries: 0 to 10^13.
            gamma: in [0, 1).

        Raises:
            InvalidArgumentError: an unknown relation, or a value out of range.
        """
        least, most = Fraction(SIGMA_UNITS_MIN, SCORE_UNIT), Fraction(SIGMA_UNITS_MAX, SCORE_UNIT)
        cosine = exact(sigma, "sigma", least=least, most=most)
        return cls(cosine * SCORE_UNIT, relation, group_size, queries, gamma)  # type: ignore[arg-type]

    def with_queries(self, queries: int) -> "NoisyScores":
        """Return the same mechanism queried another number of times.

        Args:
            queries: 0 to 10^13.

        Raises:
            InvalidArgumentError: out of range.
        """
        return replace(self, queries=queries)

    @property
    def squared_sensitivity(self) -> int:
        """Return the squared Euclidean change of one query's scores, in lattice units.

        A row's score moves by at most 2·16129 (replace) or 16129 (null-replace), and g rows by at
        most that in each of g coordinates.
        """
        # Scores lie in ±16129; the null record scores 0.
        move = SCORE_UNIT * (2 if self.relation is NeighboringRelation.REPLACE else 1)
        # Euclidean over g coordinates: the norm grows with the root of g, its square with g.
        return self.group_size * move * move

    @property
    def samples(self) -> int:
        """Return how many noise samples matter: one per query and row of the unit."""
        # The other rows have the same score in both worlds, and so the same law (claim 4).
        return self.queries * self.group_size

    @property
    def slack(self) -> Fraction:
        """Return ``m · g · gamma``, the distance of all those samples together."""
        return self.samples * self.gamma

    def mu(self) -> Decimal:
        """Return mu for which the ideal release is mu-GDP, rounded up (claims 2 and 3)."""
        # Rounded up in the root: a larger mu promises less.
        return self._mu(self.sigma_units**2 - KERNEL_VARIANCE)

    def mu_gaussian_limit(self) -> Decimal:
        """Return mu of the continuous Gaussian of the same parameter: a limit, not a bound."""
        return self._mu(self.sigma_units**2)

    def rho(self) -> Fraction:
        """Return rho for which the ideal release is rho-zCDP (claim 5), exactly."""
        # Canonne, Kamath and Steinke 2020: no divergence exceeds that of the continuous Gaussian.
        return self.squared_sensitivity * self.queries / (2 * self.sigma_units**2)

    def _mu(self, variance: Fraction) -> Decimal:
        return root_up(self.squared_sensitivity * self.queries / variance)


def check_scores(value: object, where: str) -> None:
    """Check that the argument ``where`` is a :class:`NoisyScores`.

    Args:
        value: the argument.
        where: its name, for the error.

    Raises:
        InvalidArgumentError: an object of another type.
    """
    instance(value, NoisyScores, where)


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
        count(self.accounts, "accounts")
        count(self.windows, "windows")
        self.release()

    def release(self) -> NoisyScores:
        """Return the same mechanism queried ``w·k·r`` times."""
        # Who asks is no input of the mechanism: k accounts are one analyst (claim 17).
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
        count(self.accounts, "accounts")
        instance(self.counts, tuple, "counts")
        for number in self.counts:
            count(number, "counts", least=0)
        self.release()

    def release(self) -> NoisyScores:
        """Return the mechanism queried as often as the ``accounts`` largest counts together."""
        # The worst case among those that were there: whoever they are, they asked no more.
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
        count(self.records, "records", least=0)
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
        # Their neighbours differ in different things: a sum of costs would bound nothing.
        if len({release.relation for release in releases(self)}) > 1:
            raise InvalidArgumentError(
                "parts of different relations have no common neighbours",
                where="relation",
                expected="one relation for all parts",
            )


Event = NoisyScores | Coalition | RealisedCoalition | WholeTenant | Composition


def releases(event: Event) -> tuple[NoisyScores, ...]:
    """Return the noisy scores of which an event consists.

    Args:
        event: of any kind, nested to any depth.

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
    """Return the neighbouring relation under which an event is priced.

    Args:
        event: all its releases have one relation.

    Raises:
        UnsupportedError: an unknown event.
    """
    return releases(event)[0].relation


def _flat(parts: Iterable[Event]) -> Iterable[NoisyScores]:
    for part in parts:
        yield from releases(part)
