"""From advantages to epsilons and back to words: certificates, claims, estimates, translations.

Claims are those of docs/notes/risk-audits.md.
"""

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import InvalidArgumentError, RefusedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk import mechanisms
from ragaudit.lab.risk.calibration import uniform_exact_guess_epsilon
from ragaudit.lab.risk.estimation import (
    AdvantageEstimate,
    CertifiedLowerBound,
    Method,
    ModelBasedEstimate,
    certify,
    check_claim,
    estimate_from_model,
    from_counts,
    from_guesses,
)
from ragaudit.lab.risk.general_bounds import Scenario, best_bound
from ragaudit.lab.risk.known_mechanisms import LocalMechanism, NoiseMechanism, exact_bounds
from ragaudit.lab.risk.mechanisms import finite_advantage
from ragaudit.lab.risk.optimal_attack import RandomizedResponse, simulate
from ragaudit.lab.risk.threat import AuxiliaryKnowledge, FinitePrior, SuccessSets, ThreatModel
from ragaudit.lab.risk.translation import Nearness, largest_auc, translate
from ragaudit.lab.risk.validation import AssumptionError
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp
from scipy import stats

ORACLE = json.loads((Path(__file__).parents[2] / "vectors" / "dp_oracle.json").read_bytes())
ENTRIES: list[dict[str, Any]] = ORACLE["entries"]
REPLACE, ADD_REMOVE, NULL = (
    NeighboringRelation.REPLACE, NeighboringRelation.ADD_REMOVE, NeighboringRelation.NULL_REPLACE,
)  # fmt: skip


def observed(lower: float) -> AdvantageEstimate:
    return AdvantageEstimate(lower, lower, 0.95, 1000, Method.CLOPPER_PEARSON)


# --- the oracle ---


def number(value: float | str) -> float:
    return math.inf if value == "inf" else float(value)


@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if e["topic"] == "audit.eq61"], ids=lambda e: e["id"]
)
def test_equation_61_of_the_oracle(entry: dict[str, Any]) -> None:
    i = entry["inputs"]
    found = certify(observed(i["rad"]), Scenario.uniform(i["m"]), i["delta"])
    assert found.epsilon == pytest.approx(number(entry["expected"]), abs=entry["atol"])
    assert found.theorem == "Corollary 5.6"


@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if e["topic"] == "audit.confidence"], ids=lambda e: e["id"]
)
def test_certificates_of_the_oracle(entry: dict[str, Any]) -> None:
    i, expected = entry["inputs"], entry["expected"]
    estimate = from_counts(i["successes"], i["trials"], i["m"], i["confidence"])
    found = certify(estimate, Scenario.uniform(i["m"]), 0.0)
    assert found.epsilon == pytest.approx(expected["eps_lower"], abs=entry["atol"])
    point = uniform_exact_guess_epsilon(estimate.advantage, i["m"])
    assert point == pytest.approx(expected["eps_point"], abs=entry["atol"])
    assert found.epsilon <= point


@pytest.mark.parametrize(
    "entry",
    [e for e in ENTRIES if e["topic"] == "audit.inverse" and e["inputs"].get("mechanism")],
    ids=lambda e: e["id"],
)
def test_model_based_inverses_of_the_oracle(entry: dict[str, Any]) -> None:
    i = entry["inputs"]
    threat = ThreatModel.reconstruction(FinitePrior.uniform(i["m"]))
    if i["mechanism"] in ("laplace", "gaussian"):
        positions = np.linspace(0.0, i["sensitivity"], i["m"])
        known: Any = NoiseMechanism(i["mechanism"], positions)
    else:
        known = LocalMechanism(i["mechanism"], i.get("omega", 1))
    found = estimate_from_model(
        observed(i["rad"]),
        known.name,
        lambda value: known.advantage(threat, value),
        known.parameter,
        known.largest,
    )
    assert found.parameter == ("mu" if i["mechanism"] == "gaussian" else "epsilon")
    value = i["sensitivity"] / found.value if found.parameter == "mu" else found.value
    assert value == pytest.approx(entry["expected"], abs=max(entry["atol"], 1e-9))


# --- two kinds of answers ---


def test_claim_3_2_certificates_and_estimates_share_nothing() -> None:
    # No common base but object, no conversion to a number, no common way to read the epsilon's
    # standing: a caller that wants a certificate cannot be handed an estimate.
    assert CertifiedLowerBound.__mro__[1:] == (object,) == ModelBasedEstimate.__mro__[1:]
    certificate = certify(observed(0.1), Scenario.uniform(10), 0.0)
    estimate = estimate_from_model(observed(0.1), "GRR", lambda e: 1 - math.exp(-e))
    for each in (certificate, estimate):
        with pytest.raises(TypeError):
            float(each)  # type: ignore[arg-type]
    assert not hasattr(estimate, "confidence") and not hasattr(estimate, "theorem")
    assert not hasattr(certificate, "mechanism")
    assert dataclasses.fields(certificate) != dataclasses.fields(estimate)


