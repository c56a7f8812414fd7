"""`ragaudit attack run`: a name that is none."""

import json

from ragaudit.lab.attacks.cli import app
from typer.testing import CliRunner


def test_an_unknown_cheat_is_a_problem_in_json() -> None:
    result = CliRunner().invoke(app, ["run", "nonsense", "--json"])
    assert result.exit_code == 2
    assert "no cheat 'nonsense'" in json.loads(result.stdout)["detail"]
