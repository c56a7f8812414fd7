"""Accounting of epsilon: composition, coalitions of accounts, sampling of audits.

Claims are those of docs/notes/accounting.md.
"""

import math
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from noise_certificate import GAMMA as CERTIFIED
from ragaudit.encoding.errors import MalformedError, RefusedError, RejectedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.relations import FIXED_SIZE, NeighboringRelation
from ragaudit.encoding.text import floor_decimal, parse_decimal
from ragaudit.privacy import normal
from ragaudit.privacy import sample as sampling
from ragaudit.privacy.accounting import accountants, gaussian, renyi, risk
from ragaudit.privacy.accounting.collusion import (
    ScoreReleaseClass,
    advanced_composition,
    exposure,
    membership_lower_bound,
    renyi_closed_form,
    renyi_sigma,
)
from ragaudit.privacy.accounting.events import GAMMA, NoisyScores
from ragaudit.privacy.accounting.gaussian import (
    NoFiniteBound,
    calibrate,
    epsilon,
    gives,
    least_epsilon,
)
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp
from ragaudit.privacy.sample import (
    bad_records,
    detection,
    miss_probability,
    sample_size,
    sample_size_unbounded,
)

DELTA = Fraction(1, 10**6)
SLACK = Fraction(5 * 10**7, 2**100)


def exact_delta(mu: Any, eps: Any) -> Any:
    """Balle-Wang at 200 digits."""
    with mp.workdps(200):
        mu, eps = mpf(str(mu)), mpf(str(eps))
        return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)


# --- decimal arithmetic (claim 12) ---


@for_each(
    "x",
    ["0", "1e-9", "0.3", "1", "3.9999", "4", "4.0001", "5.99", "6", "7", "12", "38", "90", "500"],
)
def test_claim_12_normal_tail(x: str) -> None:
    with mp.workdps(150):
        exact = mp.erfc(mpf(x) / mp.sqrt(2)) / 2
        for found, wanted in (
            (normal.tail(Decimal(x)), exact),
            (normal.cdf(Decimal(x)), 1 - exact),
            (normal.tail(-Decimal(x)), 1 - exact),
        ):
            assert abs(mpf(str(found)) / wanted - 1) < mpf("1e-60")
        density = mp.npdf(mpf(x))
        assert abs(mpf(str(normal.density(Decimal(x)))) / density - 1) < mpf("1e-70")


def test_claim_12_constants() -> None:
    with mp.workdps(120):
        assert abs(mpf(str(normal.PI)) - mp.pi) < mpf("1e-88")
        assert abs(mpf(str(renyi._LN2)) - mp.ln(2)) < mpf("1e-75")


@pytest.mark.parametrize("p", ["0.5", "1e-30", "0.001", "0.999", "0.3"])
def test_claim_12_quantile(p: str) -> None:
    x = normal.quantile(Decimal(p))
    assert abs(normal.tail(x) - Decimal(p)) < Decimal("1e-40")


@pytest.mark.parametrize("p", ["0", "1", "-0.1", "1.5"])
def test_quantile_range(p: str) -> None:
    with pytest.raises(ValueError):
        normal.quantile(Decimal(p))


def test_claim_12_results_do_not_depend_on_the_callers_context() -> None:
    expected = epsilon(NoisyScores.of_policy("50", "replace", 1, 500), DELTA)
    with localcontext(prec=5):
        assert epsilon(NoisyScores.of_policy("50", "replace", 1, 500), DELTA) == expected
    assert getcontext().prec == 28


# --- events (claim 1) ---


@pytest.mark.parametrize(
    ("relation", "group", "expected"),
    [
        ("replace", 1, (2 * 16129) ** 2),
        ("null-replace", 1, 16129**2),
        ("replace", 7, 7 * (2 * 16129) ** 2),
    ],
)
def test_claim_1_sensitivity(relation: str, group: int, expected: int) -> None:
    assert NoisyScores.of_policy("1", relation, group, 1).squared_sensitivity == expected


