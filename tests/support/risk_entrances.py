"""Entrances of the risk analysis in the laboratory, and of its bridges to other programs."""

import numpy as np
from entrances import EPSILON, EVENT, HALF, MU, REPLACE, TENTH, entrance
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab import bridges
from ragaudit.lab.risk import calibration as inversion
from ragaudit.lab.risk import (
    continuous,
    estimation,
    general_bounds,
    known_mechanisms,
    mechanisms,
    one_dimensional,
    optimal_attack,
    threat,
    trade_off,
    translation,
)
from ragaudit.lab.risk.general_bounds import best_bound, channel_bounds
from ragaudit.privacy import guarantees
from ragaudit.privacy.accounting.events import NoisyScores
from ragaudit.privacy.accounting.risk import PriorSummary

PRIOR = threat.FinitePrior.uniform(3)
SUMMARY = PriorSummary.uniform(3)
SETS = threat.SuccessSets.exact(3)
NOTHING = threat.AuxiliaryKnowledge.none(3)
THREAT = threat.ThreatModel.reconstruction(PRIOR)
SCENARIO = general_bounds.Scenario.uniform(3)
NOISE = mechanisms.LaplaceNoise(1.0)
LINE = threat.ContinuousPrior.uniform(0, 1)
EXPONENTIAL = mechanisms.ExponentialMechanism(4.0)
CURVE = trade_off.GaussianTradeOff(1.0)
CHANNEL = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
LIKELIHOODS = np.log(np.array(CHANNEL))
TARGETS = np.array([0, 1, 2, 0, 1, 2])
GUESSES = np.array([0, 1, 1, 0, 1, 2])
ESTIMATE = estimation.from_counts(70, 100, 3, 0.95)
LOCAL = known_mechanisms.LocalMechanism("grr")
GRADIENTS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
FOUND = bridges.loss_distribution(NoisyScores.of_policy("9", "replace", 1, 1))
MEASUREMENT = bridges.opendp_measurement(EPSILON, len)


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


