"""The price of one sigma for a number of queries: epsilon and advantage."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ragaudit.encoding.text import ceil_decimal, parse_decimal
from ragaudit.privacy.accounting import NoFiniteBound, NoisyScores, epsilon, least_epsilon, risk
from ragaudit.privacy.guarantees import NeighboringRelation
from ragaudit.privacy.planning.missing import Missing
from ragaudit.privacy.planning.targets import Targets

__all__ = [
    "NO_FINITE_EPSILON",
    "PLACES",
    "Price",
    "price",
    "price_of_account",
    "price_of_coalition",
]

PLACES = 6
"""Decimals of stated epsilons and advantages, rounded up, against the provider."""

NO_FINITE_EPSILON = Missing(
    "the sampler's distance from the discrete Gaussian, times 1 + e^epsilon, exceeds delta"
)
"""Why a price may have no epsilon."""


@dataclass(frozen=True)
class Price:
    """Upper limits on what ``queries`` answers reveal about one protected unit.

    Attributes:
        queries: answers that are pooled.
        delta: decimal in (0, 1), at which both epsilons are stated.
        relation: under which all of this holds.
        epsilon: decimal; None if there is no finite bound (NO_FINITE_EPSILON).
        ideal_epsilon: the same for a sampler without any distance from the discrete Gaussian:
            always finite, for plots and comparisons, never a guarantee. Equal to epsilon where
            the sampler's share of delta is below 10^-9.
        advantage: decimal in [0, 1]: true minus false positive rate of the best test for
            one unit (docs/notes/accounting.md claim 9).
    """

    queries: int
    delta: str
    relation: NeighboringRelation
    epsilon: str | None
    ideal_epsilon: str
    advantage: str


def price(event: NoisyScores, delta: str) -> Price:
    """Return the price of an event.

    Args:
        event: the noise and the number of queries.
        delta: decimal in (0, 1).
    """
    mu, at = event.mu(), parse_decimal(delta)
    try:
        finite: Decimal | None = epsilon(event, at)
    except NoFiniteBound:
        finite = None
    ideal = finite if _sampler_is_negligible(event, finite, at) else least_epsilon(mu, at)
    assert ideal is not None  # without a sampler's share there always is one
    advantage = Fraction(risk.membership_advantage(mu)) + 2 * event.slack
    return Price(
        event.queries,
        delta,
        NeighboringRelation(event.relation),
        None if finite is None else ceil_decimal(Fraction(finite), PLACES),
        ceil_decimal(Fraction(ideal), PLACES),
        ceil_decimal(min(Fraction(1), advantage), PLACES),
    )


def _sampler_is_negligible(event: NoisyScores, finite: Decimal | None, delta: Fraction) -> bool:
    """Return whether the sampler's share is below 10^-9 of delta: saves a second search."""
    return finite is not None and event.slack * (1 + Fraction(finite.exp())) < delta / 10**9


def event_of(targets: Targets, sigma: str, queries: int) -> NoisyScores:
    """Return the event of ``queries`` answers with noise sigma (cosine units) under the targets."""
    return NoisyScores.of_policy(sigma, targets.relation, targets.rows_per_document, queries)


def price_of_account(targets: Targets, sigma: str) -> Price:
    """Return the price of one account's r queries at ``targets.delta``."""
    return price(event_of(targets, sigma, targets.queries), targets.delta)


def price_of_coalition(
    targets: Targets, sigma: str, accounts: int | None = None, windows: int = 1
) -> Price:
    """Return the price of the pooled answers of some accounts at ``targets.delta_policy``.

    Args:
        targets: the terms.
        sigma: decimal, cosine units.
        accounts: how many pool; k_max if None.
        windows: over so many windows.
    """
    queries = (targets.coalition if accounts is None else accounts) * targets.queries * windows
    return price(event_of(targets, sigma, queries), targets.delta_policy)
