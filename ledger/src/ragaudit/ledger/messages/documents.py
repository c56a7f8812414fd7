"""Documents of a tenant's index over a window, and their proofs (docs/spec/05-records.md §5.16).

A row carries the *id key* of its document, under a secret that the opening commits to; the end of
the log lists the keys of all positions with the versions in which each document was live.
"""

import hmac
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Final, Protocol, TypeAlias

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.tagged import DIGEST_BYTES, enc
from ragaudit.ledger.errors import CommitmentRejected, MalformedRecord, ProofRejected
from ragaudit.ledger.messages.columns import NULL_ROW
from ragaudit.ledger.messages.commitments import (
    CommitRows,
    RowOpening,
    check_length,
    completed_row,
    content_digest,
    is_null,
    row_digest,
    verify_index_row,
)
from ragaudit.ledger.messages.entries import (
    MAX_VERSION,
    Documents,
    TenantOpening,
    Version,
    check_range,
)
from ragaudit.ledger.messages.identifiers import check_document_id
from ragaudit.ledger.messages.kernel import (
    EMBEDDED,
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
from ragaudit.ledger.messages.requests import Columns, Content, Position
from ragaudit.ledger.messages.shown import Place, ProvenEntry, ProvenOpening
from ragaudit.ledger.messages.sorted_rows import (
    FIRST,
    LAST,
    KeyedRow,
    ProvenRow,
    SortedRows,
    verify_absent,
    verify_present,
)

SECRET_BYTES: Final = 32
_VERSION_BYTES: Final = 4

Life = tuple[int, int]
"""The first and the last version of an interval in which a position is listed as live."""


def id_commitment(window: str, tenant: str, secret: bytes) -> bytes:
    """Return what the opening says of a tenant's document secret, 32 bytes.

    Args:
        window, tenant: whose secret it is.
        secret: k_t, 32 bytes.

    Raises:
        MalformedRecord: a secret of another length.
    """
    return structure("documents/secret", window, tenant, _sized(secret))


def check_secret(window: str, tenant: str, secret: bytes, commitment: bytes | None) -> None:
    """Check that a document secret is the one that the opening commits to.

    Args:
        window, tenant: whose secret it is.
        secret: k_t, 32 bytes.
        commitment: the opening's; None where it has none.

    Raises:
        CommitmentRejected: it is another one.
        MalformedRecord: a secret of another length.
    """
    if id_commitment(window, tenant, secret) != commitment:
        raise CommitmentRejected("not the committed document secret", where="document_secret")


def id_key(window: str, tenant: str, secret: bytes, document_id: str) -> bytes:
    """Return the key that stands in the leaf of a document's row, 32 bytes.

    Args:
        window, tenant: whose index it is.
        secret: k_t, 32 bytes.
        document_id: 1..512 bytes of UTF-8.

    Raises:
        MalformedRecord: a secret or an id of another length.
    """
    message = enc("ragaudit/v1/documents/id", window, tenant, check_document_id(document_id))
    return hmac.digest(_sized(secret), message, "sha256")


def id_keys(window: str, tenant: str, secret: bytes, ids: Iterable[str]) -> bytes:
    """Return `id_key` of each document, concatenated."""
    return b"".join(id_key(window, tenant, secret, each) for each in ids)


def document_row(key: bytes, position: int, lives: Iterable[Life], row_digest: bytes) -> KeyedRow:
    """Return the row of the document list for a position.

    Args:
        key: id key of the position, 32 bytes.
        position: i, from 0.
        lives: rising.
        row_digest: of the row in the first version that has it, 32 bytes.

    Raises:
        MalformedRecord: a version out of range.
    """
    encoded = b"".join(map(_life_bytes, lives))
    return KeyedRow(key, structure("documents/row", key, position, encoded, row_digest))


class DocumentList:
    """The document list of a tenant, with what opens its rows.

    Attributes:
        entry: what the log says of it.
    """

    def __init__(
        self, entry: Documents, rows: SortedRows, order: Sequence[int], lives: "DocumentLives"
    ) -> None:
        """Take a list that `DocumentLives.listed` made.

        Args:
            entry: what the log says of it.
            rows: nobody's two included.
            order: positions of the index in the order of the others.
            lives: of all positions.
        """
        self.entry = entry
        self._rows = rows
        self._order = order
        self._lives = lives

    def prove(self, key: bytes) -> tuple[ProvenRow, ...]:
        """Return the row of an id key, or the two rows between which it would stand.

        Args:
            key: 32 bytes.
        """
        return self._rows.prove(key)

    def position(self, row: ProvenRow) -> int:
        """Return where the index has the document of a row.

        Args:
            row: of this list, and not one of nobody's.
        """
        return self._order[row.position - 1]

    def lives(self, position: int) -> tuple[Life, ...]:
        """Return the lives of a position, rising.

        Args:
            position: from 0, below n.
        """
        return self._lives.of(position)

    def row_digest(self, position: int) -> bytes:
        """Return the row digest of a position in the first version that has it, 32 bytes."""
        return self._lives.row_digest(position)


class IndexRows(Protocol):
    """What a version of an index says of its rows, in order."""

    @property
    def version(self) -> int:
        """Return v."""

    @property
    def id_keys(self) -> bytes:
        """Return 32 bytes a row."""

    @property
    def row_digests(self) -> bytes:
        """Return 32 bytes a row."""

    @property
    def columns(self) -> Sequence[str]:
        """Return a text a row, or none at all."""


class DocumentLives:
    """When each position of a tenant's index is listed as live, version by version.

    It keeps of a version what its rows add to the ones before, so its memory is that of one index.
    """

    def __init__(self, window: str, tenant: str) -> None:
        """Begin before the first version."""
        self._place = window, tenant
        self._sizes: list[int] = []  # N of each version
        self._keys = b""
        self._row_digests = b""
        self._marked: set[int] = set()
        self._since: dict[int, int] = {}  # of rows that came back: the version that did it
        self._ended: dict[int, tuple[Life, ...]] = {}

    @property
    def version(self) -> int:
        """The last version that was added; 0 for none."""
        return len(self._sizes)

    @property
    def count(self) -> int:
        """N of the last version."""
        return self._sizes[-1] if self._sizes else 0

    def add(self, index: IndexRows) -> None:
        """Take the next version.

        Args:
            index: its rows.

        Raises:
            CommitmentRejected: a position that has another id key than before.
            MalformedRecord: not the next version, fewer rows than before, or rows without keys.
        """
        keys, version = index.id_keys, index.version
        rows = len(index.row_digests) // DIGEST_BYTES
        if version != self.version + 1 or version > MAX_VERSION or rows < self.count:
            expected = f"version {self.version + 1} of {self.count} rows or more"
            raise MalformedRecord("does not follow", where=f"version {version}", expected=expected)
        if len(keys) != rows * DIGEST_BYTES:
            raise MalformedRecord("no id key a row", where=f"version {version}")
        if not keys.startswith(self._keys):
            position = next(i for i in range(self.count) if _part(keys, i) != self._key(i))
            where = f"position {position} of version {version}"
            raise CommitmentRejected("another id key", where=where, expected="the one before")
        self._row_digests += index.row_digests[len(self._row_digests) :]
        marked = {i for i, text in enumerate(index.columns) if text == NULL_ROW}
        for position in marked - self._marked:
            # One that is new and marked has not lived.
            if position < self.count:
                life = (self._first(position), version - 1)
                self._ended[position] = (*self._ended.get(position, ()), life)
        for position in self._marked - marked:
            self._since[position] = version
        self._keys, self._marked = keys, marked
        self._sizes.append(rows)

    def listed(self) -> DocumentList:
        """Return the list over all versions that were added, at least one.

        Raises:
            CommitmentRejected: two positions that have one id key, or one that has nobody's.
        """
        order = sorted(range(self.count), key=self._key)
        for one, other in pairwise(order):
            if self._key(one) == self._key(other):
                where = f"positions {min(one, other)} and {max(one, other)}"
                raise CommitmentRejected("one id key twice", where=where, expected="one each")
        # No digest that anybody finds: it was chosen to stand beside nobody's rows.
        for end, nobodys in ((order[0], FIRST), (order[-1], LAST)):
            if self._key(end) == nobodys.key:
                where = f"position {end}"
                raise CommitmentRejected("nobody's id key", where=where, expected="a digest")
        rows = SortedRows([FIRST.encode(), *map(self._row, order), LAST.encode()])
        entry = Documents(*self._place, self.version, self.count, rows.root)
        return DocumentList(entry, rows, order, self)

    def of(self, position: int) -> tuple[Life, ...]:
        """Return the lives of a position, rising."""
        ended = self._ended.get(position, ())
        if position in self._marked:
            return ended
        return (*ended, (self._first(position), self.version))

    def row_digest(self, position: int) -> bytes:
        """Return the row digest of a position in the first version that has it, 32 bytes."""
        return _part(self._row_digests, position)

    def _first(self, position: int) -> int:
        """The first version of the life that a position has, or had last."""
        return self._since.get(position, bisect_left(self._sizes, position + 1) + 1)

    def _key(self, position: int) -> bytes:
        return _part(self._keys, position)

    def _row(self, position: int) -> bytes:
        lives, digest = self.of(position), self.row_digest(position)
        return document_row(self._key(position), position, lives, digest).encode()


def _life_bytes(life: Life) -> bytes:
    for version in life:
        check_range("version", version, 1, MAX_VERSION)
    return b"".join(version.to_bytes(_VERSION_BYTES, "big") for version in life)


def _part(data: bytes, position: int) -> bytes:
    return data[DIGEST_BYTES * position : DIGEST_BYTES * (position + 1)]


def _sized(secret: bytes) -> bytes:
    if len(secret) != SECRET_BYTES:
        expected = f"{SECRET_BYTES} bytes"
        raise MalformedRecord("of another length", where="document_secret", expected=expected)
    return secret


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
        later = len(policy.tenants) - list(policy.tenants).index(self.tenant)
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
