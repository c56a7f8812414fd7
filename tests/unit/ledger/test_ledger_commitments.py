"""Merkle commitments to indices and noise keys, against the formulas written out."""

import hashlib
import hmac
from dataclasses import replace
from typing import Any

import pytest
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.tagged import decode, enc
from ragaudit.ledger.errors import CommitmentRejected, MalformedProof, MalformedRecord
from ragaudit.ledger.log.tree import MemoryTree, root
from ragaudit.ledger.messages.commitments import (
    IndexCommitment,
    IndexTree,
    KeyOpening,
    SeedCommitment,
    content_digest,
    counter_key,
    index_leaves,
    index_root,
    row_digest,
    slot_key,
    verify_index_row,
    verify_key_opening,
)
from receipt_scene import policy

SECRET = b"\x07" * 32


def sha(tag: Any, *fields: Any) -> Any:
    return hashlib.sha256(enc(tag, *fields)).digest()


def mac(key: Any, *fields: Any) -> Any:
    return hmac.new(key, enc(*fields), "sha256").digest()


# --- index

ROWS = 11
POINTS = [hashlib.sha256(b"point %d" % i).digest() for i in range(ROWS)]
DIGESTS = [
    row_digest(hashlib.sha256(b"salt %d" % i).digest(), f"doc-{i}", content_digest(f"text {i}"))
    for i in range(ROWS)
]
INDEX = IndexCommitment("w1", "alpha", 1, 256, b"".join(POINTS), b"".join(DIGESTS), b"proof")


def test_the_index_root_is_the_formula() -> None:
    assert content_digest("text") == sha("ragaudit/v1/content", "text", "")
    assert row_digest(SECRET, "doc", bytes(32)) == sha("ragaudit/v1/row", SECRET, "doc", bytes(32))
    leaves = [
        enc("ragaudit/v1/index/leaf", point, b"{}", digest)
        for point, digest in zip(POINTS, DIGESTS, strict=True)
    ]
    assert INDEX.root == root(leaves) == index_root(INDEX.commitments, INDEX.row_digests)
    assert INDEX.proof_digest == sha("ragaudit/v1/index/proof", b"proof")


def test_every_row_has_a_path() -> None:
    tree = IndexTree(INDEX.commitments, INDEX.row_digests)
    assert tree.root == INDEX.root
    for i in range(ROWS):
        row: dict[str, Any] = {"commitment": POINTS[i], "row": DIGESTS[i], "path": tree.path(i)}
        verify_index_row(root=INDEX.root, rows=ROWS, position=i, **row)
        for change in (
            {"commitment": POINTS[i - 1]},
            {"row": DIGESTS[i - 1]},
            {"path": [bytes(32)] * len(row["path"])},
        ):
            with pytest.raises(CommitmentRejected, match="not the committed"):
                verify_index_row(root=INDEX.root, rows=ROWS, position=i, **(row | change))
        with pytest.raises((CommitmentRejected, MalformedProof)):
            verify_index_row(root=INDEX.root, rows=ROWS, position=(i + 1) % ROWS, **row)
        with pytest.raises(MalformedProof):
            verify_index_row(root=INDEX.root, rows=ROWS, position=ROWS, **row)
        with pytest.raises(MalformedRecord):
            verify_index_row(root=INDEX.root, rows=ROWS, position=i, **(row | {"row": b"x"}))


def test_the_handed_over_index_round_trips() -> None:
    assert IndexCommitment.parse(INDEX.encode()) == INDEX
    f = decode("ragaudit/v1/index/commitment", INDEX.encode(), 9)
    assert f[3:6] == ((11).to_bytes(8, "little"), (256).to_bytes(8, "little"), b"".join(POINTS))
    assert f[6] == b""
    for wrong in (b"", INDEX.encode()[:-1], INDEX.encode() + b"\0"):
        with pytest.raises(MalformedRecord):
            IndexCommitment.parse(wrong)
    for place, value in (
        (0, b"W"),
        (1, b"Alpha"),
        (2, bytes(8)),
        (3, (12).to_bytes(8, "little")),
        (3, b""),
        (4, bytes(8)),
        (5, f[5][:-1]),
        (5, b""),
        (7, f[7] + bytes(32)),
    ):
        changed = [*f[:place], value, *f[place + 1 :]]
        with pytest.raises(MalformedRecord):
            IndexCommitment.parse(enc("ragaudit/v1/index/commitment", *changed))
    for cut in (b"columns", b"\x02\0\0", b"\x02\0\0\0{}" * (ROWS - 1) + b"\x04\0\0\0null"[:-1]):
        with pytest.raises(MalformedRecord, match="columns cut off"):
            columns = [*f[:6], cut, *f[7:]]
            IndexCommitment.parse(enc("ragaudit/v1/index/commitment", *columns))


def test_leaves_have_columns_of_all_rows_or_of_none() -> None:
    for texts in (("{}",) * (ROWS - 1), ("{}",) * (ROWS + 1)):
        with pytest.raises(MalformedRecord, match="columns of"):
            index_root(INDEX.commitments, INDEX.row_digests, texts)


def test_columns_are_in_the_leaves_and_the_policy_declares_them() -> None:
    texts = ("{}",) * (ROWS - 1) + ('{"year":2026}',)
    with_columns = replace(INDEX, columns=texts)
    assert IndexCommitment.parse(with_columns.encode()) == with_columns
    assert with_columns.root != INDEX.root
    with pytest.raises(MalformedRecord, match="undeclared"):
        with_columns.column_values(policy())