def test_a_fault_in_the_code_moves_the_certificate_only() -> None:
    # A mechanism sold as GRR at epsilon 0.2 that answers as at 3: the formula of the claim says
    # nothing of the sort at 0.2; the certificate exceeds the claim.
    prior = FinitePrior.uniform(5)
    found = simulate(RandomizedResponse(3.0), prior, 20_000, np.random.default_rng(1))
    threat = ThreatModel.reconstruction(prior)
    estimate = from_guesses(found.targets, found.guesses, threat, 0.999)
    scenario = Scenario.of_threat(threat)
    assert certify(estimate, scenario, 0.0).epsilon > 2.5
    check = check_claim(estimate, scenario, ApproximateDp.of(Fraction(1, 5), 0, REPLACE))
    assert check.refuted and check.advantage > check.allowed.value


def test_a_true_claim_is_refuted_no_more_often_than_stated() -> None:
    # Confidence .9, 300 audits of GRR at its true epsilon: at most the 1 - 1e-6 quantile of
    # Binomial(300, .1). GRR reaches Corollary 5.6, so this is the hardest true claim.
    prior, scenario = FinitePrior.uniform(4), Scenario.uniform(4)
    claim = ApproximateDp.of(1, 0, REPLACE)
    refuted = too_high = 0
    for seed in range(300):
        found = simulate(RandomizedResponse(1.0), prior, 500, np.random.default_rng(seed))
        estimate = from_counts(found.successes, 500, 4, 0.9)
        refuted += check_claim(estimate, scenario, claim).refuted
        too_high += certify(estimate, scenario, 0.0).epsilon > 1
    critical = stats.binom.isf(1e-6, 300, 0.1)
    assert refuted <= critical and too_high == refuted
    # The point estimate errs about half the time.
    points = sum(
        simulate(RandomizedResponse(1.0), prior, 500, np.random.default_rng(seed)).successes / 500
        > mechanisms.grr_total_variation(4, 1.0) * 0.75 + 0.25
        for seed in range(300)
    )
    assert points > stats.binom.ppf(1e-6, 300, 0.4)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-0.2, 0.95),
    st.sampled_from([0.0, 1e-5, 0.01]),
    st.sampled_from([[0.5, 0.5], [0.6, 0.1, 0.1, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1]]),
    st.booleans(),
)
def test_claim_3_1_a_certificate_is_the_inverse_of_the_best_bound(
    lower: float, delta: float, prior: list[float], known: bool
) -> None:
    finite = FinitePrior(prior)
    knowledge = (AuxiliaryKnowledge.full if known else AuxiliaryKnowledge.none)(finite.records)
    threat = ThreatModel(finite, SuccessSets.exact(finite.records), knowledge)
    scenario = Scenario.of_threat(threat)
    found = certify(observed(lower), scenario, delta).epsilon

    def allowed(epsilon: float) -> float:
        return best_bound(scenario, [ApproximateDp.of(epsilon, delta, REPLACE)]).value

    if math.isinf(found):
        # A target that only the limit reaches is met there in floating point.
        assert allowed(1e4) <= lower
        return
    assert allowed(found) >= lower - 1e-9
    if found > 1e-6:
        assert allowed(found * (1 - 1e-6)) < lower + 1e-9


def test_no_finite_epsilon_explains_a_perfect_attack() -> None:
    assert certify(observed(0.9), Scenario.uniform(10), 0.0).epsilon == math.inf
    # With delta it still needs one: delta only shifts.
    assert certify(observed(0.5), Scenario.uniform(2), 0.1).epsilon == math.inf


def test_claim_3_4_adjacency_of_audits() -> None:
    absent = Scenario.absence(0.5)
    found = certify(observed(0.2), absent, 0.0)
    assert found.relation is ADD_REMOVE
    with pytest.raises(RefusedError, match="does not follow"):
        check_claim(observed(0.2), absent, ApproximateDp.of(1, 0, REPLACE))
    # A claim about absence, tested on records that replace each other, is doubled first.
    claim = ApproximateDp.of(Fraction(1, 2), 0, ADD_REMOVE)
    check = check_claim(observed(0.1), Scenario.uniform(2), claim)
    assert check.claim == ApproximateDp.of(1, 0, REPLACE)
    assert check.stated == claim


