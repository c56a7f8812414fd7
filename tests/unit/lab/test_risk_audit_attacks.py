"""Optimal attacks: known answers, optimality by enumeration, simulation against whole reports.

Claims are those of docs/notes/risk-audits.md.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk import mechanisms, optimal_attack
from ragaudit.lab.risk.estimation import contributions
from ragaudit.lab.risk.mechanisms import GaussianNoise, LaplaceNoise, finite_advantage
from ragaudit.lab.risk.optimal_attack import (
    Attacked,
    Guesses,
    NoisyPosition,
    OptimalAttack,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
    advantage_of,
    posterior,
    simulate,
)
from ragaudit.lab.risk.threat import AuxiliaryKnowledge, FinitePrior, SuccessSets, ThreatModel
from scipy import stats

ORACLE = json.loads((Path(__file__).parents[2] / "vectors" / "dp_oracle.json").read_bytes())
ENTRIES: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in ORACLE["entries"]}
SKEWED = FinitePrior([0.9, 0.05, 0.05])


def optimal_table(channel: np.ndarray, threat: ThreatModel) -> np.ndarray:
    """The optimal attack's guess for each output and class, shape (outputs, classes)."""
    attack, generator = OptimalAttack(threat), np.random.default_rng(0)
    with np.errstate(divide="ignore"):
        logarithms = np.log(channel.T)
    labels = range(len(threat.auxiliary.classes))
    return np.stack([attack.guess(logarithms, label, generator) for label in labels], axis=1)


# --- Algorithm 1 ---


def test_the_oracles_guess() -> None:
    entry = ENTRIES["alg1.oue.guess"]
    i = entry["inputs"]
    channel = mechanisms.oue_channel(i["m"], i["eps"])
    column = int(i["theta"], 2)  # record 0 is the most significant bit
    attack = OptimalAttack(ThreatModel.reconstruction(FinitePrior(i["prior"])))
    assert attack.best_guesses(np.log(channel[:, column])) == entry["expected"]


@pytest.mark.parametrize(
    ("prior", "epsilon", "by_posterior", "optimal"),
    [([0.9, 0.05, 0.05], 0.2, 0.0, 0.0127), ([0.4, 0.3, 0.15, 0.1, 0.05], 1.0, 0.1324, 0.1829)],
)
def test_claim_1_2_the_largest_posterior_is_not_the_best_guess(
    prior: list[float], epsilon: float, by_posterior: float, optimal: float
) -> None:
    threat = ThreatModel.reconstruction(FinitePrior(prior))
    channel = mechanisms.grr_channel(len(prior), epsilon)
    likeliest = (np.array(prior)[:, None] * channel).argmax(axis=0)
    best = advantage_of(channel, threat, optimal_table(channel, threat))
    assert advantage_of(channel, threat, likeliest) == pytest.approx(by_posterior, abs=5e-5)
    assert best == pytest.approx(optimal, abs=5e-5)


@st.composite
def finite_cases(draw: st.DrawFn) -> tuple[np.ndarray, ThreatModel]:
    m = draw(st.integers(2, 5))
    outputs = draw(st.integers(1, 6))
    cells = st.integers(0, 20)
    table = np.array(
        draw(st.lists(st.lists(cells, min_size=outputs, max_size=outputs), min_size=m, max_size=m)),
        dtype=float,
    )
    table[:, 0] += table.sum(axis=1) == 0
    channel = table / table.sum(axis=1, keepdims=True)
    masses = np.array(draw(st.lists(st.integers(0, 9), min_size=m, max_size=m)), dtype=float)
    masses[0] += masses.sum() == 0
    labels = draw(st.lists(st.integers(0, 2), min_size=m, max_size=m))
    eta = draw(st.sampled_from([0.0, 1.0, 2.0, 9.0]))
    threat = ThreatModel(
        FinitePrior(masses / masses.sum()),
        SuccessSets.on_line(np.arange(m, dtype=float), eta),
        AuxiliaryKnowledge.of_labels(labels),
    )
    possible = threat.prior.probabilities @ channel > 0
    return channel[:, possible] / channel[:, possible].sum(axis=1, keepdims=True).clip(
        1e-300
    ), threat


@settings(max_examples=80, deadline=None)
@given(finite_cases(), st.randoms(use_true_random=False))
def test_claim_1_1_algorithm_1_reaches_theorem_4_3_and_nothing_exceeds_it(
    case: Any, random: Any
) -> None:
    channel, threat = case
    if not np.allclose(channel.sum(axis=1), 1, atol=1e-12):
        return  # a record of prior 0 with outputs that cannot occur
    exact = finite_advantage(channel, threat)
    table = optimal_table(channel, threat)
    assert advantage_of(channel, threat, table) == pytest.approx(exact, abs=1e-10)
    any_other = [[random.randrange(threat.records) for _ in row] for row in table]
    assert advantage_of(channel, threat, any_other) <= exact + 1e-12


