"""The gates of `ragaudit reproduce attacks` are wrong as rarely as they say.

Cells are drawn as those of the figures are, from two Gaussians whose distance z is known, so that
it is known, too, what each gate should say. A rate is worst at a limit: there PASS and FAIL are
both wrong, and each may come in at most 5 % of runs. A sound gate fails a test here with a
probability of 1e-6: so many of 2,000 runs above 5 % are allowed, 7.4 % of them.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ragaudit.lab.reproduce import attacks_scalar
from ragaudit.lab.reproduce.attacks_adversaries import not_above_cap
from ragaudit.lab.reproduce.attacks_evasion import hard_to_evade
from ragaudit.lab.reproduce.attacks_results import ACCOUNTS, Point, area, decided, worst
from ragaudit.lab.reproduce.attacks_scalar import COLLAPSED, SLOPES, TIGHT, lower_bound, scalar_auc
from ragaudit.lab.reproduce.attacks_top_k import WITHIN, same_law
from scipy import stats

RUNS, TRIALS = 2000, 300
FEW, MANY = 100, 3000
"""Of runs and trials, where the gate is to decide."""
CELLS = [(epsilon, accounts) for epsilon in ("1", "2", "4") for accounts in ACCOUNTS]
Floats = npt.NDArray[np.float64]
Law = Callable[[str, int], float]
Judge = Callable[[list[Point]], str]


def allowed(runs: int = RUNS) -> float:
    return float(stats.binom.isf(1e-6, runs, 0.05))


def seen(runs: int = FEW) -> float:
    """Where a gate is to decide, it does in most runs."""
    return float(stats.binom.ppf(1e-6, runs, 0.5))


def growth(points: list[Point]) -> str:
    return decided(attacks_scalar.growth(points))


def collapsed(points: list[Point]) -> str:
    return worst(decided(each, 2) for each in attacks_scalar.collapsed(points))


def tight(points: list[Point]) -> str:
    return decided(attacks_scalar.tight(points))


def above_chance(points: list[Point]) -> str:
    return attacks_scalar.above_chance(points, TRIALS).verdict


def as_printed(points: list[Point]) -> str:
    return attacks_scalar.as_printed(points, TRIALS).verdict


def honest(epsilon: str, accounts: int) -> float:
    """z as it should be: a multiple of eps_acc and of the root of k, up to 1.8."""
    return float(epsilon) * math.sqrt(accounts) / 10


def areas(members: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Areas and DeLong's errors, float64[runs] each, as `area`, of scores without ties."""
    trials = members.shape[1]
    together = np.concatenate([np.sort(members), np.sort(others)], axis=1)
    order = np.argsort(together, axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(2 * trials)[np.newaxis], axis=1)
    beaten = (ranks[:, :trials] - np.arange(trials)) / trials
    unbeaten = 1 - (ranks[:, trials:] - np.arange(trials)) / trials
    variances = (beaten.var(axis=1, ddof=1) + unbeaten.var(axis=1, ddof=1)) / trials
    return beaten.mean(axis=1), np.maximum(np.sqrt(variances), 1 / trials)


def test_many_areas_are_each_what_one_is() -> None:
    members, others = np.random.default_rng(1).standard_normal((2, 3, 40))
    members[2] += 9  # apart: the error is that of one more trial
    for auc, error, *scores in zip(*areas(members, others), members, others, strict=True):
        one = area(*scores)
        assert (auc, error) == pytest.approx((one.auc, one.error))


def drawn(
    law: Law, runs: int, trials: int, cells: Sequence[tuple[str, int]] = CELLS, seed: int = 1
) -> Iterator[list[Point]]:
    """The cells of each run.

    Args:
        law: z of each cell (eps_acc, k).
        cells: that are drawn; theory is the area of an honest one, the cap that of its law.
    """
    random = np.random.default_rng([20260519, seed])
    columns = [
        areas(law(*cell) + random.standard_normal((runs, trials)),
              random.standard_normal((runs, trials)))
        for cell in cells
    ]  # fmt: skip
    theory = [scalar_auc(honest(*cell), 1, 1) for cell in cells]
    caps = [scalar_auc(law(*cell), 1, 1) for cell in cells]
    for run in range(runs):
        yield [
            Point(curve="drawn", epsilon_acc=epsilon, accounts=accounts, trials=trials,
                  auc=float(aucs[run]), error=float(errors[run]), low=0, high=1, theory=auc,
                  cap=cap)
            for (epsilon, accounts), (aucs, errors), auc, cap
            in zip(cells, columns, theory, caps, strict=True)
        ]  # fmt: skip


def check(judge: Judge, law: Law, *verdicts: str, where: object = "") -> None:
    """Check that none of the verdicts, each of which is wrong, comes in more runs than it may."""
    found = Counter(judge(points) for points in drawn(law, RUNS, TRIALS))
    for verdict in verdicts:
        assert found[verdict] <= allowed(), (where, found)


