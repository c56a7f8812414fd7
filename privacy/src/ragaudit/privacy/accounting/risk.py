"""From mu to what an attacker can do (docs/notes/accounting.md §8).

Every value is for the worst case over attackers. Advantages are for the relation they are
stated under; comparing two different records under null-replace costs twice the mu.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Self

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting.events import NoisyScores, check_scores
from ragaudit.privacy.normal import cdf, decimal_of, precise, quantile, tail
from ragaudit.privacy.numbers import Number, count, decimal, exact, instance, shown


@dataclass(frozen=True, slots=True)
class PriorSummary:
    """What the bounds for unknown mechanisms need to know of prior and success sets.

    Attributes:
        collision_probability: ``kappa_pi`` in [0, 1], the sum of squared probabilities; 0 for a
            continuous law, for a mixed law the sum of the squares of its atoms.
        least_ball, largest_ball: ``kappa_minus`` and ``kappa_plus`` in [0, 1], the least and the
            largest prior probability of a success set, over all guesses of the domain.

    Raises:
        InvalidArgumentError: a value out of range, or ``least_ball > largest_ball``.
    """

    collision_probability: Fraction
    least_ball: Fraction
    largest_ball: Fraction

    def __post_init__(self) -> None:
        for where in ("collision_probability", "least_ball", "largest_ball"):
            value = exact(getattr(self, where), where, least=0, most=1)
            object.__setattr__(self, where, value)
        # Exchanged, they would bound an empty interval, and the maximum over it nothing.
        if self.least_ball > self.largest_ball:
            raise InvalidArgumentError(
                f"{shown(self.least_ball)} is above largest_ball {shown(self.largest_ball)}",
                where="least_ball",
                expected="at most largest_ball",
            )

    @classmethod
    def of(cls, collision_probability: Number, least_ball: Number, largest_ball: Number) -> Self:
        """Return the summary for numbers of any kind (:mod:`ragaudit.privacy.numbers`).

        Args:
            collision_probability, least_ball, largest_ball: in [0, 1].

        Raises:
            InvalidArgumentError: a value out of range, or ``least_ball > largest_ball``.
        """
        return cls(collision_probability, least_ball, largest_ball)  # type: ignore[arg-type]

    @classmethod
    def uniform(cls, records: int) -> Self:
        """Return the summary of the uniform prior over ``records`` >= 2, exact guesses only.

        Args:
            records: n, at least 2; each has probability 1/n.

        Raises:
            InvalidArgumentError: fewer than two records.
        """
        share = Fraction(1, count(records, "records", least=2))
        return cls(share, share, share)


@precise
def membership_advantage(mu: Number) -> Decimal:
    """Return ``2 Phi(mu/2) - 1``: true minus false positive rate, at best; total variation.

    Args:
        mu: >= 0.

    Raises:
        InvalidArgumentError: out of range.
    """
    # Dong, Roth and Su 2022: the largest gap of f is where both error rates are equal.
    return 1 - 2 * tail(decimal(mu, "mu", least=0) / 2)


@precise
def auc(mu: Number) -> Decimal:
    """Return ``Phi(mu/sqrt 2)``: the largest area under a ROC curve.

    Args:
        mu: >= 0.

    Raises:
        InvalidArgumentError: out of range.
    """
    return cdf(decimal(mu, "mu", least=0) / Decimal(2).sqrt())


@precise
def trade_off_gap(mu: Number, alpha: Number) -> Decimal:
    """Return ``1 - f(alpha) - alpha``, f the trade-off function of mu-GDP.

    Args:
        mu: >= 0.
        alpha: false positive rate, in [0, 1].

    Raises:
        InvalidArgumentError: a value out of range.
    """
    shift = decimal(mu, "mu", least=0)
    level = decimal(alpha, "alpha", least=0, most=1)
    # The gap is 0 at both ends, where the quantile is infinite.
    if level in (0, 1):
        return Decimal(0)
    # f(alpha) = Phi(Phi^-1(1 - alpha) - mu); 1 - f as a tail keeps the digits.
    return tail(quantile(level) - shift) - level


@precise
def attribute_advantage(mu: Number, prior: PriorSummary) -> Decimal:
    """Return ``TV (1 - kappa)``: the advantage of an attacker with any side knowledge.

    Balboa et al., "Understanding risk in DP", Theorem 4.2.

    Args:
        mu: that of two records (:func:`record_mu`), >= 0.
        prior: over the records.

    Raises:
        InvalidArgumentError: out of range, or not a prior.
    """
    instance(prior, PriorSummary, "prior")
    return membership_advantage(mu) * (1 - decimal_of(prior.collision_probability))


@precise
def reconstruction_advantage(mu: Number, prior: PriorSummary) -> Decimal:
    """Return the advantage of an attacker without knowledge specific to the target.

    The smaller of both forms of the same paper's Theorem 5.1, and never more than
    :func:`attribute_advantage`. The gap is concave with its peak at ``tail(mu/2)``.

    Args:
        mu, prior: as for :func:`attribute_advantage`.

    Raises:
        InvalidArgumentError: out of range, or not a prior.
    """
    instance(prior, PriorSummary, "prior")
    shift, kappa = decimal(mu, "mu", least=0), decimal_of(prior.collision_probability)
    # The prior is certain: nothing is left to gain, and the second form divides by 1 - kappa.
    if kappa == 1:
        return Decimal(0)
    plus, minus = decimal_of(prior.largest_ball), decimal_of(prior.least_ball)
    first = _largest_gap(shift, minus, plus)
    second = (1 - kappa) * _largest_gap(shift, Decimal(0), min(Decimal(1), plus / (1 - kappa)))
    # Both forms of Theorem 5.1 hold, so the smaller one does.
    return min(first, second, attribute_advantage(shift, prior))


@precise
def record_mu(event: NoisyScores) -> Decimal:
    """Return mu for telling two different records apart: twice mu under null-replace.

    Args:
        event: what was released.

    Raises:
        InvalidArgumentError: another type.
    """
    check_scores(event, "event")
    mu = event.mu()
    # Under null-replace two records differ by two steps, each of this mu.
    return mu if event.relation is NeighboringRelation.REPLACE else 2 * mu


@precise
def _largest_gap(mu: Decimal, low: Decimal, high: Decimal) -> Decimal:
    peak = tail(mu / 2)
    if low <= peak <= high:
        # The closed value; evaluating at a peak that is tiny would lose it.
        return membership_advantage(mu)
    return trade_off_gap(mu, high if peak > high else low)
