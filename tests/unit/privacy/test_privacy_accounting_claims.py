"""The cross-check, calibration, and what an epsilon means for an attacker (claims 6 to 11).

Claims are those of docs/notes/accounting.md.
"""

from decimal import Decimal
from fractions import Fraction

import dp_accounting
import pytest
from dp_accounting.pld import privacy_loss_distribution
from for_each import for_each
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.text import floor_decimal, parse_decimal
from ragaudit.privacy.accounting import accountants, gaussian, risk
from ragaudit.privacy.accounting.events import NoisyScores
from ragaudit.privacy.accounting.gaussian import calibrate, gives, least_epsilon

DELTA = Fraction(1, 10**6)


# --- claim 6: privacy loss distribution ---


@pytest.mark.parametrize(("sigma", "queries"), [("50", 500), ("20", 10), ("400", 3), ("10", 100)])
def test_claim_6_cross_check_agrees(sigma: str, queries: int) -> None:
    event = NoisyScores.of_policy(sigma, "replace", 1, queries)
    found = accountants.library_epsilon(event, DELTA)
    reference = least_epsilon(event.mu_gaussian_limit(), DELTA)
    assert found is not None and reference is not None
    assert accountants.agrees(found, reference)
    assert found == pytest.approx(float(reference), rel=1e-5)
    assert not accountants.agrees(found * 1.01 + 0.001, reference)


def test_claim_6_against_a_true_self_composition() -> None:
    """100 separate queries composed by the library, under its own replace-one relation."""
    event = NoisyScores.of_policy("20", "replace", 1, 100)
    single = privacy_loss_distribution.from_gaussian_mechanism(
        float(event.sigma_units),
        sensitivity=SQUARED_NORM,  # the library doubles it for REPLACE_ONE
        value_discretization_interval=1e-5,
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE,
    )
    composed = single.self_compose(100).get_epsilon_for_delta(1e-6)
    ours = least_epsilon(event.mu_gaussian_limit(), DELTA)
    assert composed == pytest.approx(float(ours or 0), rel=2e-3)


def test_claim_6_discrete_mechanism_of_the_library_is_below_the_headline() -> None:
    discrete = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        20.0, 10, pessimistic_estimate=False, value_discretization_interval=1e-5
    )
    mu = Decimal(10) / Decimal(20**2 - 16).sqrt()
    for eps in (0.1, 0.5, 1.0, 2.0):
        assert discrete.get_delta_for_epsilon(eps) <= float(gaussian.delta(mu, Decimal(eps))) + 1e-9


def test_cross_check_is_left_out_for_large_mu() -> None:
    assert (
        accountants.library_epsilon(NoisyScores.of_policy("1", "replace", 1, 1000), DELTA) is None
    )


# --- claim 8: calibration ---


@pytest.mark.parametrize(
    ("eps", "delta", "queries", "relation", "group"),
    [
        ("1", "0.000001", 10_000, "replace", 1),
        ("0.5", "0.00001", 50, "null-replace", 3),
        ("20", "0.001", 7, "replace", 1),
        ("1000", "0.1", 1, "null-replace", 1),
    ],
)
def test_claim_8_least_sigma(eps: str, delta: str, queries: int, relation: str, group: int) -> None:
    sigma = calibrate(eps, delta, queries, relation, group)
    loss, target = parse_decimal(eps), parse_decimal(delta)
    assert gives(NoisyScores.of_policy(sigma, relation, group, queries), loss, target)
    below = Fraction(sigma) - Fraction(1, 10**6)
    if below * SQUARED_NORM >= 16:
        less = NoisyScores.of_policy(floor_decimal(below, 6), relation, group, queries)
        assert not gives(less, loss, target)


def test_claim_8_replace_needs_twice_the_noise_of_null_replace() -> None:
    twice = Fraction(calibrate("1", "0.000001", 1000, "replace", 1))
    once = Fraction(calibrate("1", "0.000001", 1000, "null-replace", 1))
    assert abs(twice / once - 2) < Fraction(1, 10**6)


