"""`ragaudit receipt stamp` and `stamped`: an authority on the loopback, and what it may answer."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ragaudit.client.cli import app
from ragaudit.encoding.canonical_json import dumps
from ragaudit.ledger.log.tlog_proof import TlogProof
from receipt_scene import LOG, scene
from time_authority import Authority, AuthorityServer
from typer.testing import CliRunner

PROOF = str(scene().file().public.proof)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def server(authority: Authority) -> Iterator[AuthorityServer]:
    made = AuthorityServer(authority)
    yield made
    made.close()


@pytest.fixture
def receipt(tmp_path: Path) -> Path:
    path = tmp_path / "answer.json"
    path.write_bytes(dumps(scene().file().to_json()))
    return path


def run(*words: str | Path) -> tuple[int, Any]:
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    return result.exit_code, json.loads(result.stdout)


def test_a_stamp_is_kept_and_checked_offline(
    receipt: Path, server: AuthorityServer, authority: Authority
) -> None:
    code, made = run("stamp", receipt, "--authority", server.url, "--roots", authority.roots)
    assert (code, made["origin"]) == (0, LOG.name)
    token = receipt.with_name("answer.json.tsr")
    again = run("stamped", receipt, "--token", token, "--roots", authority.roots)
    assert again == (0, made)
    # Of the checkpoint, whoever has it in whatever form.
    note = receipt.with_name("checkpoint")
    note.write_bytes(TlogProof.parse(PROOF.encode()).checkpoint)
    assert run("stamped", note, "--token", token, "--roots", authority.roots) == (0, made)
    words = ["stamped", str(receipt), "--token", str(token), "--roots", str(authority.roots)]
    shown = CliRunner().invoke(app, words).stdout
    assert shown.startswith(f"{LOG.name} had its {made['size']} entries by 20")


def test_another_answer_is_not_kept(
    receipt: Path, server: AuthorityServer, authority: Authority
) -> None:
    options = ("--authority", server.url, "--roots", authority.roots)
    old = authority.answer
    other = old(b"no request")
    for answer, code in ((other, 1), (b"hello", 2), (bytes(2**17), 2)):
        server.answer = lambda _query, answer=answer: answer  # type: ignore[misc]
        assert run("stamp", receipt, *options)[0] == code
    server.status, server.answer = 503, old
    assert run("stamp", receipt, *options)[0] == 3
    assert not receipt.with_name("answer.json.tsr").exists()


def test_an_authority_that_is_away(
    receipt: Path, server: AuthorityServer, authority: Authority
) -> None:
    nobody = "http://127.0.0.1:9"
    assert run("stamp", receipt, "--authority", nobody, "--roots", authority.roots)[0] == 3
    assert run("stamp", receipt, "--authority", "ftp://x", "--roots", authority.roots)[0] == 2
    missing = receipt.with_name("none.pem")
    assert run("stamp", receipt, "--authority", server.url, "--roots", missing)[0] == 2


def test_a_receipt_without_a_proof_has_nothing_to_stamp(
    receipt: Path, server: AuthorityServer, authority: Authority
) -> None:
    file = scene().file()
    public = replace(file.public, proof=None).to_json()
    receipt.write_bytes(dumps({**file.to_json(), "public": public}))
    code, problem = run("stamp", receipt, "--authority", server.url, "--roots", authority.roots)
    assert code == 3 and "outstanding" in problem["detail"]


def test_the_commands_of_the_chapter_run(
    receipt: Path, server: AuthorityServer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = Path(__file__).parents[3] / "docs" / "tenant-developer.md"
    lines = chapter.read_text("utf-8").splitlines()
    commands = [line for line in lines if line.startswith("    ragaudit receipt stamp")]
    assert len(commands) == 2
    monkeypatch.chdir(receipt.parent)
    (receipt.parent / "tsa-roots.pem").write_bytes(authority.roots.read_bytes())
    for command in commands:
        words = shlex.split(command.replace("https://tsa.example", server.url))[2:]
        assert CliRunner().invoke(app, words).exit_code == 0
