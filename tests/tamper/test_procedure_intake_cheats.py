"""Cheats in receipts, refusals, disputes and the sample (checks 13 to 16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.signing import PrivateKey, sign
from ragaudit.encoding.tagged import decode, enc
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.policy import CHALLENGED, INSTANTS
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.disputes import Dispute, Finding, file_digest
from ragaudit.ledger.messages.items import response_name
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.requests import MAX_QUESTION_BYTES
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure import Status
from ragaudit.verifier.procedure.statement_checks import judge
from resigning import resigned

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


# --- 15: disputes -------------------------------------------------------------------------


class Disputed(Window):
    """bob complains about his second answer, and shows the verifier its file."""

    def disputes(self) -> list[dict[str, Any]]:
        assert self.asked[4].account.name == "bob"
        return [self.kept(self.receipt_file(self.asked[4]).to_json())]

    def kept(self, file: dict[str, Any]) -> dict[str, Any]:
        self.halves.append({**file["public"], "proof": None})
        return self.dispute(self.asked[4], file, file=file, step=1)

    @cached_property
    def halves(self) -> list[dict[str, Any]]:
        return []

    def judged(self) -> list[dict[str, Any]]:
        return self.halves


def other_document(value: dict[str, Any]) -> None:
    value["answer"]["documents"][0]["content"] = "something else"


def other_text_in_both(value: dict[str, Any]) -> None:
    value["answer"]["documents"][0]["content"] = "something else"
    value["private"]["rows"][0]["content"] = "something else"


def one_document_less(value: dict[str, Any]) -> None:
    value["answer"]["documents"].pop()


def not_what_was_selected(value: dict[str, Any]) -> None:
    value["private"]["selected"].pop()
    value["private"]["rows"].pop()
    value["answer"]["documents"].pop()


def ordered_by_score(value: dict[str, Any]) -> None:
    value["answer"]["documents"].reverse()


def other_vector(value: dict[str, Any]) -> None:
    row = value["private"]["rows"][0]
    entries = b64_decode(row["vector"])
    row["vector"] = b64_encode(entries[2:4] + entries[:2] + entries[4:])


def other_query(value: dict[str, Any]) -> None:
    value["request"]["query"] = value["private"]["query"] = "what nobody asked"


def other_k(value: dict[str, Any]) -> None:
    value["request"]["top_k"] = 2


def a_filter(value: dict[str, Any]) -> None:
    value["request"]["filter"] = value["private"]["filter"] = "year > 2000"


def other_sketch(value: dict[str, Any]) -> None:
    value["private"]["sketch"] = "ff" * 8


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (other_document, "step 7"),
        (other_text_in_both, "step 8"),
        (one_document_less, "step 7"),
        (not_what_was_selected, "step 6"),
        (ordered_by_score, "not rising"),
        (other_vector, "step 8"),
        (other_query, "step 5"),
        (other_k, "step 3"),
        (a_filter, "filters"),
        (other_sketch, "step 5"),
    ],
)
def test_disputes(spoil: Callable[[dict[str, Any]], None], reason: str) -> None:
    class Cheats(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            value = self.receipt_file(self.asked[4]).to_json()
            spoil(value)
            return [self.kept(resigned(self, value))]

    window = Cheats()
    assert_caught(window, "disputes", reason)


def findings(window: Disputed, step: int, **changes: Any) -> list[dict[str, Any]]:
    """The same dispute, as the arbiter's finding about it."""
    file = window.receipt_file(window.asked[4]).to_json()
    public = PublicReceipt.from_json(file["public"])
    named: dict[str, Any] = {
        "origin": public.origin,
        "index": public.index,
        "answer_digest": public.answer_digest,
        "file_digest": file_digest(file),
        "step": step,
        "time": 5,
    }
    key = changes.pop("key", ARBITER)
    finding = Finding(**{**named, **changes}).signed(key).to_json()
    window.halves.append(public.to_json())
    return [window.dispute(window.asked[4], file, step=step, finding=finding)]


