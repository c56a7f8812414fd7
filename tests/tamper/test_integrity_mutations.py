"""Changed evidence of a window without noise: never a traceback, never a PASS where it mattered."""

from __future__ import annotations

from functools import lru_cache

import pytest
from changed_evidence import SETTINGS, assert_sound, changed_bytes
from hypothesis import given, settings
from procedure_cases import RememberingEngine
from ragaudit.lab.scenario.third_parties import CosignedWindow, StampedWindow
from ragaudit.ledger.messages import items as names
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Outcome, run

ENGINE = RememberingEngine()

# As in windows with noise; of claims nothing is read, as there are no promises; and a stamp holds
# for its signed part, under roots that the verifier itself wrote down.
TOLERANT = {
    names.CLOCK,
    names.RECEIPTS,
    names.REFUSALS,
    names.CLAIMS,
    names.DISPUTES,
    names.STATEMENTS,
    names.JUDGED,
    names.TIME_STAMPS,
    names.STAMP_ROOTS,
}


class Attested(StampedWindow, CosignedWindow):
    """A window with everything that a second policy may ask for."""


@lru_cache(maxsize=1)
def played() -> tuple[Attested, dict[str, bytes]]:
    window = Attested(rows=16)
    return window, window.items()


FIRST_RESPONSE = names.response_name(4)
INDEXES = {names.index_name("acme"), names.index_name("acme", 2), names.index_name("beta")}
# No check reads what a verdict only refers to (10.11), and no other window is open beside this one.
ITEMS = sorted({*names.FIXED - {names.TEST_RESULTS, names.OVERLAPS}, *INDEXES, FIRST_RESPONSE})


def judge(name: str, data: bytes | None) -> Outcome:
    window, items = played()
    assert name in items
    changed = {other: each for other, each in items.items() if other != name}
    if data is not None:
        changed[name] = data
    return run(Evidence.of(changed), engine=ENGINE, pins=window.pins, embedder=window.embedder)


def check(name: str, data: bytes) -> None:
    if data != played()[1][name]:
        outcome = judge(name, data)
        assert_sound(outcome, name, TOLERANT)
        assert outcome.claims.privacy != "PASS"


@pytest.mark.parametrize("name", sorted({*ITEMS} - {names.CLAIMS}))
def test_a_missing_item_is_never_a_pass(name: str) -> None:
    outcome = judge(name, None)
    assert outcome.result == "FAIL"
    assert outcome.failed


@settings(max_examples=25, **SETTINGS)
@given(changed_bytes(lambda: played()[1], ITEMS))
def test_changed_bytes(case: tuple[str, bytes]) -> None:
    check(*case)


@pytest.mark.nightly
@settings(max_examples=300, **SETTINGS)
@given(changed_bytes(lambda: played()[1], ITEMS))
def test_changed_bytes_many(case: tuple[str, bytes]) -> None:
    check(*case)
