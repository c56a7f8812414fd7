"""The evasion experiment: who asks what, what an estimator scores, a small run."""

import math
from typing import Any

import numpy as np
import pytest
from ragaudit.lab.reproduce.attacks_coalition import group_level, group_sizes
from ragaudit.lab.reproduce.attacks_evasion import (
    ACCOUNTS,
    ARMS,
    COALITION,
    HONEST,
    PLANNED,
    QUESTIONS,
    TAU,
    WINDOWS,
    Arm,
    Seen,
    evasion,
    threshold,
    traffic,
)
from ragaudit.lab.reproduce.attacks_results import Run, text
from ragaudit.lab.reproduce.attacks_texts import FOLDER
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

needs_wordnet = pytest.mark.skipif(not FOLDER.is_dir(), reason="wordnet-base is not installed")


def texts() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    vectors = np.random.default_rng(1).standard_normal((8000, 64))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("honest", HONEST)
def test_everyone_asks_as_often_as_allowed(honest: str) -> None:
    made = traffic(np.random.default_rng(2), texts(), honest)
    assert made.worth == 0
    _, counts = np.unique(made.accounts * WINDOWS + made.windows, return_counts=True)
    assert (len(counts), set(counts)) == (ACCOUNTS * WINDOWS, {QUESTIONS})


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_an_arm_keeps_what_it_aims(arm: Arm) -> None:
    """What is worth of it: the aimed share, within 4 errors of drawing who asks honestly."""
    made = traffic(np.random.default_rng(3), texts(), HONEST[0], arm)
    share = 0.5 if arm.aside == "decoy" else 1 - arm.honest
    # An honest question has a mean squared cosine of 1/64 with the target.
    expected = COALITION * (arm.aim * share + arm.honest / 64)
    trials = COALITION * WINDOWS * QUESTIONS
    error = COALITION * math.sqrt(max(arm.honest * (1 - arm.honest), 1e-4) / trials)
    assert made.worth == pytest.approx(expected, abs=4 * error + 0.05)
    if arm.staggered:
        own = made.accounts >= ACCOUNTS - COALITION
        order = np.argsort(made.times[own], kind="stable")
        accounts, times = made.accounts[own][order], made.times[own][order]
        changes = np.flatnonzero(np.diff(accounts))
        assert (np.diff(times)[changes] > 1000 * TAU).all()


def test_the_level_of_a_group_is_that_of_single_linkage() -> None:
    alike = np.full((2 * PLANNED, 2 * PLANNED), 0.1)
    # A chain of one account more than is planned for, whose weakest link is .6.
    for account in range(PLANNED):
        alike[account, account + 1] = alike[account + 1, account] = 0.6 + 0.01 * account
    assert group_level(alike, PLANNED + 1) == 0.6
    alike[0, 1] = alike[1, 0] = 0.1
    assert group_level(alike, PLANNED + 1) == 0.1


def test_groups_are_connected_components() -> None:
    """At levels that are met exactly, between them, above and below all of them."""
    random = np.random.default_rng(6)
    levels = [-1, 0.1, 0.5, 0.725, 0.9, 1, 2]
    for _ in range(20):
        alike = random.integers(0, 41, size=(12, 12)) / 40
        alike = np.maximum(alike, alike.T)

        def largest(level: float, alike: Any = alike) -> int:
            _, labels = connected_components(csr_array(alike >= level), directed=False)
            return int(np.bincount(labels).max())

        assert group_sizes(alike, levels).tolist() == [largest(level) for level in levels]
        for size in (2, 5, 12):
            level = group_level(alike, size)
            assert largest(level) >= size > largest(level + 1e-9)


def test_a_threshold_is_the_largest_honest_score() -> None:
    honest = [Seen({"x": value}, 1, 0) for value in (0.25, 1.5, 0.5)]
    assert threshold(honest, "x") == 1.5


@pytest.mark.nightly
@needs_wordnet
def test_a_small_run() -> None:
    """The product's estimate by direction sees what the policy's other one does not."""
    found = evasion(Run(5, quick=True))
    assert "aimed at one direction" in text([found])
    assert not found.table.disagreements
    values = {each.name: each.value for each in found.findings}
    for kind in (HONEST[0], HONEST[2]):
        name = f"staggered beyond tau, among {kind}"
        assert values[f"{name}: detected, aimed at one direction"] == 1
        assert values[f"{name}: k-hat, aimed at one direction"] >= 20
