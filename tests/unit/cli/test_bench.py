"""Measurements run at small sizes and say what they are compared with."""

import json

import pytest
from ragaudit.cli.bench.command import app
from ragaudit.cli.bench.measure import measure, peak_memory_mib, summarise
from ragaudit.encoding.errors import MalformedError
from typer.testing import CliRunner

SMALL = ["--rows", "40", "--dim", "8", "--top-k", "3", "--sigma", "0.5", "--runs", "2"]


@pytest.mark.parametrize("scenario", ["index", "prove", "verify", "reference"])
def test_scenarios_report_medians_sizes_and_a_baseline(scenario: str) -> None:
    result = CliRunner().invoke(app, [scenario, *SMALL, "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["scenario"] == scenario
    assert report["sizes"] == {"rows": 40, "dimension": 8, "top_k": 3, "sigma": "0.5"}
    assert report["peak_memory_mib"] > 0
    baseline, *others = report["measurements"]
    assert baseline["ratio"] is None
    assert others
    for each in others:
        assert each["baseline"] == baseline["name"]
        assert each["ratio"] == pytest.approx(each["median"] / baseline["median"])
        assert each["runs"] == 2
        assert each["lowest"] <= each["median"] <= each["highest"]
    assert any(each["size_bytes"] for each in others)


def test_the_table_names_the_baseline() -> None:
    result = CliRunner().invoke(app, ["verify", *SMALL])
    assert result.exit_code == 0
    assert "baseline" in result.stdout
    assert "peak memory" in result.stdout


def test_k_must_be_below_n() -> None:
    result = CliRunner().invoke(app, ["prove", "--rows", "3", "--top-k", "3"])
    assert isinstance(result.exception, MalformedError)
    assert "below N" in str(result.exception)


def test_measure_warms_up_once_and_counts_runs() -> None:
    calls: list[int] = []
    found = measure("count", lambda: calls.append(1), 5)
    assert len(calls) == 6
    assert found.runs == 5
    assert found.ratio is None


def test_a_median_is_a_median() -> None:
    found = summarise("three", [3.0, 1.0, 2.0])
    assert (found.median, found.lowest, found.highest) == (2.0, 1.0, 3.0)
    beside = found.beside(summarise("one", [0.5]), 7)
    assert (beside.baseline, beside.ratio, beside.size_bytes) == ("one", 4.0, 7)


def test_peak_memory_is_of_this_process() -> None:
    assert 10 < peak_memory_mib() < 100_000
