"""The documents of a tenant's index over a window (docs/spec/05-records.md §5.16).

A row carries the *id key* of its document, under a secret that the opening commits to; the end of
the log lists the keys of all positions with the versions in which each document was live.
"""

import hmac
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final, Protocol

from ragaudit.encoding.digests import structure
from ragaudit.encoding.tagged import DIGEST_BYTES, enc, read_int, read_text
from ragaudit.ledger.errors import CommitmentRejected, MalformedRecord
from ragaudit.ledger.messages.columns import NULL_ROW
from ragaudit.ledger.messages.encoded import EntryBody, Readers, check_digests, check_range
from ragaudit.ledger.messages.identifiers import check_document_id, check_tenant, check_window
from ragaudit.ledger.messages.sorted_rows import FIRST, LAST, KeyedRow, ProvenRow, SortedRows

__all__ = [
    "SECRET_BYTES",
    "DocumentList",
    "DocumentLives",
    "Documents",
    "Life",
    "check_secret",
    "document_row",
    "id_commitment",
    "id_key",
    "id_keys",
]

SECRET_BYTES: Final = 32
MAX_VERSION: Final = 2**32 - 1
MAX_DOCUMENTS: Final = 2**40  # as many as an index can have rows
_VERSION_BYTES: Final = 4

Life = tuple[int, int]
"""The first and the last version of an interval in which a position is listed as live."""


@dataclass(frozen=True, slots=True)
class Documents(EntryBody):
    """The entry of a tenant near the end of the log.

    Attributes:
        version: v, the last version of the tenant's index, 1..2^32-1.
        documents: n, how many documents the list has, 1..2^40.
        list_root: over its n + 2 rows, 32 bytes.
    """

    KIND: ClassVar[str] = "documents"
    READ: ClassVar[Readers] = (read_text, read_text, read_int, read_int, bytes)

    window: str
    tenant: str
    version: int
    documents: int
    list_root: bytes

    def __post_init__(self) -> None:
        check_window(self.window)
        check_tenant(self.tenant)
        check_range("version", self.version, 1, MAX_VERSION)
        check_range("documents", self.documents, 1, MAX_DOCUMENTS)
        check_digests(self.list_root)


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
