"""The life of a window at the verifier: docs/spec/08-services.md §8.3.

registered -> countersigned -> closed -> challenged -> auditing -> decided
registered -> refused
countersigned | closed -> auditing
"""

from collections.abc import Mapping
from enum import StrEnum

from ragaudit.encoding.errors import Conflict


class State(StrEnum):
    """A window's state, as it is shown; it follows from the times of its row."""

    REGISTERED = "registered"
    COUNTERSIGNED = "countersigned"
    CLOSED = "closed"
    CHALLENGED = "challenged"
    AUDITING = "auditing"
    DECIDED = "decided"
    REFUSED = "refused"


# A window that was not closed and handed over in time, or whose handover cannot be read, is audited
# without a sample.
_NEXT: Mapping[State, frozenset[State]] = {
    State.REGISTERED: frozenset({State.COUNTERSIGNED, State.REFUSED}),
    State.COUNTERSIGNED: frozenset({State.CLOSED, State.AUDITING}),
    State.CLOSED: frozenset({State.CHALLENGED, State.AUDITING}),
    State.CHALLENGED: frozenset({State.AUDITING}),
    State.AUDITING: frozenset({State.DECIDED}),
    State.DECIDED: frozenset(),
    State.REFUSED: frozenset(),
}

FINAL = (State.DECIDED, State.REFUSED)


def check_transition(window: str, before: State, after: State) -> None:
    """Check that ``after`` may follow ``before``.

    Args:
        window: for the message only.

    Raises:
        Conflict: it may not.
    """
    if after not in _NEXT[before]:
        allowed = ", ".join(sorted(_NEXT[before])) or "nothing: the window is finished"
        raise Conflict(f"a {before} window cannot become {after}", where=window, expected=allowed)


def check_state(window: str, state: State, allowed: tuple[State, ...]) -> None:
    """Check that ``state`` is one of ``allowed``.

    Args:
        window: for the message only.

    Raises:
        Conflict: it is none of them.
    """
    if state not in allowed:
        raise Conflict(f"the window is {state}", where=window, expected=" or ".join(allowed))
