"""What `ragaudit reproduce attacks` simulates, against its exact laws and the product's rules."""

import math
from itertools import combinations

import numpy as np
import pytest
from ragaudit.circuits.selection import select
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.reproduce import attacks_adversaries, attacks_http, attacks_top_k
from ragaudit.lab.reproduce.attacks_adversaries import STRATEGIES, figure_4, hunted
from ragaudit.lab.reproduce.attacks_results import Run, area, document, text
from ragaudit.lab.reproduce.attacks_scalar import figure_3, nearest_pair, scalar_auc, sigma_of
from ragaudit.lab.reproduce.attacks_top_k import (
    SAME,
    TOP_K,
    World,
    area_of_counts,
    figure_2b,
    figure_5,
    gap,
    hit_probability,
    hits,
    predicted,
    world,
)
from scipy import stats

QUICK = Run(11, quick=True)


def test_noise_of_the_paper() -> None:
    # (3.4) by hand at n = 200: sqrt(2 n L · 2 ln(1.25/delta_q))/eps.
    by_hand = math.sqrt(2 * 200 * math.log(1e6) * 2 * math.log(1.25 * 200 * 1e6)) / 16
    assert sigma_of("16", 200) == pytest.approx(by_hand, rel=1e-9)
    # What the recomputation of the paper's own values says.
    assert scalar_auc(1, 4000, sigma_of("4", 200)) == pytest.approx(0.6506, abs=5e-5)
    assert scalar_auc(0.41, 4000, sigma_of("4", 200)) == pytest.approx(0.5630, abs=5e-5)


def test_a_row_is_selected_as_the_service_selects() -> None:
    """Both decide alike on 2,000 draws, ties among them."""
    noised = np.random.default_rng(2).integers(0, 12, size=(2000, 20)).astype(np.int64)
    ours = attacks_top_k.selected(noised)
    assert [19 in select(row, TOP_K) for row in noised] == ours.tolist()
    assert 0.1 < ours.mean() < 0.9


def test_hits_follow_their_law_by_enumeration() -> None:
    """All sets of three rows of six: the law of the set, summed, is the law of the row."""
    units = np.array([14_000, 3_000, -5_000, 2_000, 6_000, 10_000])
    for sigma in (0.3, 2.0):
        sets = attacks_adversaries.set_probabilities(units / SQUARED_NORM, 3, sigma)
        assert sets.sum() == pytest.approx(1)
        for row in range(6):
            with_row = [row in each for each in combinations(range(6), 3)]
            expected = sets[with_row].sum()
            assert hit_probability(units, row, 3, sigma) == pytest.approx(expected, abs=1e-6)


def test_areas_of_counts() -> None:
    assert area_of_counts(1, 0.7, 0.2) == pytest.approx(0.5 + (0.7 - 0.2) / 2)
    assert area_of_counts(300, 0.1, 0.1) == pytest.approx(0.5)
    random = np.random.default_rng(3)
    drawn = [random.binomial(40, chance, size=20_000) for chance in (0.3, 0.25)]
    found = area(*drawn)
    assert abs(found.auc - area_of_counts(40, 0.3, 0.25)) < 5 * found.error


def test_the_sampled_service_follows_its_law() -> None:
    """5 standard errors of 40,000 questions in each world, with noise near the scores."""
    for present in (True, False):
        made = world(np.random.default_rng(4), "16", present=present)
        near = World(made.exact, "0.6")
        found = hits(near, 2, 100, b"seed", "victim").sum() / 40_000
        expected = near.probability()
        assert abs(found - expected) < 5 * math.sqrt(expected * (1 - expected) / 40_000)


def test_the_worlds_differ_in_one_score() -> None:
    with_row, without = (
        world(np.random.default_rng(4), "8", present=present) for present in (True, False)
    )
    assert np.array_equal(with_row.exact[:-1], without.exact[:-1])
    assert gap(with_row, without) == pytest.approx(1, abs=0.02)
    # The recomputed values of the paper's two printed cells, for exchangeable background.
    sixteen = [world(np.random.default_rng(4), "16", present=p) for p in (True, False)]
    assert predicted(sixteen[0], sixteen[1], 1) == pytest.approx(0.578, abs=0.004)
    assert predicted(sixteen[0], sixteen[1], 20) == pytest.approx(0.811, abs=0.008)


