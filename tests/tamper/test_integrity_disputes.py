"""Disputes about answers with filters, scores and ties (check 15, spec 5.9, 5.10)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest
from judged_windows import assert_caught, judged
from procedure_cases import use_cached_table
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.opening import Asked
from resigning import resigned

use_cached_table()

Change = Callable[[dict[str, Any]], None]


class Disputing:
    """Every account disputes every answer, and shows the verifier its file."""

    cheat: tuple[Change, Callable[[Asked], Any]] | None = None
    """What the provider does to the first answer of a kind before it signs it."""

    def receipts(self) -> list[dict[str, Any]]:
        return []  # one file of each answer: another half of the same record is check 13's

    def disputes(self) -> list[dict[str, Any]]:
        asked: list[Asked] = self.asked  # type: ignore[attr-defined]
        change, of = self.cheat or (None, None)
        false = next(filter(of, asked)) if of is not None else None
        return [self._kept(each, change if each is false else None) for each in asked]

    def _kept(self, asked: Asked, change: Change | None) -> dict[str, Any]:
        file: dict[str, Any] = self.receipt_file(asked).to_json()  # type: ignore[attr-defined]
        if change is not None:
            change(file)
            file = resigned(self, file)
        self.halves.append({**file["public"], "proof": None})
        kept: dict[str, Any] = self.dispute(asked, file, file=file, step=0)  # type: ignore[attr-defined]
        return kept

    @cached_property
    def halves(self) -> list[dict[str, Any]]:
        return []

    def judged(self) -> list[dict[str, Any]]:
        return self.halves


class Disputed(Disputing, IntegrityWindow):
    """Without noise: filters, vectors, ties, withdrawn rows, two versions."""


def test_disputes_about_honest_answers_are_dismissed() -> None:
    window = Disputed()
    outcome = judged(window)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    assert f"{len(window.asked)} judged, none upheld" in outcome.check("disputes").reason
    assert {asked.record.version for asked in window.asked} == {1, 2}


def other_content(value: dict[str, Any]) -> None:
    for part in (value["answer"]["documents"][0], value["private"]["rows"][0]):
        part["content"] = "something else"


def other_columns(value: dict[str, Any]) -> None:
    for part in (value["answer"]["documents"][0], value["private"]["rows"][0]):
        part["columns"] = "{}"


def other_score(value: dict[str, Any]) -> None:
    value["answer"]["documents"][0]["score"] += 1


def one_document_less(value: dict[str, Any]) -> None:
    value["answer"]["documents"].pop()
    value["private"]["rows"].pop()


def hidden_as_withdrawn(value: dict[str, Any]) -> None:
    """One is told to be withdrawn that a ties opening of the others would have to show."""
    value["answer"]["documents"].pop()
    row = value["private"]["rows"].pop()
    value["private"]["withdrawn"] = [{"id": row["id"], "position": row["position"], "score": None}]


def without_the_opening(value: dict[str, Any]) -> None:
    value["private"]["ties"] = None


def other_vector(value: dict[str, Any]) -> None:
    vector = b64_encode(bytes([1]) + b64_decode(value["request"]["vector"])[1:])
    value["request"]["vector"] = value["private"]["vector"] = vector


def no_filter(value: dict[str, Any]) -> None:
    value["request"]["filter"] = value["private"]["filter"] = ""


CHEATS: list[tuple[Change, Callable[[Asked], Any], str]] = [
    (other_content, lambda asked: asked.record.version == 2, "step 8"),
    (other_columns, lambda asked: asked.openings.filter, "step 8"),
    (other_score, lambda asked: asked.record.version == 2, "step 8"),
    (one_document_less, lambda asked: asked.record.version == 2, "step 7"),
    (hidden_as_withdrawn, lambda asked: len(asked.selected) > asked.record.top_k, "step 7"),
    (without_the_opening, lambda asked: len(asked.selected) > asked.record.top_k, "step 7"),
    (other_vector, lambda asked: asked.openings.vector, "step 5"),
    (no_filter, lambda asked: asked.openings.filter, "step 5"),
]


@pytest.mark.parametrize(
    ("change", "of", "step"), CHEATS, ids=[change.__name__ for change, _, _ in CHEATS]
)
def test_a_false_answer_is_upheld(change: Change, of: Callable[[Asked], Any], step: str) -> None:
    window = Disputed()
    window.cheat = change, of
    assert_caught(window, "disputes", step)
