"""Every public function and class of accounting and risk, with arguments that are right.

What only carries results, or is written by the caller (protocols), is not an entrance.
"""

import importlib
import inspect
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab import bridges
from ragaudit.lab.risk import (
    auditing,
    closed_forms,
    comparators,
    continuous,
    estimation,
    finite,
    general_bounds,
    gradient_attack,
    known_mechanisms,
    mechanisms,
    monte_carlo,
    one_dimensional,
    optimal_attack,
    priors,
    ranking,
    reconstruction_robustness,
    reports,
    scenario,
    simulation,
    threat,
    trade_off,
    translation,
)
from ragaudit.lab.risk import calibration as inversion
from ragaudit.lab.risk.best_bound import best_bound, channel_bounds
from ragaudit.privacy import guarantees, sample, words
from ragaudit.privacy.accounting import (
    NoisyScores,
    accountants,
    affordable,
    calibration,
    collusion,
    events,
    gaussian,
    renyi,
    risk,
)
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.privacy.coalition import hamming_threshold

__all__ = ["ENTRANCES", "NUMBERS", "Entrance", "public_names"]

MODULES = [
    "privacy.guarantees",
    "privacy.words",
    "privacy.accounting.events",
    "privacy.accounting.accountants",
    "privacy.accounting.gaussian",
    "privacy.accounting.renyi",
    "privacy.accounting.risk",
    "privacy.accounting.calibration",
    "privacy.accounting.affordable",
    "privacy.accounting.collusion",
    "privacy.sample",
    "privacy.accounting.report",
    "lab.bridges.loss_distributions",
    "lab.bridges.opendp_maps",
    "lab.bridges.riskcal_rates",
    "privacy.coalition",
    "lab.risk.auditing",
    "lab.risk.best_bound",
    "lab.risk.calibration",
    "lab.risk.closed_forms",
    "lab.risk.comparators",
    "lab.risk.continuous",
    "lab.risk.estimation",
    "lab.risk.finite",
    "lab.risk.general_bounds",
    "lab.risk.gradient_attack",
    "lab.risk.known_mechanisms",
    "lab.risk.mechanisms",
    "lab.risk.monte_carlo",
    "lab.risk.one_dimensional",
    "lab.risk.optimal_attack",
    "lab.risk.priors",
    "lab.risk.ranking",
    "lab.risk.reconstruction_robustness",
    "lab.risk.reports",
    "lab.risk.scenario",
    "lab.risk.simulation",
    "lab.risk.threat",
    "lab.risk.trade_off",
    "lab.risk.translation",
]

RESULTS = [
    "CollusionBound",
    "RenyiClosedForm",
    "RenyiBound",
    "CertifiedLowerBound",
    "ClaimCheck",
    "ModelBasedEstimate",
    "BestBound",
    "Crossing",
    "AdvantageEstimate",
    "Knapsack",
    "Evidence",
    "SuccessBound",
    "Assumptions",
    "Bound",
    "NormalizedAdvantage",
    "Guesses",
    "Translation",
    "Nearness",
    "AttackRates",
]
OTHERS = [
    "Accountant",
    "NoFiniteBound",
    "ExactGuessWarning",
    "Method",
    "Knowledge",
    "KnownMechanism",
    "AdditiveNoise",
    "Attacked",
    "TradeOff",
    "Strength",
    "check_scores",
    "loss_distribution",  # slow; attack_rates hands it its events
    "largest",
    "guess_options",
    "best_gains",
    "record_gains",
    "times_expm1",
    # The draw and the estimate are of records that a log holds, not of a caller's numbers.
    "DrawnStratum",
    "Estimate",
    "LoggedRecord",
    "Record",
    "SamplingRule",
    "Stratum",
    "StratumRule",
    "account_stratum_id",
    "draw_sample",
    "estimate",
    "order",
    "receipts_stratum_id",
    "sampling_seed",
    "strata",
    "stratum_size",
    "tenant_stratum_id",
]

