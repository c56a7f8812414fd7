"""Cheats in what a record belongs to and keeps (checks 10 to 12): each fails its owner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from procedure_cases import altering, assert_caught, audit, use_cached_table
from ragaudit.lab.scenario.accounts import Account
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.promises import Promise

use_cached_table()

# --- 10: containment ----------------------------------------------------------------------


class ServesAnotherTenant(Window):
    """bob of acme is answered from beta's index, and the record says so."""

    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, tenant=self.served_tenant(account))

    def served_tenant(self, account: Account) -> str:
        return "beta" if account.name == "bob" and account.queries == 1 else account.tenant


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (altering(policy_digest=b"p" * 32), "another policy or window"),
        (altering(window="w2"), "another policy or window"),
        (altering(rows=19), "N is 19"),
        (altering(top_k=4), "K is 4, at most 3"),
        (ServesAnotherTenant(), "tenant beta .expected acme"),
    ],
)
def test_records_that_leave_their_place(window: Window, reason: str) -> None:
    assert_caught(window.items(), window, "containment", reason)


class CountsWithheldRows(Window):
    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, withheld=0)


def test_a_record_with_noise_that_counts_withheld_rows() -> None:
    window = CountsWithheldRows()
    assert_caught(window.items(), window, "containment", "in a window with noise")


# --- 11: nonces ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        # P draws without the client's share: the noise is its own choice again.
        (altering("alice", 1, nonce=None), "without a nonce"),
        (altering("alice", 1, nonce=b"n" * 32), "not the chain's nonce"),
        (altering("bob", 1, nonce=b"n" * 32, selection_commitment=b"c" * 32), "plain account"),
    ],
)
def test_nonces(window: Window, reason: str) -> None:
    assert_caught(window.items(), window, "nonces", reason)


# --- 12: promises -------------------------------------------------------------------------


class KeepsPromises(Window):
    def close(self) -> None:
        for asked in self.asked:
            chain = asked.account.chain
            if chain is not None:
                self.claim(self.promise_of(asked), chain.nonce(asked.record.counter))
        super().close()


class DropsAPromise(Window):
    """P saw the noise that the revealed nonce gives, and "crashed"."""

    def close(self) -> None:
        chain = self.accounts["alice"].chain
        assert chain is not None
        self.claim(self.promise("alice", "a fourth question", 3, 85), chain.nonce(3))
        super().close()


class BreaksAPromise(Window):
    """The record of the same query has another K than the one promised."""

    def close(self) -> None:
        asked = next(a for a in self.asked if a.account.name == "alice")
        chain = asked.account.chain
        assert chain is not None
        other = replace(asked.record.promised(), top_k=2)
        request = replace(asked.request, top_k=2)
        promise = Promise.issue(
            self.provider_key,
            origin=self.origin,
            body=other.encode(),
            request=request,
            openings=asked.openings,
        )
        self.claim(promise, chain.nonce(0))
        super().close()


class PromisesTwice(Window):
    """Two promises for one counter: the account reveals its nonce for either."""

    def close(self) -> None:
        asked = next(a for a in self.asked if a.account.name == "alice")
        chain = asked.account.chain
        assert chain is not None
        self.claim(self.promise_of(asked), chain.nonce(0))
        account = self.accounts["alice"]
        account.queries, kept = 0, account.queries
        self.claim(self.promise("alice", "another text", 3, 1), b"not revealed for this".ljust(32))
        account.queries = kept
        super().close()


class ClaimedAt(Window):
    """alice's promise of 60 s, claimed at ``taken`` and never kept."""

    taken = 60

    def close(self) -> None:
        chain = self.accounts["alice"].chain
        assert chain is not None
        self.claim(self.promise("alice", "a fourth question", 3, 60), chain.nonce(3), self.taken)
        super().close()


@pytest.mark.parametrize(
    ("taken", "reason"),
    [(54, "claimed at"), (55, "no record keeps it"), (85, "no record keeps it"), (86, "")],
)
def test_a_claim_binds_from_the_promise_on_for_as_long_as_it_lives(taken: int, reason: str) -> None:
    """60 s, a life of 20 s and a skew of 5 s on either side."""
    window = ClaimedAt()
    window.taken = taken
    items = window.items()
    if reason:
        assert_caught(items, window, "promises", reason)
    else:
        outcome = audit(items, window)
        assert outcome.result == "PASS"
        assert "had expired" in str(outcome.check("promises").evidence)


class ClockForgetsAClaim(ClaimedAt):
    def claim(self, *arguments: Any) -> None:
        super().claim(*arguments)
        self.claimed.clear()


def test_a_claim_without_a_time_of_intake() -> None:
    window = ClockForgetsAClaim()
    outcome = audit(window.items(), window)
    assert outcome.failed == ("sampling",)
    assert "no time of intake" in outcome.check("sampling").reason
    assert outcome.check("promises").needs == ("sampling",)


class KeepsAPromiseLate(Window):
    """The nonce was handed to the verifier, and the record is logged when the window ends."""

    claims_it = True

    def close(self) -> None:
        asked = self.query("alice", "answered by nobody at the time", 3, 45)
        if self.claims_it:
            assert asked.account.chain is not None
            self.claim(self.promise_of(asked), asked.account.chain.nonce(3))
        super().close()


class LogsLateUnasked(KeepsAPromiseLate):
    claims_it = False


def test_a_claimed_promise_may_be_kept_late() -> None:
    window = KeepsAPromiseLate()
    outcome = audit(window.items(), window)
    assert outcome.result == "PASS", [each for each in outcome.checks if each.status != "PASS"]


def test_only_a_claim_excuses_a_late_record() -> None:
    window = LogsLateUnasked()
    assert_caught(window.items(), window, "schedule", "was not in the log then")


def test_promises_that_are_kept() -> None:
    window = KeepsPromises()
    outcome = audit(window.items(), window)
    assert outcome.result == "PASS"
    assert "4 revealed promises" in outcome.check("promises").reason


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (DropsAPromise, "no record keeps it"),
        (BreaksAPromise, "the record contradicts it"),
        (PromisesTwice, "another promise was signed"),
    ],
)
def test_promises(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "promises", reason)


class FalseClaims(Window):
    """What accounts can submit against an honest provider."""

    def close(self) -> None:
        alice, bob = self.accounts["alice"], self.accounts["bob"]
        assert alice.chain is not None
        unkept = self.promise("alice", "never asked", 1, 85)
        self.claim(unkept, b"x" * 32)  # the nonce was never revealed
        forged = replace(unkept, signature=bytes(64))
        self.claim(forged, alice.chain.nonce(3))
        self.claim(replace(unkept, origin="other.example/ragaudit/w1"), alice.chain.nonce(3))
        self.claim(self.promise("bob", "bob is plain", 1, 85), b"x" * 32)
        self.claims += [{"promise": {}, "nonce": ""}, {"nonce": 1}, {}, {"x": None}]
        assert bob.chain is None
        super().close()


def test_claims_that_prove_nothing() -> None:
    window = FalseClaims()
    assert audit(window.items(), window).result == "PASS"
