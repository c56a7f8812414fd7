"""Sigma for the targets of a window, and what each coalition learns at it."""

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.relations import FIXED_SIZE, NeighboringRelation
from ragaudit.encoding.text import ceil_decimal, floor_decimal, parse_decimal
from ragaudit.privacy.accounting import risk
from ragaudit.privacy.accounting.accountants import (
    calibrate_coalition,
    largest_coalition,
    largest_queries,
)
from ragaudit.privacy.accounting.collusion import ScoreReleaseClass
from ragaudit.privacy.accounting.events import MAX_GROUP, MAX_QUERIES, SCORE_UNIT, NoisyScores
from ragaudit.privacy.accounting.gaussian import (
    NoFiniteBound,
    calibrate,
    epsilon,
    gives,
    least_epsilon,
)
from ragaudit.privacy.normal import decimal_of


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


NO_EPSILON = Missing("one account has no finite epsilon to stay within")
"""Why nothing can be said for the promise of a sigma that has none."""


@dataclass(frozen=True)
class BudgetRow:
    """What a coalition learns, at ``delta_policy``.

    Attributes:
        accounts, windows: so many accounts pool their answers of so many windows.
        price: epsilon and advantage of sigma as planned.
        closed_form: the paper's (5.2) with its residual, a decimal: the epsilon that it proves
            for the paper's own, larger noise (:class:`PaperNoise`), not for sigma as planned, at
            the price's delta and relation; Missing for several windows, where
            ``delta_policy <= accounts · delta``, and outside the paper's range.
    """

    accounts: int
    windows: int
    price: Price
    closed_form: str | Missing


@dataclass(frozen=True)
class PaperNoise:
    """The source paper's calibration for the same promise, equation (3.4).

    Attributes:
        sigma: decimal, cosine units, at the sensitivity of the targets' relation and unit.
        ratio: decimal, how many times the exact calibration's sigma it is, rounded down.
        account: what that noise really gives one account; Missing if it is outside the
            sampler's range.
    """

    sigma: str
    ratio: str
    account: Price | Missing


@dataclass(frozen=True)
class Budget:
    """A plan without its retrieval.

    Attributes:
        targets: the terms; ``epsilon`` filled in where sigma was given instead, None if that
            sigma has no finite one.
        sigma: decimal, cosine units (a score of 1 is a cosine of 1).
        calibrated: whether sigma was computed; otherwise it was given.
        account: one account's queries at ``delta``.
        kept: whether sigma keeps the promise (epsilon, delta) to one account; None if no
            epsilon was promised.
        coalitions: rising numbers of accounts in one window, ``coalition`` last.
        tenant: all slots of the tenant, one window.
        over_windows: ``coalition`` accounts over rising numbers of windows, from 2 on.
        paper: the paper's noise for the same promise; Missing outside its range.
        queries_afforded: the most queries for which sigma gives one account
            (epsilon, delta); Missing if there is no finite epsilon.
        accounts_afforded: the most accounts that together stay within epsilon at
            ``delta_policy``; 0 if not even one does; Missing as above.
        coalition_sigma: decimal, cosine units: the least noise with which ``coalition``
            accounts together stay within epsilon at ``delta_policy``, in one window; Missing as
            above, or if no sigma in the sampler's range does it.
    """

    targets: Targets
    sigma: str
    calibrated: bool
    account: Price
    kept: bool | None
    coalitions: tuple[BudgetRow, ...]
    tenant: BudgetRow
    over_windows: tuple[BudgetRow, ...]
    paper: PaperNoise | Missing
    queries_afforded: int | Missing
    accounts_afforded: int | Missing
    coalition_sigma: str | Missing

    @property
    def coalition(self) -> BudgetRow:
        """Return the row of ``k_max`` accounts, as a verdict will state it."""
        return self.coalitions[-1]

    @property
    def judged(self) -> BudgetRow:
        """Return the row of ``k_max`` accounts over all windows, by which a plan is judged."""
        return self.over_windows[-1] if self.over_windows else self.coalition


