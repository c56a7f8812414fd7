"""Tile paths, tiles and entry bundles of C2SP tlog-tiles."""

from typing import Any

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.ledger.errors import MalformedTile
from ragaudit.ledger.log.tiles import (
    EntryBundle,
    Tile,
    TileHashSource,
    bundles_of,
    decode_entry_bundle,
    encode_entry_bundle,
    entries_path,
    parse_path,
    tile_at,
    tile_hash,
    tile_path,
    tiles_of,
)
from ragaudit.ledger.log.tree import MemoryTree, consistency_proof, inclusion_proof, root_hash

PATHS = {
    "tile/0/005": Tile(0, 5),
    "tile/0/x001/x234/067": Tile(0, 1234067),
    "tile/2/000.p/1": Tile(2, 0, 1),
    "tile/63/x999/999.p/255": Tile(63, 999999, 255),
    "tile/entries/273.p/112": EntryBundle(273, 112),
    "tile/entries/x001/000": EntryBundle(1000),
}


@for_each(("path", "place"), PATHS.items())
def test_paths_go_both_ways(path: Any, place: Any) -> None:
    assert parse_path(path) == place
    assert (tile_path(place) if isinstance(place, Tile) else entries_path(place)) == path


@given(st.integers(0, 63), st.integers(0, 2**55), st.integers(1, 256))
def test_paths_round_trip(level: Any, index: Any, width: Any) -> None:
    assert parse_path(tile_path(Tile(level, index, width))) == Tile(level, index, width)
    bundle = EntryBundle(index, width)
    assert parse_path(entries_path(bundle)) == bundle


@for_each(
    "path",
    [
        "", "tile", "tile/0", "tile/0/", "tile/0/5", "tile/0/05", "tile/0/0005", "tile/00/005",
        "tile/64/005", "tile/-1/005", "tile/0/x000/005", "tile/0/001/005", "tile/0/x1/005",
        "tile/0/005.p/0", "tile/0/005.p/256", "tile/0/005.p/01", "tile/0/005.p/257",
        "tile/0/005.p/", "tile/0/005/", "/tile/0/005", "tile/0/005\n", "tile/data/005",
        "tile/entries/5", "tile/0/\u0660\u0660\u0665", "tile/0/../0/005", "tile/0/005.p/2 ",
        "tile/0/" + "x001/" * 40 + "005",
    ],
)  # fmt: skip
def test_other_paths_are_refused(path: Any) -> None:
    with pytest.raises(MalformedTile):
        parse_path(path)


@pytest.mark.parametrize(("index", "width"), [(-1, 1), (2**63, 1), (0, 0), (0, 257)])
def test_coordinates_out_of_range_are_refused(index: Any, width: Any) -> None:
    with pytest.raises(MalformedTile):
        Tile(0, index, width)
    with pytest.raises(MalformedTile):
        EntryBundle(index, width)


def test_tiles_of_seventy_thousand_leaves() -> None:
    tiles = list(tiles_of(70_000))
    assert [t for t in tiles if t.width < 256] == [Tile(0, 273, 112), Tile(1, 1, 17), Tile(2, 0, 1)]
    assert sum(t.level == 0 for t in tiles) == 274
    assert Tile(1, 0) in tiles
    assert list(bundles_of(70_000))[-1] == EntryBundle(273, 112)


def test_growth_touches_only_the_right_edge() -> None:
    assert list(tiles_of(257, since=256)) == [Tile(0, 1, 1)]
    assert list(tiles_of(256, since=255)) == [Tile(0, 0), Tile(1, 0, 1)]
    assert list(tiles_of(256, since=256)) == []
    assert list(tiles_of(0)) == []


def test_no_empty_tile_exists() -> None:
    assert tile_at(0, 1, 256) is None
    assert tile_at(1, 0, 255) is None
    assert tile_at(0, 1, 257) == Tile(0, 1, 1)


class CountingTree(MemoryTree):
    """A tree that can also produce the bytes of its tiles."""

    def tile(self, tile: Any) -> Any:
        start = tile.index * 256
        places = range(start, start + tile.width)
        return b"".join(self.subtree_hash(8 * tile.level, place) for place in places)


@pytest.fixture(scope="module")
def big() -> CountingTree:
    return CountingTree(i.to_bytes(4, "big") for i in range(66_100))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 66_100), st.data())
def test_proofs_from_tiles_equal_proofs_from_memory(big: Any, size: Any, data: Any) -> None:
    source = TileHashSource(size, big.tile)
    old = data.draw(st.integers(1, size))
    index = data.draw(st.integers(0, size - 1))
    assert root_hash(source, size) == big.root(size)
    assert inclusion_proof(source, index, size) == big.inclusion_proof(index, size)
    assert consistency_proof(source, old, size) == big.consistency_proof(old, size)


def test_a_source_refuses_what_its_tree_does_not_hold(big: Any) -> None:
    source = TileHashSource(300, big.tile)
    with pytest.raises(MalformedTile, match="no such subtree"):
        source.subtree_hash(0, 300)
    with pytest.raises(MalformedTile, match="no such subtree"):
        source.subtree_hash(8, 1)


@pytest.mark.parametrize("data", [b"", bytes(31), bytes(64)])
def test_a_tile_of_another_width_is_refused(data: Any) -> None:
    with pytest.raises(MalformedTile, match="hashes"):
        TileHashSource(1, lambda tile: data).subtree_hash(0, 0)


def test_a_hash_beyond_a_tile_is_refused() -> None:
    with pytest.raises(MalformedTile):
        tile_hash(bytes(32 * 3), 2, 0)
    with pytest.raises(MalformedTile):
        tile_hash(bytes(33), 0, 0)


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=256))
def test_entry_bundles_round_trip(entries: Any) -> None:
    data = encode_entry_bundle(entries)
    assert list(decode_entry_bundle(data, len(entries))) == entries
    for wrong in (data[:-1], data + b"\x00"):
        with pytest.raises(MalformedTile):
            decode_entry_bundle(wrong, len(entries))
    with pytest.raises(MalformedTile):
        decode_entry_bundle(data, len(entries) + 1)


def test_entry_bundle_bytes() -> None:
    assert encode_entry_bundle([b"ab", b""]) == b"\x00\x02ab\x00\x00"


@pytest.mark.parametrize("entries", [[], [b""] * 257, [bytes(65_536)]])
def test_bundles_out_of_range_are_refused(entries: Any) -> None:
    with pytest.raises(MalformedTile):
        encode_entry_bundle(entries)