def test_claim_1_is_attained_and_not_exceeded() -> None:
    """Over small integer vectors of norm <= B: the largest change of one score, squared."""
    bound = 5
    points = [(a, b) for a in range(-5, 6) for b in range(-5, 6) if a * a + b * b <= bound**2]
    scores = {e: [e[0] * x[0] + e[1] * x[1] for x in points] for e in points}
    assert max(max(s) - min(s) for s in scores.values()) == 2 * bound**2
    assert max(max(abs(v) for v in s) for s in scores.values()) == bound**2


def test_claims_1_to_3_mu_is_exact_and_rounded_up() -> None:
    event = NoisyScores.of_policy("0.25", "replace", 3, 700)
    exact = Fraction(3 * (2 * 16129) ** 2 * 700) / (Fraction(16129, 4) ** 2 - 16)
    assert 0 < Fraction(event.mu()) ** 2 / exact - 1 < Fraction(1, 10**65)
    limit = Fraction(event.mu_gaussian_limit()) ** 2
    assert exact > limit > exact * (Fraction(16129, 4) ** 2 - 17) / Fraction(16129, 4) ** 2
    assert event.rho() == Fraction(3 * (2 * 16129) ** 2 * 700) / (2 * Fraction(16129, 4) ** 2)
    assert event.slack == 3 * 700 * GAMMA


def test_units_agree_with_the_other_member() -> None:
    from ragaudit.privacy.accounting.events import SCORE_UNIT

    assert SCORE_UNIT == SQUARED_NORM
    assert GAMMA == CERTIFIED


@for_each(
    ("sigma", "relation", "group", "queries"),
    [
        ("0.0009", "replace", 1, 1),
        ("68169858", "replace", 1, 1),
        ("1", "add_remove", 1, 1),
        ("1", "", 1, 1),
        ("1", "replace", 0, 1),
        ("1", "replace", 1001, 1),
        ("1", "replace", 1, -1),
        ("1", "replace", 1, 10**13 + 1),
        ("1e9", "replace", 1, 1),
    ],
)
def test_events_out_of_range(sigma: str, relation: str, group: int, queries: int) -> None:
    with pytest.raises(MalformedError):
        NoisyScores.of_policy(sigma, relation, group, queries)


def test_gamma_out_of_range() -> None:
    for gamma in (Fraction(-1, 2), Fraction(1)):
        with pytest.raises(MalformedError):
            NoisyScores.of_policy("1", "replace", 1, 1, gamma)


# --- claim 2: the discrete Gaussian is a rounded continuous one of variance S² - 16 ---


def test_claim_2_rounding_kernel() -> None:
    """The kernel's normaliser varies by less than 2^-454 around 4 sqrt(2 pi)."""
    with mp.workdps(250):
        middle = 4 * mp.sqrt(2 * mp.pi)
        for x in ("0", "0.25", "0.5"):
            total = mp.fsum(mp.exp(-((n - mpf(x)) ** 2) / 32) for n in range(-200, 200))
            assert abs(total / middle - 1) < mpf(2) ** -454


def test_claim_2_randomised_rounding_is_discrete_gaussian() -> None:
    """By quadrature at 40 digits, sigma_units = 17, several integers."""
    with mp.workdps(30):
        variance = mpf(17**2 - 16)
        z = mp.fsum(mp.exp(-mpf(v * v) / (2 * 17**2)) for v in range(-400, 401))

        def theta(x: Any) -> Any:
            near = int(mp.floor(x))
            return mp.fsum(mp.exp(-((k - x) ** 2) / 32) for k in range(near - 45, near + 46))

        def integrand(x: Any) -> Any:
            return mp.npdf(x, 0, mp.sqrt(variance)) * mp.exp(-((n - x) ** 2) / 32) / theta(x)

        for n in (0, 5, 40):
            # The trapezoidal rule is exponentially accurate for such integrands.
            found = mp.fsum(integrand(mpf(i) / 2) for i in range(2 * n - 90, 2 * n + 91)) / 2
            exact = mp.exp(-mpf(n * n) / (2 * 17**2)) / z
            assert abs(found / exact - 1) < mpf("1e-18")


