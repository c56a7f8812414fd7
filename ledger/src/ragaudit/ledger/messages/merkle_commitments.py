"""Merkle commitments to an index and to noise keys (docs/spec/05-records.md §5.4, §5.5)."""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import RefusedError, UnsupportedError
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.tagged import enc, read_int, read_text
from ragaudit.ledger.errors import CommitmentRejected, MalformedRecord, ProofRejected
from ragaudit.ledger.log.right_edge import Frontier
from ragaudit.ledger.log.tree import (
    HASH_BYTES,
    MemoryTree,
    TreeHead,
    leaf_hash,
    root_from_inclusion_proof,
    verify_inclusion,
)
from ragaudit.ledger.messages.fields import parsed_body
from ragaudit.ledger.messages.identifiers import check_document_id, check_tenant, check_window
from ragaudit.ledger.messages.records import MAX_QUERIES, MAX_ROWS, MAX_SLOTS

NO_COLUMNS = b"{}"
POINT_BYTES = 32
KEY_BYTES = 32

INDEX_TAG = "ragaudit/v1/index/commitment"


def content_digest(content: str) -> bytes:
    """Return the digest of a row's text, 32 bytes."""
    return structure("content", content)


def row_digest(salt: bytes, document_id: str, content: bytes) -> bytes:
    """Return the digest that hides a row's id and text, 32 bytes.

    Args:
        salt: 32 bytes, one for each row: with it alone can an answer's row be checked.
        document_id: 1..512 bytes of UTF-8.
        content: `content_digest` of its text.

    Raises:
        MalformedRecord: another length.
    """
    _digest_sized(salt, content)
    return structure("row", salt, check_document_id(document_id), content)


def index_leaf(commitment: bytes, row: bytes, columns: bytes = NO_COLUMNS) -> bytes:
    """Return the leaf data of a row.

    Args:
        commitment: C_i, to its vector, 32 bytes.
        row: `row_digest`.
        columns: the canonical JSON of its public columns.

    Raises:
        MalformedRecord: another length.
        UnsupportedError: public columns, which version 1 has not.
    """
    _digest_sized(commitment, row)
    if columns != NO_COLUMNS:
        raise UnsupportedError("public columns", where="index row", expected="{} in version 1")
    return enc("ragaudit/v1/index/leaf", commitment, columns, row)


def index_leaves(commitments: bytes, row_digests: bytes) -> Iterator[bytes]:
    """Return `index_leaf` of all rows, in order.

    Args:
        commitments: C_0 || .. || C_(N-1), 32 N bytes.
        row_digests: as many.

    Raises:
        MalformedRecord: lengths that do not fit.
    """
    # The encodings differ in fixed places only: they are cut out of one.
    rows = _row_count(commitments, row_digests)
    commitment, row = b"C" * POINT_BYTES, b"D" * HASH_BYTES
    head, rest = index_leaf(commitment, row).split(commitment)
    between = rest.removesuffix(row)
    for start in range(0, rows * POINT_BYTES, POINT_BYTES):
        end = start + POINT_BYTES
        yield head + commitments[start:end] + between + row_digests[start:end]


def index_root(commitments: bytes, row_digests: bytes) -> bytes:
    """Return the root of C_idx[t, v], 32 bytes; arguments and errors as of `index_leaves`."""
    return _root(leaf_hash(leaf) for leaf in index_leaves(commitments, row_digests))


def verify_index_row(
    *, root: bytes, rows: int, position: int, commitment: bytes, row: bytes, path: Sequence[bytes]
) -> None:
    """Check that (C_i, row digest) stands at ``position`` of an index of ``rows`` rows.

    Args:
        root: of C_idx, from the countersigned opening, 32 bytes; so is ``rows``, N.
        position: 0..N-1.
        commitment: C_i, 32 bytes.
        row: `row_digest`.
        path: from leaf to root, 32 bytes each; its length follows from position and N.

    Raises:
        CommitmentRejected: it does not.
        MalformedRecord, MalformedProof: lengths or positions out of range.
    """
    leaf = leaf_hash(index_leaf(commitment, row))
    _verify_path(leaf, position, TreeHead(rows, root), path, "row of C_idx")


