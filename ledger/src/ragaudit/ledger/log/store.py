"""The log of one window in a database: append inside the caller's transaction, read, prove.

Crash rules (docs/spec/06-ledger.md):
- an index comes from the locked head row; entry, tiles and head change in one transaction;
- nothing uncommitted is kept: memory holds only the right edge of the tree,
  which is compared with the head row on every append and read again when it differs;
- a checkpoint is signed over what was committed and read back (`checkpoint_store`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import zip_longest
from typing import TypeVar

from ragaudit.ledger.errors import CorruptLog, LogFrozen, MalformedRecord, UnknownResource
from ragaudit.ledger.log import schema
from ragaudit.ledger.log.database import demand_writer, read_transaction, write_transaction
from ragaudit.ledger.log.log_rows import LogRows
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.right_edge import RightEdge
from ragaudit.ledger.log.tiles import TILE_WIDTH, Tile, tile_path
from ragaudit.ledger.log.tree import (
    EMPTY_ROOT,
    HASH_BYTES,
    TreeHead,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_hash,
)
from sqlalchemy import Connection, Engine, insert, select

LEAF_BYTES = 32

T = TypeVar("T")
Leaves = Callable[[Connection, int, int], Iterable[bytes]]
"""Returns the leaf data of positions start..end-1, made again from what a caller stored of them."""


class LogStore:
    """One log in a database. Safe to use from several threads.

    Attributes:
        engine: of the database.
        log_key: its name is the log's origin.
        rows: the statements on the log's rows.
    """

    def __init__(self, engine: Engine, log_id: int, log_key: VerifierKey) -> None:
        """Use `create` or `open`."""
        self.engine = engine
        self.log_key = log_key
        self.rows = LogRows(log_id, log_key.name)
        self._edge: RightEdge | None = None  # guarded by the database's write lock

    @classmethod
    def create(cls, engine: Engine, log_key: VerifierKey) -> "LogStore":
        """Create the tables and an empty log, or open the log if this origin exists; return it.

        Args:
            engine: of the database.
            log_key: its name is the origin.

        Raises:
            UnknownResource, CorruptLog: as `open`.
        """
        with write_transaction(engine) as connection:
            schema.metadata.create_all(connection)
            same_origin = select(schema.log.c.id).where(schema.log.c.origin == log_key.name)
            if connection.execute(same_origin).scalar_one_or_none() is None:
                _insert_log(connection, log_key)
        return cls.open(engine, log_key)

    @classmethod
    def open(cls, engine: Engine, log_key: VerifierKey) -> "LogStore":
        """Return the log, its head checked against its tiles and its last entries.

        Args:
            engine: of the database.
            log_key: its name is the origin; the log must have been created with this key.

        Raises:
            UnknownResource: no log of this origin, or it has another key.
            CorruptLog: head, tiles and entries contradict each other.
        """
        table = schema.log
        query = select(table.c.id, table.c.verifier_key).where(table.c.origin == log_key.name)
        with read_transaction(engine) as connection:
            row = connection.execute(query).one_or_none()
            if row is None or row.verifier_key != str(log_key):
                raise UnknownResource("no such log", where="ledger", expected=str(log_key))
            store = cls(engine, row.id, log_key)
            store._check_right_edge(connection)
        return store

    def transaction(self) -> AbstractContextManager[Connection]:
        """Return a transaction for `append` and the caller's own statements."""
        return write_transaction(self.engine)

    def append(self, connection: Connection, leaf_data: bytes) -> int:
        """Append 32 bytes of leaf data; return the index, final once the transaction commits.

        Args:
            connection: of `transaction`; it holds the log's lock from here on.
            leaf_data: the leaf's content.

        Raises:
            LogFrozen: the log is closed.
            MalformedRecord: not 32 bytes.
            InternalError: ``connection`` is not of `transaction`.
        """
        return self.extend(connection, [leaf_data])

    def extend(self, connection: Connection, leaves: Sequence[bytes]) -> int:
        """Append several leaves in order; return the index of the first.

        Args:
            connection: of `transaction`; it holds the log's lock from here on.
            leaves: leaf data, 32 bytes each.

        Raises:
            LogFrozen, MalformedRecord, InternalError: as `append`.
        """
        if any(len(leaf) != LEAF_BYTES for leaf in leaves):
            raise MalformedRecord("leaf data of the wrong length", expected="32 bytes")
        demand_writer(connection)
        row = self.rows.head(connection, lock=True)
        if row.frozen:
            raise LogFrozen("the window's log is closed", where=self.log_key.name)
        edge = self._edge_at(connection, row.head)
        self._edge = None  # an exception below must not leave it half advanced
        changed = edge.extend(leaf_hash(leaf) for leaf in leaves)
        self.rows.insert_entries(connection, row.head.size, leaves)
        for tile, hashes in _tiles(changed):
            self.rows.write_tile(connection, tile, hashes)
        self.rows.write_head(
            connection, row.head, TreeHead(edge.frontier.size, edge.frontier.root())
        )
        self._edge = edge
        return row.head.size

    def freeze(self, connection: Connection) -> TreeHead:
        """Close the log for good; return its final head. Idempotent."""
        demand_writer(connection)
        row = self.rows.head(connection, lock=True)
        # Under the lock: an append either ends before this, or finds the log closed.
        self.rows.freeze(connection)
        return row.head

    def head(self, connection: Connection | None = None) -> TreeHead:
        """Return size and root as committed, or as ``connection`` sees them in its transaction.

        Args:
            connection: an open transaction, whose own appends count; by default a new one.
        """
        if connection is not None:
            return self.rows.head(connection).head
        return self._reading(self.rows.head).head

    def lock(self, connection: Connection) -> TreeHead:
        """Return size and root, which nobody else changes before the transaction ends.

        Args:
            connection: of `transaction`.
        """
        demand_writer(connection)
        return self.rows.head(connection, lock=True).head

    def is_frozen(self) -> bool:
        """Return whether the log is closed."""
        return self._reading(self.rows.head).frozen

    def root(self, size: int, connection: Connection | None = None) -> bytes:
        """Return the root of the first ``size`` leaves, committed or in ``connection``'s view.

        Args:
            size: at most the log's.
            connection: as of `head`.

        Raises:
            UnknownResource: the log is smaller.
        """
        if connection is not None:
            return root_hash(self.rows.source(connection, size), size)
        return self._reading(lambda c: self.root(size, c))

    def inclusion_proof(self, index: int, size: int) -> tuple[bytes, ...]:
        """Return the inclusion proof of leaf ``index`` in the first ``size`` committed leaves.

        Args:
            index: of the leaf, from 0.
            size: of a checkpoint under which it is to be proven.

        Raises:
            UnknownResource: the log is smaller.
            MalformedProof: not 0 <= index < size.
        """
        return self._reading(lambda c: inclusion_proof(self.rows.source(c, size), index, size))

    def consistency_proof(
        self, old_size: int, new_size: int, connection: Connection | None = None
    ) -> tuple[bytes, ...]:
        """Return the consistency proof between two committed sizes; empty from the empty tree.

        Args:
            old_size, new_size: of two checkpoints, the older first.
            connection: as of `head`.

        Raises:
            UnknownResource: the log is smaller.
            MalformedProof: old_size > new_size.
        """
        if old_size == 0:
            return ()
        if connection is not None:
            return consistency_proof(self.rows.source(connection, new_size), old_size, new_size)
        return self._reading(lambda c: self.consistency_proof(old_size, new_size, c))

    def entries(self, start: int, end: int) -> tuple[bytes, ...]:
        """Return the leaf data of the committed entries start..end-1.

        Args:
            start, end: positions from 0, the end excluded.

        Raises:
            UnknownResource: one is missing.
        """
        return tuple(self._reading(lambda c: list(self.rows.entries(c, start, end))))

    def tile(self, tile: Tile) -> bytes:
        """Return the hashes of a tile of committed leaves.

        Raises:
            UnknownResource: it does not exist, or is not this wide.
        """
        return self._reading(lambda c: self.rows.tile(c, tile))

    def audit(
        self,
        since: TreeHead | None = None,
        again: Leaves | None = None,
        connection: Connection | None = None,
    ) -> TreeHead:
        """Read entries back, hash them, and compare every tile and the head with the result.

        Args:
            since: a head that was audited before (a signed one); from the first entry by default.
            again: makes the leaves again from what they commit to; each must be the stored one.
            connection: as of `head`.

        Returns:
            The committed head.

        Raises:
            CorruptLog: anything differs or is missing; of an entry its position is named.
        """
        since = since or TreeHead(0, EMPTY_ROOT)
        if connection is not None:
            return self._audit(connection, since, again)
        return self._reading(lambda c: self._audit(c, since, again))

    def _audit(
        self, connection: Connection, since: TreeHead, again: Leaves | None = None
    ) -> TreeHead:
        head = self.rows.head(connection).head
        try:
            edge = RightEdge.of(self.rows.source(connection, since.size))
            # What was signed is the anchor: tiles that were changed together with the head would
            # agree with each other, but not with it.
            if edge.frontier.root() != since.root_hash:
                raise CorruptLog("the tiles contradict an earlier root", where=self.log_key.name)
            leaves = self.rows.entries(connection, since.size, head.size)
            if again is not None:
                leaves = _compared(leaves, again(connection, since.size, head.size), since.size)
            changed = edge.extend(leaf_hash(leaf) for leaf in leaves)
            for tile, hashes in _tiles(changed):
                stored = self.rows.tile(connection, tile)
                if stored != hashes:
                    where = _differing(tile, stored, hashes)
                    raise CorruptLog("a tile differs from the entries", where=where)
        except UnknownResource as error:
            raise CorruptLog(error.what, where=error.where) from error
        if edge.frontier.root() != head.root_hash:
            raise CorruptLog("the head differs from the entries", where=self.log_key.name)
        return head

    def _check_right_edge(self, connection: Connection) -> None:
        """Check the head against tiles and last entries, and that nothing is beyond it."""
        head = self.rows.head(connection).head
        # An entry beyond the head would be a second one at an index that is given out next.
        if self.rows.last_position(connection) != head.size - 1:
            raise CorruptLog("the last entry is not the head's", where=self.log_key.name)
        # Only the last bundle (6.9): a start must not take longer the larger the log is.
        start = max(head.size - 1, 0) // TILE_WIDTH * TILE_WIDTH
        try:
            base = TreeHead(start, root_hash(self.rows.source(connection, start), start))
        except UnknownResource as error:
            raise CorruptLog(error.what, where=error.where) from error
        self._audit(connection, base)

    def _edge_at(self, connection: Connection, head: TreeHead) -> RightEdge:
        """Return the right edge of the tree with ``head``, from memory if it is still that."""
        edge = self._edge
        if (
            edge is not None
            and edge.frontier.size == head.size
            and edge.frontier.root() == head.root_hash
        ):
            return edge
        try:
            edge = RightEdge.of(self.rows.source(connection, head.size))
        except UnknownResource as error:
            raise CorruptLog(error.what, where=error.where) from error
        if edge.frontier.root() != head.root_hash:
            raise CorruptLog("tiles give another root than the head", where=self.log_key.name)
        return edge

    def _reading(self, read: Callable[[Connection], T]) -> T:
        with read_transaction(self.engine) as connection:
            return read(connection)


