"""`ragaudit bench log`, small: every step is run and named; no time is asserted."""

import json

from ragaudit.lab.bench.command import app
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
