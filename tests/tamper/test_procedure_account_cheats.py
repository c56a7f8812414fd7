"""Cheats in registrations and counters (checks 7 and 8): each fails its owner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from procedure_cases import altering, assert_caught, use_cached_table
from ragaudit.lab.attacks.cheats.schedule import OverBudget, RepeatsACounter
from ragaudit.lab.scenario.accounts import Account
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.entries import Registration

use_cached_table()

# --- 7: registrations ---------------------------------------------------------------------


class AltersRegistration(Window):
    """carol's registration."""

    changes: dict[str, Any]

    def alter_registration(self, account: Account, body: Registration) -> Registration:
        return replace(body, **self.changes) if account.name == "carol" else body


def registering(**changes: Any) -> Window:
    window = AltersRegistration()
    window.changes = changes
    return window


class TooManyAccounts(Window):
    slots = 3


class RegistersTwice(Window):
    """One pseudonym in two slots has two series of noise to choose from."""

    def script(self) -> list[Event]:
        first, *rest = super().script()
        return [first, ("again", "alice"), *rest]

    def again(self, name: str) -> None:
        body = self.accounts[name].registration
        assert body is not None
        self.append("registration", replace(body, slot=1).encode())


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (registering(slot=5), "slot 5, expected 2"),
        (registering(slot=0), "slot 0, expected 2"),
        (TooManyAccounts(), "beyond the 3 slots"),
        (RegistersTwice(), "is registered twice"),
        (registering(tenant="gamma"), "tenant gamma is not in the policy"),
        (registering(window="w2"), "another window"),
    ],
)
def test_registrations(window: Window, reason: str) -> None:
    assert_caught(window.items(), window, "registrations", reason)


# --- 8: counters --------------------------------------------------------------------------


class TooManyAnchoredQueries(Window):
    def script(self) -> list[Event]:
        more = [("query", "alice", f"alice again {i}", 1, 82 + i) for i in range(2)]
        return [*super().script(), *more, ("checkpoint", 90)]


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (RepeatsACounter(), "counter 0, expected 1"),
        # P drew the noise of a query, did not like it and goes on with the next.
        (altering(counter=2), "counter 2, expected 1"),
        (altering(slot=4), "slot 4, registered 1"),
        (altering(slot=7), "slot 7, registered 1"),
        (OverBudget(), "query 5 of an account that has 4"),
        (TooManyAnchoredQueries(), "query 5 of an account that has 4"),
    ],
)
def test_counters(window: Window, reason: str) -> None:
    assert_caught(window.items(), window, "counters", reason)