def test_row_ids_and_digests_are_checked() -> None:
    for salt, name, content in (
        (b"x", "a", bytes(32)),
        (SECRET, "", bytes(32)),
        (SECRET, "a", b""),
    ):
        with pytest.raises(MalformedRecord):
            row_digest(salt, name, content)
    for points, digests in ((b"", b""), (bytes(32), bytes(64)), (bytes(33), bytes(32))):
        with pytest.raises(MalformedRecord):
            index_root(points, digests)


# --- noise keys

SLOTS, QUERIES = 5, 7
PLACE = {"epoch": 1, "slots": SLOTS, "queries": QUERIES}


@pytest.fixture(scope="module")
def seeds() -> Any:
    return SeedCommitment.build(SECRET, "w1", 1, SLOTS, QUERIES)


def test_c_seed_is_the_formula(seeds: Any) -> None:
    slot_roots = []
    for i in range(SLOTS):
        of_slot = mac(SECRET, "ragaudit/v1/seed/slot", "w1", 1, i)
        assert slot_key(SECRET, "w1", 1, i) == of_slot
        leaves = []
        for c in range(QUERIES):
            key = mac(of_slot, "ragaudit/v1/seed/counter", c)
            assert counter_key(of_slot, c) == key
            leaves.append(sha("ragaudit/v1/key", 1, i, c, key))
        slot_roots.append(root(leaves))
    assert seeds.root == MemoryTree(slot_roots).root()
    assert seeds.slot_roots == b"".join(slot_roots)
    again = SeedCommitment(SECRET, "w1", 1, seeds.slot_roots, QUERIES)
    assert again.root == seeds.root
    assert again.open(2, 3) == seeds.open(2, 3)


def test_every_key_opens(seeds: Any) -> None:
    for slot in range(SLOTS):
        for counter in range(QUERIES):
            opening = seeds.open(slot, counter)
            assert opening.key == counter_key(slot_key(SECRET, "w1", 1, slot), counter)
            verify_key_opening(
                root=seeds.root, slot=slot, counter=counter, opening=opening, **PLACE
            )


def test_other_keys_do_not_open(seeds: Any) -> None:
    opening, other = seeds.open(2, 3), seeds.open(2, 4)
    good = {"root": seeds.root, "slot": 2, "counter": 3, "opening": opening} | PLACE
    verify_key_opening(**good)
    for change in (
        {"opening": replace(opening, key=other.key)},
        {"opening": other},
        {"opening": replace(opening, slot_path=seeds.open(1, 3).slot_path)},
        {"root": bytes(32)},
        {"epoch": 2},
        {"counter": 2},
        {"slot": 3},
    ):
        with pytest.raises(CommitmentRejected):
            verify_key_opening(**(good | change))
    for change in (
        {"opening": replace(opening, key=b"short")},
        {"opening": replace(opening, counter_path=opening.counter_path[:-1])},
        {"opening": replace(opening, slot_path=(*opening.slot_path, bytes(32)))},
        {"counter": QUERIES},
        {"slot": SLOTS},
        {"slot": -1},
    ):
        with pytest.raises(MalformedError):
            verify_key_opening(**(good | change))


def test_a_slot_tree_does_not_pass_for_the_tree_of_slots() -> None:
    # With one slot of one key the two trees would coincide if the leaf of a slot were its root.
    seeds = SeedCommitment.build(SECRET, "w1", 1, 1, 1)
    opening = seeds.open(0, 0)
    verify_key_opening(
        root=seeds.root, epoch=1, slot=0, counter=0, slots=1, queries=1, opening=opening
    )
    assert seeds.root != seeds.slot_roots


def test_keys_are_not_shown(seeds: Any) -> None:
    key = seeds.open(0, 0)
    for shown in (repr(key), repr(seeds)):
        assert key.key.hex() not in shown
        assert repr(key.key) not in shown
        assert repr(SECRET) not in shown
    assert isinstance(key, KeyOpening)


def test_building_can_be_watched_and_cancelled() -> None:
    shares: list[Any] = []
    SeedCommitment.build(SECRET, "w1", 1, 4, 2, progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]
    with pytest.raises(RefusedError, match="cancelled"):
        SeedCommitment.build(SECRET, "w1", 1, 4, 2, progress=lambda share: share < 0.5)


@pytest.mark.parametrize(
    ("secret", "slots", "queries"),
    [(b"short", 1, 1), (SECRET, 0, 1), (SECRET, 1, 0), (SECRET, 1_000_001, 1)],
)
def test_seed_commitments_are_in_range(secret: Any, slots: Any, queries: Any) -> None:
    with pytest.raises(MalformedRecord):
        SeedCommitment.build(secret, "w1", 1, slots, queries)


def test_paths_are_those_of_a_tree_that_grows() -> None:
    for rows in [*range(1, 35), 64, 65, 100]:
        one, two = (b"".join(bytes([i, part]) * 16 for i in range(rows)) for part in (1, 2))
        tree, slow = IndexTree(one, two), MemoryTree(index_leaves(one, two))
        assert tree.root == slow.root(), rows
        assert [tree.path(i) for i in range(rows)] == [slow.inclusion_proof(i) for i in range(rows)]