REPLACE = NeighboringRelation.REPLACE
EVENT = NoisyScores.of_policy("9", "replace", 1, 20)
EPSILON = guarantees.ApproximateDp.of(1, "0.001", REPLACE)
MU = guarantees.GaussianDp.of(1, REPLACE)
PRIOR = priors.FinitePrior.uniform(3)
SUMMARY = priors.PriorSummary.uniform(3)
SETS = threat.SuccessSets.exact(3)
NOTHING = threat.AuxiliaryKnowledge.none(3)
THREAT = threat.ThreatModel.reconstruction(PRIOR)
SCENARIO = scenario.Scenario.uniform(3)
NOISE = mechanisms.LaplaceNoise(1.0)
LINE = priors.ContinuousPrior.uniform(0, 1)
EXPONENTIAL = mechanisms.ExponentialMechanism(4.0)
CURVE = trade_off.GaussianTradeOff(1.0)
CHANNEL = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
LIKELIHOODS = np.log(np.array(CHANNEL))
TARGETS = np.array([0, 1, 2, 0, 1, 2])
GUESSES = np.array([0, 1, 1, 0, 1, 2])
ESTIMATE = estimation.from_counts(70, 100, 3, 0.95)
LOCAL = known_mechanisms.LocalMechanism("grr")
GRADIENTS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
ACCOUNT_PRIOR = risk.PriorSummary.uniform(3)
FOUND = bridges.loss_distribution(NoisyScores.of_policy("9", "replace", 1, 1))
MEASUREMENT = bridges.opendp_measurement(EPSILON, len)


class Entrance(NamedTuple):
    """A call that is right; ``numbers`` are the arguments that any kind of number may be."""

    call: Callable[..., Any]
    arguments: dict[str, Any]
    numbers: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.call.__module__.rpartition('.')[2]}.{self.call.__qualname__}"


NUMBERS = [
    "alpha",
    "advantage",
    "a",
    "b",
    "beta",
    "clipping_norm",
    "collision_probability",
    "confidence",
    "delta",
    "delta_acc",
    "delta_comp",
    "delta_policy",
    "delta_q",
    "deviation",
    "distance",
    "epsilon",
    "epsilon_acc",
    "epsilon_q",
    "epsilon_value",
    "eta",
    "exponent",
    "factor",
    "gamma",
    "high",
    "largest",
    "largest_ball",
    "largest_density",
    "least_ball",
    "length",
    "limit",
    "low",
    "mu",
    "noise_multiplier",
    "order",
    "presence",
    "releases",
    "rho",
    "scale",
    "sensitivity",
    "sigma",
    "sigma_units",
    "slack",
    "span",
    "target",
    "theta",
    "value",
    "collision",
    "largest_ball",
]


def entrance(call: Callable[..., Any], *others: str, **arguments: Any) -> Entrance:
    """``others``: arguments with a number's name that are none here."""
    numbers = tuple(name for name in arguments if name in NUMBERS and name not in others)
    return Entrance(call, arguments, numbers)


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


G, A, C, S = gaussian, accountants, collusion, sample
HALF, TENTH = Fraction(1, 2), Fraction(1, 8)
RELEASE = C.ScoreReleaseClass(Fraction(1), TENTH, 100, REPLACE)