def discrete_composed_delta(sigma: float, shift: int, times: int, eps: float) -> float:
    """Exact (to doubles) delta of `times` discrete Gaussians with one shift each.

    The log ratio of a sample is (shift² - 2·shift·v)/(2 sigma²), so the sum of the samples
    is sufficient; its law is the convolution.
    """
    half = int(14 * sigma) + times * shift
    v = np.arange(-half, half + 1)
    p = np.exp(-(v.astype(float) ** 2) / (2 * sigma**2))
    p /= p.sum()
    total = p
    for _ in range(times - 1):
        total = np.convolve(total, p)
    sums = np.arange(-half * times, half * times + 1)
    ratio = np.exp(-(2.0 * shift * sums + times * shift**2) / (2 * sigma**2))
    return float(np.sum(total * np.maximum(0, 1 - math.exp(eps) * ratio)))


@for_each(
    ("sigma", "shift", "times"),
    [(16, 1, 1), (16, 7, 1), (16, 40, 1), (16, 9, 3), (40, 64, 4), (64, 16, 1)],
)
@for_each("eps", [0.0, 0.1, 1.0, 3.0])
def test_claims_2_and_3_bound_the_exact_discrete_profile(
    sigma: int, shift: int, times: int, eps: float
) -> None:
    exact = discrete_composed_delta(sigma, shift, times, eps)
    mu = Decimal(shift) * Decimal(times).sqrt() / Decimal(sigma**2 - 16).sqrt()
    ours = float(gaussian.delta(mu, Decimal(eps)))
    assert exact <= ours * (1 + 1e-9) + 1e-15


def test_the_variance_correction_is_needed() -> None:
    """Without the 16 the formula falls below an exact discrete value: it is no bound."""
    exact = discrete_composed_delta(16, 1, 1, 0.0)
    plain = float(gaussian.delta(Decimal(1) / 16, Decimal(0)))
    corrected = float(gaussian.delta(Decimal(1) / Decimal(240).sqrt(), Decimal(0)))
    eps = 0.3
    assert discrete_composed_delta(16, 1, 1, eps) > float(
        gaussian.delta(Decimal(1) / 16, Decimal(str(eps)))
    )
    assert plain < corrected and exact <= corrected


# --- claims 3 and 4: the headline ---


@given(st.floats(1e-6, 60), st.floats(0, 300))
@settings(max_examples=150)
def test_claim_3_delta_against_200_digits(mu: float, eps: float) -> None:
    with mp.workdps(200):
        found = mpf(str(gaussian.delta(Decimal(mu), Decimal(eps))))
        wanted = exact_delta(Decimal(mu), Decimal(eps))
        assert wanted <= found
        if found not in (mpf("1e-20000000"), 1):
            assert found <= wanted * (1 + mpf("1e-45"))


@given(
    st.floats(1e-4, 12), st.integers(1, 11), st.sampled_from([Fraction(0), SLACK, 2 * DELTA / 3])
)
@settings(max_examples=20)
def test_claim_4_least_epsilon_is_least(mu: float, places: int, slack: Fraction) -> None:
    target = Fraction(1, 10**places)
    m = Decimal(mu)
    found = least_epsilon(m, target, slack)

    def holds(eps: Decimal) -> bool:
        with mp.workdps(100):
            left = exact_delta(m, eps) + (1 + mp.exp(mpf(str(eps)))) * slack.numerator / mpf(
                slack.denominator
            )
            return bool(left <= mpf(target.numerator) / target.denominator)

    if found is None:
        assert not any(holds(Decimal(n) / 20) for n in range(0, 1600, 7))
        return
    assert holds(found)
    step = max(found, Decimal(1)) * Decimal("1e-17")
    assert found == 0 or not holds(found - step)


def test_claim_4_no_finite_bound_is_an_error() -> None:
    event = NoisyScores.of_policy("10", "replace", 1, 1000)
    with pytest.raises(NoFiniteBound, match="no finite epsilon") as caught:
        epsilon(event, DELTA)
    assert isinstance(caught.value, RejectedError)
    assert least_epsilon(event.mu(), DELTA) is not None  # only the sampler's share forbids it
    assert not gives(event, Fraction(1000), DELTA)


