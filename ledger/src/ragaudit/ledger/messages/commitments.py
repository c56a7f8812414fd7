"""Commitments to indexes and to keys of the noise, and what opens them (docs/spec 5.4, 5.5)."""

import hashlib
import hmac
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import Annotated, BinaryIO, Final, Self, TypeAlias

from ragaudit.encoding.digests import PREFIX, SALT_BYTES, structure
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.tagged import (
    DIGEST_BYTES,
    decode,
    enc,
    read_digest,
    read_int,
    read_text,
    stream,
)
from ragaudit.ledger.errors import (
    CommitmentRejected,
    MalformedProof,
    MalformedRecord,
    ProofRejected,
)
from ragaudit.ledger.log.tiles import Frontier
from ragaudit.ledger.log.tree import (
    HASH_BYTES,
    MemoryTree,
    TreeHead,
    leaf_hash,
    node_hash,
    root_from_inclusion_proof,
    verify_inclusion,
)
from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW, Value, read_columns
from ragaudit.ledger.messages.entries import (
    MAX_QUERIES,
    MAX_ROWS,
    MAX_SLOTS,
    TenantOpening,
    field_count,
    parsed_body,
)
from ragaudit.ledger.messages.identifiers import check_document_id, check_tenant, check_window
from ragaudit.ledger.messages.kernel import Digest, Integer, Items, Message
from ragaudit.ledger.messages.policy import LARGE_B, Policy
from ragaudit.ledger.messages.requests import int16_bytes, int16s

POINT_BYTES = 32

INDEX_TAG = "ragaudit/v1/index/commitment"
INDEX_PARTS = 9
"""Of an index commitment; one more under ``owners``, the id keys before the proof."""
LEAF_TAG = "ragaudit/v1/index/leaf"
LENGTH_BYTES = 4


def content_digest(content: str, attributes: str = "") -> bytes:
    """Return the digest of a row's text and attributes, 32 bytes.

    Args:
        content: the text.
        attributes: canonical JSON text of all metadata that the store returned, "" if none.
    """
    return structure("content", content, attributes)


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


def index_leaf(
    commitment: bytes, row: bytes, columns: str = NO_COLUMNS, id_key: bytes | None = None
) -> bytes:
    """Return the leaf data of a row.

    Args:
        commitment: C_i, to its vector, 32 bytes.
        row: `row_digest`.
        columns: the canonical text of its public columns (5.11).
        id_key: of its document, 32 bytes; None without ``owners`` (5.16).

    Raises:
        MalformedRecord: another length.
    """
    keys = () if id_key is None else (id_key,)
    _digest_sized(commitment, row, *keys)
    return enc(LEAF_TAG, commitment, columns, row, *keys)


def index_leaves(
    commitments: bytes, row_digests: bytes, columns: Sequence[str] = (), id_keys: bytes = b""
) -> Iterator[bytes]:
    """Return `index_leaf` of all rows, in order.

    Args:
        commitments: C_0 || .. || C_(N-1), 32 N bytes.
        row_digests: as many.
        columns: N texts; none at all: every row has `NO_COLUMNS`.
        id_keys: 32 N bytes, or none at all.

    Raises:
        MalformedRecord: lengths that do not fit.
    """
    rows = _row_count(commitments, row_digests, id_keys)
    if columns and len(columns) != rows:
        raise MalformedRecord(f"columns of {len(columns)} rows", expected=f"{rows}")
    parts = [slice(at, at + POINT_BYTES) for at in range(0, rows * POINT_BYTES, POINT_BYTES)]
    if columns:
        for part, text in zip(parts, columns, strict=True):
            key = id_keys[part] if id_keys else None
            yield index_leaf(commitments[part], row_digests[part], text, key)
        return
    # The encodings differ in fixed places only: they are cut out of one.
    commitment, row, key = b"C" * POINT_BYTES, b"D" * HASH_BYTES, b"K" * HASH_BYTES
    leaf = index_leaf(commitment, row, id_key=key if id_keys else None)
    head, rest = leaf.split(commitment)
    between, rest = rest.split(row)
    last = rest.removesuffix(key)
    for part in parts:
        yield head + commitments[part] + between + row_digests[part] + last + id_keys[part]


def index_root(
    commitments: bytes, row_digests: bytes, columns: Sequence[str] = (), id_keys: bytes = b""
) -> bytes:
    """Return the root of C_idx[t, v], 32 bytes; arguments and errors as of `index_leaves`."""
    return tree_root(map(leaf_hash, index_leaves(commitments, row_digests, columns, id_keys)))


