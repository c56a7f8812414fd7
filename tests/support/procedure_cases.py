"""Judging a cheat: exactly the owning checks fail, for the right reason, and nothing else does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ragaudit.circuits.statements import IndexStatement
from ragaudit.lab.scenario.opening import Account
from ragaudit.lab.scenario.policy import START
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.entries import Record
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.verifier.engines import ArgumentRejected, CoreEngine, Engine, engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import CHECKS, Outcome, Pins, Status, privacy_checks, run

Items = dict[str, bytes]
Edit = Callable[[Items, Window], None]


@lru_cache(maxsize=256)
def _table(arguments: tuple[tuple[str, Any], ...]) -> EpsilonTable:
    given: dict[str, Any] = {k: list(v) if isinstance(v, tuple) else v for k, v in arguments}
    return epsilon_report(**given)


def cached_epsilon_report(**arguments: Any) -> EpsilonTable:
    """The same table as ever, computed once for all cases that have the same numbers."""
    return _table(
        tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in sorted(arguments.items()))
    )


def use_cached_table() -> None:
    """The table is a pure function of its arguments and takes most of a small run's time."""
    privacy_checks.epsilon_report = cached_epsilon_report  # type: ignore[assignment, attr-defined]


class RememberingEngine(CoreEngine):
    """The compiled engine, which judges an index argument that it has seen only once."""

    def __init__(self) -> None:
        super().__init__()
        self._judged: dict[tuple[IndexStatement, bytes], ArgumentRejected | None] = {}

    def verify_index(self, statement: IndexStatement, proof: bytes) -> None:
        case = (statement, proof)
        if case not in self._judged:
            try:
                super().verify_index(*case)
                self._judged[case] = None
            except ArgumentRejected as error:
                self._judged[case] = error
        known = self._judged[case]
        if known is not None:
            raise known


def audit(
    items: Mapping[str, bytes],
    window: Window,
    *,
    without: tuple[str, ...] = (),
    pins: Pins | None = None,
    with_embedder: bool = True,
    by: Engine | None = None,
) -> Outcome:
    return run(
        Evidence.of(items),
        engine=by or engine("core"),
        checks=tuple(check for check in CHECKS if check.id not in without),
        pins=pins or window.pins,
        embedder=window.embedder if with_embedder else None,
    )


def assert_caught(
    window: Window,
    owner: str | tuple[str, ...],
    reason: str,
    items: Mapping[str, bytes] | None = None,
    *,
    pins: Pins | None = None,
) -> Outcome:
    """Exactly the owning checks fail, one says why, and without them the cheat passes."""
    owners = (owner,) if isinstance(owner, str) else owner
    items = window.items() if items is None else items
    outcome = audit(items, window, pins=pins)
    shown = [(c.id, str(c.status), c.reason) for c in outcome.checks if c.status != Status.PASS]
    assert outcome.failed == owners, shown
    assert outcome.result == "FAIL"
    said = [outcome.check(each) for each in owners]
    texts = [text for check in said for text in (check.reason, *check.evidence)]
    assert any(re.search(reason, text) for text in texts), texts
    for check in outcome.checks:
        if check.status is Status.NOT_RUN:
            assert check.needs
            assert set(check.needs) <= set(owners), shown
    removed = audit(items, window, without=owners, pins=pins)
    assert removed.result == "PASS", [(c.id, c.status, c.reason) for c in removed.checks]
    return outcome


class AltersRecord(Window):
    """One record of an account has other members; the second of bob, who is plain, if not said."""

    name, number = "bob", 1
    changes: Mapping[str, Any]

    def alter_record(self, account: Account, record: Record) -> Record:
        chosen = account.name == self.name and account.queries == self.number
        return replace(record, **self.changes) if chosen else record


def altering(name: str = "bob", number: int = 1, **changes: Any) -> AltersRecord:
    """A window in which an account's record has these members."""
    window = AltersRecord()
    window.name, window.number, window.changes = name, number, changes
    return window


def ms(seconds: int) -> int:
    """Unix milliseconds of a second of the window."""
    return 1000 * (START + seconds)