def test_declining_is_a_guess_outside_of_the_class() -> None:
    channel = mechanisms.grr_channel(3, 1.0)
    threat = ThreatModel.membership(FinitePrior.uniform(3))
    table = optimal_table(channel, threat)
    # Output 0 speaks for record 0; for the others the attack names somebody else.
    assert table[0, 0] == 0 and table[0, 1] != 1 and table[0, 2] != 2


def test_an_attack_that_ignores_the_output_has_no_advantage() -> None:
    channel = mechanisms.oue_channel(4, 2.0)
    for label in (AuxiliaryKnowledge.none(4), AuxiliaryKnowledge.full(4)):
        threat = ThreatModel(FinitePrior([0.5, 0.3, 0.1, 0.1]), SuccessSets.exact(4), label)
        blind = np.zeros((channel.shape[1], len(label.classes)), dtype=int)
        assert advantage_of(channel, threat, blind) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    ("likelihoods", "message"),
    [
        ([[0.0, np.nan, 0.0]], "possible output"),
        ([[np.inf, 0.0, 0.0]], "possible output"),
        ([[-np.inf, -np.inf, -np.inf]], "possible output"),
        ([[0.0, 0.0]], "shape"),
    ],
)
def test_impossible_likelihoods_are_refused(likelihoods: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        posterior(SKEWED, np.array(likelihoods))
    assert caught.value.where == "log_likelihoods"


def test_unknown_classes_and_shapes_are_refused() -> None:
    attack = OptimalAttack(ThreatModel.reconstruction(SKEWED))
    with pytest.raises(InvalidArgumentError, match="label"):
        attack.weights(np.zeros((1, 3)), 1)
    with pytest.raises(InvalidArgumentError, match="guesses"):
        advantage_of(np.eye(3), attack.threat, [0, 1])


def test_a_likelihood_far_out_in_the_tail_is_no_trouble() -> None:
    attack = OptimalAttack(ThreatModel.reconstruction(FinitePrior.uniform(3)))
    assert attack.best_guesses([-1e8, -1e8 + 1, -2e8]) == [1]


# --- simulation against whole reports ---


def report_attack(name: str, prior: FinitePrior, targets: np.ndarray, seed: int) -> np.ndarray:
    """Guesses from whole reports by Algorithm 1, the slow and obvious way."""
    generator, m = np.random.default_rng(seed), prior.records
    if name == "grr":
        reported = optimal_attack.randomized_response(targets, m, 1.0, generator)
        with np.errstate(divide="ignore"):
            likelihoods = np.log(mechanisms.grr_channel(m, 1.0))[:, reported].T
    elif name == "oue":
        bits = optimal_attack.unary_encoding(targets, m, 1.0, generator)
        _, q = mechanisms.oue_probabilities(1.0)
        likelihoods = np.where(bits, math.log((1 - q) / q), 0.0)
    else:
        members = optimal_attack.subset_selection(targets, m, 1.0, 2, generator)
        p = mechanisms.ss_probability(m, 1.0, 2)
        likelihoods = np.where(members, math.log(p / (1 - p) * (m - 2) / 2), 0.0)
    return OptimalAttack(ThreatModel.reconstruction(prior)).guess(likelihoods, 0, generator)


LOCAL: dict[str, Attacked] = {
    "grr": RandomizedResponse(1.0),
    "oue": UnaryEncoding(1.0),
    "ss": SubsetSelection(1.0, 2),
}


@for_each("name", LOCAL)
@for_each("distinct", [True, False])
def test_claim_1_3_simulated_guesses_have_the_law_of_algorithm_1_on_reports(
    name: str, distinct: bool
) -> None:
    # Distinct prior values leave no ties but those of an empty OUE report, so the joint law of
    # target and guess must agree; a uniform prior leaves hits to compare, an empty report only
    # the advantage. Chi-square of two samples at alpha = 1e-6, or a difference of two means of
    # samples in [-1, 1]: by Hoeffding at 1e-6, 2 sqrt(ln(2e6)/(2 n)) sqrt(2) = .038.
    m, runs = 4, 40_000
    prior = FinitePrior([0.4, 0.3, 0.2, 0.1]) if distinct else FinitePrior.uniform(m)
    found = simulate(LOCAL[name], prior, runs, np.random.default_rng(1))
    targets = simulate(LOCAL[name], prior, runs, np.random.default_rng(2)).targets
    slow = report_attack(name, prior, targets, seed=3)
    if distinct and name == "oue":
        threat = ThreatModel.reconstruction(prior)
        fast_mean = contributions(found.targets, found.guesses, threat).mean()
        assert fast_mean == pytest.approx(contributions(targets, slow, threat).mean(), abs=0.038)
        return
    if distinct:
        first = np.bincount(found.targets * m + found.guesses, minlength=m * m)
        second = np.bincount(targets * m + slow, minlength=m * m)
    else:
        first = np.bincount(found.targets == found.guesses, minlength=2)
        second = np.bincount(targets == slow, minlength=2)
    table = np.stack([first, second])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > 1e-6


def test_the_sampled_reports_have_the_law_of_the_channel() -> None:
    m, runs = 4, 40_000
    targets = np.full(runs, 2)
    bits = optimal_attack.unary_encoding(targets, m, 1.0, np.random.default_rng(4))
    codes = bits @ (1 << np.arange(m)[::-1])
    expected = mechanisms.oue_channel(m, 1.0)[2] * runs
    assert stats.chisquare(np.bincount(codes, minlength=2**m), expected).pvalue > 1e-6
    members = optimal_attack.subset_selection(targets, m, 1.0, 2, np.random.default_rng(5))
    assert (members.sum(axis=1) == 2).all()
    rows = {tuple(row): k for k, row in enumerate(mechanisms.ss_outputs(m, 2).tolist())}
    drawn = np.bincount([rows[tuple(row)] for row in members.tolist()], minlength=len(rows))
    assert stats.chisquare(drawn, mechanisms.ss_channel(m, 1.0, 2)[2] * runs).pvalue > 1e-6


@pytest.mark.parametrize("noise", [LaplaceNoise(0.3), GaussianNoise(0.3)])
def test_noisy_positions_by_nearest_record_and_by_algorithm_1_agree(noise: Any) -> None:
    positions = np.linspace(0, 1, 5)
    nearest = NoisyPosition(positions, noise)
    nearly_uniform = FinitePrior(np.full(5, 0.2) + np.array([1, -1, 0, 0, 0]) * 1e-11)
    fast = simulate(nearest, FinitePrior.uniform(5), 20_000, np.random.default_rng(6))
    targets = fast.targets
    slow = nearest.guess(targets, nearly_uniform, np.random.default_rng(7))
    fast_again = nearest.guess(targets, FinitePrior.uniform(5), np.random.default_rng(7))
    assert np.array_equal(slow, fast_again)


@for_each("attacked", LOCAL.values())
@for_each("epsilon", [0.0, 1e-6, 700.0, 1e4])
def test_extreme_epsilons(attacked: Attacked, epsilon: float) -> None:
    extreme = type(attacked)(**{**vars(attacked), "epsilon": epsilon})
    found = simulate(extreme, FinitePrior.uniform(6), 1000, np.random.default_rng(8))
    assert found.guesses.min() >= 0 and found.guesses.max() < 6


def test_ten_million_records_cost_no_more_per_run() -> None:
    prior = FinitePrior.uniform(10_000_000)
    found = simulate(UnaryEncoding(20.0), prior, 1000, np.random.default_rng(9))
    # Half of the bits survive, others are rare: P[success] is about .5 (1 - e^-0.02).
    assert 400 < found.successes < 600


def test_runs_are_counted_and_none_is_refused() -> None:
    done: list[int] = []
    simulate(
        RandomizedResponse(1.0), FinitePrior.uniform(2), 250_000, np.random.default_rng(0),
        done.append,
    )  # fmt: skip
    assert sum(done) == 250_000
    with pytest.raises(InvalidArgumentError, match="runs"):
        simulate(RandomizedResponse(1.0), FinitePrior.uniform(2), 0, np.random.default_rng(0))
    with pytest.raises(InvalidArgumentError, match="runs"):
        simulate(RandomizedResponse(1.0), FinitePrior.uniform(2), 10**12, np.random.default_rng(0))


def test_near_guesses_count_as_successes() -> None:
    pairs = Guesses(np.array([0, 1, 2, 3]), np.array([0, 2, 0, 3]))
    assert pairs.successes == pairs.hits(SuccessSets.exact(4)) == 2
    assert pairs.hits(SuccessSets.on_line(np.arange(4.0), 1.0)) == 3


def test_outputs_that_no_target_can_give_are_let_pass() -> None:
    channel = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    attack = OptimalAttack(ThreatModel.reconstruction(FinitePrior([0.5, 0.5, 0.0])))
    with np.errstate(divide="ignore"):
        likelihoods = np.log(channel).T
    weights = attack.weights(likelihoods)
    assert weights[2] == pytest.approx([0, 0, 0])
    assert set(attack.guess(likelihoods, 0, np.random.default_rng(0))) <= {0, 1, 2}
    with pytest.raises(InvalidArgumentError, match="log_likelihoods"):
        attack.weights(np.full((1, 3), -np.inf))
