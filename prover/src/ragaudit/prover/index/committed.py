"""What a window's policy makes of documents, and a committed index, in memory and stored (5.4).

Vectors, blindings and salts never leave the prover except through the openings that the protocol
names.
"""

import threading
import weakref
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.metrics import COSINE, scaled
from ragaudit.circuits.selection import ColumnArrays
from ragaudit.circuits.statements import check_index_size
from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import B
from ragaudit.ledger.errors import CorruptLog, MalformedRecord
from ragaudit.ledger.messages.columns import (
    NO_COLUMNS,
    NULL_ROW,
    PublicColumn,
    Value,
    columns_text,
    parse_text,
)
from ragaudit.ledger.messages.commitments import (
    SQUARES,
    IndexCommitment,
    IndexTree,
    content_digest,
    row_digest,
)
from ragaudit.ledger.messages.filters import Filter
from ragaudit.ledger.messages.policy import LARGE_B, Policy
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.errors import MalformedDocument
from ragaudit.prover.sequencer import Pace
from ragaudit.prover.store import tables
from sqlalchemy import Connection, Row, insert, select

# Entries of a unit vector differ by up to 2.4e-7 (Chroma, cosine): 0.001 units of B = 4095.
_MOVED_ONE_IN = 128
_ROUNDED = 0.75  # units by which an entry may be off before the row is quantised anew


