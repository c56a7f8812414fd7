"""Cheats in the log (checks 5 to 8): each fails its owner, and passes without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey, parse_note
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.records import Close, Registration
from ragaudit.verifier import evidence as names
from window import CLOSED, START, Account, Window

use_cached_table()

# --- 5: log -------------------------------------------------------------------------------


def hand_over_again(window: Window, items: dict[str, bytes]) -> None:
    """What the verifier derives from another handover."""
    items[names.RECORDS] = window.handover()
    items[names.LEAVES] = b"".join(leaf_data(s, k, b) for k, s, b in window.entries)
    items[names.ENTRIES] = canonical_json.dumps(
        [
            {"index": i, "kind": kind, "salt": salt.hex(), "body": body.hex()}
            for i, (kind, salt, body) in enumerate(window.entries)
            if kind != "record"
        ]
    )


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
    hand_over_again(window, items)
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
    signed = sign_checkpoint(Checkpoint(window.origin, window.tree.head()), window.log_key)
    return signed.note.with_signatures([cosign(signed.note.text, forger, CLOSED)]).encode()


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
        self.tree = MemoryTree()
        self.append("close", Close(self.window, 0, 0, 0).encode())
        self.entries.append(opening)
        kind, salt, body = opening
        self.tree.append(leaf_data(salt, kind, body))


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
        (InventsAKind, "unknown kind"),
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


def forked(window: Window, size: int) -> MemoryTree:
    """Another log of ``size`` entries."""
    leaves = [leaf_data(salt, kind, body) for kind, salt, body in window.entries[: size - 1]]
    return MemoryTree([*leaves, b"f" * 32])


def note_of(window: Window, tree: MemoryTree, time: int) -> str:
    signed = sign_checkpoint(Checkpoint(window.origin, tree.head()), window.log_key)
    line = cosign(signed.note.text, window.cosigner_key, time)
    return signed.note.with_signatures([line]).encode().decode()


def test_the_cosigner_saw_another_log() -> None:
    window = Window()
    items = window.items()
    size, time, _ = window.checkpoints[1]
    notes = canonical_json.loads(items[names.CHECKPOINTS])
    notes[1] = note_of(window, forked(window, size), time)
    items[names.CHECKPOINTS] = canonical_json.dumps(notes)
    assert_caught(items, window, "split-view", f"another log of {size} entries")


def test_the_cosigner_saw_a_longer_log() -> None:
    window = Window()
    items = window.items()
    longer = MemoryTree([leaf_data(s, k, b) for k, s, b in window.entries])
    longer.append(b"m" * 32)
    notes = canonical_json.loads(items[names.CHECKPOINTS])
    notes.append(note_of(window, longer, CLOSED + 1))
    items[names.CHECKPOINTS] = canonical_json.dumps(notes)
    assert_caught(items, window, "split-view", "15 entries, the final log has 14")


class ShowsAccountAnotherLog(Window):
    """One account's receipt comes with a checkpoint that nobody else was shown."""

    def receipts(self) -> list[dict[str, Any]]:
        found = super().receipts()
        asked = self.asked[0]
        fork = MemoryTree([leaf_data(s, k, b) for k, s, b in self.entries[: asked.index]])
        fork.append(leaf_data(asked.salt, "record", asked.body))
        fork.append(b"f" * 32)
        checkpoint = note_of(self, fork, CLOSED).encode()
        proof = TlogProof(asked.index, fork.inclusion_proof(asked.index), checkpoint)
        found[0]["proof"] = proof.encode().decode()
        return found


def test_a_receipt_shows_another_log() -> None:
    window = ShowsAccountAnotherLog()
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


# --- 7: registrations ---------------------------------------------------------------------


class AltersRegistration(Window):
    name = "carol"

    def changed(self, body: Registration) -> Registration:
        return body

    def alter_registration(self, account: Account, body: Registration) -> Registration:
        return self.changed(body) if account.name == self.name else body


class SkipsSlots(AltersRegistration):
    def changed(self, body: Registration) -> Registration:
        return replace(body, slot=5)


class SharesASlot(AltersRegistration):
    def changed(self, body: Registration) -> Registration:
        return replace(body, slot=0)


class TooManyAccounts(Window):
    slots = 3


class RegistersTwice(Window):
    """One pseudonym in two slots has two series of noise to choose from."""

    def script(self) -> list[tuple[Any, ...]]:
        first, *rest = super().script()
        return [first, ("again", "alice"), *rest]

    def again(self, name: str) -> None:
        body = self.accounts[name].registration
        assert body is not None
        self.append("registration", replace(body, slot=1).encode())


class UnknownTenant(AltersRegistration):
    def changed(self, body: Registration) -> Registration:
        return replace(body, tenant="gamma")


class OtherWindow(AltersRegistration):
    def changed(self, body: Registration) -> Registration:
        return replace(body, window="w2")


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (SkipsSlots, "slot 5, expected 2"),
        (SharesASlot, "slot 0, expected 2"),
        (TooManyAccounts, "beyond the 3 slots"),
        (RegistersTwice, "is registered twice"),
        (UnknownTenant, "tenant gamma is not in the policy"),
        (OtherWindow, "another window"),
    ],
)
def test_registrations(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "registrations", reason)


# --- 8: counters --------------------------------------------------------------------------


class AltersRecord(Window):
    """The second record of bob, who is plain."""

    name, number = "bob", 1

    def changed(self, record: Any) -> Any:
        return record

    def alter_record(self, account: Account, record: Any) -> Any:
        chosen = account.name == self.name and account.queries == self.number
        return self.changed(record) if chosen else record


class RepeatsCounter(AltersRecord):
    """The same noise key for two queries of an account."""

    def changed(self, record: Any) -> Any:
        return replace(record, counter=0)


class SkipsCounter(AltersRecord):
    """P drew the noise of a query, did not like it and goes on with the next."""

    def changed(self, record: Any) -> Any:
        return replace(record, counter=2)


class OtherSlot(AltersRecord):
    def changed(self, record: Any) -> Any:
        return replace(record, slot=4)


class NoSuchSlot(AltersRecord):
    def changed(self, record: Any) -> Any:
        return replace(record, slot=7)


class TooManyQueries(Window):
    """Five answers for an account that has four."""

    def script(self) -> list[tuple[Any, ...]]:
        more = [("query", "bob", f"bob again {i}", 1, 82 + i) for i in range(3)]
        return [*super().script(), *more, ("checkpoint", 90)]


class TooManyAnchoredQueries(Window):
    def script(self) -> list[tuple[Any, ...]]:
        more = [("query", "alice", f"alice again {i}", 1, 82 + i) for i in range(2)]
        return [*super().script(), *more, ("checkpoint", 90)]


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (RepeatsCounter, "counter 0, expected 1"),
        (SkipsCounter, "counter 2, expected 1"),
        (OtherSlot, "slot 4, registered 1"),
        (NoSuchSlot, "slot 7, registered 1"),
        (TooManyQueries, "query 5 of an account that has 4"),
        (TooManyAnchoredQueries, "query 5 of an account that has 4"),
    ],
)
def test_counters(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "counters", reason)
