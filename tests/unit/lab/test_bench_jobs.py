"""`ragaudit bench jobs`, small: both do the same work; no time is asserted."""

import json
from collections.abc import Callable

import pytest
from ragaudit.lab.bench.command import app
from typer.testing import CliRunner

pytestmark = pytest.mark.slow


def test_workers_do_the_work_of_one_process(make_database: Callable[..., str]) -> None:
    sizes = ["--rows", "300", "--dim", "16", "--records", "70", "--workers", "2", "--runs", "1"]
    options = ["jobs", "--database", make_database("postgresql"), *sizes, "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sizes"] == {"rows": 300, "dimension": 16, "records": 70, "workers": 2}
    one, several = found["measurements"]
    assert (one["name"], several["name"]) == ("one process", "2 workers over a queue")
    assert several["baseline"] == one["name"] and several["ratio"] > 0


def test_a_file_has_no_queue(make_database: Callable[..., str]) -> None:
    options = ["jobs", "--database", make_database("sqlite"), "--rows", "20", "--records", "1"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code != 0 and "PostgreSQL" in str(result.exception)
