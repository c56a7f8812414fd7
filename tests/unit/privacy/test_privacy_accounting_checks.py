"""Bad numbers reach no formula: each public function refuses them by the field's name."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.privacy.accounting import calibrate, calibration, gaussian, renyi, risk
from ragaudit.privacy.numbers import count, decimal

NAN, INFINITE, ONE = Decimal("NaN"), Decimal("Infinity"), Decimal(1)
DELTA = Fraction(1, 10**6)

CALLS: list[tuple[Callable[[Any], object], str, list[Any]]] = [
    (lambda v: gaussian.delta(v, ONE), "mu", [NAN, INFINITE, -ONE, True]),
    (lambda v: gaussian.delta(ONE, v), "epsilon", [NAN, INFINITE, -ONE]),
    (lambda v: gaussian.least_epsilon(v, DELTA), "mu", [NAN, INFINITE, -ONE]),
    (lambda v: gaussian.least_epsilon(ONE, v), "delta", [Fraction(0), Fraction(1)]),
    (lambda v: gaussian.least_epsilon(ONE, DELTA, v), "slack", [Fraction(-1)]),
    (lambda v: gaussian.meets(ONE, Fraction(1), v), "delta", [Fraction(0), Fraction(2)]),
    (lambda v: gaussian.meets(v, Fraction(1), DELTA), "mu", [NAN, -ONE]),
    (lambda v: gaussian.meets(v, Fraction(1), DELTA, DELTA / 10**9), "mu", [NAN]),
    (lambda v: gaussian.meets(ONE, v, DELTA), "epsilon", [Fraction(-1)]),
    (lambda v: renyi.mironov_epsilon(v, ONE / 2, ONE * 2), "rho", [NAN, -ONE]),
    (lambda v: renyi.canonne_epsilon(ONE, v, ONE * 2), "delta", [NAN, Decimal(0), ONE]),
    (lambda v: renyi.canonne_epsilon(ONE, ONE / 2, v), "order", [NAN, ONE, Decimal(0), INFINITE]),
    (lambda v: renyi.optimal(Fraction(1), v), "delta", [Fraction(0), Fraction(1)]),
    (risk.membership_advantage, "mu", [NAN, -ONE]),
    (risk.auc, "mu", [NAN, -ONE, INFINITE]),
    (lambda v: risk.trade_off_gap(ONE, v), "alpha", [NAN, -ONE, 2 * ONE]),
    (lambda v: calibrate(v, "0.1", 1, "replace", 1), "epsilon", ["0"]),
    (lambda v: calibrate("1", v, 1, "replace", 1), "delta", ["0", "1"]),
    (lambda v: calibrate("1", "0.1", v, "replace", 1), "queries", [0, True, 1.0]),
    (lambda v: calibrate("1", "0.1", 1, "replace", 1, places=v), "places", [0, 13, True]),
    (lambda v: calibration.largest_mu(Fraction(1), v), "delta", [Fraction(0), Fraction(1)]),
]


@pytest.mark.parametrize(
    ("call", "field", "value"),
    [(call, field, value) for call, field, values in CALLS for value in values],
)
def test_bad_numbers_are_refused_by_name(
    call: Callable[[Any], object], field: str, value: Any
) -> None:
    with pytest.raises(MalformedError) as caught:
        call(value)
    assert caught.value.where == field


def test_ranges_include_what_they_say() -> None:
    count(3, "n", least=3, most=3)
    decimal(ONE, "x", above=0, least=1, most=1)
    for value in (2, 4):
        with pytest.raises(MalformedError, match="expected 3 to 3"):
            count(value, "n", least=3, most=3)
    with pytest.raises(MalformedError, match="above 1"):
        decimal(ONE, "x", above=1)


@pytest.mark.parametrize("epsilon", ["0.000001", "0.01", "10000"])
@pytest.mark.parametrize("queries", [1, 10**7])
def test_extreme_targets_are_calibrated_or_refused(epsilon: str, queries: int) -> None:
    try:
        sigma = calibrate(epsilon, "0.000001", queries, "replace", 1, places=2)
    except RefusedError:
        assert queries == 10**7 and epsilon == "0.000001"  # beyond 2^40 lattice units
        return
    assert Fraction(sigma) * 127 * 127 >= 16
