"""A receipt of a generated answer against its log: charge or answer missing (spec 6.11)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from generation_scene import (
    ANSWERED,
    CHARGED,
    SIZE,
    closing,
    generation_scene,
    log_of,
    signed,
    words_policy,
)
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.ledger.errors import NoteRejected, ProofRejected, ReceiptRejected
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.entries import Close
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.missing import LogShown, MissingEntry, read_missing

POLICY = words_policy(keywords=True)
RECEIPT = generation_scene().receipt()
LEAVES = {entry.index: entry.leaf_data(kind) for kind, entry in RECEIPT.entries}


def log_without(*missing: int, size: int = SIZE) -> MemoryTree:
    """A log that has the receipt's entries but for these."""
    return log_of({at: leaf for at, leaf in LEAVES.items() if at not in missing}, size)


def closed(size: int) -> tuple[MemoryTree, Entry]:
    """A log with the receipt's entries that ended with so many entries."""
    salt, body = closing()
    tree = log_without(size=size - 1)
    tree.append(leaf_data(salt, Close.KIND, body))
    return tree, Entry(size - 1, Close.KIND, salt, body)


def found(tree: MemoryTree, last: Entry | None = None) -> MissingEntry | None:
    return MissingEntry.find(generation_scene().file().public, signed(tree), tree, last)


@pytest.mark.parametrize(
    ("missing", "kind", "index"),
    [((CHARGED,), "charge", 3), ((ANSWERED,), "answer", 5), ((CHARGED, ANSWERED), "charge", 3)],
)
def test_an_entry_that_the_log_has_not_is_proven_missing(
    missing: tuple[int, ...], kind: str, index: int
) -> None:
    tree = log_without(*missing)
    proof = found(tree)
    assert proof is not None
    assert (proof.entry, proof.index) == (kind, index)
    # What arrives is what is judged, with the policy and nothing else.
    again = read_missing(proof.encode())
    assert again == proof
    assert again.verify(POLICY).head == tree.head()
    # Nobody signed the inclusion proofs of the receipt, nor are they of the same log.
    assert [entry.proof for _, entry in again.receipt.entries] == [None, None]


def test_a_log_that_ended_before_the_answer_is_proof_too() -> None:
    tree, last = closed(ANSWERED)
    proof = found(tree, last)
    assert proof is not None
    assert (proof.entry, proof.shown.leaf) == ("answer", None)
    read_missing(proof.encode()).verify(POLICY)
    # Without its close entry it may still grow to the answer.
    assert found(tree) is None
    assert found(tree, Entry(1, Close.KIND, last.salt, last.body)) is None


def test_entries_in_their_places_are_not_missing() -> None:
    assert found(log_without()) is None


def lying(**changes: Any) -> Callable[[], MissingEntry]:
    def made() -> MissingEntry:
        proof = found(log_without(ANSWERED))
        assert proof is not None
        shown = {name: changes.pop(name) for name in LogShown.FORMS if name in changes}
        return replace(proof, shown=replace(proof.shown, **shown), **changes)

    return made


def there() -> MissingEntry:
    tree = log_without()
    shown = LogShown(
        signed(tree).encode(), tree.inclusion_proof(ANSWERED), tree.subtree_hash(0, ANSWERED)
    )
    return MissingEntry(RECEIPT, shown, "answer")


LIES: dict[str, tuple[Callable[[], MissingEntry], type[RagauditError], str]] = {
    "the same leaf": (there, ProofRejected, "where its receipt says"),
    "the other entry": (lying(entry="charge"), ProofRejected, "another root"),
    "a receipt that somebody else signed": (
        lying(receipt=replace(RECEIPT, signature=bytes(64))), ReceiptRejected, "signature",
    ),
    "a receipt with the answer moved": (
        lying(receipt=replace(RECEIPT, answer=replace(RECEIPT.answer, index=6))),
        ReceiptRejected, "signature",
    ),
    "a receipt of another log": (
        lying(receipt=replace(RECEIPT, origin="other.example/log")), ReceiptRejected, "another log",
    ),
    "a leaf that is not there": (lying(leaf=bytes(32)), ProofRejected, "another root"),
    "a log that may go on": (
        lying(checkpoint=signed(log_without(size=4)).encode()), ProofRejected, "has 4 entries",
    ),
}  # fmt: skip


@for_each("lie", LIES)
def test_a_false_accusation_is_rejected(lie: str) -> None:
    made, kind, words = LIES[lie]
    proof = MissingEntry.parse(made().encode())
    with pytest.raises(kind, match=words):
        proof.verify(POLICY)


def test_the_keys_are_those_of_the_policy() -> None:
    proof = lying()()
    keys = POLICY.keys
    other = replace(POLICY, keys=replace(keys, provider=keys.verifier))
    with pytest.raises(ReceiptRejected, match="signature"):
        proof.verify(other)
    with pytest.raises(NoteRejected):
        proof.verify(replace(POLICY, keys=replace(keys, log=keys.cosigner)))


@for_each(
    "change",
    [
        {"leaf": None},
        {"receipt": generation_scene().file().public.to_json()},
    ],
)  # fmt: skip
def test_another_form_is_malformed(change: dict[str, Any]) -> None:
    value = {**lying()().to_json(), **change}
    with pytest.raises(MalformedError):
        read_missing(canonical_json.dumps(value))
