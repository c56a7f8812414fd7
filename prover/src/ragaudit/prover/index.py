"""A tenant's documents as a committed index: docs/spec/05-records.md §5.4.

`IndexBuilder` turns documents into rows, commitments, the Merkle root and the index argument.
Everything it draws is fresh; vectors, blindings and salts never leave the prover except through
the openings that the protocol names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.statements import IndexStatement
from ragaudit.embedders.base import Embedder, embed_quantised
from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.ledger.messages.merkle_commitments import (
    IndexCommitment,
    IndexTree,
    content_digest,
    index_root,
    row_digest,
)
from ragaudit.ledger.messages.receipts import SQUARES
from ragaudit.prover.backends import MIN_DOCUMENTS, Backend, Document
from ragaudit.prover.errors import MalformedDocument
from ragaudit.prover.randomness import Randomness
from ragaudit.prover.store import tables
from sqlalchemy import Connection, Row, insert, select

VERSION = 1
BYTES = 32  # of a digest, salt, commitment or blinding

Progress = Callable[[float], bool | None]
Rows = npt.NDArray[np.int8]
Scalars = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

_COMPARED_AT_ONCE = 1 << 14  # rows: a comparison of all of them would copy the whole index


@dataclass(frozen=True)
class CommittedIndex:
    """Version 1 of a tenant's index with everything that opens its commitment.

    Attributes:
        ids: of the documents, in row order.
        content_digests, salts, commitments: 32 bytes a row, concatenated.
        rows: int8[N, d+4], the completed rows, each of squared norm 16129.
        blindings: uint8[N, 32], canonical scalars.
        root: of C_idx, 32 bytes.
        proof: pi_idx.
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

    @property
    def count(self) -> int:
        """N."""
        return len(self.rows)

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.rows.shape[1]) - SQUARES

    @property
    def vectors(self) -> Rows:
        """The embeddings, int8[N, d]: a view."""
        return self.rows[:, : self.dimension]

    @cached_property
    def scorer(self) -> core.Scorer:
        """The engine that scores all rows; it holds the vectors a second time."""
        return core.Scorer(np.ascontiguousarray(self.vectors))

    @cached_property
    def row_digests(self) -> bytes:
        """The digests of ids and contents, 32 bytes a row."""
        return row_digests(self.ids, self.salts, self.content_digests)

    @cached_property
    def tree(self) -> IndexTree:
        """The Merkle tree over the rows, for the paths in receipts."""
        return IndexTree(self.commitments, self.row_digests)

    def prepare(self, *, scorer: bool) -> None:
        """Make the tree now, and the scorer if answers use it, so that no query waits for them.

        Args:
            scorer: whether answers score every row; otherwise the scorer's copy is not made.
        """
        _ = self.tree
        if scorer:
            _ = self.scorer

    def commitment(self, window: str) -> IndexCommitment:
        """Return what the verifier gets (spec 5.4): commitments, digests, pi_idx, and no text."""
        return IndexCommitment(
            window,
            self.tenant,
            VERSION,
            self.dimension,
            self.commitments,
            self.row_digests,
            self.proof,
        )