@dataclass(frozen=True)
class IndexForm:
    """How an index of a window looks; the defaults are the simplest.

    Attributes:
        norm_bound: B.
        metric, largest_norm: of the policy.
        columns: that the policy declares.
        null_columns: what stands in a null row's leaf where others have columns.
        owned: whether rows have id keys.
    """

    norm_bound: int = B
    metric: str = "cosine"
    largest_norm: Decimal | None = None
    columns: tuple[PublicColumn, ...] = ()
    null_columns: str = NO_COLUMNS
    owned: bool = False

    @classmethod
    def of(cls, policy: Policy) -> "IndexForm":
        """Return the form of the indexes of a window."""
        terms = policy.retrieval
        norm = terms.largest_norm
        return cls(
            norm_bound=policy.norm_bound,
            metric=terms.metric,
            largest_norm=None if norm is None else Decimal(norm),
            columns=terms.public_columns,
            null_columns=NULL_ROW if policy.marks_null_rows else NO_COLUMNS,
            owned=policy.owners is not None,
        )

    def digest(self, document: Document) -> bytes:
        """Return the digest of what a document holds, 32 bytes."""
        return content_digest(document.content, document.attributes)

    def columns_of(self, document: Document) -> str:
        """Return the canonical text of a document's public columns.

        A declared name that its attributes lack, or hold as null, has no value.

        Raises:
            MalformedDocument: a value of another type than declared; ``where`` names the document.
        """
        if not self.columns or not document.attributes:
            return columns_text({}, ())
        where = f"document {document.id}"
        try:
            attributes = parse_text(document.attributes, where)
            values = {
                column.name: attributes[column.name]
                for column in self.columns
                if attributes.get(column.name) is not None
            }
            return columns_text(values, self.columns)
        except MalformedRecord as error:
            # Left out, its row would pass filters that it must not: whoever declared the column
            # must know.
            raise MalformedDocument(
                f"public column: {error.what}", where=f"{where}: {error.where}",
                expected=error.expected,
            ) from None  # fmt: skip

    def integers(self, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the integer rows of real vectors: int8[N, d] for B = 127, else int16[N, d].

        Args:
            vectors: real numbers [N, d].

        Raises:
            MalformedError: a vector that the metric has no row for; ``where`` names the row.
        """
        return scaled(vectors, self.metric, self.largest_norm, self.norm_bound)

    def same_vector(self, row: npt.NDArray[Any], vector: npt.NDArray[Any]) -> bool:
        """Return whether a stored vector still is the one of a committed row.

        A store may return a vector otherwise in the last bits than it did when it was committed
        to, which moves an entry or two by one unit.

        Args:
            row: integers [d], of norm at most B.
            vector: real numbers, as the store returns them now.
        """
        if len(vector) != len(row):
            return False
        # A hundredth of the time of `integers`, and nearly always enough.
        if self.metric == COSINE and _rounds_to(row.astype(np.float64), vector.astype(np.float64)):
            return True
        try:
            now = self.integers(vector[np.newaxis])[0]
        except MalformedError:
            return False
        moved = np.abs(now.astype(np.int32) - row)
        return int(moved.max()) <= 1 and int(moved.sum()) <= 2 + len(row) // _MOVED_ONE_IN


def _rounds_to(row: npt.NDArray[np.float64], vector: npt.NDArray[np.float64]) -> bool:
    """Return whether a vector, at the scale that fits best, is a row up to its rounding."""
    square = float(vector @ vector)
    if not 0 < square < np.inf:
        return False
    scale = float(row @ vector) / square
    # Half a unit is the row's own rounding, the rest that of the scale; -1 times a row is another.
    return scale > 0 and float(np.abs(scale * vector - row).max()) < _ROUNDED


def check_size(tenant: str, rows: int, dimension: int, norm_bound: int) -> None:
    """Check that an index is small enough to be proven, before hours go into it (spec 4.7.1).

    Args:
        tenant: names the index in an error.
        rows: N, documents and null rows.
        dimension: d.
        norm_bound: B of the policy.

    Raises:
        MalformedDocument: it is not, and every verifier would refuse the window (check 4).
    """
    try:
        check_index_size(rows, dimension, norm_bound**2)
    except MalformedError as error:
        raise MalformedDocument(
            error.what, where=f"tenant {tenant}", expected=error.expected
        ) from None


VERSION = 1
BYTES = 32  # of a digest, salt, commitment or blinding

Rows = npt.NDArray[Any]  # int8 or int16
Scalars = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

_FILTERS_KEPT = 64
_OPENED_BYTES = 2**25  # of all indexes of the process: 2 kB for each row of 256 entries

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class Search:
    """A search for the K best rows.

    Attributes:
        query: e, int16[d].
        top_k: K.
        allowed: positions of the rows that may be found, int64, rising; None for all.
        found: their positions, int64, rising, and those of all that tie with the last.
    """

    query: npt.NDArray[np.int16] = field(repr=False)
    top_k: int
    allowed: Places | None
    found: Places = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class CommittedIndex:
    """A version of a tenant's index with everything that opens its commitment.

    Attributes:
        ids: of the documents, in row order.
        content_digests, salts, commitments: 32 bytes a row, concatenated.
        rows: int8[N, d+4] for B = 127, else int16[N, d+4]: the completed rows, each of squared
            norm B².
        blindings: uint8[N, 32], canonical scalars.
        root: of C_idx, 32 bytes.
        proof: pi_idx.
        version: v.
        columns: canonical texts of the rows' public columns; empty: no row has any.
        document_secret: k_t, 32 bytes; empty in windows without ``owners`` (5.16).
        id_keys: under it, 32 bytes a row; likewise.
    """

    tenant: str
    ids: tuple[str, ...] = field(repr=False)
    content_digests: bytes = field(repr=False)
    rows: Rows = field(repr=False)
    blindings: Scalars = field(repr=False)
    salts: bytes = field(repr=False)
    commitments: bytes = field(repr=False)
    root: bytes
    proof: bytes = field(repr=False)
    version: int = VERSION
    columns: tuple[str, ...] = field(default=(), repr=False)
    document_secret: bytes = field(default=b"", repr=False)
    id_keys: bytes = field(default=b"", repr=False)

    @cached_property
    def pace(self) -> Pace:
        """Of selections."""
        return Pace()

    @cached_property
    def filtering(self) -> Pace:
        """Of filters that are applied to all rows."""
        return Pace()

    @property
    def count(self) -> int:
        """N."""
        return len(self.rows)

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.rows.shape[1]) - SQUARES

    @property
    def norm_bound(self) -> int:
        """B."""
        return bound_of(self.rows)

    @property
    def vectors(self) -> Rows:
        """The embeddings, integers [N, d]: a view."""
        return self.rows[:, : self.dimension]

    @cached_property
    def scorer(self) -> core.Scorer:
        """The engine that scores all rows; it holds the vectors a second time."""
        return core.Scorer(np.ascontiguousarray(self.vectors))

    def find_best(self, searches: Sequence[Search]) -> None:
        """Find the best rows of several searches, by exact scores, in one pass over all rows."""
        queries = np.stack([each.query for each in searches])
        top_k, allowed = [each.top_k for each in searches], [each.allowed for each in searches]
        found = self.pace.timed(self.scorer.select_exactly, queries, top_k, allowed)
        for each, rows in zip(searches, found, strict=True):
            each.found = rows

    @cached_property
    def row_digests(self) -> bytes:
        """The digests of ids and contents, 32 bytes a row."""
        return row_digests(self.ids, self.salts, self.content_digests)

    @cached_property
    def tree(self) -> IndexTree:
        """The Merkle tree over the rows, for the paths in receipts."""
        return IndexTree(self.commitments, self.row_digests, self.columns, self.id_keys)

    @cached_property
    def column_arrays(self) -> ColumnArrays:
        """The public columns of all rows, for filters; which rows are null rows is part of it."""
        texts = self.columns or [NO_COLUMNS] * self.count
        read = {text: _values(text) for text in set(texts)}
        return ColumnArrays(read[text] for text in texts)

    @cached_property
    def _filtered(self) -> "Recent[str, array[int]]":
        """The rows that pass the filters that were asked last: applications repeat theirs.

        Four bytes a row: as objects, the positions of a large index would be nine times longer.
        """
        return Recent(_FILTERS_KEPT)

    @cached_property
    def opened(self) -> "OpenedRows":
        """What receipts say of the rows that were served last, see `answering.receipts`."""
        return OpenedRows()

    def columns_of(self, position: int) -> str:
        """Return the canonical text of a row's public columns.

        Args:
            position: 0..N-1.
        """
        return self.columns[position] if self.columns else NO_COLUMNS

    def id_key_of(self, position: int) -> bytes | None:
        """Return the id key of a row, 32 bytes; None in windows without ``owners``.

        Args:
            position: 0..N-1.
        """
        return part(self.id_keys, position) or None

    def column_values_of(self, position: int) -> dict[str, Value]:
        """Return the values of a row's public columns; none of a null row.

        Args:
            position: 0..N-1.
        """
        return _values(self.columns_of(position)) or {}

    def allowed(self, wanted: Filter) -> tuple[int, ...] | None:
        """Return the positions of rows that a search may select, rising; None for all.

        Args:
            wanted: checked against the policy's columns. Marked null rows pass no filter, and are
                left out without one too.
        """
        kept = self._filtered.find(wanted.text)
        if kept is not None:
            return tuple(kept)
        if wanted.text:
            found = self.filtering.call(wanted.allowed_in, self.column_arrays)
        else:
            found = wanted.allowed_in(self.column_arrays)
        if found is not None:
            self._filtered.keep(wanted.text, array("I", found))
        return found

    def holds(self, position: int, document: Document, form: IndexForm) -> bool:
        """Return whether a document is the one that the row at ``position`` commits to.

        Args:
            position: 0..N-1.
            document: as the backend returns it now; its vector is compared where it has one.
            form: of the indexes of this window.
        """
        if document.id != self.ids[position]:
            return False
        if form.digest(document) != part(self.content_digests, position):
            return False
        vector = document.vector
        return vector is None or form.same_vector(self.vectors[position], vector)

    def prepare(self, *, scorer: bool) -> None:
        """Make the tree now, and the scorer if answers use it, so that no query waits for them.

        Args:
            scorer: whether answers score every row; otherwise the scorer's copy is not made.
        """
        _ = self.tree, self.column_arrays
        if scorer:
            _ = self.scorer

    def commitment(self, window: str) -> IndexCommitment:
        """Return what the verifier gets (spec 5.4): commitments, digests, pi_idx, and no text."""
        return IndexCommitment(
            window,
            self.tenant,
            self.version,
            self.dimension,
            self.commitments,
            self.row_digests,
            self.proof,
            self.columns,
            self.id_keys,
        )


class Recent(Generic[K, V]):
    """What was asked for last, up to a limit. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        """Keep things whose sizes are ``most`` together, or less."""
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._room = most
        self._lock = threading.Lock()

    def find(self, key: K) -> V | None:
        """Return what is kept under a key, None if nothing is."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: K, value: V, size: int = 1) -> list[K]:
        """Keep something, and what was not asked for the longest no more: return its keys."""
        out: list[K] = []
        with self._lock:
            if key in self._kept:
                return out
            self._kept[key] = value, size
            self._room -= size
            while self._room < 0:
                last, (_, gone) = self._kept.popitem(last=False)
                self._room += gone
                out.append(last)
        return out


class OpenedRows:
    """What receipts say of an index's rows, in a room that all indexes of the process share.

    It has blindings in it: nothing of it outlives its index.
    """

    def __init__(self) -> None:
        self._rows: dict[int, list[bytes]] = {}
        self._self = weakref.ref(self)

    def find(self, position: int) -> list[bytes] | None:
        """Return what is kept of a row, None if nothing is.

        Args:
            position: 0..N-1.
        """
        opened = self._rows.get(position)
        if opened is not None:
            _OPENED.find((self._self, position))
        return opened

    def keep(self, position: int, opened: list[bytes]) -> None:
        """Keep what receipts say of a row, and of rows that were not asked for the longest no more.

        Args:
            position: 0..N-1.
            opened: bytes, whose lengths count.
        """
        # Before it is counted: what is counted no more is then nowhere.
        self._rows[position] = opened
        for owner, gone in _OPENED.keep((self._self, position), True, sum(map(len, opened))):
            if (rows := owner()) is not None:
                rows._rows.pop(gone, None)


_OPENED: Recent[tuple["weakref.ref[OpenedRows]", int], bool] = Recent(_OPENED_BYTES)


def _values(text: str) -> dict[str, Value] | None:
    """The values in a text of columns that the prover made; None for a null row's."""
    if text == NULL_ROW:
        return None
    values: dict[str, Value] = parse_text(text, "columns")
    return values


def bound_of(rows: Rows) -> int:
    """Return B of integer rows, which their type tells: 8 bits hold 127, 16 bits are for more.

    Args:
        rows: int8 or int16.
    """
    return B if rows.dtype == np.int8 else LARGE_B


def row_digests(ids: Sequence[str], salts: bytes, content_digests: bytes) -> bytes:
    """Return the row digests of all rows, 32 bytes each, concatenated.

    Args:
        salts, content_digests: 32 bytes a row, concatenated.
    """
    return b"".join(
        row_digest(part(salts, position), name, part(content_digests, position))
        for position, name in enumerate(ids)
    )


def part(data: bytes, position: int) -> bytes:
    """Return the 32 bytes of row ``position`` of concatenated values.

    Args:
        data: values of 32 bytes each, concatenated in row order.
        position: of the row, from 0.
    """
    return data[BYTES * position : BYTES * (position + 1)]


def by_row(data: bytes) -> Scalars:
    """Return concatenated values of 32 bytes as uint8[N, 32]: a view."""
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, BYTES)