def _insert_log(connection: Connection, log_key: VerifierKey) -> None:
    row = {"origin": log_key.name, "verifier_key": str(log_key)}
    connection.execute(insert(schema.log).values(row))
    query = select(schema.log.c.id).where(schema.log.c.origin == log_key.name)
    head = {"size": 0, "root_hash": EMPTY_ROOT, "frozen": False}
    connection.execute(
        insert(schema.log_head).values(
            log_id=connection.execute(query).scalar_one(),
            checkpoint_size=schema.NO_CHECKPOINT,
            **head,
        )
    )


def _compared(stored: Iterable[bytes], again: Iterable[bytes], start: int) -> Iterator[bytes]:
    """Yield stored leaves, each of which is the same when it is made again."""
    pairs = zip_longest(stored, again)
    for position, (leaf, made) in enumerate(pairs, start=start):
        if leaf is None or leaf != made:
            raise CorruptLog("a leaf is not that of its stored entry", where=f"entry {position}")
        yield leaf


def _differing(tile: Tile, stored: bytes, hashes: bytes) -> str:
    """Name the first entry whose hash differs, or a tile of hashes of tiles."""
    if tile.level:
        return tile_path(tile)
    starts = range(0, len(hashes), HASH_BYTES)
    first = next(
        at for at in starts if stored[at : at + HASH_BYTES] != hashes[at : at + HASH_BYTES]
    )
    return f"entry {tile.index * TILE_WIDTH + first // HASH_BYTES}"


def _tiles(changed: dict[tuple[int, int], bytes]) -> list[tuple[Tile, bytes]]:
    return [
        (Tile(level, index, len(hashes) // HASH_BYTES), hashes)
        for (level, index), hashes in changed.items()
    ]
