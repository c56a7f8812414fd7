"""What holds of every command: help, options, exit codes, and what reaches the terminal."""

import ast
import io
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from ragaudit.cli import main
from ragaudit.cli.commands import Command, Group, adopted, flowing
from ragaudit.encoding.commands import ExitCode, report_error
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import RejectedError, UnavailableError
from ragaudit.encoding.printable import one_line, printable
from rich.panel import Panel
from rich.table import Table
from typer.testing import CliRunner, Result

ROOT = Path(__file__).resolve().parents[3]
MEMBERS = ("encoding", "circuits", "ledger", "privacy", "embedders", "serving", "prover",
           "verifier", "client", "cli", "lab")  # fmt: skip
RUNNER = CliRunner()
# A screen cleared, a line that looks like ours, colours, a text turned round, a title set: in C0,
# C1, UTF-8 and format characters.
HOSTILE = "x\x1b[2J\x1b[32mPASS\x9b1m\r\x08\x7f\u202eSSAP\u200b\u2028\x1b]0;t\x07\U000e0041\ud800"


@cache
def tree() -> dict[tuple[str, ...], Any]:
    """Every command and group by its path."""
    found: dict[tuple[str, ...], Any] = {}

    def walk(command: Any, path: tuple[str, ...]) -> None:
        found[path] = command
        for name, below in getattr(command, "commands", {}).items():
            walk(below, (*path, name))

    for name, entry in main._commands().items():
        walk(main._load(entry), (name,))
    return found


def leaves() -> Iterator[tuple[tuple[str, ...], Any]]:
    return ((path, each) for path, each in tree().items() if not getattr(each, "commands", None))


def run(*arguments: str, width: int = 80) -> Result:
    columns = {"COLUMNS": str(width)}
    return RUNNER.invoke(main.app, list(arguments), env=columns, prog_name="ragaudit")


def test_every_command_is_walked_and_has_the_common_classes() -> None:
    assert len(list(leaves())) > 80
    for path, command in tree().items():
        assert isinstance(command, Command | Group), path


def test_help_flows_and_its_examples_can_be_copied_at_any_width() -> None:
    for path, command in tree().items():
        shown = run(*path, "-h", width=60)
        assert shown.exit_code == 0, path
        assert shown.stdout == run(*path, "--help", width=60).stdout, path
        assert "<bool>" not in shown.stdout, path
        assert "completion" not in shown.stdout, path
        lines = [line.strip() for line in shown.stdout.splitlines()]
        whole = "".join("".join(lines).split())
        for paragraph in (*flowing(command.help or ""), *flowing(command.epilog or "")):
            if paragraph.startswith(" "):
                assert paragraph.strip() in lines, (path, paragraph)
            else:
                assert "\n" not in paragraph, path
                assert "".join(paragraph.split()) in whole, (path, paragraph)
                assert "ragaudit " not in paragraph[:12], (path, paragraph)


def test_the_lists_of_commands_are_whole() -> None:
    for path in ((), *(path for path, each in tree().items() if getattr(each, "commands", {}))):
        shown = " ".join(run(*path, "--help", width=60).stdout.split())
        assert "..." not in shown.partition("Commands:")[2].partition("Example")[0], path


def test_a_group_that_is_called_alone_shows_its_help() -> None:
    for path, each in tree().items():
        if getattr(each, "commands", {}) and each.no_args_is_help:
            alone = run(*path)
            assert alone.exit_code == ExitCode.BAD_INPUT, path
            assert alone.stderr == run(*path, "--help").stdout, path


def test_examples_name_commands_and_options_that_exist() -> None:
    for path, command in tree().items():
        for text in (command.help, command.epilog):
            for line in flowing(text or ""):
                if not line.startswith(" "):
                    continue
                words = line.split("ragaudit ", 1)[1].split()
                names = [word for word in words if re.fullmatch(r"[a-z-]+", word)]
                place = tuple(names[: len(path)])
                assert place == path or (path == ("plan", "window") and words[0] == "plan"), line
                known = {
                    name for each in command.params for name in each.opts + each.secondary_opts
                }
                known |= {"--wait"} if getattr(command, "commands", {}) else set()
                given = {word for word in words if re.match(r"--?[a-z]", word)}
                if not getattr(command, "commands", {}):
                    assert given <= known, (path, given - known)


def test_every_key_and_digest_says_what_it_is_and_its_errors_name_it() -> None:
    hexadecimal = re.compile(r"\bhex|\bkey\b|pseudonym|digest|\banchor\b", re.IGNORECASE)
    # Not of 64 digits: C2SP's keys with names, names, seeds of coins, and the provider's API keys.
    others = {"vkey", "log_key", "name", "reason", "seed", "api_key"}
    met = 0
    for path, command in leaves():
        for parameter in command.params:
            plain = parameter.type_descriptor.annotation is str
            if plain and hexadecimal.search(f"{parameter.help} {' '.join(parameter.opts)}"):
                assert parameter.name in others, (path, parameter.name)
            if parameter.metavar != "HEX":
                continue
            option = parameter.param_type_name == "option"
            name = max(parameter.opts, key=len) if option else parameter.name.upper()
            before = [] if option else _before(command, parameter)
            for value in ("zz", "00", "0" * 63, "g" * 64, "é" * 64, ""):
                given = [f"{name}={value}"] if option else [*before, value]
                shown = run(*path, *given)
                assert shown.exit_code == ExitCode.BAD_INPUT, (path, name, value, shown.output)
                said = rf"error: .*{name}: .*\(expected 64 hexadecimal digits, 32 bytes\)"
                assert re.match(said, shown.stderr), (path, value, shown.stderr)
                assert len(value) < 9 or value not in shown.stderr
                met += 1
    assert met >= 6 * 15


