"""The command finds the groups of installed members and reports errors in one line."""

from importlib.metadata import EntryPoint

import pytest
from ragaudit.cli import main
from ragaudit.encoding.commands import ExitCode
from ragaudit.encoding.errors import RefusedError
from typer.testing import CliRunner

RUNNER = CliRunner()


def test_version() -> None:
    result = RUNNER.invoke(main.app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("ragaudit ")


def test_help_lists_own_and_members_commands() -> None:
    result = RUNNER.invoke(main.app, ["--help"])
    assert result.exit_code == 0
    for name in ("demo", "bench", "receipt"):
        assert name in result.stdout


def test_unknown_command_is_refused() -> None:
    assert RUNNER.invoke(main.app, ["nothing"]).exit_code == 2


def test_a_missing_member_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = EntryPoint("absent", "ragaudit.absent.cli:app", main.GROUP)
    monkeypatch.setattr(main, "entry_points", lambda **_: [absent])
    assert "not available" in RUNNER.invoke(main.app, ["--help"]).stdout
    monkeypatch.setattr("sys.argv", ["ragaudit", "absent", "serve", "--port", "1"])
    with pytest.raises(SystemExit) as stop:
        main.run()
    assert stop.value.code == ExitCode.BAD_INPUT
    assert "ragaudit.absent" in capsys.readouterr().err


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