ENTRANCES = [
    entrance(guarantees.ApproximateDp, epsilon=1, delta=HALF, relation=REPLACE),
    entrance(guarantees.ApproximateDp.of, epsilon=1, delta=HALF, relation=REPLACE),
    entrance(guarantees.GaussianDp, mu=HALF, relation=REPLACE),
    entrance(guarantees.ZeroConcentratedDp, rho=HALF, relation=REPLACE),
    entrance(guarantees.TotalVariation, value=HALF, relation=REPLACE),
    entrance(EPSILON.under, relation=REPLACE),
    entrance(MU.at_delta, delta=TENTH),
    entrance(MU.at_epsilon, epsilon=HALF),
    entrance(guarantees.ApproximateDp.compose, parts=[EPSILON, EPSILON]),
    entrance(words.strength, advantage=HALF),
    entrance(words.membership_sentence, advantage=HALF, relation=REPLACE),
    entrance(words.guarantee_sentence, advantage=HALF, relation=REPLACE, accounts=3),
    entrance(
        NoisyScores, sigma_units=200, relation=REPLACE, group_size=1, queries=5, gamma=TENTH
    ),
    entrance(
        NoisyScores.of_policy, sigma=HALF, relation=REPLACE, group_size=1, queries=5, gamma=TENTH
    ),
    entrance(events.Coalition, account=EVENT, accounts=3, windows=2),
    entrance(events.RealisedCoalition, mechanism=EVENT, counts=(3, 2), accounts=1),
    entrance(events.WholeTenant, mechanism=EVENT, records=3),
    entrance(events.Composition, parts=(EVENT, EVENT)),
    entrance(events.releases, event=EVENT),
    entrance(events.relation_of, event=EVENT),
    *(entrance(each.price, event=EVENT, delta=TENTH) for each in A.ACCOUNTANTS),
    entrance(A.GaussianAccountant().gaussian, event=EVENT),
    entrance(A.GaussianAccountant().at_epsilon, event=EVENT, epsilon=HALF),
    entrance(A.GaussianAccountant().within, event=EVENT, budget=EPSILON),
    entrance(A.ZeroConcentratedAccountant().zero_concentrated, event=EVENT),
    entrance(A.GaussianAccountant),
    entrance(A.ZeroConcentratedAccountant),
    entrance(A.LossDistributionAccountant),
    entrance(A.RenyiAccountant, orders=(2, 3), conversion="canonne"),
    entrance(G.delta, mu=HALF, epsilon_value=HALF),
    entrance(G.least_epsilon, mu=HALF, target=TENTH, slack=0),
    entrance(G.least_delta, mu=HALF, epsilon_value=HALF, slack=0),
    entrance(G.epsilon, event=EVENT, target=TENTH),
    entrance(G.gives, event=EVENT, epsilon_value=HALF, target=TENTH),
    entrance(G.meets, mu=HALF, epsilon_value=HALF, target=TENTH, slack=0),
    entrance(renyi.mironov_epsilon, rho=HALF, target=TENTH, order=2),
    entrance(renyi.canonne_epsilon, rho=HALF, target=TENTH, order=2),
    entrance(renyi.optimal, rho=HALF, target=TENTH),
    entrance(renyi.bound, event=EVENT, target=TENTH),
    entrance(risk.membership_advantage, mu=HALF),
    entrance(risk.auc, mu=HALF),
    entrance(risk.trade_off_gap, mu=HALF, alpha=TENTH),
    entrance(risk.attribute_advantage, mu=HALF, prior=ACCOUNT_PRIOR),
    entrance(risk.reconstruction_advantage, mu=HALF, prior=ACCOUNT_PRIOR),
    entrance(risk.record_mu, event=EVENT),
    entrance(calibration.largest_mu, epsilon_value=1, target=TENTH, slack=0),
    entrance(
        calibration.calibrate, epsilon_value=1, target=TENTH, queries=3, relation=REPLACE,
        group_size=1, gamma=Fraction(1, 2**100), places=6,
    ),
    entrance(affordable.largest_queries, mechanism=EVENT, epsilon=1, delta=TENTH),
    entrance(affordable.largest_rate, mechanism=EVENT, epsilon=1, delta=TENTH, accounts=2),
    entrance(affordable.largest_coalition, mechanism=EVENT, epsilon=1, delta=TENTH, rate=2),
    entrance(affordable.remaining_queries, spent=EVENT, mechanism=EVENT, budget=EPSILON),
    entrance(
        affordable.calibrate_coalition, epsilon=1, delta=TENTH, accounts=2, rate=3,
        relation=REPLACE, group_size=1, windows=1, gamma=Fraction(1, 2**100), places=6,
    ),
    entrance(
        C.ScoreReleaseClass, epsilon_acc=1, delta_acc=TENTH, queries=100, relation=REPLACE
    ),
    entrance(RELEASE.sigma, sensitivity=HALF),
    entrance(RELEASE.coalition, accounts=2, delta_comp=TENTH),
    entrance(RELEASE.audit, accounts=2, delta_policy=HALF),
    entrance(RELEASE.gaussian, accounts=2),
    entrance(
        C.advanced_composition, epsilon_q=HALF, delta_q=0, times=2, delta_comp=TENTH,
        relation=REPLACE,
    ),
    entrance(
        C.renyi_closed_form, sigma=2, sensitivity=1, queries=3, delta=TENTH, relation=REPLACE
    ),
    entrance(C.renyi_sigma, epsilon_acc=1, delta_acc=TENTH, queries=2),
    entrance(C.membership_lower_bound, guarantee=MU),
    entrance(C.exposure, rows=10, selected=2, queries=3),
    entrance(S.bad_records, population=10, beta=TENTH),
    entrance(S.miss_probability, population=10, bad=2, sample=3),
    entrance(S.sample_size, population=10, beta=TENTH, eta=HALF),
    entrance(S.sample_size_unbounded, beta=TENTH, eta=HALF),
    entrance(S.detection, beta=TENTH, sample=3),
    entrance(
        epsilon_report, "gamma", sigma=Decimal(9), relation="replace", group_size=1,
        queries_per_account=20, coalition=5, delta_policy=Decimal("0.125"),
        gamma=Fraction(1, 2**100), total_records=100, realised_counts=[20, 3],
        epsilon_acc=8, delta_acc=Decimal("0.0625"),
    ),
    entrance(hamming_threshold, theta=Decimal("0.75"), bits=128),
    entrance(priors.FinitePrior, probabilities=[0.5, 0.25, 0.25]),
    entrance(priors.FinitePrior.uniform, records=3),
    entrance(priors.ContinuousPrior, low=0, high=1, cdf=lambda x: x),
    entrance(priors.ContinuousPrior.uniform, low=0, high=1),
    entrance(priors.ContinuousPrior.beta, a=2, b=2, low=0, high=1),
    entrance(LINE.ball_masses, centers=np.array([0.5]), eta=TENTH),
    entrance(priors.PriorSummary, collision_probability=HALF, least_ball=TENTH, largest_ball=HALF),
    entrance(priors.PriorSummary.uniform, records=3),
    entrance(priors.continuous_summary, prior=LINE, eta=TENTH, points=100),
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
        scenario.Scenario, summary=SUMMARY, knowledge=scenario.Knowledge.NONE, exact_guesses=True,
        prior=PRIOR, records=3, is_uniform=True, relation=REPLACE,
    ),
    entrance(scenario.Scenario.of_threat, threat=THREAT),
    entrance(scenario.Scenario.uniform, records=3, knowledge=scenario.Knowledge.NONE),
    entrance(scenario.Scenario.continuous, prior=LINE, eta=TENTH),
    entrance(scenario.Scenario.unknown_prior, records=3),
    entrance(scenario.Scenario.absence, presence=HALF, relation=NeighboringRelation.ADD_REMOVE),
    entrance(SCENARIO.require, guarantee=EPSILON),
    entrance(scenario.normalized, advantage=HALF, summary=SUMMARY),
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
        scenario=scenario.Scenario.of_threat(THREAT),
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
    entrance(closed_forms.grr_advantage, threat=THREAT, epsilon=1),
    entrance(closed_forms.oue_advantage, threat=THREAT, epsilon=1),
    entrance(closed_forms.ss_advantage, threat=THREAT, epsilon=1, subset=1),
    entrance(closed_forms.grr_total_variation, records=3, epsilon=1),
    entrance(closed_forms.oue_total_variation, epsilon=1),
    entrance(closed_forms.ss_total_variation, records=3, epsilon=1, subset=1),
    entrance(closed_forms.oue_advantage_uniform, records=3, epsilon=1),
    entrance(closed_forms.ss_advantage_uniform, records=3, epsilon=1, subset=1),
    entrance(closed_forms.noise_advantage_uniform, positions=[0.0, 1.0, 2.0], noise=NOISE),
    entrance(closed_forms.noise_bound_uniform, records=3, span=1, noise=NOISE),
    entrance(
        comparators.ldp_auditor_epsilon, true_positives=7, false_positives=1, trials=9, alpha=TENTH,
        delta=0,
    ),
    entrance(
        comparators.one_run_p_value, canaries=9, guesses=9, correct=8, epsilon=1, delta=0
    ),
    entrance(
        comparators.one_run_epsilon, canaries=9, guesses=9, correct=9, confidence=HALF, delta=0
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
    entrance(ranking.area_under_curve, members=[0.5, 0.25], others=[0.0]),
    entrance(ranking.null_deviation, members=7, others=9),
    entrance(ranking.false_alarm, members=7, others=9, threshold=HALF),
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
    entrance(finite.finite_advantage, channel=CHANNEL, threat=THREAT),
    entrance(finite.channel_total_variation, channel=CHANNEL),
    entrance(
        gradient_attack.GradientAttack, threat=THREAT, clipping_norm=1, noise_multiplier=2
    ),
    entrance(
        gradient_attack.isolate, released=np.array([[1.0, 2.0]]), fixed=np.array([[0.5, 0.5]])
    ),
    entrance(gradient_attack.require_unknown, candidates=GRADIENTS, known=GRADIENTS + 1),
    entrance(
        gradient_attack.printed_rule, isolated=np.array([[1.0, 0.0]]), candidates=GRADIENTS[:, None]
    ),
    entrance(gradient_attack.clip, gradients=GRADIENTS, clipping_norm=1),
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
        monte_carlo.monte_carlo_advantage, draw=lambda n: np.linspace(0, 1, n),
        mechanism=EXPONENTIAL, eta=TENTH, outer=3, inner=3, guesses=3, generator=generator(),
    ),
    entrance(
        monte_carlo.nested_deviation, deviation=HALF, outer=3, inner=3, guesses=3,
        largest_density=1, largest_ball=HALF, length=1,
    ),
    entrance(monte_carlo.outer_deviation, deviation=HALF, samples=3, largest_density=1, length=1),
    entrance(
        one_dimensional.line_advantage, positions=[0.0, 1.0, 2.0], noise=NOISE, threat=THREAT,
        clamp=(0.0, 2.0),
    ),
    entrance(optimal_attack.OptimalAttack, threat=THREAT),
    entrance(optimal_attack.posterior, prior=PRIOR, log_likelihoods=LIKELIHOODS),
    entrance(optimal_attack.advantage_of, channel=CHANNEL, threat=THREAT, guesses=[0, 1, 2]),
    entrance(reconstruction_robustness.pure_dp_success, largest_ball=HALF, epsilon=1),
    entrance(reconstruction_robustness.trade_off_success, largest_ball=HALF, curve=CURVE),
    entrance(
        reconstruction_robustness.pure_dp_success_bound, scenario=SCENARIO,
        guarantee=guarantees.ApproximateDp.of(1, 0, REPLACE),
    ),
    entrance(
        reconstruction_robustness.trade_off_success_bound, scenario=SCENARIO, guarantee=EPSILON
    ),
    entrance(reconstruction_robustness.success_bound, scenario=SCENARIO, guarantee=EPSILON),
    entrance(
        reports.randomized_response, targets=TARGETS, records=3, epsilon=1, generator=generator()
    ),
    entrance(reports.unary_encoding, targets=TARGETS, records=3, epsilon=1, generator=generator()),
    entrance(
        reports.subset_selection, targets=TARGETS, records=3, epsilon=1, subset=1,
        generator=generator(),
    ),
    entrance(simulation.RandomizedResponse, epsilon=1),
    entrance(simulation.UnaryEncoding, epsilon=1),
    entrance(simulation.SubsetSelection, epsilon=1, subset=1),
    entrance(simulation.NoisyPosition, positions=[0.0, 1.0, 2.0], noise=NOISE, eta=0),
    entrance(
        simulation.simulate, attacked=simulation.RandomizedResponse(1.0), prior=PRIOR, runs=5,
        generator=generator(),
    ),
    entrance(auditing.certify, estimate=ESTIMATE, scenario=SCENARIO, delta=0),
    entrance(auditing.check_claim, estimate=ESTIMATE, scenario=SCENARIO, claim=EPSILON),
    entrance(
        auditing.estimate_from_model, estimate=ESTIMATE, mechanism="mine",
        advantage_at=lambda x: x / (1 + x), parameter="epsilon", largest=100,
    ),
    entrance(translation.largest_auc, guarantee=MU),
    entrance(translation.translate, guarantee=MU, scenario=SCENARIO, slack=0, nearness=None),
]  # fmt: skip


def public_names() -> set[str]:
    """Functions and classes of the modules' front lists that take arguments of a caller."""
    found = set()
    for module_name in MODULES:
        module = importlib.import_module(f"ragaudit.{module_name}")
        for name in module.__all__:
            each = getattr(module, name)
            own = getattr(each, "__module__", None) == module.__name__
            if own and (inspect.isfunction(each) or inspect.isclass(each)):
                found.add(name)
    return found - {*RESULTS, *OTHERS}