def sigma_for(targets: Targets) -> str:
    """Return the least sigma with 6 places that keeps (epsilon, delta) for one account.

    Args:
        targets: with an epsilon.

    Raises:
        MalformedError: the targets name no epsilon.
        RefusedError: no sigma in the sampler's range keeps it.
    """
    if targets.epsilon is None:
        raise MalformedError("no epsilon to calibrate for", where="epsilon", expected="a decimal")
    try:
        return calibrate(
            targets.epsilon,
            targets.delta,
            targets.queries,
            targets.relation,
            targets.rows_per_document,
        )
    except RefusedError as error:
        raise RefusedError(
            error.what,
            where="epsilon",
            expected="a larger epsilon or delta, or fewer queries",
        ) from error


def budget(targets: Targets, sigma: str | None = None) -> Budget:
    """Return sigma and the budget table.

    Args:
        targets: the terms.
        sigma: price this sigma (decimal, cosine units) instead of calibrating one.

    Raises:
        MalformedError: neither epsilon nor sigma, or a sigma outside the sampler's range.
        RefusedError: no sigma keeps the promise.
    """
    level = sigma_for(targets) if sigma is None else _checked_sigma(targets, sigma)
    account = price_of_account(targets, level)
    promise_kept = None if targets.epsilon is None else _keeps(targets, level, targets.epsilon)
    if targets.epsilon is None:
        # Nothing was promised: what this sigma gives one account is what others are measured by.
        targets = replace(targets, epsilon=account.epsilon)
    queries, accounts = _afforded(targets, level)
    return Budget(
        targets=targets,
        sigma=level,
        calibrated=sigma is None,
        account=account,
        kept=promise_kept,
        coalitions=tuple(budget_row(targets, level, k) for k in round_counts(targets.coalition)),
        tenant=budget_row(targets, level, targets.slots),
        over_windows=tuple(
            budget_row(targets, level, targets.coalition, w)
            for w in round_counts(targets.windows)[1:]
        ),
        paper=_paper_noise(targets, level),
        queries_afforded=queries,
        accounts_afforded=accounts,
        coalition_sigma=_coalition_sigma(targets),
    )


def round_counts(most: int) -> list[int]:
    """Return 1 to 10, 20, 50, the powers of ten below ``most``, and ``most``.

    Args:
        most: at least 1.
    """
    counts = [*range(1, 11), 20, 50, *(10**power for power in range(2, len(str(most))))]
    return [*(count for count in counts if count < most), most]


def budget_row(targets: Targets, sigma: str, accounts: int, windows: int = 1) -> BudgetRow:
    """Return the row of so many accounts over so many windows, at ``delta_policy``.

    Args:
        targets: the terms.
        sigma: decimal, cosine units.
        accounts, windows: at least 1.

    Raises:
        MalformedError: more queries than can be accounted for.
    """
    return BudgetRow(
        accounts,
        windows,
        price_of_coalition(targets, sigma, accounts, windows),
        _closed_form(targets, accounts) if windows == 1 else Missing("(5.2) covers one window"),
    )


def paper_sigma(targets: Targets) -> str | Missing:
    """Return the paper's sigma (3.4) for the promise to one account, rounded up.

    At the sensitivity of the targets' relation and unit (the paper takes 1 for both relations).

    Args:
        targets: with or without an epsilon.

    Returns:
        Missing without an epsilon, or where (3.1) asks for eps_q >= 1: the equation ends there.
    """
    release = _paper_class(targets)
    if isinstance(release, Missing):
        return release
    # The paper's sensitivity is 1; ours is that of integer scores, and of g rows.
    squared = event_of(targets, "1", 1).squared_sensitivity
    sensitivity = Fraction(decimal_of(Fraction(squared)).sqrt())
    return ceil_decimal(Fraction(release.sigma(sensitivity)) / SCORE_UNIT, PLACES)


def _keeps(targets: Targets, sigma: str, promised: str) -> bool:
    single = event_of(targets, sigma, targets.queries)
    return gives(single, parse_decimal(promised), parse_decimal(targets.delta))


def _afforded(targets: Targets, sigma: str) -> tuple[int | Missing, int | Missing]:
    """Return the most queries of one account and the most accounts within epsilon."""
    if targets.epsilon is None:
        return NO_EPSILON, NO_EPSILON
    single, loss = event_of(targets, sigma, targets.queries), parse_decimal(targets.epsilon)
    return (
        largest_queries(single, loss, parse_decimal(targets.delta)),
        largest_coalition(single, loss, parse_decimal(targets.delta_policy), rate=targets.queries),
    )