def verify_index_row(
    *,
    root: bytes,
    rows: int,
    position: int,
    commitment: bytes,
    row: bytes,
    path: Sequence[bytes],
    columns: str = NO_COLUMNS,
    id_key: bytes | None = None,
) -> None:
    """Check that (C_i, columns, row digest) stands at ``position`` of an index of ``rows`` rows.

    Args:
        root: of C_idx, from the countersigned opening, 32 bytes; so is ``rows``, N.
        position: 0..N-1.
        commitment: C_i, 32 bytes.
        row: `row_digest`.
        path: from leaf to root, 32 bytes each; its length follows from position and N.
        columns: the canonical text of its public columns.
        id_key: of its document, which then stands there too; None without ``owners``.

    Raises:
        CommitmentRejected: it does not.
        MalformedRecord, MalformedProof: lengths or positions out of range.
    """
    leaf = leaf_hash(index_leaf(commitment, row, columns, id_key))
    verify_path(leaf, position, TreeHead(rows, root), path, "row of C_idx")


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
        columns: canonical texts of the N rows' public columns; empty: every row has none.
        id_keys: of the rows' documents, 32 N bytes; empty without ``owners`` (5.16).
    """

    window: str
    tenant: str
    version: int
    dimension: int
    commitments: bytes = field(repr=False)
    row_digests: bytes = field(repr=False)
    proof: bytes = field(repr=False)
    columns: tuple[str, ...] = field(default=(), repr=False)
    id_keys: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        check_window(self.window)
        check_tenant(self.tenant)
        if not 1 <= self.version <= MAX_ROWS or not 1 <= self.dimension <= LIMITS.dimension:
            raise MalformedRecord("version or dimension out of range", where="index commitment")
        rows = _row_count(self.commitments, self.row_digests, self.id_keys)
        # All rows without columns have one encoding, the empty one.
        if self.columns and (len(self.columns) != rows or set(self.columns) == {NO_COLUMNS}):
            raise MalformedRecord("columns", where="index commitment", expected=f"of {rows} rows")

    @property
    def rows(self) -> int:
        """N, the number of rows."""
        return len(self.commitments) // POINT_BYTES

    @property
    def root(self) -> bytes:
        """The root of C_idx, computed over all rows at each call."""
        return index_root(self.commitments, self.row_digests, self.columns, self.id_keys)

    @property
    def proof_digest(self) -> bytes:
        """See `index_proof_digest`."""
        return index_proof_digest(self.proof)

    def encode(self) -> bytes:
        """Return the commitment as it is handed over (docs/spec/05-records.md §5.4)."""
        place = (self.window, self.tenant, self.version, self.rows, self.dimension)
        columns = columns_bytes(self.columns)
        keys = (self.id_keys,) if self.id_keys else ()
        return enc(
            INDEX_TAG, *place, self.commitments, columns, self.row_digests, *keys, self.proof
        )

    def opening(self) -> TenantOpening:
        """Return what the opening or a version entry says of this commitment.

        The opening commits to the tenant's document secret too, which no index shows.
        """
        return TenantOpening(self.tenant, self.rows, self.root, self.proof_digest, self.version)

    def column_values(self, policy: Policy) -> list[dict[str, Value] | None]:
        """Return the values of the public columns of all rows, in order; None for a null row.

        Args:
            policy: of the window, which declares them.

        Raises:
            MalformedRecord: columns that it does not declare, or not canonical, or a null row
                that is marked in a first version or under noise: no such index may be committed
                to in its window.
        """
        if not self.columns:
            return [{} for _ in range(self.rows)]
        # A new index has no deleted documents, and under noise nobody may know which they are.
        marked = policy.marks_null_rows and self.version > 1
        declared = policy.retrieval.public_columns
        read: dict[str, dict[str, Value] | None] = {}
        for text in dict.fromkeys(self.columns):
            if text != NULL_ROW:
                read[text] = read_columns(text, declared)
            elif marked:
                read[text] = None
            else:
                expected = "in later versions without noise only"
                raise MalformedRecord("a null row", where="index", expected=expected)
        return [read[text] for text in self.columns]

    @classmethod
    def parse(cls, data: bytes) -> "IndexCommitment":
        """Return the commitment in ``data``, the strict inverse of `encode`.

        Args:
            data: of any length; see `check_index_lengths` for what is too large to be read whole.

        Raises:
            MalformedRecord: anything else. What columns hold, `column_values` reads.
        """
        owned = field_count(INDEX_TAG, data) == INDEX_PARTS + 1
        return parsed_body(INDEX_TAG, data, INDEX_PARTS + owned, cls._from)

    @classmethod
    def _from(cls, f: tuple[bytes, ...]) -> "IndexCommitment":
        place = (read_text(f[0]), read_text(f[1]), read_int(f[2]), read_int(f[4]))
        columns, keys = _read_columns_bytes(f[6]), f[8] if len(f) > INDEX_PARTS else b""
        # None is left out; an empty field would be a second encoding of it.
        if len(f) > INDEX_PARTS and not keys:
            raise MalformedRecord("no id keys", where=INDEX_TAG, expected="32 bytes a row")
        commitment = cls(*place, f[5], f[7], f[-1], columns, keys)
        if (rows := read_int(f[3])) != commitment.rows:
            raise MalformedRecord(f"{rows} rows", where=INDEX_TAG, expected=f"{commitment.rows}")
        return commitment


class IndexTree:
    """The tree of C_idx in memory: root and paths of rows."""

    def __init__(
        self,
        commitments: bytes,
        row_digests: bytes,
        columns: Sequence[str] = (),
        id_keys: bytes = b"",
    ) -> None:
        self._tree = MemoryTree(index_leaves(commitments, row_digests, columns, id_keys))
        # Of each level below the root: place and hash of its last node, which may be incomplete.
        # It is in half of all paths, and nothing is appended any more.
        self._last: list[tuple[int, bytes]] = []
        at = self._tree.size - 1
        last = self._tree.subtree_hash(0, at)
        while at:
            self._last.append((at, last))
            if at & 1:
                last = node_hash(self._tree.subtree_hash(len(self._last) - 1, at - 1), last)
            at >>= 1
        self.root = last

    def path(self, position: int) -> tuple[bytes, ...]:
        """Return the inclusion path of the row at ``position``; MalformedProof if there is none."""
        if not 0 <= position < self._tree.size:
            raise MalformedProof("no such leaf in the tree", where=f"leaf {position}")
        return tuple(
            last if sibling == at else self._tree.subtree_hash(level, sibling)
            for level, (at, last) in enumerate(self._last)
            if (sibling := position >> level ^ 1) <= at
        )


def columns_bytes(columns: Sequence[str]) -> bytes:
    """Return texts of columns as an index commitment has them: each with its length in front."""
    texts = [text.encode() for text in columns]
    return b"".join(len(text).to_bytes(LENGTH_BYTES, "little") + text for text in texts)


def _read_columns_bytes(data: bytes) -> tuple[str, ...]:
    found, at = [], 0
    while at < len(data):
        start = at + LENGTH_BYTES
        at = start + int.from_bytes(data[at:start], "little")
        # The last one would otherwise be cut off, and two encodings have one meaning.
        if at > len(data) or start > len(data):
            raise MalformedRecord("columns cut off", where=INDEX_TAG)
        found.append(read_text(data[start:at]))
    return tuple(found)


def tree_root(leaf_hashes: Iterable[bytes]) -> bytes:
    """Return the RFC 6962 root over hashes of leaves, in order, 32 bytes."""
    frontier = Frontier()
    for leaf in leaf_hashes:
        frontier.append(leaf)
    return frontier.root()


def verify_path(
    leaf: bytes, position: int, head: TreeHead, path: Sequence[bytes], what: str
) -> None:
    """Check that a leaf hash stands at a place of a tree.

    Args:
        leaf: its hash, 32 bytes.
        position: of it, from 0.
        head: size and root.
        path: from leaf to root.
        what: of what commitment, for the error.

    Raises:
        CommitmentRejected: it does not.
        MalformedProof: a path of another length.
    """
    try:
        verify_inclusion(leaf=leaf, index=position, head=head, proof=path)
    except ProofRejected as error:
        raise CommitmentRejected("not the committed value", where=what) from error


def _row_count(commitments: bytes, row_digests: bytes, id_keys: bytes = b"") -> int:
    rows, rest = divmod(len(commitments), POINT_BYTES)
    if id_keys and len(id_keys) != rows * HASH_BYTES:
        expected = f"32 bytes of each of {rows} rows"
        raise MalformedRecord("id keys", where="index", expected=expected)
    if rest or rows < 1 or len(row_digests) != rows * HASH_BYTES:
        raise MalformedRecord(
            "row commitments and digests do not fit", where="index", expected="32 bytes per row"
        )
    return rows


def _digest_sized(*values: bytes) -> None:
    if any(len(value) != HASH_BYTES for value in values):
        raise MalformedRecord("a value of the wrong length", where="index row", expected="32 bytes")


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


SQUARES: Final = 4  # that complete a row to squared norm B²
MAX_PATH: Final = 40  # of a row among at most 2^40
INNER_PRODUCT: Final = "inner-product"

_EMPTY: Final = content_digest("", "")

CommitRows = Callable[[Sequence[Sequence[int]], Sequence[bytes]], Sequence[bytes]]
"""Completed rows of 16-bit integers and canonical scalars to their commitments, 32 bytes each.

