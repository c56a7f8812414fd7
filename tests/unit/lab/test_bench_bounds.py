"""`ragaudit bench bounds`: every kind of bound, each beside its baseline; no time is asserted."""

import json

import pytest
from ragaudit.lab.bench.command import app
from typer.testing import CliRunner

BASELINES = {
    "enumerate randomized response": 6,
    "round to 10,000 cells, enumerate": 6,
    "nested Monte Carlo, 1,000 x 1,000": 6,
}


def test_every_bound_stands_beside_its_baseline() -> None:
    result = CliRunner().invoke(app, ["bounds", "--domain", "12", "--runs", "1", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["scenario"] == "bounds"
    assert found["sizes"] == {"domain": 12}
    measured = {each["name"]: each for each in found["measurements"]}
    assert {name for name, each in measured.items() if each["baseline"] is None} == set(BASELINES)
    for baseline, count in BASELINES.items():
        beside = [each for each in measured.values() if each["baseline"] == baseline]
        assert len(beside) == count
        for each in beside:
            assert each["ratio"] == pytest.approx(each["median"] / measured[baseline]["median"])


def test_the_table_names_the_domain() -> None:
    result = CliRunner().invoke(app, ["bounds", "--domain", "9", "--runs", "1"])
    assert result.exit_code == 0, result.output
    assert "bounds: m = 9" in result.stdout
    assert CliRunner().invoke(app, ["bounds", "--domain", "2"]).exit_code == 2
