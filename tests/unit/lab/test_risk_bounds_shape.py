"""The form of the bounds, monotone and finite at the extremes, and the best of them.

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
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk import finite, mechanisms
from ragaudit.lab.risk.finite import channel_total_variation
from ragaudit.lab.risk.general_bounds import (
    approximate_dp_bound,
    approximate_dp_terms,
    best_bound,
    channel_bounds,
    exact_guess_bound,
    total_variation_bound,
    trade_off_bound,
    trade_off_forms,
    uniform_exact_guess_bound,
)
from ragaudit.lab.risk.mechanisms import GaussianNoise, LaplaceNoise
from ragaudit.lab.risk.priors import FinitePrior
from ragaudit.lab.risk.scenario import Knowledge, Scenario, normalized
from ragaudit.lab.risk.threat import SuccessSets, ThreatModel
from ragaudit.lab.risk.trade_off import (
    ApproximateTradeOff,
    GaussianTradeOff,
    PrivacyProfile,
    composed_total_variation,
)
from ragaudit.privacy.accounting import risk as verdict
from ragaudit.privacy.accounting.risk import PriorSummary
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, TotalVariation

REPLACE = NeighboringRelation.REPLACE
ROUNDING = 1e-12


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
    channel_variation = finite.grr_total_variation(100, 3.0)
    two = np.zeros(100)
    two[:2] = 0.5
    by_prior = [
        finite.grr_advantage(ThreatModel.reconstruction(prior), 3.0)
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
            lambda eps, m=m: finite.grr_total_variation(m, eps),
            lambda eps, m=m: finite.oue_advantage_uniform(m, eps),
            lambda eps, m=m: finite.ss_advantage_uniform(m, eps, max(1, m // 3)),
            lambda eps, m=m: finite.noise_bound_uniform(m, 1.0, LaplaceNoise(1 / eps)),
            lambda eps, m=m: finite.noise_bound_uniform(m, 1.0, GaussianNoise(1 / eps)),
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
