"""Cheats about who acted together (checks 20 and 21): each fails its owner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.lab.scenario.accounts import Account
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.entries import Close
from ragaudit.verifier.procedure import Status

use_cached_table()

# --- 20, 21: coalition and epsilon --------------------------------------------------------


class Together(Window):
    """Three accounts of acme ask the same within a second; the policy plans for two."""

    def script(self) -> list[Event]:
        script = super().script()
        same = [
            ("query", name, "the question that they agreed upon", 1, 90)
            for name in ("alice", "bob", "carol")
        ]
        return [*script, *same]


class Understated(Together):
    def alter_close(self, body: Close) -> Close:
        return replace(body, coalition_claim=2)


def test_more_accounts_than_planned_for() -> None:
    window = Together()
    outcome = audit(window.items(), window)
    assert outcome.result == "EXCEEDED"
    assert outcome.failed == ()
    assert outcome.check("coalition").status is Status.EXCEEDED
    assert outcome.coalition == {"claimed": 3, "estimated": 3, "max": 2}
    assert outcome.epsilon is not None and outcome.epsilon.headline.queries == 12
    assert "for 3 accounts" in outcome.check("epsilon").reason


def test_a_coalition_claim_that_is_too_small() -> None:
    window = Understated()
    items = window.items()
    outcome = assert_caught(items, window, "coalition", "claims 2 accounts, the sketches give 3")
    assert outcome.coalition == {"claimed": 2, "estimated": 3, "max": 2}


def test_a_coalition_claim_that_is_too_large() -> None:
    class Overstated(Window):
        def alter_close(self, body: Close) -> Close:
            return replace(body, coalition_claim=2)

    window = Overstated()
    assert_caught(window.items(), window, "coalition", "claims 2 accounts, the sketches give 1")


@pytest.mark.parametrize(
    ("salt", "made", "reason"),
    [
        (b"s" * 32, None, "another sketch than the committed one"),
        (b"s", None, "another sketch than the committed one"),
        (None, bytes(8), "another sketch than the committed one"),
    ],
)
def test_sketches_that_were_not_committed(
    salt: bytes | None, made: bytes | None, reason: str
) -> None:
    window = Window()
    items = window.items()
    kept = window.sketches[6]
    window.sketches[6] = (salt or kept[0], made or kept[1])
    items[names.RECORDS] = window.handover()
    assert_caught(items, window, "coalition", reason)


def test_sketches_of_another_length() -> None:
    class Short(Window):
        def make_sketch(self, account: Account, embedding: npt.NDArray[np.int16]) -> bytes:
            return super().make_sketch(account, embedding)[:4]

        def estimate(self) -> int:
            return 1

    # Both owners see it: the sketch is not the vector's, and not of the policy's length.
    window = Short()
    outcome = audit(window.items(), window)
    assert outcome.failed == ("embedding", "coalition")
    assert "a sketch of 32 bits" in outcome.check("coalition").reason


class BeyondReach(Together):
    """For the two accounts of the policy there is a finite epsilon, for three there is none."""

    sigma = "0.9"


def test_no_finite_epsilon_for_the_coalition_that_showed() -> None:
    window = BeyondReach(overrides={"epsilon_acc": "60"})
    items = window.items()
    outcome = audit(items, window)
    assert outcome.failed == ("epsilon",)
    assert "no finite epsilon for 3 accounts" in outcome.check("epsilon").reason
    assert outcome.result == "FAIL"
    assert audit(items, window, without=("epsilon",)).result == "EXCEEDED"
