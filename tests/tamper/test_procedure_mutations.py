"""Changed evidence of any kind: never a traceback, and never a PASS where it mattered."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from changed_evidence import SETTINGS, assert_sound, changed_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from procedure_cases import RememberingEngine, audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.verifier.procedure import Outcome

use_cached_table()
ENGINE = RememberingEngine()

# Nothing of the provider's hangs on every byte of these: times of the verifier's clock that are
# within the deadline either way, proofs of receipts that nobody signed, and what accounts submit,
# which counts only as far as the provider signed it.
TOLERANT = {
    names.CLOCK,
    names.RECEIPTS,
    names.REFUSALS,
    names.CLAIMS,
    names.DISPUTES,
    names.STATEMENTS,  # one that nobody signed is dismissed
    names.JUDGED,  # a public part that nobody signed accuses nobody
}


class Rich(Window):
    """A window with some of everything."""

    def close(self) -> None:
        self.refuse("alice", 3, "unavailable", 85)
        asked = self.asked[0]
        assert asked.account.chain is not None
        self.claim(self.promise_of(asked), asked.account.chain.nonce(0))
        super().close()

    def disputes(self) -> list[dict[str, Any]]:
        file = self.receipt_file(self.asked[4]).to_json()
        return [self.dispute(self.asked[4], file, file=file, step=0)]


@lru_cache(maxsize=1)
def played() -> tuple[Window, dict[str, bytes]]:
    window = Rich(mode="A", rows=8)
    return window, window.items()


# Known without playing the window; its responses are all alike, the first stands for them.
FIRST_RESPONSE = names.response_name(4)
NOT_IN_IT = {
    names.COSIGNED,
    names.TIME_STAMPS,
    names.STAMP_ROOTS,
    names.TEST_RESULTS,
    names.OVERLAPS,  # tests/tamper/test_overlaps.py
}
ITEMS = sorted({*names.FIXED - NOT_IN_IT, names.index_name("acme"), FIRST_RESPONSE})
JSON_ITEMS = [name for name in ITEMS if name.endswith(".json")]


def judge(name: str, data: bytes | None) -> Outcome:
    window, items = played()
    assert name in items
    others = {other: each for other, each in items.items() if other != name}
    return audit(others if data is None else {**others, name: data}, window, by=ENGINE)


def test_the_window_passes_unchanged() -> None:
    window, items = played()
    assert audit(items, window).result == "PASS"


@pytest.mark.parametrize("name", ITEMS)
def test_a_missing_item_is_never_a_pass(name: str) -> None:
    outcome = judge(name, None)
    assert outcome.result == "FAIL"
    assert outcome.failed


@pytest.mark.parametrize("name", ITEMS)
def test_an_empty_item_is_never_a_pass(name: str) -> None:
    outcome = judge(name, b"")
    assert outcome.result == "FAIL"
    assert len(outcome.failed) == 1, outcome.failed


def _check_changed_bytes(case: tuple[str, bytes]) -> None:
    name, data = case
    if data != played()[1][name]:
        assert_sound(judge(name, data), name, TOLERANT)


@settings(max_examples=25, **SETTINGS)
@given(changed_bytes(lambda: played()[1], ITEMS))
def test_changed_bytes(case: tuple[str, bytes]) -> None:
    _check_changed_bytes(case)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@settings(max_examples=1000, **SETTINGS)
@given(changed_bytes(lambda: played()[1], ITEMS))
def test_changed_bytes_at_length(case: tuple[str, bytes]) -> None:
    _check_changed_bytes(case)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(max_size=6)
    | st.sampled_from(["", "00", "ab" * 32, "ab" * 64, "acme", "tenant:acme", "0"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values inside a JSON value."""
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            found += places(each, (*path, index))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@st.composite
def changed_json(draw: st.DrawFn) -> tuple[str, bytes]:
    """Another value somewhere inside a JSON item, which stays canonical."""
    name = draw(st.sampled_from(JSON_ITEMS))
    value = canonical_json.loads(played()[1][name])
    path = draw(st.sampled_from(places(value)))
    try:
        return name, canonical_json.dumps(replaced(value, path, draw(VALUES)))
    except MalformedError:
        return name, b"null"


@settings(max_examples=30, **SETTINGS)
@given(changed_json())
def test_changed_values(case: tuple[str, bytes]) -> None:
    _check_changed_bytes(case)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@settings(max_examples=1000, **SETTINGS)
@given(changed_json())
def test_changed_values_at_length(case: tuple[str, bytes]) -> None:
    _check_changed_bytes(case)


@st.composite
def submitted(draw: st.DrawFn) -> tuple[str, bytes]:
    """What anyone may add to a list: a changed copy of what is there, or any JSON."""
    name = draw(st.sampled_from([names.CLAIMS, names.REFUSALS, names.RECEIPTS]))
    listed = canonical_json.loads(played()[1][name])
    honest = draw(st.sampled_from(listed))
    path = draw(st.sampled_from(places(honest)))
    new = replaced(honest, path, draw(VALUES))
    try:
        return name, canonical_json.dumps([*listed, new] if new not in listed else listed)
    except MalformedError:
        return name, canonical_json.dumps(listed)


def _check_submitted(case: tuple[str, bytes]) -> None:
    outcome = judge(*case)
    assert outcome.result == "PASS", outcome.failed


@settings(max_examples=25, **SETTINGS)
@given(submitted())
def test_nobody_can_frame_the_provider_with_what_it_did_not_sign(case: tuple[str, bytes]) -> None:
    _check_submitted(case)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@settings(max_examples=1000, **SETTINGS)
@given(submitted())
def test_nobody_can_frame_the_provider_at_length(case: tuple[str, bytes]) -> None:
    _check_submitted(case)