@for_each(
    ("eps", "delta", "queries", "places", "error"),
    [
        ("0.000000000001", "0.000000000001", 10**12, 6, RefusedError),
        ("1", "0.000000000000", 1, 6, MalformedError),
        ("0", "0.1", 1, 6, MalformedError),
        ("1", "0.1", 0, 6, MalformedError),
        ("1", "0.1", 1, 0, MalformedError),
        ("1", "0.1", 1, 13, MalformedError),
        ("-1", "0.1", 1, 6, MalformedError),
    ],
)
def test_calibration_refusals(
    eps: str, delta: str, queries: int, places: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        calibrate(eps, delta, queries, "replace", 1, places=places)


def test_a_sampler_that_is_too_far_cannot_be_calibrated() -> None:
    with pytest.raises(RefusedError, match="no noise"):
        calibrate("1", "0.000001", 1000, "replace", 1, gamma=Fraction(1, 10**8))
    assert gaussian.largest_mu(Fraction(1), DELTA, DELTA) is None


# --- risk (claims 9 to 11); values of the RAD note, recomputed there by enumeration ---


@pytest.mark.parametrize(("mu", "expected"), [("2", 0.6826894921370859), ("0", 0.0)])
def test_claim_9_membership(mu: str, expected: float) -> None:
    assert float(risk.membership_advantage(Decimal(mu))) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("mu", "expected"), [("0.5", 0.6381631950841185), ("1", 0.7602499389065233)]
)
def test_claim_9_auc(mu: str, expected: float) -> None:
    assert float(risk.auc(Decimal(mu))) == pytest.approx(expected, abs=1e-12)


@for_each(
    ("mu", "candidates", "second", "first"),
    [
        ("0.5", 2, 0.0987063256829237, None),
        ("0.5", 10, 0.11200886992695878, None),
        ("0.5", 100, 0.023842088646832214, None),
        ("1.0", 2, 0.19146246127401312, None),
        ("1.0", 10, 0.2714176166155863, None),
        ("3.0", 10, 0.7797470377160555, 0.8571425738271105),
        ("3.0", 100, 0.733422658225039, None),
        ("3.0", 2, None, 0.4986501019683699),
    ],
)
def test_claim_11_reconstruction(
    mu: str, candidates: int, second: float | None, first: float | None
) -> None:
    """Both printed forms, and that the smaller is returned."""
    m, share = Decimal(mu), Decimal(1) / candidates
    a = float(risk._largest_gap(m, share, share))
    b = float((1 - share) * risk._largest_gap(m, Decimal(0), min(Decimal(1), share / (1 - share))))
    if first is not None:
        assert a == pytest.approx(first, abs=1e-9)
    if second is not None:
        assert b == pytest.approx(second, abs=1e-9)
    found = float(risk.reconstruction_advantage(m, risk.PriorSummary.uniform(candidates)))
    attribute = float(risk.attribute_advantage(m, risk.PriorSummary.uniform(candidates)))
    assert found == pytest.approx(min(a, b, attribute), abs=1e-12)


def test_claim_11_the_minimum_is_taken() -> None:
    """A success region of everything: the second form alone would claim 0.3446."""
    prior = risk.PriorSummary(Fraction(1, 10), Fraction(1), Fraction(1))
    assert risk.reconstruction_advantage(Decimal(1), prior) == 0
    certain = risk.PriorSummary.of(1, 1, 1)
    assert risk.reconstruction_advantage(Decimal(1), certain) == 0


def test_claim_11_large_mu_does_not_underflow() -> None:
    found = risk.reconstruction_advantage(Decimal(40), risk.PriorSummary.uniform(10))
    assert float(found) == pytest.approx(0.9, abs=1e-12)


def test_claim_10_null_replace_doubles_mu_between_records() -> None:
    replace = NoisyScores.of_policy("50", "replace", 1, 100)
    null = NoisyScores.of_policy("50", "null-replace", 1, 100)
    assert risk.record_mu(replace) == replace.mu()
    assert abs(risk.record_mu(null) / null.mu() - 2) < Decimal("1e-25")


def test_priors_need_two_candidates() -> None:
    with pytest.raises(MalformedError):
        risk.PriorSummary.uniform(1)
