"""Cheats in answers that accounts dispute (check 15): each fails its owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.disputes import Dispute, Finding, file_digest
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure import Status
from ragaudit.verifier.procedure.statement_checks import judge

use_cached_table()

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


def resigned(window: Window, value: dict[str, Any]) -> dict[str, Any]:
    """The provider signs whatever stands in a receipt file."""
    parts = [canonical_json.dumps(value[name]) for name in ("request", "answer", "private")]
    digest = structure("answer", bytes.fromhex(value["private"]["salt_r"]), *parts)
    public = PublicReceipt.from_json(value["public"])
    signed = PublicReceipt(
        origin=public.origin,
        index=public.index,
        salt=public.salt,
        body=public.body,
        issued=public.issued,
        answer_digest=digest,
    ).signed(window.provider_key)
    return {**value, "public": signed.to_json()}


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
    assert_caught(window.items(), window, "disputes", reason)


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
    assert_caught(window.items(), window, "disputes", "upheld by the arbiter: step 8")


def test_a_step_that_nothing_shows() -> None:
    class Cheats(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            file = self.receipt_file(self.asked[4]).to_json()
            return [self.dispute(self.asked[4], file, step=8)]

    window = Cheats()
    assert_caught(window.items(), window, "disputes", "step 8 is said to fail")


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


def test_a_disputed_file_is_a_receipt_like_any_other() -> None:
    window = DisputeAboutNothing()
    assert_caught(window.items(), window, "receipts", "not in the log at that place")


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