def test_claim_4_a_larger_epsilon_than_the_turning_point_is_still_given() -> None:
    event = NoisyScores.of_policy("50", "replace", 1, 500)
    assert gives(event, Fraction(10), DELTA)
    assert gives(event, Fraction(1000), DELTA)  # (1 + e^1000)·m·g·gamma alone is enormous
    assert not gives(event, Fraction(1), DELTA)


def test_the_threshold_of_gives_is_the_headline() -> None:
    event = NoisyScores.of_policy("50", "replace", 1, 500)
    found = Fraction(epsilon(event, DELTA))
    assert gives(event, found, DELTA)
    assert not gives(event, found - Fraction(1, 10**15), DELTA)


def test_the_unit_counts_in_the_sampler_share() -> None:
    rows = NoisyScores.of_policy("50", "replace", 1, 500)
    documents = NoisyScores.of_policy("50", "replace", 9, 500)
    assert documents.slack == 9 * rows.slack == 9 * 500 * GAMMA
    assert documents.mu() == pytest.approx(3 * rows.mu(), rel=Decimal("1e-60"))


@given(
    st.sampled_from(["5", "20", "80", "300"]),
    st.sampled_from(FIXED_SIZE),
    st.integers(1, 50),
    st.integers(1, 2000),
)
@settings(max_examples=8)
def test_monotone_in_every_parameter(
    sigma: str, relation: NeighboringRelation, group: int, queries: int
) -> None:
    event = NoisyScores.of_policy(sigma, relation, group, queries)

    def value(e: NoisyScores) -> Decimal:
        found = least_epsilon(e.mu(), DELTA, e.slack)
        return Decimal("inf") if found is None else found

    base = value(event)
    assert base <= value(event.with_queries(queries + 1))
    assert base <= value(NoisyScores.of_policy(sigma, relation, group + 1, queries))
    assert base >= value(NoisyScores.of_policy(sigma + ".5", relation, group, queries))
    assert value(NoisyScores.of_policy(sigma, "null-replace", group, queries)) <= base


def test_no_queries_cost_nothing() -> None:
    event = NoisyScores.of_policy("1", "replace", 1, 0)
    assert epsilon(event, DELTA) == 0
    assert renyi.bound(event, DELTA) == renyi.RenyiBound(Decimal(0), Decimal(2))
    assert accountants.library_epsilon(event, DELTA) is None


# --- claim 5: Rényi ---


@pytest.mark.parametrize("sigma", ["20", "50", "400"])
@pytest.mark.parametrize("queries", [1, 100])
def test_claim_5_renyi_against_the_headline_and_dp_accounting(sigma: str, queries: int) -> None:
    event = NoisyScores.of_policy(sigma, "replace", 1, queries)
    found = renyi.bound(event, DELTA)
    assert found is not None
    headline = least_epsilon(event.mu(), DELTA, event.slack)
    assert headline is not None
    assert found.epsilon > headline
    accountant = rdp_privacy_accountant.RdpAccountant(
        orders=[1 + 1.05**i / 50 for i in range(1, 260)],
        neighboring_relation=dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    )
    multiplier = float(event.sigma_units) / math.sqrt(event.squared_sensitivity)
    accountant.compose(dp_accounting.GaussianDpEvent(multiplier), queries)
    assert float(found.epsilon) == pytest.approx(accountant.get_epsilon(1e-6), rel=2e-3)
    assert float(found.epsilon) <= accountant.get_epsilon(1e-6) * (1 + 1e-5)


def test_claim_5_no_order_does_better() -> None:
    event = NoisyScores.of_policy("50", "replace", 1, 500)
    found = renyi.bound(event, DELTA)
    assert found is not None
    rho = normal.decimal_of(event.rho())
    for order in range(11, 1000):
        assert renyi.canonne_epsilon(rho, Decimal("1e-6"), Decimal(order) / 10) >= (
            found.epsilon - Decimal("1e-5")
        )


