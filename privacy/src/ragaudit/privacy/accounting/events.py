"""What was released: events, apart from the accountants that price them.

An event documents the mechanism completely, so that an accountant needs nothing else: the
lattice parameter, who may differ from whom, the privacy unit, the number of queries and how
far the implemented sampler is from the law it claims (docs/notes/accounting.md §1).
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.accounting.checks import check_count, check_exact, read_decimal
from ragaudit.privacy.accounting.normal import decimal_of, precise

__all__ = ["GAMMA", "SCORE_UNIT", "NeighboringRelation", "NoisyScores", "check_scores"]

SCORE_UNIT = 127 * 127
"""Lattice units of a score of 1 (docs/spec/02-integers.md); scores lie in ±16129."""

GAMMA = Fraction(1, 2**100)
"""Certified total-variation distance of one noise sample (docs/spec/03-noise.md §3.5)."""

# docs/notes/accounting.md claim 2: the part of the variance that the rounding kernel takes.
KERNEL_VARIANCE = 16
SIGMA_UNITS_MIN = 16
SIGMA_UNITS_MAX = 2**40
MAX_QUERIES = 10**13
MAX_GROUP = 1000


class NeighboringRelation(StrEnum):
    """Which two indexes of the same number of rows are neighbours.

    REPLACE: one row (or document of up to g rows) is replaced by any other.
    NULL_REPLACE: it is replaced by null rows, whose vector is zero.
    """

    REPLACE = "replace"
    NULL_REPLACE = "null-replace"


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
        check_exact(self.sigma_units, "sigma_units")
        check_exact(self.gamma, "gamma")
        check_count(self.group_size, "group_size", most=MAX_GROUP)
        check_count(self.queries, "queries", least=0, most=MAX_QUERIES)
        checks = (
            (SIGMA_UNITS_MIN <= self.sigma_units <= SIGMA_UNITS_MAX, "sigma_units", "16 to 2^40"),
            (isinstance(self.relation, NeighboringRelation), "relation", "a NeighboringRelation"),
            (0 <= self.gamma < 1, "gamma", "a distance in [0, 1)"),
        )
        for holds, where, expected in checks:
            if not holds:
                raise InvalidArgumentError("value out of range", where=where, expected=expected)

    @classmethod
    def of_policy(
        cls, sigma: str, relation: str, group_size: int, queries: int, gamma: Fraction = GAMMA
    ) -> "NoisyScores":
        """Return the event for a policy's members (sigma in cosine units, as a decimal).

        Raises:
            InvalidArgumentError: not a decimal, an unknown relation, or a value out of range.
        """
        units = read_decimal(sigma, "sigma") * SCORE_UNIT
        if not SIGMA_UNITS_MIN <= units <= SIGMA_UNITS_MAX:
            raise InvalidArgumentError(
                "value out of range", where="sigma", expected=f"16 to 2^40 times 1/{SCORE_UNIT}"
            )
        return cls(units, _relation(relation), group_size, queries, gamma)

    def with_queries(self, queries: int) -> "NoisyScores":
        """Return the same mechanism queried another number of times."""
        return replace(self, queries=queries)

    @property
    def squared_sensitivity(self) -> int:
        """Squared Euclidean change of one query's scores, in lattice units.

        A row's score moves by at most 2·16129 (replace) or 16129 (null-replace), and g rows
        by at most that in each of g coordinates.
        """
        move = SCORE_UNIT * (2 if self.relation is NeighboringRelation.REPLACE else 1)
        return self.group_size * move * move

    @property
    def samples(self) -> int:
        """Noise samples whose law matters: one per query and row of the unit."""
        return self.queries * self.group_size

    @property
    def slack(self) -> Fraction:
        """``m · g · gamma``, the distance of all those samples together."""
        return self.samples * self.gamma

    def mu(self) -> Decimal:
        """Return mu for which the ideal release is mu-GDP, rounded up (claims 2 and 3)."""
        return self._mu(self.sigma_units**2 - KERNEL_VARIANCE)

    def mu_gaussian_limit(self) -> Decimal:
        """Return mu of the continuous Gaussian of the same parameter: a limit, not a bound."""
        return self._mu(self.sigma_units**2)

    def rho(self) -> Fraction:
        """Return rho for which the ideal release is rho-zCDP (claim 5), exactly."""
        return self.squared_sensitivity * self.queries / (2 * self.sigma_units**2)

    @precise
    def _mu(self, variance: Fraction) -> Decimal:
        squared = self.squared_sensitivity * self.queries / variance
        root = decimal_of(squared).sqrt()
        return root if Fraction(root) ** 2 >= squared else root * (1 + Decimal("1e-70"))


def check_scores(value: object, where: str) -> None:
    """Refuse what is no :class:`NoisyScores`."""
    if not isinstance(value, NoisyScores):
        raise InvalidArgumentError(
            f"not noisy scores: {type(value).__name__}", where=where, expected="NoisyScores"
        )


def _relation(text: str) -> NeighboringRelation:
    for kind in NeighboringRelation:
        if kind.value == text:
            return kind
    raise InvalidArgumentError(
        f"unknown relation {text!r}", where="relation", expected="replace or null-replace"
    )
