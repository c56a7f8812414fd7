"""Whole windows that answer by keyword sets: what is concluded of an honest one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from judged_windows import open_checks, outcome_of, rechecked, signed, stated
from judged_windows import played as made_once
from procedure_cases import use_cached_table
from ragaudit.encoding.errors import UnavailableError
from ragaudit.lab.attacks.cheats.generation_answers import TOLERATES
from ragaudit.lab.scenario.generating import AnsweringModel, CopyGenerator, KeywordWindow
from ragaudit.ledger.messages.receipts import GeneratedKeywords
from ragaudit.privacy.accounting.generation import KeywordChannelEpsilon, read_channel
from ragaudit.verifier.report import render_html, render_text

use_cached_table()


class JoinedKeywords(KeywordWindow):
    """The released words are the answer: no model writes one."""

    final = "keywords"


class NothingPasses(KeywordWindow):
    """The noise of the test is far larger than any gap of 8 voters."""

    test_sigma = KeywordWindow.test_sigma * 32


class Tolerant(KeywordWindow):
    """Two votes of an answer may be others than those of the verifier's model."""

    def __init__(self) -> None:
        super().__init__(terms=TOLERATES)

    def terms_json(self) -> dict[str, Any]:
        return {**super().terms_json(), "replay": {"differing_votes": 2}}


class OtherVotes(AnsweringModel):
    """A model that gives other answers than the committed one to so many of the voters."""

    def __init__(self, others: int) -> None:
        super().__init__()
        self._others = others

    def whole(self, question: str, documents: Sequence[str]) -> Sequence[str | None]:
        same = super().whole(question, documents)[self._others :]
        return [*["something else"] * self._others, *same]


class NoFinalText(AnsweringModel):
    """A model that is away as soon as keywords are to be written out."""

    def final(self, question: str, keywords: Sequence[str]) -> str:
        if keywords:
            raise UnavailableError("away")
        return super().final(question, keywords)


def played(kind: type[KeywordWindow]) -> tuple[KeywordWindow, dict[str, bytes]]:
    window, items = made_once(kind)
    assert isinstance(window, KeywordWindow)
    return window, items


def answers(kind: type[KeywordWindow]) -> list[GeneratedKeywords]:
    return [
        each.answer
        for each in played(kind)[0].charged
        if isinstance(each.answer, GeneratedKeywords)
    ]


@pytest.mark.parametrize(
    "kind",
    [
        KeywordWindow,
        pytest.param(JoinedKeywords, marks=pytest.mark.slow),
        pytest.param(NothingPasses, marks=pytest.mark.slow),
    ],
)
def test_an_honest_window_passes(kind: type[KeywordWindow]) -> None:
    outcome = outcome_of(kind)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    released = [each.keywords for each in answers(kind)]
    assert len(released) == 3
    assert (released == [None] * 3) == (kind is NothingPasses)


def test_it_says_what_it_costs() -> None:
    costs = outcome_of(KeywordWindow).generation
    assert isinstance(costs, KeywordChannelEpsilon)
    window, _ = played(KeywordWindow)
    assert costs.replace_one_null.epsilon == window.epsilon()
    # Two uses, and four: less than twice as much.
    assert costs.replace_one_null.epsilon < costs.replace_one.epsilon
    assert costs.replace_one.epsilon < 2 * costs.replace_one_null.epsilon
    assert costs.replace_one_null.delta == 3 * window.delta_test
    assert costs.replace_one.delta == 5 * window.delta_test
    assert costs.draws == 4 * 9
    assert read_channel(costs.to_json()) == costs


@pytest.mark.parametrize("given", [{"generator": None}, {"generator": CopyGenerator()}])
def test_what_nobody_could_ask_again_is_not_established(given: dict[str, Any]) -> None:
    outcome = outcome_of(KeywordWindow, **given)
    assert open_checks(outcome) == dict.fromkeys(["generator", "replay"], "NOT ESTABLISHED")
    assert outcome.result == "CONDITIONAL"


def test_a_model_that_is_away_at_the_final_text_leaves_the_replay_open() -> None:
    outcome = outcome_of(KeywordWindow, generator=NoFinalText())
    assert open_checks(outcome) == {"replay": "NOT ESTABLISHED"}
    (replay,) = [check for check in outcome.checks if check.id == "replay"]
    written = sum(bool(each.keywords) for each in answers(KeywordWindow))
    assert f"did not answer for {written} of the answers" in replay.reason


@pytest.mark.slow
def test_votes_that_the_policy_lets_differ_are_no_fault_and_establish_nothing() -> None:
    assert outcome_of(Tolerant).result == "PASS"
    outcome = outcome_of(Tolerant, generator=OtherVotes(2))
    assert outcome.result == "CONDITIONAL"
    assert open_checks(outcome) == {"replay": "NOT ESTABLISHED"}
    assert "6 votes differ" in outcome.check("replay").reason
    outcome = outcome_of(Tolerant, generator=OtherVotes(3))
    assert open_checks(outcome) == {"replay": "FAIL"}


def test_a_verdict_is_shown_and_repeated(tmp_path: Path) -> None:
    predicate = stated(outcome_of(KeywordWindow, generator=None))
    assert rechecked(tmp_path, *played(KeywordWindow), predicate).differences == ()
    verdict = signed(predicate)
    for page in (render_html(verdict), render_text(verdict)):
        words = " ".join(page.split())
        assert "at delta 3e-06" in words
        assert "for any number of accounts" in words
