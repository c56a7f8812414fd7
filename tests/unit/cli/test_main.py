"""The command finds the groups of installed members and reports errors in one line."""

import ast
import json
import re
import stat
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from ragaudit.cli import main
from ragaudit.cli.key import app
from ragaudit.encoding.commands import ExitCode
from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.prover.keys import load_key
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


@pytest.mark.parametrize("command", [(), ("membership",), ("mechanism",), ("scope",), ("list",)])
def test_help_on_attacks_imports_no_cheat(command: tuple[str, ...]) -> None:
    """The catalogue, and what attacks compute with, takes seconds to import."""
    program = (
        "import sys\n"
        f"sys.argv = {['ragaudit', 'attack', *command, '--help']!r}\n"
        "from ragaudit.cli.main import app\n"
        "try:\n    app()\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "heavy = 'scipy sqlalchemy fastapi httpx ragaudit.core ragaudit.lab.attacks.catalogue'\n"
        "print([n for n in heavy.split() if n in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "Usage: ragaudit attack" in done.stdout and done.stderr.strip() == "[]"


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


# `ragaudit key`: files for every role, public keys in both spellings, no secret shown.

# RFC 8032, 7.1, test 1.
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def run(*arguments: str | Path, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result


def test_a_made_key_is_private_and_read_by_the_services(tmp_path: Path) -> None:
    file = tmp_path / "provider.key"
    (shown,) = json.loads(run("make", file, "--json").stdout)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_key(file).public.raw.hex() == shown["public"]
    assert file.read_text().strip() not in json.dumps(shown)
    refused = run("make", file, code=ExitCode.REFUSED)
    assert "exists" in refused.stderr
    run("make", tmp_path / "none" / "key", code=ExitCode.UNAVAILABLE)


def test_a_public_half_is_shown_as_hex_and_pem(tmp_path: Path) -> None:
    file = tmp_path / "k"
    file.write_text(SEED + "\n")
    file.chmod(0o600)
    text = run("public", file).stdout
    assert f"{file}: {PUBLIC}\n-----BEGIN PUBLIC KEY-----\n" in text and SEED not in text
    found = load_pem_public_key(PrivateKey.from_seed(bytes.fromhex(SEED)).public.pem().encode())
    assert isinstance(found, Ed25519PublicKey)
    assert found.public_bytes(Encoding.Raw, PublicFormat.Raw).hex() == PUBLIC
    assert PublicKey.from_raw(bytes.fromhex(PUBLIC)).pem() in text


@pytest.mark.parametrize("text", ["", "zz" * 32, SEED + "00", "\u00e9"])
def test_what_is_no_key_file_is_not_repeated(tmp_path: Path, text: str) -> None:
    file = tmp_path / "k"
    file.write_text(text)
    file.chmod(0o600)
    refused = run("public", file, code=ExitCode.BAD_INPUT)
    assert "not a key file" in refused.stderr and (not text or text not in refused.stderr)


def test_missing_files_and_open_ones(tmp_path: Path) -> None:
    run("public", tmp_path / "none", code=ExitCode.BAD_INPUT)
    (tmp_path / "open").write_text(SEED)
    (tmp_path / "open").chmod(0o644)
    run("public", tmp_path / "open", code=ExitCode.REFUSED)


# Commands and services write no core dump, and nobody else of their user reads their memory.

# Root reads everything: /proc says by a file's owner who else may. Everything is loaded before.
PRELUDE = """
import ctypes, encodings.idna, os, resource, sys
import ragaudit.cli.main as main
from ragaudit.serving import server
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
if os.geteuid() == 0:
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as before, which the change of user ended
def hold(*_):
    print("here", flush=True)
    sys.stdin.read()
    sys.exit()
"""
PROGRAMS = {
    "command": "main.app = hold\nmain.run()",
    "service": "server.run(hold, host='127.0.0.1', port=0)",
    "measurement": "sys.argv = ['ragaudit', 'bench']\nmain.app = hold\nmain.run()",
    "another program": "hold()",
}


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="this system has no /proc")
def test_no_core_and_no_attachment() -> None:
    for name, script in PROGRAMS.items():
        with subprocess.Popen(
            [sys.executable, "-c", PRELUDE + script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == b"here\n", name
            proc = Path(f"/proc/{process.pid}")
            lines = (proc / "limits").read_text().splitlines()
            core = next(line for line in lines if line.startswith("Max core file size")).split()
            owner = (proc / "mem").stat().st_uid
            process.stdin.close()
        private = name in {"command", "service"}
        assert (owner == 0) is private, name
        assert not private or core[4:6] == ["0", "0"], name
