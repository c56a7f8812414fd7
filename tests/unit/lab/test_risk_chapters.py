"""The risk commands of docs/researcher.md and docs/regulator.md, as they stand there."""

import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.verdict import sign_statement, statement
from ragaudit.privacy.accounting.report import epsilon_report

DOCS = Path(__file__).parents[3] / "docs"


def blocks(chapter: str, command: str) -> list[str]:
    text = (DOCS / chapter).read_text(encoding="utf-8")
    found = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for block in found if command in block]


def run(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_auditors_commands(tmp_path: Path) -> None:
    key = PrivateKey.generate()
    table = epsilon_report(
        "20", "null-replace", 1, 100, 2, "0.000001", Fraction(1, 2**100), 300, [100] * 3, "4",
        "0.000001",
    ).to_json()  # fmt: skip
    predicate = {
        "window": "2026-w48", "provider": "acme", "result": "PASS", "worthless": False,
        "terms": "00",
        "time": 1, "engine": "core", "checks": [], "epsilon": table, "sampling": {},
        "counts": {}, "coalition": {}, "scope": {}, "not_covered": [], "assumptions": [],
    }  # fmt: skip
    (tmp_path / "verdict.json").write_bytes(sign_statement(statement({}, predicate), key))
    first, second = blocks("regulator.md", "ragaudit risk")
    translated = run(first, tmp_path, VERDICT_KEY=key.public.raw.hex())
    assert translated.returncode == 0, translated.stderr
    words = " ".join(translated.stdout.split())
    assert "signature checked." in words
    assert "one of 10 equally likely records" in words
    other = run(second, tmp_path)
    assert other.returncode == 0, other.stderr
    assert "(1, 1e-06)-DP" in other.stdout


@pytest.mark.slow
def test_the_researchers_audit_commands(tmp_path: Path) -> None:
    commands, file_of_guesses = blocks("researcher.md", "ragaudit risk")
    shown = run(commands, tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "advantage at most" in shown.stdout
    assert "certified lower bound" in shown.stdout
    assert "model-based estimate" in shown.stdout
    audited = run(file_of_guesses, tmp_path)
    assert audited.returncode == 0, audited.stderr
    assert "6 of 8 guesses right" in audited.stdout
    assert "claim not refuted" in audited.stdout


@pytest.mark.slow
def test_the_researchers_reproduction(tmp_path: Path) -> None:
    (command,) = blocks("researcher.md", "ragaudit reproduce rad")
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "MNIST is not used" in done.stdout
    assert (tmp_path / "results" / "figure-8-3052.svg").exists()
