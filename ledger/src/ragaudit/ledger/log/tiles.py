"""Tiles and entry bundles of C2SP tlog-tiles v0.1.0: paths, contents, hashes out of tiles.

A tile (L, N) holds up to 256 hashes; hash i is that of the complete subtree of 256^L leaves
number N·256 + i. Example paths: ``tile/0/005``, ``tile/0/x001/x234/067``, ``tile/1/000.p/17``;
entry bundles: ``tile/entries/005``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragaudit.ledger.errors import MalformedTile
from ragaudit.ledger.log.tree import EMPTY_ROOT, HASH_BYTES, MAX_TREE_SIZE, HashSource, node_hash

TILE_HEIGHT = 8
TILE_WIDTH = 256
MAX_TILE_LEVEL = 63
MAX_ENTRY_BYTES = 65_535

_PATH = re.compile(
    r"tile/(entries|0|[1-9][0-9]?)/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?"
)
_MAX_PATH_LENGTH = 64  # "tile/63/" + 7 groups for 2^63 + ".p/255", with room


@dataclass(frozen=True, slots=True, order=True)
class Tile:
    """Coordinates of a tile of hashes.

    Attributes:
        level: 0..63.
        index: from 0.
        width: number of hashes, 1..256 (256 = full).
    """

    level: int
    index: int
    width: int = TILE_WIDTH

    def __post_init__(self) -> None:
        if not 0 <= self.level <= MAX_TILE_LEVEL:
            raise MalformedTile(f"tile level {self.level}", expected=f"0..{MAX_TILE_LEVEL}")
        _check_coordinates(self.index, self.width)


@dataclass(frozen=True, slots=True, order=True)
class EntryBundle:
    """Coordinates of a bundle of entries.

    Attributes:
        index: from 0.
        width: number of entries, 1..256 (256 = full).
    """

    index: int
    width: int = TILE_WIDTH

    def __post_init__(self) -> None:
        _check_coordinates(self.index, self.width)


def _check_coordinates(index: int, width: int) -> None:
    if not 0 <= index <= MAX_TREE_SIZE:
        raise MalformedTile(f"tile index {index}", expected=f"0..{MAX_TREE_SIZE}")
    if not 1 <= width <= TILE_WIDTH:
        raise MalformedTile(f"tile width {width}", expected=f"1..{TILE_WIDTH}")


def tile_path(tile: Tile) -> str:
    """Return the path of a tile below the log's prefix."""
    return f"tile/{tile.level}/{_index_path(tile.index)}{_width_suffix(tile.width)}"


def entries_path(bundle: EntryBundle) -> str:
    """Return the path of an entry bundle below the log's prefix."""
    return f"tile/entries/{_index_path(bundle.index)}{_width_suffix(bundle.width)}"


def parse_path(path: str) -> Tile | EntryBundle:
    """Return the tile or bundle at ``path``; the inverse of both functions above.

    Args:
        path: below the log's prefix, as a stranger asks for it.

    Raises:
        MalformedTile: any other string, also a non-canonical index such as ``x000/005``.
    """
    match = _PATH.fullmatch(path) if len(path) <= _MAX_PATH_LENGTH and path.isascii() else None
    if match is None:
        raise MalformedTile("not a tile path", expected="tile/<L>/<N>[.p/<W>]")
    level, digits, suffix = match.groups()
    # A path has one spelling, so a cache cannot be made to keep one tile under many names.
    index = int(digits.replace("x", "").replace("/", ""))
    if digits != _index_path(index):
        raise MalformedTile("tile index with a needless leading group", expected=_index_path(index))
    width = int(suffix) if suffix else TILE_WIDTH
    if suffix and width == TILE_WIDTH:
        raise MalformedTile("a full tile under a partial path", expected=_index_path(index))
    return EntryBundle(index, width) if level == "entries" else Tile(int(level), index, width)


def _index_path(index: int) -> str:
    groups = [f"{index % 1000:03d}"]
    while index >= 1000:
        index //= 1000
        groups.append(f"x{index % 1000:03d}")
    return "/".join(reversed(groups))


def _width_suffix(width: int) -> str:
    return "" if width == TILE_WIDTH else f".p/{width}"


def tile_at(level: int, index: int, size: int) -> Tile | None:
    """Return the widest tile (level, index) of a tree of ``size`` leaves, None if empty.

    Args:
        level, index: of the tile.
        size: of the tree, in leaves.
    """
    width = min((size >> TILE_HEIGHT * level) - index * TILE_WIDTH, TILE_WIDTH)
    return Tile(level, index, width) if width > 0 else None


