"""Rows of one log: every statement on them, each within the caller's transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ragaudit.ledger import schema
from ragaudit.ledger.errors import CorruptLog, UnknownResource
from ragaudit.ledger.tiles import Tile, TileHashSource, tile_path
from ragaudit.ledger.tree import HASH_BYTES, TreeHead
from sqlalchemy import ColumnElement, Connection, func, insert, select, update


@dataclass(frozen=True, slots=True)
class HeadRow:
    """The log's size and root, and whether it is closed."""

    head: TreeHead
    frozen: bool


class LogRows:
    """Entries, tiles and head of the log ``log_id``."""

    def __init__(self, log_id: int, origin: str) -> None:
        self.log_id = log_id
        self._origin = origin

    def head(self, connection: Connection, *, lock: bool = False) -> HeadRow:
        """The head row; with ``lock`` no other transaction writes until this one ends."""
        query = select(schema.log_head).where(schema.log_head.c.log_id == self.log_id)
        row = connection.execute(query.with_for_update() if lock else query).one()
        return HeadRow(TreeHead(row.size, bytes(row.root_hash)), bool(row.frozen))

    def last_position(self, connection: Connection) -> int:
        """Position of the last entry; -1 if there is none."""
        table = schema.entry
        query = select(func.max(table.c.position)).where(table.c.log_id == self.log_id)
        last = connection.execute(query).scalar_one()
        return -1 if last is None else int(last)

    def entries(self, connection: Connection, start: int, end: int) -> Iterator[bytes]:
        """Leaf data of entries start..end-1; UnknownResource at the first that is missing."""
        table = schema.entry
        rows = connection.execute(
            select(table.c.position, table.c.leaf_data)
            .where(table.c.log_id == self.log_id, table.c.position.between(start, end - 1))
            .order_by(table.c.position)
        )
        expected = start
        for position, leaf_data in rows:
            if position != expected:
                break
            yield bytes(leaf_data)
            expected += 1
        if start < 0 or expected != max(start, end):
            raise UnknownResource(f"no entry {expected}", where=self._origin)

    def tile(self, connection: Connection, tile: Tile) -> bytes:
        """A tile, cut to its width; UnknownResource if it does not exist or not this wide."""
        query = select(schema.tile.c.hashes).where(self._is(tile))
        hashes = connection.execute(query).scalar_one_or_none()
        if hashes is None or len(hashes) < tile.width * HASH_BYTES:
            raise UnknownResource("no such tile", where=tile_path(tile))
        return bytes(hashes[: tile.width * HASH_BYTES])

    def source(self, connection: Connection, size: int) -> TileHashSource:
        """Hashes of the first ``size`` leaves.

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
        rows = [
            {"log_id": self.log_id, "position": position, "leaf_data": leaf}
            for position, leaf in enumerate(leaves, start=first)
        ]
        if rows:
            connection.execute(insert(schema.entry), rows)

    def write_tile(self, connection: Connection, tile: Tile, hashes: bytes) -> None:
        """Store the widest version of a tile."""
        values: dict[str, Any] = {"width": tile.width, "hashes": hashes}
        known = connection.execute(update(schema.tile).where(self._is(tile)).values(values))
        if not known.rowcount:
            place = {"log_id": self.log_id, "level": tile.level, "number": tile.index}
            connection.execute(insert(schema.tile).values(**place, **values))

    def write_head(self, connection: Connection, old: TreeHead, new: TreeHead) -> None:
        table = schema.log_head
        changed = connection.execute(
            update(table)
            .where(table.c.log_id == self.log_id, table.c.size == old.size)
            .values(size=new.size, root_hash=new.root_hash)
        )
        if changed.rowcount != 1:
            raise CorruptLog("the head moved under its lock", where=self._origin)

    def freeze(self, connection: Connection) -> None:
        table = schema.log_head
        connection.execute(update(table).where(table.c.log_id == self.log_id).values(frozen=True))

    def _is(self, tile: Tile) -> ColumnElement[bool]:
        table = schema.tile
        return (
            (table.c.log_id == self.log_id)
            & (table.c.level == tile.level)
            & (table.c.number == tile.index)
        )
