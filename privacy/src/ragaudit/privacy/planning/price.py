"""The terms of a window, and the price of one sigma under them: epsilon and advantage."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import FIXED_SIZE, NeighboringRelation
from ragaudit.encoding.text import ceil_decimal, parse_decimal
from ragaudit.privacy.accounting import NoFiniteBound, NoisyScores, epsilon, least_epsilon, risk
from ragaudit.privacy.accounting.events import MAX_GROUP, MAX_QUERIES

__all__ = [
    "NO_FINITE_EPSILON",
    "PLACES",
    "Missing",
    "Price",
    "Targets",
    "price",
    "price_of_account",
    "price_of_coalition",
]


@dataclass(frozen=True)
class Missing:
    """A number that does not exist.

    Attributes:
        reason: why, a clause without a full stop.
    """

    reason: str


@dataclass(frozen=True)
class Targets:
    """The terms of a window, before sigma is known (docs/spec/07-coalition.md).

    Attributes:
        epsilon: decimal > 0, promised to one account for all its queries; None if sigma is
            given instead.
        delta: decimal in (0, 1), of that promise.
        queries: r >= 1, queries of one account in a window.
        coalition: k_max >= 1, accounts that may pool their answers.
        delta_policy: decimal in (0, 1), at which the epsilon of a coalition is stated.
        relation: "replace" or "null-replace".
        rows_per_document: g, 1 to 1000; 1 means that the protected unit is the row.
        slots: accounts of the tenant that can register, at least ``coalition``.
        windows: windows of the same terms on the same documents, >= 1.

    Raises:
        MalformedError: a value out of its range; ``where`` is the attribute's name.
    """

    epsilon: str | None
    delta: str
    queries: int
    coalition: int
    delta_policy: str
    relation: str = NeighboringRelation.REPLACE.value
    rows_per_document: int = 1
    slots: int = 64
    windows: int = 1

    @property
    def protected_unit(self) -> str:
        """Return what neighbours differ in one of: "row" or "document"."""
        return "row" if self.rows_per_document == 1 else "document"

    def __post_init__(self) -> None:
        # Read, not stored: the plan repeats the decimals as they were given.
        if self.epsilon is not None and parsed(self.epsilon, "epsilon") <= 0:
            raise MalformedError("epsilon is 0", where="epsilon", expected="above 0")
        for name in ("delta", "delta_policy"):
            if not 0 < parsed(getattr(self, name), name) < 1:
                raise MalformedError("not a probability", where=name, expected="between 0 and 1")
        for name, most in (
            ("queries", MAX_QUERIES),
            ("coalition", MAX_QUERIES),
            ("rows_per_document", MAX_GROUP),
            ("slots", MAX_QUERIES),
            ("windows", MAX_QUERIES),
        ):
            _check_count(getattr(self, name), name, most)
        if self.relation not in FIXED_SIZE:
            raise MalformedError(
                f"unknown relation {self.relation!r}",
                where="relation",
                expected="replace or null-replace",
            )
        # Fewer accounts than may collude: the coalition would be priced beyond the tenant.
        if self.slots < self.coalition:
            raise MalformedError(
                f"{self.slots} slots", where="slots", expected=f"at least {self.coalition} accounts"
            )
        if self.queries * self.slots * self.windows > MAX_QUERIES:
            raise MalformedError(
                "too many queries of all accounts in all windows",
                where="queries",
                expected=f"queries · slots · windows up to {MAX_QUERIES}",
            )


def parsed(text: str, name: str) -> Fraction:
    """Return the value of a decimal string.

    Args:
        text: as a policy writes it, at most 12 places.
        name: of the value, for the error.

    Raises:
        MalformedError: not a decimal; ``where`` is ``name``.
    """
    try:
        return parse_decimal(text)
    except MalformedError as error:
        raise MalformedError(error.what, where=name, expected=error.expected) from None


def _check_count(value: object, name: str, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise MalformedError(
            f"{name} is {value!r}", where=name, expected=f"a whole number, 1 to {most}"
        )


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
        # No finite bound is a result here, not an error: a plan shows it beside the others.
        finite: Decimal | None = epsilon(event, at)
    except NoFiniteBound:
        finite = None
    ideal = finite if _sampler_is_negligible(event, finite, at) else least_epsilon(mu, at)
    assert ideal is not None  # without a sampler's share there always is one
    # Each of the two laws is within the slack of its ideal.
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
    """Return the event of ``queries`` answers with noise sigma (cosine units) under the targets.

    Args:
        targets: relation and rows of a document.
        sigma: decimal, cosine units.
        queries: 0 to 10^13.

    Raises:
        MalformedError: a sigma outside the sampler's range, or too many queries.
    """
    return NoisyScores.of_policy(sigma, targets.relation, targets.rows_per_document, queries)


def price_of_account(targets: Targets, sigma: str) -> Price:
    """Return the price of one account's r queries at ``targets.delta``.

    Args:
        targets: the terms.
        sigma: decimal, cosine units.
    """
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