def tiles_of(size: int, since: int = 0) -> Iterator[Tile]:
    """Yield the tiles that a tree of ``size`` leaves has and one of ``since`` leaves has not.

    Lower levels first; per level at most one partial tile, the last.

    Args:
        size, since: in leaves, since <= size.
    """
    level = 0
    while size >> TILE_HEIGHT * level:
        count, old = size >> TILE_HEIGHT * level, since >> TILE_HEIGHT * level
        for index in range(old // TILE_WIDTH, -(-count // TILE_WIDTH)):
            tile = tile_at(level, index, size)
            # A partial tile that has grown is another resource, under a path of its own.
            if tile is not None and tile != tile_at(level, index, since):
                yield tile
        level += 1


def bundles_of(size: int, since: int = 0) -> Iterator[EntryBundle]:
    """Yield the entry bundles that a tree of ``size`` leaves has and one of ``since`` has not.

    Args:
        size, since: as of `tiles_of`.
    """
    for tile in tiles_of(size, since):
        # Bundles have the coordinates of the tiles of level 0, which come first.
        if tile.level:
            return
        yield EntryBundle(tile.index, tile.width)


def tile_hash(data: bytes, level: int, index: int) -> bytes:
    """Return the hash of subtree ``index`` of 2^``level`` consecutive hashes of a tile.

    Args:
        data: the tile, 32 bytes per hash.
        level: 0..8, counted from the tile's own hashes.
        index: from 0.

    Raises:
        MalformedTile: the tile is too narrow, or not a whole number of hashes.
    """
    start, end = index << level, index + 1 << level
    if len(data) % HASH_BYTES or end * HASH_BYTES > len(data):
        raise MalformedTile(f"{len(data)} bytes", where="tile", expected=f"{end} hashes or more")
    hashes = [data[i * HASH_BYTES : (i + 1) * HASH_BYTES] for i in range(start, end)]
    while len(hashes) > 1:
        hashes = [node_hash(*hashes[i : i + 2]) for i in range(0, len(hashes), 2)]
    return hashes[0]


class TileHashSource:
    """A `tree.HashSource` over tiles.

    Tiles are kept once read: make a source for a proof or two, not for good. They are not trusted:
    check what is computed from them against a verified tree head.

    Attributes:
        size: number of leaves of the tree.
    """

    def __init__(self, size: int, read: Callable[[Tile], bytes]) -> None:
        """Take a function that reads tiles.

        Args:
            size: number of leaves of the tree.
            read: returns the bytes of a tile, exactly 32·width of them; a reader that has only the
                full tile where a partial one is asked for cuts it.
        """
        self.size = size
        self._read = read
        self._tiles: dict[Tile, bytes] = {}  # a proof needs the same few tiles again and again

    def subtree_hash(self, level: int, index: int) -> bytes:
        """Return the hash of a complete subtree, as `tree.HashSource`.

        Raises:
            MalformedTile: no such subtree, or a tile of another width.
        """
        tile_level, inner = divmod(level, TILE_HEIGHT)
        first = index << inner
        tile = tile_at(tile_level, first // TILE_WIDTH, self.size)
        if tile is None or index + 1 << level > self.size:
            raise MalformedTile("no such subtree", where=f"level {level}, index {index}")
        return tile_hash(self.read(tile), inner, first % TILE_WIDTH >> inner)

    def read(self, tile: Tile) -> bytes:
        """Return the bytes of ``tile``, of exactly its width.

        Raises:
            MalformedTile: the reader's are of another width.
        """
        if tile not in self._tiles:
            data = self._read(tile)
            # `RightEdge` appends to these bytes: a hash too many or too few would shift all that
            # follow.
            if len(data) != tile.width * HASH_BYTES:
                raise MalformedTile(
                    f"{len(data)} bytes", where=tile_path(tile), expected=f"{tile.width} hashes"
                )
            self._tiles[tile] = data
        return self._tiles[tile]


def encode_entry_bundle(entries: Sequence[bytes]) -> bytes:
    """Return a bundle: each entry behind its length in two bytes, big-endian.

    Args:
        entries: 1..256 of them, of up to 65,535 bytes.

    Raises:
        MalformedTile: more, longer or no entries.
    """
    if not 1 <= len(entries) <= TILE_WIDTH:
        raise MalformedTile(f"{len(entries)} entries", expected=f"1..{TILE_WIDTH}")
    if any(len(entry) > MAX_ENTRY_BYTES for entry in entries):
        raise MalformedTile("an entry is too long", expected=f"at most {MAX_ENTRY_BYTES} bytes")
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def decode_entry_bundle(data: bytes, width: int) -> tuple[bytes, ...]:
    """Return the ``width`` entries of a bundle; nothing may be left over.

    Args:
        data: as a log serves it; nothing shows yet that these are its entries (spec 6.2).
        width: of the bundle, from its path.

    Raises:
        MalformedTile: cut short, or bytes beyond the last entry.
    """
    entries, position = [], 0
    for _ in range(width):
        start = position + 2
        position = start + int.from_bytes(data[position:start], "big")
        if start > len(data) or position > len(data):
            raise MalformedTile("entry bundle is cut short", expected=f"{width} entries")
        entries.append(data[start:position])
    if position != len(data):
        raise MalformedTile("bytes after the last entry", expected=f"{width} entries")
    return tuple(entries)


class Frontier:
    """Roots of the complete subtrees that make up a tree, largest first: log2(size) hashes.

    Attributes:
        size: number of leaves.
    """

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self.size = size
        self._peaks = list(peaks)

    @classmethod
    def of(cls, source: HashSource, size: int) -> "Frontier":
        """Return the frontier of the first ``size`` leaves of ``source``.

        Args:
            source: of a tree with at least ``size`` leaves.
            size: of the frontier's tree.
        """
        peaks, start = [], 0
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                peaks.append(source.subtree_hash(level, start >> level))
                start += 1 << level
        return cls(size, peaks)

    def append(self, leaf: bytes) -> list[bytes]:
        """Append a leaf hash of 32 bytes; return the hashes that it gives the tiles, by level.

        Args:
            leaf: as `tree.leaf_hash` returns it.

        Returns:
            The leaf and the roots of those complete subtrees of 256, 256^2, ... leaves that it
            completed: one hash for each level of tiles that grows.
        """
        node, size, height, grown = leaf, self.size, 0, [leaf]
        # A trailing one bit is a complete subtree of that height, which the new node completes to
        # one twice as large.
        while size & 1:
            node = node_hash(self._peaks.pop(), node)
            size >>= 1
            height += 1
            if height % TILE_HEIGHT == 0:
                grown.append(node)
        self._peaks.append(node)
        self.size += 1
        return grown

    def root(self) -> bytes:
        """Return the root of the tree, SHA-256("") for the empty one."""
        if not self._peaks:
            return EMPTY_ROOT
        *rest, node = self._peaks
        for peak in reversed(rest):
            node = node_hash(peak, node)
        return node


class RightEdge:
    """Frontier and partial tiles of a tree: enough to append, without reading anything.

    Attributes:
        frontier: of the tree, with its size and root.
    """

    def __init__(self, frontier: Frontier, tiles: Iterable[bytes] = ()) -> None:
        self.frontier = frontier
        self._tiles = [bytearray(tile) for tile in tiles]  # one per level, empty if none is partial

    @classmethod
    def of(cls, source: TileHashSource) -> "RightEdge":
        """Return the edge of the tree of ``source``, read from its tiles."""
        size, tiles, level = source.size, [], 0
        while count := size >> TILE_HEIGHT * level:
            place = tile_at(level, count // TILE_WIDTH, size)
            tiles.append(source.read(place) if place else b"")
            level += 1
        return cls(Frontier.of(source, size), tiles)

    def extend(self, leaves: Iterable[bytes]) -> dict[tuple[int, int], bytes]:
        """Append leaf hashes; return the tiles that changed, by (level, index).

        Args:
            leaves: leaf hashes, 32 bytes each.

        Returns:
            All hashes of each changed tile, not only the new ones: tiles are stored whole.
        """
        # The bytearray that is filled, until it is full: a copy for each leaf costs 8 KiB.
        changed: dict[tuple[int, int], bytes | bytearray] = {}
        for leaf in leaves:
            self._append(leaf, changed)
        return {place: bytes(hashes) for place, hashes in changed.items()}

    def _append(self, leaf: bytes, changed: dict[tuple[int, int], bytes | bytearray]) -> None:
        index = self.frontier.size
        for level, node in enumerate(self.frontier.append(leaf)):
            if level == len(self._tiles):
                self._tiles.append(bytearray())
            hashes = self._tiles[level]
            hashes += node
            index //= TILE_WIDTH
            changed[level, index] = hashes
            if len(hashes) == TILE_WIDTH * HASH_BYTES:
                changed[level, index] = bytes(hashes)
                hashes.clear()
