"""`ragaudit cosigner`: set up, logs, keys."""

import json
import re
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest
from cosigner_service import LOG, ORIGIN
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey, VerifierKey
from ragaudit.verifier.command.cosigner import app
from ragaudit.verifier.cosigner.settings import Settings, load, load_keys
from typer.testing import CliRunner


def run(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


def made(folder: Path, *options: str) -> Path:
    code, output = run("init", "--name", "c.example", "--directory", folder, *options)
    assert code == 0, output
    return folder / "cosigner.yaml"


def test_init_makes_keys_that_only_the_owner_reads(tmp_path: Path) -> None:
    path = made(tmp_path, "--ml-dsa")
    for file in (path, *(tmp_path / "secrets").iterdir()):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    code, output = run("keys", "--settings", path)
    shown = [VerifierKey.parse(line) for line in output.split()]
    assert code == 0 and [key.algorithm for key in shown] == [4, 6]
    assert [key.verifier_key for key in load_keys(load(path))] == shown
    for file in (tmp_path / "secrets").iterdir():
        assert file.read_text().strip() not in output


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    path = made(tmp_path)
    assert [key.algorithm for key in load_keys(load(path))] == [4]
    assert run("init", "--name", "c.example", "--directory", tmp_path)[0] == 4
    path.unlink()
    assert run("init", "--name", "c.example", "--directory", tmp_path)[0] == 4  # the keys
    assert run("init", "--name", "c example", "--directory", tmp_path / "new")[0] == 2


def test_logs_are_added_once_and_with_one_key(tmp_path: Path) -> None:
    path = made(tmp_path)
    vkey = str(LOG.verifier_key)
    assert run("log", "add", vkey, "-s", path) == (0, f"cosigned from now on: {ORIGIN}\n")
    assert run("log", "add", vkey, "-s", path) == (0, f"known already: {ORIGIN}\n")
    other = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(b"\x44" * 32)).verifier_key
    assert run("log", "add", str(other), "-s", path)[0] == 4
    wrong = SigningKey(ORIGIN, COSIGNATURE_V1, LOG.private).verifier_key
    assert run("log", "add", str(wrong), "-s", path)[0] == 2
    assert run("log", "add", "vkey", "-s", path)[0] == 2
    code, output = run("log", "list", "--json", "-s", path)
    assert (code, json.loads(output)) == (0, [{"origin": ORIGIN, "key": vkey, "size": 0}])
    assert run("log", "list", "-s", path) == (0, f"{0:>12} {ORIGIN}\n")


@pytest.mark.parametrize(
    ("change", "code"),
    [({"algorithms": []}, 2), ({"algorithms": ["rsa"]}, 2), ({"surprise": 1}, 2), ({"name": 3}, 2)],
)
def test_other_settings_are_refused(tmp_path: Path, change: Any, code: int) -> None:
    path = made(tmp_path)
    document = {"name": "c.example", "data": "data", "secrets": "secrets", **change}
    path.write_text(json.dumps(document))
    assert run("keys", "-s", path)[0] == code


def test_a_key_that_others_may_read_signs_nothing(tmp_path: Path) -> None:
    path = made(tmp_path)
    (tmp_path / "secrets" / "ed25519.key").chmod(0o644)
    assert run("keys", "-s", path)[0] == 2
    assert run("serve", "-s", path)[0] == 2


def test_the_schema_is_printed() -> None:
    assert run("settings-schema") == (0, Settings.schema_text() + "\n")


# The commands of docs/cosigner.md are ones that there are, with options that they have.

TEXT = (Path(__file__).parents[3] / "docs" / "cosigner.md").read_text("utf-8")


def test_the_set_up_runs_but_for_serving(tmp_path: Path) -> None:
    lines = re.findall(r"^    ragaudit cosigner (.+)$", TEXT, re.MULTILINE)
    assert lines[-1] == "serve" and len(lines) == 3
    for line in lines[:-1]:
        words = shlex.split(line.replace("/srv/cosigner", str(tmp_path)))
        words = [str(LOG.verifier_key) if "..." in word else word for word in words]
        if words[0] == "log":
            words += ["--settings", str(tmp_path / "cosigner.yaml")]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
