"""The command finds the groups of installed members and reports errors in one line."""

import ast
import re
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
from ragaudit.cli import main
from ragaudit.encoding.commands import ExitCode
from ragaudit.encoding.errors import RefusedError
from typer.testing import CliRunner

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def _own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs here is the tests' process, which others may watch."""
    monkeypatch.setattr(main, "keep_private", lambda: True)


def test_version() -> None:
    result = RUNNER.invoke(main.app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("ragaudit ")


def test_help_lists_own_and_members_commands() -> None:
    result = RUNNER.invoke(main.app, ["--help"])
    assert result.exit_code == 0
    for name in ("demo", "bench", "receipt", "verifier", "prover", "attack", "key"):
        assert re.search(rf"^\W*{name} +\w+", result.stdout, re.MULTILINE), name
    assert "not available" not in result.stdout


def test_every_group_says_what_it_is_for() -> None:
    for name, entry in main._commands().items():
        source = main._source(entry.module)
        assert source is not None
        first = source.partition("\n")[0].replace("``", "`")
        assert first.startswith(f'"""`ragaudit {name}`: '), (name, first)
        assert len(main._help(entry)) > 20


def test_help_imports_no_member() -> None:
    """A member's modules take seconds to import; the list of commands shows them all."""
    program = (
        "import sys\n"
        "sys.argv = ['ragaudit', '--help']\n"
        "from ragaudit.cli.main import app\n"
        "try:\n    app()\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "heavy = 'rich numpy scipy sqlalchemy fastapi pydantic httpx cryptography yaml'.split()\n"
        "ours = [n for n in sys.modules if n.startswith('ragaudit.')]\n"
        "print([n for n in heavy if n in sys.modules], sorted(ours), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    heavy, _, ours = done.stderr.strip().partition("] ")
    assert heavy == "["
    assert set(ast.literal_eval(ours)) == {
        "ragaudit.cli", "ragaudit.cli.commands", "ragaudit.cli.main", "ragaudit.encoding",
        "ragaudit.encoding.commands", "ragaudit.encoding.errors", "ragaudit.encoding.printable",
        "ragaudit.encoding.private_process",
        "ragaudit.encoding.problems",
    }  # fmt: skip


def test_unknown_command_is_refused() -> None:
    assert RUNNER.invoke(main.app, ["nothing"]).exit_code == 2


def test_a_missing_member_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = EntryPoint("absent", "ragaudit.absent.cli:app", main.GROUP)
    monkeypatch.setattr(main, "_commands", lambda: {"absent": absent})
    assert "not available" in RUNNER.invoke(main.app, ["--help"]).stdout
    monkeypatch.setattr("sys.argv", ["ragaudit", "absent", "serve", "--port", "1"])
    with pytest.raises(SystemExit) as stop:
        main.run()
    assert stop.value.code == ExitCode.BAD_INPUT
    assert "expected the distribution ragaudit-absent" in capsys.readouterr().err


def test_errors_become_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise RefusedError("no such window", where="w1", expected="w2")

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit) as stop:
        main.run()
    assert stop.value.code == ExitCode.REFUSED
    assert capsys.readouterr().err == "error: w1: no such window (expected w2)\n"


def test_an_interrupt_has_its_own_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit) as stop:
        main.run()
    assert stop.value.code == 130
