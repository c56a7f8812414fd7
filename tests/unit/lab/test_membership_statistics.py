"""What the statistics of the membership test say, and the limit that refutes a claim."""

import numpy as np
import pytest
from ragaudit.lab.attacks.membership.scoring import (
    cross_fitted,
    held_out_low,
    measure,
    permutation_p,
)
from ragaudit.lab.risk.estimation import area_under_curve
from scipy import stats


@pytest.mark.parametrize("count", [400, pytest.param(2000, marks=pytest.mark.nightly)])
def test_the_exact_limit_is_of_documents_that_the_model_does_not_know(count: int) -> None:
    labels = np.arange(50) < 25
    rng = np.random.default_rng(5)
    perfect = np.where(labels, 1.0, -1.0)[:, None]
    assert held_out_low(perfect, np.arange(50), labels, 0) == pytest.approx(0.025 ** (1 / 12))
    assert held_out_low(np.zeros((50, 1)), np.arange(50), labels, 0) == 0
    # Of data sets that say nothing at most 1 in 40 is above 1/2; a sound test fails this with
    # probability 1e-6.
    above = sum(
        held_out_low(rng.normal(size=(50, 6)), np.arange(50), labels, seed) > 0.5
        for seed in range(count)
    )
    assert above <= stats.binom.isf(1e-6, count, 1 / 40)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "rounds",
    [pytest.param(150, marks=pytest.mark.slow), pytest.param(2000, marks=pytest.mark.nightly)],
)
def test_exchangeable_documents_are_significant_at_the_stated_rate(rounds: int) -> None:
    """Not by the answers of documents, nor by many questions about each."""
    hits = 0
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(30), 3)
        # Answers about one document are alike: the unit is the document.
        values = rng.normal(size=(30, 4))[groups] + 0.3 * rng.normal(size=(90, 4))
        hits += permutation_p(values, groups, np.arange(30) < 15, seed, permutations=19) <= 0.05
    # Exactly 1/20 each; a sound test fails this with probability 1e-6.
    assert hits <= stats.binom.isf(1e-6, rounds, 0.05)
    assert hits >= stats.binom.ppf(1e-6, rounds, 0.05)


def test_the_direction_is_learnt_on_other_documents() -> None:
    rng = np.random.default_rng(3)
    labels = np.arange(60) < 30
    values = rng.normal(size=(60, 1)) - 2.0 * labels[:, None]
    # Low values are members': the folds say so, and the test documents have no say.
    scores = cross_fitted(values, np.arange(60), labels, 0)
    assert area_under_curve(scores[labels], scores[~labels]) > 0.85
    scores = cross_fitted(rng.normal(size=(60, 1)), np.arange(60), labels, 0)
    assert area_under_curve(scores[labels], scores[~labels]) < 0.75


def test_documents_whose_answers_measure_the_same_tie_in_whatever_order_they_were_asked() -> None:
    """A signal of the phrasing alone: sums in another order differ by a rounding error."""
    rng = np.random.default_rng(6)
    groups = np.repeat(np.arange(50), 3)
    of_phrasing = np.tile([np.log(10), np.log(12), np.log(16)], 50)
    order = rng.permutation(len(groups))
    values, groups = of_phrasing[order][:, np.newaxis], groups[order]
    # Not rounded, some documents differ from others, and that is the same in every test.
    sums = np.bincount(groups, values[:, 0])
    assert len(np.unique(sums / 3)) > 1
    labels = np.arange(50) < 25
    scores = cross_fitted(values, groups, labels, 0)
    assert measure(scores, labels, 0).equal
    assert permutation_p(values, groups, labels, 0, permutations=19) == 1


def test_measures_have_known_answers() -> None:
    labels = np.array([True, True, True, False, False, False])
    found = measure(np.array([3.0, 2.5, 2.0, 1.0, 0.5, 0.0]), labels, 0)
    assert (found.auc, found.low, found.high, found.equal) == (1, 1, 1, False)
    assert found.p == pytest.approx(1 / 20)  # one order of 20
    flat = measure(np.zeros(6), labels, 0)
    assert (flat.auc, flat.equal, flat.p) == (0.5, True, 1)
    tied = measure(np.array([1.0, 1, 0, 1, 0, 0]), labels, 0)
    assert tied.auc == pytest.approx((2 * (0.5 + 2) + (2 * 0.5)) / 9)
