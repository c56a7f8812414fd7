"""Cheats before the window and in the log (checks 1 to 6): each fails its owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.tagged import enc
from ragaudit.lab.attacks.cheats.log import TwoCheckpoints
from ragaudit.lab.attacks.cheats.policy import CountersignedLate
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.opening import TenantIndex
from ragaudit.lab.scenario.policy import CLOSED, COUNTERSIGNED, INSTANTS, START
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.checkpoints import SplitView, verify_split_view
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey, parse_note
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.entries import Close, Opening
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Pins, Status, run_opening_checks
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.log_checks import split_views

use_cached_table()


def refused(window: Window, owner: str, reason: str, **changes: bytes) -> None:
    """The same defect, found before the countersignature, is a refusal."""
    fresh = type(window)(overrides=window.overrides)
    fresh.open()
    items = {**fresh.opening_items(), **changes}
    outcome = run_opening_checks(
        Evidence.of(items), engine=engine("core"), now=1000 * COUNTERSIGNED, pins=fresh.pins
    )
    assert outcome.result == "REFUSED"
    assert outcome.failed == (owner,)
    assert reason in outcome.check(owner).reason


# --- 1: policy ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({"top_k_max": 20}, "top_k_max is 20"),
        ({"estimator/hamming_threshold": 12}, "hamming_threshold is 12"),
        # 1/2 of 64 bits would be 21.33: one too many is as wrong as ten.
        ({"estimator/theta": "0.5", "estimator/hamming_threshold": 22}, "hamming_threshold is 22"),
    ],
)
def test_policies_that_do_not_fit_what_they_govern(overrides: dict[str, Any], reason: str) -> None:
    # A wide threshold links everybody; that is another check's.
    window = Window(overrides={**overrides, "coalition_max": 4})
    assert_caught(window, "policy", reason)
    refused(window, "policy", reason)


def test_a_countersignature_at_the_first_instant_is_too_late() -> None:
    window = CountersignedLate()
    window.at = INSTANTS[0]
    assert_caught(window, "policy", "too late")


def test_a_countersignature_that_the_verifier_did_not_make() -> None:
    window = Window()
    items = window.items()
    value = canonical_json.loads(items[names.COUNTERSIGNATURE])
    value["time"] += 1
    items[names.COUNTERSIGNATURE] = canonical_json.dumps(value)
    assert_caught(window, "policy", "does not verify", items)


@pytest.mark.parametrize("role", ["provider", "cosigner", "verifier", "verdict"])
def test_keys_other_than_the_pinned_ones(role: str) -> None:
    window = Window()
    other: Any = PrivateKey.from_seed(b"x" * 32).public
    if role == "cosigner":
        other = replace(window.cosigner_key.verifier_key, public=other)
    pins = replace(window.pins, **{role: other})
    assert_caught(window, "policy", f"another {role} key", pins=pins)


def test_a_policy_that_is_none_leaves_nothing_to_check() -> None:
    window = Window()
    items = {**window.items(), names.POLICY: b"{}"}
    outcome = audit(items, window)
    assert outcome.failed == ("policy",)
    assert all(c.needs == ("policy",) for c in outcome.checks if c.id != "policy")
    assert outcome.result == "FAIL"
    del items[names.POLICY]
    assert "missing" in audit(items, window, pins=Pins()).check("policy").reason


# --- 2: accounting ------------------------------------------------------------------------


def test_noise_that_does_not_give_what_is_promised() -> None:
    window = Window(overrides={"epsilon_acc": "1"})
    assert_caught(window, "accounting", "does not give epsilon 1 ")
    refused(window, "accounting", "does not give")


class Sparing(Window):
    """Enough noise for one account, none to speak of for two."""

    sigma = "0.667"


def test_a_coalition_without_a_finite_epsilon() -> None:
    window = Sparing(overrides={"epsilon_acc": "60"})
    outcome = assert_caught(window, "accounting", "no finite epsilon")
    assert outcome.check("epsilon").status is Status.NOT_RUN
    refused(window, "accounting", "no finite epsilon")


# --- 3: commitments -----------------------------------------------------------------------


class AltersOpening(Window):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.change: dict[str, Any] = {}

    def build_opening(self) -> Opening:
        return replace(super().build_opening(), **self.change)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"policy_digest": b"p" * 32}, "another policy"),
        ({"embedder_digest": b"e" * 32}, "another embedder"),
    ],
)
def test_an_opening_about_something_else(change: dict[str, Any], reason: str) -> None:
    window = AltersOpening()
    window.change = change
    assert_caught(window, "commitments", reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rows": 21}, "20 rows uploaded, 21 in the opening"),
        ({"index_root": b"r" * 32}, "root is not the opening's"),
        ({"proof_digest": b"d" * 32}, "proof is not the opening's"),
    ],
)
def test_an_opening_of_another_index(change: dict[str, Any], reason: str) -> None:
    class OtherIndex(Window):
        def build_opening(self) -> Opening:
            honest = super().build_opening()
            first = replace(honest.tenants[0], **change)
            return replace(honest, tenants=(first, *honest.tenants[1:]))

        def alter_record(self, account: Any, record: Any) -> Any:
            rows = change.get("rows", record.rows)
            return replace(record, rows=rows) if account.tenant == "acme" else record

    window = OtherIndex()
    assert_caught(window, "commitments", reason)


def test_an_opening_without_one_of_the_tenants() -> None:
    class Forgets(Window):
        def build_opening(self) -> Opening:
            honest = super().build_opening()
            return replace(honest, tenants=honest.tenants[:1])

    window = Forgets()
    assert_caught(window, "commitments", "tenants are not the policy's")


def test_an_index_of_another_dimension() -> None:
    class Narrow(Window):
        def build_index(self, tenant: str) -> TenantIndex:
            index = super().build_index(tenant)
            if tenant == "acme":
                index.commitment = replace(index.commitment, dimension=7)
            return index

    window = Narrow()
    assert_caught(window, "commitments", "index of acme: of ")


def test_another_index_is_uploaded_after_the_countersignature() -> None:
    window = Window()
    items = window.items()
    other = Window(seed=2)
    other.open()
    items[names.index_name("acme")] = other.indices["acme"].commitment.encode()
    assert_caught(window, "commitments", "root is not the opening's", items)


def test_another_opening_is_logged_than_was_countersigned() -> None:
    class Switches(Window):
        def play(self) -> None:
            super().play()
            self.countersigned = self.entries[0]

        def opening_items(self) -> dict[str, bytes]:
            items = super().opening_items()
            value = canonical_json.loads(items[names.OPENING])
            return {
                **items,
                names.OPENING: canonical_json.dumps({**value, "salt": "ab" * 32}),
            }

    window = Switches()
    assert_caught(window, "commitments", "another opening|countersigned opening")


def test_another_embedder_manifest() -> None:
    window = Window()
    items = {**window.items(), names.EMBEDDER: HashEmbedder(8, "other").manifest().encode()}
    assert_caught(window, "commitments", "another embedder manifest", items)
    items[names.EMBEDDER] = b"[]"
    assert_caught(window, "commitments", "not an embedder's manifest", items)


def test_the_log_was_not_empty() -> None:
    window = Window()
    items = {**window.items(), names.EMPTY_CHECKPOINT: window.sign_head(window.tree).encode()}
    assert_caught(window, "commitments", "of a log of 14 entries", items)


def test_the_empty_log_is_signed_by_somebody_else() -> None:
    window = Window()
    key = SigningKey(window.origin, ED25519, PrivateKey.from_seed(b"f" * 32))
    forged = window.sign_head(MemoryTree(), key).encode()
    items = {**window.items(), names.EMPTY_CHECKPOINT: forged}
    assert_caught(window, "commitments", "no signature of this key", items)


# --- 4: index argument --------------------------------------------------------------------


class LongRow(Window):
    """One row weighs more than B: its document moves scores by more than is accounted for."""

    def completed(self, tenant: str) -> np.ndarray[Any, np.dtype[np.int8]]:
        rows = super().completed(tenant)
        if tenant == "acme":
            rows[3, :] = 0
            rows[3, 0] = rows[3, 1] = 100
        return rows


def test_a_row_that_is_too_long() -> None:
    window = LongRow()
    outcome = assert_caught(window, "index-proof", "index of acme")
    assert outcome.check("selection").needs == ("index-proof",)
    refused(window, "index-proof", "index of acme")


class CopiedProof(Window):
    """beta's argument is a copy of acme's."""

    first: bytes | None = None

    def prove_index(self, *arguments: Any) -> bytes:
        if self.first is None:
            self.first = super().prove_index(*arguments)
        return self.first


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
    assert_caught(window, "log", reason, items)


@pytest.mark.parametrize("name", [names.RECORDS, names.LEAVES, names.ENTRIES])
def test_nothing_was_handed_over(name: str) -> None:
    window = Window()
    items = window.items()
    del items[name]
    assert_caught(window, "log", "missing", items)


def test_the_derived_items_are_of_another_log() -> None:
    window = Window()
    items = window.items()
    items[names.ENTRIES] = canonical_json.dumps(canonical_json.loads(items[names.ENTRIES])[:-1])
    assert_caught(window, "log", "not those that were handed over", items)


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
    assert_caught(window, "log", reason, items)


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
    assert_caught(window, "split-view", f"another log of {size} entries", items)
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
    assert_caught(window, "split-view", "15 entries, the final log has 14", items)


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
    assert_caught(window, "split-view", reason, items)


@pytest.mark.parametrize(
    ("cheat", "owner", "reason"),
    [
        (CopiedProof, "index-proof", "index of beta"),
        (MiscountsRecords, "log", "counts 7 records, the log has 8"),
        (ClosesElsewhere, "log", "another window"),
        (ClosesTwice, "log", "of kind close, out of order"),
        (OpensTwice, "log", "of kind opening, out of order"),
        (InventsAKind, "log", "not a known value"),
        (UnreadableRecord, "log", "bytes left over"),
        (ZeroK, "log", "top_k 0 out of range"),
        (RegistersAfterClose, "log", "the last entry is not the close"),
        (TwoCheckpoints, "split-view", "checkpoint in the receipt"),
    ],
)
def test_a_rule_broken_once_is_caught_by_its_owner(
    cheat: type[Window], owner: str, reason: str
) -> None:
    assert_caught(cheat(), owner, reason)
