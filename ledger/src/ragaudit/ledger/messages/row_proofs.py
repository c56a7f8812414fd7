"""Proof of what an index says of one document in one version (docs/spec/05-records.md §5.16).

Many rows of one version are proven together: what they have in common stands once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.errors import CommitmentRejected, ProofRejected
from ragaudit.ledger.messages.columns import NULL_ROW
from ragaudit.ledger.messages.documents import (
    MAX_VERSION,
    check_secret,
    id_key,
)
from ragaudit.ledger.messages.kernel import (
    EMBEDDED,
    Digest,
    DocumentId,
    Integer,
    Items,
    Message,
    Origin,
    TenantName,
)
from ragaudit.ledger.messages.merkle_commitments import content_digest, row_digest, verify_index_row
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import TenantOpening, Version
from ragaudit.ledger.messages.requests import Columns, Content
from ragaudit.ledger.messages.row_openings import (
    CommitRows,
    RowOpening,
    check_length,
    completed_row,
    is_null,
)
from ragaudit.ledger.messages.shown_entries import ProvenEntry, ProvenOpening

__all__ = [
    "MAX_PROVEN_ROWS",
    "ProvenIndex",
    "ProvenIndexRow",
    "RowProof",
    "RowProofs",
    "check_owned",
]

MAX_PROVEN_ROWS: Final = 500
"""Of one reply: with the longest texts they are as large as a client reads."""


def check_owned(policy: Policy) -> None:
    """Check that a window's policy has `owners`; UnsupportedError if not."""
    if policy.owners is None:
        expected = "a window whose policy has owners"
        raise UnsupportedError("no owners in this window", where="policy", expected=expected)


@dataclass(frozen=True, slots=True)
class _Known:
    """What a row is checked against: the version of the index, and its document secret."""

    index: TenantOpening
    secret: bytes = field(repr=False)


class ProvenIndexRow(RowOpening):
    """A row of an index, with everything that opens it.

    Attributes:
        id: of the document; a null row keeps it.
        content, attributes: as they were committed; None where the store has them no longer.
        content_digest: of both, 32 bytes.
        columns: canonical text of its public columns; ``null`` of a marked row.
    """

    id: DocumentId = field(repr=False)
    content: Content | None = field(repr=False)
    attributes: Content | None = field(repr=False)
    content_digest: Digest
    columns: Columns = field(repr=False)

    @property
    def marked(self) -> bool:
        """Whether the row is marked as that of a deleted document."""
        return self.columns == NULL_ROW

    @property
    def null(self) -> bool:
        """Whether the row is a null row (5.4)."""
        return is_null(self.vector, self.content_digest, self.columns)

    def holds(self, content: str, attributes: str) -> bool:
        """Return whether the row commits to exactly this text and these attributes.

        Args:
            content: the text.
            attributes: canonical JSON text of all metadata; empty for none.
        """
        return content_digest(content, attributes) == self.content_digest

    def check_leaf(self, known: _Known, policy: Policy) -> None:
        """Check that the row is at its place of the index; raises as `ProvenIndex.check`."""
        digest = row_digest(self.salt, self.id, self.content_digest)
        key = id_key(policy.window, known.index.tenant, known.secret, self.id)
        verify_index_row(
            root=known.index.index_root,
            rows=known.index.rows,
            position=self.position,
            commitment=self.commitment,
            row=digest,
            path=self.path,
            columns=self.columns,
            id_key=key,
        )

    def check_held(self, policy: Policy) -> None:
        """Check what the row holds by itself; raises as `ProvenIndex.check`."""
        where = f"row {self.position}"
        if self.content is not None and not self.holds(self.content, self.attributes or ""):
            raise CommitmentRejected("not the committed content", where=where)
        # Whoever searches leaves a marked row out, so a document behind the mark is hidden.
        if self.marked and not self.null:
            raise ProofRejected(
                "marked as deleted, and it holds a document", where=where, expected="a null row"
            )
        if not self.null:
            check_length(self.vector, policy, where)

    def _check(self) -> None:
        # One without the other opens no digest.
        if (self.content is None) != (self.attributes is None):
            expected = "content and attributes, or neither"
            raise MalformedError("one of two", where="attributes", expected=expected)