Many rows at once take a hundredth of the time that as many single ones do. Raises MalformedError
for what is out of range."""


Square: TypeAlias = Annotated[int, Integer(-LARGE_B, LARGE_B)]
RowPath: TypeAlias = Annotated[tuple[Digest, ...], Items(0, MAX_PATH)]


class RowOpening(Message):
    """What opens a row.

    Attributes:
        position: in the index, from 0.
        salt: of its row digest.
        vector: d integers of norm at most B (5.9).
        squares: four integers that complete its squared norm to B².
        blinding: canonical scalar of its commitment.
        commitment: C_i.
        path: of the row in C_idx.
    """

    position: Annotated[int, Integer(0, MAX_ROWS - 1)]
    salt: Digest = field(repr=False)
    vector: Annotated[tuple[int, ...], int16s(LIMITS.dimension, LARGE_B)] = field(repr=False)
    squares: Annotated[tuple[Square, ...], Items(SQUARES, SQUARES)] = field(repr=False)
    blinding: Digest = field(repr=False)
    commitment: Digest
    path: RowPath = field(repr=False)


def is_null(vector: Sequence[int], content: bytes, columns: str) -> bool:
    """Return whether a row is a null row: no text, no attributes, no column, all entries 0 (5.4).

    A vector of zeros alone is none: with inner products short vectors are rounded to it (2.5).

    Args:
        vector: X_i.
        content: the digest of its content and attributes, 32 bytes.
        columns: canonical text of its public columns; ``null`` of a marked row.
    """
    held = content != _EMPTY or columns not in (NO_COLUMNS, NULL_ROW)
    return not held and not any(vector)


def check_length(vector: Sequence[int], policy: Policy, where: str) -> None:
    """Check that a row which is no null row was not committed at a part of its length (5.16).

    Args:
        vector: X_i, d entries.
        policy: of the window.
        where: names the row in an error.

    Raises:
        ProofRejected: it was.
    """
    # With inner products a row keeps its length, and only its document's vector tells it.
    if policy.retrieval.metric == INNER_PRODUCT:
        return
    length, norm = sum(map(mul, vector, vector)), policy.squared_norm
    # The step of quantisation (2.1) that was not taken would have more than doubled an entry that
    # is not 0, or lifted at most d that are: B² lies below four times the square, plus d.
    if 4 * length + policy.dimension <= norm:
        share = math.sqrt(length / norm)
        what = f"committed at {share:.2f} of its length: no search ranks it where it belongs"
        raise ProofRejected(what, where=where, expected="a quantised vector")


def completed_row(row: RowOpening, policy: Policy) -> tuple[int, ...]:
    """Return a row's vector and squares, d + 4 integers, once their norm is B².

    Args:
        row: of an index of the window.
        policy: of the window.

    Raises:
        CommitmentRejected: a vector of another length, or another norm.
    """
    where, norm = f"row {row.position}", policy.squared_norm
    if len(row.vector) != policy.dimension:
        expected = f"{policy.dimension}"
        raise CommitmentRejected(f"{len(row.vector)} entries", where=where, expected=expected)
    completed = (*row.vector, *row.squares)
    if sum(map(mul, completed, completed)) != norm:
        expected = f"squared norm {norm} of a completed row"
        raise CommitmentRejected("another norm", where=where, expected=expected)
    return completed


ROWS_TAG: Final = PREFIX + "response/rows"
ROW_TAG: Final = PREFIX + "response/row"

MAX_TEXT_BYTES: Final = 65_536
"""Of a content, and of attributes: a document has no longer ones."""

_WHERE: Final = "rows"
_HEAD: Final = 3  # fields before the rows
_FIELDS: Final = 9
_BLINDING_BYTES: Final = 32
_MAX_ID_BYTES: Final = 512
_FRAME: Final = 256  # what stands around the fields of a row, tag and lengths
_ENTRY_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class SampledRow:
    """A sampled row with what opens its leaf; nothing in it has been checked.

    Attributes:
        position: in the index, from 0.
        id: of its document, 1 to 512 bytes.
        content, attributes: of its document, at most 65,536 bytes each; both None: the store has
            changed since, so that nobody can show what was committed to.
        content_digest: of the committed content and attributes, 32 bytes.
        salt: of the row digest, 32 bytes.
        vector: X_i, d entries in -2^15..2^15-1.
        squares: w_0..w_3, that complete its squared norm to B².
        blinding: rho_i, a scalar.
    """

    position: int
    id: str = field(repr=False)
    content: str | None = field(repr=False)
    attributes: str | None = field(repr=False)
    content_digest: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    vector: tuple[int, ...] = field(repr=False)
    squares: tuple[int, ...] = field(repr=False)
    blinding: bytes = field(repr=False)

    def encode(self) -> bytes:
        """Return the row as it stands in a response."""
        return enc(
            ROW_TAG,
            self.position,
            self.id,
            self.content,
            self.attributes,
            self.content_digest,
            self.salt,
            int16_bytes(self.vector),
            int16_bytes(self.squares),
            self.blinding,
        )

    @classmethod
    def parse(cls, data: bytes, dimension: int) -> Self:
        """Return the row in ``data``, the strict inverse of `encode`.

        Args:
            data: a field of a response.
            dimension: d of the policy.

        Raises:
            MalformedError: not a row, or a part of another length.
        """
        f = decode(ROW_TAG, data, _FIELDS)
        for name, text in (("content", f[2]), ("attributes", f[3])):
            if len(text) > MAX_TEXT_BYTES:
                expected = f"at most {MAX_TEXT_BYTES} bytes"
                raise MalformedRecord(f"{name} too long", where=_WHERE, expected=expected)
        lengths = (SALT_BYTES, _ENTRY_BYTES * dimension, _ENTRY_BYTES * SQUARES, _BLINDING_BYTES)
        if tuple(map(len, f[5:])) != lengths:
            raise MalformedRecord("a part of another length", where=_WHERE, expected=f"{lengths}")
        position = read_int(f[0])
        if not 0 <= position < MAX_ROWS:
            raise MalformedRecord("position out of range", where=_WHERE)
        committed = read_digest(f[4])
        # Absent and empty have one encoding: the digest says which of the two it is.
        given = bool(f[2] or f[3]) or committed == _NOTHING
        return cls(
            position=position,
            id=check_document_id(read_text(f[1])),
            content=read_text(f[2]) if given else None,
            attributes=read_text(f[3]) if given else None,
            content_digest=committed,
            salt=f[5],
            vector=struct.unpack(f"<{dimension}h", f[6]),
            squares=struct.unpack(f"<{SQUARES}h", f[7]),
            blinding=f[8],
        )


_NOTHING: Final = content_digest("", "")
"""Of a row without content and attributes."""


@dataclass(frozen=True, slots=True)
class RowsHead:
    """Whose rows a response opens.

    Attributes:
        tenant, version: of the index.
        secret: k_t, the tenant's document secret, 32 bytes.
    """

    tenant: str
    version: int
    secret: bytes = field(repr=False)


def encode_rows(head: RowsHead, rows: Iterable[SampledRow]) -> bytes:
    """Return a response as it is sent.

    Args:
        head: whose rows.
        rows: by rising position, all that were sampled.
    """
    opened = (row.encode() for row in rows)
    return enc(ROWS_TAG, head.tenant, head.version, head.secret, *opened)


def read_rows(file: BinaryIO, count: int, dimension: int) -> tuple[RowsHead, Iterator[SampledRow]]:
    """Return a response from a file, its rows one by one: together they may not fit into memory.

    Args:
        file: at the response's first byte, with nothing behind it.
        count: of the rows that were sampled.
        dimension: d of the policy.

    Returns:
        The head; and the rows, which raise MalformedError where they are none.

    Raises:
        MalformedError: not a response with so many rows.
    """
    fields = stream(ROWS_TAG, file, _HEAD + count, longest_row(dimension))
    first = [next(fields) for _ in range(_HEAD)]
    version = read_int(first[1])
    if version < 1 or len(first[2]) != DIGEST_BYTES:
        raise MalformedError("version or document secret out of range", where=_WHERE)
    head = RowsHead(read_text(first[0]), version, first[2])
    return head, (SampledRow.parse(data, dimension) for data in fields)


def longest_row(dimension: int) -> int:
    """Return how many bytes a row of a response has at most.

    Args:
        dimension: d of the policy.
    """
    numbers = _ENTRY_BYTES * (dimension + SQUARES)
    return _FRAME + _MAX_ID_BYTES + 2 * MAX_TEXT_BYTES + 3 * DIGEST_BYTES + numbers


def longest_rows(count: int, dimension: int) -> int:
    """Return how many bytes a response may have (spec 9.11).

    Args:
        count: of the rows that were sampled.
        dimension: d of the policy.
    """
    return 2 * _FRAME + count * (8 + longest_row(dimension))
