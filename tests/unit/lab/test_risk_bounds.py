"""Bounds for unknown mechanisms: above every optimum, reached where the paper says so; their form.

Claims are those of docs/notes/disclosure-risk.md.
"""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk import mechanisms
from ragaudit.lab.risk.continuous import continuous_advantage
from ragaudit.lab.risk.general_bounds import (
    Knowledge,
    Scenario,
    approximate_dp_bound,
    approximate_dp_terms,
    best_bound,
    channel_bounds,
    exact_guess_bound,
    exact_guess_knapsack,
    normalized,
    total_variation_bound,
    trade_off_bound,
    trade_off_forms,
    uniform_exact_guess_bound,
    uniform_exact_guess_value,
)
from ragaudit.lab.risk.mechanisms import (
    GaussianNoise,
    LaplaceNoise,
    channel_total_variation,
    finite_advantage,
)
from ragaudit.lab.risk.one_dimensional import line_advantage
from ragaudit.lab.risk.threat import (
    AuxiliaryKnowledge,
    ContinuousPrior,
    FinitePrior,
    SuccessSets,
    ThreatModel,
)
from ragaudit.lab.risk.trade_off import (
    ApproximateTradeOff,
    GaussianTradeOff,
    PrivacyProfile,
    approximate_total_variation,
    composed_total_variation,
)
from ragaudit.privacy.accounting import risk as verdict
from ragaudit.privacy.accounting.risk import PriorSummary
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, TotalVariation
from scipy import integrate, optimize, stats

REPLACE = NeighboringRelation.REPLACE
ROUNDING = 1e-12


def least_delta(channel: np.ndarray, epsilon: float) -> float:
    """The exact delta of a channel at this epsilon."""
    excess = channel[:, None, :] - math.exp(epsilon) * channel[None, :, :]
    return float(min(1.0, np.maximum(excess, 0).sum(axis=2).max()))


def random_channel(rng: np.random.Generator) -> np.ndarray:
    """Near-constant, ordinary, near-deterministic or randomized-response-like rows."""
    records, outputs = int(rng.integers(2, 7)), int(rng.integers(2, 9))
    kind = rng.integers(4)
    if kind == 3:
        mixed = mechanisms.grr_channel(records, float(rng.uniform(0, 4)))
        return mixed @ rng.dirichlet(np.full(records, 0.05), size=records)
    return rng.dirichlet(np.full(outputs, [0.1, 1.0, 30.0][kind]), size=records)


def random_prior(rng: np.random.Generator, records: int) -> FinitePrior:
    if rng.random() < 0.3:
        return FinitePrior.uniform(records)
    prior = rng.dirichlet(np.full(records, rng.choice([0.3, 2.0])))
    if rng.random() < 0.3:
        prior[rng.integers(records)] = 0
    return FinitePrior(prior / prior.sum())


