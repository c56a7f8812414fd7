"""A tenant's documents as a committed index: docs/spec/05-records.md §5.4.

`IndexBuilder` turns documents into rows, commitments, the Merkle root and the index argument.
Everything it draws is fresh.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from ragaudit import core
from ragaudit.circuits.metrics import INNER_PRODUCT
from ragaudit.circuits.statements import IndexStatement, NormOpening, shifted
from ragaudit.embedders.base import Embedder, checked_embeddings, checked_texts, embed_quantised
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.columns import NO_COLUMNS
from ragaudit.ledger.messages.commitments import SQUARES, content_digest, index_root
from ragaudit.ledger.messages.documents import SECRET_BYTES, id_keys
from ragaudit.prover.backends.interface import MIN_DOCUMENTS, Backend, Document
from ragaudit.prover.errors import MalformedDocument
from ragaudit.prover.index.committed import (
    BYTES,
    VERSION,
    CommittedIndex,
    IndexForm,
    Places,
    Rows,
    Scalars,
    bound_of,
    by_row,
    check_size,
    part,
    row_digests,
)
from ragaudit.prover.randomness import Randomness
from ragaudit.prover.work import WindowWork

FIRST_FORM = IndexForm()

Progress = Callable[[float], bool | None]

_COMPARED_AT_ONCE = 1 << 14  # rows: a comparison of all of them would copy the whole index


@dataclass(frozen=True)
class Source:
    """The rows of an index before they are committed to.

    Attributes:
        ids, content_digests, columns: as of `CommittedIndex`.
        rows: int8 or int16[N, d+4], completed.
        at_one_scale: whether rows keep their lengths, as inner products want.
    """

    ids: tuple[str, ...] = field(repr=False)
    content_digests: bytes = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)
    rows: Rows = field(repr=False)
    at_one_scale: bool = False


class IndexBuilder:
    """Builds the committed index of one tenant after the other.

    Each step is a method, so that a cheat can replace one and the rest follows honestly.
    """

    def __init__(
        self,
        backend: Backend,
        embedder: Embedder,
        randomness: Randomness,
        page_rows: int,
        work: WindowWork,
    ) -> None:
        self._backend = backend
        self._embedder = embedder
        self._randomness = randomness
        self._page_rows = page_rows
        self._work = work

    def build(
        self,
        *,
        policy_digest: bytes,
        window: str,
        tenant: str,
        form: IndexForm = FIRST_FORM,
        previous: CommittedIndex | None = None,
        progress: Progress | None = None,
    ) -> CommittedIndex:
        """Commit to a tenant's documents and prove the commitment.

        Args:
            policy_digest: of the window's policy, 32 bytes; the proof is bound to it.
            form: that the policy gives its indexes.
            previous: the tenant's last committed index; rows that it has are not committed anew.
            progress: called with the done share of commitment and proof; False cancels.

        Raises:
            MalformedDocument: fewer than two documents, duplicate ids, columns of other types.
            MalformedError: a document that has no embedding (NaN, infinity, zero, no words).
        """
        source = self.read(tenant, form)
        # Reblinding a commitment costs one multiplication, committing anew one for each entry.
        place = _places(source.ids, source.rows, previous)
        return self.commit(
            source,
            policy_digest=policy_digest,
            window=window,
            tenant=tenant,
            version=VERSION,
            previous=None if previous is None else (previous, place),
            progress=progress,
            secret=self.document_secret(window, tenant) if form.owned else b"",
        )

    def document_secret(self, window: str, tenant: str) -> bytes:
        """Return a fresh k_t, 32 bytes (spec 5.16)."""
        return self._randomness.draw(SECRET_BYTES, "document secret", window, tenant)

    def read(self, tenant: str, form: IndexForm) -> Source:
        """Return a tenant's documents as they stand now, in the backend's order, as rows.

        Raises:
            MalformedDocument: fewer than two, duplicate ids, columns of other types than declared.
            MalformedError: one that has no embedding, or a vector that the metric has no row for.
        """
        documents, vectors = self.documents(tenant, form)
        if vectors is None:
            vectors = self.embed([document.content for document in documents], form)
        columns = tuple(form.columns_of(document) for document in documents)
        return Source(
            ids=tuple(document.id for document in documents),
            content_digests=b"".join(form.digest(document) for document in documents),
            columns=columns if set(columns) - {NO_COLUMNS} else (),
            rows=self.complete_rows(vectors),
            at_one_scale=form.metric == INNER_PRODUCT,
        )

    def commit(
        self,
        source: Source,
        *,
        policy_digest: bytes,
        window: str,
        tenant: str,
        version: int,
        previous: tuple[CommittedIndex, Places] | None,
        progress: Progress | None,
        secret: bytes = b"",
    ) -> CommittedIndex:
        """Commit to rows, with fresh blindings and salts for all of them, and prove it.

        Args:
            source: of the rows.
            policy_digest: of the window's policy, 32 bytes.
            previous: an index, and int64[N]: where it has each row, or -1.
            progress: called with the share done; False cancels.
            secret: k_t of tenant and window; empty without ``owners``.

        Raises:
            MalformedDocument: more rows than can be proven for this B and d.
        """
        rows, count = source.rows, len(source.rows)
        check_size(tenant, count, rows.shape[1] - SQUARES, bound_of(rows))
        # Drawn for every version: two commitments to one row must not look alike.
        blindings = self._randomness.scalars(count, "blindings", window, tenant, version)
        salts = self._randomness.draw(BYTES * count, "row salts", window, tenant, version)
        if previous is None or not (previous[1] >= 0).any():
            commitments = self.commit_rows(rows, blindings)
        else:
            commitments = self.commit_changed(rows, blindings, *previous)
        digests = row_digests(source.ids, salts, source.content_digests)
        keys = self.id_keys(window, tenant, secret, source.ids) if secret else b""
        root = index_root(commitments, digests, source.columns, keys)
        # The statement of the verifier, built by the same function.
        statement = IndexStatement.of(
            policy_digest=policy_digest,
            window=window,
            tenant=tenant,
            version=version,
            index_root=root,
            dimension=rows.shape[1] - SQUARES,
            commitments=commitments,
            squared_norm=bound_of(rows) ** 2,
        )
        return CommittedIndex(
            tenant=tenant,
            ids=source.ids,
            content_digests=source.content_digests,
            rows=rows,
            blindings=blindings,
            salts=salts,
            commitments=commitments,
            root=root,
            proof=self.prove(statement, rows, blindings, progress, shows_norm=source.at_one_scale),
            version=version,
            columns=source.columns,
            document_secret=secret,
            id_keys=keys,
        )

    def id_keys(self, window: str, tenant: str, secret: bytes, ids: Sequence[str]) -> bytes:
        """Return the id keys of all rows, 32 bytes each.

        Args:
            secret: k_t, 32 bytes.
            ids: of the documents, in row order.
        """
        return id_keys(window, tenant, secret, ids)

    def documents(self, tenant: str, form: IndexForm) -> tuple[list[Document], Rows | None]:
        """Return all documents of a tenant in the backend's order, and the rows of their vectors.

        Returns:
            The documents without vectors, and int8 or int16[N, d]; None if texts are embedded.

        Raises:
            MalformedDocument: fewer than two, two of one id, some with vectors and others without,
                vectors of two lengths: a backend is not trusted with any of it.
        """
        documents: list[Document] = []
        parts: list[Rows] = []
        for page in self._backend.pages(tenant, self._page_rows):
            if any(document.vector is not None for document in page):
                parts.append(_integers(page, form))
            documents += [replace(document, vector=None) for document in page]
        if len(documents) < MIN_DOCUMENTS:
            raise MalformedDocument(
                f"{len(documents)} documents", where=f"tenant {tenant}", expected="2 or more"
            )
        if len({document.id for document in documents}) < len(documents):
            raise MalformedDocument(
                "duplicate document id", where=f"tenant {tenant}", expected="unique ids"
            )
        if sum(map(len, parts)) not in {0, len(documents)}:
            raise MalformedDocument(
                "documents without a vector", where=f"tenant {tenant}", expected="all or none"
            )
        if len({part.shape[1] for part in parts}) > 1:
            raise MalformedDocument("vectors of two lengths", where=f"tenant {tenant}")
        return documents, np.concatenate(parts) if parts else None

    def embed(self, contents: Sequence[str], form: IndexForm = FIRST_FORM) -> Rows:
        """Return integers [N, d], every row of norm at most B.

        Args:
            contents: texts of the documents, in row order.
            form: says B.

        Raises:
            MalformedError: a text that has no embedding.
        """
        if form == FIRST_FORM:
            return embed_quantised(self._embedder, contents)
        vectors = self._embedder.embed(checked_texts(contents))
        return form.integers(checked_embeddings(vectors, len(contents), self._embedder.dimension))

    def complete_rows(self, vectors: Rows) -> Rows:
        """Return integers [N, d+4]: those of [N, d] with four squares a row that make its norm B.

        Args:
            vectors: int8 or int16[N, d], of norm at most B.
        """
        return core.complete_rows(np.ascontiguousarray(vectors), bound_of(vectors) ** 2)

    def commit_rows(self, rows: Rows, blindings: Scalars) -> bytes:
        """Return C_0 || .. || C_(N-1), 32 bytes each.

        Args:
            rows: int8 or int16[N, d+4], completed.
            blindings: uint8[N, 32], canonical scalars.
        """
        return self._work.commit_rows(rows, blindings)

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
        old = by_row(previous.commitments)[before]
        # By the difference of the blindings: the row itself is not touched.
        fresh = core.reblind_rows(old.tobytes(), previous.blindings[before], blindings[same])
        commitments[same] = by_row(fresh)
        if not same.all():
            commitments[~same] = by_row(self.commit_rows(rows[~same], blindings[~same]))
        return commitments.tobytes()

    def prove(
        self,
        statement: IndexStatement,
        rows: Rows,
        blindings: Scalars,
        progress: Progress | None,
        *,
        shows_norm: bool = False,
    ) -> bytes:
        """Return pi_idx, the index argument (docs/spec/04-arguments.md).

        Args:
            rows: int8 or int16[N, d+4], completed.
            blindings: uint8[N, 32], those of the commitments in the statement.
            progress: called with the share done; False cancels.
            shows_norm: whether the norm of the longest row is shown beside it (4.7.7).
        """
        proof = self._work.prove_index(statement, rows, blindings, progress)
        if not shows_norm:
            return proof
        opening = NormOpening.of(rows)
        shifts = opening.shifts(statement.dimension, statement.squared_norm)
        moved = shifted(rows[opening.position].tolist(), shifts)
        same = np.repeat(blindings[opening.position][np.newaxis], len(moved), axis=0)
        about = opening.statement(statement, core.commit_rows(moved, same))
        # Some rows alone: not worth a job of its own.
        shown = core.prove_index(about, moved, same)
        return replace(opening, proof=shown).beside(proof)


def _integers(page: Sequence[Document], form: IndexForm) -> Rows:
    """Return the rows of a page's vectors; errors name the document."""
    vectors = [document.vector for document in page if document.vector is not None]
    if len(vectors) < len(page) or len({len(vector) for vector in vectors}) > 1:
        raise MalformedDocument(
            "vectors of two lengths, or none",
            where=f"documents {page[0].id} to {page[-1].id}",
            expected="one vector of d entries each",
        )
    try:
        return form.integers(np.stack(vectors))
    except MalformedError as error:
        row = error.where.removeprefix("row ")
        where = f"document {page[int(row)].id}" if row.isdecimal() else error.where
        raise MalformedDocument(error.what, where=where, expected=error.expected) from None


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