RISK = [
    entrance(threat.FinitePrior, probabilities=[0.5, 0.25, 0.25]),
    entrance(threat.FinitePrior.uniform, records=3),
    entrance(threat.ContinuousPrior, low=0, high=1, cdf=lambda x: x),
    entrance(threat.ContinuousPrior.uniform, low=0, high=1),
    entrance(threat.ContinuousPrior.beta, a=2, b=2, low=0, high=1),
    entrance(LINE.ball_masses, centers=np.array([0.5]), eta=TENTH),
    entrance(PriorSummary, collision_probability=HALF, least_ball=TENTH, largest_ball=HALF),
    entrance(PriorSummary.uniform, records=3),
    entrance(threat.continuous_summary, prior=LINE, eta=TENTH, points=100),
    entrance(threat.AuxiliaryKnowledge.none, records=3),
    entrance(threat.AuxiliaryKnowledge.full, records=3),
    entrance(threat.AuxiliaryKnowledge.of_labels, labels=["a", "b", "a"]),
    entrance(threat.AuxiliaryKnowledge, labels=np.array([0, 1, 0])),
    entrance(threat.SuccessSets, records=3, table=None),
    entrance(threat.SuccessSets.exact, records=3),
    entrance(threat.SuccessSets.from_losses, losses=[[0, 1], [1, 0]], eta=HALF),
    entrance(threat.SuccessSets.on_line, positions=[0.0, 1.0], eta=HALF),
    entrance(SETS.hits, guess=0, record=1),
    entrance(SETS.masses, prior=PRIOR),
    entrance(threat.ThreatModel, prior=PRIOR, success=SETS, auxiliary=NOTHING),
    entrance(threat.ThreatModel.reconstruction, prior=PRIOR, success=SETS),
    entrance(threat.ThreatModel.membership, prior=PRIOR),
    entrance(
        general_bounds.Scenario, summary=SUMMARY, knowledge=general_bounds.Knowledge.NONE,
        exact_guesses=True, prior=PRIOR, records=3, is_uniform=True, relation=REPLACE,
    ),
    entrance(general_bounds.Scenario.of_threat, threat=THREAT),
    entrance(general_bounds.Scenario.uniform, records=3, knowledge=general_bounds.Knowledge.NONE),
    entrance(general_bounds.Scenario.continuous, prior=LINE, eta=TENTH),
    entrance(general_bounds.Scenario.unknown_prior, records=3),
    entrance(
        general_bounds.Scenario.absence, presence=HALF, relation=NeighboringRelation.ADD_REMOVE
    ),
    entrance(SCENARIO.require, guarantee=EPSILON),
    entrance(general_bounds.normalized, advantage=HALF, summary=SUMMARY),
    entrance(trade_off.GaussianTradeOff, mu=HALF),
    entrance(trade_off.ApproximateTradeOff, epsilon=HALF, delta=TENTH),
    entrance(trade_off.PrivacyProfile, pairs=[(1.0, 0.1)], relation=REPLACE),
    entrance(CURVE.gap, alpha=HALF),
    entrance(CURVE.delta, epsilon=HALF),
    entrance(CURVE.largest_gap, low=TENTH, high=HALF),
    entrance(trade_off.approximate_total_variation, epsilon=HALF, delta=TENTH),
    entrance(trade_off.gaussian_total_variation, mu=HALF),
    entrance(trade_off.composed_total_variation, value=HALF, releases=2),
    entrance(trade_off.trade_off, guarantee=EPSILON),
    entrance(general_bounds.total_variation_bound, scenario=SCENARIO, guarantee=EPSILON),
    entrance(general_bounds.trade_off_bound, scenario=SCENARIO, guarantee=EPSILON),
    entrance(general_bounds.approximate_dp_bound, scenario=SCENARIO, guarantee=EPSILON),
    entrance(
        general_bounds.exact_guess_bound,
        scenario=general_bounds.Scenario.of_threat(THREAT),
        guarantee=EPSILON,
    ),
    entrance(general_bounds.uniform_exact_guess_bound, scenario=SCENARIO, guarantee=EPSILON),
    entrance(general_bounds.trade_off_forms, summary=SUMMARY, curve=CURVE),
    entrance(general_bounds.approximate_dp_terms, summary=SUMMARY, epsilon=1, delta=TENTH),
    entrance(
        general_bounds.exact_guess_knapsack, probabilities=[0.5, 0.5], epsilon=1, delta=TENTH
    ),
    entrance(general_bounds.uniform_exact_guess_value, records=3, epsilon=1, delta=TENTH),
    entrance(best_bound, scenario=SCENARIO, guarantees=[EPSILON], evaluated=()),
    entrance(channel_bounds, channel=CHANNEL, threat=THREAT, name="mine"),
    entrance(
        inversion.total_variation_epsilon, advantage=TENTH, collision_probability=HALF, delta=0
    ),
    entrance(inversion.grr_epsilon, advantage=TENTH, records=3, collision_probability=HALF),
    entrance(inversion.ss_epsilon, advantage=TENTH, records=5, subset=2),
    entrance(inversion.uniform_exact_guess_epsilon, advantage=TENTH, records=3, delta=0),
    entrance(inversion.laplace_epsilon, advantage=TENTH, records=3),
    entrance(inversion.laplace_scale, advantage=TENTH, records=3, span=1),
    entrance(inversion.gaussian_scale, advantage=TENTH, records=3, span=1),
    entrance(inversion.largest_mu, advantage=TENTH, summary=SUMMARY, limit=100),
    *(
        entrance(invert, bound=lambda x: x / (1 + x), advantage=HALF, limit=100)
        for invert in (
            inversion.largest_parameter, inversion.least_parameter,
            inversion.continuous_largest_parameter, inversion.continuous_least_parameter,
        )
    ),
    entrance(mechanisms.grr_advantage, threat=THREAT, epsilon=1),
    entrance(mechanisms.oue_advantage, threat=THREAT, epsilon=1),
    entrance(mechanisms.ss_advantage, threat=THREAT, epsilon=1, subset=1),
    entrance(mechanisms.grr_total_variation, records=3, epsilon=1),
    entrance(mechanisms.oue_total_variation, epsilon=1),
    entrance(mechanisms.ss_total_variation, records=3, epsilon=1, subset=1),
    entrance(mechanisms.oue_advantage_uniform, records=3, epsilon=1),
    entrance(mechanisms.ss_advantage_uniform, records=3, epsilon=1, subset=1),
    entrance(mechanisms.noise_advantage_uniform, positions=[0.0, 1.0, 2.0], noise=NOISE),
    entrance(mechanisms.noise_bound_uniform, records=3, span=1, noise=NOISE),
    entrance(
        estimation.ldp_auditor_epsilon, true_positives=7, false_positives=1, trials=9, alpha=TENTH,
        delta=0,
    ),
    entrance(
        estimation.one_run_p_value, canaries=9, guesses=9, correct=8, epsilon=1, delta=0
    ),
    entrance(
        estimation.one_run_epsilon, canaries=9, guesses=9, correct=9, confidence=HALF, delta=0
    ),
    entrance(continuous.continuous_advantage, prior=LINE, mechanism=EXPONENTIAL, eta=TENTH),
    entrance(estimation.check_confidence, confidence=HALF),
    entrance(estimation.check_drawn_from, targets=TARGETS, prior=PRIOR),
    entrance(estimation.contributions, targets=TARGETS, guesses=GUESSES, threat=THREAT),
    entrance(
        estimation.from_contributions, samples=[0.5, 0.25, 0.0], low=-1, high=1, confidence=HALF,
        method=estimation.Method.HOEFFDING,
    ),
    entrance(
        estimation.from_guesses, targets=TARGETS, guesses=GUESSES, threat=THREAT, confidence=HALF,
        method=None,
    ),
    entrance(estimation.proportion_low, successes=7, trials=9, confidence=HALF),
    entrance(estimation.proportion_high, successes=7, trials=9, confidence=HALF),
    entrance(estimation.from_counts, successes=7, trials=9, records=3, confidence=HALF),
    entrance(estimation.area_under_curve, members=[0.5, 0.25], others=[0.0]),
    entrance(estimation.null_deviation, members=7, others=9),
    entrance(estimation.false_alarm, members=7, others=9, threshold=HALF),
    entrance(bridges.dp_event, event=EVENT),
    entrance(
        bridges.profile_of, distribution=FOUND, relation=REPLACE, epsilons=[HALF, 1]
    ),
    entrance(bridges.approximate_of, distribution=FOUND, delta=TENTH, relation=REPLACE),
    entrance(bridges.opendp_profile, guarantee=MU),
    entrance(bridges.opendp_measurement, guarantee=MU, release=len),
    entrance(
        bridges.opendp_guarantee, "distance", measurement=MEASUREMENT, relation=REPLACE,
        distance=1, epsilons=[HALF, 1],
    ),
    entrance(bridges.attack_rates, source=FOUND, false_positives=[TENTH, HALF]),
    entrance(
        bridges.risk_evaluator, relation="replace", group_size=1, queries=2, delta=TENTH,
        false_positive=HALF,
    ),
    entrance(mechanisms.finite_advantage, channel=CHANNEL, threat=THREAT),
    entrance(mechanisms.channel_total_variation, channel=CHANNEL),
    entrance(
        optimal_attack.GradientAttack, threat=THREAT, clipping_norm=1, noise_multiplier=2
    ),
    entrance(
        optimal_attack.isolate, released=np.array([[1.0, 2.0]]), fixed=np.array([[0.5, 0.5]])
    ),
    entrance(optimal_attack.require_unknown, candidates=GRADIENTS, known=GRADIENTS + 1),
    entrance(
        optimal_attack.printed_rule, isolated=np.array([[1.0, 0.0]]), candidates=GRADIENTS[:, None]
    ),
    entrance(optimal_attack.clip, gradients=GRADIENTS, clipping_norm=1),
    entrance(known_mechanisms.LocalMechanism, kind="ss", subset=2),
    entrance(
        known_mechanisms.NoiseMechanism, kind="laplace", positions=np.array([0.0, 1.0, 2.0]), eta=0
    ),
    entrance(LOCAL.guarantee, value=1),
    entrance(LOCAL.advantage, threat=THREAT, value=1),
    entrance(LOCAL.total_variation, records=3, value=1),
    entrance(LOCAL.attacked, value=1),
    entrance(known_mechanisms.exact_bounds, mechanism=LOCAL, threat=THREAT, value=1),
    entrance(mechanisms.grr_probabilities, records=3, epsilon=1),
    entrance(mechanisms.grr_channel, records=3, epsilon=1),
    entrance(mechanisms.oue_probabilities, epsilon=1),
    entrance(mechanisms.oue_outputs, records=3),
    entrance(mechanisms.oue_channel, records=3, epsilon=1),
    entrance(mechanisms.subset_size, records=3, epsilon=1, rule="floor"),
    entrance(mechanisms.ss_probability, records=3, epsilon=1, subset=1),
    entrance(mechanisms.ss_outputs, records=3, subset=1),
    entrance(mechanisms.ss_channel, records=3, epsilon=1, subset=1),
    entrance(mechanisms.LaplaceNoise, scale=HALF),
    entrance(mechanisms.LaplaceNoise.calibrated, epsilon=1, sensitivity=1),
    entrance(mechanisms.GaussianNoise, scale=HALF),
    entrance(mechanisms.ExponentialMechanism, epsilon=1, low=0, high=1, sensitivity=1),
    entrance(NOISE.total_variation, distance=HALF),
    entrance(
        continuous.monte_carlo_advantage, draw=lambda n: np.linspace(0, 1, n),
        mechanism=EXPONENTIAL, eta=TENTH, outer=3, inner=3, guesses=3, generator=generator(),
    ),
    entrance(
        continuous.nested_deviation, deviation=HALF, outer=3, inner=3, guesses=3,
        largest_density=1, largest_ball=HALF, length=1,
    ),
    entrance(continuous.outer_deviation, deviation=HALF, samples=3, largest_density=1, length=1),
    entrance(
        one_dimensional.line_advantage, positions=[0.0, 1.0, 2.0], noise=NOISE, threat=THREAT,
        clamp=(0.0, 2.0),
    ),
    entrance(optimal_attack.OptimalAttack, threat=THREAT),
    entrance(optimal_attack.posterior, prior=PRIOR, log_likelihoods=LIKELIHOODS),
    entrance(optimal_attack.advantage_of, channel=CHANNEL, threat=THREAT, guesses=[0, 1, 2]),
    entrance(general_bounds.pure_dp_success, largest_ball=HALF, epsilon=1),
    entrance(general_bounds.trade_off_success, largest_ball=HALF, curve=CURVE),
    entrance(
        general_bounds.pure_dp_success_bound, scenario=SCENARIO,
        guarantee=guarantees.ApproximateDp.of(1, 0, REPLACE),
    ),
    entrance(
        general_bounds.trade_off_success_bound, scenario=SCENARIO, guarantee=EPSILON
    ),
    entrance(general_bounds.success_bound, scenario=SCENARIO, guarantee=EPSILON),
    entrance(
        optimal_attack.randomized_response, targets=TARGETS, records=3, epsilon=1,
        generator=generator(),
    ),
    entrance(
        optimal_attack.unary_encoding, targets=TARGETS, records=3, epsilon=1, generator=generator()
    ),
    entrance(
        optimal_attack.subset_selection, targets=TARGETS, records=3, epsilon=1, subset=1,
        generator=generator(),
    ),
    entrance(optimal_attack.RandomizedResponse, epsilon=1),
    entrance(optimal_attack.UnaryEncoding, epsilon=1),
    entrance(optimal_attack.SubsetSelection, epsilon=1, subset=1),
    entrance(optimal_attack.NoisyPosition, positions=[0.0, 1.0, 2.0], noise=NOISE, eta=0),
    entrance(
        optimal_attack.simulate, attacked=optimal_attack.RandomizedResponse(1.0), prior=PRIOR,
        runs=5, generator=generator(),
    ),
    entrance(estimation.certify, estimate=ESTIMATE, scenario=SCENARIO, delta=0),
    entrance(estimation.check_claim, estimate=ESTIMATE, scenario=SCENARIO, claim=EPSILON),
    entrance(
        estimation.estimate_from_model, estimate=ESTIMATE, mechanism="mine",
        advantage_at=lambda x: x / (1 + x), parameter="epsilon", largest=100,
    ),
    entrance(translation.largest_auc, guarantee=MU),
    entrance(translation.translate, guarantee=MU, scenario=SCENARIO, slack=0, nearness=None),
]  # fmt: skip