def index_proof_digest(proof: bytes) -> bytes:
    """Return the digest of pi_idx, as the opening names it, 32 bytes."""
    return structure("index/proof", proof)


@dataclass(frozen=True, slots=True)
class IndexCommitment:
    """C_idx[t, v] as handed to the verifier, with its index argument.

    Attributes:
        version, dimension: v and d.
        commitments: C_0 || .. || C_(N-1), 32 N bytes.
        row_digests: as many.
        proof: pi_idx.
    """

    window: str
    tenant: str
    version: int
    dimension: int
    commitments: bytes = field(repr=False)
    row_digests: bytes = field(repr=False)
    proof: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check_window(self.window)
        check_tenant(self.tenant)
        if not 1 <= self.version <= MAX_ROWS or not 1 <= self.dimension <= LIMITS.dimension:
            raise MalformedRecord("version or dimension out of range", where="index commitment")
        _row_count(self.commitments, self.row_digests)

    @property
    def rows(self) -> int:
        """N, the number of rows."""
        return len(self.commitments) // POINT_BYTES

    @property
    def root(self) -> bytes:
        """The root of C_idx, computed over all rows at each call."""
        return index_root(self.commitments, self.row_digests)

    @property
    def proof_digest(self) -> bytes:
        """See `index_proof_digest`."""
        return index_proof_digest(self.proof)

    def encode(self) -> bytes:
        """Return the commitment as it is handed over (docs/spec/05-records.md §5.4)."""
        place = (self.window, self.tenant, self.version, self.rows, self.dimension)
        return enc(INDEX_TAG, *place, self.commitments, None, self.row_digests, self.proof)

    @classmethod
    def parse(cls, data: bytes) -> "IndexCommitment":
        """Return the commitment in ``data``, the strict inverse of `encode`.

        Args:
            data: of any length; see `check_index_lengths` for what is too large to be read whole.

        Raises:
            MalformedRecord: anything else.
            UnsupportedError: rows with public columns.
        """
        return parsed_body(INDEX_TAG, data, 9, cls._from)

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> "IndexCommitment":
        if f[6]:
            raise UnsupportedError("public columns", where="index", expected="none")
        place = (read_text(f[0]), read_text(f[1]), read_int(f[2]), read_int(f[4]))
        commitment = cls(*place, f[5], f[7], f[8])
        if (rows := read_int(f[3])) != commitment.rows:
            raise MalformedRecord(f"{rows} rows", where=INDEX_TAG, expected=f"{commitment.rows}")
        return commitment


class IndexTree:
    """The tree of C_idx in memory: root and paths of rows."""

    def __init__(self, commitments: bytes, row_digests: bytes) -> None:
        self._tree = MemoryTree(index_leaves(commitments, row_digests))
        self.root = self._tree.root()

    def path(self, position: int) -> tuple[bytes, ...]:
        """Return the inclusion path of the row at ``position``; MalformedProof if there is none."""
        return self._tree.inclusion_proof(position)


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
            roots.append(_root(map(leaf_hash, _key_leaves(key, epoch, slot, queries))))
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
    _verify_path(
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


def _root(leaf_hashes: Iterable[bytes]) -> bytes:
    frontier = Frontier()
    for leaf in leaf_hashes:
        frontier.append(leaf)
    return frontier.root()


def _verify_path(
    leaf: bytes, position: int, head: TreeHead, path: Sequence[bytes], what: str
) -> None:
    try:
        verify_inclusion(leaf=leaf, index=position, head=head, proof=path)
    except ProofRejected as error:
        raise CommitmentRejected("not the committed value", where=what) from error


def _row_count(commitments: bytes, row_digests: bytes) -> int:
    rows, rest = divmod(len(commitments), POINT_BYTES)
    if rest or rows < 1 or len(row_digests) != rows * HASH_BYTES:
        raise MalformedRecord(
            "row commitments and digests do not fit", where="index", expected="32 bytes per row"
        )
    return rows


def _split(data: bytes) -> list[bytes]:
    return [data[i : i + HASH_BYTES] for i in range(0, len(data), HASH_BYTES)]


def _digest_sized(*values: bytes) -> None:
    if any(len(value) != HASH_BYTES for value in values):
        raise MalformedRecord("a value of the wrong length", where="index row", expected="32 bytes")