def test_a_delta_out_of_range_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="delta"):
        certify(observed(0.1), Scenario.uniform(2), 1.5)


# --- known mechanisms ---


@for_each("kind", ["grr", "oue", "ss"])
@for_each("eta", [0.0, 1.0])
@for_each("labels", [[0] * 5, [0, 1, 2, 3, 4], [0, 0, 1, 1, 1]])
def test_the_optimum_is_below_every_bound(kind: Any, eta: float, labels: list[int]) -> None:
    threat = ThreatModel(
        FinitePrior([0.4, 0.3, 0.15, 0.1, 0.05]),
        SuccessSets.on_line(np.arange(5.0), eta),
        AuxiliaryKnowledge.of_labels(labels),
    )
    known = LocalMechanism(kind, 2)
    for epsilon in (1e-6, 0.5, 1.0, 3.0, 20.0):
        exact, *_ = exact_bounds(known, threat, epsilon)
        best = best_bound(
            Scenario.of_threat(threat), [known.guarantee(epsilon)],
            exact_bounds(known, threat, epsilon),
        )  # fmt: skip
        for bound in best.applicable:
            assert exact.value <= bound.value + 1e-12, bound.theorem


@for_each("kind", ["laplace", "gaussian"])
@for_each("parameter", [1e-6, 1e-3, 1.0, 500.0, 1e4])
def test_extreme_noise_is_finite_and_below_its_bounds(kind: Any, parameter: float) -> None:
    threat = ThreatModel.reconstruction(FinitePrior.uniform(11))
    known = NoiseMechanism(kind, np.linspace(0, 1, 11))
    bounds = exact_bounds(known, threat, parameter)
    best = best_bound(Scenario.of_threat(threat), [known.guarantee(parameter)], bounds)
    assert 0 <= best.value <= 1 - 1 / 11
    assert all(bounds[0].value <= bound.value + 1e-12 for bound in best.applicable)
    assert known.advantage(threat, 0.0) == known.total_variation(11, 0.0) == 0.0
    assert known.total_variation(11, 1e300) == 1.0
    with pytest.raises(InvalidArgumentError, match=known.parameter):
        known.advantage(threat, -1.0)


@for_each("kind", ["laplace", "gaussian"])
@for_each("labels", [[0] * 4, [0, 1, 2, 3], [0, 0, 1, 1]])
def test_without_noise_the_record_itself_is_released(kind: Any, labels: list[int]) -> None:
    x = np.array([0.0, 1.0, 2.5, 3.0])
    threat = ThreatModel(
        FinitePrior([0.4, 0.3, 0.2, 0.1]), SuccessSets.on_line(x, 1.0),
        AuxiliaryKnowledge.of_labels(labels),
    )  # fmt: skip
    known = NoiseMechanism(kind, x, 1.0)
    supremum = finite_advantage(np.eye(4), threat)
    assert known.advantage(threat, known.largest) == pytest.approx(supremum, abs=1e-12)
    assert known.advantage(threat, known.largest * (1 - 1e-9)) == pytest.approx(supremum, abs=1e-9)


# --- translation ---


@for_each("entry", [e for e in ENTRIES if e["topic"] == "mia.auc_limit"])
def test_largest_auc_of_the_oracle(entry: dict[str, Any]) -> None:
    i, expected = entry["inputs"], entry["expected"]
    if "auc" in i:
        found = largest_auc(ApproximateDp.of(expected, 0, REPLACE))
        assert found == pytest.approx(i["auc"], abs=1e-9)
        return
    guarantee = (
        GaussianDp.of(i["mu"], REPLACE)
        if "mu" in i
        else ApproximateDp.of(i["eps"], i["delta"], REPLACE)
    )
    assert largest_auc(guarantee) == pytest.approx(expected, abs=entry["atol"])


def test_claim_4_1_a_translation_agrees_with_the_verdicts_own_table() -> None:
    table: dict[str, Any] = epsilon_report(
        "20", "null-replace", 1, 100, 5, "0.000001", Fraction(1, 2**100), 700, [100] * 7, "4",
        "0.000001",
    ).to_json()  # fmt: skip
    mu = Fraction(table["headline"]["mu"])
    for row in table["risk"]["uniform_priors"]:
        found = translate(GaussianDp(mu, NULL), Scenario.uniform(row["candidates"]))
        # The table computes from mu itself, here from its six decimals, rounded up.
        attribute, reconstruction = float(row["attribute"]), float(row["reconstruction"])
        assert attribute - 1e-12 <= found.attribute_advantage <= attribute + 3e-6
        # The table has Theorem 5.1 only; the best of all bounds may be smaller.
        assert found.reconstruction_advantage <= reconstruction + 3e-6
    membership = float(table["risk"]["membership_advantage"])
    assert membership - 1e-12 <= found.membership_advantage <= membership + 3e-6
    assert found.auc == pytest.approx(float(table["risk"]["auc"]), abs=3e-6)