class ProvenIndex(Message, where="index"):
    """A version of a tenant's index, as the log commits to it, and the tenant's document secret.

    Attributes:
        origin: of the window's log.
        version: v, from 1.
        document_secret: k_t, 32 bytes.
        opening: entry 0 of the log.
        announced: the version's entry; None for version 1.
    """

    origin: Origin
    tenant: TenantName
    version: Annotated[int, Integer(1, MAX_VERSION)]
    document_secret: Digest = field(repr=False)
    opening: ProvenOpening
    announced: ProvenEntry | None

    def verify(self, policy: Policy) -> TenantOpening:
        """Return what the log commits to.

        Args:
            policy: of the window; no key is taken from anywhere else.

        Raises:
            UnsupportedError: the policy has no owners.
            ProofRejected, CommitmentRejected: of another log, window, tenant or version, not in the
                log, or another secret.
            RagauditError: as `ProvenEntry.verify`; a body or a tenant that is none.
        """
        check_owned(policy)
        if self.origin != policy.origin:
            raise ProofRejected("of another log", where="origin", expected=policy.origin)
        first = self.opening.tenant(self.tenant, policy)
        index = first if self.announced is None else self._announced(self.announced, policy)
        check_secret(policy.window, self.tenant, self.document_secret, first.id_commitment)
        return index

    def check(
        self,
        index: TenantOpening,
        rows: Sequence[ProvenIndexRow],
        policy: Policy,
        commit: CommitRows,
    ) -> None:
        """Check that rows are those of the index, and what they say of themselves.

        Args:
            index: that `verify` returned.
            rows: of it, in any order.
            policy: of the window.
            commit: commits to rows.

        Raises:
            CommitmentRejected: a row that is not at its place, another vector, norm or content.
            ProofRejected: one that is marked as deleted and is no null row, or is too short.
            MalformedError: a path of another length, a blinding that is no scalar.
        """
        known = _Known(index, self.document_secret)
        for row in rows:
            row.check_leaf(known, policy)
        completed = [completed_row(row, policy) for row in rows]
        made = commit(completed, [row.blinding for row in rows]) if rows else ()
        for row, commitment in zip(rows, made, strict=True):
            if commitment != row.commitment:
                where = f"row {row.position}"
                raise CommitmentRejected("the vector is not the committed one", where=where)
            row.check_held(policy)

    def _announced(self, announced: ProvenEntry, policy: Policy) -> TenantOpening:
        announced.verify(Version.KIND, policy)
        body = Version.parse(announced.entry.body)
        place = (body.window, body.tenant, body.version)
        if place != (policy.window, self.tenant, self.version):
            raise ProofRejected("the entry of another version", where="announced")
        return body.index

    def _check(self) -> None:
        # Of version 1 the opening says everything, of a later one nothing.
        if (self.announced is None) != (self.version == 1):
            expected = "null for version 1 alone"
            raise MalformedError("not of this version", where="announced", expected=expected)


class RowProof(Message, kind="row-proof", where="row proof"):
    """What an index says of one document in one version."""

    index: Annotated[ProvenIndex, EMBEDDED]
    row: ProvenIndexRow

    def verify(self, policy: Policy, commit: CommitRows) -> None:
        """Check that the log of the window commits to this row.

        Args:
            policy: of the window; no key is taken from anywhere else.
            commit: commits to rows.

        Raises:
            RagauditError: as `ProvenIndex.verify` and `ProvenIndex.check`.
        """
        self.index.check(self.index.verify(policy), [self.row], policy, commit)


class RowProofs(Message, kind="row-proofs", where="row proofs"):
    """Several rows of one version, as they were asked for.

    Attributes:
        rows: in the order of the request; None for an id that the index does not have.
    """

    index: Annotated[ProvenIndex, EMBEDDED]
    rows: Annotated[tuple[ProvenIndexRow | None, ...], Items(1, MAX_PROVEN_ROWS)]

    @property
    def proofs(self) -> tuple[RowProof | None, ...]:
        """Each row as a proof of its own."""
        return tuple(None if row is None else RowProof(self.index, row) for row in self.rows)

    def verify(self, policy: Policy, commit: CommitRows) -> TenantOpening:
        """Check every row, and return what the log commits to; arguments as `RowProof.verify`."""
        index = self.index.verify(policy)
        self.index.check(index, [row for row in self.rows if row is not None], policy, commit)
        return index