def test_claim_5_sampler_share_can_forbid_it() -> None:
    assert renyi.bound(NoisyScores.of_policy("10", "replace", 1, 1000), DELTA) is None
    ideal = NoisyScores.of_policy("10", "replace", 1, 1000, Fraction(0))
    assert renyi.bound(ideal, DELTA) is not None


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


REPLACE = NeighboringRelation.REPLACE


def release(epsilon_acc: str = "1", queries: int = 10_000) -> ScoreReleaseClass:
    return ScoreReleaseClass(Fraction(epsilon_acc), DELTA, queries, REPLACE)


budgets = st.fractions(min_value=Fraction(1, 10**4), max_value=4, max_denominator=10**4)


@settings(max_examples=40, deadline=None)
@given(epsilon_acc=budgets, queries=st.integers(10, 10**7), accounts=st.integers(1, 1000))
def test_claim_21_the_residual_is_between_half_and_all_of_its_bound(
    epsilon_acc: Fraction, queries: int, accounts: int
) -> None:
    bound = ScoreReleaseClass(epsilon_acc, DELTA, queries, REPLACE).coalition(
        accounts, Fraction(1, 10**7)
    )
    assert bound.residual_bound / 2 <= bound.residual <= bound.residual_bound
    log = math.log(1e6)
    assert float(bound.residual_bound) == pytest.approx(accounts * float(epsilon_acc) ** 2 / log)
    assert float(bound.leading) == pytest.approx(
        math.sqrt(accounts * math.log(1e7) / log) * float(epsilon_acc)
    )
    assert bound.delta == Fraction(1, 10**7) + accounts * DELTA
    guarantee = bound.guarantee()
    assert guarantee.epsilon > Fraction(bound.leading)
    assert (guarantee.delta, guarantee.relation) == (bound.delta, REPLACE)


@settings(max_examples=12, deadline=None)
@given(epsilon_acc=budgets, queries=st.integers(20, 10**6), accounts=st.integers(1, 100))
def test_claim_20_the_bound_holds_for_the_noise_of_its_class(
    epsilon_acc: Fraction, queries: int, accounts: int
) -> None:
    inside = ScoreReleaseClass(epsilon_acc, DELTA, queries, REPLACE)
    bound = inside.coalition(accounts, DELTA).guarantee()
    assert inside.gaussian(accounts).at_delta(bound.delta).epsilon <= bound.epsilon


def test_claim_20_the_leading_term_is_no_bound_for_just_enough_noise() -> None:
    exactly = Fraction("0.2367")  # below the mu of (1, 1e-6)-DP
    account = GaussianDp(exactly, REPLACE)
    assert account.at_delta(DELTA).epsilon <= 1
    fifty = GaussianDp.compose([account] * 50)
    bound = release().coalition(50, DELTA)
    assert fifty.at_delta(bound.delta).epsilon > Fraction(bound.leading)


@settings(max_examples=15, deadline=None)
@given(epsilon_acc=budgets, accounts=st.integers(1, 500), factor=st.integers(2, 5))
def test_claim_21_monotone_in_epsilon_and_accounts(
    epsilon_acc: Fraction, accounts: int, factor: int
) -> None:
    def total(budget: Fraction, k: int) -> Fraction:
        inside = ScoreReleaseClass(budget, DELTA, 10_000, REPLACE)
        return inside.coalition(k, DELTA).guarantee().epsilon

    assert total(epsilon_acc, accounts) < total(epsilon_acc * factor, accounts)
    assert total(epsilon_acc, accounts) < total(epsilon_acc, accounts * factor)


def test_claim_21_audit_has_the_policys_delta_exactly() -> None:
    policy = Fraction(2, 10**5)
    bound = release().audit(10, policy)
    assert bound.delta == policy
    assert float(bound.leading) == pytest.approx(2.8868, abs=5e-5)
    assert float(release().gaussian(10).at_delta(policy).epsilon) == pytest.approx(0.2808, abs=5e-5)


