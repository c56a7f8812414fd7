"""Arguments out of range or of another type are refused by the field's name.

Claims are those of docs/notes/accounting.md.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError, RefusedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy import sample
from ragaudit.privacy.accounting import collusion, gaussian, renyi, risk
from ragaudit.privacy.accounting.accountants import (
    GaussianAccountant,
    calibrate_coalition,
    largest_queries,
    remaining_queries,
)
from ragaudit.privacy.accounting.events import Composition, NoisyScores, RealisedCoalition
from ragaudit.privacy.accounting.gaussian import calibrate, gives
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.privacy.coalition import Record, estimate, hamming_threshold
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp
from ragaudit.privacy.numbers import count, decimal

REPLACE = NeighboringRelation.REPLACE
EVENT = NoisyScores(Fraction(20000), REPLACE, 1, 3)
BUDGET, HALF = ApproximateDp.of(1, 0.1, REPLACE), Fraction(1, 2)
REPORT: dict[str, Any] = {
    "sigma": "9", "relation": "replace", "group_size": 1, "queries_per_account": 20,
    "coalition": 5, "delta_policy": "0.00001", "gamma": Fraction(1, 2**100), "total_records": 100,
    "realised_counts": [1], "epsilon_acc": "8", "delta_acc": "0.000001",
}  # fmt: skip


def scores(**changed: object) -> NoisyScores:
    members: dict[str, Any] = {
        "sigma_units": Fraction(20), "relation": REPLACE, "group_size": 1, "queries": 5,
    }  # fmt: skip
    return NoisyScores(**{**members, **changed})


def report(**changed: object) -> dict[str, Any]:
    return epsilon_report(**{**REPORT, **changed}).to_json()


def record(**changed: Any) -> Record:
    return Record(**{"account": b"a", "time": 1, "sketch": bytes(8), **changed})


def composed(delta_q: Any) -> object:
    return collusion.advanced_composition(
        Decimal("0.5"), delta_q, 5, Fraction(1, 10), NeighboringRelation.REPLACE
    )


def coalition(relation: str) -> object:
    return calibrate_coalition("8", "0.1", accounts=2, rate=2, relation=relation, group_size=1)


CASES: list[tuple[str, Callable[[], object]]] = [
    ("sigma_units", lambda: scores(sigma_units=2.0)),
    ("sigma_units", lambda: scores(sigma_units="x20")),
    ("sigma_units", lambda: scores(sigma_units=None)),
    ("sigma_units", lambda: scores(sigma_units=Fraction(15))),
    ("relation", lambda: scores(relation="replace-me")),
    ("group_size", lambda: scores(group_size=True)),
    ("group_size", lambda: scores(group_size=Fraction(2))),
    ("queries", lambda: scores(queries=2.5)),
    ("queries", lambda: scores(queries=True)),
    ("queries", lambda: scores(queries="5")),
    ("gamma", lambda: scores(gamma=-0.1)),
    ("sigma", lambda: NoisyScores.of_policy("x", "replace", 1, 1)),
    ("sigma", lambda: NoisyScores.of_policy("0", "replace", 1, 1)),
    ("relation", lambda: NoisyScores.of_policy("9", "add-remove", 1, 1)),
    ("epsilon", lambda: calibrate([8], "0.1", 1, "replace", 1)),  # type: ignore[arg-type]
    ("epsilon", lambda: calibrate("nan", "0.1", 1, "replace", 1)),
    ("delta", lambda: calibrate("8", "1e6", 1, "replace", 1)),
    ("relation", lambda: calibrate("8", "0.1", 1, "foo", 1)),
    ("relation", lambda: coalition(relation="foo")),
    ("sigma", lambda: report(sigma="nan")),
    ("group_size", lambda: report(group_size=0)),
    ("delta_policy", lambda: report(delta_policy="0")),
    ("delta_policy", lambda: report(delta_policy="1")),
    ("delta_policy", lambda: report(delta_policy="1e-13")),
    ("epsilon_acc", lambda: report(epsilon_acc="0")),
    ("delta_acc", lambda: report(delta_acc="0")),
    ("delta_acc", lambda: report(delta_acc="0.0")),
    ("queries_per_account", lambda: report(queries_per_account=0)),
    ("coalition", lambda: report(coalition=0)),
    ("coalition", lambda: report(coalition=1.5)),
    ("total_records", lambda: report(total_records=-1)),
    ("realised_counts", lambda: report(realised_counts=[1, -1])),
    ("realised_counts", lambda: report(realised_counts=[3, True])),
    ("relation", lambda: report(relation="foo")),
    ("relation", lambda: report(relation="add_remove")),
    ("population", lambda: sample.sample_size(True, Fraction(1, 10), Fraction(1, 10))),
    ("beta", lambda: sample.sample_size(10, None, Fraction(1, 10))),  # type: ignore[arg-type]
    ("eta", lambda: sample.sample_size(10, Fraction(1, 10), Fraction(1))),
    ("population", lambda: sample.bad_records(-1, Fraction(1, 10))),
    ("bad", lambda: sample.miss_probability(3, 4, 1)),
    ("sample", lambda: sample.miss_probability(3, 1, 4)),
    ("beta", lambda: sample.sample_size_unbounded(Fraction(0), Fraction(1, 2))),
    ("sample", lambda: sample.detection(Fraction(1, 2), -1)),
    ("records", lambda: risk.PriorSummary.uniform(1)),
    ("collision_probability", lambda: risk.PriorSummary(Fraction(-1), HALF, HALF)),
    ("least_ball", lambda: risk.PriorSummary(HALF, HALF, Fraction(1, 3))),
    ("largest_ball", lambda: risk.PriorSummary(HALF, Fraction(0), 1.5)),  # type: ignore[arg-type]
    ("theta", lambda: hamming_threshold("2", 128)),
    ("theta", lambda: hamming_threshold("x", 128)),
    ("bits", lambda: hamming_threshold("0.9", 65)),
    ("tau", lambda: estimate([], tau=-1, threshold=1)),
    ("threshold", lambda: estimate([], tau=1, threshold=-1)),
    ("time", lambda: estimate([record(time=0.5)], tau=1, threshold=1)),
    ("time", lambda: estimate([record(time=2**62)], tau=1, threshold=1)),
    ("sketch", lambda: estimate([record(), record(sketch=bytes(9))], tau=1, threshold=1)),
    ("epsilon", lambda: gives(EVENT, -1.0, Fraction(1, 10))),
    ("event", lambda: gives("x", Fraction(1), Fraction(1, 10))),  # type: ignore[arg-type]
    ("event", lambda: gaussian.epsilon("x", Fraction(1, 10))),  # type: ignore[arg-type]
    ("mechanism", lambda: largest_queries("x", Fraction(1), Fraction(1, 10))),  # type: ignore[arg-type]
    ("mechanism", lambda: remaining_queries(EVENT, "x", BUDGET)),  # type: ignore[arg-type]
    ("budget", lambda: remaining_queries(EVENT, EVENT, (8, 1e-6))),  # type: ignore[arg-type]
    ("budget", lambda: GaussianAccountant().within(EVENT, 8)),  # type: ignore[arg-type]
    ("counts", lambda: RealisedCoalition(EVENT, 3, 2)),  # type: ignore[arg-type]
    ("parts", lambda: Composition(EVENT)),  # type: ignore[arg-type]
    ("parts", lambda: ApproximateDp.compose([3])),  # type: ignore[list-item]
    ("parts", lambda: ApproximateDp.compose([GaussianDp.of(1, REPLACE)])),  # type: ignore[list-item]
    ("relation", lambda: GaussianDp.of(1, REPLACE).under("foo")),  # type: ignore[arg-type]
    ("guarantee", lambda: collusion.membership_lower_bound(3)),  # type: ignore[arg-type]
    ("delta_q", lambda: composed(1.1)),
    ("delta_q", lambda: composed(Fraction(-1))),
]


@for_each(("field", "call"), CASES)
def test_refusals_name_the_field(field: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert caught.value.where == field
    assert field in str(caught.value)


def test_an_integer_is_an_exact_number() -> None:
    assert scores(sigma_units=20) == scores(sigma_units=Fraction(20))


def test_claim_20_the_papers_form_has_no_value_outside_its_range() -> None:
    """eps_q of (3.1) is 1.52 for one query at (8, 1e-6): its class is empty."""
    closed = report(queries_per_account=1)["closed_form"]
    assert isinstance(closed, dict)
    assert closed["in_class"] is False
    assert {closed[name] for name in ("least_sigma_units", "leading", "residual", "total")} == {
        None
    }
    assert "eps_q" in closed["reason"]
    inside = report()["closed_form"]
    assert isinstance(inside, dict) and inside["total"] is not None


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
    (lambda v: gaussian.largest_mu(Fraction(1), v), "delta", [Fraction(0), Fraction(1)]),
]


@for_each(
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
