"""Cheats in the log (checks 5 and 6): each fails its owner, and passes without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.tagged import enc
from ragaudit.lab.attacks.cheats.log import TwoCheckpoints
from ragaudit.lab.scenario.policy import CLOSED, START
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.checkpoints import SplitView, verify_split_view
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey, parse_note
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.entries import Close
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.log_checks import split_views

use_cached_table()

# --- 5: log -------------------------------------------------------------------------------


def drop_last_record(window: Window) -> None:
    del window.entries[-2]
    window.sketches.pop(len(window.entries) - 1)


def change_a_body(window: Window) -> None:
    kind, salt, body = window.entries[4]
    window.entries[4] = (kind, salt, body[:-1] + bytes([body[-1] ^ 1]))


def change_a_salt(window: Window) -> None:
    kind, _, body = window.entries[4]
    window.entries[4] = (kind, b"s" * 32, body)


def swap_two(window: Window) -> None:
    window.entries[4], window.entries[5] = window.entries[5], window.entries[4]


def repeat_the_close(window: Window) -> None:
    window.entries.append(window.entries[-1])


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (drop_last_record, "13 entries handed over"),
        (change_a_body, "another root"),
        (change_a_salt, "another root"),
        (swap_two, "another root"),
        (repeat_the_close, "15 entries handed over"),
    ],
)
def test_a_handover_that_is_not_the_log(tamper: Callable[[Window], None], reason: str) -> None:
    window = Window()
    items = window.items()
    tamper(window)
    items.update(window.handed_over())
    assert_caught(items, window, "log", reason)


@pytest.mark.parametrize("name", [names.RECORDS, names.LEAVES, names.ENTRIES])
def test_nothing_was_handed_over(name: str) -> None:
    window = Window()
    items = window.items()
    del items[name]
    assert_caught(items, window, "log", "missing")


def test_the_derived_items_are_of_another_log() -> None:
    window = Window()
    items = window.items()
    items[names.ENTRIES] = canonical_json.dumps(canonical_json.loads(items[names.ENTRIES])[:-1])
    assert_caught(items, window, "log", "not those that were handed over")


def note_without_cosignature(window: Window) -> bytes:
    return window.sign_head(window.tree).encode()


def note_cosigned_by_somebody_else(window: Window) -> bytes:
    forger = SigningKey(window.cosigner_key.name, COSIGNATURE_V1, window.verifier_key)
    note = parse_note(window.sign_head(window.tree).encode())
    return note.with_signatures([cosign(note.text, forger, CLOSED)]).encode()


def note_not_signed_by_the_log(window: Window) -> bytes:
    note = parse_note(window.checkpoints[-1][2].encode())
    return replace(note, signatures=note.signatures[1:]).encode()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (note_without_cosignature, "cosigned by 0"),
        (note_cosigned_by_somebody_else, "cosigned by 0"),
        (note_not_signed_by_the_log, "no signature of this key"),
    ],
)
def test_a_final_checkpoint_that_somebody_did_not_sign(
    make: Callable[[Window], bytes], reason: str
) -> None:
    window = Window()
    items = window.items()
    items[names.FINAL_CHECKPOINT] = make(window)
    assert_caught(items, window, "log", reason)


class MiscountsRecords(Window):
    def alter_close(self, body: Close) -> Close:
        return replace(body, records=7)


class ClosesElsewhere(Window):
    def alter_close(self, body: Close) -> Close:
        return replace(body, window="w2")


class RegistersAfterClose(Window):
    def close(self) -> None:
        super().close()
        self.register("eve", "acme", False, CLOSED - START)
        self.checkpoints.pop()
        self.checkpoint(CLOSED - START)


class ClosesTwice(Window):
    def close(self) -> None:
        self.append("close", Close(self.window, 8, 1, 0).encode())
        super().close()


class OpensTwice(Window):
    def close(self) -> None:
        self.append("opening", self.opening.encode())
        super().close()


class NoOpening(Window):
    """Something else stands at index 0; the opening follows."""

    def open(self) -> None:
        super().open()
        opening = self.entries.pop()
        self.append("close", Close(self.window, 0, 0, 0).encode())
        self.entries.append(opening)
        self.log_again()


class InventsAKind(Window):
    def close(self) -> None:
        self.append("remark", b"")
        super().close()


class UnreadableRecord(Window):
    def encode_record(self, record: Any) -> bytes:
        return record.encode() + b"\0"

    def logged(self) -> list[Any]:
        return []

    def receipts(self) -> list[dict[str, Any]]:
        return []


class ZeroK(Window):
    """K = 0 is no record: nothing is selected, whatever the noise."""

    def encode_record(self, record: Any) -> bytes:
        body: bytes = record.encode()
        one, zero = (enc("x", record.rows, k)[-24:] for k in (record.top_k, 0))
        return body.replace(one, zero)

    def logged(self) -> list[Any]:
        return []

    def receipts(self) -> list[dict[str, Any]]:
        return []


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (MiscountsRecords, "counts 7 records, the log has 8"),
        (ClosesElsewhere, "another window"),
        (ClosesTwice, "of kind close, out of order"),
        (OpensTwice, "of kind opening, out of order"),
        (InventsAKind, "not a known value"),
        (UnreadableRecord, "bytes left over"),
        (ZeroK, "top_k 0 out of range"),
    ],
)
def test_a_log_that_is_not_in_order(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "log", reason)


def test_an_entry_after_the_close() -> None:
    window = RegistersAfterClose()
    assert_caught(window.items(), window, "log", "the last entry is not the close")


def test_the_opening_is_not_the_first_entry() -> None:
    # Both are true: entry 0 is not an opening, and not the countersigned one.
    window = NoOpening()
    outcome = audit(window.items(), window)
    assert outcome.failed == ("commitments", "log")
    assert "entry 0" in outcome.check("log").reason + str(outcome.check("log").evidence)


# --- 6: split view ------------------------------------------------------------------------


def test_the_cosigner_saw_another_log() -> None:
    window = Window()
    items = window.items()
    size, time, _ = window.checkpoints[1]
    notes = canonical_json.loads(items[names.CHECKPOINTS])
    notes[1] = window.cosigned(window.forked(size), time)
    items[names.CHECKPOINTS] = canonical_json.dumps(notes)
    assert_caught(items, window, "split-view", f"another log of {size} entries")
    # The evidence convicts the log before anybody who has its key (spec 6.8).
    context = Context(Evidence.of(items), engine=engine("core"), pins=window.pins)
    (fork,) = split_views(context)
    verify_split_view(SplitView.parse(fork.encode()), context.policy.keys.log)
    digest = sha256(fork.encode()).hexdigest()
    result = audit(items, window).check("split-view")
    assert any(digest in line for line in (result.reason, *result.evidence))


def test_the_cosigner_saw_a_longer_log() -> None:
    window = Window()
    items = window.items()
    longer = MemoryTree(window.leaves())
    longer.append(b"m" * 32)
    notes = canonical_json.loads(items[names.CHECKPOINTS])
    notes.append(window.cosigned(longer, CLOSED + 1))
    items[names.CHECKPOINTS] = canonical_json.dumps(notes)
    assert_caught(items, window, "split-view", "15 entries, the final log has 14")


def test_a_receipt_shows_another_log() -> None:
    window = TwoCheckpoints()
    assert_caught(window.items(), window, "split-view", "checkpoint in the receipt")


def test_nobody_can_frame_the_provider_with_a_proof() -> None:
    """Proofs are not signed: one that is mangled, or of another log's key, proves nothing."""

    class Framed(Window):
        def receipts(self) -> list[dict[str, Any]]:
            found = super().receipts()
            found[0]["proof"] = "nonsense"
            other = Window(seed=9)
            other.play()
            found[1]["proof"] = other.proof_for(4).encode().decode()
            proof = TlogProof.parse(found[2]["proof"].encode())
            mangled = replace(proof, path=(b"x" * 32, *proof.path[1:]))
            found[2]["proof"] = mangled.encode().decode()
            return found

    window = Framed()
    assert audit(window.items(), window).result == "PASS"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda notes: notes[::-1], "sizes do not rise"),
        (lambda notes: ["x", *notes], "not a checkpoint|no signature"),
        (lambda notes: [1, *notes], "not a note"),
        (lambda notes: {}, "not a list"),
    ],
)
def test_a_checkpoint_store_that_is_none(change: Callable[[Any], Any], reason: str) -> None:
    window = Window()
    items = window.items()
    notes = canonical_json.loads(items[names.CHECKPOINTS])
    items[names.CHECKPOINTS] = canonical_json.dumps(change(notes))
    assert_caught(items, window, "split-view", reason)