def test_noise_is_of_account_trial_and_seed() -> None:
    made = World(world(np.random.default_rng(4), "16", present=True).exact, "0.6")
    first = hits(made, 3, 4, b"a", "victim")
    assert np.array_equal(first, hits(made, 3, 4, b"a", "victim"))
    for other in (hits(made, 3, 4, b"b", "victim"), hits(made, 3, 4, b"a", "stranger")):
        assert not np.array_equal(first, other)
    assert len(np.unique(first)) > 4


@pytest.mark.nightly
def test_inside_and_outside_have_one_law() -> None:
    inside, outside = figure_2b(QUICK), figure_5(QUICK)
    for result in (inside, outside):
        assert not result.table.disagreements
        assert text([result]) and document([result], {})
    assert [each for each in outside.points if each.curve == SAME] == list(inside.points)
    assert len(outside.points) == 15 + 15 + 5
    assert outside.gates[0].verdict in ("PASS", "UNDECIDED")
    assert {each.theory for each in outside.points[-5:]} == {0.5}


@pytest.mark.nightly
def test_a_running_service_follows_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 accounts ask 20 questions in each world, over HTTP: within 5 standard errors."""
    monkeypatch.setattr(attacks_http, "QUICK_TRIALS", 20)
    result = attacks_http.figure_2b_http(QUICK)
    (cell,) = result.points
    assert not result.table.disagreements
    assert cell.trials == 20 and cell.theory is not None and 0.6 < cell.theory < 0.9


def test_a_real_pair_has_the_gap_that_was_asked_for() -> None:
    apart = np.array([[0, 0.2, 0.7], [0.2, 0, 0.39], [0.7, 0.39, 0]])
    assert nearest_pair(apart, 0.4) == (1, 2)
    result = figure_3(QUICK)
    assert not result.table.disagreements and len(result.points) == 15
    assert result.findings[0].value == pytest.approx(0.40, abs=0.05)


@pytest.mark.slow
def test_other_adversaries() -> None:
    result = figure_4(Run(11))
    assert not result.table.disagreements
    verdicts = {gate.name: gate.verdict for gate in result.gates}
    assert verdicts == {"monotone": "PASS", "no attack beats Phi(mu/sqrt 2)": "PASS"}
    areas = {each.curve.split(", sigma")[0]: each.auc for each in result.points}
    # Saturated hits tell nothing of a near duplicate; a loop that turns its probe does.
    assert areas["near duplicate, plain probe"] < 0.55
    assert areas["near duplicate, bisection"] > 0.8
    named = {each.name: each.value for each in result.findings}
    assert named["rows recovered exactly from 256 exact scores"] == 1
    assert min(value for name, value in named.items() if name.startswith("share of T")) > 0.95


def test_an_adaptive_loop_gains_and_cheating_would_be_seen() -> None:
    """With a clear signal: a loop beats asking in turn, and who knows the candidate beats it."""
    random = np.random.default_rng(6)

    def auc(name: str) -> float:
        sides = [
            hunted(
                1.2, 8, 2000, STRATEGIES[name], random, present=present, known=name == "knows it"
            )
            for present in (True, False)
        ]
        return area(*sides).auc

    assert auc("not adaptive") + 0.02 < auc("best arm") < auc("knows it")
    expected = float(stats.norm.cdf(1.2 * math.sqrt(8 / 2)))
    assert auc("knows it") == pytest.approx(expected, abs=0.01)


def test_what_is_drawn() -> None:
    files = figure_3(QUICK).files()
    assert set(files) == {"attacks-3.png", "attacks-3.svg"}
    assert files == figure_3(QUICK).files()
