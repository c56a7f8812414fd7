"""Cheats in entries (checks 7 to 12): each fails its owner, and passes without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from procedure_cases import altering, assert_caught, audit, ms, use_cached_table
from ragaudit.encoding.text import rfc3339
from ragaudit.lab.attacks.cheats.schedule import OverBudget, RepeatsACounter
from ragaudit.lab.scenario.opening import Account, Asked, Event
from ragaudit.lab.scenario.policy import END
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.entries import Close, Epoch, Record, Registration, Version
from ragaudit.ledger.messages.promises import Promise

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
    assert_caught(window, "registrations", reason)


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
    assert_caught(window, "counters", reason)


# --- 9: schedule --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (altering(version=2), r"version 2 \(expected 1\)"),
        (altering(epoch=2), r"epoch 2 \(expected 1\)"),
        # carol was activated at t_1; noise of another activation would be a second draw.
        (altering("carol", 1, activation=2), "activation 2 .expected 1"),
        (altering("dora", 0, activation=1), "activation 1 .expected 2"),
        (altering("dora", 0, activation=3), "activation 3 .expected 2"),
        (altering(time=ms(-1)), "outside the window"),
        (altering(time=1000 * END), "outside the window"),
        # Two checkpoints bracket each record: at 20 s without it, at 42 s with it.
        (altering(time=ms(48)), "it was in the log before"),
        (altering(time=ms(14)), "it was not in the log then"),
    ],
)
def test_records_out_of_their_time(window: Window, reason: str) -> None:
    assert_caught(window, "schedule", reason)


def test_an_anchored_record_may_be_as_old_as_its_promise() -> None:
    window = altering("alice", 2, time=ms(18))
    assert audit(window.items(), window).result == "PASS"
    window = altering("alice", 2, time=ms(-5))
    assert_caught(window, "schedule", "outside the window")


class Confirms(Window):
    """bob's second query, made at 30 s and covered by a checkpoint at ``covered``."""

    covered = 42

    def script(self) -> list[Event]:
        return [
            *(event for event in super().script() if event[-1] < 40),
            ("checkpoint", self.covered),
        ]


@pytest.mark.parametrize(("covered", "late"), [(65, False), (66, True)])
def test_a_checkpoint_covers_a_record_within_the_merge_delay(covered: int, late: bool) -> None:
    """30 s, a merge delay of 30 s and a skew of 5 s."""
    window = Confirms()
    window.covered = covered
    if late:
        assert_caught(window, "schedule", "no checkpoint covered it until")
    else:
        assert audit(window.items(), window).result == "PASS"


class RegistersAt(Window):
    """The provider's clock at dora's registration, which happens at 15 s."""

    at = 15

    def alter_registration(self, account: Account, body: Registration) -> Registration:
        return replace(body, time=ms(self.at)) if account.name == "dora" else body


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (2, ""),  # a checkpoint without it at 7 s, and the skew
        (1, "it was not in the log then"),
        (25, ""),  # the one with it at 20 s
        (26, "it was in the log before"),
    ],
)
def test_the_time_of_a_registration(at: int, reason: str) -> None:
    window = RegistersAt()
    window.at = at
    if reason:
        assert_caught(window, "schedule", f"registration 7: .*{reason}")
    else:
        assert audit(window.items(), window).result == "PASS"


class ClosesAt(Window):
    """The provider's clock at the close, which happens at 120 s and is cosigned at 121 s."""

    at = 120

    def alter_close(self, body: Close) -> Close:
        return replace(body, time=ms(self.at))


@pytest.mark.parametrize(
    ("at", "reason"), [(115, ""), (114, "before the window's end"), (126, ""), (127, "before")]
)
def test_the_time_of_the_close(at: int, reason: str) -> None:
    window = ClosesAt()
    window.at = at
    if reason:
        assert_caught(window, "schedule", f"close: .*{reason}")
    else:
        assert audit(window.items(), window).result == "PASS"


class GoesBack(Window):
    """bob's queries are logged in one order and dated in another, all between two checkpoints."""

    def script(self) -> list[Event]:
        script = super().script()
        at = script.index(("query", "bob", "second question of bob", 3, 30))
        return [*script[: at + 1], ("query", "bob", "third question", 1, 24), *script[at + 1 :]]


