"""What the client library finds before any harm is done: staged against the running services.

These cheats need no audit: nothing is revealed, or the answer is refused, and the window passes.
Each test also plays the cheat with the client's own check removed, and then nobody complains.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ragaudit.client.checks import Checker
from ragaudit.lab.scenario.scenario import Conclusion, Prepared, Scenario
from ragaudit.ledger.messages.entries import Record
from ragaudit.prover.answering.query import Described, Selected, Stage, Stages
from ragaudit.prover.service import Components

BACK_MILLISECONDS = 4000  # more than the skew of the scenario's policy


class Dates(Stage):
    """Dates records as it likes."""

    def stamp(self, current: Any, record: Record) -> Record:
        record = super().stamp(current, record)
        earliest = max(current.last_time, 1000 * self.window.policy.start)
        return replace(record, time=max(record.time - BACK_MILLISECONDS, earliest))


class DatesPromises(Dates, Described):
    """A promise that is older than it is expires when the provider likes."""


class DatesAnswers(Dates, Selected):
    """Queries of a coalition that are pulled apart in time look unlinked."""


def play(folder: Path, prepared: Prepared, stages: Stages) -> Conclusion:
    return Scenario(folder, Components(stages=stages), prepared=prepared).run()


def test_a_promise_dated_back_is_not_revealed(
    tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = play(tmp_path / "checked", prepared, Stages(described=DatesPromises))
    complaints = [each for each in played.complaints if each.startswith("alice")]
    assert any("promise, time: made at" in each for each in complaints)
    assert played.outcome.result == "PASS"
    assert played.outcome.counts["records"] == 6  # alice revealed nothing after her first
    monkeypatch.setattr(Checker, "promise", without_times(Checker.promise))
    assert play(tmp_path / "unchecked", prepared, Stages(described=DatesPromises)).complaints == ()


def test_a_plain_answer_dated_back_is_refused(
    tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = play(tmp_path / "checked", prepared, Stages(selected=DatesAnswers))
    assert any("answer, time: made at" in each for each in played.complaints)
    assert not any(each.startswith("alice") for each in played.complaints)
    monkeypatch.setattr(Checker, "plain_time", lambda *_: None)
    assert play(tmp_path / "unchecked", prepared, Stages(selected=DatesAnswers)).complaints == ()


def without_times(check: Any) -> Any:
    """The check of a promise as if it had been asked for long ago, by somebody who forgot."""
    return lambda self, value, request, asked, *, first: check(
        self, value, request, asked - 10**6, first=False
    )
