"""A window's state at the verifier moves along chapter 8.3 only."""

import itertools
from typing import Any

import pytest
from ragaudit.encoding.errors import RefusedError
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.windows import FINAL, State, check_state, check_transition
from verifier_service_harness import ORIGIN

ALLOWED = {
    ("registered", "countersigned"),
    ("registered", "refused"),
    ("countersigned", "closed"),
    ("countersigned", "auditing"),
    ("closed", "challenged"),
    ("closed", "auditing"),
    ("challenged", "auditing"),
    ("auditing", "decided"),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(State, State)))
def test_only_the_transitions_of_the_chapter(before: State, after: State) -> None:
    if (before.value, after.value) in ALLOWED:
        check_transition("w", before, after)
        return
    with pytest.raises(RefusedError, match=f"a {before} window cannot become {after}"):
        check_transition("w", before, after)


def test_nothing_follows_a_final_state() -> None:
    assert {before for before, _ in ALLOWED}.isdisjoint(state.value for state in FINAL)


def test_another_state_than_allowed_is_named() -> None:
    check_state("w", State.CLOSED, (State.CLOSED,))
    with pytest.raises(RefusedError, match="the window is closed"):
        check_state("w", State.CLOSED, FINAL)


def test_a_row_shows_the_latest_state_and_takes_no_step_twice(scenario: Any) -> None:
    scenario.register()
    steps = (State.COUNTERSIGNED, State.CLOSED, State.CHALLENGED, State.AUDITING, State.DECIDED)
    for state in steps:
        with scenario.service.database.write() as transaction:
            windows.advance(transaction, ORIGIN, state)
            assert windows.get(transaction.connection, ORIGIN).state is state
            with pytest.raises(RefusedError, match="cannot become"):
                windows.advance(transaction, ORIGIN, state)
