"""A rule is taken away, and the simulation finds it: otherwise it would say nothing."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ragaudit.ledger.log.fence import FenceReader
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.prover.lifecycle import committing
from ragaudit.prover.window import log_transaction
from ragaudit.prover.window.log_transaction import (
    Begin,
    LogTransaction,
    WindowFence,
    _Member,
)
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


def _no_times_of_an_earlier_process(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(committing, "latest_time", lambda *_: 0)


def _an_answer_before_the_fence(patch: pytest.MonkeyPatch) -> None:
    honest = WindowFence.advance
    waits: dict[Path, tuple[TreeHead, Mapping[bytes, int]]] = {}

    def late(self: WindowFence, head: TreeHead, counters: Mapping[bytes, int]) -> None:
        # With the next answer: this one has left by then.
        before, waits[self.path] = waits.get(self.path), (head, counters)
        if before is not None:
            honest(self, *before)

    patch.setattr(WindowFence, "advance", late)


def _a_fence_that_fails_for_the_first_only(patch: pytest.MonkeyPatch) -> None:
    honest = log_transaction._together

    def together(begin: Begin, group: list[_Member]) -> None:
        honest(begin, group)
        for member in group[1:]:
            if "the fence cannot be written" in str(member.error):
                member.error = None  # only who opened the transaction is told

    patch.setattr(log_transaction, "_together", together)


def _a_refused_statement_that_fails_all(patch: pytest.MonkeyPatch) -> None:
    def together(begin: Begin, group: list[_Member]) -> None:
        try:
            with begin() as transaction:
                for member in group:
                    log_transaction._attempt(member, transaction)
        except BaseException as error:
            for member in group:
                member.error = member.error or error

    patch.setattr(log_transaction, "_together", together)


def _a_failure_that_undoes_all(patch: pytest.MonkeyPatch) -> None:
    honest = log_transaction._attempt

    def attempt(member: _Member, transaction: LogTransaction) -> None:
        honest(member, transaction)
        if member.error is not None:
            transaction._rows, transaction._leaves = {}, []
            transaction._size = transaction._log.row.head.size

    patch.setattr(log_transaction, "_attempt", attempt)


FOUND: dict[str, tuple[Sabotage, int, str]] = {
    "the comparison with the fence": (_no_comparison_with_the_fence, 0, "used twice"),
    "the comparison of counters": (_no_comparison_of_counters, 203, "set back"),
    "the order of fence and answer": (_an_answer_before_the_fence, 0, "ahead of the fence"),
    "the fence of a group": (_a_fence_that_fails_for_the_first_only, 29, "of a group whose fence"),
    "one by one": (_a_refused_statement_that_fails_all, 3, "is another's"),
    "the part of one answer": (_a_failure_that_undoes_all, 3, "without its record"),
    "the times of an earlier process": (_no_times_of_an_earlier_process, 18, "schedule"),
    "the rule for the clock": (_no_rule_for_the_clock, 86, "schedule"),
}
"""What is taken away, a seed that shows it, and in which words."""


@pytest.mark.parametrize("name", FOUND)
def test_a_rule_that_is_missing_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sabotage, seed, reason = FOUND[name]
    assert not failing(seed)  # and so the house is built with the rule
    sabotage(monkeypatch)
    assert reason in failing(seed)
