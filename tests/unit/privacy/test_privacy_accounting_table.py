"""The epsilon table as a value: one JSON form, and every number with its delta and relation."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.accounting import table as tables
from ragaudit.privacy.accounting import table_members
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, NeighboringRelation

VECTORS = Path(__file__).parents[2] / "vectors" / "epsilon.json"
TABLES: list[dict[str, Any]] = [case["table"] for case in json.loads(VECTORS.read_bytes())["cases"]]
Table = dict[str, Any]


def changed(change: Callable[[Table], object]) -> Table:
    table: Table = json.loads(json.dumps(TABLES[0]))
    change(table)
    return table


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["parameters"]["sigma"])
def test_reading_and_writing_lose_nothing(table: Table) -> None:
    found = EpsilonTable.from_json(table)
    assert canonical_json.dumps(found.to_json()) == canonical_json.dumps(table)
    assert found.finite is table["finite"]
    assert found.headline.epsilon == table["headline"]["epsilon"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["parameters"]["sigma"])
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
    section = chapter.read_text(encoding="utf-8").split("### 7.4.3 Texts")[1]
    own = {
        value for module in (tables, table_members) for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }  # fmt: skip
    assert set(re.findall(r'"([^"]+)"', section)) == own


def test_a_gamma_that_is_no_power_of_two_is_a_fraction() -> None:
    found = EpsilonTable.from_json(TABLES[0])
    other = replace(found, parameters=replace(found.parameters, gamma=Fraction(3, 10**12)))
    assert other.to_json()["parameters"]["gamma"] == "3/1000000000000"
    assert EpsilonTable.from_json(other.to_json()) == other


@pytest.mark.parametrize(
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