def check_seen(judge: Judge, law: Law, verdict: str, where: object = "") -> None:
    found = Counter(judge(points) for points in drawn(law, FEW, MANY))
    assert found[verdict] >= seen(), (where, found)


def grown(power: float) -> Law:
    return lambda epsilon, accounts: honest(epsilon, 1) * accounts**power


@pytest.mark.slow
def test_growth_at_its_limits() -> None:
    for slope in SLOPES:
        check(growth, grown(slope), "PASS", "FAIL", where=slope)


@pytest.mark.nightly
def test_growth_elsewhere() -> None:
    check(growth, honest, "FAIL")
    check_seen(growth, honest, "PASS")
    for slope in SLOPES:
        check_seen(growth, grown(slope + math.copysign(0.2, slope - 0.5)), "FAIL", slope)


def scaled(one: float, two: float, four: float = 1.0) -> Law:
    scales = {"1": one, "2": two, "4": four}
    return lambda epsilon, accounts: honest(epsilon, accounts) * scales[epsilon]


@pytest.mark.nightly
def test_curves_that_do_not_collapse() -> None:
    check(collapsed, honest, "FAIL")
    for ratio in COLLAPSED:
        check(collapsed, scaled(1.0, ratio), "PASS", "FAIL", where=ratio)
        # Both rows at a limit: FAIL has two chances.
        check(collapsed, scaled(ratio, ratio), "PASS", "FAIL", where=ratio)
        far = ratio + math.copysign(0.3, ratio - 1)
        check_seen(collapsed, scaled(1.0, far), "FAIL", ratio)


@pytest.mark.nightly
def test_an_attack_that_is_not_tight() -> None:
    check(tight, honest, "FAIL")
    for ratio in TIGHT:
        check(tight, scaled(*[ratio] * 3), "PASS", "FAIL", where=ratio)
        check_seen(tight, scaled(*[ratio + math.copysign(0.2, ratio - 1)] * 3), "FAIL", ratio)


@pytest.mark.nightly
def test_cells_at_and_below_chance() -> None:
    def but_one(z: float) -> Law:
        return lambda epsilon, k: z if (epsilon, k) == ("1", 1) else honest(epsilon, k)

    check(above_chance, but_one(0), "PASS")
    check_seen(above_chance, but_one(-0.3), "FAIL")
    # Nothing is below where nothing is told.
    check(above_chance, lambda *_: 0.0, "PASS", "FAIL")


@pytest.mark.nightly
def test_the_printed_bound_where_it_holds() -> None:
    def law(epsilon: str, accounts: int) -> float:
        area = (1 + lower_bound(epsilon, accounts)) / 2
        return math.sqrt(2) * float(stats.norm.ppf(area))

    check(as_printed, law, "FAIL")
    check_seen(as_printed, lambda *cell: 2 * law(*cell) + 0.3, "FAIL")


@pytest.mark.nightly
def test_attacks_at_their_cap() -> None:
    """All of forty cells are at the largest area of any attack."""
    cells = [(f"{n}", k) for n in (1, 2, 3, 4) for k in ACCOUNTS] * 2
    runs = drawn(honest, RUNS, TRIALS, cells)
    found = Counter(not_above_cap(points).verdict for points in runs)
    assert found["FAIL"] <= allowed(), found


def apart(only: tuple[str, int] | None) -> Law:
    """Areas that are off by the limit: of one cell, or of all."""

    def law(*cell: Any) -> float:
        one = scalar_auc(honest(*cell), 1, 1)
        off = WITHIN if only in (None, cell) else 0.0
        return math.sqrt(2) * float(stats.norm.ppf(one + off))

    return law


@pytest.mark.nightly
def test_regimes_that_differ() -> None:
    """At the limit in one cell, and in all of them: FAIL then has fifteen chances."""
    for only in (None, ("1", 1), ("4", 20)):
        same, outside = drawn(honest, RUNS, TRIALS, seed=2), drawn(apart(only), RUNS, TRIALS)
        pairs = zip(same, outside, strict=True)
        found = Counter(same_law(*pair).verdict for pair in pairs)
        assert found["PASS"] <= allowed() and found["FAIL"] <= allowed(), (only, found)
    pairs = zip(drawn(honest, FEW, 9000, seed=2), drawn(honest, FEW, 9000), strict=True)
    assert Counter(same_law(*pair).verdict for pair in pairs)["PASS"] >= seen()


def test_detection_at_nine_in_ten_is_decided_exactly() -> None:
    """No runs: of each number of trials, the law of the number detected is binomial."""
    for total in (*range(1, 60), 112, 500):
        law = stats.binom.pmf(range(total + 1), total, 0.9)
        wrong: Counter[str] = Counter()
        for caught, chance in enumerate(law):
            wrong[hard_to_evade(caught, total)] += chance
        assert wrong["PASS"] <= 0.05 and wrong["FAIL"] <= 0.05, (total, wrong)