def _before(command: Any, parameter: Any) -> list[str]:
    """Values of the arguments that stand before one."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    return ["x"] * arguments.index(parameter)


def test_every_command_refuses_an_option_that_it_does_not_have() -> None:
    for path, _ in leaves():
        shown = run(*path, "--nosuch")
        assert shown.exit_code == ExitCode.BAD_INPUT, path
        assert shown.stderr.startswith("error: No such option: --nosuch"), path
        assert f"see ragaudit {' '.join(path)} --help" in shown.stderr or path == ("plan",)


def test_everything_that_is_missing_is_said_at_once() -> None:
    for path, command in leaves():
        needed = [each for each in command.params if each.required]
        if not needed:
            continue
        shown = run(*path)
        assert shown.exit_code == ExitCode.BAD_INPUT, path
        for parameter in needed:
            option = parameter.param_type_name == "option"
            name = max(parameter.opts, key=len) if option else parameter.name.upper()
            assert name in shown.stderr.partition("missing: ")[2], (path, name, shown.stderr)


def test_a_value_that_is_wrong_is_said_beside_what_is_missing() -> None:
    shown = run("plan", "--epsilon", "-1", "--queries", "many")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "--epsilon: '-1' is out of range" in shown.stderr
    assert "--queries: not usable (expected a valid integer)" in shown.stderr
    assert "missing: --delta, --coalition, --delta-policy" in shown.stderr


def test_faults_of_the_command_line_are_json_where_json_is_asked_for() -> None:
    for arguments in (("plan", "--json"), ("receipt", "check", "--json"), ("up", "--json", "--x")):
        shown = run(*arguments)
        assert shown.exit_code == ExitCode.BAD_INPUT
        assert re.fullmatch(r'\{"problem": "malformed", "detail": ".+"\}\n', shown.stdout)


def test_help_names_no_exit_code_that_the_table_lacks() -> None:
    for path, command in tree().items():
        for paragraph in (*flowing(command.help or ""), *flowing(command.epilog or "")):
            if re.match(r"Exit (status|code)", paragraph):
                codes = {int(code) for code in re.findall(r"(?<![\w.-])(\d+)(?= )", paragraph)}
                assert codes <= set(ExitCode), (path, codes)


def test_nothing_that_a_stranger_wrote_reaches_the_terminal() -> None:
    """Each way in which our commands write, through the one entry point of all of them."""
    application = typer.Typer(name="hostile")

    @application.command()
    def show(way: str) -> None:
        console = Console(force_terminal=True)
        table = Table("head")
        table.add_row(HOSTILE)
        ways: dict[str, Callable[[], object]] = {
            "echo": lambda: typer.echo(HOSTILE),
            "standard error": lambda: typer.echo(HOSTILE, err=True),
            "print": lambda: print(HOSTILE),
            "write": lambda: sys.stdout.write(HOSTILE),
            "console": lambda: console.print(HOSTILE, style="red"),
            "error console": lambda: Console(stderr=True).print(HOSTILE, markup=False),
            "table": lambda: console.print(table),
            "panel": lambda: console.print(Panel(HOSTILE)),
            "error": lambda: report_error(RejectedError(HOSTILE, where=HOSTILE, expected=HOSTILE)),
            "raised": lambda: _raise(UnavailableError(HOSTILE)),
            "fault": lambda: _raise(KeyError(HOSTILE)),
            "option": lambda: _raise(typer.BadParameter(HOSTILE)),
        }
        ways[way]()

    @application.command()
    def names() -> None:
        pass

    application = adopted(application)
    ways = ("echo", "standard error", "print", "write", "console", "error console", "table",
            "panel", "error", "raised", "fault", "option")  # fmt: skip
    for way in ways:
        shown = RUNNER.invoke(application, ["show", way])
        text = re.sub(r"\x1b\[[0-9;]*m", "", shown.stdout) if "console" in way or way in (
            "table", "panel") else shown.stdout  # fmt: skip
        assert "PASS" in text + shown.stderr, way
        for character in text + shown.stderr:
            assert character in "\n" or unicodedata.category(character)[0] != "C", (way, character)
        assert "\x1b[32m" not in shown.output, way


def _raise(error: Exception) -> None:
    raise error


def test_an_error_is_one_line_whatever_it_repeats() -> None:
    error = RejectedError("no\nerror: PASS\t.", where="a\x1bb", expected="c\u2028d")
    assert str(error) == r"a\u001bb: no\nerror: PASS\t. (expected c\u2028d)"


def test_escaping_changes_no_other_text_and_no_meaning_of_json() -> None:
    plain = 'Ζωή, naïve "日本語" 😀 {"a": "\\u001b"}\n\ttab\u00a0and more\n'
    assert printable(plain) == plain
    assert printable(printable(HOSTILE)) == printable(HOSTILE)
    assert one_line("a\nb") == r"a\nb"
    assert printable('{"a": "\x7f\x9b\U000e0041"}') == r'{"a": "\u007f\u009b\udb40\udc41"}'


def test_commands_have_no_other_console_and_write_no_raw_json() -> None:
    for member in MEMBERS:
        for path in (ROOT / member / "src").rglob("*.py"):
            source = path.read_text()
            if path.name == "console.py" and member == "encoding":
                continue
            for node in ast.walk(ast.parse(source)) if "rich" in source else ():
                if isinstance(node, ast.ImportFrom) and node.module == "rich.console":
                    assert "Console" not in {each.name for each in node.names}, path
                if isinstance(node, ast.ImportFrom) and node.module == "rich":
                    assert not {"print", "console"} & {each.name for each in node.names}, path


def test_a_table_that_is_piped_is_whole() -> None:
    table = Table("a", "b")
    table.add_row("2026-11-29T10:00:00Z" * 20, "x" * 300)
    runner = typer.Typer()

    @runner.command()
    def show() -> None:
        Console().print(table)

    runner = adopted(runner)
    assert "x" * 300 in RUNNER.invoke(runner, [], env={"COLUMNS": "80"}).stdout


def test_what_cannot_be_read_is_bad_input_of_every_command(tmp_path: Path) -> None:
    """A file that is not there, given for each argument and option that is one, ends with 2."""
    absent, writes = str(tmp_path / "none" / "absent"), {"output", "out", "keep", "plots", "page",
                                                        "report", "signed", "folder"}  # fmt: skip
    # What these do first is long, or needs what is not here.
    left: set[tuple[str, ...]] = {
        ("verifier", "positions"),
        ("prover", "worker"),
        ("verifier", "worker"),
    }
    left |= {path for path in tree() if path[0] in {"bench", "reproduce", "demo", "up"}}
    met = 0
    for path, command in leaves():
        if path in left:
            continue
        needed = [each for each in command.params if each.required]
        files = [each for each in needed if "Path" in str(each.type_descriptor.annotation)]
        files = [each for each in files if each.name not in writes]
        if not files or path == ("key", "make"):
            continue
        given: list[str] = []
        for parameter in needed:
            value = absent if parameter in files else _any_value(parameter, tmp_path)
            option = parameter.param_type_name == "option"
            given += [max(parameter.opts, key=len), value] if option else [value]
        shown = run(*path, *given)
        assert shown.exit_code == ExitCode.BAD_INPUT, (path, shown.output)
        assert shown.stderr.startswith("error: ") and "Traceback" not in shown.stderr, path
        met += 1
    assert met >= 15


def _any_value(parameter: Any, folder: Path) -> str:
    kind = parameter.type_descriptor.annotation
    if parameter.metavar == "HEX":
        return "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
    if hasattr(kind, "__members__"):
        return str(next(iter(kind)).value)
    if "Path" in str(kind):
        return str(folder / "written")
    return "http://127.0.0.1:1" if "URL" in (parameter.help or "") else "1"


def test_a_part_that_is_not_installed_is_bad_input() -> None:
    application = typer.Typer()

    @application.command()
    def show() -> None:
        raise ModuleNotFoundError(name="matplotlib")

    application = adopted(application)
    shown = RUNNER.invoke(application, [])
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert shown.stderr.startswith("error: this needs the module matplotlib")


def test_output_that_nobody_takes_is_said_and_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where an object was to say so: a full disk takes none."""
    monkeypatch.setattr(main, "keep_private", lambda: None)  # of the tests' own process
    for arguments in (["attack", "list", "--json"], ["attack", "list"], ["-h"]):
        monkeypatch.setattr(sys, "argv", ["ragaudit", *arguments])
        with monkeypatch.context() as patch, Path("/dev/full").open("wb", buffering=0) as full:
            patch.setattr(sys, "stdout", io.TextIOWrapper(full, write_through=True))
            with pytest.raises(SystemExit) as done:
                main.run()
            with suppress(OSError):
                sys.stdout.close()
        assert done.value.code == ExitCode.UNAVAILABLE
        said = "error: output: cannot be written: No space left on device\n"
        assert capsys.readouterr().err == said


def test_an_interrupt_is_no_verdict() -> None:
    application = typer.Typer()

    @application.command()
    def show(how: str) -> None:
        raise KeyboardInterrupt if how == "c" else typer.Abort

    application = adopted(application)
    assert [RUNNER.invoke(application, [how]).exit_code for how in "ca"] == [130, 130]


def test_a_fault_of_ours_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_entry: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(main, "_load", fail)
    shown = run("key", "make", "x")
    assert shown.exit_code == ExitCode.INTERNAL
    assert "ZeroDivisionError" in shown.stderr