def test_claim_21_no_share_of_delta_left() -> None:
    """As numbers 1e-5 does not exceed 10·1e-6, although it does in binary floating point."""
    assert 1e-5 > 10 * 1e-6
    with pytest.raises(RefusedError) as caught:
        release().audit(10, Fraction(1, 10**5))
    assert caught.value.where == "delta_policy"


@pytest.mark.parametrize(("epsilon_acc", "least"), [("1", 1), ("16", 10), ("4", 1), ("20", 15)])
def test_claim_21_the_range_of_queries_is_checked(epsilon_acc: str, least: int) -> None:
    limit = float(Fraction(epsilon_acc)) ** 2 / (2 * math.log(1e6))
    assert least - 1 <= limit < least
    release(epsilon_acc, least)
    if least > 1:
        with pytest.raises(MalformedError) as caught:
            release(epsilon_acc, least - 1)
        assert caught.value.where == "queries"


def test_lemma_3_2_ends_at_one() -> None:
    bound = advanced_composition(Decimal(1), Fraction(0), 3, DELTA, REPLACE)
    assert float(bound.residual) == pytest.approx(3 * (math.e - 1))
    for epsilon_q in (Decimal("1.0001"), Decimal(0), Decimal(-1), Decimal("NaN"), 1.5):
        with pytest.raises(MalformedError) as caught:
            advanced_composition(epsilon_q, Fraction(0), 3, DELTA, REPLACE)
        assert caught.value.where == "epsilon_q"


def test_claim_21_lemma_3_2_is_above_basic_and_exact_composition_where_it_should_be() -> None:
    """Against the optimal composition of pure mechanisms (Kairouz, Oh, Viswanath), by summation."""
    times, eps = 40, 0.1
    bound = advanced_composition(Decimal("0.1"), Fraction(0), times, DELTA, REPLACE)

    def delta(total: float) -> float:
        weights = [
            math.comb(times, i) * math.exp(i * eps) / (1 + math.exp(eps)) ** times
            for i in range(times + 1)
        ]
        losses = [(2 * i - times) * eps for i in range(times + 1)]
        return sum(
            weight * max(0.0, 1 - math.exp(total - loss))
            for weight, loss in zip(weights, losses, strict=True)
        )

    assert delta(float(bound.guarantee().epsilon)) <= 1e-6
    assert delta(0.5 * float(bound.leading)) > 1e-6


