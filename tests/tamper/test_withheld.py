"""Withheld rows are counted as accounts were told, and everybody reads how many (spec 10.12)."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from judged_windows import judged, outcome_of, played, public, signed, stated
from procedure_cases import use_cached_table
from ragaudit.lab.attacks.cheats.integrity import WithholdsTheBest
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.verifier.command.cli import _show
from ragaudit.verifier.report import render_html, render_text
from ragaudit.verifier.report.view import withheld

use_cached_table()


def test_the_best_row_of_every_answer_is_withheld_with_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    window, outcome = played(WithholdsTheBest)[0], outcome_of(WithholdsTheBest)
    assert outcome.result == "PASS"
    rows = Counter[str]()
    for asked in window.asked:
        rows[asked.account.pseudonym.hex()] += len(asked.withdrawn)
    told = outcome.withheld
    assert told is not None
    assert (told["rows"], told["answers"]) == (rows.total(), len(window.asked))
    assert {each["pseudonym"]: each["rows"] for each in told["most"]} == dict(rows)
    assert all(each["of"] == each["answers"] for each in told["most"])
    counts = [each["rows"] for each in told["most"]]
    assert counts == sorted(counts, reverse=True)
    verdict = signed(stated(outcome))
    _show(verdict, as_json=False)
    sentence = f"In {len(window.asked)} of {len(window.asked)} answers the provider withheld"
    command = " ".join(capsys.readouterr().out.split())
    for text in (command, " ".join(render_text(verdict).split()), render_html(verdict)):
        assert sentence in text


def test_an_honest_window_counts_the_deleted_row_alone() -> None:
    window, outcome = played(IntegrityWindow)[0], outcome_of(IntegrityWindow)
    due = [asked for asked in window.asked if asked.withdrawn]
    assert 0 < len(due) < len(window.asked)
    assert outcome.withheld is not None
    assert (outcome.withheld["rows"], outcome.withheld["answers"]) == (len(due), len(due))


def of_integrity(withheld: Any) -> verdicts.Verdict:
    """A verdict on the honest window that states this of withheld rows."""
    return signed({**stated(outcome_of(IntegrityWindow)), "withheld": withheld})


def test_the_public_part_does_not_tell_and_says_so() -> None:
    window, items = played(IntegrityWindow)
    told = judged(window, public(items), part="public").withheld
    assert told == {
        "rows": None, "answers": None, "accounts_concerned": None, "most": [],
    }  # fmt: skip
    assert withheld(of_integrity(told).predicate) == ""


@pytest.mark.parametrize("member", [{}, {"answers": "many"}, {"rows": 1, "answers": True}])
def test_whatever_is_signed_there_is_no_traceback(member: dict[str, Any]) -> None:
    verdict = of_integrity(member)
    assert withheld(verdict.predicate) == ""
    assert render_text(verdict) and render_html(verdict)
    assert json.loads(json.dumps(verdict.predicate.to_json()))["withheld"] == member
