"""`ragaudit risk`, run in this process."""

import json
import shlex
from typing import Any

from ragaudit.encoding.errors import RagauditError
from ragaudit.lab.risk_command.command import app
from typer.testing import CliRunner, Result


def run(command: str, *arguments: str) -> Result:
    """Run a command line, as one types it, with more arguments as they are."""
    return CliRunner().invoke(app, [*shlex.split(command), *arguments])


def report(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == code, (result.output, result.exception)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*arguments: str) -> RagauditError:
    result = run(*arguments)
    assert isinstance(result.exception, RagauditError), (result.output, result.exception)
    assert not result.stdout
    return result.exception