def test_sentences_say_the_numbers_rounded_up() -> None:
    found = translate(ApproximateDp.of(1, 0, ADD_REMOVE), Scenario.uniform(10))
    # tanh(1/2) = .46211...; under replace-one epsilon is 2.
    assert found.membership_advantage == pytest.approx(0.462118, abs=1e-9)
    assert found.attribute_advantage == pytest.approx(math.tanh(1) * 0.9, abs=1e-6)
    assert found.attribute_advantage >= math.tanh(1) * 0.9
    corollary = 0.9 * math.expm1(2) / (math.exp(2) + 9)
    assert corollary <= found.reconstruction_advantage <= corollary + 1e-6
    assert found.blind_success == 0.1
    membership, area, attributes, reconstruction = found.sentences()
    assert "at most 46.22 percentage points" in membership and "or not" in membership
    assert "above 0.7311" in area
    assert "one of 10 equally likely records" in attributes
    assert "10.00 % of the time" in reconstruction
    for guarantee in (NULL, REPLACE):
        words = translate(ApproximateDp.of(1, 0, guarantee), Scenario.uniform(10)).sentences()[0]
        assert words != membership


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-6, 1e4), st.integers(2, 10**7), st.sampled_from(NeighboringRelation))
def test_translations_are_finite_and_ordered(
    epsilon: float, records: int, relation: NeighboringRelation
) -> None:
    for guarantee in (
        ApproximateDp.of(epsilon, 0, relation), GaussianDp.of(min(epsilon, 500), relation),
    ):  # fmt: skip
        found = translate(guarantee, Scenario.uniform(records))
        assert 0 <= found.reconstruction_advantage <= found.attribute_advantage <= 1
        assert 0 < found.membership_advantage <= 1
        assert 0.5 <= found.auc <= 1
        assert found.reconstruction_success <= 1
        if relation is REPLACE:
            assert found.attribute_advantage <= found.membership_advantage


def test_claim_4_2_slack_of_the_sampler_is_added() -> None:
    plain = translate(GaussianDp.of(1, NULL), Scenario.uniform(10))
    loose = translate(GaussianDp.of(1, NULL), Scenario.uniform(10), 0.001)
    assert loose.membership_advantage - plain.membership_advantage == pytest.approx(0.002)
    assert loose.attribute_advantage - plain.attribute_advantage == pytest.approx(0.004)


def test_sentences_say_the_prior_and_what_counts() -> None:
    guarantee = ApproximateDp.of(1, 0, REPLACE)
    sets = SuccessSets.on_line(np.arange(12.0), 1.0)
    prior = FinitePrior([0.45, *[0.05] * 11])
    scenario = Scenario.of_threat(ThreatModel.reconstruction(prior, sets))
    *_, attributes, reconstruction = translate(
        guarantee, scenario, nearness=Nearness(1.0, 11.0)
    ).sentences()
    for words in (attributes, reconstruction):
        assert "names a record within 1 of it (the records lie evenly over a range of 11)" in words
        assert "most probable one with probability 0.45, two draws being equal" in words
    assert "counts as it" in translate(guarantee, scenario).sentences()[2]


def test_translations_refuse_what_they_cannot_say() -> None:
    with pytest.raises(AssumptionError, match="scenario"):
        translate(ApproximateDp.of(1, 0, ADD_REMOVE), Scenario.absence())
    with pytest.raises(InvalidArgumentError, match="slack"):
        translate(ApproximateDp.of(1, 0, REPLACE), Scenario.uniform(2), -0.1)


def test_an_attack_respects_its_translation() -> None:
    # GRR at epsilon 1 attacked optimally: observed success never above the translated limit by
    # more than Hoeffding's half-width at 1e-6 for 10^5 runs, .0083.
    prior = FinitePrior.uniform(10)
    found = simulate(RandomizedResponse(1.0), prior, 100_000, np.random.default_rng(3))
    limit = translate(ApproximateDp.of(1, 0, REPLACE), Scenario.uniform(10))
    success = found.successes / 100_000
    assert success <= limit.reconstruction_success + 0.0083
    assert success >= limit.reconstruction_success - 0.0083  # GRR reaches the limit
