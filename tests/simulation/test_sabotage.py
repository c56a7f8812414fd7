"""A rule is taken away, and the simulation finds it: otherwise it would say nothing."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ragaudit.ledger.log.fence import FenceReader
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.entries import Record
from ragaudit.prover.answering.query import Stage
from ragaudit.prover.window.log_transaction import WindowFence
from simulated_plan import Plan, Step, failing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
Sabotage = Callable[[pytest.MonkeyPatch], None]


def _nothing(*_arguments: Any, **_options: Any) -> None:
    """Instead of a rule."""


def _no_comparison_with_the_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FenceReader, "check_head", _nothing)
    patch.setattr(FenceReader, "check_account", _nothing)


def _no_comparison_of_counters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FenceReader, "check_account", _nothing)


def _no_rule_for_the_clock(patch: pytest.MonkeyPatch) -> None:
    honest = Stage.stamp

    def stamp(self: Stage, current: Any, record: Record) -> Record:
        known, self.window.log.cosigned_time = self.window.log.cosigned_time, 0
        try:
            return honest(self, current, record)
        finally:
            self.window.log.cosigned_time = known

    patch.setattr(Stage, "stamp", stamp)


def _an_answer_before_the_fence(patch: pytest.MonkeyPatch) -> None:
    honest = WindowFence.advance
    waits: dict[Path, tuple[TreeHead, Mapping[bytes, int]]] = {}

    def late(self: WindowFence, head: TreeHead, counters: Mapping[bytes, int]) -> None:
        # With the next answer: this one has left by then.
        before, waits[self.path] = waits.get(self.path), (head, counters)
        if before is not None:
            honest(self, *before)

    patch.setattr(WindowFence, "advance", late)


FOUND: dict[str, tuple[Sabotage, int, str]] = {
    "the comparison with the fence": (_no_comparison_with_the_fence, 26, "used twice"),
    "the comparison of counters": (_no_comparison_of_counters, 34, "set back"),
    "the order of fence and answer": (_an_answer_before_the_fence, 0, "ahead of the fence"),
}
"""What is taken away, the first seed that shows it, counted from 0, and in which words."""


@pytest.mark.parametrize("name", FOUND)
def test_a_rule_that_is_missing_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sabotage, seed, reason = FOUND[name]
    assert not failing(seed)  # and so the house is built with the rule
    sabotage(monkeypatch)
    assert reason in failing(seed)


def test_the_rule_for_the_clock_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rarely drawn: all clocks go back between a checkpoint and an account's first answer."""
    passing = (Step("pass", 30), Step("pass", 30))
    before = tuple(Step(f"register {name}") for name in ("ada", "bob", "cyd"))
    back = Step("clocks", 1)
    plan = Plan(before, (*passing, Step("ada"), Step("checkpoint"), back, Step("cyd")))
    assert not failing(1, plan)
    _no_rule_for_the_clock(monkeypatch)
    assert "schedule" in failing(1, plan)