def following(
    now: Source,
    before: CommittedIndex,
    complete: Callable[[Rows], Rows],
    null_columns: str = NO_COLUMNS,
) -> tuple[Source | None, Places]:
    """Return the rows of the version after ``before``, and where that has each of them.

    A document keeps its place, a new one gets the next, one that is gone leaves a null row with its
    id behind, and one that comes back gets its old place again.

    Args:
        now: the documents as they stand, in any order.
        before: the last version of the same tenant and window.
        complete: adds the four squares to integers [N, d].
        null_columns: of the window's `IndexForm`.

    Returns:
        The rows, None if nothing changed; and int64[N], the place in ``before`` of a row that it
        has unchanged, or -1.

    Raises:
        MalformedDocument: the store's vectors have another length now.
    """
    if now.rows.shape[1] != before.rows.shape[1]:
        raise MalformedDocument(
            f"vectors of {now.rows.shape[1] - SQUARES} entries",
            where=f"tenant {before.tenant}",
            expected=f"{before.dimension}, as in all of the window",
        )
    places = {name: position for position, name in enumerate(before.ids)}
    added = [at for at, name in enumerate(now.ids) if name not in places]
    count = before.count + len(added)
    ids = [*before.ids, *(now.ids[at] for at in added)]
    null = complete(np.zeros((1, before.dimension), dtype=before.rows.dtype))[0]
    rows = np.tile(null, (count, 1))
    empty = content_digest("")
    digests = [empty] * count
    columns = [null_columns] * count
    new_place = {at: before.count + number for number, at in enumerate(added)}
    for at, name in enumerate(now.ids):
        position = places.get(name, new_place.get(at, -1))
        rows[position] = now.rows[at]
        digests[position] = part(now.content_digests, at)
        columns[position] = now.columns[at] if now.columns else NO_COLUMNS
    same = np.empty(before.count, dtype=np.bool_)
    for start in range(0, before.count, _COMPARED_AT_ONCE):
        block = slice(start, min(start + _COMPARED_AT_ONCE, before.count))
        same[block] = (rows[block] == before.rows[block]).all(axis=1)
    place = np.full(count, -1, dtype=np.int64)
    place[: before.count] = np.where(same, np.arange(before.count), -1)
    source = replace(
        now,
        ids=tuple(ids),
        content_digests=b"".join(digests),
        columns=tuple(columns) if set(columns) - {NO_COLUMNS} else (),
        rows=rows,
    )
    assert len(source.content_digests) == BYTES * count
    unchanged = (
        count == before.count
        and bool(same.all())
        and source.content_digests == before.content_digests
        and source.columns == before.columns
    )
    return (None if unchanged else source), place
