"""The growing side of a tree: its peaks, and the last tile of every level."""

from collections.abc import Iterable

from ragaudit.ledger.log.tiles import TILE_HEIGHT, TILE_WIDTH, TileHashSource, tile_at
from ragaudit.ledger.log.tree import EMPTY_ROOT, HASH_BYTES, HashSource, node_hash


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
