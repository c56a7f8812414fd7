"""`ragaudit bench coalition`, small: every window is estimated; no time is asserted."""

import json
from typing import Any

import numpy as np
import pytest
from ragaudit import core
from ragaudit.encoding.errors import InternalError
from ragaudit.lab.bench.coalition import CoalitionSizes, coalition
from ragaudit.lab.bench.command import app
from ragaudit.lab.bench.harness import silent
from typer.testing import CliRunner


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