class IndexBuilder:
    """Builds the committed index of one tenant after the other.

    Each step is a method, so that a cheat can replace one and the rest follows honestly.
    """

    def __init__(
        self, backend: Backend, embedder: Embedder, randomness: Randomness, page_rows: int
    ) -> None:
        self._backend = backend
        self._embedder = embedder
        self._randomness = randomness
        self._page_rows = page_rows

    def build(
        self,
        *,
        policy_digest: bytes,
        window: str,
        tenant: str,
        previous: CommittedIndex | None = None,
        progress: Progress | None = None,
    ) -> CommittedIndex:
        """Commit to a tenant's documents and prove the commitment.

        Args:
            policy_digest: of the window's policy, 32 bytes; the proof is bound to it.
            previous: the tenant's last committed index; rows that it has are not committed anew.
            progress: called with the done share of commitment and proof; False cancels.

        Raises:
            MalformedDocument: fewer than two documents, duplicate ids.
            MalformedError: a document that has no embedding (NaN, infinity, zero, no words).
        """
        documents = self.documents(tenant)
        rows = self.complete_rows(self.embed([document.content for document in documents]))
        count = len(rows)
        # Drawn for every window: two commitments to one row must not look alike.
        blindings = self._randomness.scalars(count, "blindings", window, tenant, VERSION)
        salts = self._randomness.draw(BYTES * count, "row salts", window, tenant, VERSION)
        ids = tuple(document.id for document in documents)
        contents = b"".join(content_digest(document.content) for document in documents)
        # Reblinding a commitment costs one multiplication, committing anew one for each entry.
        place = _places(ids, rows, previous)
        if previous is None or not (place >= 0).any():
            commitments = self.commit_rows(rows, blindings)
        else:
            commitments = self.commit_changed(rows, blindings, previous, place)
        root = index_root(commitments, row_digests(ids, salts, contents))
        # The statement of the verifier, built by the same function.
        statement = IndexStatement.of(
            policy_digest=policy_digest,
            window=window,
            tenant=tenant,
            version=VERSION,
            index_root=root,
            dimension=rows.shape[1] - SQUARES,
            commitments=commitments,
        )
        proof = self.prove(statement, rows, blindings, progress)
        return CommittedIndex(
            tenant, ids, contents, rows, blindings, salts, commitments, root, proof
        )

    def documents(self, tenant: str) -> list[Document]:
        """Return all documents of a tenant in the backend's order.

        Raises:
            MalformedDocument: fewer than two, or two of one id: a backend is not trusted with it.
        """
        documents: list[Document] = []
        for page in self._backend.pages(tenant, self._page_rows):
            documents += page
        if len(documents) < MIN_DOCUMENTS:
            raise MalformedDocument(
                f"{len(documents)} documents", where=f"tenant {tenant}", expected="2 or more"
            )
        if len({document.id for document in documents}) < len(documents):
            raise MalformedDocument(
                "duplicate document id", where=f"tenant {tenant}", expected="unique ids"
            )
        return documents

    def embed(self, contents: Sequence[str]) -> Rows:
        """Return int8[N, d], every row of norm at most 127.

        Args:
            contents: texts of the documents, in row order.

        Raises:
            MalformedError: a text that has no embedding.
        """
        return embed_quantised(self._embedder, contents)

    def complete_rows(self, vectors: Rows) -> Rows:
        """Return int8[N, d+4]: int8[N, d] with four squares a row that make its norm 127.

        Args:
            vectors: int8[N, d], of squared norm at most 16129.
        """
        return core.complete_rows(np.ascontiguousarray(vectors))

    def commit_rows(self, rows: Rows, blindings: Scalars) -> bytes:
        """Return C_0 || .. || C_(N-1), 32 bytes each.

        Args:
            rows: int8[N, d+4], completed.
            blindings: uint8[N, 32], canonical scalars.
        """
        return core.commit_rows(rows, blindings)

    def commit_changed(
        self, rows: Rows, blindings: Scalars, previous: CommittedIndex, place: Places
    ) -> bytes:
        """Return C_0 || .. || C_(N-1): unchanged rows blinded anew, the others committed to.

        Every row gets a fresh blinding, so nobody else can tell which rows changed.

        Args:
            place: int64[N], where ``previous`` has the row, or -1.
        """
        same = place >= 0
        before = place[same]
        commitments = np.empty((len(rows), BYTES), dtype=np.uint8)
        old = _by_row(previous.commitments)[before]
        # By the difference of the blindings: the row itself is not touched.
        fresh = core.reblind_rows(old.tobytes(), previous.blindings[before], blindings[same])
        commitments[same] = _by_row(fresh)
        if not same.all():
            commitments[~same] = _by_row(self.commit_rows(rows[~same], blindings[~same]))
        return commitments.tobytes()

    def prove(
        self,
        statement: IndexStatement,
        rows: Rows,
        blindings: Scalars,
        progress: Progress | None,
    ) -> bytes:
        """Return pi_idx, the index argument (docs/spec/04-arguments.md).

        Args:
            rows: int8[N, d+4], completed.
            blindings: uint8[N, 32], those of the commitments in the statement.
            progress: called with the share done; False cancels.
        """
        return core.prove_index(statement, rows, blindings, progress=progress)


def _by_row(data: bytes) -> Scalars:
    """Return concatenated values of 32 bytes as uint8[N, 32]: a view."""
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, BYTES)


def _places(ids: Sequence[str], rows: Rows, previous: CommittedIndex | None) -> Places:
    """Return int64[N]: where the previous index has the same document with the same row, or -1."""
    if previous is None or previous.rows.shape[1] != rows.shape[1]:
        return np.full(len(rows), -1, dtype=np.int64)
    # By id and by row: a document whose text changed is committed to anew.
    where = {name: position for position, name in enumerate(previous.ids)}
    place = np.array([where.get(name, -1) for name in ids], dtype=np.int64)
    for start in range(0, len(rows), _COMPARED_AT_ONCE):
        part = place[start : start + _COMPARED_AT_ONCE]
        same = (previous.rows[part] == rows[start : start + len(part)]).all(axis=1)
        part[~same] = -1
    return place


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


def save_index(connection: Connection, window: str, index: CommittedIndex) -> None:
    """Store a committed index: what it holds opens every row's commitment.

    Args:
        connection: of a transaction of the prover's database.
        window: that committed to it; it has none of this tenant yet.
    """
    connection.execute(
        insert(tables.index_version).values(
            window=window,
            tenant=index.tenant,
            version=VERSION,
            dimension=index.dimension,
            ids=dumps(list(index.ids)),
            content_digests=index.content_digests,
            rows=index.rows.tobytes(),
            blindings=index.blindings.tobytes(),
            salts=index.salts,
            commitments=index.commitments,
            root=index.root,
            proof=index.proof,
        )
    )


def load_indexes(connection: Connection, window: str) -> dict[str, CommittedIndex]:
    """Return the committed indexes of a window, by tenant in rising order.

    Args:
        window: those of its tenants that are committed to so far.
    """
    table = tables.index_version
    rows = connection.execute(
        select(table).where(table.c.window == window).order_by(table.c.tenant)
    )
    return {row.tenant: _stored(row) for row in rows}


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
        .order_by(windows.c.number.desc())
        .limit(1)
    )
    row = rows.one_or_none()
    return None if row is None else _stored(row)


def _stored(row: Row[Any]) -> CommittedIndex:
    return CommittedIndex(
        tenant=row.tenant,
        ids=tuple(loads(row.ids)),
        content_digests=row.content_digests,
        rows=np.frombuffer(row.rows, dtype=np.int8).reshape(-1, row.dimension + SQUARES),
        blindings=_by_row(row.blindings),
        salts=row.salts,
        commitments=row.commitments,
        root=row.root,
        proof=row.proof,
    )