class TooEarly(Window):
    """dora is answered before the instant that activates her registration."""

    def script(self) -> list[Event]:
        script = [e for e in super().script() if e[:2] != ("query", "dora")]
        at = next(i for i, e in enumerate(script) if e == ("checkpoint", 42))
        return [*script[:at], ("query", "dora", "early", 3, 41), *script[at:]]


class NeverActivated(Window):
    """eve registers after the last instant that activates anything."""

    def script(self) -> list[Event]:
        late = [("register", "eve", "acme", False, 82), ("query", "eve", "late", 1, 83)]
        return [*super().script(), *late]


class NeverRegistered(Window):
    """An account without any registration: its slot and tenant are the provider's choice."""

    def register(self, name: str, *arguments: Any) -> None:
        super().register(name, *arguments)
        if name == "dora":
            self.dropped = self.entries.pop()
            self.log_again()

    def promised(self, account: Account, *arguments: Any) -> Record:
        if account.name != "dora":
            return super().promised(account, *arguments)
        self.entries.append(self.dropped)
        try:
            return super().promised(account, *arguments)
        finally:
            self.entries.pop()


def test_an_account_that_was_never_registered() -> None:
    window = NeverRegistered()
    outcome = assert_caught(window, "schedule", "was never registered")
    assert outcome.check("containment").needs == ("schedule",)


class RegistersAfterwards(Window):
    """dora's registration stands behind her first record."""

    def script(self) -> list[Event]:
        script = super().script()
        at = next(i for i, e in enumerate(script) if e[:2] == ("register", "dora"))
        return [*script[:at], ("early", "dora"), *script[at:]]

    def early(self, name: str) -> None:
        self.register(name, "beta", True, 15)
        entry = self.entries.pop()
        asked = self.answer_unregistered(name, entry)
        self.log_again()
        self.log_record(asked)
        self.accounts[name].queries += 1
        self.entries.append(entry)
        self.log_again()

    def answer_unregistered(self, name: str, entry: tuple[str, bytes, bytes]) -> Asked:
        self.entries.append(entry)
        asked = self.answer(self.accounts[name], "before her time", 1, ms(14))
        self.entries.pop()
        return asked

    def register(self, name: str, *arguments: Any) -> None:
        if name not in self.accounts:
            super().register(name, *arguments)


class ChangesIndex(Window):
    def close(self) -> None:
        body = Version(self.window, "acme", 2, 20, b"r" * 32, b"p" * 32, ms(90))
        self.append("version", body.encode())
        super().close()


EPOCH = Epoch("w1", 2, "restore", b"o" * 32, b"s" * 32, 0, bytes(32), ms(90))


class ChangesSeed(Window):
    def close(self) -> None:
        self.append("epoch", EPOCH.encode())
        super().close()


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
    assert_caught(window, "containment", reason)


class CountsWithheldRows(Window):
    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, withheld=0)


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
    assert_caught(window, "nonces", reason)


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
        assert_caught(window, "promises", reason, items)
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


def test_promises_that_are_kept() -> None:
    window = KeepsPromises()
    outcome = audit(window.items(), window)
    assert outcome.result == "PASS"
    assert "4 revealed promises" in outcome.check("promises").reason


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


@pytest.mark.parametrize(
    ("cheat", "owner", "reason"),
    [
        (GoesBack, "schedule", "earlier than the account's record before"),
        (TooEarly, "schedule", f"expected {rfc3339(ms(60))} or later"),
        (NeverActivated, "schedule", "never activated"),
        (RegistersAfterwards, "schedule", "before its account's registration"),
        (ChangesIndex, "schedule", "a version entry"),
        (ChangesSeed, "schedule", "an? epoch entry"),
        (CountsWithheldRows, "containment", "in a window with noise"),
        (LogsLateUnasked, "schedule", "was not in the log then"),
        (DropsAPromise, "promises", "no record keeps it"),
        (BreaksAPromise, "promises", "the record contradicts it"),
        (PromisesTwice, "promises", "another promise was signed"),
    ],
)
def test_a_rule_broken_once_is_caught_by_its_owner(
    cheat: type[Window], owner: str, reason: str
) -> None:
    assert_caught(cheat(), owner, reason)
