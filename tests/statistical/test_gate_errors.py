"""The gates of `ragaudit reproduce attacks` are wrong as rarely as they say.

Cells are drawn as those of Figure 2(a) are, from two Gaussians whose distance z is known, so that
it is known, too, what each gate should say. A rate is worst at a limit: there PASS and FAIL are
both wrong, and each may come in at most 5 % of runs. A sound gate fails a test here with a
probability of 1e-6: that many runs above 5 % are allowed.
"""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from ragaudit.lab.reproduce.attacks_gates import COLLAPSED, SLOPES, TIGHT, gates, lower_bound
from ragaudit.lab.reproduce.attacks_laws import scalar_auc
from ragaudit.lab.reproduce.attacks_results import ACCOUNTS, point
from scipy import stats

pytestmark = pytest.mark.slow

RUNS, TRIALS = 80, 1000
EPSILONS = ("1", "2", "4")
ALLOWED = stats.binom.isf(1e-6, RUNS, 0.05)
SEEN = stats.binom.ppf(1e-6, RUNS, 0.5)
"""Where a gate is to decide, it does in most runs."""
Law = Callable[[str, int], float]


def honest(epsilon: str, accounts: int) -> float:
    """z as it should be: a multiple of eps_acc and of the root of k, up to 1.8."""
    return float(epsilon) * math.sqrt(accounts) / 10


def faint(epsilon: str, accounts: int) -> float:
    """The same where hardly a cell tells anything."""
    return honest(epsilon, accounts) / 20


def verdicts(law: Law, truth: Law = honest) -> dict[str, Counter[str]]:
    """What each gate says in all runs, by its name without the number of trials.

    Args:
        law: z of each cell (eps_acc, k).
        truth: the mu that theory gives.
    """
    random = np.random.default_rng(20260519)
    found: dict[str, Counter[str]] = {}
    for _ in range(RUNS):
        points = [
            point(
                "drawn", epsilon, accounts,
                law(epsilon, accounts) + random.standard_normal(TRIALS),
                random.standard_normal(TRIALS), theory=scalar_auc(truth(epsilon, accounts), 1, 1),
            )
            for epsilon in EPSILONS for accounts in ACCOUNTS
        ]  # fmt: skip
        for gate in gates(points, printed="drawn", exact="none"):
            found.setdefault(gate.name.partition(", T")[0], Counter())[gate.verdict] += 1
    return found


@pytest.mark.parametrize("law", [honest, faint])
def test_what_holds_hardly_ever_fails(law: Law) -> None:
    found = verdicts(law, truth=law)
    for name in ("P1", "P2", "P3 above chance", "P3 tight"):
        assert found[name]["FAIL"] <= ALLOWED, (name, found[name])
    if law is honest:
        assert found["P1"]["PASS"] >= SEEN, found["P1"]


@pytest.mark.parametrize("slope", SLOPES)
def test_another_growth(slope: float) -> None:
    """At a limit hardly ever either; far beyond it is seen."""
    at = verdicts(lambda epsilon, accounts: honest(epsilon, 1) * accounts**slope)["P1"]
    assert at["PASS"] <= ALLOWED and at["FAIL"] <= ALLOWED, at
    beyond = slope + math.copysign(0.2, slope - 0.5)
    far = verdicts(lambda epsilon, accounts: honest(epsilon, 1) * accounts**beyond)["P1"]
    assert far["PASS"] <= ALLOWED and far["FAIL"] >= SEEN, far


@pytest.mark.parametrize("ratio", COLLAPSED)
def test_curves_that_do_not_collapse(ratio: float) -> None:
    def law(off: float) -> Law:
        return lambda epsilon, k: honest(epsilon, k) * (off if epsilon == "2" else 1)

    at = verdicts(law(ratio))["P2"]
    assert at["PASS"] <= ALLOWED and at["FAIL"] <= ALLOWED, at
    far = verdicts(law(ratio + math.copysign(0.3, ratio - 1)))["P2"]
    assert far["PASS"] <= ALLOWED and far["FAIL"] >= SEEN, far


@pytest.mark.parametrize("ratio", TIGHT)
def test_an_attack_that_is_not_tight(ratio: float) -> None:
    def law(off: float) -> Law:
        return lambda epsilon, k: honest(epsilon, k) * off

    at = verdicts(law(ratio))["P3 tight"]
    assert at["PASS"] <= ALLOWED and at["FAIL"] <= ALLOWED, at
    far = verdicts(law(ratio + math.copysign(0.2, ratio - 1)))["P3 tight"]
    assert far["PASS"] <= ALLOWED and far["FAIL"] >= SEEN, far


def test_cells_at_and_below_chance() -> None:
    def but_one(z: float) -> Law:
        return lambda epsilon, k: z if (epsilon, k) == ("1", 1) else honest(epsilon, k)

    name = "P3 above chance"
    assert verdicts(but_one(0))[name]["PASS"] <= ALLOWED
    below = verdicts(but_one(-0.3))[name]
    assert below["PASS"] <= ALLOWED and below["FAIL"] >= SEEN, below
    # Nothing is below where nothing is told.
    assert verdicts(lambda *_: 0.0)[name]["FAIL"] <= ALLOWED


def test_the_printed_bound_where_it_holds() -> None:
    def law(epsilon: str, accounts: int) -> float:
        area = (1 + lower_bound(epsilon, accounts)) / 2
        return math.sqrt(2) * float(stats.norm.ppf(area))

    allowed = stats.binom.isf(1e-6, RUNS, 0.051)
    assert verdicts(law)["P3 as printed"]["FAIL"] <= allowed
    assert verdicts(lambda *cell: 2 * law(*cell) + 0.3)["P3 as printed"]["FAIL"] >= SEEN