def test_claim_22_theorem_3_9_names_another_sigma() -> None:
    classic, other = release().sigma(Fraction(1)), renyi_sigma(Fraction(1), DELTA, 10_000)
    assert float(classic / other) == pytest.approx(math.sqrt(2 * math.log(1.25e10)), rel=1e-12)
    form = renyi_closed_form(other, Decimal(1), 10_000, DELTA, REPLACE)
    assert float(form.leading) == pytest.approx(1, rel=1e-12)
    assert float(form.residual) == pytest.approx(1 / (4 * math.log(1e6)), rel=1e-12)
    assert float(form.guarantee().epsilon) == pytest.approx(1.0181, abs=5e-5)
    assert float(form.order) == pytest.approx(1 + 2 * math.log(1e6), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(mu=st.decimals("1e-4", "500", places=4), order=st.decimals("1.001", "1e6", places=3))
def test_claim_22_equation_3_6_is_the_least_over_all_orders(mu: Decimal, order: Decimal) -> None:
    form = renyi_closed_form(Decimal(1), mu, 1, DELTA, REPLACE)
    at = order * mu * mu / 2 - Decimal("1e-6").ln() / (order - 1)
    assert form.guarantee().epsilon <= Fraction(at) * (1 + Fraction(1, 10**20))


def test_claim_23_the_lower_bound_and_where_it_ends() -> None:
    found = membership_lower_bound(release("4").gaussian(100))
    exact = release("4").gaussian(100).total_variation().value
    assert float(found) == pytest.approx(0.2226, abs=5e-5)
    assert Fraction(found) < exact
    edge = GaussianDp.of(Decimal("4.94608"), REPLACE)
    assert Fraction(membership_lower_bound(edge)) <= edge.total_variation().value
    beyond = GaussianDp.of(Decimal("4.9463"), REPLACE)
    assert beyond.mu / 2 * Fraction(39894228, 10**8) > beyond.total_variation().value
    with pytest.raises(RefusedError) as caught:
        membership_lower_bound(beyond)
    assert caught.value.where == "mu"


def test_claim_24_add_remove_has_no_useful_delta() -> None:
    assert float(exposure(10**5, 5, 10_000)) == pytest.approx(0.3935, abs=5e-5)
    assert exposure(3, 3, 1) == 1
    for rows, selected, queries in ((10, 3, 4), (1000, 5, 77)):
        exact = 1 - (1 - Fraction(selected, rows)) ** queries
        assert exact - Fraction(1, 2**200) < exposure(rows, selected, queries) <= exact
    # As long as the numbers are long, not as long as the queries are many.
    assert float(exposure(10**18, 1, 10**13)) == pytest.approx(1e-5, rel=1e-4)
    for arguments, field in (
        ((0, 1, 1), "rows"), ((5, 6, 1), "selected"), ((5, 0, 1), "selected"),
        ((5, 1, 0), "queries"), ((5, 1, 10**14), "queries"), ((5, True, 1), "selected"),
    ):  # fmt: skip
        with pytest.raises(MalformedError) as caught:
            exposure(*arguments)
        assert caught.value.where == field


@for_each(
    ("changes", "field"),
    [
        ({"epsilon_acc": Fraction(0)}, "epsilon_acc"),
        ({"epsilon_acc": Fraction(-1)}, "epsilon_acc"),
        ({"epsilon_acc": "x"}, "epsilon_acc"),
        ({"delta_acc": Fraction(0)}, "delta_acc"),
        ({"delta_acc": Fraction(1)}, "delta_acc"),
        ({"delta_acc": Fraction(3, 2)}, "delta_acc"),
        ({"queries": 0}, "queries"),
        ({"queries": True}, "queries"),
        ({"relation": "replaced"}, "relation"),
    ],
)
def test_bad_classes_are_refused_by_name(changes: dict[str, Any], field: str) -> None:
    good = {"epsilon_acc": Fraction(1), "delta_acc": DELTA, "queries": 100, "relation": REPLACE}
    with pytest.raises(MalformedError) as caught:
        ScoreReleaseClass(**{**good, **changes})
    assert caught.value.where == field


@for_each(
    ("call", "field"),
    [
        (lambda: release().coalition(0, DELTA), "accounts"),
        (lambda: release().coalition(2, Fraction(1)), "delta_comp"),
        (lambda: release().coalition(10**6, DELTA), "delta_comp"),
        (lambda: release().audit(2, Fraction(2)), "delta_policy"),
        (lambda: release().gaussian(-1), "accounts"),
        (lambda: release().sigma(Fraction(0)), "sensitivity"),
        (lambda: renyi_closed_form(Decimal(0), Decimal(1), 1, DELTA, REPLACE), "sigma"),
        (lambda: renyi_closed_form(Decimal("Infinity"), Decimal(1), 1, DELTA, REPLACE), "sigma"),
        (lambda: renyi_closed_form(Decimal(1), Decimal("NaN"), 1, DELTA, REPLACE), "sensitivity"),
        (lambda: renyi_closed_form(Decimal(1), Decimal(1), 0, DELTA, REPLACE), "queries"),
        (lambda: renyi_closed_form(Decimal(1), Decimal(1), 1, Fraction(0), REPLACE), "delta"),
        (lambda: renyi_sigma(Fraction(0), DELTA, 1), "epsilon_acc"),
        (lambda: renyi_sigma(Fraction(1), Fraction(1), 1), "delta_acc"),
    ],
)
def test_bad_arguments_are_refused_by_name(call: Any, field: str) -> None:
    with pytest.raises(MalformedError) as caught:
        call()
    assert caught.value.where == field


@pytest.mark.parametrize("mu", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_equation_3_8_is_total_variation(mu: Fraction) -> None:
    """(3.8) is above the exact advantage at every epsilon of the exact curve."""
    guarantee = GaussianDp(mu, REPLACE)
    for level in (Fraction(0), Fraction(1, 2), Fraction(3)):
        at: ApproximateDp = guarantee.at_epsilon(level)
        assert at.total_variation().value >= guarantee.total_variation().value * (
            1 - Fraction(1, 10**12)
        )


shares = st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=10**6)
levels = st.fractions(Fraction(1, 10**6), Fraction(1, 2), max_denominator=10**8)


@given(st.integers(0, 60), st.data())
def test_miss_probability_by_binomials(population: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, population))
    sample = data.draw(st.integers(0, population))
    expected = Fraction(math.comb(population - bad, sample), math.comb(population, sample))
    assert miss_probability(population, bad, sample) == expected