ARBITER = PrivateKey.from_seed(b"\xa7" * 32)
WITH_ARBITER = {"keys/arbiter": ARBITER.public.raw.hex()}


def test_what_the_arbiter_upholds_fails() -> None:
    class Cheats(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            return findings(self, 8)

    window = Cheats(overrides=WITH_ARBITER)
    assert_caught(window, "disputes", "upheld by the arbiter: step 8")


def test_a_step_that_nothing_shows() -> None:
    class Cheats(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            file = self.receipt_file(self.asked[4]).to_json()
            return [self.dispute(self.asked[4], file, step=8)]

    window = Cheats()
    assert_caught(window, "disputes", "step 8 is said to fail")


def test_what_the_arbiter_dismisses_changes_nothing() -> None:
    class Dismissed(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            return findings(self, 0)

    window = Dismissed(overrides=WITH_ARBITER)
    outcome = audit(window.items(), window)
    assert outcome.result == "PASS"
    assert outcome.check("disputes").reason == "1 disputes, 1 judged, none upheld"
    assert outcome.counts["disputes_open"] == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"key": PrivateKey.from_seed(b"\xa8" * 32)},
        {"index": 5},
        {"file_digest": bytes(32)},
        {"answer_digest": bytes(32)},
        {"origin": "rag.example/ragaudit/w2"},
    ],
)
def test_findings_that_are_not_the_arbiters_about_this_file(changes: dict[str, Any]) -> None:
    class Other(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            return findings(self, 0, **changes)

    window = Other(overrides=WITH_ARBITER)
    assert audit(window.items(), window).check("disputes").status is Status.FAIL


def test_a_window_without_an_arbiter_has_no_findings() -> None:
    class Unnamed(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            return findings(self, 8)

    window = Unnamed()
    outcome = audit(window.items(), window)
    assert outcome.check("disputes").status is Status.FAIL
    assert "names no arbiter" in outcome.check("disputes").reason


class DisputeAboutNothing(Disputed):
    """The public part of a judged file names a record that is not in the log at its place."""

    def disputes(self) -> list[dict[str, Any]]:
        return [self.kept(self.receipt_file(replace(self.asked[4], salt=bytes(32))).to_json())]


def test_a_dispute_that_is_not_upheld_changes_nothing() -> None:
    class Open(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            return [self.dispute(self.asked[4])]

    for window, unjudged in ((Disputed(), 0), (Open(), 1)):
        items = window.items()
        outcome = audit(items, window)
        assert outcome.result == "PASS"
        assert outcome.check("disputes").status is Status.PASS
        assert names.response_name(window.asked[4].index) in items
        assert (outcome.counts["disputes"], outcome.counts["disputes_open"]) == (1, unjudged)
        told = any("Disputes that nobody judged" in text for text in outcome.not_covered)
        assert told is bool(unjudged)


def test_only_the_account_disputes_its_record() -> None:
    """A provider that made every receipt file signs with what keys it likes."""

    class NotBob(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            value = self.receipt_file(self.asked[4]).to_json()
            other_document(value)
            kept = self.kept(resigned(self, value))
            disputes = []
            alice = self.accounts["alice"]
            for pseudonym, key in (
                (alice.pseudonym, alice.dispute_key),  # not her record
                (self.accounts["bob"].pseudonym, alice.dispute_key),  # not his key
                (bytes(32), alice.dispute_key),  # no account
            ):
                dispute = Dispute.issue(key, pseudonym=pseudonym, receipt_file=kept["file"])
                disputes.append({**kept, "dispute": dispute.to_json()})
            return disputes

    window = NotBob()
    outcome = audit(window.items(), window)
    assert outcome.check("disputes").status is Status.PASS
    assert len([each for each in outcome.check("disputes").evidence if "dismissed" in each]) == 3


@pytest.mark.parametrize(
    "spoil", [other_document, other_text_in_both, not_what_was_selected, other_k, other_sketch]
)
def test_nobody_can_frame_the_provider_with_a_receipt(
    spoil: Callable[[dict[str, Any]], None],
) -> None:
    """What an account changed in its own receipt file is not what the provider signed."""
    window = Window()
    window.items()
    value = window.receipt_file(window.asked[4]).to_json()
    spoil(value)
    with pytest.raises(RagauditError):
        judge(value, WindowView(window.policy, window.opening), engine("core"))


def test_a_mangled_proof_in_a_dispute_is_not_the_providers() -> None:
    window = Window()
    window.items()
    value = window.receipt_file(window.asked[4]).to_json()
    value["public"]["proof"] = "nonsense"
    judged = judge(value, WindowView(window.policy, window.opening), engine("core"))
    assert not judged.upheld
    assert judged.public.proofs == (None,)


RESPONSE = "ragaudit/v1/response"

# --- 16: sampling -------------------------------------------------------------------------


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
    assert_caught(window, "sampling", reason)


def test_a_receipt_was_slipped_in_after_the_list() -> None:
    window = Window()
    items = window.items()
    listed = canonical_json.loads(items[names.RECEIPTS])
    late = window.receipt_file(window.asked[5]).public.to_json()
    items[names.RECEIPTS] = canonical_json.dumps([*listed, late])
    assert_caught(window, "sampling", "not the receipts at hand", items)


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


@pytest.mark.parametrize("kept", [0, 1])
def test_activations_that_were_never_released(kept: int) -> None:
    window = Window()
    items = window.items()
    released = canonical_json.loads(items[names.ACTIVATIONS])
    items[names.ACTIVATIONS] = canonical_json.dumps(released[:kept])
    assert_caught(window, "sampling", "not released", items)


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
    assert_caught(window, "sampling", reason, items)


def test_the_challenge_names_another_receipts_list() -> None:
    window = Window()
    items = window.items()
    listed = canonical_json.loads(items[names.RECEIPTS_LIST])
    other = signed_list(window, {**listed, "count": 3})
    items = rechallenged(window, items, receipts_list=other)
    assert_caught(window, "sampling", "another receipts list", items)


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
    assert_caught(window, "sampling", "not the one that the seed gives")


def test_a_sampled_record_is_not_answered() -> None:
    window = Window()
    items = window.items()
    del items[response_name(window.asked[2].index)]
    assert_caught(window, "sampling", "responses/6.bin is missing", items)


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
    assert_caught(window, "sampling", reason, items)


def test_a_response_whose_time_nobody_knows() -> None:
    window = Window()
    items = window.items()
    clock = canonical_json.loads(items[names.CLOCK])
    del clock["responses"]["6"]
    items[names.CLOCK] = canonical_json.dumps(clock)
    assert_caught(window, "sampling", "record 6: no time of its answer", items)
    items[names.CLOCK] = b"{}"
    assert_caught(window, "sampling", "clock.claims: missing member", items)


@pytest.mark.parametrize(
    ("cheat", "owner", "reason"),
    [
        (SignsWhatItDoesNotLog, "receipts", "record 4: signed for a record that is not in the log"),
        (SignsBeyondTheLog, "receipts", "record 99: signed for a record that is not in the log"),
        (SignsTwoAnswers, "receipts", "two different receipts"),
        (RefusesEarly, "refusals", "refused after 2 records"),
        (RefusesWithFalseCount, "refusals", "counts 4 queries .expected 2"),
        (DisputeAboutNothing, "receipts", "not in the log at that place"),
        (OtherPreimage, "sampling", "not the chain's preimage"),
        (Hidden, "sampling", "released twice"),
        (OverstatesCoverage, "sampling", "activation 2 covers"),
        (ReleasesEarly, "sampling", "before its instant"),
    ],
)
def test_a_rule_broken_once_is_caught_by_its_owner(
    cheat: type[Window], owner: str, reason: str
) -> None:
    assert_caught(cheat(), owner, reason)
