"""Sigma for the targets, and the budget table: what each coalition can learn at that sigma."""

from dataclasses import dataclass, replace
from fractions import Fraction

from ragaudit.encoding.decimals import ceil_decimal, floor_decimal, parse_decimal
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.privacy.accounting import calibrate, gives
from ragaudit.privacy.accounting.affordable import largest_coalition, largest_queries
from ragaudit.privacy.accounting.collusion import ScoreReleaseClass
from ragaudit.privacy.accounting.events import SCORE_UNIT
from ragaudit.privacy.accounting.normal import decimal_of
from ragaudit.privacy.guarantees import Adjacency
from ragaudit.privacy.planning.price import (
    PLACES,
    Price,
    event_of,
    price_of_account,
    price_of_coalition,
)
from ragaudit.privacy.planning.targets import Targets, parsed

__all__ = [
    "Budget",
    "BudgetRow",
    "PaperNoise",
    "budget",
    "budget_row",
    "paper_sigma",
    "round_counts",
    "sigma_for",
]


@dataclass(frozen=True)
class BudgetRow:
    """What a coalition learns, at ``delta_policy``.

    Attributes:
        accounts, windows: so many accounts pool their answers of so many windows.
        price: epsilon and advantage of sigma as planned.
        closed_form: the paper's (5.2) with its residual, for the paper's own, larger noise;
            None for several windows, where ``delta_policy <= accounts · delta``, and outside
            the paper's range, as for ``paper_sigma``.
    """

    accounts: int
    windows: int
    price: Price
    closed_form: str | None


@dataclass(frozen=True)
class PaperNoise:
    """The source paper's calibration for the same promise, equation (3.4).

    Attributes:
        sigma: decimal, cosine units, at the sensitivity of the targets' relation and unit.
        ratio: decimal, how many times the exact calibration's sigma it is, rounded down.
        epsilon: what that noise really gives one account at ``delta``; None if not finite.
    """

    sigma: str
    ratio: str
    epsilon: str | None


@dataclass(frozen=True)
class Budget:
    """A plan without its retrieval.

    Attributes:
        targets: the terms; ``epsilon`` filled in where sigma was given instead, None if that
            sigma has no finite one.
        sigma: decimal, cosine units (a score of 1 is a cosine of 1).
        calibrated: whether sigma was computed; otherwise it was given.
        account: one account's queries at ``delta``.
        kept: whether sigma keeps the promise (epsilon, delta) to one account.
        coalitions: rising numbers of accounts in one window, ``coalition`` last.
        tenant: all slots of the tenant, one window.
        over_windows: ``coalition`` accounts over rising numbers of windows, from 2 on.
        paper: the paper's noise for the same promise; None outside its range.
        queries_afforded: the most queries for which sigma gives one account
            (epsilon, delta); None if there is no finite epsilon.
        accounts_afforded: the most accounts that together stay within epsilon at
            ``delta_policy``; 0 if not even one does; None as above.
    """

    targets: Targets
    sigma: str
    calibrated: bool
    account: Price
    kept: bool
    coalitions: tuple[BudgetRow, ...]
    tenant: BudgetRow
    over_windows: tuple[BudgetRow, ...]
    paper: PaperNoise | None
    queries_afforded: int | None
    accounts_afforded: int | None

    @property
    def coalition(self) -> BudgetRow:
        """The row of ``k_max`` accounts: what a verdict will say."""
        return self.coalitions[-1]


def sigma_for(targets: Targets) -> str:
    """Return the least sigma with 6 places that keeps (epsilon, delta) for one account.

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
        sigma: price this sigma (decimal, cosine units) instead of calibrating one.

    Raises:
        MalformedError: neither epsilon nor sigma, or a sigma outside the sampler's range.
        RefusedError: no sigma keeps the promise.
    """
    chosen = sigma_for(targets) if sigma is None else _checked_sigma(targets, sigma)
    account = price_of_account(targets, chosen)
    promised = account.epsilon if targets.epsilon is None else targets.epsilon
    targets = replace(targets, epsilon=promised)
    single = event_of(targets, chosen, targets.queries)
    loss = None if promised is None else parse_decimal(promised)
    target, target_policy = parse_decimal(targets.delta), parse_decimal(targets.delta_policy)
    return Budget(
        targets=targets,
        sigma=chosen,
        calibrated=sigma is None,
        account=account,
        kept=loss is not None and gives(single, loss, target),
        coalitions=tuple(budget_row(targets, chosen, k) for k in round_counts(targets.coalition)),
        tenant=budget_row(targets, chosen, targets.slots),
        over_windows=tuple(
            budget_row(targets, chosen, targets.coalition, w)
            for w in round_counts(targets.windows)[1:]
        ),
        paper=_paper_noise(targets, chosen),
        queries_afforded=None if loss is None else largest_queries(single, loss, target),
        accounts_afforded=None
        if loss is None
        else largest_coalition(single, loss, target_policy, rate=targets.queries),
    )


def round_counts(most: int) -> list[int]:
    """Return 1 to 10, 20, 50, the powers of ten below ``most``, and ``most``."""
    counts = [*range(1, 11), 20, 50, *(10**power for power in range(2, len(str(most))))]
    return [*(count for count in counts if count < most), most]


def budget_row(targets: Targets, sigma: str, accounts: int, windows: int = 1) -> BudgetRow:
    """Return one row: so many accounts over so many windows, at ``delta_policy``."""
    return BudgetRow(
        accounts,
        windows,
        price_of_coalition(targets, sigma, accounts, windows),
        _closed_form(targets, accounts) if windows == 1 else None,
    )


def paper_sigma(targets: Targets) -> str | None:
    """Return the paper's sigma (3.4) for the promise to one account, rounded up.

    At the sensitivity of the targets' relation and unit (the paper takes 1 for both relations).

    Returns:
        None without an epsilon, or where (3.1) asks for eps_q >= 1: the equation ends there.
    """
    release = _paper_class(targets)
    if release is None:
        return None
    squared = event_of(targets, "1", 1).squared_sensitivity
    sensitivity = Fraction(decimal_of(Fraction(squared)).sqrt())
    return ceil_decimal(Fraction(release.sigma(sensitivity)) / SCORE_UNIT, PLACES)


def _paper_class(targets: Targets) -> ScoreReleaseClass | None:
    if targets.epsilon is None:
        return None
    try:
        return ScoreReleaseClass(
            parse_decimal(targets.epsilon),
            parse_decimal(targets.delta),
            targets.queries,
            Adjacency(targets.relation),
        )
    except MalformedError:
        return None  # too large an epsilon for so few queries: outside the paper's range


def _closed_form(targets: Targets, accounts: int) -> str | None:
    release = _paper_class(targets)
    if release is None:
        return None
    try:
        bound = release.audit(accounts, parse_decimal(targets.delta_policy))
    except RefusedError:
        return None  # delta_policy <= accounts · delta
    return ceil_decimal(bound.guarantee().epsilon, PLACES)


def _paper_noise(targets: Targets, sigma: str) -> PaperNoise | None:
    paper = paper_sigma(targets)
    if paper is None:
        return None
    try:
        real = price_of_account(targets, paper).epsilon
    except MalformedError:
        real = None  # outside the sampler's range
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