@given(st.integers(1, 300), shares, levels)
def test_claim_13_least_sample(population: int, beta: Fraction, eta: Fraction) -> None:
    bad = bad_records(population, beta)
    assert bad == math.ceil(beta * population) >= 1
    s = sample_size(population, beta, eta)
    assert 0 < s <= population
    assert miss_probability(population, bad, s) <= eta
    assert miss_probability(population, bad, s - 1) > eta
    assert s <= sample_size_unbounded(beta, eta)


@given(shares, levels)
@settings(max_examples=50)
def test_claim_13_least_sample_with_replacement(beta: Fraction, eta: Fraction) -> None:
    s = sample_size_unbounded(beta, eta)
    assert (1 - beta) ** s <= eta
    assert (1 - beta) ** (s - 1) > eta


@pytest.mark.parametrize(
    ("population", "beta", "eta", "expected"),
    [
        (0, "0.01", "0.05", 0),
        (1, "0.01", "0.05", 1),
        (10, "0.01", "0.05", 10),  # one bad record of ten: 1 - s/10 <= 0.05
        (100, "0.01", "0.05", 95),
        (2, "0.999", "0.5", 1),
    ],
)
def test_small_strata(population: int, beta: str, eta: str, expected: int) -> None:
    assert sample_size(population, Fraction(beta), Fraction(eta)) == expected


def test_equality_counts_as_reached() -> None:
    assert sample_size(4, Fraction(1, 4), Fraction(1, 4)) == 3
    assert sample_size_unbounded(Fraction(1, 2), Fraction(1, 2**20)) == 20
    assert sample_size_unbounded(Fraction(1, 3), Fraction(4, 9)) == 2
    assert sample_size_unbounded(Fraction(1, 3), Fraction(4, 9) - Fraction(1, 2**400)) == 3


def test_ties_beyond_the_intervals_are_settled_exactly() -> None:
    eta = miss_probability(10_000, 100, 700)
    assert sampling._missed_at_most(10_000, 100, 700, eta)
    assert not sampling._missed_at_most(10_000, 100, 700, eta - Fraction(1, 2**600))


@given(shares, st.integers(0, 3000))
@settings(max_examples=50)
def test_detection_is_a_close_lower_bound(beta: Fraction, s: int) -> None:
    exact = 1 - (1 - beta) ** s
    assert exact - Fraction(1, 2**200) <= detection(beta, s) <= exact


@pytest.mark.parametrize("beta", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(3, 2)])
def test_beta_range(beta: Fraction) -> None:
    for call in (
        lambda: sample_size(10, beta, Fraction(1, 2)),
        lambda: sample_size_unbounded(beta, Fraction(1, 2)),
        lambda: bad_records(10, beta),
        lambda: detection(beta, 3),
        lambda: sample_size(10, Fraction(1, 2), beta),
        lambda: sample_size_unbounded(Fraction(1, 2), beta),
    ):
        with pytest.raises(MalformedError):
            call()


def test_count_ranges() -> None:
    half = Fraction(1, 2)
    with pytest.raises(MalformedError):
        sample_size(-1, half, half)
    with pytest.raises(MalformedError):
        detection(half, -1)
    for bad, sample in ((-1, 1), (1, -1), (11, 1), (1, 11)):
        with pytest.raises(MalformedError):
            miss_probability(10, bad, sample)
