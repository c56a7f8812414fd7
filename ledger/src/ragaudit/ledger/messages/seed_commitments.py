"""Merkle commitment to noise keys (docs/spec/05-records.md §5.5)."""

import hashlib
import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.tree import (
    HASH_BYTES,
    MemoryTree,
    TreeHead,
    leaf_hash,
    root_from_inclusion_proof,
)
from ragaudit.ledger.messages.identifiers import check_window
from ragaudit.ledger.messages.merkle_commitments import tree_root, verify_path
from ragaudit.ledger.messages.records import MAX_QUERIES, MAX_SLOTS

KEY_BYTES = 32


def slot_key(secret: bytes, window: str, epoch: int, slot: int) -> bytes:
    """Return the key of one slot in one seed epoch, 32 bytes.

    Args:
        secret: the window's s_W, 32 bytes.
        window, epoch, slot: W, g and i. The window is in the message: one secret used for two
            windows would otherwise draw the same noise twice, which cancels out.
    """
    message = enc("ragaudit/v1/seed/slot", window, epoch, slot)
    return hmac.digest(secret, message, hashlib.sha256)


def counter_key(of_slot: bytes, counter: int) -> bytes:
    """Return k_{g,i,c}, the key of the noise of one record, 32 bytes.

    Args:
        of_slot: `slot_key`.
        counter: c of the record. Each has a key of its own: to open one opens no other.
    """
    return hmac.digest(of_slot, enc("ragaudit/v1/seed/counter", counter), hashlib.sha256)


def key_leaf(epoch: int, slot: int, counter: int, key: bytes) -> bytes:
    """Return the leaf data that commits to k_{g,i,c}, 32 bytes (docs/spec/05-records.md §5.5).

    The key, 32 bytes, is random: the digest hides it without a salt.
    """
    return structure("key", epoch, slot, counter, key)


@dataclass(frozen=True, slots=True)
class KeyOpening:
    """A noise key with its two paths.

    Attributes:
        key: k_{g,i,c}, 32 bytes.
        counter_path: of the key in its slot's tree.
        slot_path: of the slot's root in C_seed.
    """

    key: bytes = field(repr=False)
    counter_path: tuple[bytes, ...]
    slot_path: tuple[bytes, ...]


class SeedCommitment:
    """The provider's C_seed of one epoch: slot roots in memory, a slot's keys made when needed."""

    def __init__(
        self, secret: bytes, window: str, epoch: int, slot_roots: bytes, queries: int
    ) -> None:
        """Take the stored roots of the slots; `build` makes them.

        Args:
            secret: s_W, 32 bytes.
            window, epoch: W and g.
            slot_roots: of all slots, 32 bytes each.
            queries: r, leaves of a slot's tree.
        """
        self._secret = secret
        self._window = check_window(window)
        self._epoch = epoch
        self._queries = queries
        self._slots = MemoryTree(_split(slot_roots))
        self._opened: tuple[int, MemoryTree] | None = None
        self.slot_roots = slot_roots
        self.root = self._slots.root()

    @classmethod
    def build(
        cls,
        secret: bytes,
        window: str,
        epoch: int,
        slots: int,
        queries: int,
        progress: Callable[[float], bool | None] | None = None,
    ) -> "SeedCommitment":
        """Derive all ``slots`` · ``queries`` keys and commit to them.

        Args:
            secret: s_W, 32 bytes.
            window, epoch: W and g.
            slots: 1..1,000,000.
            queries: r per slot, 1..1,000,000.
            progress: called with the done share from time to time; False cancels.

        Raises:
            MalformedRecord: slots or queries out of range, secret not 32 bytes.
            RefusedError: cancelled.
        """
        if len(secret) != KEY_BYTES:
            raise MalformedRecord("secret of the wrong length", expected="32 bytes")
        if not (1 <= slots <= MAX_SLOTS and 1 <= queries <= MAX_QUERIES):
            raise MalformedRecord("slots or queries out of range", where="seed commitment")
        roots = []
        for slot in range(slots):
            key = slot_key(secret, window, epoch, slot)
            roots.append(tree_root(map(leaf_hash, _key_leaves(key, epoch, slot, queries))))
            if progress is not None and progress((slot + 1) / slots) is False:
                raise RefusedError("cancelled", where="seed commitment")
        return cls(secret, window, epoch, b"".join(roots), queries)

    def open(self, slot: int, counter: int) -> KeyOpening:
        """Return the key of (slot, counter) with its paths, for the verifier only (spec 8.3).

        The tree of the slot that was opened last is kept: open in order of slots.

        Args:
            slot, counter: i and c of a sampled record.

        Raises:
            MalformedProof: no such slot or counter.
        """
        slot_path = self._slots.inclusion_proof(slot)
        of_slot = slot_key(self._secret, self._window, self._epoch, slot)
        opened = self._opened
        if opened is None or opened[0] != slot:
            leaves = _key_leaves(of_slot, self._epoch, slot, self._queries)
            opened = self._opened = (slot, MemoryTree(leaves))
        path = opened[1].inclusion_proof(counter)
        return KeyOpening(counter_key(of_slot, counter), path, slot_path)


def verify_key_opening(
    *,
    root: bytes,
    epoch: int,
    slot: int,
    counter: int,
    slots: int,
    queries: int,
    opening: KeyOpening,
) -> None:
    """Check an opened noise key against C_seed.

    Args:
        root: C_seed of ``epoch``, from the countersigned opening.
        epoch, slot, counter: g, i, c, from the record: a key of another place is rejected.
        slots, queries: of the policy, never of the opening: they fix the lengths of the paths.
        opening: as the provider sent it.

    Raises:
        CommitmentRejected: the key is not the committed one.
        MalformedRecord, MalformedProof: lengths or places out of range.
    """
    if len(opening.key) != KEY_BYTES:
        raise MalformedRecord("key of the wrong length", expected="32 bytes")
    leaf = leaf_hash(key_leaf(epoch, slot, counter, opening.key))
    slot_root = root_from_inclusion_proof(leaf, counter, queries, opening.counter_path)
    verify_path(
        leaf_hash(slot_root), slot, TreeHead(slots, root), opening.slot_path, "key of C_seed"
    )


def _key_leaves(of_slot: bytes, epoch: int, slot: int, queries: int) -> Iterator[bytes]:
    """Return `key_leaf` of all counters; the encodings differ in fixed places only."""
    counter_head = enc("ragaudit/v1/seed/counter", 0)[:-8]
    leaf_head = enc("ragaudit/v1/key", epoch, slot, 0, bytes(KEY_BYTES))[: -16 - KEY_BYTES]
    key_length = KEY_BYTES.to_bytes(8, "little")
    for counter in range(queries):
        number = counter.to_bytes(8, "little")
        key = hmac.digest(of_slot, counter_head + number, "sha256")
        yield hashlib.sha256(leaf_head + number + key_length + key).digest()


def _split(data: bytes) -> list[bytes]:
    return [data[i : i + HASH_BYTES] for i in range(0, len(data), HASH_BYTES)]
