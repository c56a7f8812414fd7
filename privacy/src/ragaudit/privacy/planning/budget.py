"""Sigma for the targets, and what each coalition learns at it: a table, and two curves."""

from dataclasses import dataclass, replace
from fractions import Fraction

from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.text import ceil_decimal, floor_decimal, parse_decimal
from ragaudit.privacy.accounting import calibrate, gives
from ragaudit.privacy.accounting.affordable import (
    calibrate_coalition,
    largest_coalition,
    largest_queries,
)
from ragaudit.privacy.accounting.collusion import ScoreReleaseClass
from ragaudit.privacy.accounting.events import MAX_QUERIES, SCORE_UNIT
from ragaudit.privacy.guarantees import NeighboringRelation
from ragaudit.privacy.normal import decimal_of
from ragaudit.privacy.planning.price import (
    PLACES,
    Missing,
    Price,
    Targets,
    event_of,
    parsed,
    price_of_account,
    price_of_coalition,
)

__all__ = [
    "NO_EPSILON",
    "Budget",
    "BudgetRow",
    "PaperNoise",
    "SigmaPoint",
    "budget",
    "budget_row",
    "epsilon_by_accounts",
    "paper_sigma",
    "round_counts",
    "sigma_by_queries",
    "sigma_for",
]

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
