"""A rule is taken away, and the simulation finds it: otherwise it would say nothing."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ragaudit.ledger.log.fence import FenceReader
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.prover.window.log_transaction import WindowFence
from ragaudit.prover.window.open_window import WindowLog
from simulated_plan import failing

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
    patch.setattr(WindowLog, "known_time", 0)


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
    "the comparison with the fence": (_no_comparison_with_the_fence, 121, "used twice"),
    "the comparison of counters": (_no_comparison_of_counters, 69, "set back"),
    "the order of fence and answer": (_an_answer_before_the_fence, 0, "ahead of the fence"),
    "the rule for the clock": (_no_rule_for_the_clock, 62, "schedule"),
}
"""What is taken away, the first seed that shows it, counted from 0, and in which words."""


@pytest.mark.parametrize("name", FOUND)
def test_a_rule_that_is_missing_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sabotage, seed, reason = FOUND[name]
    assert not failing(seed)  # and so the house is built with the rule
    sabotage(monkeypatch)
    assert reason in failing(seed)
