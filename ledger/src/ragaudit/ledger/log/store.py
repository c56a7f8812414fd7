"""The log of one window in a database: append inside the caller's transaction, read, prove.

Crash rules (docs/spec/06-ledger.md):
- an index comes from the locked head row; entry, tiles and head change in one transaction;
- nothing uncommitted is kept: memory holds only the right edge of the tree,
  which is compared with the head row on every append and read again when it differs;
- a checkpoint is signed over what was committed and read back (`checkpoint_store`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

from ragaudit.ledger.errors import CorruptLog, LogFrozen, MalformedRecord, UnknownResource
from ragaudit.ledger.log import schema
from ragaudit.ledger.log.database import (
    Prepared,
    demand_writer,
    read_transaction,
    write_transaction,
)
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.tiles import TILE_WIDTH, RightEdge, Tile, TileHashSource, tile_path
from ragaudit.ledger.log.tree import (
    EMPTY_ROOT,
    HASH_BYTES,
    TreeHead,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_hash,
)
from sqlalchemy import (
    BigInteger,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    bindparam,
    func,
    insert,
    literal,
    select,
    update,
)

# Built once: they run in every append, and building them takes longer than running them.
_SELECT_HEAD = select(
    schema.log_head.c.size, schema.log_head.c.root_hash, schema.log_head.c.frozen
).where(schema.log_head.c.log_id == bindparam("log"))
_HEAD = Prepared(_SELECT_HEAD)
_LOCKED_HEAD = Prepared(_SELECT_HEAD.with_for_update())
_WRITE_HEAD = Prepared(
    update(schema.log_head)
    .where(schema.log_head.c.log_id == bindparam("log"), schema.log_head.c.size == bindparam("old"))
    .values(size=bindparam("new_size"), root_hash=bindparam("new_root"))
)
_IS_TILE = (
    (schema.tile.c.log_id == bindparam("log"))
    & (schema.tile.c.level == bindparam("of_level"))
    & (schema.tile.c.number == bindparam("of_number"))
)
_TILE = Prepared(select(schema.tile.c.hashes).where(_IS_TILE))
_ENTRIES = Prepared(
    select(schema.entry.c.position, schema.entry.c.leaf_data)
    .where(
        schema.entry.c.log_id == bindparam("log"),
        schema.entry.c.position.between(bindparam("first"), bindparam("last")),
    )
    .order_by(schema.entry.c.position)
)
_ENTRIES_AT_ONCE = 4096  # of 32 bytes each
_UPDATE_TILE = Prepared(
    update(schema.tile)
    .where(_IS_TILE)
    .values(width=bindparam("new_width"), hashes=bindparam("new_hashes"))
)
_INSERT_TILE = Prepared(insert(schema.tile))
# All entries of a batch are one parameter, which the database cuts: row by row, the driver takes
# longer than the rows.
_NUMBERS = select(literal(0, Integer).label("n")).cte("numbers", recursive=True)
_NUMBERS = _NUMBERS.union_all(
    select(_NUMBERS.c.n + 1).where(_NUMBERS.c.n < bindparam("last", type_=Integer))
)
_INSERT_ENTRIES = Prepared(
    insert(schema.entry).from_select(
        ["log_id", "position", "leaf_data"],
        select(
            bindparam("log", type_=Integer),
            bindparam("first", type_=BigInteger) + _NUMBERS.c.n,
            func.substr(
                bindparam("leaves", type_=LargeBinary), _NUMBERS.c.n * HASH_BYTES + 1, HASH_BYTES
            ),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class HeadRow:
    """The head of a log.

    Attributes:
        head: its size and root.
        frozen: whether it is closed.
    """

    head: TreeHead
    frozen: bool


class LogRows:
    """Entries, tiles and head of the log ``log_id``.

    Attributes:
        log_id: of the log, in the tables.
    """

    def __init__(self, log_id: int, origin: str) -> None:
        self.log_id = log_id
        self._origin = origin

    def head(self, connection: Connection, *, lock: bool = False) -> HeadRow:
        """Return the head row.

        Args:
            connection: in whose transaction it is read.
            lock: whether no other transaction may write until this one ends.

        Raises:
            CorruptLog: there is none.
        """
        row = (_LOCKED_HEAD if lock else _HEAD).row(connection, log=self.log_id)
        if row is None:
            raise CorruptLog("the log has no head", where=self._origin)
        size, root, frozen = row
        return HeadRow(TreeHead(size, bytes(root)), bool(frozen))

    def last_position(self, connection: Connection) -> int:
        """Return the position of the last entry; -1 if there is none."""
        table = schema.entry
        query = select(func.max(table.c.position)).where(table.c.log_id == self.log_id)
        last = connection.execute(query).scalar_one()
        return -1 if last is None else int(last)

    def entries(self, connection: Connection, start: int, end: int) -> Iterator[bytes]:
        """Yield the leaf data, 32 bytes each, of entries start..end-1.

        Args:
            connection: in whose transaction they are read.
            start, end: positions from 0, the end excluded.

        Raises:
            UnknownResource: at the first that is missing.
        """
        expected = start
        while 0 <= expected < end:
            last = min(expected + _ENTRIES_AT_ONCE, end) - 1
            rows = _ENTRIES.rows(connection, log=self.log_id, first=expected, last=last)
            for position, leaf_data in rows:
                # A gap is not skipped: the entries after it would be hashed at another place.
                if position != expected:
                    break
                yield bytes(leaf_data)
                expected += 1
            if expected <= last:
                break
        if start < 0 or expected != max(start, end):
            raise UnknownResource(f"no entry {expected}", where=self._origin)

    def tile(self, connection: Connection, tile: Tile) -> bytes:
        """Return the hashes of a tile, cut to its width.

        Args:
            connection: in whose transaction it is read.
            tile: the stored one may be wider: earlier widths of a tile are its beginnings.

        Raises:
            UnknownResource: it does not exist, or is not this wide.
        """
        row = _TILE.row(connection, **self._place(tile))
        if row is None and not tile.level and tile.width < TILE_WIDTH:
            start = tile.index * TILE_WIDTH
            leaves = self.entries(connection, start, start + tile.width)
            return b"".join(map(leaf_hash, leaves))
        if row is None or len(row[0]) < tile.width * HASH_BYTES:
            raise UnknownResource("no such tile", where=tile_path(tile))
        return bytes(row[0][: tile.width * HASH_BYTES])

    def source(self, connection: Connection, size: int) -> TileHashSource:
        """Return the hashes of the first ``size`` leaves.

        Args:
            connection: in whose transaction tiles are read, when they are asked for.
            size: of the tree, at most the log's.

        Raises:
            UnknownResource: the log is smaller.
        """
        committed = self.head(connection).head.size
        if not 0 <= size <= committed:
            raise UnknownResource(
                f"no tree of size {size}", where=self._origin, expected=f"0..{committed}"
            )
        return TileHashSource(size, lambda tile: self.tile(connection, tile))

    def insert_entries(self, connection: Connection, first: int, leaves: Sequence[bytes]) -> None:
        """Insert leaf data, 32 bytes each, from position ``first`` on.

        Args:
            connection: of the transaction that holds the lock of the head.
            first: the size of the log before.
            leaves: leaf data.
        """
        if leaves:
            data = b"".join(leaves)
            _INSERT_ENTRIES.change(
                connection, log=self.log_id, first=first, last=len(leaves) - 1, leaves=data
            )

    def write_tile(self, connection: Connection, tile: Tile, hashes: bytes) -> None:
        """Store a tile in place of its narrower version.

        Args:
            connection: of the transaction that holds the lock of the head.
            tile: its coordinates and new width.
            hashes: all of its hashes, 32 bytes each.
        """
        place = self._place(tile)
        if not _UPDATE_TILE.change(connection, **place, new_width=tile.width, new_hashes=hashes):
            _INSERT_TILE.change(
                connection, log_id=self.log_id, level=tile.level, number=tile.index,
                width=tile.width, hashes=hashes,
            )  # fmt: skip

    def write_head(self, connection: Connection, old: TreeHead, new: TreeHead) -> None:
        """Replace the head ``old`` by ``new``.

        Args:
            connection: of the transaction that holds the lock.
            old: as it was read under the lock; the statement compares its size.
            new: after the append.

        Raises:
            CorruptLog: the head is not ``old``, in spite of the lock.
        """
        changed = _WRITE_HEAD.change(
            connection, log=self.log_id, old=old.size, new_size=new.size, new_root=new.root_hash
        )
        if changed != 1:
            raise CorruptLog("the head moved under its lock", where=self._origin)

    def freeze(self, connection: Connection) -> None:
        """Close the log."""
        table = schema.log_head
        connection.execute(update(table).where(table.c.log_id == self.log_id).values(frozen=True))

    def _place(self, tile: Tile) -> dict[str, int | bytes]:
        return {"log": self.log_id, "of_level": tile.level, "of_number": tile.index}


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
        row = self.lock(connection)
        self.grow(connection, row, leaves)
        return row.head.size

    def grow(self, connection: Connection, row: HeadRow, leaves: Sequence[bytes]) -> TreeHead:
        """Append several leaves in order to a log that is locked; return its new head.

        Args:
            connection: that holds the log's lock.
            row: as `lock` returned it in this transaction, in which nothing was appended since.
            leaves: leaf data, 32 bytes each.

        Raises:
            LogFrozen: the log is closed.
        """
        if row.frozen:
            raise LogFrozen("the window's log is closed", where=self.log_key.name)
        edge = self._edge_at(connection, row.head)
        self._edge = None  # an exception below must not leave it half advanced
        changed = edge.extend(leaf_hash(leaf) for leaf in leaves)
        self.rows.insert_entries(connection, row.head.size, leaves)
        for tile, hashes in _tiles(changed):
            # The last tile of leaves is made of them when it is read: it changes with each.
            if tile.level or tile.width == TILE_WIDTH:
                self.rows.write_tile(connection, tile, hashes)
        head = TreeHead(edge.frontier.size, edge.frontier.root())
        self.rows.write_head(connection, row.head, head)
        self._edge = edge
        return head

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

    def lock(self, connection: Connection) -> HeadRow:
        """Return the head row, which nobody else changes before the transaction ends.

        Args:
            connection: of `transaction`.
        """
        demand_writer(connection)
        return self.rows.head(connection, lock=True)

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
