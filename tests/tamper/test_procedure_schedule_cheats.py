"""Cheats in the times and the order of entries (check 9): each fails its owner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from procedure_cases import altering, assert_caught, audit, ms, use_cached_table
from ragaudit.encoding.text import rfc3339
from ragaudit.lab.scenario.accounts import Account, Asked
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.policy import END
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.entries import Close, Epoch, Record, Registration, Version

use_cached_table()

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
    assert_caught(window.items(), window, "schedule", reason)


def test_an_anchored_record_may_be_as_old_as_its_promise() -> None:
    window = altering("alice", 2, time=ms(18))
    assert audit(window.items(), window).result == "PASS"
    window = altering("alice", 2, time=ms(-5))
    assert_caught(window.items(), window, "schedule", "outside the window")


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
        assert_caught(window.items(), window, "schedule", "no checkpoint covered it until")
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
        assert_caught(window.items(), window, "schedule", f"registration 7: .*{reason}")
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
        assert_caught(window.items(), window, "schedule", f"close: .*{reason}")
    else:
        assert audit(window.items(), window).result == "PASS"


class GoesBack(Window):
    """bob's queries are logged in one order and dated in another, all between two checkpoints."""

    def script(self) -> list[Event]:
        script = super().script()
        at = script.index(("query", "bob", "second question of bob", 3, 30))
        return [*script[: at + 1], ("query", "bob", "third question", 1, 24), *script[at + 1 :]]


def test_an_account_whose_time_goes_back() -> None:
    window = GoesBack()
    assert_caught(window.items(), window, "schedule", "earlier than the account's record before")


class TooEarly(Window):
    """dora is answered before the instant that activates her registration."""

    def script(self) -> list[Event]:
        script = [e for e in super().script() if e[:2] != ("query", "dora")]
        at = next(i for i, e in enumerate(script) if e == ("checkpoint", 42))
        return [*script[:at], ("query", "dora", "early", 3, 41), *script[at:]]


def test_an_answer_before_the_activation() -> None:
    window = TooEarly()
    assert_caught(window.items(), window, "schedule", f"expected {rfc3339(ms(60))} or later")


class NeverActivated(Window):
    """eve registers after the last instant that activates anything."""

    def script(self) -> list[Event]:
        late = [("register", "eve", "acme", False, 82), ("query", "eve", "late", 1, 83)]
        return [*super().script(), *late]


def test_an_account_that_was_never_activated() -> None:
    window = NeverActivated()
    assert_caught(window.items(), window, "schedule", "never activated")


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
    outcome = assert_caught(window.items(), window, "schedule", "was never registered")
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


def test_a_registration_behind_its_record() -> None:
    window = RegistersAfterwards()
    assert_caught(window.items(), window, "schedule", "before its account's registration")


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


@pytest.mark.parametrize(
    ("cheat", "reason"), [(ChangesIndex, "a version entry"), (ChangesSeed, "an? epoch entry")]
)
def test_changes_after_the_opening(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "schedule", reason)
