"""Merkle commitment to an index (docs/spec/05-records.md §5.4)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ragaudit.encoding.digests import structure
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.tagged import enc, read_int, read_text
from ragaudit.ledger.errors import CommitmentRejected, MalformedRecord, ProofRejected
from ragaudit.ledger.log.tiles import Frontier
from ragaudit.ledger.log.tree import HASH_BYTES, MemoryTree, TreeHead, leaf_hash, verify_inclusion
from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW, Value, read_columns
from ragaudit.ledger.messages.encoded import field_count, parsed_body
from ragaudit.ledger.messages.identifiers import check_document_id, check_tenant, check_window
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import MAX_ROWS, TenantOpening

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
        self.root = self._tree.root()

    def path(self, position: int) -> tuple[bytes, ...]:
        """Return the inclusion path of the row at ``position``; MalformedProof if there is none."""
        return self._tree.inclusion_proof(position)


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