def save_index(connection: Connection, window: str, index: CommittedIndex, marks: int = 0) -> None:
    """Store a committed index: what it holds opens every row's commitment.

    Args:
        connection: of a transaction of the prover's database.
        window: that committed to it; it has not this version of this tenant yet.
        marks: of its tenant before the documents were read, see `staleness`.
    """
    connection.execute(
        insert(tables.index_version).values(
            window=window,
            tenant=index.tenant,
            version=index.version,
            dimension=index.dimension,
            ids=dumps(list(index.ids)),
            content_digests=index.content_digests,
            columns=dumps(list(index.columns)),
            norm_bound=index.norm_bound,
            rows=index.rows.tobytes(),
            blindings=index.blindings.tobytes(),
            salts=index.salts,
            commitments=index.commitments,
            root=index.root,
            proof=index.proof,
            marks=marks,
            document_secret=index.document_secret or None,
            id_keys=index.id_keys or None,
        )
    )


def load_indexes(connection: Connection, window: str) -> dict[str, CommittedIndex]:
    """Return the indexes of a window's opening, by tenant in rising order.

    Args:
        window: those of its tenants that are committed to so far.
    """
    table = tables.index_version
    query = select(table).where(table.c.window == window, table.c.version == VERSION)
    rows = connection.execute(query.order_by(table.c.tenant))
    return {row.tenant: _stored(row) for row in rows}


