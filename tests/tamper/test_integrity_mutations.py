"""Changed evidence of a window without noise: never a traceback, never a PASS where it mattered."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from procedure_cases import RememberingEngine
from ragaudit.lab.scenario.third_parties import CosignedWindow, StampedWindow
from ragaudit.ledger.messages import items as names
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Outcome, Status, run

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


def assert_sound(name: str, data: bytes | None) -> None:
    outcome = judge(name, data)
    for check in outcome.checks:
        if check.status is Status.NOT_RUN:
            assert set(outcome.failed) & set(check.needs), (name, check)
    assert outcome.claims.privacy != "PASS"
    if outcome.result == "PASS":
        assert name in TOLERANT, name
    else:
        assert outcome.failed, name


@pytest.mark.parametrize("name", sorted({*ITEMS} - {names.CLAIMS}))
def test_a_missing_item_is_never_a_pass(name: str) -> None:
    outcome = judge(name, None)
    assert outcome.result == "FAIL"
    assert outcome.failed


@st.composite
def changed_bytes(draw: st.DrawFn) -> tuple[str, bytes]:
    name = draw(st.sampled_from(ITEMS))
    data = played()[1][name]
    at = draw(st.integers(0, len(data) - 1))
    kind = draw(st.sampled_from(["flip", "cut", "insert", "remove", "other item", "twice"]))
    if kind == "flip":
        bit = 1 << draw(st.integers(0, 7))
        return name, data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
    if kind == "cut":
        return name, data[:at]
    if kind == "insert":
        return name, data[:at] + draw(st.binary(min_size=1, max_size=9)) + data[at:]
    if kind == "remove":
        return name, data[:at] + data[at + 1 :]
    if kind == "other item":
        other = draw(st.sampled_from([each for each in ITEMS if played()[1][each] != data]))
        return name, played()[1][other]
    return name, data + data


SETTINGS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


def _check(case: tuple[str, bytes]) -> None:
    name, data = case
    if data != played()[1][name]:
        assert_sound(name, data)


@settings(max_examples=25, **SETTINGS)
@given(changed_bytes())
def test_changed_bytes(case: tuple[str, bytes]) -> None:
    _check(case)


@pytest.mark.nightly
@settings(max_examples=300, **SETTINGS)
@given(changed_bytes())
def test_changed_bytes_many(case: tuple[str, bytes]) -> None:
    _check(case)
