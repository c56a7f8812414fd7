"""Withheld rows are counted as accounts were told, and everybody reads how many (spec 10.12)."""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from typing import Any

import pytest
from judged_windows import judged
from procedure_cases import use_cached_table
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.cheats.integrity import WithholdsTheBest
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.verifier.command.cli import _show
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Outcome, run
from ragaudit.verifier.report import render_html, render_text
from ragaudit.verifier.report.view import withheld

use_cached_table()

KEY = PrivateKey.from_seed(b"k" * 32)


@lru_cache(maxsize=2)
def played(kind: type[IntegrityWindow]) -> tuple[IntegrityWindow, Evidence, Outcome]:
    window = kind()
    items = window.items()
    return window, Evidence.of(items), judged(window, items)


def signed(outcome: Outcome, **changes: Any) -> verdicts.Verdict:
    predicate = {**outcome.predicate(time=1_900_000_500_000).to_json(), **changes}
    envelope = verdicts.sign_statement(verdicts.statement({}, predicate), KEY)
    return verdicts.Verdict.verify(envelope, KEY.public)


def test_the_best_row_of_every_answer_is_withheld_with_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    window, _, outcome = played(WithholdsTheBest)
    assert outcome.result == "PASS"
    rows = Counter[str]()
    for asked in window.asked:
        rows[asked.account.pseudonym.hex()] += len(asked.withdrawn)
    stated = outcome.withheld
    assert stated is not None
    assert (stated["rows"], stated["answers"]) == (rows.total(), len(window.asked))
    assert {each["pseudonym"]: each["rows"] for each in stated["most"]} == dict(rows)
    assert all(each["of"] == each["answers"] for each in stated["most"])
    counts = [each["rows"] for each in stated["most"]]
    assert counts == sorted(counts, reverse=True)
    verdict = signed(outcome)
    _show(verdict, as_json=False)
    sentence = f"In {len(window.asked)} of {len(window.asked)} answers the provider withheld"
    command = " ".join(capsys.readouterr().out.split())
    for text in (command, " ".join(render_text(verdict).split()), render_html(verdict)):
        assert sentence in text


def test_an_honest_window_counts_the_deleted_row_alone() -> None:
    window, _, outcome = played(IntegrityWindow)
    due = [asked for asked in window.asked if asked.withdrawn]
    assert 0 < len(due) < len(window.asked)
    assert outcome.withheld is not None
    assert (outcome.withheld["rows"], outcome.withheld["answers"]) == (len(due), len(due))


def test_the_public_part_does_not_tell_and_says_so() -> None:
    window, evidence, _ = played(IntegrityWindow)
    public = run(evidence.public(), engine=engine("core"), part="public", pins=window.pins)
    assert public.withheld == {
        "rows": None, "answers": None, "accounts_concerned": None, "most": [],
    }  # fmt: skip
    assert withheld(signed(played(IntegrityWindow)[2], withheld=public.withheld).predicate) == ""


@pytest.mark.parametrize("member", [{}, {"answers": "many"}, {"rows": 1, "answers": True}])
def test_whatever_is_signed_there_is_no_traceback(member: dict[str, Any]) -> None:
    verdict = signed(played(IntegrityWindow)[2], withheld=member)
    assert withheld(verdict.predicate) == ""
    assert render_text(verdict) and render_html(verdict)
    assert json.loads(json.dumps(verdict.predicate.to_json()))["withheld"] == member
