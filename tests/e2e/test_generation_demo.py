"""`ragaudit demo --words`, as people see it: private answers, budgets, and the verdict."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ragaudit.cli.corpus import Passage
from ragaudit.encoding.console import Console
from ragaudit.lab.demo.generation import (
    ACCOUNTS,
    TENANT,
    USES,
    WINDOW,
    GenerationReport,
    Told,
    _plan,
)
from ragaudit.lab.demo.show import show_generation
from ragaudit.lab.generation.records import Question
from typer.testing import CliRunner


def ragaudit(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "ragaudit.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_all_accounts_together_learn_what_two_answers_tell(tmp_path: Path) -> None:
    done = ragaudit("demo", "--words", "--json", "--keep", str(tmp_path / "kept"))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["verdict"]["result"] == "PASS"
    assert found["verdict"]["generation"]["replace_one_null"] == "20"
    answers = found["answers"]
    assert len(answers) == 40
    together = [each for each in answers if each["together"]]
    assert len({each["account"] for each in together}) == ACCOUNTS
    # Its documents pay twice; whoever asks later is told what a model says that read nothing.
    assert all(not each["private"] and not each["right"] for each in together[USES:])
    # Six voters of 40 name the public token, which noise of scale 3.2 must not lift above 20, three
    # times: an answer fails with a probability of 2 %, both with one below 1e-3.
    assert any(each["right"] for each in together[:USES])
    # Every account submits what it was told; check 13 looks for each of them in the log.
    assert found["receipts"] == {"submitted": 40, "found": "40 receipts, all of them in the log"}
    paid = {int(times): count for times, count in found["documents_by_uses"].items()}
    assert max(paid) == USES and sum(paid.values()) == 1020
    # Offline and without a model of one's own, all but the model's part is repeated.
    bundle = Path(found["evidence"]) / "bundle.zip"
    again = ragaudit("verifier", "recheck", str(bundle), "--settings",
                     str(tmp_path / "kept" / "verifier" / "verifier.yaml"))  # fmt: skip
    assert again.returncode == 5, again.stdout + again.stderr
    assert "nothing differs" in again.stdout and "language model" in again.stdout


def test_each_account_asks_the_same_and_four_of_its_own() -> None:
    plan, questions = _plan()
    shared = next(iter(questions))
    for account in plan.accounts:
        first, *own = account.questions[WINDOW]
        assert first == shared and len(own) == 4 and shared not in own
    assert isinstance(plan.corpus[TENANT][0], Passage)
    assert questions[shared].support == 40


def test_what_came_of_it_is_shown() -> None:
    told = Told(
        "clinic-1", Question("symptom of x ?", "mirazo", 40, "first"), True, "mirazo", True, 3
    )
    verdict = {
        "window": WINDOW, "epsilon": {}, "result": "FAIL", "worthless": False,
        "claims": {}, "generation": None,
        "checks": [{"id": "receipts", "status": "PASS", "reason": "1 receipts", "evidence": [],
                    "number": 13}],
    }  # fmt: skip
    console = Console(record=True, width=120)
    show_generation(
        console,
        GenerationReport(Path("evidence"), [told], 1, {0: 5, 2: 1}, verdict, "recheck", 3.2),
    )
    shown = console.export_text()
    assert "1 of 1 receipts" in shown and "says of them: 1 receipts." in shown
    assert "mirazo" in shown and "operator's eyes" in shown and "FAIL" in shown


@pytest.mark.parametrize("other", ["--sigma", "--cheat", "--seed"])
def test_words_are_played_alone(other: str) -> None:
    from ragaudit.lab.demo.command import app

    result = CliRunner().invoke(app, ["--words", other, "1"])
    assert result.exit_code == 2
