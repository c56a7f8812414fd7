"""The table of epsilon, and the arguments that are refused.

Claims are those of docs/notes/accounting.md.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError, RefusedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.text import ceil_decimal, floor_decimal, parse_decimal
from ragaudit.privacy import sample
from ragaudit.privacy.accounting import collusion, gaussian, renyi, risk
from ragaudit.privacy.accounting import table as tables
from ragaudit.privacy.accounting.accountants import (
    GaussianAccountant,
    calibrate_coalition,
    largest_queries,
    remaining_queries,
)
from ragaudit.privacy.accounting.events import GAMMA, Composition, NoisyScores, RealisedCoalition
from ragaudit.privacy.accounting.gaussian import calibrate, epsilon, gives
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.privacy.coalition import Record, estimate, hamming_threshold
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp
from ragaudit.privacy.numbers import count, decimal

# --- the table ---
ARGUMENTS: dict[str, Any] = {
    "sigma": "50", "relation": "replace", "group_size": 1, "queries_per_account": 100,
    "coalition": 5, "delta_policy": "0.00001", "gamma": GAMMA, "total_records": 900,
    "realised_counts": [100, 3, 90, 5, 0, 1, 1], "epsilon_acc": "2", "delta_acc": "0.000001",
}  # fmt: skip


def test_report_values() -> None:
    report: Any = epsilon_report(**ARGUMENTS).to_json()
    assert canonical_json.loads(canonical_json.dumps(report)) == report
    event = NoisyScores.of_policy("50", "replace", 1, 500)
    assert report["finite"] is True
    assert report["headline"]["queries"] == 500
    exact = epsilon(event, Fraction(1, 10**5))
    assert report["headline"]["epsilon"] == ceil_decimal(Fraction(exact), 6) == "3.848611"
    assert report["all_records"]["queries"] == 900
    assert report["realised"]["queries"] == 199
    assert "not a guarantee" in report["realised"]["label"]
    assert report["per_account"]["satisfied"] is True
    assert report["loss_distribution"]["agrees"] is True
    assert report["closed_form"]["in_class"] is False
    assert report["parameters"]["gamma"] == "2^-100"
    for key in ("membership_advantage", "auc"):
        assert 0 < Fraction(report["risk"][key]) < 1
    assert report["risk"]["membership_advantage"] == ceil_decimal(
        Fraction(risk.membership_advantage(event.mu())), 6
    )


def test_report_without_a_finite_bound_says_so() -> None:
    report: Any = epsilon_report(**(ARGUMENTS | {"sigma": "1"})).to_json()
    assert report["finite"] is False
    assert report["headline"]["epsilon"] is None
    assert "no finite bound" in report["headline"]["reason"]
    assert report["renyi"]["epsilon"] is None
    assert report["per_account"]["satisfied"] is False
    canonical_json.dumps(report)


def test_report_closed_form_needs_a_larger_delta() -> None:
    """1e-5 > 10·1e-6 is true in binary floating point and false here."""
    assert 1e-5 > 10 * 1e-6
    report: Any = epsilon_report(**(ARGUMENTS | {"coalition": 10})).to_json()
    assert report["closed_form"]["total"] is None
    assert "does not exceed" in report["closed_form"]["reason"]
    assert epsilon_report(**(ARGUMENTS | {"coalition": 9})).closed_form.total


def test_claim_7_report_closed_form_inside_the_class() -> None:
    report: Any = epsilon_report(**(ARGUMENTS | {"sigma": "400"})).to_json()
    assert report["closed_form"]["in_class"] is True
    assert Fraction(report["closed_form"]["total"]) > Fraction(report["headline"]["epsilon"])


def test_report_risk_never_exceeds_its_ceiling() -> None:
    report: Any = epsilon_report(**(ARGUMENTS | {"sigma": "0.001", "coalition": 1000})).to_json()
    assert report["risk"]["membership_advantage"] == "1.000000"
    ceilings = {2: "0.500000", 10: "0.900000", 100: "0.990000"}
    for row in report["risk"]["uniform_priors"]:
        assert row["attribute"] == row["reconstruction"] == ceilings[row["candidates"]]


def test_report_has_no_floats_and_rounds_up() -> None:
    def leaves(value: object) -> list[object]:
        if isinstance(value, dict):
            return [leaf for item in value.values() for leaf in leaves(item)]
        if isinstance(value, list):
            return [leaf for item in value for leaf in leaves(item)]
        return [value]

    report: Any = epsilon_report(
        **(ARGUMENTS | {"sigma": "4.25", "relation": "null-replace"})
    ).to_json()
    assert not any(isinstance(leaf, float) for leaf in leaves(report))
    event = NoisyScores.of_policy("4.25", "null-replace", 1, 500)
    assert report["parameters"]["sigma_units"] == "68548.25"
    assert Fraction(report["headline"]["mu"]) >= Fraction(event.mu())
    assert Fraction(report["renyi"]["rho"]) >= event.rho()


# --- decimals of the encoding member, used throughout ---


@given(st.fractions(), st.integers(0, 12))
def test_directed_decimals(value: Fraction, places: int) -> None:
    low, high = Fraction(floor_decimal(value, places)), Fraction(ceil_decimal(value, places))
    assert low <= value <= high
    assert high - low <= Fraction(1, 10**places)
    assert (low == high) == ((value * 10**places).denominator == 1)


@for_each(
    "text",
    ["", ".", "1.", ".1", "+1", "-0", "00", "1e5", "1 ", "٣", "1234567890", "0.1234567890123"],
)
def test_decimals_are_strict(text: str) -> None:
    with pytest.raises(MalformedError):
        parse_decimal(text)


def test_decimals_are_exact() -> None:
    assert parse_decimal("0.1") * 3 == parse_decimal("0.3")
    assert parse_decimal("999999999.999999999999") == Fraction(10**21 - 1, 10**12)


VECTORS = Path(__file__).parents[2] / "vectors" / "epsilon.json"
TABLES: list[dict[str, Any]] = [case["table"] for case in json.loads(VECTORS.read_bytes())["cases"]]
Table = dict[str, Any]


def changed(change: Callable[[Table], object]) -> Table:
    table: Table = json.loads(json.dumps(TABLES[0]))
    change(table)
    return table


@for_each("table", TABLES)
def test_reading_and_writing_lose_nothing(table: Table) -> None:
    found = EpsilonTable.from_json(table)
    assert canonical_json.dumps(found.to_json()) == canonical_json.dumps(table)
    assert found.finite is table["finite"]
    assert found.headline.epsilon == table["headline"]["epsilon"]


@for_each("table", TABLES)
def test_every_way_of_counting_is_listed_as_it_is_stated(table: Table) -> None:
    ways = {way.name: way for way in EpsilonTable.from_json(table).ways}
    rows = {name: row for name, row in table.items() if isinstance(row, dict)}
    stated = {name for name, row in rows.items() if {"epsilon", "total"} & set(row)}
    assert set(ways) == stated
    for name, way in ways.items():
        row = table[name]
        assert way.epsilon == row["total" if name == "closed_form" else "epsilon"]
        assert way.queries == row.get("queries")
        assert (way.label, way.reason) == (row.get("label", ""), row.get("reason", ""))


def test_guarantees_have_their_delta_and_relation() -> None:
    table = TABLES[1]
    found, terms = EpsilonTable.from_json(table), table["parameters"]
    relation = NeighboringRelation(terms["relation"])
    delta_acc = table["per_account"]["delta_acc"]
    for guarantee, row, delta in (
        (found.headline.guarantee, table["headline"], terms["delta_policy"]),
        (found.renyi.guarantee, table["renyi"], terms["delta_policy"]),
        (found.all_records.guarantee, table["all_records"], terms["delta_policy"]),
        (found.per_account.headline.guarantee, table["per_account"], delta_acc),
    ):
        assert guarantee == ApproximateDp.of(row["epsilon"], delta, relation)
    promise = ApproximateDp.of(table["per_account"]["epsilon_acc"], delta_acc, relation)
    assert found.per_account.promised == promise
    assert found.headline.ideal == GaussianDp.of(table["headline"]["mu"], relation)
    assert found.risk.membership.relation is relation
    queries = table["headline"]["queries"]
    assert found.slack == queries * terms["group_size"] * Fraction(1, 2**100)


def test_the_texts_of_the_table_are_those_of_the_specification() -> None:
    chapter = VECTORS.parents[2] / "docs/spec/07-coalition.md"
    section = chapter.read_text(encoding="utf-8").split("### 7.4.3 Texts")[1].split("\n## ")[0]
    own = {
        value for name, value in vars(tables).items() if name.isupper() and isinstance(value, str)
    }
    assert set(re.findall(r'"([^"]+)"', section)) == own


def test_a_gamma_that_is_no_power_of_two_is_a_fraction() -> None:
    found = EpsilonTable.from_json(TABLES[0])
    other = replace(found, parameters=replace(found.parameters, gamma=Fraction(3, 10**12)))
    assert other.to_json()["parameters"]["gamma"] == "3/1000000000000"
    assert EpsilonTable.from_json(other.to_json()) == other


@for_each(
    "value",
    [
        None,
        [],
        {},
        changed(lambda t: t.pop("realised")),
        changed(lambda t: t.update(moons=3)),
        changed(lambda t: t.update(finite=1)),
        changed(lambda t: t.update(finite=False)),
        changed(lambda t: t.update(headline=None)),
        changed(lambda t: t["headline"].update(epsilon="1")),
        changed(lambda t: t["headline"].update(epsilon="1.0000000")),
        changed(lambda t: t["headline"].update(epsilon="-1.000000")),
        changed(lambda t: t["headline"].update(epsilon=1)),
        changed(lambda t: t["headline"].update(epsilon=None)),
        changed(lambda t: t["headline"].update(queries=True)),
        changed(lambda t: t["headline"].update(queries="7")),
        changed(lambda t: t["headline"].update(mu="NaN")),
        changed(lambda t: t["headline"].update(reason="none")),
        changed(lambda t: t["renyi"].update(label="a guarantee")),
        changed(lambda t: t["realised"].update(label="a guarantee")),
        changed(lambda t: t["loss_distribution"].update(agrees="yes")),
        changed(lambda t: t["closed_form"].update(in_class=0)),
        changed(lambda t: t["per_account"].update(delta_acc="1e-6")),
        changed(lambda t: t["per_account"].update(satisfied=None)),
        changed(lambda t: t["parameters"].update(sigma="four")),
        changed(lambda t: t["parameters"].update(delta_policy="2")),
        changed(lambda t: t["parameters"].update(relation="add-remove")),
        changed(lambda t: t["parameters"].update(gamma="2^-99999999999")),
        changed(lambda t: t["parameters"].update(gamma="1/0")),
        changed(lambda t: t["risk"].update(membership_advantage="2.000000")),
        changed(lambda t: t["risk"].update(uniform_priors="none")),
        changed(lambda t: t["risk"]["uniform_priors"][0].update(candidates=1)),
    ],
)  # fmt: skip
def test_anything_else_is_no_table(value: object) -> None:
    with pytest.raises(MalformedError):
        EpsilonTable.from_json(value)


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
