"""Cheats around the sample (check 16): each fails its owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from procedure_cases import assert_caught, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import sign
from ragaudit.encoding.tagged import decode, enc
from ragaudit.lab.attacks.cheats.challenges import ClosesLate
from ragaudit.lab.scenario.policy import CHALLENGED, INSTANTS
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.items import response_name
from ragaudit.ledger.messages.requests import MAX_QUESTION_BYTES

use_cached_table()

RESPONSE = "ragaudit/v1/response"

# --- 16: sampling -------------------------------------------------------------------------


def test_a_final_checkpoint_after_the_sampling_instant() -> None:
    window = ClosesLate()
    assert_caught(window.items(), window, "sampling", "cosigned at")


def signed_list(window: Window, value: dict[str, Any]) -> dict[str, Any]:
    fields = (value["window"], bytes.fromhex(value["digest"]), value["count"], value["time"])
    signature = sign(window.verifier_key, "receipts-list", *fields)
    return {**value, "signature": signature.hex()}


class AltersList(Window):
    change: dict[str, Any]

    def receipts_list(self, receipts: Any) -> dict[str, Any]:
        return signed_list(self, {**super().receipts_list(receipts), **self.change})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"time": 1000 * INSTANTS[-1]}, "made after the sampling instant"),
        ({"count": 3}, "not the receipts at hand"),
        ({"digest": "ab" * 32}, "not the receipts at hand"),
        ({"window": "w2"}, "of another window"),
    ],
)
def test_the_receipts_list(change: dict[str, Any], reason: str) -> None:
    window = AltersList()
    window.change = change
    assert_caught(window.items(), window, "sampling", reason)


def test_a_receipt_was_slipped_in_after_the_list() -> None:
    window = Window()
    items = window.items()
    listed = canonical_json.loads(items[names.RECEIPTS])
    late = window.receipt_file(window.asked[5]).public.to_json()
    items[names.RECEIPTS] = canonical_json.dumps([*listed, late])
    assert_caught(items, window, "sampling", "not the receipts at hand")


class OtherPreimage(Window):
    """n_a is not on the chain that was countersigned: the noise was drawn again."""

    def activation(self, a: int, covered: int) -> dict[str, Any]:
        value = super().activation(a, covered)
        if a == 2:
            fields = (self.window, a, b"n" * 32, covered, value["time"])
            value["preimage"] = "6e" * 32
            value["signature"] = sign(self.verifier_key, "activation", *fields, None, None).hex()
        return value


class Hidden(Window):
    """An activation that was never released."""

    def activation(self, a: int, covered: int) -> dict[str, Any]:
        return super().activation(1 if a == 2 else a, covered)


class OverstatesCoverage(Window):
    def activation(self, a: int, covered: int) -> dict[str, Any]:
        return super().activation(a, covered + (a == 2))


class ReleasesEarly(Window):
    def activation(self, a: int, covered: int) -> dict[str, Any]:
        value = super().activation(a, covered)
        value["time"] = 1000 * INSTANTS[a - 1] - 1
        fields = (self.window, a, bytes.fromhex(value["preimage"]), covered, value["time"])
        signature = sign(self.verifier_key, "activation", *fields, None, None)
        return {**value, "signature": signature.hex()}


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (OtherPreimage, "not the chain's preimage"),
        (Hidden, "released twice"),
        (OverstatesCoverage, "activation 2 covers"),
        (ReleasesEarly, "before its instant"),
    ],
)
def test_activations(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "sampling", reason)


@pytest.mark.parametrize("kept", [0, 1])
def test_activations_that_were_never_released(kept: int) -> None:
    window = Window()
    items = window.items()
    released = canonical_json.loads(items[names.ACTIVATIONS])
    items[names.ACTIVATIONS] = canonical_json.dumps(released[:kept])
    assert_caught(items, window, "sampling", "not released")


def rechallenged(played: Window, items: dict[str, bytes], /, **changes: Any) -> dict[str, bytes]:
    value = canonical_json.loads(items[names.CHALLENGE])
    signed = played.sign_challenge({**value, **changes})
    return {**items, names.CHALLENGE: canonical_json.dumps(signed)}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"preimage": "ab" * 32}, "not the chain's preimage"),
        ({"final_size": 13}, "another final log"),
        ({"final_root": "ab" * 32}, "another final log"),
        ({"disputed": [4]}, "unknown member"),
        ({"window": "w2"}, "another window"),
        ({"deadline": 1000 * CHALLENGED}, "answered at"),
        ({"receipts_list": {}}, "challenge.receipts_list.count: missing member"),
    ],
)
def test_the_challenge(changes: dict[str, Any], reason: str) -> None:
    window = Window()
    items = rechallenged(window, window.items(), **changes)
    assert_caught(items, window, "sampling", reason)


def test_the_challenge_names_another_receipts_list() -> None:
    window = Window()
    items = window.items()
    listed = canonical_json.loads(items[names.RECEIPTS_LIST])
    other = signed_list(window, {**listed, "count": 3})
    items = rechallenged(window, items, receipts_list=other)
    assert_caught(items, window, "sampling", "another receipts list")


class PickedSample(Window):
    """The sample is not the one that the seed gives: somebody chose what is looked at."""

    def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
        drawn = super().draw_sample(receipts)
        everything = {r.index for r in self.logged() if r.tenant == "acme"}
        left_out = sorted(everything - set(drawn[0]["sample"]))
        drawn[0]["sample"] = left_out[:2]
        return drawn


class SkippedStratum(Window):
    def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
        return super().draw_sample(receipts)[:-1]


@pytest.mark.parametrize("cheat", [PickedSample, SkippedStratum])
def test_a_sample_that_somebody_chose(cheat: type[Window]) -> None:
    window = cheat(mode="B")
    assert_caught(window.items(), window, "sampling", "not the one that the seed gives")


def test_a_sampled_record_is_not_answered() -> None:
    window = Window()
    items = window.items()
    del items[response_name(window.asked[2].index)]
    assert_caught(items, window, "sampling", "responses/6.bin is missing")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda f: f[:-1], "wrong tag or field count"),
        (lambda f: (*f[:7], f[7][:-2], *f[8:]), "embedding"),
        (lambda f: (*f[:2], f[2] + b"x", *f[3:]), "path"),
        (lambda f: (*f[:2], bytes(64 * 32), *f[3:]), "path"),
        (lambda f: ((99).to_bytes(8, "little"), *f[1:]), "answered as 99"),
        (lambda f: (*f[:5], bytes(MAX_QUESTION_BYTES + 1), *f[6:]), "text too long"),
        (lambda f: (*f[:12], bytes(2**20 + 1)), "proof too long"),
        (lambda f: (f[0], b"", *f[2:]), "digest field has a wrong length"),
    ],
)
def test_a_response_that_is_none(
    spoil: Callable[[tuple[bytes, ...]], tuple[bytes, ...]], reason: str
) -> None:
    window = Window()
    items = window.items()
    name = response_name(window.asked[2].index)
    items[name] = enc(RESPONSE, *spoil(decode(RESPONSE, items[name], 13)))
    assert_caught(items, window, "sampling", reason)


def test_a_response_whose_time_nobody_knows() -> None:
    window = Window()
    items = window.items()
    clock = canonical_json.loads(items[names.CLOCK])
    del clock["responses"]["6"]
    items[names.CLOCK] = canonical_json.dumps(clock)
    assert_caught(items, window, "sampling", "record 6: no time of its answer")
    items[names.CLOCK] = b"{}"
    assert_caught(items, window, "sampling", "clock.claims: missing member")
