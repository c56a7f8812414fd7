"""`ragaudit receipt` with answers in words: completed, and proven missing from a log."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ragaudit.client import blocking, complete_command, missing_commands
from ragaudit.client.cli import app
from ragaudit.client.published_log import PublishedLog
from ragaudit.client.window import Window
from ragaudit.encoding.errors import RefusedError
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.generated import GeneratedFile
from typer.testing import CliRunner, Result
from words_scene import ANSWERED, SIZE, WordsScene, log_of, signed, words_scene

RUNNER = CliRunner()
UNPINNED = ("--allow-unpinned", "--json")


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> WordsScene:
    """The window of a question that was answered by keywords, whoever asks for it."""
    made = words_scene()
    target: Any = SimpleNamespace(name="w1", view=made.view)

    def load(*_arguments: object) -> Window:
        window: Window = target
        return window

    for commands in (complete_command, missing_commands):
        monkeypatch.setattr(commands, "load", load)
    return made


@pytest.fixture
def proofs(scene: WordsScene, monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """What the provider has of proofs, by index."""
    shown = {entry.index: str(entry.proof) for _, entry in scene.file().public.entries}

    def proof(_url: str, window: str, index: int) -> str:
        assert window == "w1"
        if index not in shown:
            raise RefusedError("no proof yet")
        return shown[index]

    monkeypatch.setattr(blocking, "proof", proof)
    return shown


def written(path: Path, scene: WordsScene, proven: tuple[bool, bool]) -> Path:
    path.write_bytes(replace(scene, proven=proven).file().encode())
    return path


def completed(path: Path, *options: str) -> Result:
    return RUNNER.invoke(app, ["complete", str(path), "--prover", "http://p", *UNPINNED, *options])


@pytest.mark.parametrize("proven", [(False, False), (True, False), (False, True)])
def test_both_proofs_of_an_answer_are_added_to_its_file(
    scene: WordsScene, proofs: dict[int, str], proven: tuple[bool, bool], tmp_path: Path
) -> None:
    path = written(tmp_path / "answer.json", scene, proven)
    result = completed(path)
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"completed": 1})
    file = GeneratedFile.parse(path.read_bytes())
    assert file == scene.file()
    assert [step.status for step in scene.check(file=file)] == ["done"] * 7
    # There is nothing left to do, and proofs with as many lines are no better ones.
    for again in ((), ("--again",)):
        assert json.loads(completed(path, *again).stdout) == {"completed": 0}


def test_while_a_proof_is_outstanding_the_file_stays_as_it_is(
    scene: WordsScene, proofs: dict[int, str], tmp_path: Path
) -> None:
    path = written(tmp_path / "answer.json", scene, (False, False))
    before = path.read_bytes()
    del proofs[ANSWERED]
    assert completed(path).exit_code == 4
    assert path.read_bytes() == before


def test_a_false_proof_is_not_added(
    scene: WordsScene, proofs: dict[int, str], tmp_path: Path
) -> None:
    path = written(tmp_path / "answer.json", scene, (False, False))
    before = path.read_bytes()
    other = replace(scene, nonce=bytes(32)).file().public.answer
    proofs[ANSWERED] = str(other.proof)
    result = completed(path)
    assert (result.exit_code, "inclusion" in result.stdout) == (1, True)
    assert path.read_bytes() == before


class Published:
    """A published log that is this tree."""

    def __init__(self, tree: MemoryTree) -> None:
        self.tree = tree

    def checkpoint(self) -> bytes:
        return signed(self.tree).encode()

    def hashes(self, size: int) -> MemoryTree:
        assert size == self.tree.size
        return self.tree


def proven_missing(
    scene: WordsScene, without: int | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Result, Path]:
    """Prove from a log that has the entries of the scene but for one."""
    leaves = {
        entry.index: entry.leaf_data(kind)
        for kind, entry in scene.receipt().entries if entry.index != without
    }  # fmt: skip
    published = Published(log_of(leaves))
    monkeypatch.setattr(PublishedLog, "at", lambda _where: published)
    path, out = written(folder / "answer.json", scene, (False, False)), folder / "missing.json"
    arguments = ["prove-missing", str(path), "--log", "any", "-o", str(out), *UNPINNED]
    return RUNNER.invoke(app, arguments), out


@pytest.mark.parametrize("index", [3, 5])
def test_an_entry_that_the_log_lacks_is_a_proof_of_its_own(
    scene: WordsScene, index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, out = proven_missing(scene, index, tmp_path, monkeypatch)
    assert result.exit_code == 0, result.output
    shown = {"index": index, "size": SIZE, "shown": "another leaf"}
    assert json.loads(result.stdout) == {"origin": scene.view.policy.origin, **shown}
    # Question and answer stay with the account.
    for secret in (b"what is it", b"mirazo"):
        assert secret not in out.read_bytes()
    policy = tmp_path / "policy.json"
    policy.write_bytes(scene.view.policy.canonical)
    arguments = ["verify-missing", str(out), "--policy", str(policy)]
    verified = RUNNER.invoke(app, arguments)
    kind = {3: "charge", 5: "answer"}[index]
    assert verified.exit_code == 0, verified.output
    assert f"signed a receipt for the {kind} entry {index} of" in verified.stdout


def test_entries_that_are_logged_are_not_proven_missing(
    scene: WordsScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, out = proven_missing(scene, None, tmp_path, monkeypatch)
    assert (result.exit_code, out.exists()) == (4, False)
    assert "the entry is in the log" in result.stdout
