"""Cheats in receipts and refusals (checks 13 and 14): each fails its owner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.receipts import PublicReceipt

use_cached_table()

# --- 13: receipts -------------------------------------------------------------------------


class SignsWhatItDoesNotLog(Window):
    """One account holds a receipt for a record that the final log does not have."""

    def receipts(self) -> list[dict[str, Any]]:
        asked = replace(self.asked[0], body=self.asked[1].body)
        return [self.receipt_file(asked).public.to_json(), *super().receipts()[1:]]


class SignsBeyondTheLog(Window):
    def receipts(self) -> list[dict[str, Any]]:
        asked = replace(self.asked[0], index=99)
        return [*super().receipts(), self.receipt_file(asked).public.to_json()]


class SignsTwoAnswers(Window):
    def receipts(self) -> list[dict[str, Any]]:
        again = self.receipt_file(self.asked[0]).public.to_json()
        return [*super().receipts(), again]


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (SignsWhatItDoesNotLog, "record 4: signed for a record that is not in the log"),
        (SignsBeyondTheLog, "record 99: signed for a record that is not in the log"),
        (SignsTwoAnswers, "two different receipts"),
    ],
)
def test_receipts(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "receipts", reason)


class ForgedReceipts(Window):
    def receipts(self) -> list[dict[str, Any]]:
        honest = super().receipts()
        forged = PublicReceipt(
            origin=self.origin,
            index=5,
            salt=b"s" * 32,
            body=self.asked[0].body,
            issued=1,
            answer_digest=b"a" * 32,
        ).signed(PrivateKey.from_seed(b"f" * 32))
        self.forged: list[Any] = [forged.to_json(), {}, None, [], {"format": 1}]
        return honest


def test_receipts_that_the_provider_did_not_sign() -> None:
    window = ForgedReceipts()
    items = window.items()
    listed = canonical_json.loads(items[names.RECEIPTS])
    items[names.RECEIPTS] = canonical_json.dumps([*listed, *window.forged])
    assert audit(items, window).result == "PASS"


# --- 14: refusals -------------------------------------------------------------------------


class RefusesEarly(Window):
    def close(self) -> None:
        self.refuse("bob", 2, "budget", 85)
        super().close()


class RefusesWithFalseCount(Window):
    def close(self) -> None:
        self.refuse("bob", 4, "budget", 85)
        super().close()


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (RefusesEarly, "refused after 2 records"),
        (RefusesWithFalseCount, "counts 4 queries .expected 2"),
    ],
)
def test_refusals(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "refusals", reason)


class RefusesHonestly(Window):
    def script(self) -> list[Event]:
        more = [("query", "bob", f"bob again {i}", 1, 82 + i) for i in range(2)]
        return [*super().script(), *more, ("checkpoint", 90)]

    def close(self) -> None:
        self.refuse("bob", 4, "budget", 85)
        self.refuse("alice", 3, "unavailable", 86)
        self.refusals += [
            {**self.refusals[0], "counter": 0},  # not what the provider signed
            {},
            None,  # type: ignore[list-item]
        ]
        super().close()


def test_refusals_that_contradict_nothing() -> None:
    window = RefusesHonestly()
    outcome = audit(window.items(), window)
    assert outcome.result == "PASS"
    assert outcome.check("refusals").reason.startswith("2 refusals")