def rounded_gaussian(rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Gaussian noise on a line, rounded to cells that part neighbors; with its mu."""
    positions = np.sort(rng.random(int(rng.integers(2, 7))))
    noise = GaussianNoise(float(rng.uniform(0.2, 2)))
    cuts = np.concatenate([(positions[1:] + positions[:-1]) / 2, rng.normal(0.5, 1, 3)])
    edges = np.concatenate([[-np.inf], np.sort(cuts), [np.inf]])
    channel = np.diff(noise.cdf(edges - positions[:, None]), axis=1).clip(0)
    return channel, float(positions[-1] - positions[0]) / noise.scale


@pytest.mark.parametrize("block", range(10))
def test_every_bound_is_above_the_optimum_of_1000_random_mechanisms(block: int) -> None:
    """Claims 6.1, 6.4, 6.5, 6.7, 7.2, 7.5 and 8.1, at three points of each privacy profile."""
    rng = np.random.default_rng(block)
    for _ in range(100):
        channel, mu = rounded_gaussian(rng) if rng.random() < 0.3 else (random_channel(rng), None)
        records = len(channel)
        prior = random_prior(rng, records)
        sets = SuccessSets.on_line(
            np.arange(records, dtype=float), float(rng.choice([0.0, 0.0, 1.0]))
        )
        none = ThreatModel.reconstruction(prior, sets)
        labels = AuxiliaryKnowledge.of_labels(rng.integers(0, 3, records).tolist())
        variation = channel_total_variation(channel)
        pairs = [(eps, least_delta(channel, eps)) for eps in (0.0, float(rng.uniform(0, 3)), 3.0)]
        guarantees = [
            *(ApproximateDp.of(eps, delta, REPLACE) for eps, delta in pairs),
            TotalVariation.of(min(1.0, variation), REPLACE),
            PrivacyProfile(pairs, REPLACE),
            *([] if mu is None else [GaussianDp.of(mu, REPLACE)]),
        ]
        for threat in (none, ThreatModel(prior, sets, labels), ThreatModel.membership(prior)):
            optimum = finite_advantage(channel, threat)
            best = best_bound(Scenario.of_threat(threat), guarantees)  # type: ignore[arg-type]
            values = {bound.theorem: bound.value for bound in best.applicable[::-1]}
            if "Theorem 5.1" in values:
                assert values["Theorem 5.1"] <= values["Proposition 5.3"] + ROUNDING
            for bound in best.applicable:
                assert bound.value >= optimum - ROUNDING, (bound, channel, prior)
            assert best.value >= optimum - ROUNDING
            assert best.winner is best.applicable[0]
            guesses = rng.integers(0, records, (channel.shape[1], records))
            attack = realized(channel, threat, guesses)
            assert attack <= optimum + ROUNDING <= best.value + 2 * ROUNDING


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0])
def test_claim_6_1_total_variation_is_reached_with_full_knowledge(epsilon: float) -> None:
    """Two records under randomized response: tanh(eps/2) of what is possible, and delta more."""
    prior = FinitePrior([0.3, 0.7])
    threat = ThreatModel.membership(prior)
    delta = 0.05
    pure = mechanisms.grr_channel(2, epsilon)
    leaking = np.hstack([(1 - delta) * pure, delta * np.eye(2)])
    for channel, share in ((pure, 0.0), (leaking, delta)):
        bound = total_variation_bound(
            Scenario.of_threat(threat), ApproximateDp.of(epsilon, share, REPLACE)
        )
        optimum = finite_advantage(channel, threat)
        assert optimum == pytest.approx(bound.value, rel=1e-9)
        assert optimum <= bound.value


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_claim_6_8_a_coarser_summary_only_loosens(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kappa, least, largest = np.sort(rng.random(3)) ** 2
    fine = PriorSummary.of(kappa, least, largest)
    coarse = PriorSummary.of(kappa * rng.random(), 0.0, largest + (1 - largest) * rng.random())
    for guarantee in (ApproximateDp.of(1.5, 0.01, REPLACE), GaussianDp.of(1.2, REPLACE)):
        for bound in (total_variation_bound, trade_off_bound):
            at_fine, at_coarse = (
                bound(Scenario(each, Knowledge.NONE, exact_guesses=False), guarantee).value
                for each in (fine, coarse)
            )
            assert at_coarse >= at_fine - ROUNDING


@for_each("seed", range(30))
def test_claim_7_1_no_partition_of_the_outputs_gains_more_than_the_budget(seed: int) -> None:
    """sum of P_z(A_z) - p(A_z) over any assignment of outputs to records, at exact delta."""
    rng = np.random.default_rng(seed)
    channel = random_channel(rng)
    records = len(channel)
    epsilon = float(rng.uniform(0.01, 3))
    delta = least_delta(channel, epsilon)
    odds = math.exp(epsilon)
    budget = (records - 1) * (odds - 1 + records * delta) / (odds + records - 1)
    mixture = rng.dirichlet(np.ones(records)) @ channel
    assert (channel.max(axis=0) - mixture).sum() <= budget + ROUNDING


def test_claim_8_1_a_guarantee_under_another_adjacency_is_refused() -> None:
    guarantee = ApproximateDp.of(1, 0, NeighboringRelation.ADD_REMOVE)
    for bound in (total_variation_bound, trade_off_bound, uniform_exact_guess_bound):
        with pytest.raises(ValueError, match="relation"):
            bound(Scenario.uniform(5), guarantee)
    doubled = total_variation_bound(Scenario.uniform(5), guarantee.under(REPLACE))
    assert doubled.value == pytest.approx(math.tanh(1) * 0.8)


def test_claim_8_3_gaussian_guarantees_also_give_the_bounds_for_exact_guesses() -> None:
    gaussian = GaussianDp.of(1, REPLACE)
    uniform = best_bound(Scenario.uniform(4), [gaussian])
    assert uniform.winner.theorem == "Corollary 5.6"
    assert uniform.value == pytest.approx(0.25847, abs=1e-5)
    skewed = ThreatModel.reconstruction(FinitePrior([0.4, 0.3, 0.2, 0.1]))
    found = best_bound(Scenario.of_threat(skewed), [gaussian])
    assert {bound.theorem for bound in found.applicable} == {
        "Theorem 4.2", "Theorem 5.1", "Theorem 5.5",
    }  # fmt: skip


@pytest.mark.parametrize("epsilon", [1.0, 20.0, 40.0])
@pytest.mark.parametrize("skewed", [False, True])
def test_claim_7_2_holds_for_a_million_records(epsilon: float, skewed: bool) -> None:
    """Running sums of so many shares lose more digits than a bound is raised by otherwise."""
    weights = np.ones(10**6)
    weights[0] = 10**6 - 1 if skewed else 1
    threat = ThreatModel.reconstruction(FinitePrior(weights / weights.sum()))
    bound = exact_guess_bound(
        Scenario.of_threat(threat), ApproximateDp.of(epsilon, 0, REPLACE)
    ).value
    reached = mechanisms.grr_advantage(threat, epsilon)
    assert reached <= bound
    if not skewed:  # there it is reached
        assert bound == pytest.approx(reached, rel=1e-8)


def test_bounds_are_raised_by_what_the_arithmetic_may_lose() -> None:
    """Section 11 of the note: 1e-12 of itself and 2^-52."""
    found = total_variation_bound(Scenario.uniform(4), ApproximateDp.of(1, 0, REPLACE)).value
    plain = math.tanh(0.5) * 0.75
    assert found - plain == pytest.approx(1e-12 * plain + 2.0**-52, rel=0.3)


def realized(channel: np.ndarray, threat: ThreatModel, guesses: np.ndarray) -> float:
    """The exact advantage (Definition 4.1) of an attack: guess[output, class label]."""
    prior, labels = threat.prior.probabilities, threat.auxiliary.labels
    drift = prior[:, None] * (channel - prior @ channel)
    return sum(
        drift[z, output]
        for z in range(threat.records)
        for output in range(channel.shape[1])
        if threat.success.hits(int(guesses[output, labels[z]]), z)
    )


@for_each("seed", range(60))
def test_claim_7_2_the_greedy_bound_is_the_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 9))
    prior = rng.dirichlet(np.full(m, rng.choice([0.2, 1.0, 10.0])))
    epsilon, delta = float(rng.choice([0.0, 0.3, 1.0, 4.0, 9.0])), float(rng.choice([0, 1e-5, 0.2]))
    share = approximate_total_variation(epsilon, delta)
    budget = (m - 1) * (math.expm1(epsilon) + m * delta) / (math.exp(epsilon) + m - 1)
    found = optimize.linprog(
        -prior,
        A_ub=np.ones((1, m)),
        b_ub=[budget],
        bounds=[(0, share * (1 - p)) for p in prior],
        method="highs",
    )
    assert exact_guess_knapsack(prior, epsilon, delta).value == pytest.approx(-found.fun, abs=1e-9)


def test_claim_7_3_records_without_probability_do_not_count() -> None:
    wide = FinitePrior([0.4, 0.3, 0.3, *([0.0] * 7)])
    scenario = Scenario.of_threat(ThreatModel.reconstruction(wide))
    bound = exact_guess_bound(scenario, ApproximateDp.of(1.0, 0, REPLACE))
    assert bound.value == pytest.approx(0.2462, abs=5e-5)
    loose = exact_guess_knapsack(wide.probabilities, 1.0, 0.0).value
    assert loose == pytest.approx(0.3050, abs=5e-5)


@for_each("records", [2, 10, 1000])
@for_each("delta", [0.0, 1e-5, 0.01])
def test_claim_7_4_uniform_prior_is_the_knapsack_and_tight_for_grr(
    records: int, delta: float
) -> None:
    for epsilon in (0.0, 0.5, 2.0, 10.0):
        uniform = np.full(records, 1 / records)
        closed = uniform_exact_guess_value(records, epsilon, delta)
        found = exact_guess_knapsack(uniform, epsilon, delta).value
        assert found == pytest.approx(min(closed, found), rel=1e-9)
        if delta == 0:
            threat = ThreatModel.reconstruction(FinitePrior.uniform(records))
            assert closed == pytest.approx(mechanisms.grr_advantage(threat, epsilon), abs=1e-12)


@for_each("records", [2, 3, 10, 100])
@for_each("mu", [0.1, 1.0, 2.0, 4.0, 9.0])
def test_claim_7_5_gaussian_guarantees_through_their_epsilons(records: int, mu: float) -> None:
    """Between the exact optimum of the regular simplex and Theorem 5.1.

    m Gaussians of unit variance at pairwise distance mu are mu-GDP; the best guess is the
    nearest: success probability ``integral of phi(x - mu/sqrt 2) Phi(x)^(m-1)``.
    """
    x = np.linspace(-12, 12 + mu, 20_001)
    heights = stats.norm.pdf(x - mu / math.sqrt(2)) * stats.norm.cdf(x) ** (records - 1)
    optimum = float(integrate.simpson(heights, x=x)) - 1 / records
    guarantee = GaussianDp.of(mu, REPLACE)
    bound = uniform_exact_guess_bound(Scenario.uniform(records), guarantee)
    assert bound.value >= optimum - ROUNDING
    given = Scenario.of_threat(ThreatModel.reconstruction(FinitePrior.uniform(records)))
    assert exact_guess_bound(given, guarantee).value <= bound.value * (1 + 1e-6)
    if records == 10 and mu in (1.0, 2.0):
        by_curve = trade_off_bound(given, guarantee).value
        assert (bound.value, by_curve) == pytest.approx(
            {1.0: (0.2290, 0.2714), 2.0: (0.5119, 0.6039)}[mu], abs=5e-5
        )


@pytest.mark.parametrize("deviation", [0.1, 0.25, 0.5])
def test_gaussian_guarantees_bound_gaussian_noise(deviation: float) -> None:
    """Records on [0, 1] with noise of this deviation are 1/deviation-GDP under replacement."""
    noise, rng = GaussianNoise(deviation), np.random.default_rng(3)
    guarantee = GaussianDp.of(Fraction(1) / Fraction(deviation), REPLACE)
    for eta in (0.0, 0.3):
        positions = np.sort(np.concatenate([[0, 1], rng.random(4)]))
        threat = ThreatModel.reconstruction(
            FinitePrior(rng.dirichlet(np.ones(6))), SuccessSets.on_line(positions, eta)
        )
        optimum = line_advantage(positions, noise, threat).value
        best = best_bound(Scenario.of_threat(threat), [guarantee])
        assert all(bound.value >= optimum - ROUNDING for bound in best.applicable)


def test_gaussian_guarantees_bound_noise_on_continuous_records() -> None:
    law, noise, guarantee = (
        ContinuousPrior.beta(0.5, 0.5),
        GaussianNoise(0.5),
        GaussianDp.of(2, REPLACE),
    )
    found = continuous_advantage(law, noise, 0.2)
    best = best_bound(Scenario.continuous(law, 0.2), [guarantee])
    assert best.winner.theorem in {"Theorem 4.2", "Theorem 5.1"}
    assert best.value >= found.value - found.error


def test_gaussian_delta_is_the_accountants() -> None:
    for mu in (0.01, 1.0, 6.0):
        for epsilon in (0.0, 0.3, 2.0, 20.0):
            exact = GaussianDp.of(mu, REPLACE).at_epsilon(Fraction(epsilon)).delta
            assert GaussianTradeOff(mu).delta(epsilon) == pytest.approx(float(exact), abs=2e-16)
    assert GaussianTradeOff(500.0).delta(1e4) == pytest.approx(1.0)
    assert GaussianTradeOff(0.0).delta(1.0) == 0


def test_claim_6_3_gaps_are_concave_with_the_stated_peak() -> None:
    grid = np.linspace(0, 1, 4001)
    for curve in (
        GaussianTradeOff(0.7),
        GaussianTradeOff(4.0),
        ApproximateTradeOff(1.0, 0.05),
        ApproximateTradeOff(0.0, 0.3),
        PrivacyProfile([(0.0, 0.4), (0.5, 0.2), (2.0, 0.01)], REPLACE),
    ):
        gaps = np.array([curve.gap(alpha) for alpha in grid])
        assert (gaps >= 0).all()
        assert (gaps <= 1 - grid + 1e-12).all()
        assert (np.diff(gaps, 2) <= 1e-12).all()
        for low, high in ((0.0, 1.0), (0.0, 0.01), (0.3, 0.6), (0.75, 0.75), (0.9, 1.0)):
            inside = gaps[(grid >= low) & (grid <= high)].max()
            largest = curve.largest_gap(low, high)
            assert inside - 1e-12 <= largest <= inside + 1e-3
        assert curve.total_variation == pytest.approx(curve.largest_gap(0, 1), abs=1e-12)


def test_claim_6_3_the_peak_survives_underflow() -> None:
    for mu in (16.0, 40.0, 500.0):
        assert GaussianTradeOff(mu).largest_gap(0.0, 0.1) == pytest.approx(1, abs=1e-12)


@for_each("alpha", [5e-324, 1e-300, 1e-16, 0.5, 1 - 1e-16, 1.0])
def test_gaps_are_finite_at_the_extremes(alpha: float) -> None:
    for curve in (
        GaussianTradeOff(500.0),
        GaussianTradeOff(1e-6),
        ApproximateTradeOff(1e4, 0.0),
        ApproximateTradeOff(1e-6, 1e-12),
        PrivacyProfile([(1e4, 0.0), (1.0, 0.5)], REPLACE),
    ):
        assert 0 <= curve.gap(alpha) <= 1 - alpha + 1e-15
        assert 0 <= curve.largest_gap(0.0, alpha) <= 1


def test_claim_6_4_profiles_approach_the_exact_curve_from_above() -> None:
    """mu-GDP through its own profile, and through dp-accounting's loss distribution."""
    gdp, exact = GaussianDp.of(1.0, REPLACE), GaussianTradeOff(1.0)
    grid = [0.05 * step for step in range(80)]
    own = PrivacyProfile(
        [(eps, float(gdp.at_epsilon(Fraction(eps)).delta)) for eps in grid], REPLACE
    )
    loss = pld.from_gaussian_mechanism(1.0, value_discretization_interval=1e-3)
    other = PrivacyProfile([(eps, float(loss.get_delta_for_epsilon(eps))) for eps in grid], REPLACE)
    for alpha in (0.001, 0.05, 0.3, 0.5, 0.9):
        for curve in (own, other):
            assert exact.gap(alpha) - 1e-9 <= curve.gap(alpha) <= exact.gap(alpha) + 1e-3
    assert own.total_variation == pytest.approx(exact.total_variation, abs=1e-9)
    assert other.total_variation == pytest.approx(exact.total_variation, abs=1e-3)


def test_claim_6_5_neither_form_is_always_the_smaller() -> None:
    curve = GaussianTradeOff(1.0)
    first, second = trade_off_forms(PriorSummary.uniform(10), curve)
    assert second < first
    wide = PriorSummary.of(0.1, 0.9, 1.0)
    assert trade_off_forms(wide, curve)[0] == pytest.approx(curve.gap(0.9))
    assert trade_off_forms(PriorSummary.of(1.0, 0.0, 1.0), curve)[1] == 0


def test_claim_6_6_the_two_easiest_records_are_not_the_worst_prior() -> None:
    channel_variation = mechanisms.grr_total_variation(100, 3.0)
    two = np.zeros(100)
    two[:2] = 0.5
    by_prior = [
        mechanisms.grr_advantage(ThreatModel.reconstruction(prior), 3.0)
        for prior in (FinitePrior(two), FinitePrior.uniform(100))
    ]
    assert by_prior == pytest.approx([0.0801, 0.1587], abs=5e-5)
    assert channel_variation == pytest.approx(0.1603, abs=5e-5)
    unknown = total_variation_bound(
        Scenario.unknown_prior(), TotalVariation.of(channel_variation, REPLACE)
    )
    assert unknown.value == pytest.approx(channel_variation)
    bounded = total_variation_bound(
        Scenario.unknown_prior(100), TotalVariation.of(channel_variation, REPLACE)
    )
    assert by_prior[1] - 1e-12 <= bounded.value <= unknown.value


SETTINGS = [
    (Scenario.uniform(2), 2),
    (Scenario.uniform(100), 100),
    (Scenario.uniform(10**7), 10**7),
    (Scenario.of_threat(ThreatModel.reconstruction(FinitePrior([0.7, 0.2, 0.1]))), 3),
    (
        Scenario.of_threat(
            ThreatModel.reconstruction(
                FinitePrior([0.7, 0.2, 0.1]), SuccessSets.on_line([0, 1, 2], 1.0)
            )
        ),
        3,
    ),
    (Scenario.unknown_prior(), None),
]
EXTREMES = [0.0, 1e-6, 1e-3, 0.1, 1.0, 5.0, 30.0, 300.0, 699.0, 701.0, 800.0, 1e4]


@for_each(("scenario", "records"), SETTINGS)
@for_each("delta", [0.0, 1e-9, 0.01, 1.0])
def test_bounds_are_monotone_in_epsilon_and_finite_at_the_extremes(
    scenario: Scenario, records: int | None, delta: float
) -> None:
    previous = 0.0
    largest = 1 - float(scenario.summary.collision_probability)
    for epsilon in EXTREMES:
        best = best_bound(scenario, [ApproximateDp.of(epsilon, delta, REPLACE)])
        assert math.isfinite(best.value)
        assert previous - ROUNDING <= best.value <= largest
        previous = best.value
    assert previous == pytest.approx(largest, abs=1e-9) or scenario.knowledge is Knowledge.NONE


@pytest.mark.parametrize(("scenario", "records"), SETTINGS)
def test_each_bound_is_monotone_in_epsilon_delta_and_mu(
    scenario: Scenario, records: int | None
) -> None:
    epsilons = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 60)])
    for delta in (0.0, 1e-5, 0.3):
        for bound in (
            total_variation_bound,
            trade_off_bound,
            approximate_dp_bound,
            exact_guess_bound,
            uniform_exact_guess_bound,
        ):
            values = []
            for epsilon in epsilons:
                try:
                    found = bound(scenario, ApproximateDp.of(float(epsilon), delta, REPLACE))
                except ValueError:
                    continue  # does not apply to this scenario
                values.append(found.value)
            assert (np.diff(values) >= -ROUNDING).all()
    for epsilon in (0.0, 1.0, 50.0):
        values = [
            best_bound(scenario, [ApproximateDp.of(epsilon, d, REPLACE)]).value
            for d in (0.0, 1e-9, 0.01, 0.5, 1.0)
        ]
        assert (np.diff(values) >= -ROUNDING).all()
    values = [
        best_bound(scenario, [GaussianDp.of(float(mu), REPLACE)]).value
        for mu in np.concatenate([[0.0], np.geomspace(1e-6, 500, 60)])
    ]
    assert (np.diff(values) >= -ROUNDING).all()
    assert np.isfinite(values).all()


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 5.0, 700.0, 1e4])
def test_closed_forms_are_monotone_and_finite(epsilon: float) -> None:
    for m in (2, 11, 10**7):
        for form in (
            lambda eps, m=m: mechanisms.grr_total_variation(m, eps),
            lambda eps, m=m: mechanisms.oue_advantage_uniform(m, eps),
            lambda eps, m=m: mechanisms.ss_advantage_uniform(m, eps, max(1, m // 3)),
            lambda eps, m=m: mechanisms.noise_bound_uniform(m, 1.0, LaplaceNoise(1 / eps)),
            lambda eps, m=m: mechanisms.noise_bound_uniform(m, 1.0, GaussianNoise(1 / eps)),
        ):
            here, further = form(epsilon), form(epsilon * 1.01)  # type: ignore[no-untyped-call]
            assert 0 <= here <= further <= 1


def test_claim_6_7_the_first_term_is_tightened_soundly() -> None:
    summary = PriorSummary.uniform(4)
    loose = approximate_dp_terms(summary, 0.1, 0.05, tightened=False)
    tight = approximate_dp_terms(summary, 0.1, 0.05)
    assert tight[0] == pytest.approx(loose[0] - 0.25 * 0.05)
    assert tight[1:] == loose[1:]
    assert approximate_dp_terms(summary, 1e4, 0.0)[0] == math.inf


def test_claim_6_2_composition_of_total_variation() -> None:
    assert composed_total_variation(1e-12, 1e9) == pytest.approx(1 - math.exp(-1e-3), rel=1e-9)
    assert composed_total_variation(1.0, 3) == 1
    assert composed_total_variation(0.3, 0) == 0
    channel = np.array([[0.7, 0.3], [0.4, 0.6]])
    joint = np.array([np.kron(row, row) for row in channel])
    assert channel_total_variation(joint) <= composed_total_variation(0.3, 2)


@for_each("mu", ["0.000001", "0.001", "0.5", "1", "4", "30"])
@for_each(
    ("kappa", "least", "largest"),
    [("0.1", "0.1", "0.1"), ("0.01", "0.01", "0.01"), ("0.4", "0.1", "0.7"), ("0.2", "0.5", "1")],
)
def test_claim_8_4_agreement_with_the_verdicts_table(
    mu: str, kappa: str, least: str, largest: str
) -> None:
    """The 80-digit bounds of the verdict; ours may be smaller where kappa_minus > kappa."""
    prior = verdict.PriorSummary(Fraction(kappa), Fraction(least), Fraction(largest))
    summary = PriorSummary.of(float(kappa), float(least), float(largest))
    scenario = Scenario(summary, Knowledge.NONE, exact_guesses=False)
    guarantee = GaussianDp.of(Decimal(mu), REPLACE)
    attribute = total_variation_bound(scenario, guarantee).value
    assert attribute == pytest.approx(
        float(verdict.attribute_advantage(Decimal(mu), prior)), rel=1e-9
    )
    best = best_bound(scenario, [guarantee])
    ours = best.value
    theirs = float(verdict.reconstruction_advantage(Decimal(mu), prior))
    assert Decimal(attribute) >= verdict.attribute_advantage(Decimal(mu), prior)
    if Fraction(least) <= Fraction(kappa):
        assert ours == pytest.approx(theirs, rel=1e-9)
        assert Decimal(best.winner.value) >= verdict.reconstruction_advantage(Decimal(mu), prior)
    else:
        assert ours <= theirs * (1 + 1e-9)
    for alpha in ("0.001", "0.3", "0.999"):
        gap = float(verdict.trade_off_gap(Decimal(mu), Decimal(alpha)))
        assert GaussianTradeOff(float(mu)).gap(float(alpha)) == pytest.approx(gap, abs=1e-14)


def test_claim_8_2_absence_uses_add_remove_guarantees_unconverted() -> None:
    """Membership of one document: present or not; the channel is the add/remove pair itself."""
    epsilon = 0.8
    guarantee = ApproximateDp.of(epsilon, 0, NeighboringRelation.ADD_REMOVE)
    best = best_bound(Scenario.absence(), [guarantee])
    assert best.value == pytest.approx(math.tanh(epsilon / 2) / 2)
    assert best.winner.assumptions.relation is NeighboringRelation.ADD_REMOVE
    with pytest.raises(ValueError, match="relation"):
        best_bound(Scenario.absence(), [guarantee.under(REPLACE)])
    with pytest.raises(ValueError, match="relation"):
        best_bound(Scenario.uniform(2), [guarantee])
    converted = best_bound(Scenario.uniform(2), [guarantee.under(REPLACE)])
    assert converted.value == pytest.approx(math.tanh(epsilon) / 2)


def test_best_bound_names_winner_and_what_is_missing() -> None:
    guarantee = ApproximateDp.of(1.0, 1e-5, REPLACE)
    uniform = best_bound(Scenario.uniform(10), [guarantee])
    assert uniform.winner.theorem == "Corollary 5.6"
    assert dict(uniform.refused).keys() == {"Theorem 5.5"}
    known = best_bound(Scenario.uniform(10, Knowledge.ANY), [guarantee])
    assert known.winner.theorem == "Theorem 4.2"
    assert set(dict(known.refused)) == {
        "Theorem 5.1",
        "Proposition 5.3",
        "Theorem 5.5",
        "Corollary 5.6",
    }
    gaussian = best_bound(Scenario.uniform(10), [GaussianDp.of(0.5, REPLACE)])
    assert gaussian.winner.theorem == "Corollary 5.6"
    near = Scenario(PriorSummary.of(0.1, 0.2, 0.3), Knowledge.NONE, exact_guesses=False)
    assert best_bound(near, [GaussianDp.of(0.5, REPLACE)]).winner.theorem == "Theorem 5.1"
    both = best_bound(Scenario.uniform(10), [GaussianDp.of(0.5, REPLACE), guarantee])
    assert both.value == min(uniform.value, gaussian.value)
    value = both.to_json()
    assert value["winner"]["assumptions"]["mechanism"] == both.winner.assumptions.mechanism
    assert {row["theorem"] for row in value["applicable"]} >= {"Theorem 4.2", "Corollary 5.6"}
    pairs = [(1.0, 1e-5), (0.5, 1e-3)]
    by_profile = best_bound(Scenario.uniform(10), [PrivacyProfile(pairs, REPLACE)])
    assert by_profile.value == min(
        best_bound(Scenario.uniform(10), [ApproximateDp.of(*pair, REPLACE)]).value for pair in pairs
    )
    sure = best_bound(
        Scenario.of_threat(ThreatModel.reconstruction(FinitePrior([1.0, 0.0]))), [guarantee]
    )
    assert sure.value == 0
    assert not sure.normalized.defined
    assert normalized(0.45, PriorSummary.uniform(10)).value == pytest.approx(0.5)
    threat = ThreatModel.reconstruction(FinitePrior.uniform(5))
    exact = channel_bounds(mechanisms.oue_channel(5, 2.0), threat, "OUE")
    best = best_bound(Scenario.of_threat(threat), [ApproximateDp.of(2.0, 0, REPLACE)], exact)
    assert best.winner.theorem == "Theorem 4.3"
    assert not best.winner.composes


@pytest.mark.parametrize("ulps", [-3, 0, 3])
def test_bounds_that_agree_up_to_rounding_have_one_winner(ulps: int) -> None:
    """Whichever is the smaller one in floating point: that differs between processors."""
    threat = ThreatModel.reconstruction(FinitePrior.uniform(5))
    optimum, variation = channel_bounds(mechanisms.oue_channel(5, 2.0), threat, "OUE")
    near = replace(variation, value=optimum.value + ulps * math.ulp(optimum.value))
    found = best_bound(Scenario.of_threat(threat), [], [optimum, near])
    assert (found.winner, found.applicable) == (optimum, (optimum, near))
    assert found.value == optimum.value
    clearly = replace(variation, value=optimum.value - 1e-12)
    assert best_bound(Scenario.of_threat(threat), [], [optimum, clearly]).winner == clearly
