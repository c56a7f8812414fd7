"""``ragaudit verifier export``: what it writes, and what it refuses to write from."""

import json
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.verdict_exports import AuditFinding, VerificationResult
from ragaudit.verifier import keys
from ragaudit.verifier.command.cli import app
from report_cases import DIGESTS, outcome
from report_cases_claims import unnoised
from typer.testing import CliRunner

CHAPTER = Path(__file__).parents[3] / "docs" / "regulator.md"
runner = CliRunner()
OTHER = PrivateKey.from_seed(b"o" * 32)


def run(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, ["export", *(str(each) for each in arguments)])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result.output


@pytest.fixture
def verifier(tmp_path: Path) -> Path:
    folder = tmp_path / "verifier"
    name = "verifier.example/cosigner"
    assert runner.invoke(app, ["init", "--name", name, "--directory", str(folder)]).exit_code == 0
    return folder / "verifier.yaml"


@pytest.fixture
def key(verifier: Path) -> PrivateKey:
    return keys.load(verifier.parent / "secrets", "verifier.example/cosigner").verdict


@pytest.fixture
def verdict(tmp_path: Path, key: PrivateKey) -> Path:
    path = tmp_path / "verdict.json"
    path.write_bytes(unnoised().sign(key, DIGESTS, time=1_700_000_000_000))
    return path


def test_an_unsigned_result(verdict: Path, key: PrivateKey) -> None:
    output = run(verdict, "--format", "svr", "--verdict-key", key.public.raw.hex())
    result = VerificationResult.parse(output.removesuffix("\n").encode())
    assert result.properties[:2] == (
        "RAGAUDIT_VERDICT_PASS_OF_SAMPLE",
        "RAGAUDIT_INTEGRITY_PASS_OF_SAMPLE",
    )


def test_a_signed_result(verdict: Path, verifier: Path, key: PrivateKey, tmp_path: Path) -> None:
    file = tmp_path / "svr.json"
    words = ("--format", "svr", "--settings", verifier, "--sign", "--output", file)
    assert run(verdict, *words) == ""
    VerificationResult.verify(file.read_bytes().removesuffix(b"\n"), key.public)


def test_assessment_results(verdict: Path, key: PrivateKey) -> None:
    words = ("--format", "oscal", "--verdict-key", key.public.raw.hex())
    output = run(verdict, *words)
    assert json.loads(output)["assessment-results"]["metadata"]["oscal-version"] == "1.2.1"
    assert output == run(verdict, *words)


def test_lines(verdict: Path, verifier: Path) -> None:
    output = run(verdict, "--format", "jsonl", "--settings", verifier)
    lines = [AuditFinding.parse(line.encode()) for line in output.splitlines(keepends=True)]
    assert [line.id for line in lines[:3]] == ["result", "claim/integrity", "claim/privacy"]


def test_the_commands_of_the_chapter(
    verdict: Path, key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = CHAPTER.read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line.startswith("ragaudit verifier export")]
    assert len(commands) == 3
    monkeypatch.chdir(verdict.parent)
    for command in commands:
        words, _, _ = command.replace("$VERDICT_KEY", key.public.raw.hex()).partition(" > ")
        assert run(*words.split()[3:])


@pytest.mark.parametrize("form", ["svr", "oscal", "jsonl"])
def test_nothing_is_written_of_a_verdict_by_another_key(
    form: str, verdict: Path, tmp_path: Path
) -> None:
    file = tmp_path / "written"
    words = ("--format", form, "--verdict-key", OTHER.public.raw.hex(), "--output", file)
    assert "signed by another key" in run(verdict, *words, code=1)
    assert not file.exists()


def test_a_verdict_of_nobody_is_not_believed(verdict: Path) -> None:
    assert "nothing says whose" in run(verdict, "--format", "jsonl", code=2)


def test_a_failed_window_has_no_result(verdict: Path, key: PrivateKey) -> None:
    failed = outcome("FAIL").sign(key, DIGESTS, time=1)
    verdict.write_bytes(failed)
    words = ("--verdict-key", key.public.raw.hex())
    assert "none of its claims passed" in run(verdict, "--format", "svr", *words, code=4)
    first = run(verdict, "--format", "jsonl", *words).splitlines()[0]
    assert json.loads(first)["status"] == "FAIL"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "oscal", "--sign"), "nothing to sign"),
        (("--format", "svr", "--sign"), "nothing to sign"),
        (("--format", "svr", "--verdict-key", "ab"), "bytes"),
        (("--format", "csv"), "csv"),
    ],
)
def test_wrong_options(words: tuple[str, ...], said: str, verdict: Path) -> None:
    assert said in run(verdict, *words, code=2)


def test_a_verdict_of_another_is_not_signed(verdict: Path, verifier: Path) -> None:
    verdict.write_bytes(unnoised().sign(OTHER, DIGESTS, time=1))
    words: tuple[Any, ...] = ("--format", "svr", "--settings", verifier, "--sign")
    pinned = ("--verdict-key", OTHER.public.raw.hex())
    assert "not the key that signed" in run(verdict, *words, *pinned, code=4)
    assert "signed by another key" in run(verdict, *words, code=1)


def test_files_that_cannot_be_used(verdict: Path, key: PrivateKey, tmp_path: Path) -> None:
    words = ("--format", "jsonl", "--verdict-key", key.public.raw.hex())
    assert "cannot be read" in run(tmp_path / "none.json", *words, code=2)
    assert "cannot be written" in run(verdict, *words, "--output", tmp_path, code=2)
