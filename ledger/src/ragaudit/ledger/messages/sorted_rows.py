"""Rows in a tree by rising key, so that two neighbours prove that there is none between them.

The account index (docs/spec/05-records.md §5.14) and the document lists (§5.16) are such trees.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Final, TypeAlias

from ragaudit.encoding.tagged import DIGEST_BYTES
from ragaudit.ledger.errors import ProofRejected
from ragaudit.ledger.log.tiles import Frontier
from ragaudit.ledger.log.tlog_proof import MAX_PATH
from ragaudit.ledger.log.tree import MemoryTree, TreeHead, leaf_hash, verify_inclusion
from ragaudit.ledger.messages.kernel import Digest, Integer, Items, Message

__all__ = [
    "FIRST",
    "LAST",
    "KeyedRow",
    "ProvenRow",
    "SortedRows",
    "verify_absent",
    "verify_present",
]

MAX_POSITION: Final = 2**40 + 1  # behind as many rows as an index can have, and the first of nobody
_NOBODYS: Final = 2


@dataclass(frozen=True, slots=True, order=True)
class KeyedRow:
    """A row of such a tree.

    Attributes:
        key: by which rows are sorted, 32 bytes.
        digest: of what the row says, 32 bytes.
    """

    key: bytes
    digest: bytes

    def encode(self) -> bytes:
        """Return the leaf data of the row."""
        return self.key + self.digest


FIRST: Final = KeyedRow(bytes(DIGEST_BYTES), bytes(DIGEST_BYTES))
LAST: Final = KeyedRow(b"\xff" * DIGEST_BYTES, bytes(DIGEST_BYTES))
"""Nobody's rows, so that every key has two neighbours."""


Path: TypeAlias = Annotated[tuple[Digest, ...], Items(0, MAX_PATH)]


class ProvenRow(Message):
    """A row with its place in the tree.

    Attributes:
        position: from 0; the first and the last row are nobody's.
        key, digest: of the row, 32 bytes each.
        path: inclusion path, sibling of the leaf first.
    """

    position: Annotated[int, Integer(0, MAX_POSITION)]
    key: Digest
    digest: Digest
    path: Path

    @property
    def row(self) -> KeyedRow:
        """The row without its place."""
        return KeyedRow(self.key, self.digest)


class SortedRows:
    """The rows of a tree, nobody's two included."""

    def __init__(self, rows: Iterable[bytes]) -> None:
        """Take rows as they are, in any order.

        Args:
            rows: `KeyedRow.encode` of each, in the order that they have in the tree.
        """
        self._rows: Sequence[bytes] = tuple(rows)

    @property
    def count(self) -> int:
        """Return n, the number of rows that are somebody's."""
        return len(self._rows) - _NOBODYS

    @cached_property
    def root(self) -> bytes:
        """The RFC 6962 root over all rows, 32 bytes."""
        frontier = Frontier()
        for row in self._rows:
            frontier.append(leaf_hash(row))
        return frontier.root()

    @cached_property
    def _tree(self) -> MemoryTree:
        return MemoryTree(self._rows)

    def row(self, position: int) -> KeyedRow:
        """Return the row at a position, 0..n+1."""
        row = self._rows[position]
        return KeyedRow(row[:DIGEST_BYTES], row[DIGEST_BYTES:])

    def prove(self, key: bytes) -> tuple[ProvenRow, ...]:
        """Return the row of a key, or the two rows between which it would stand.

        Args:
            key: 32 bytes; a digest, which is that of none of nobody's rows.
        """
        at = bisect_left(self._rows, key)  # a row is longer than its key, so never below it
        if self.row(at).key == key:
            return (self.proven(at),)
        return self.proven(at - 1), self.proven(at)

    def proven(self, position: int) -> ProvenRow:
        """Return the row at a position with its path, 0..n+1."""
        row, path = self.row(position), self._tree.inclusion_proof(position)
        return ProvenRow(position, row.key, row.digest, path)


def verify_present(row: ProvenRow, key: bytes, *, count: int, root: bytes) -> None:
    """Check that a row is in a tree, and the one of a key.

    Args:
        row: with its path.
        key: 32 bytes.
        count: n, the number of the tree's rows that are somebody's.
        root: of the tree, 32 bytes.

    Raises:
        ProofRejected: it is not in the tree, or of another key.
        MalformedProof: a path of another length.
    """
    _verify_inside(row, count, root)
    if row.row.key != key:
        raise ProofRejected("the row of another key", where="rows")


def verify_absent(neighbours: Sequence[ProvenRow], key: bytes, *, count: int, root: bytes) -> None:
    """Check that two rows are in a tree, and that a row of the key would stand between them.

    Args:
        neighbours: two rows with their paths.
        key, count, root: as of `verify_present`.

    Raises:
        ProofRejected: a row that is not in the tree, rows that are no neighbours, or another place.
        MalformedProof: a path of another length.
    """
    before, after = neighbours
    _verify_inside(before, count, root)
    _verify_inside(after, count, root)
    # With a row between the two, that of the key could stand there.
    if after.position != before.position + 1:
        raise ProofRejected("the rows are no neighbours", where="rows")
    if not before.row.key < key < after.row.key:
        raise ProofRejected("the key does not belong between the rows", where="rows")


def _verify_inside(row: ProvenRow, count: int, root: bytes) -> None:
    head, leaf = TreeHead(count + _NOBODYS, root), leaf_hash(row.row.encode())
    verify_inclusion(leaf=leaf, index=row.position, head=head, proof=row.path)
