"""Judging a cheat of the catalogue: caught by the named checks, and passing without them."""

from __future__ import annotations

from ragaudit.lab.attacks import Cheat, Staged
from ragaudit.verifier.procedure import Outcome, Status

WITHOUT_NOISE = ("INTEGRITY", "VERSION")
"""Families of cheats that are staged in windows without noise."""

UNCLAIMED = ("accounting", "promises", "seed", "coalition", "epsilon")


def shown(outcome: Outcome) -> list[tuple[str, str, str]]:
    """What is not a PASS."""
    return [(c.id, str(c.status), c.reason) for c in outcome.checks if c.status != Status.PASS]


def assert_caught(cheat: Cheat, staged: Staged) -> None:
    """Exactly the named checks fail, one of them for the named reason; the others pass or wait."""
    outcome = staged.outcome
    assert outcome.result == cheat.result, (shown(outcome), staged.complaints)
    assert outcome.failed == (() if cheat.conditional else cheat.checks), shown(outcome)
    failed = [outcome.check(name) for name in cheat.checks]
    said = [text for check in failed for text in (check.reason, *check.evidence)]
    assert any(cheat.reason in text for text in said), said
    assert staged.caught
    for check in outcome.checks:
        if check.status is Status.NOT_APPLICABLE:  # to a window without noise, as spec 9.7 says
            assert cheat.family in WITHOUT_NOISE and check.id in UNCLAIMED, shown(outcome)
            continue
        if cheat.conditional and check.id in cheat.checks:
            assert check.status is Status.NOT_ESTABLISHED, shown(outcome)
            continue
        assert check.status in (Status.PASS, Status.FAIL, Status.NOT_RUN), shown(outcome)
        if check.status is Status.NOT_RUN:
            assert set(check.needs) <= set(cheat.checks), shown(outcome)


def assert_complaints(cheat: Cheat, staged: Staged) -> None:
    """Accounts complain exactly if the catalogue says so."""
    if cheat.complaint:
        assert any(cheat.complaint in each for each in staged.complaints), staged.complaints
    else:
        assert staged.complaints == ()


def assert_passes_without(cheat: Cheat, staged: Staged) -> None:
    """With the checks that catch it taken off the list, the cheat passes."""
    left = staged.without(cheat.checks)
    # Of a window that was refused there is an opening only: nothing is left to refuse.
    assert left.result == (None if cheat.refused else "PASS"), shown(left)
