"""`ragaudit bench log`, `ledger`, `jobs` and `coalition`, small: no time is asserted."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ragaudit import core
from ragaudit.encoding.errors import InternalError, MalformedError
from ragaudit.lab.bench.coalition import CoalitionSizes, coalition
from ragaudit.lab.bench.command import app
from ragaudit.lab.bench.harness import silent
from ragaudit.ledger.log.database import open_engine, write_transaction
from sqlalchemy import inspect, text
from typer.testing import CliRunner


def test_a_small_log_passes_every_check_that_is_measured() -> None:
    options = ["log", "--records", "40", "--accounts", "3", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sizes"] == {"records": 40, "accounts": 3}
    named = [each["name"] for each in found["measurements"]]
    checks = {name.removeprefix("check ") for name in named if name.startswith("check ")}
    assert checks >= {"log", "registrations", "counters", "schedule", "accounts"}
    assert {"download, rehash"} <= set(named)
    assert all(each["runs"] >= 1 for each in found["measurements"])


def test_appends_are_compared_with_the_bare_database_which_is_left_empty(
    engine_name: str, make_database: Callable[..., str]
) -> None:
    url = make_database(engine_name, lambda _: None)
    options = ["--database", url, "--entries", "600", "--batch", "100", "--runs", "2"]
    result = CliRunner().invoke(app, ["ledger", *options, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sizes"] == {"entries": 600, "batch": 100}
    named = {each["name"]: each for each in found["measurements"]}
    bare = named["insert and commit, bare"]
    for name in ("append, durable", "append, durable, checkpointed"):
        assert named[name]["baseline"] == bare["name"] and named[name]["runs"] == 2
        assert named[name]["ratio"] == pytest.approx(named[name]["median"] / bare["median"])
        assert named[name]["details"]["a second"] == pytest.approx(100 / named[name]["median"])
    for name in ("connect, inclusion proof", "inclusion proof"):
        assert named[name]["details"]["entries"] == 600
        assert named[name]["baseline"] == "connect, read a row"
    engine = open_engine(url)
    assert inspect(engine).get_table_names() == []
    with write_transaction(engine) as connection:
        connection.execute(text("CREATE TABLE somebodys (id INTEGER)"))
    refused = CliRunner().invoke(app, ["ledger", "--database", url])
    assert isinstance(refused.exception, MalformedError)
    assert inspect(engine).get_table_names() == ["somebodys"]
    engine.dispose()


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_file_has_no_queue(make_database: Callable[..., str]) -> None:
    options = ["jobs", "--database", make_database("sqlite"), "--rows", "20", "--records", "1"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code != 0 and "PostgreSQL" in str(result.exception)


def test_each_window_is_estimated_beside_every_pair() -> None:
    options = ["coalition", "--records", "300", "--accounts", "60", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sizes"] == {"records": 300, "accounts": 60, "bits": 256}
    named = {each["name"]: each for each in found["measurements"]}
    assert len(named) == 4 * 3
    for name, each in named.items():
        window = name.partition(":")[0]
        slow = f"{window}: every pair of 300"
        assert each["baseline"] == (None if name == slow else slow)
        assert name == slow or each["ratio"] > 0
    sizes = {
        name.removesuffix(": estimate"): each["details"]["k-hat"]
        for name, each in named.items()
        if name.endswith(": estimate")
    }
    instants = {name: size for name, size in sizes.items() if name != "a day"}
    assert instants == {
        "an instant, none alike": 1,
        "an instant, two by two": 2,
        "an instant, all alike": 60,
    }
    assert named["an instant, none alike: estimate"]["details"]["pairs"] == 300 * 299 / 2


def test_other_components_than_every_pair_gives_end_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def alone(accounts: Any, *_: Any, **__: Any) -> Any:
        return np.arange(accounts.max() + 1)

    monkeypatch.setattr(core, "link_accounts", alone)
    with pytest.raises(InternalError, match="two by two: other components"):
        coalition(CoalitionSizes(40, 40, 64), silent)


def test_sketches_are_of_whole_words() -> None:
    result = CliRunner().invoke(app, ["coalition", "--bits", "72"])
    assert result.exit_code != 0 and "multiple of 64" in str(result.exception)
