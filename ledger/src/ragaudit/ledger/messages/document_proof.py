"""Proof of what a closed log says of one document: never there, there, gone (spec 5.16)."""

from dataclasses import field
from itertools import pairwise
from typing import Annotated, TypeAlias

from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.errors import ProofRejected
from ragaudit.ledger.messages.documents import (
    MAX_VERSION,
    Documents,
    Life,
    check_secret,
    document_row,
    id_key,
)
from ragaudit.ledger.messages.kernel import (
    Converted,
    Digest,
    DocumentId,
    Integer,
    Items,
    Message,
    Origin,
    TenantName,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Version
from ragaudit.ledger.messages.requests import Position
from ragaudit.ledger.messages.row_openings import CommitRows
from ragaudit.ledger.messages.row_proofs import RowProof, check_owned
from ragaudit.ledger.messages.shown_entries import Place, ProvenEntry, ProvenOpening
from ragaudit.ledger.messages.sorted_rows import ProvenRow, verify_absent, verify_present

__all__ = ["MAX_LIVES", "DocumentProof", "ListedDocument"]

MAX_LIVES = 1001  # every second version, and more than a window has


def _life(versions: tuple[int, int]) -> Life:
    first, last = versions
    if first > last:
        raise MalformedError("not a life", expected="a first and a last version")
    return first, last


ShownLife: TypeAlias = Annotated[
    Life, Converted(Items(2, 2, Integer(1, MAX_VERSION)), _life, list, "first and last version")
]


class ListedDocument(Message):
    """What the digest of a document's row in the list is made of.

    Attributes:
        position: of its row in the index, from 0.
        lives: rising, each maximal; none of a position that was never live.
        row_digest: of its row in the first version that has it, 32 bytes.
    """

    position: Position
    lives: Annotated[tuple[ShownLife, ...], Items(0, MAX_LIVES)]
    row_digest: Digest

    @property
    def ended(self) -> int | None:
        """The last version that lists the document as live; None if no version does."""
        return self.lives[-1][1] if self.lives else None

    def _check(self) -> None:
        # Two that touch would be one life in two encodings.
        if any(before[1] + 1 >= after[0] for before, after in pairwise(self.lives)):
            expected = "maximal intervals of versions"
            raise MalformedError("not rising", where="lives", expected=expected)


class DocumentProof(Message, kind="document-proof", where="document proof"):
    """What the log of a closed window says of one document.

    Attributes:
        origin: of the window's log.
        id: of the document.
        document_secret: k_t, 32 bytes.
        opening: entry 0 of the log.
        documents: the tenant's entry near the end of the log.
        rows: of the document list: the document's, or the two between which it would stand.
        listed: opens the document's row; None if it has none.
        gone: entry of the version behind the last life, if that ended before the last version.
        last_row: in a window with noise the row of a listed document in the last version.
    """

    origin: Origin
    tenant: TenantName
    id: DocumentId = field(repr=False)
    document_secret: Digest = field(repr=False)
    opening: ProvenOpening
    documents: ProvenEntry
    rows: Annotated[tuple[ProvenRow, ...], Items(1, 2)]
    listed: ListedDocument | None
    gone: ProvenEntry | None
    last_row: RowProof | None

    @property
    def entry(self) -> Documents:
        """What the log says of the tenant's documents; MalformedRecord if it is no such body."""
        return Documents.parse(self.documents.entry.body)

    @property
    def gone_since(self) -> int | None:
        """The version from which on the document is gone; None if it is not, or never was there.

        In a window with noise nothing says since when: it is then the last version.
        """
        if self.gone is not None:
            return Version.parse(self.gone.entry.body).version
        return self.entry.version if self.last_row is not None and self.last_row.row.null else None

    def verify(self, policy: Policy, commit: CommitRows) -> Place | None:
        """Check that the log of the window says this of the document.

        That the list behind it is the one of the indexes is what check 31 of the verdict says.

        Args:
            policy: of the window; no key is taken from anywhere else.
            commit: commits to rows.

        Returns:
            Where the log has the entry of `gone`, which says when it came into force.

        Raises:
            UnsupportedError: the policy has no owners.
            ProofRejected, CommitmentRejected: of another log, window or tenant, an entry that is
                not where it should be, a row that is not in the list or says something else.
            RagauditError: as `ProvenEntry.verify` and `RowProof.verify`.
        """
        check_owned(policy)
        if self.origin != policy.origin:
            raise ProofRejected("of another log", where="origin", expected=policy.origin)
        first = self.opening.tenant(self.tenant, policy)
        entry = self._verify_entry(policy)
        secret = self.document_secret
        check_secret(policy.window, self.tenant, secret, first.id_commitment)
        key = id_key(policy.window, self.tenant, secret, self.id)
        count, root = entry.documents, entry.list_root
        if self.listed is None:
            verify_absent(self.rows, key, count=count, root=root)
            return None
        verify_present(self.rows[0], key, count=count, root=root)
        self._verify_listed(self.listed, key, entry)
        place = self._verify_gone(self.listed, entry, policy)
        self._verify_last_row(self.listed, entry, policy, commit)
        return place

    def _verify_entry(self, policy: Policy) -> Documents:
        place = self.documents.verify(Documents.KIND, policy)
        entry = self.entry
        if (entry.window, entry.tenant) != (policy.window, self.tenant):
            raise ProofRejected("of another window or tenant", where="documents")
        # Behind it are those of the tenants after this one, perhaps the accounts, and the close:
        # under another checkpoint there could be versions behind the list, which it does not know.
        later = len(policy.tenants) - policy.tenants.index(self.tenant)
        if place.size - place.index != later + policy.account_index + 1:
            raise ProofRejected("not where a closed log has it", where="documents")
        return entry

    def _verify_listed(self, listed: ListedDocument, key: bytes, entry: Documents) -> None:
        if listed.position >= entry.documents or (listed.ended or 1) > entry.version:
            raise ProofRejected("behind the last version", where="listed")
        row = document_row(key, listed.position, listed.lives, listed.row_digest)
        if row != self.rows[0].row:
            raise ProofRejected("another position or life than in the list", where="listed")

    def _verify_gone(
        self, listed: ListedDocument, entry: Documents, policy: Policy
    ) -> Place | None:
        due = listed.ended is not None and listed.ended < entry.version
        if due != (self.gone is not None):
            expected = "the version behind the last life" if due else "none"
            raise ProofRejected("a version entry, or none", where="gone", expected=expected)
        if self.gone is None or listed.ended is None:
            return None
        place = self.gone.verify(Version.KIND, policy)
        body = Version.parse(self.gone.entry.body)
        expected_place = (policy.window, self.tenant, listed.ended + 1)
        if (body.window, body.tenant, body.version) != expected_place:
            raise ProofRejected("the entry of another version", where="gone")
        return place

    def _verify_last_row(
        self, listed: ListedDocument, entry: Documents, policy: Policy, commit: CommitRows
    ) -> None:
        # Without noise a deleted row is marked, and the lives say it; under noise its row alone.
        if policy.noised != (self.last_row is not None):
            expected = "the row in the last version" if policy.noised else "none"
            raise ProofRejected("a row, or none", where="last_row", expected=expected)
        if self.last_row is None:
            return
        index, row = self.last_row.index, self.last_row.row
        place = (index.tenant, index.version, row.position, row.id)
        if place != (self.tenant, entry.version, listed.position, self.id):
            raise ProofRejected("of another row", where="last_row")
        self.last_row.verify(policy, commit)

    def _check(self) -> None:
        if len(self.rows) != (2 if self.listed is None else 1):
            raise MalformedError(f"{len(self.rows)} rows", expected="one that is listed, or two")
        # Of a document that is not there, nothing more is to be said.
        if self.listed is None and (self.gone is not None or self.last_row is not None):
            raise MalformedError("of no document", where="gone", expected="null")