def _coalition_sigma(targets: Targets) -> str | Missing:
    if targets.epsilon is None:
        return NO_EPSILON
    try:
        return calibrate_coalition(
            targets.epsilon,
            targets.delta_policy,
            accounts=targets.coalition,
            rate=targets.queries,
            relation=targets.relation,
            group_size=targets.rows_per_document,
        )
    except RefusedError as error:
        return Missing(error.what)


def _paper_class(targets: Targets) -> ScoreReleaseClass | Missing:
    if targets.epsilon is None:
        return NO_EPSILON
    try:
        return ScoreReleaseClass(
            parse_decimal(targets.epsilon),
            parse_decimal(targets.delta),
            targets.queries,
            NeighboringRelation(targets.relation),
        )
    except MalformedError:
        return Missing("too large an epsilon for so few queries: eps_q of (3.1) is not below 1")


def _closed_form(targets: Targets, accounts: int) -> str | Missing:
    release = _paper_class(targets)
    if isinstance(release, Missing):
        return release
    try:
        bound = release.audit(accounts, parse_decimal(targets.delta_policy))
    except RefusedError:
        return Missing("delta_policy is at most accounts · delta")
    return ceil_decimal(bound.guarantee().epsilon, PLACES)


def _paper_noise(targets: Targets, sigma: str) -> PaperNoise | Missing:
    paper = paper_sigma(targets)
    if isinstance(paper, Missing):
        return paper
    try:
        # The paper's noise is several times ours, and leaves the sampler's range first.
        real: Price | Missing = price_of_account(targets, paper)
    except MalformedError:
        real = Missing("so much noise is outside the sampler's range")
    return PaperNoise(paper, floor_decimal(Fraction(paper) / Fraction(sigma), 3), real)


def _checked_sigma(targets: Targets, sigma: str) -> str:
    parsed(sigma, "sigma")
    try:
        event_of(targets, sigma, 1)
    except MalformedError as error:
        raise MalformedError(
            f"sigma is {sigma}", where="sigma", expected="16/16129 to 2^40/16129, as a decimal"
        ) from error
    return sigma


POINTS = 13
"""Points of a curve, evenly spread in the logarithm."""


@dataclass(frozen=True)
class SigmaPoint:
    """The noise for one number of queries.

    Attributes:
        queries: r.
        sigma: decimal, the exact calibration, cosine units.
        paper_sigma: decimal, equation (3.4) of the source paper, for the same promise;
            Missing outside its range.
    """

    queries: int
    sigma: str
    paper_sigma: str | Missing


def epsilon_by_accounts(plan: Budget, most: int | None = None) -> list[BudgetRow]:
    """Return about POINTS rows, from one account to ``most``, in one window.

    Args:
        most: at least 1, all slots if None; k_max is always among the rows.

    Raises:
        MalformedError: ``most`` is below 1, or so many queries cannot be accounted for.
    """
    targets = plan.targets
    last = targets.slots if most is None else most
    if last < 1:
        raise MalformedError(f"most is {last}", where="most", expected="at least 1")
    counts = sorted({*_spread(1, last), targets.coalition})
    return [budget_row(targets, plan.sigma, count) for count in counts]


def sigma_by_queries(targets: Targets) -> list[SigmaPoint]:
    """Return the calibrated sigma from a tenth to ten times as many queries.

    A point for which no sigma in the sampler's range keeps the promise is left out.

    Args:
        targets: with an epsilon; ``queries`` is varied.

    Raises:
        MalformedError: the targets name no epsilon.
    """
    if targets.epsilon is None:
        raise MalformedError("no epsilon to calibrate for", where="epsilon", expected="a decimal")
    least = max(1, targets.queries // 10)
    # No further than all slots and windows together can be accounted for.
    most = min(10 * targets.queries, MAX_QUERIES // (targets.slots * targets.windows))
    points = []
    for queries in sorted({*_spread(least, most), targets.queries}):
        varied = replace(targets, queries=queries)
        try:
            points.append(SigmaPoint(queries, sigma_for(varied), paper_sigma(varied)))
        except RefusedError:
            continue
    return points


def _spread(least: int, most: int) -> set[int]:
    """Return about POINTS whole numbers from ``least`` to ``most``, both included."""
    ratio = (Fraction(most) / least) if most > least else Fraction(1)
    return {round(least * float(ratio) ** (n / (POINTS - 1))) for n in range(POINTS)}
