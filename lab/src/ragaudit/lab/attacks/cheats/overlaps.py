"""Windows of one provider that answer from the same documents at the same time."""

from functools import partial
from typing import Any, Final

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.opening import OpenedWindow
from ragaudit.lab.scenario.policy import SMALL_TERMS, seeded
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.evidence import OverlappingWindow, Overlaps
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.terms import Terms


def beside(window: OpenedWindow, other: Policy, /, **changes: Any) -> bytes:
    """Return the item about one other window of the provider, at the same time.

    Args:
        window: that the evidence is of.
        other: policy of the other; name and provider become such a window's.
        changes: to that policy.
    """
    members = {
        "provider": window.policy.provider,
        "window": "beside",
        "previous_checkpoint": None,
        **changes,
    }
    origin = f"{members['provider']}/ragaudit/{members['window']}"
    log = str(SigningKey(origin, ED25519, seeded(f"log of {origin}")).verifier_key)
    document = other.to_json()
    keys = {**document["keys"], "log": log}
    policy = Policy.from_json({**document, "keys": keys, **members})
    return Overlaps((OverlappingWindow(policy, allowed=100, shared=1),)).encode()


class AnswersTwice(Window):
    """The same documents are answered from in two windows, each with a budget of its own.

    Check 1 (`policy`) allows as many windows for a tenant at once as the verifier's terms.
    """

    def opening_items(self) -> dict[str, bytes]:
        return {**super().opening_items(), names.OVERLAPS: beside(self, self.policy)}


class AnswersExactlyElsewhere(Window):
    """The documents that noise protects here are shown exactly in another window.

    Check 1 (`policy`) allows as many windows for a tenant at once as the verifier's terms.
    """

    def opening_items(self) -> dict[str, bytes]:
        exact = IntegrityWindow().policy
        return {**super().opening_items(), names.OVERLAPS: beside(self, exact)}


ONE_AT_A_TIME: Final = Terms.of({**SMALL_TERMS.to_json(), "most_overlapping_windows": 0})

_at_once = partial(
    ConstructedCheat, family="POLICY", checks=("policy",), reason="overlap it, the first is beside",
    why="the verifier countersigns no such window",
)  # fmt: skip

CHEATS: Final = (
    _at_once(
        name="two-budgets-at-once",
        description="Answers from the same documents in two windows at the same time.",
        window=partial(AnswersTwice, terms=ONE_AT_A_TIME),
    ),
    _at_once(
        name="exact-answers-beside-noise",
        description="Shows exactly, in another window, what noise protects in this one.",
        window=partial(AnswersExactlyElsewhere, terms=ONE_AT_A_TIME),
    ),
)
