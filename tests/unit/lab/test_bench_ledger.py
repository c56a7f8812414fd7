"""`ragaudit bench ledger` on both databases; no time is asserted."""

import json
from collections.abc import Callable

import pytest
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.command import app
from ragaudit.ledger.log.database import open_engine, write_transaction
from sqlalchemy import inspect, text
from typer.testing import CliRunner


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