def load_index(connection: Connection, window: str, tenant: str, version: int) -> CommittedIndex:
    """Return one version of a tenant's index.

    Args:
        window, tenant, version: of a logged record, so that it is stored.

    Raises:
        CorruptLog: it is not.
    """
    index = find_index(connection, window, tenant, version)
    if index is None:
        raise CorruptLog("an index is missing", where=f"{window}: {tenant}, version {version}")
    return index


def find_index(
    connection: Connection, window: str, tenant: str, version: int
) -> CommittedIndex | None:
    """Return one version of a tenant's index, None if it is not stored."""
    table = tables.index_version
    row = connection.execute(
        select(table).where(
            table.c.window == window, table.c.tenant == tenant, table.c.version == version
        )
    ).one_or_none()
    return None if row is None else _stored(row)


def last_index(connection: Connection, tenant: str) -> CommittedIndex | None:
    """Return the index of a tenant that was committed to last, None if there is none.

    Args:
        tenant: of any window, also one that was refused or abandoned.
    """
    table, windows = tables.index_version, tables.window
    rows = connection.execute(
        select(table)
        .join(windows, windows.c.name == table.c.window)
        .where(table.c.tenant == tenant)
        # By creation, not by time of commitment: clocks may be set, numbers are never reused.
        .order_by(windows.c.number.desc(), table.c.version.desc())
        .limit(1)
    )
    row = rows.one_or_none()
    return None if row is None else _stored(row)


def _stored(row: Row[Any]) -> CommittedIndex:
    kind = np.int8 if row.norm_bound == B else np.int16
    return CommittedIndex(
        tenant=row.tenant,
        ids=tuple(loads(row.ids)),
        content_digests=row.content_digests,
        rows=np.frombuffer(row.rows, dtype=kind).reshape(-1, row.dimension + SQUARES),
        blindings=by_row(row.blindings),
        salts=row.salts,
        commitments=row.commitments,
        root=row.root,
        proof=row.proof,
        version=row.version,
        columns=tuple(loads(row.columns)),
        document_secret=row.document_secret or b"",
        id_keys=row.id_keys or b"",
    )
