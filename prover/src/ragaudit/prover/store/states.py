"""The life of a window: docs/spec/08-services.md §8.2.

draft -> committed -> countersigned -> activated -> open -> closed -> challenged -> archived
draft | committed -> refused | abandoned
countersigned | activated | open | closed -> archived, of one that is unusable, with its verdict
"""

from enum import StrEnum

from ragaudit.prover.errors import WrongState


class State(StrEnum):
    """A window's state, as it is stored and shown."""

    DRAFT = "draft"
    COMMITTED = "committed"
    COUNTERSIGNED = "countersigned"
    ACTIVATED = "activated"
    OPEN = "open"
    CLOSED = "closed"
    CHALLENGED = "challenged"
    ARCHIVED = "archived"
    REFUSED = "refused"
    ABANDONED = "abandoned"


_NEXT: dict[State, frozenset[State]] = {
    State.DRAFT: frozenset({State.COMMITTED, State.REFUSED, State.ABANDONED}),
    State.COMMITTED: frozenset({State.COUNTERSIGNED, State.REFUSED, State.ABANDONED}),
    State.COUNTERSIGNED: frozenset({State.ACTIVATED, State.ARCHIVED}),
    State.ACTIVATED: frozenset({State.OPEN, State.ARCHIVED}),
    State.OPEN: frozenset({State.CLOSED, State.ARCHIVED}),
    State.CLOSED: frozenset({State.CHALLENGED, State.ARCHIVED}),
    State.CHALLENGED: frozenset({State.ARCHIVED}),
    State.ARCHIVED: frozenset(),
    State.REFUSED: frozenset(),
    State.ABANDONED: frozenset(),
}

# A closed window is not among them: its answers are given, and its index is stored.
HOLDS_DOCUMENTS = (
    State.DRAFT,
    State.COMMITTED,
    State.COUNTERSIGNED,
    State.ACTIVATED,
    State.OPEN,
)
# From the countersignature on: before it there is no log that a registration could be in.
REGISTERS = (State.COUNTERSIGNED, State.ACTIVATED, State.OPEN)
# What the verifier has not signed may still be ended without an audit.
UNSIGNED = (State.DRAFT, State.COMMITTED)
FINAL = (State.ARCHIVED, State.REFUSED, State.ABANDONED)


def check_transition(window: str, before: State, after: State) -> None:
    """Check that ``after`` may follow ``before`` (docs/spec/08-services.md §8.2).

    Args:
        window: its name, for the error.

    Raises:
        WrongState: there is no such transition.
    """
    if after not in _NEXT[before]:
        allowed = ", ".join(sorted(_NEXT[before])) or "nothing: the window is finished"
        raise WrongState(f"a {before} window cannot become {after}", where=window, expected=allowed)


def check_state(window: str, state: State, allowed: tuple[State, ...]) -> None:
    """Check that ``state`` is one of ``allowed``.

    Args:
        window: its name, for the error.
        allowed: those in which the call makes sense.

    Raises:
        WrongState: none of them.
    """
    if state not in allowed:
        raise WrongState(f"the window is {state}", where=window, expected=" or ".join(allowed))
