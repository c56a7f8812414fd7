"""Scoring only the rows whose noise lets them matter gives the selection over all rows."""

from math import comb

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.circuits.selection import CandidateRule, candidate_rule, select
from ragaudit.encoding.parameters import SQUARED_NORM

Integers = npt.NDArray[np.int64]


def by_candidates(rule: CandidateRule, exact: Integers, noise: Integers, top_k: int) -> object:
    """The selection with scores of the candidates only; None if the draw does not fit."""
    found = rule.candidates(noise)
    if found is None:
        return None
    rows, values = found
    assert len(rows) == len(values) == rule.count
    chosen = select(exact[rows] + values, top_k)
    return tuple(rows[list(chosen)].tolist())


@given(
    seed=st.integers(0, 2**32),
    spread=st.sampled_from([SQUARED_NORM // 4, SQUARED_NORM, 5 * SQUARED_NORM]),
    top_k=st.integers(1, 4),
    extreme=st.booleans(),
)
def test_no_other_row_can_be_selected(seed: int, spread: int, top_k: int, extreme: bool) -> None:
    """For any noise and any scores; levels and sizes that often just fit, and ties."""
    random = np.random.default_rng(seed)
    noise = np.rint(random.normal(scale=spread, size=60) / 500).astype(np.int64) * 500
    exact = random.integers(-SQUARED_NORM, SQUARED_NORM + 1, 60)
    if extreme:
        exact = np.where(exact > 0, SQUARED_NORM, -SQUARED_NORM)
    level = int(np.sort(noise)[-1 - random.integers(0, 12)])
    rule = CandidateRule(level, int(random.integers(5, 60)), 4)
    found = by_candidates(rule, exact, noise, top_k)
    if found is not None:
        assert found == select(exact + noise, top_k)


def test_a_row_at_the_level_may_matter() -> None:
    """The bound is sharp: a row one unit above the level that is left out can be selected."""
    noise = np.array([0, 0, 1 - 2 * SQUARED_NORM, -9 * SQUARED_NORM])
    exact = np.array([-SQUARED_NORM, -SQUARED_NORM, SQUARED_NORM, 0])
    assert select(exact + noise, 1) == (2,)
    assert by_candidates(CandidateRule(0, 3, 1), exact, noise, 1) == (2,)
    assert CandidateRule(0, 2, 1).candidates(noise) is None


@pytest.mark.parametrize(
    ("sigma", "rows"), [("10", 1500), ("2", 10_000), ("10", 10_000), ("1", 100_000)]
)
def test_the_work_is_the_same_for_every_draw(sigma: str, rows: int) -> None:
    """2,000 draws fit (each misses with probability below 2^-60), and all score ``count`` rows."""
    units = float(sigma) * SQUARED_NORM
    rule = candidate_rule(units, rows, 5)
    assert rule is not None and 4 * rule.count < rows
    random = np.random.default_rng(1)
    for _ in range(2_000 * 1500 // rows + 1):
        found = rule.candidates(np.rint(random.normal(scale=units, size=rows)).astype(np.int64))
        assert found is not None and len(found[0]) == rule.count


def test_a_draw_that_does_not_fit_is_rare() -> None:
    """Exactly, from binomial tails over the continuous law: below 2^-60 together."""
    from mpmath import mp, mpf, ncdf

    rows, top_k, sigma = 1500, 5, 10 * SQUARED_NORM
    rule = candidate_rule(float(sigma), rows, top_k)
    assert rule is not None
    with mp.workprec(200):
        reaching = ncdf(-mpf(rule.high) / sigma)
        above = ncdf(-mpf(rule.high - 2 * SQUARED_NORM) / sigma)

        def tail(p: object, counts: range) -> object:
            return sum(comb(rows, k) * p**k * (1 - p) ** (rows - k) for k in counts)  # type: ignore[operator]

        few = tail(reaching, range(top_k + 1))
        many = tail(above, range(rule.count + 1, rows + 1))
        assert few + many < mpf(2) ** -60  # type: ignore[operator]


def test_small_noise_scores_everything() -> None:
    assert candidate_rule(0.5 * SQUARED_NORM, 100_000, 5) is None
    assert candidate_rule(10.0 * SQUARED_NORM, 5, 5) is None
    assert candidate_rule(10.0 * SQUARED_NORM, 20, 5) is None
