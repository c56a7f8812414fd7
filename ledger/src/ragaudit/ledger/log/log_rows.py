"""Rows of one log: every statement on them, each within the caller's transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragaudit.ledger.errors import CorruptLog, UnknownResource
from ragaudit.ledger.log import schema
from ragaudit.ledger.log.prepared import Prepared
from ragaudit.ledger.log.tiles import Tile, TileHashSource, tile_path
from ragaudit.ledger.log.tree import HASH_BYTES, TreeHead
from sqlalchemy import (
    BigInteger,
    Connection,
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
        table = schema.entry
        rows = connection.execute(
            select(table.c.position, table.c.leaf_data)
            .where(table.c.log_id == self.log_id, table.c.position.between(start, end - 1))
            .order_by(table.c.position)
        )
        expected = start
        for position, leaf_data in rows:
            # A gap is not skipped: the entries after it would be hashed at another place.
            if position != expected:
                break
            yield bytes(leaf_data)
            expected += 1
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
