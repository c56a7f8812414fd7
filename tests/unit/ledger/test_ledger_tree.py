"""RFC 6962 trees against the recursive text of the RFC, shared vectors and pymerkle."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymerkle import InmemoryTree
from ragaudit.ledger.errors import MalformedProof, ProofRejected
from ragaudit.ledger.log.tree import (
    _BLOCK_LEAVES,
    EMPTY_ROOT,
    MemoryTree,
    TreeHead,
    consistency_proof_length,
    inclusion_proof_length,
    leaf_hash,
    node_hash,
    root,
    verify_consistency,
    verify_inclusion,
)

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ledger.json").read_text("utf-8"))
LIMIT = 130


def largest_power_below(n: Any) -> Any:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


class Rfc:
    """RFC 6962 §2.1, word for word, over the range [a, b) of the leaves; roots remembered."""

    def __init__(self, leaves: Any) -> None:
        self.leaves = leaves
        self.roots: dict[Any, Any] = {}

    def mth(self, a: Any, b: Any) -> Any:
        if (a, b) not in self.roots:
            self.roots[a, b] = self._mth(a, b)
        return self.roots[a, b]

    def _mth(self, a: Any, b: Any) -> Any:
        if a == b:
            return hashlib.sha256(b"").digest()
        if b - a == 1:
            return hashlib.sha256(b"\x00" + self.leaves[a]).digest()
        k = largest_power_below(b - a)
        return hashlib.sha256(b"\x01" + self.mth(a, a + k) + self.mth(a + k, b)).digest()

    def path(self, m: Any, a: Any, b: Any) -> Any:
        if b - a == 1:
            return []
        k = largest_power_below(b - a)
        if m < k:
            return [*self.path(m, a, a + k), self.mth(a + k, b)]
        return [*self.path(m - k, a + k, b), self.mth(a, a + k)]

    def proof(self, m: Any, n: Any) -> Any:
        return self.subproof(m, 0, n, True)

    def subproof(self, m: Any, a: Any, b: Any, whole: Any) -> Any:
        if m == b - a:
            return [] if whole else [self.mth(a, b)]
        k = largest_power_below(b - a)
        if m <= k:
            return [*self.subproof(m, a, a + k, whole), self.mth(a + k, b)]
        return [*self.subproof(m - k, a + k, b, False), self.mth(a, a + k)]


@pytest.fixture(scope="module")
def rfc() -> Rfc:
    return Rfc([f"leaf {i}".encode() for i in range(LIMIT)])


@pytest.fixture(scope="module")
def tree(rfc: Any) -> MemoryTree:
    return MemoryTree(rfc.leaves)


def test_certificate_transparency_roots() -> None:
    leaves = [bytes.fromhex(leaf) for leaf in VECTORS["ct_leaves"]]
    for size, expected in enumerate(VECTORS["ct_roots"], start=1):
        assert root(leaves[:size]).hex() == expected


def test_empty_tree_hashes_the_empty_string() -> None:
    assert root([]) == EMPTY_ROOT == hashlib.sha256(b"").digest()


def test_roots_equal_the_rfc_text(rfc: Any, tree: Any) -> None:
    for size in range(LIMIT + 1):
        assert tree.root(size) == rfc.mth(0, size)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=6))
def test_a_tree_that_grows_in_blocks_is_the_tree_that_grows_leaf_by_leaf(blocks: Any) -> None:
    grown, single, count = MemoryTree(), MemoryTree(), 0
    for block in blocks:
        leaves = [bytes([number]) for number in range(count, count + block)]
        grown.extend(leaves)
        assert [single.append(leaf) for leaf in leaves] == [*range(count, count + block)]
        count += block
        assert grown.head() == single.head()
    for index in range(count):
        assert grown.inclusion_proof(index) == single.inclusion_proof(index)


def test_a_block_that_is_hashed_at_a_time_ends_nowhere_in_a_tree() -> None:
    leaves = [number.to_bytes(2, "big") for number in range(2 * _BLOCK_LEAVES + 3)]
    assert root(leaves) == Rfc(leaves).mth(0, len(leaves))


def test_inclusion_proofs_equal_the_rfc_text_and_verify(rfc: Any, tree: Any) -> None:
    for size in range(1, LIMIT + 1):
        head = tree.head(size)
        for index in range(size):
            proof = tree.inclusion_proof(index, size)
            assert list(proof) == rfc.path(index, 0, size)
            assert len(proof) == inclusion_proof_length(index, size)
            verify_inclusion(leaf=leaf_hash(rfc.leaves[index]), index=index, head=head, proof=proof)


def test_consistency_proofs_equal_the_rfc_text_and_verify(rfc: Any, tree: Any) -> None:
    for new in range(1, LIMIT + 1):
        for old in range(1, new + 1):
            proof = tree.consistency_proof(old, new)
            assert list(proof) == rfc.proof(old, new)
            assert len(proof) == consistency_proof_length(old, new)
            verify_consistency(old=tree.head(old), new=tree.head(new), proof=proof)


def test_every_tree_continues_the_empty_one(tree: Any) -> None:
    verify_consistency(old=TreeHead(0, EMPTY_ROOT), new=tree.head(7), proof=())
    verify_consistency(old=TreeHead(0, EMPTY_ROOT), new=TreeHead(0, EMPTY_ROOT), proof=())
    with pytest.raises(MalformedProof):
        verify_consistency(old=TreeHead(0, EMPTY_ROOT), new=tree.head(7), proof=(bytes(32),))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=70), st.data())
def test_roots_and_inclusion_paths_equal_pymerkle(leaves: Any, data: Any) -> None:
    oracle = InmemoryTree(algorithm="sha256")
    for leaf in leaves:
        oracle.append_entry(leaf)
    tree = MemoryTree(leaves)
    size = data.draw(st.integers(1, len(leaves)))
    index = data.draw(st.integers(0, size - 1))
    assert tree.root(size) == oracle.get_root(size)
    # Its paths begin with the leaf itself and its indices with 1.
    assert list(tree.inclusion_proof(index, size)) == list(
        oracle.prove_inclusion(index + 1, size).path[1:]
    )


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 300), st.data())
def test_any_change_to_an_inclusion_proof_is_rejected(size: Any, data: Any) -> None:
    tree = MemoryTree(i.to_bytes(2, "big") for i in range(size))
    index = data.draw(st.integers(0, size - 1))
    leaf, head = leaf_hash(index.to_bytes(2, "big")), tree.head()
    proof = tree.inclusion_proof(index)
    position = data.draw(st.integers(0, len(proof) - 1))
    bit = data.draw(st.integers(0, 255))
    changed = bytearray(proof[position])
    changed[bit // 8] ^= 1 << bit % 8
    forged = [*proof[:position], bytes(changed), *proof[position + 1 :]]
    with pytest.raises(ProofRejected):
        verify_inclusion(leaf=leaf, index=index, head=head, proof=forged)
    with pytest.raises(ProofRejected):
        verify_inclusion(leaf=leaf_hash(b"other"), index=index, head=head, proof=proof)
    other = data.draw(st.integers(0, size - 1).filter(lambda i: i != index))
    with pytest.raises((ProofRejected, MalformedProof)):
        verify_inclusion(leaf=leaf, index=other, head=head, proof=proof)


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 300), st.data())
def test_any_change_to_a_consistency_proof_is_rejected(size: Any, data: Any) -> None:
    tree = MemoryTree(i.to_bytes(2, "big") for i in range(size))
    old_size = data.draw(st.integers(1, size - 1))
    old, new = tree.head(old_size), tree.head()
    proof = tree.consistency_proof(old_size)
    position = data.draw(st.integers(0, len(proof) - 1))
    bit = data.draw(st.integers(0, 255))
    changed = bytearray(proof[position])
    changed[bit // 8] ^= 1 << bit % 8
    forged = [*proof[:position], bytes(changed), *proof[position + 1 :]]
    with pytest.raises(ProofRejected):
        verify_consistency(old=old, new=new, proof=forged)
    for wrong in (proof[:-1], (*proof, bytes(32)), ()):
        with pytest.raises(MalformedProof):
            verify_consistency(old=old, new=new, proof=wrong)
    with pytest.raises(ProofRejected):
        verify_consistency(old=TreeHead(old_size, bytes(32)), new=new, proof=proof)
    with pytest.raises(ProofRejected):
        verify_consistency(old=old, new=TreeHead(size, bytes(32)), proof=proof)


def test_a_changed_early_leaf_has_no_consistency_proof() -> None:
    honest, forked = MemoryTree(b"%d" % i for i in range(9)), MemoryTree([b"x"])
    for i in range(1, 20):
        forked.append(b"%d" % i)
    with pytest.raises(ProofRejected, match="older root"):
        verify_consistency(old=honest.head(), new=forked.head(), proof=forked.consistency_proof(9))


def test_same_size_other_root_is_rejected(tree: Any) -> None:
    with pytest.raises(ProofRejected, match="two roots"):
        verify_consistency(old=TreeHead(7, bytes(32)), new=tree.head(7), proof=())


def test_an_older_tree_that_is_larger_is_refused(tree: Any) -> None:
    with pytest.raises(MalformedProof, match="larger"):
        verify_consistency(old=tree.head(8), new=tree.head(7), proof=())


@pytest.mark.parametrize("index", [-1, 7, 2**64])
def test_a_leaf_outside_the_tree_is_refused(tree: Any, index: Any) -> None:
    with pytest.raises(MalformedProof, match="no such leaf"):
        verify_inclusion(leaf=bytes(32), index=index, head=tree.head(7), proof=())
    with pytest.raises(MalformedProof, match="no such leaf"):
        tree.inclusion_proof(index, 7)


def test_hashes_must_have_32_bytes(tree: Any) -> None:
    proof = tree.inclusion_proof(3, 7)
    leaf = leaf_hash(b"leaf 3")
    with pytest.raises(MalformedProof, match="wrong length"):
        verify_inclusion(leaf=leaf[:31], index=3, head=tree.head(7), proof=proof)
    with pytest.raises(MalformedProof, match="wrong length"):
        verify_inclusion(leaf=leaf, index=3, head=tree.head(7), proof=(proof[0] + b"x", *proof[1:]))
    path = tree.consistency_proof(3, 7)
    for wrong in (path[0][:31], path[0] + b"x"):
        with pytest.raises(MalformedProof, match="wrong length"):
            verify_consistency(old=tree.head(3), new=tree.head(7), proof=(wrong, *path[1:]))
    with pytest.raises(MalformedProof, match="wrong length"):
        TreeHead(3, b"short")
    with pytest.raises(MalformedProof, match="wrong length"):
        MemoryTree().append_hash(b"short")


def test_an_inclusion_proof_cannot_be_stretched(tree: Any) -> None:
    proof = tree.inclusion_proof(3, 7)
    for wrong in (proof[:-1], (*proof, bytes(32))):
        with pytest.raises(MalformedProof, match="hashes"):
            verify_inclusion(leaf=leaf_hash(b"leaf 3"), index=3, head=tree.head(7), proof=wrong)


def test_a_node_does_not_pass_for_a_leaf() -> None:
    # Without the prefixes the root of [a, b] would be the leaf a||b of a tree of one.
    a, b = leaf_hash(b"a"), leaf_hash(b"b")
    assert leaf_hash(a + b) != node_hash(a, b)


@pytest.mark.parametrize("size", [-1, 2**63])
def test_tree_heads_have_a_size_in_range(size: Any) -> None:
    with pytest.raises(MalformedProof):
        TreeHead(size, EMPTY_ROOT)


def test_an_empty_tree_has_no_root_of_its_own() -> None:
    with pytest.raises(MalformedProof, match="empty tree"):
        TreeHead(0, bytes(32))


def test_sizes_that_the_tree_does_not_have_are_refused(tree: Any) -> None:
    for call in (tree.root, tree.head):
        with pytest.raises(MalformedProof, match="no such size"):
            call(LIMIT + 1)
    for sizes in ((0, 5), (6, 5), (5, LIMIT + 1)):
        with pytest.raises(MalformedProof):
            tree.consistency_proof(*sizes)
