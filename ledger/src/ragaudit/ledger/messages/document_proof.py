"""Proof of what a closed log says of one document: never there, there, gone (spec 5.16)."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Self

from ragaudit.encoding.digests import DIGEST_BYTES
from ragaudit.ledger.errors import MalformedRecord, ProofRejected
from ragaudit.ledger.messages.documents import (
    MAX_VERSION,
    SECRET_BYTES,
    Documents,
    Life,
    check_secret,
    document_row,
    id_key,
)
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.identifiers import check_document_id, check_tenant
from ragaudit.ledger.messages.opened_entry import Place, ProvenEntry, ProvenOpening
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import MAX_ROWS, Version
from ragaudit.ledger.messages.row_openings import CommitRows
from ragaudit.ledger.messages.row_proofs import RowProof, check_owned
from ragaudit.ledger.messages.sorted_rows import ProvenRow, verify_absent, verify_present

__all__ = ["MAX_LIVES", "DocumentProof", "ListedDocument"]

MAX_LIVES = 1001  # every second version, and more than a window has


@dataclass(frozen=True, slots=True)
class ListedDocument(JsonMessage):
    """What the digest of a document's row in the list is made of.

    Attributes:
        position: of its row in the index, from 0.
        lives: rising, each maximal; none of a position that was never live.
        row_digest: of its row in the first version that has it, 32 bytes.
    """

    MEMBERS: ClassVar[str] = "position lives row_digest"

    position: int
    lives: tuple[Life, ...]
    row_digest: bytes

    @property
    def ended(self) -> int | None:
        """The last version that lists the document as live; None if no version does."""
        return self.lives[-1][1] if self.lives else None

    def _members(self) -> dict[str, Any]:
        return {
            "position": self.position,
            "lives": [list(life) for life in self.lives],
            "row_digest": self.row_digest.hex(),
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        lives = tuple(_read_life(f, item) for _, item in f.objects("lives", 0, MAX_LIVES))
        # Two that touch would be one life in two encodings.
        if any(before[1] + 1 >= after[0] for before, after in pairwise(lives)):
            raise f.error("lives", "not rising", expected="maximal intervals of versions")
        position = f.integer("position", 0, MAX_ROWS - 1)
        return cls(position, lives, f.hex("row_digest", DIGEST_BYTES))


def _read_life(f: Fields, value: Any) -> Life:
    match value:
        case [int(first), int(last)] if {type(first), type(last)} == {
            int
        } and 1 <= first <= last <= MAX_VERSION:
            return first, last
    raise f.error("lives", "not a life", expected="a first and a last version")


@dataclass(frozen=True, slots=True)
class DocumentProof(JsonMessage):
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

    FORMAT: ClassVar[str] = "ragaudit/v1/document-proof"
    MEMBERS: ClassVar[str] = (
        "origin tenant id document_secret opening documents rows listed gone last_row"
    )
    WHERE: ClassVar[str] = "document proof"
    LABEL: ClassVar[str] = "document proof"

    origin: str
    tenant: str
    id: str = field(repr=False)
    document_secret: bytes = field(repr=False)
    opening: ProvenOpening
    documents: ProvenEntry
    rows: tuple[ProvenRow, ...]
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

    def _members(self) -> dict[str, Any]:
        return {
            "origin": self.origin,
            "tenant": self.tenant,
            "id": self.id,
            "document_secret": self.document_secret.hex(),
            "opening": self.opening.to_json(),
            "documents": self.documents.to_json(),
            "rows": [row.to_json() for row in self.rows],
            "listed": None if self.listed is None else self.listed.to_json(),
            "gone": None if self.gone is None else self.gone.to_json(),
            "last_row": None if self.last_row is None else self.last_row.to_json(),
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        proof = cls(
            origin=f.origin(),
            tenant=check_tenant(f.text("tenant", 1, 64)),
            id=check_document_id(f.text("id", 1, 512)),
            document_secret=f.hex("document_secret", SECRET_BYTES),
            opening=f.message("opening", ProvenOpening),
            documents=f.message("documents", ProvenEntry),
            rows=f.messages("rows", ProvenRow, 1, 2),
            listed=f.optional(f.message, "listed", ListedDocument),
            gone=f.optional(f.message, "gone", ProvenEntry),
            last_row=f.optional(f.message, "last_row", RowProof),
        )
        if len(proof.rows) != (2 if proof.listed is None else 1):
            expected = "one that is listed, or two"
            raise MalformedRecord(f"{len(proof.rows)} rows", where=f.where, expected=expected)
        # Of a document that is not there, nothing more is to be said.
        if proof.listed is None and (proof.gone is not None or proof.last_row is not None):
            raise MalformedRecord("of no document", where=f.path("gone"), expected="null")
        return proof
