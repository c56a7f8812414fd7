"""The Merkle tree of RFC 6962 §2.1: hashes, roots, proofs and their verification.

Generation works over any `HashSource`, which yields the hash of a complete, aligned subtree:
a list in memory (`MemoryTree`), or tiles (`tiles.TileHashSource`). Verification follows
RFC 9162 §2.1.3.2 and §2.1.4.2 and raises; the length that a proof must have is computed from
the index and the sizes, never taken from the proof.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Protocol

from ragaudit.ledger.errors import MalformedProof, ProofRejected

HASH_BYTES = 32
MAX_TREE_SIZE = 2**63 - 1  # a database BIGINT; also bounds every proof to 63 hashes
EMPTY_ROOT = hashlib.sha256(b"").digest()
_LEVELS = MAX_TREE_SIZE.bit_length() + 1
_BLOCK_LEAVES = 4096  # hashed at a time


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf with content ``data``: SHA-256(0x00 || data), RFC 6962 §2.1.

    Args:
        data: the leaf's content; for our logs the 32 bytes of leaf data of spec 5.7.
    """
    # The prefixes keep leaves and nodes apart: without them, 64 bytes of leaf data could be two
    # hashes, and an interior node would pass for an entry.
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an interior node: SHA-256(0x01 || left || right), RFC 6962 §2.1.

    Args:
        left, right: hashes of the two subtrees, 32 bytes each.
    """
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(frozen=True, slots=True)
class TreeHead:
    """Size and root of a tree. An empty tree has the root SHA-256("").

    Attributes:
        size: number of leaves, 0..2^63-1.
        root_hash: 32 bytes.

    Raises:
        MalformedProof: a size or root that no tree has.
    """

    size: int
    root_hash: bytes

    def __post_init__(self) -> None:
        if not 0 <= self.size <= MAX_TREE_SIZE:
            raise MalformedProof("tree size out of range", expected=f"0..{MAX_TREE_SIZE}")
        _check_hashes((self.root_hash,), "tree head")
        # Every tree continues the empty one without a proof: a root of its own would be a head that
        # nothing contradicts.
        if self.size == 0 and self.root_hash != EMPTY_ROOT:
            raise MalformedProof("an empty tree with a root of its own", expected='SHA-256("")')


class HashSource(Protocol):
    """Hashes of the complete subtrees of one tree."""

    def subtree_hash(self, level: int, index: int) -> bytes:
        """Return MTH(D[index·2^level : (index+1)·2^level]); the range is inside the tree."""


def split_point(size: int) -> int:
    """Return the largest power of two below ``size`` (RFC 6962 §2.1), for size >= 2."""
    return 1 << (size - 1).bit_length() - 1


def _range_hash(source: HashSource, start: int, size: int) -> bytes:
    """Return the MTH of ``size`` >= 1 leaves from ``start``, a multiple of a power of two >= it."""
    peaks = []
    while size:
        level = size.bit_length() - 1
        peaks.append(source.subtree_hash(level, start >> level))
        start += 1 << level
        size -= 1 << level
    result = peaks.pop()
    while peaks:
        result = node_hash(peaks.pop(), result)
    return result


def root_hash(source: HashSource, size: int) -> bytes:
    """Return the root of the first ``size`` leaves of ``source``.

    Args:
        source: of a tree with at least ``size`` leaves.
        size: 0 for the empty tree.
    """
    return _range_hash(source, 0, size) if size else EMPTY_ROOT


def inclusion_proof(source: HashSource, index: int, size: int) -> tuple[bytes, ...]:
    """Return RFC 6962 §2.1.1 PATH(index, D[size]): sibling hashes from the leaf to the root.

    Args:
        source: of a tree with at least ``size`` leaves.
        index: of the leaf, from 0.
        size: of the tree in which it is proven, which may be an earlier one.

    Raises:
        MalformedProof: not 0 <= index < size.
    """
    if not 0 <= index < size <= MAX_TREE_SIZE:
        raise MalformedProof("no such leaf in the tree", where=f"leaf {index}, size {size}")
    siblings, level = [], 0
    while 1 << level < size:
        sibling = index >> level ^ 1
        start = sibling << level
        # Of the last node of a level there may be no sibling yet: it goes up as it is.
        if start + (1 << level) <= size:
            siblings.append(source.subtree_hash(level, sibling))
        elif start < size:
            siblings.append(_range_hash(source, start, size - start))
        level += 1
    return tuple(siblings)


def consistency_proof(source: HashSource, old_size: int, new_size: int) -> tuple[bytes, ...]:
    """Return RFC 6962 §2.1.2 PROOF(old_size, D[new_size]); empty if the sizes are equal.

    Args:
        source: of a tree with at least ``new_size`` leaves.
        old_size, new_size: of the two trees, the older first.

    Raises:
        MalformedProof: not 0 < old_size <= new_size (an empty tree needs no proof).
    """
    if not 0 < old_size <= new_size <= MAX_TREE_SIZE:
        raise MalformedProof("no such sizes", where=f"sizes {old_size} and {new_size}")
    ranges = []
    start, whole = 0, True  # whole: the old tree is still the one that starts at leaf 0
    old, new = old_size, new_size
    while old != new:
        k = split_point(new)
        if old <= k:
            ranges.append((start + k, new - k))
            new = k
        else:
            ranges.append((start, k))
            start, old, new, whole = start + k, old - k, new - k, False
    if not whole:
        ranges.append((start, new))
    return tuple(_range_hash(source, *leaf_range) for leaf_range in reversed(ranges))


def inclusion_proof_length(index: int, size: int) -> int:
    """Return how many hashes prove leaf ``index`` in a tree of ``size`` leaves (spec 6.1).

    Args:
        index, size: 0 <= index < size.
    """
    shared = (index ^ (size - 1)).bit_length()
    return shared + (index >> shared).bit_count()


def consistency_proof_length(old_size: int, new_size: int) -> int:
    """Return how many hashes prove ``new_size`` from ``old_size`` (spec 6.1).

    Args:
        old_size, new_size: 0 < old_size <= new_size.
    """
    if old_size == new_size:
        return 0
    last, end = old_size - 1, new_size - 1
    skipped = (~last & (last + 1)).bit_length() - 1  # trailing ones: complete right edges
    shared = ((last >> skipped) ^ (end >> skipped)).bit_length()
    steps = shared + (last >> skipped >> shared).bit_count()
    return steps + (0 if old_size & (old_size - 1) == 0 else 1)


def root_from_inclusion_proof(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """Return the root which ``proof`` gives to leaf hash ``leaf`` at ``index`` (RFC 9162 §2.1.3.2).

    Args:
        leaf: 32 bytes, `leaf_hash` of the entry.
        index: of the leaf, from 0.
        size: of the tree, from a source that is trusted; it fixes the proof's length.
        proof: sibling hashes, 32 bytes each, from the leaf to the root.

    Raises:
        MalformedProof: index outside the tree, a hash of the wrong length, or too many or too few
            of them.
    """
    if not 0 <= index < size <= MAX_TREE_SIZE:
        raise MalformedProof("no such leaf in the tree", where=f"leaf {index}, size {size}")
    _check_hashes((leaf, *proof), "inclusion proof")
    # Before any hashing: a proof of another length could lead from an interior node to the root, or
    # from below a leaf.
    _check_length(len(proof), inclusion_proof_length(index, size), "inclusion proof")
    fn, sn, root = index, size - 1, leaf
    for sibling in proof:
        if fn & 1 or fn == sn:
            root = node_hash(sibling, root)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            root = node_hash(root, sibling)
        fn, sn = fn >> 1, sn >> 1
    return root


def verify_inclusion(*, leaf: bytes, index: int, head: TreeHead, proof: Sequence[bytes]) -> None:
    """Check that the leaf hash ``leaf`` is leaf ``index`` of the tree with head ``head``.

    The head must come from a verified checkpoint.

    Args:
        leaf: 32 bytes, `leaf_hash` of the entry.
        index: zero-based, 0 <= index < head.size.
        proof: sibling hashes, 32 bytes each, from the leaf to the root.

    Raises:
        MalformedProof: index outside the tree, wrong number or size of hashes.
        ProofRejected: the recomputed root differs.
    """
    if root_from_inclusion_proof(leaf, index, head.size, proof) != head.root_hash:
        raise ProofRejected(
            "the inclusion proof leads to another root",
            where=f"leaf {index} of {head.size}",
            expected=head.root_hash.hex(),
        )


def verify_consistency(*, old: TreeHead, new: TreeHead, proof: Sequence[bytes]) -> None:
    """Check that the tree ``new`` continues the tree ``old`` (RFC 9162 §2.1.4.2).

    Every tree continues the empty one, with an empty proof.

    Args:
        old, new: heads from verified checkpoints.
        proof: hashes, 32 bytes each, in the order of RFC 6962 §2.1.2.

    Raises:
        MalformedProof: old is larger than new, wrong number or size of hashes.
        ProofRejected: the proof does not lead to both roots.
    """
    where = f"sizes {old.size} and {new.size}"
    if old.size > new.size:
        raise MalformedProof("the older tree is the larger one", where=where)
    _check_hashes(proof, "consistency proof")
    length = consistency_proof_length(old.size, new.size) if old.size else 0
    _check_length(len(proof), length, "consistency proof")
    if old.size == 0:
        return
    if old.size == new.size:
        # This alone is a split view: no proof could reconcile them.
        if old.root_hash != new.root_hash:
            raise ProofRejected("one size, two roots", where=where, expected=old.root_hash.hex())
        return
    old_root, new_root = _roots_from_consistency_proof(old, new.size, proof)
    # Both roots have to come out: the first shows that the old tree was not rewritten, the second
    # that the new one contains it.
    if old_root != old.root_hash:
        raise ProofRejected("the consistency proof leads to another older root", where=where)
    if new_root != new.root_hash:
        raise ProofRejected("the consistency proof leads to another newer root", where=where)


def _roots_from_consistency_proof(
    old: TreeHead, new_size: int, proof: Sequence[bytes]
) -> tuple[bytes, bytes]:
    path = list(proof)
    if old.size & (old.size - 1) == 0:  # the old tree is one complete subtree: its root starts
        path.insert(0, old.root_hash)
    fn, sn = old.size - 1, new_size - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    old_root = new_root = path[0]
    for sibling in path[1:]:
        if fn & 1 or fn == sn:
            old_root = node_hash(sibling, old_root)
            new_root = node_hash(sibling, new_root)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            new_root = node_hash(new_root, sibling)
        fn, sn = fn >> 1, sn >> 1
    return old_root, new_root


def _check_hashes(hashes: Iterable[bytes], where: str) -> None:
    for digest in hashes:
        if len(digest) != HASH_BYTES:
            raise MalformedProof("a hash of the wrong length", where=where, expected="32 bytes")


def _check_length(length: int, expected: int, where: str) -> None:
    if length != expected:
        raise MalformedProof(f"{length} hashes", where=where, expected=f"{expected} hashes")


class MemoryTree:
    """A tree that keeps every complete subtree's hash in memory: 64 bytes per leaf.

    Attributes:
        size: number of leaves.
    """

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        """Build the tree over leaf *contents*; `append_hash` takes ready leaf hashes."""
        # One array of bytes for each level: an object for each hash would take twice as much.
        self._levels = [bytearray() for _ in range(_LEVELS)]
        self.extend(leaves)

    @property
    def size(self) -> int:
        """Return the number of leaves."""
        return len(self._levels[0]) // HASH_BYTES

    def append(self, data: bytes) -> int:
        """Append a leaf with content ``data``; return its index.

        Args:
            data: of any length.
        """
        return self.append_hash(leaf_hash(data))

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append leaves with these contents, in order; levels are hashed block by block."""
        remaining = iter(leaves)
        while block := b"".join([leaf_hash(data) for data in islice(remaining, _BLOCK_LEAVES)]):
            self._levels[0] += block
            self._complete()

    def append_hash(self, leaf: bytes) -> int:
        """Append a 32-byte leaf hash; return its index.

        Args:
            leaf: as `leaf_hash` returns it.

        Raises:
            MalformedProof: another length.
        """
        _check_hashes((leaf,), "leaf")
        index = self.size
        self._levels[0] += leaf
        self._complete()
        return index

    def _complete(self) -> None:
        """Hash every subtree that is complete and has no hash yet, as `node_hash` does."""
        for nodes, above in pairwise(self._levels):
            starts = range(2 * len(above), len(nodes) - HASH_BYTES, 2 * HASH_BYTES)
            if not starts:
                return
            pairs = [b"\x01" + nodes[at : at + 2 * HASH_BYTES] for at in starts]
            above.extend(b"".join([hashlib.sha256(pair).digest() for pair in pairs]))

    def subtree_hash(self, level: int, index: int) -> bytes:
        """Return the hash of a complete subtree, as `HashSource`."""
        at = index * HASH_BYTES
        return bytes(self._levels[level][at : at + HASH_BYTES])

    def root(self, size: int | None = None) -> bytes:
        """Return the root of the first ``size`` leaves, of all by default."""
        return root_hash(self, self._checked(size))

    def head(self, size: int | None = None) -> TreeHead:
        """Return the head of the first ``size`` leaves, of all by default."""
        return TreeHead(self._checked(size), self.root(size))

    def inclusion_proof(self, index: int, size: int | None = None) -> tuple[bytes, ...]:
        """Return the proof of leaf ``index`` in the first ``size`` leaves, all by default."""
        return inclusion_proof(self, index, self._checked(size))

    def consistency_proof(self, old_size: int, size: int | None = None) -> tuple[bytes, ...]:
        """Return the consistency proof from ``old_size`` to ``size`` leaves, all by default."""
        return consistency_proof(self, old_size, self._checked(size))

    def _checked(self, size: int | None) -> int:
        if size is None:
            return self.size
        if not 0 <= size <= self.size:
            raise MalformedProof("no such size", where=f"size {size}", expected=f"0..{self.size}")
        return size


def root(leaves: Iterable[bytes]) -> bytes:
    """Return the root over leaf contents: RFC 6962 §2.1 MTH(D[n]).

    Args:
        leaves: contents, not hashes.
    """
    return MemoryTree(leaves).root()
