"""From mu to what an attacker can do (docs/notes/accounting.md §8).

Every value is for the worst case over attackers. Advantages are for the relation they are
stated under; comparing two different records under null-replace costs twice the mu.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.accounting.checks import check_count, check_decimal, check_exact
from ragaudit.privacy.accounting.events import NeighboringRelation, NoisyScores
from ragaudit.privacy.accounting.normal import cdf, decimal_of, precise, quantile, tail

__all__ = [
    "Prior",
    "attribute_advantage",
    "auc",
    "membership_advantage",
    "reconstruction_advantage",
    "record_mu",
    "trade_off_gap",
]


@dataclass(frozen=True, slots=True)
class Prior:
    """What the bounds need to know of an attacker's prior over candidate records.

    Attributes:
        collision: kappa_pi, the sum of squared probabilities, in (0, 1].
        least_ball, largest_ball: kappa_minus and kappa_plus, the least and the largest
            probability of the set of records that count as a successful guess, in [0, 1].

    Raises:
        InvalidArgumentError: a value out of its range, or not exact.
    """

    collision: Fraction
    least_ball: Fraction
    largest_ball: Fraction

    def __post_init__(self) -> None:
        for where in ("collision", "least_ball", "largest_ball"):
            value = getattr(self, where)
            check_exact(value, where)
            if not 0 <= value <= 1:
                raise InvalidArgumentError("value out of range", where=where, expected="0 to 1")
        if self.collision == 0:
            raise InvalidArgumentError("value out of range", where="collision", expected="above 0")
        if self.least_ball > self.largest_ball:
            raise InvalidArgumentError(
                "above largest_ball", where="least_ball", expected="at most largest_ball"
            )

    @classmethod
    def uniform(cls, candidates: int) -> "Prior":
        """Return the uniform prior over ``candidates`` >= 2 records, exact guesses only."""
        check_count(candidates, "candidates", least=2)
        share = Fraction(1, candidates)
        return cls(share, share, share)


@precise
def membership_advantage(mu: Decimal) -> Decimal:
    """Return ``2 Phi(mu/2) - 1``: true minus false positive rate, at best; total variation."""
    check_decimal(mu, "mu", least=Decimal(0))
    return 1 - 2 * tail(mu / 2)


@precise
def auc(mu: Decimal) -> Decimal:
    """Return ``Phi(mu/sqrt 2)``: the largest area under a ROC curve."""
    check_decimal(mu, "mu", least=Decimal(0))
    return cdf(mu / Decimal(2).sqrt())


@precise
def trade_off_gap(mu: Decimal, alpha: Decimal) -> Decimal:
    """Return ``1 - f(alpha) - alpha``, f the trade-off function of mu-GDP, alpha in [0, 1]."""
    check_decimal(mu, "mu", least=Decimal(0))
    check_decimal(alpha, "alpha", least=Decimal(0), most=Decimal(1))
    if alpha in (0, 1):
        return Decimal(0)
    return tail(quantile(alpha) - mu) - alpha


@precise
def attribute_advantage(mu: Decimal, prior: Prior) -> Decimal:
    """Return ``TV (1 - kappa)``: the advantage of an attacker with any side knowledge.

    Balboa et al., "Understanding risk in DP", Theorem 4.2; mu must be that of two records
    (:func:`record_mu`).
    """
    return membership_advantage(mu) * (1 - decimal_of(prior.collision))


@precise
def reconstruction_advantage(mu: Decimal, prior: Prior) -> Decimal:
    """Return the advantage of an attacker without knowledge specific to the target.

    The smaller of both forms of the same paper's Theorem 5.1, and never more than
    :func:`attribute_advantage`. The gap is concave with its peak at ``tail(mu/2)``.
    """
    kappa = decimal_of(prior.collision)
    if kappa == 1:
        return Decimal(0)
    plus, minus = decimal_of(prior.largest_ball), decimal_of(prior.least_ball)
    first = _largest_gap(mu, minus, plus)
    second = (1 - kappa) * _largest_gap(mu, Decimal(0), min(Decimal(1), plus / (1 - kappa)))
    return min(first, second, attribute_advantage(mu, prior))


@precise
def record_mu(event: NoisyScores) -> Decimal:
    """Return mu for telling two different records apart: twice mu under null-replace."""
    mu = event.mu()
    return mu if event.relation is NeighboringRelation.REPLACE else 2 * mu


@precise
def _largest_gap(mu: Decimal, low: Decimal, high: Decimal) -> Decimal:
    peak = tail(mu / 2)
    if low <= peak <= high:
        # The closed value; evaluating at a peak that is tiny would lose it.
        return membership_advantage(mu)
    return trade_off_gap(mu, high if peak > high else low)
