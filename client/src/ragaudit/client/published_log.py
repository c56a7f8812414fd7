"""Read a log as it is published, C2SP tlog-tiles: over HTTP, or from a folder with its files.

Nothing that is read here is believed: a checkpoint is verified, and what is computed from tiles is
compared with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ragaudit.client import blocking
from ragaudit.client.errors import InvalidReply, ProviderRefusal
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.ledger.log.tiles import TILE_WIDTH, Tile, TileHashSource, tile_path
from ragaudit.ledger.log.tree import HASH_BYTES

__all__ = ["PublishedLog"]

_CHECKPOINT = "checkpoint"
_GONE = 404


@dataclass(frozen=True)
class PublishedLog:
    """The files of one log.

    Attributes:
        read: returns the bytes at a path below the log's prefix, None where there is no such file.
    """

    read: Callable[[str], bytes | None]

    @classmethod
    def at(cls, place: str) -> "PublishedLog":
        """Return the log that is published at a place.

        Args:
            place: its prefix, a URL or a folder.
        """
        if place.startswith(("http://", "https://")):
            return cls(lambda path: _fetched(place, path))
        return cls(lambda path: _stored(Path(place), path))

    def checkpoint(self) -> bytes:
        """Return the log's last published checkpoint, unverified.

        Raises:
            MalformedError: none is published here.
            UnavailableError, RefusedError, InternalError: as `Service.request`.
        """
        note = self.read(_CHECKPOINT)
        if note is None:
            raise MalformedError("no checkpoint is published", where=_CHECKPOINT)
        return note

    def hashes(self, size: int) -> TileHashSource:
        """Return the hashes of the log's first leaves, read as they are asked for.

        Args:
            size: of a verified checkpoint, in leaves.
        """
        return TileHashSource(size, self._tile)

    def _tile(self, tile: Tile) -> bytes:
        data = self.read(tile_path(tile))
        if data is None and tile.width < TILE_WIDTH:
            # A partial tile may be deleted once the full one is there (C2SP tlog-tiles).
            whole = self.read(tile_path(replace(tile, width=TILE_WIDTH)))
            data = None if whole is None else whole[: tile.width * HASH_BYTES]
        if data is None:
            raise MalformedError("the tile is not published", where=tile_path(tile))
        return data


def _fetched(prefix: str, path: str) -> bytes | None:
    try:
        return blocking.fetch(prefix, f"/{path}")
    except ProviderRefusal as error:
        if error.status == _GONE:
            return None
        raise
    except InvalidReply:
        # A static server says 404 without a problem document; its words do not matter here.
        return None


def _stored(folder: Path, path: str) -> bytes | None:
    try:
        return (folder / path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnavailableError(f"cannot be read: {error.strerror}", where=path) from error
