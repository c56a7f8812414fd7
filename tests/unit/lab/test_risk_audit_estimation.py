"""Estimates of an advantage, their confidence bounds, and other auditors' numbers.

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
from mpmath import mp, mpf
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk import mechanisms
from ragaudit.lab.risk.estimation import (
    Method,
    check_drawn_from,
    contributions,
    from_contributions,
    from_counts,
    from_guesses,
    ldp_auditor_epsilon,
    one_run_epsilon,
    one_run_p_value,
    proportion_high,
    proportion_low,
)
from ragaudit.lab.risk.mechanisms import finite_advantage
from ragaudit.lab.risk.optimal_attack import (
    OptimalAttack,
    RandomizedResponse,
    SubsetSelection,
    advantage_of,
    simulate,
)
from ragaudit.lab.risk.threat import AuxiliaryKnowledge, FinitePrior, SuccessSets, ThreatModel
from ragaudit.lab.risk.validation import AssumptionError
from scipy import stats

ORACLE = json.loads((Path(__file__).parents[2] / "vectors" / "dp_oracle.json").read_bytes())
ENTRIES: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in ORACLE["entries"]}
UNIFORM = ThreatModel.reconstruction(FinitePrior.uniform(4))


def test_the_oracles_estimator() -> None:
    entry = ENTRIES["rb.estimator"]
    pairs = np.array([[0, 0], [0, 1], [1, 1], [2, 0], [2, 2]])
    threat = ThreatModel.reconstruction(FinitePrior(entry["inputs"]["prior"]))
    samples = contributions(pairs[:, 0], pairs[:, 1], threat)
    assert samples.mean() == pytest.approx(entry["expected"], abs=entry["atol"])


@pytest.mark.parametrize(
    "entry",
    [e for e in ORACLE["entries"] if e["topic"] == "audit.confidence"],
    ids=lambda e: e["id"],
)
def test_the_oracles_clopper_pearson_bounds(entry: dict[str, Any]) -> None:
    i, expected = entry["inputs"], entry["expected"]
    found = from_counts(i["successes"], i["trials"], i["m"], i["confidence"])
    assert found.advantage == pytest.approx(expected["rad"], abs=1e-12)
    assert found.lower == pytest.approx(expected["rad_lower"], abs=entry["atol"])
    assert found.lower + 1 / i["m"] == pytest.approx(expected["success_lower"], abs=1e-9)
    quantile = stats.beta.ppf(1 - i["confidence"], i["successes"], i["trials"] - i["successes"] + 1)
    assert found.lower + 1 / i["m"] == pytest.approx(quantile, abs=1e-9)


@for_each("eta", [0.0, 1.0])
@for_each("labels", [[0, 0, 0, 0], [0, 1, 2, 3], [0, 0, 1, 1]])
def test_claim_2_1_the_samples_mean_is_the_advantage_exactly(labels: list[int], eta: float) -> None:
    # Every target and output once, weighted by its probability: no sampling error.
    prior = FinitePrior([0.4, 0.3, 0.2, 0.1])
    success = SuccessSets.on_line([0.0, 1.0, 2.0, 3.0], eta)
    threat = ThreatModel(prior, success, AuxiliaryKnowledge.of_labels(labels))
    channel = mechanisms.grr_channel(4, 1.5)
    attack, generator = OptimalAttack(threat), np.random.default_rng(0)
    classes = range(len(threat.auxiliary.classes))
    table = np.stack([attack.guess(np.log(channel.T), c, generator) for c in classes], axis=1)
    targets, outputs = (grid.ravel() for grid in np.indices(channel.shape))
    samples = contributions(targets, table[outputs], threat)
    weights = (prior.probabilities[:, None] * channel).ravel()
    assert samples @ weights == pytest.approx(advantage_of(channel, threat, table), abs=1e-12)
    assert samples @ weights == pytest.approx(finite_advantage(channel, threat), abs=1e-12)


def test_its_variance_is_below_that_of_two_simulations() -> None:
    prior = FinitePrior([0.5, 0.3, 0.2])
    threat = ThreatModel.reconstruction(prior)
    found = simulate(RandomizedResponse(1.0), prior, 20_000, np.random.default_rng(1))
    again = simulate(RandomizedResponse(1.0), prior, 20_000, np.random.default_rng(2))
    one = contributions(found.targets, found.guesses, threat)
    # The paper's second loop: the same attack about another draw of the target.
    two = (found.targets == found.guesses) - (found.targets == again.guesses).astype(float)
    assert one.mean() == pytest.approx(two.mean(), abs=0.03)
    assert one.var() < two.var()


def coverage(method: Method, confidence: float, repeats: int) -> int:
    """How often the lower bound exceeds the true advantage."""
    prior = FinitePrior.uniform(4)
    truth = finite_advantage(mechanisms.grr_channel(4, 1.0), UNIFORM)
    failures = 0
    for seed in range(repeats):
        found = simulate(RandomizedResponse(1.0), prior, 400, np.random.default_rng(seed))
        estimate = from_guesses(found.targets, found.guesses, UNIFORM, confidence, method)
        failures += estimate.lower > truth
    return failures


@pytest.mark.parametrize("method", Method)
def test_claim_2_2_the_lower_bound_errs_no_more_often_than_it_says(method: Method) -> None:
    # Level .9 and 400 repeats: at most Binomial(400, .1) failures; the critical value is its
    # 1 - 1e-6 quantile.
    assert coverage(method, 0.9, 400) <= stats.binom.isf(1e-6, 400, 0.1)


def test_clopper_pearson_is_not_needlessly_wide() -> None:
    # Its true error at this success probability, by summing the binomial law over the counts
    # whose bound is too high; the simulation must not err significantly (1e-6) less often.
    truth = mechanisms.grr_probabilities(4, 1.0)[0]
    too_high = [k for k in range(401) if from_counts(k, 400, 4, 0.9).lower + 0.25 > truth]
    error = float(stats.binom.pmf(too_high, 400, truth).sum())
    assert 0.05 < error <= 0.1
    failures = coverage(Method.CLOPPER_PEARSON, 0.9, 400)
    assert failures >= stats.binom.ppf(1e-6, 400, error)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 500), st.data(), st.integers(2, 50), st.floats(0.5, 0.9999))
def test_bounds_lie_below_estimates(n: int, data: st.DataObject, m: int, level: float) -> None:
    found = from_counts(data.draw(st.integers(0, n)), n, m, level)
    assert -1 / m - 1e-15 <= found.lower <= found.advantage + 1e-15


def test_more_confidence_is_a_lower_bound() -> None:
    lows = [from_counts(60, 100, 2, level).lower for level in (0.9, 0.99, 0.999999)]
    assert lows == sorted(lows, reverse=True)


def test_claim_2_3_favorite_targets_and_wrong_priors_are_refused() -> None:
    generator = np.random.default_rng(3)
    honest = generator.integers(0, 4, 2000)
    check_drawn_from(honest, UNIFORM.prior)
    with pytest.raises(InvalidArgumentError, match="record 0 is the target of 2000"):
        check_drawn_from(np.zeros(2000, dtype=int), UNIFORM.prior)
    with pytest.raises(InvalidArgumentError, match="targets"):
        check_drawn_from(honest, FinitePrior([0.97, 0.01, 0.01, 0.01]))
    with pytest.raises(InvalidArgumentError, match="record 3"):
        check_drawn_from(np.array([0, 3]), FinitePrior([0.5, 0.5, 0.0, 0.0]))
    # An attack that always names the favorite would look perfect.
    with pytest.raises(InvalidArgumentError):
        from_guesses(np.zeros(100, dtype=int), np.zeros(100, dtype=int), UNIFORM, 0.95)


@for_each(
    ("call", "field"),
    [
        (lambda: from_counts(5, 4, 2, 0.95), "successes"),
        (lambda: from_counts(-1, 4, 2, 0.95), "successes"),
        (lambda: from_counts(1, 0, 2, 0.95), "trials"),
        (lambda: from_counts(1, 4, 1, 0.95), "records"),
        (lambda: from_counts(1, 4, 2, 1.0), "confidence"),
        (lambda: from_counts(1, 4, 2, float("nan")), "confidence"),
        (lambda: from_counts(True, 4, 2, 0.95), "successes"),
        (lambda: contributions(np.array([4]), np.array([0]), UNIFORM), "targets"),
        (lambda: contributions(np.array([0]), np.array([-1]), UNIFORM), "guesses"),
        (lambda: contributions(np.array([0]), np.array([0, 1]), UNIFORM), "guesses"),
        (lambda: contributions(np.array([]), np.array([]), UNIFORM), "targets"),
        (lambda: from_contributions(np.array([0.0, 2.0]), -1, 1, 0.9, Method.HOEFFDING), "samples"),
        (lambda: from_contributions(np.array([0.0]), -1, 1, 0.9, Method.HOEFFDING), "samples"),
    ],
)
def test_bad_input_names_the_field(call: Any, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert caught.value.where == field


def test_clopper_pearson_outside_of_its_assumptions_is_refused() -> None:
    threat = ThreatModel.reconstruction(FinitePrior([0.5, 0.5, 0.0]))
    pairs = np.array([0, 1, 0, 1])
    with pytest.raises(AssumptionError, match="uniform prior"):
        from_guesses(pairs, pairs, threat, 0.9, Method.CLOPPER_PEARSON)
    with pytest.raises(AssumptionError, match="needs counts"):
        from_contributions(np.zeros(4), -1, 1, 0.9, Method.CLOPPER_PEARSON)


# --- other auditors ---


def test_claim_3_3_ldp_auditors_value_and_cap() -> None:
    entry = ENTRIES["ldpauditor.50.50"]
    i = entry["inputs"]
    found = ldp_auditor_epsilon(i["tp"], i["fp"], i["trials"], i["alpha"])
    assert found == pytest.approx(entry["expected"], abs=entry["atol"])
    # The largest value that 10^6 runs can give; the paper reads about 12.25 off its plot.
    assert ldp_auditor_epsilon(10**6, 0, 10**6, 0.01) == pytest.approx(12.025, abs=5e-4)
    assert ldp_auditor_epsilon(0, 50, 100, 0.01) == -math.inf
    assert ldp_auditor_epsilon(50, 1, 100, 0.01, delta=0.9) == -math.inf
    assert ldp_auditor_epsilon(50, 1, 100, 0.01, delta=0.1) < ldp_auditor_epsilon(50, 1, 100, 0.01)


def test_one_run_reproduces_a_published_number() -> None:
    # ml_privacy_meter's notebook: 86 of 132 correct, delta 0, p .05, prints .3122.
    assert one_run_epsilon(132, 132, 86, 0.95) == pytest.approx(0.312198, abs=1e-6)


def test_one_run_falls_with_delta_and_with_errors() -> None:
    values = [one_run_epsilon(1000, 200, 180, 0.95, delta) for delta in (0.0, 1e-5, 1e-3)]
    assert values == sorted(values, reverse=True) and values[-1] < values[0]
    assert one_run_epsilon(1000, 200, 100, 0.95) == 0.0
    assert one_run_p_value(10, 10, 0, 1.0, 0.1) == 1.0


def test_one_runs_delta_term_by_the_authors_own_loop() -> None:
    def loop(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
        q = 1 / (1 + math.exp(-epsilon))
        alpha = total = 0.0
        for i in range(1, v + 1):
            total += float(stats.binom.pmf(v - i, r, q))
            alpha = max(alpha, total / i)
        return min(1.0, float(stats.binom.sf(v - 1, r, q)) + alpha * delta * 2 * m)

    for case in ((1000, 200, 180, 1.0, 1e-5), (50, 50, 30, 0.2, 1e-3), (10, 5, 5, 3.0, 0.01)):
        assert one_run_p_value(*case) == pytest.approx(loop(*case), rel=1e-9)


@for_each(
    ("call", "field"),
    [
        (lambda: ldp_auditor_epsilon(5, 0, 4, 0.01), "true_positives"),
        (lambda: ldp_auditor_epsilon(1, 5, 4, 0.01), "false_positives"),
        (lambda: ldp_auditor_epsilon(1, 1, 4, 0.0), "alpha"),
        (lambda: ldp_auditor_epsilon(1, 1, 4, 0.01, 2.0), "delta"),
        (lambda: one_run_epsilon(4, 5, 1, 0.9), "guesses"),
        (lambda: one_run_epsilon(4, 4, 5, 0.9), "correct"),
        (lambda: one_run_p_value(4, 4, 1, -1.0), "epsilon"),
    ],
)
def test_bad_counts_of_the_comparators(call: Any, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert caught.value.where == field


def test_the_simulated_advantage_is_theorem_4_3s_value() -> None:
    # 10^5 samples in an interval of length 1: Hoeffding's two-sided half-width at 1e-6 is .0085.
    prior = FinitePrior([0.4, 0.3, 0.2, 0.1])
    threat = ThreatModel.reconstruction(prior)
    found = simulate(SubsetSelection(1.0, 2), prior, 100_000, np.random.default_rng(5))
    mean = contributions(found.targets, found.guesses, threat).mean()
    exact = finite_advantage(mechanisms.ss_channel(4, 1.0, 2), threat)
    assert mean == pytest.approx(exact, abs=0.0085)


def exact_tail(successes: int, trials: int, rate: Any) -> Any:
    """P[at least ``successes``] of Binomial(trials, rate), summed at 60 digits."""
    with mp.workdps(60):
        p = mpf(rate)
        return mp.fsum(
            math.comb(trials, k) * p**k * (1 - p) ** (trials - k)
            for k in range(successes, trials + 1)
        )


@settings(max_examples=60, deadline=None)
@given(
    trials=st.integers(1, 300),
    share=st.floats(0, 1),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.975, 0.99, 0.999999]),
)
def test_limits_of_rates_are_never_on_the_wrong_side(
    trials: int, share: float, confidence: float
) -> None:
    successes = round(share * trials)
    low = proportion_low(successes, trials, confidence)
    high = proportion_high(successes, trials, confidence)
    assert 0 <= low <= successes / trials <= high <= 1
    level = 1 - mpf(confidence)
    if successes:
        assert exact_tail(successes, trials, low) <= level
        # And not needlessly low.
        assert exact_tail(successes, trials, low * (1 + 1e-10)) >= level * (1 - mpf("1e-7"))
    if successes < trials:
        assert 1 - exact_tail(successes + 1, trials, high) <= level * (1 + mpf("1e-11"))


def test_a_certified_epsilon_is_not_above_the_exact_one() -> None:
    """An inversion to a tolerance once gave an epsilon that was 3e-9 too large."""
    for successes, trials in ((900, 1000), (5200, 10_000), (70, 100), (999_000, 10**6)):
        found = from_counts(successes, trials, 2, 0.95)
        with mp.workdps(40):
            share, level = mpf(found.lower) + mpf(1) / 2, 1 - mpf(0.95)
            assert upper_tail(successes, trials, share) <= level
            # And not 1e-11 too low: the tail rises with the share.
            assert upper_tail(successes, trials, share + mpf(10) ** -11) > level


def upper_tail(successes: int, trials: int, rate: Any) -> Any:
    """P[at least ``successes``] of Binomial(trials, rate), term by term, at the working precision.

    Each term is the one before times a ratio, and the first comes from logarithms of factorials:
    a million trials take a moment, where the incomplete beta function takes minutes.
    """
    logs = mp.loggamma(trials + 1) - mp.loggamma(successes + 1)
    logs -= mp.loggamma(trials - successes + 1)
    term = mp.exp(logs + successes * mp.log(rate) + (trials - successes) * mp.log(1 - rate))
    total, odds = mpf(0), rate / (1 - rate)
    for k in range(successes, trials + 1):
        total += term
        term *= odds * (trials - k) / (k + 1)
    return total


@for_each("trials", [10**20, 10**13, -1, 0, "100", 1e3, True])
def test_impossible_numbers_of_trials_are_refused_by_name(trials: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        from_counts(1, trials, 2, 0.95)
    assert caught.value.where == "trials"
    with pytest.raises(InvalidArgumentError) as caught:
        ldp_auditor_epsilon(1, 0, trials, 0.05)
    assert caught.value.where == "trials"
