"""The log's tree, its tiles and its proofs."""

import hashlib
import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from pymerkle import InmemoryTree
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.errors import (
    MalformedNote,
    MalformedProof,
    MalformedTile,
    NoteRejected,
    ProofRejected,
)
from ragaudit.ledger.log import cosigner_protocol as protocol
from ragaudit.ledger.log.checkpoints import (
    Checkpoint,
    SplitView,
    find_split_view,
    sign_checkpoint,
    verify_checkpoint,
    verify_split_view,
)
from ragaudit.ledger.log.cosignatures import CosignerPolicy, cosign, verify_cosigned
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest, judge
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey, parse_note
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
from ragaudit.ledger.log.tlog_proof import TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import (
    _BLOCK_LEAVES,
    EMPTY_ROOT,
    MemoryTree,
    TreeHead,
    consistency_proof,
    consistency_proof_length,
    inclusion_proof,
    inclusion_proof_length,
    leaf_hash,
    node_hash,
    root,
    root_hash,
    verify_consistency,
    verify_inclusion,
)

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ledger.json").read_text("utf-8"))
LIMIT = 130


def largest_power_below(n: Any) -> Any:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


class Rfc:
    """RFC 6962 §2.1, word for word, over the range [a, b) of the leaves; roots remembered."""

    def __init__(self, leaves: Any) -> None:
        self.leaves = leaves
        self.roots: dict[Any, Any] = {}

    def mth(self, a: Any, b: Any) -> Any:
        if (a, b) not in self.roots:
            self.roots[a, b] = self._mth(a, b)
        return self.roots[a, b]

    def _mth(self, a: Any, b: Any) -> Any:
        if a == b:
            return hashlib.sha256(b"").digest()
        if b - a == 1:
            return hashlib.sha256(b"\x00" + self.leaves[a]).digest()
        k = largest_power_below(b - a)
        return hashlib.sha256(b"\x01" + self.mth(a, a + k) + self.mth(a + k, b)).digest()

    def path(self, m: Any, a: Any, b: Any) -> Any:
        if b - a == 1:
            return []
        k = largest_power_below(b - a)
        if m < k:
            return [*self.path(m, a, a + k), self.mth(a + k, b)]
        return [*self.path(m - k, a + k, b), self.mth(a, a + k)]

    def proof(self, m: Any, n: Any) -> Any:
        return self.subproof(m, 0, n, True)

    def subproof(self, m: Any, a: Any, b: Any, whole: Any) -> Any:
        if m == b - a:
            return [] if whole else [self.mth(a, b)]
        k = largest_power_below(b - a)
        if m <= k:
            return [*self.subproof(m, a, a + k, whole), self.mth(a + k, b)]
        return [*self.subproof(m - k, a + k, b, False), self.mth(a, a + k)]


@pytest.fixture(scope="module")
def rfc() -> Rfc:
    return Rfc([f"leaf {i}".encode() for i in range(LIMIT)])


@pytest.fixture(scope="module")
def tree(rfc: Any) -> MemoryTree:
    return MemoryTree(rfc.leaves)


def test_certificate_transparency_roots() -> None:
    leaves = [bytes.fromhex(leaf) for leaf in VECTORS["ct_leaves"]]
    for size, expected in enumerate(VECTORS["ct_roots"], start=1):
        assert root(leaves[:size]).hex() == expected


def test_empty_tree_hashes_the_empty_string() -> None:
    assert root([]) == EMPTY_ROOT == hashlib.sha256(b"").digest()


def test_roots_equal_the_rfc_text(rfc: Any, tree: Any) -> None:
    for size in range(LIMIT + 1):
        assert tree.root(size) == rfc.mth(0, size)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=6))
def test_a_tree_that_grows_in_blocks_is_the_tree_that_grows_leaf_by_leaf(blocks: Any) -> None:
    grown, single, count = MemoryTree(), MemoryTree(), 0
    for block in blocks:
        leaves = [bytes([number]) for number in range(count, count + block)]
        grown.extend(leaves)
        assert [single.append(leaf) for leaf in leaves] == [*range(count, count + block)]
        count += block
        assert grown.head() == single.head()
    for index in range(count):
        assert grown.inclusion_proof(index) == single.inclusion_proof(index)


def test_a_block_that_is_hashed_at_a_time_ends_nowhere_in_a_tree() -> None:
    leaves = [number.to_bytes(2, "big") for number in range(2 * _BLOCK_LEAVES + 3)]
    assert root(leaves) == Rfc(leaves).mth(0, len(leaves))


def test_inclusion_proofs_equal_the_rfc_text_and_verify(rfc: Any, tree: Any) -> None:
    for size in range(1, LIMIT + 1):
        head = tree.head(size)
        for index in range(size):
            proof = tree.inclusion_proof(index, size)
            assert list(proof) == rfc.path(index, 0, size)
            assert len(proof) == inclusion_proof_length(index, size)
            verify_inclusion(leaf=leaf_hash(rfc.leaves[index]), index=index, head=head, proof=proof)


def test_consistency_proofs_equal_the_rfc_text_and_verify(rfc: Any, tree: Any) -> None:
    for new in range(1, LIMIT + 1):
        for old in range(1, new + 1):
            proof = tree.consistency_proof(old, new)
            assert list(proof) == rfc.proof(old, new)
            assert len(proof) == consistency_proof_length(old, new)
            verify_consistency(old=tree.head(old), new=tree.head(new), proof=proof)


def test_every_tree_continues_the_empty_one(tree: Any) -> None:
    verify_consistency(old=TreeHead(0, EMPTY_ROOT), new=tree.head(7), proof=())
    verify_consistency(old=TreeHead(0, EMPTY_ROOT), new=TreeHead(0, EMPTY_ROOT), proof=())
    with pytest.raises(MalformedProof):
        verify_consistency(old=TreeHead(0, EMPTY_ROOT), new=tree.head(7), proof=(bytes(32),))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=70), st.data())
def test_roots_and_inclusion_paths_equal_pymerkle(leaves: Any, data: Any) -> None:
    oracle = InmemoryTree(algorithm="sha256")
    for leaf in leaves:
        oracle.append_entry(leaf)
    tree = MemoryTree(leaves)
    size = data.draw(st.integers(1, len(leaves)))
    index = data.draw(st.integers(0, size - 1))
    assert tree.root(size) == oracle.get_root(size)
    # Its paths begin with the leaf itself and its indices with 1.
    assert list(tree.inclusion_proof(index, size)) == list(
        oracle.prove_inclusion(index + 1, size).path[1:]
    )


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 300), st.data())
def test_any_change_to_an_inclusion_proof_is_rejected(size: Any, data: Any) -> None:
    tree = MemoryTree(i.to_bytes(2, "big") for i in range(size))
    index = data.draw(st.integers(0, size - 1))
    leaf, head = leaf_hash(index.to_bytes(2, "big")), tree.head()
    proof = tree.inclusion_proof(index)
    position = data.draw(st.integers(0, len(proof) - 1))
    bit = data.draw(st.integers(0, 255))
    changed = bytearray(proof[position])
    changed[bit // 8] ^= 1 << bit % 8
    forged = [*proof[:position], bytes(changed), *proof[position + 1 :]]
    with pytest.raises(ProofRejected):
        verify_inclusion(leaf=leaf, index=index, head=head, proof=forged)
    with pytest.raises(ProofRejected):
        verify_inclusion(leaf=leaf_hash(b"other"), index=index, head=head, proof=proof)
    other = data.draw(st.integers(0, size - 1).filter(lambda i: i != index))
    with pytest.raises((ProofRejected, MalformedProof)):
        verify_inclusion(leaf=leaf, index=other, head=head, proof=proof)


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 300), st.data())
def test_any_change_to_a_consistency_proof_is_rejected(size: Any, data: Any) -> None:
    tree = MemoryTree(i.to_bytes(2, "big") for i in range(size))
    old_size = data.draw(st.integers(1, size - 1))
    old, new = tree.head(old_size), tree.head()
    proof = tree.consistency_proof(old_size)
    position = data.draw(st.integers(0, len(proof) - 1))
    bit = data.draw(st.integers(0, 255))
    changed = bytearray(proof[position])
    changed[bit // 8] ^= 1 << bit % 8
    forged = [*proof[:position], bytes(changed), *proof[position + 1 :]]
    with pytest.raises(ProofRejected):
        verify_consistency(old=old, new=new, proof=forged)
    for wrong in (proof[:-1], (*proof, bytes(32)), ()):
        with pytest.raises(MalformedProof):
            verify_consistency(old=old, new=new, proof=wrong)
    with pytest.raises(ProofRejected):
        verify_consistency(old=TreeHead(old_size, bytes(32)), new=new, proof=proof)
    with pytest.raises(ProofRejected):
        verify_consistency(old=old, new=TreeHead(size, bytes(32)), proof=proof)


def test_a_changed_early_leaf_has_no_consistency_proof() -> None:
    honest, forked = MemoryTree(b"%d" % i for i in range(9)), MemoryTree([b"x"])
    for i in range(1, 20):
        forked.append(b"%d" % i)
    with pytest.raises(ProofRejected, match="older root"):
        verify_consistency(old=honest.head(), new=forked.head(), proof=forked.consistency_proof(9))


def test_same_size_other_root_is_rejected(tree: Any) -> None:
    with pytest.raises(ProofRejected, match="two roots"):
        verify_consistency(old=TreeHead(7, bytes(32)), new=tree.head(7), proof=())


def test_an_older_tree_that_is_larger_is_refused(tree: Any) -> None:
    with pytest.raises(MalformedProof, match="larger"):
        verify_consistency(old=tree.head(8), new=tree.head(7), proof=())


@pytest.mark.parametrize("index", [-1, 7, 2**64])
def test_a_leaf_outside_the_tree_is_refused(tree: Any, index: Any) -> None:
    with pytest.raises(MalformedProof, match="no such leaf"):
        verify_inclusion(leaf=bytes(32), index=index, head=tree.head(7), proof=())
    with pytest.raises(MalformedProof, match="no such leaf"):
        tree.inclusion_proof(index, 7)


def test_hashes_must_have_32_bytes(tree: Any) -> None:
    proof = tree.inclusion_proof(3, 7)
    leaf = leaf_hash(b"leaf 3")
    with pytest.raises(MalformedProof, match="wrong length"):
        verify_inclusion(leaf=leaf[:31], index=3, head=tree.head(7), proof=proof)
    with pytest.raises(MalformedProof, match="wrong length"):
        verify_inclusion(leaf=leaf, index=3, head=tree.head(7), proof=(proof[0] + b"x", *proof[1:]))
    path = tree.consistency_proof(3, 7)
    for wrong in (path[0][:31], path[0] + b"x"):
        with pytest.raises(MalformedProof, match="wrong length"):
            verify_consistency(old=tree.head(3), new=tree.head(7), proof=(wrong, *path[1:]))
    with pytest.raises(MalformedProof, match="wrong length"):
        TreeHead(3, b"short")
    with pytest.raises(MalformedProof, match="wrong length"):
        MemoryTree().append_hash(b"short")


def test_an_inclusion_proof_cannot_be_stretched(tree: Any) -> None:
    proof = tree.inclusion_proof(3, 7)
    for wrong in (proof[:-1], (*proof, bytes(32))):
        with pytest.raises(MalformedProof, match="hashes"):
            verify_inclusion(leaf=leaf_hash(b"leaf 3"), index=3, head=tree.head(7), proof=wrong)


def test_a_node_does_not_pass_for_a_leaf() -> None:
    # Without the prefixes the root of [a, b] would be the leaf a||b of a tree of one.
    a, b = leaf_hash(b"a"), leaf_hash(b"b")
    assert leaf_hash(a + b) != node_hash(a, b)


@pytest.mark.parametrize("size", [-1, 2**63])
def test_tree_heads_have_a_size_in_range(size: Any) -> None:
    with pytest.raises(MalformedProof):
        TreeHead(size, EMPTY_ROOT)


def test_an_empty_tree_has_no_root_of_its_own() -> None:
    with pytest.raises(MalformedProof, match="empty tree"):
        TreeHead(0, bytes(32))


def test_sizes_that_the_tree_does_not_have_are_refused(tree: Any) -> None:
    for call in (tree.root, tree.head):
        with pytest.raises(MalformedProof, match="no such size"):
            call(LIMIT + 1)
    for sizes in ((0, 5), (6, 5), (5, LIMIT + 1)):
        with pytest.raises(MalformedProof):
            tree.consistency_proof(*sizes)


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


DEMO = VECTORS["log"]
ORIGIN = "audit.example/ledger/demo"
LOG = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(bytes.fromhex(DEMO["log_seed"])))
COSIGNER = SigningKey(
    "witness.example/w1", COSIGNATURE_V1, PrivateKey.from_seed(bytes.fromhex(DEMO["cosigner_seed"]))
)
COSIGNERS = CosignerPolicy((COSIGNER.verifier_key,), 1)
TREE = MemoryTree(entry.encode() for entry in DEMO["entries"])


def checkpoint(tree: Any, size: Any = None, key: Any = LOG, origin: Any = ORIGIN) -> Any:
    return sign_checkpoint(Checkpoint(origin, tree.head(size)), key)


def cosigned(tree: Any, size: Any = None) -> Any:
    signed = checkpoint(tree, size)
    line = cosign(signed.checkpoint.text, COSIGNER, DEMO["cosigned_at"])
    return signed.note.with_signatures([line]).encode()


# --- tlog-proof


def test_the_deterministic_log_byte_for_byte() -> None:
    assert str(LOG.verifier_key) == DEMO["log_vkey"]
    assert str(COSIGNER.verifier_key) == DEMO["cosigner_vkey"]
    proof = TlogProof(2, TREE.inclusion_proof(2), cosigned(TREE))
    assert proof.encode() == DEMO["proof"].encode()
    assert TlogProof.parse(DEMO["proof"].encode()) == proof
    checked = verify_tlog_proof(
        proof, leaf=leaf_hash(b"record-2"), log_key=LOG.verifier_key, cosigners=COSIGNERS
    )
    assert checked.quorum_time == DEMO["cosigned_at"]
    for old, hashes in DEMO["consistency"].items():
        assert [b64_encode(each) for each in TREE.consistency_proof(int(old))] == hashes


def test_a_proof_of_another_leaf_index_key_or_quorum_is_rejected() -> None:
    proof = TlogProof.parse(DEMO["proof"].encode())
    known: dict[str, Any] = {"log_key": LOG.verifier_key, "cosigners": COSIGNERS}
    with pytest.raises(ProofRejected):
        verify_tlog_proof(proof, leaf=leaf_hash(b"record-3"), **known)
    moved = TlogProof(3, proof.path, proof.checkpoint)
    with pytest.raises(ProofRejected):
        verify_tlog_proof(moved, leaf=leaf_hash(b"record-2"), **known)
    outside = TlogProof(7, proof.path, proof.checkpoint)
    with pytest.raises(MalformedProof):
        verify_tlog_proof(outside, leaf=leaf_hash(b"record-2"), **known)
    alone = TlogProof(2, proof.path, checkpoint(TREE).encode())
    with pytest.raises(NoteRejected, match="cosigned by 0"):
        verify_tlog_proof(alone, leaf=leaf_hash(b"record-2"), **known)
    stranger = SigningKey(ORIGIN, ED25519, PrivateKey.generate()).verifier_key
    with pytest.raises(NoteRejected, match="no signature"):
        verify_tlog_proof(proof, leaf=leaf_hash(b"record-2"), log_key=stranger, cosigners=COSIGNERS)


@for_each(
    ("old", "new"),
    [
        ("@v1", "@v2"),
        ("index 2", "index 02"),
        ("index 2", "index"),
        ("index 2", "extra AAAA\nindex 2"),
        ("index 2\n", ""),
        ("NVPi", "NVP "),
        ("vueOU=\n", "vueOU=\nAAAA\n"),
        ("\n\n", "\n"),
        ("c2sp", "\u00e92sp"),
        ("NVPi/UuHnPX0yqSSFI3qD7RSgHNEsRTuoYGZ/4vueOU=\n", ("A" * 43 + "=\n") * 64),
    ],
)
def test_malformed_proofs_are_refused(old: Any, new: Any) -> None:
    assert old in DEMO["proof"]
    with pytest.raises(MalformedNote):
        TlogProof.parse(DEMO["proof"].replace(old, new).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"c2sp.org/tlog-proof@v1\nindex 2",  # no checkpoint
        b"c2sp.org/tlog-proof@v1\n\nnote",  # no index
        b"c2sp.org/tlog-proof@v1\n2\n\nnote",
        b"index 2\n\nnote",
    ],
)
def test_proofs_with_a_part_missing_are_refused(data: Any) -> None:
    with pytest.raises(MalformedNote):
        TlogProof.parse(data)


def test_a_huge_proof_is_refused() -> None:
    with pytest.raises(MalformedNote, match="too long"):
        TlogProof.parse(DEMO["proof"].encode() + bytes(10**6))


# --- the cosigner's side


def request(tree: Any, old: Any, size: Any = None, **kind: Any) -> AddCheckpointRequest:
    proof = tree.consistency_proof(old, size) if old else ()
    return AddCheckpointRequest(old, proof, checkpoint(tree, size, **kind).encode())


KEYS = {ORIGIN: LOG.verifier_key}


def decide(body: Any, latest: Any = None) -> Any:
    return judge(AddCheckpointRequest.parse(body), KEYS, {ORIGIN: latest} if latest else {})


def test_first_and_later_checkpoints_are_cosigned() -> None:
    first = decide(request(TREE, 0, 3).encode())
    assert first.head == TREE.head(3)
    later = decide(request(TREE, 3).encode(), TREE.head(3))
    assert later.head == TREE.head()
    assert decide(request(TREE, 7).encode(), TREE.head()).head == TREE.head()
    # A cosigner that stored the empty tree expects no proof.
    assert decide(request(TREE, 0).encode(), TREE.head(0)).head == TREE.head()


def test_requests_are_the_bytes_of_the_specification() -> None:
    body = request(TREE, 4).encode()
    assert body == (
        b"old 4\n" + DEMO["consistency"]["4"][0].encode() + b"\n\n" + checkpoint(TREE).encode()
    )
    assert AddCheckpointRequest.parse(body) == request(TREE, 4)


def test_every_status_of_the_table() -> None:
    other = SigningKey("other.example/log", ED25519, LOG.private)
    stranger = SigningKey(ORIGIN, ED25519, PrivateKey.generate())
    foreign = request(TREE, 0, key=other, origin="other.example/log")
    assert decide(foreign.encode()).status == protocol.UNKNOWN_ORIGIN == 404
    assert decide(request(TREE, 0, key=stranger).encode()).status == protocol.UNTRUSTED_LOG == 403
    too_old = AddCheckpointRequest(8, (), checkpoint(TREE).encode())
    assert decide(too_old.encode()).status == protocol.BAD_REQUEST == 400
    assert decide(AddCheckpointRequest(0, (), b"junk\n").encode()).status == 400
    stale = decide(request(TREE, 3).encode(), TREE.head(4))
    assert stale == protocol.Answer(HTTPStatus.CONFLICT, b"4\n", protocol.SIZE_CONTENT_TYPE)
    unseen = decide(request(TREE, 3).encode())
    assert (unseen.status, unseen.body) == (409, b"0\n")
    fork = MemoryTree(b"fork %d" % i for i in range(7))
    assert decide(request(fork, 3).encode(), TREE.head(3)).status == protocol.INCONSISTENT == 422
    assert decide(request(fork, 7).encode(), TREE.head()).status == 422
    short = AddCheckpointRequest(3, TREE.consistency_proof(3)[:-1], checkpoint(TREE).encode())
    assert decide(short.encode(), TREE.head(3)).status == 422
    eager = AddCheckpointRequest(0, TREE.consistency_proof(3), checkpoint(TREE).encode())
    assert decide(eager.encode()).status == 422


@for_each(
    "body",
    [
        b"", b"old 3", b"old 3\n", b"old 03\n\nnote", b"old -1\n\nnote", b"Old 3\n\nnote",
        b"new 3\n\nnote", b"old  3\n\nnote", b"old 3\nAAAA\n\nnote",
        b"old 3\n" + b64_encode(bytes(33)).encode() + b"\n\nnote",
        b"old 3\n" + (b64_encode(bytes(32)).encode() + b"\n") * 64 + b"\nnote",
        b"old 3\n\xc3\xa9\n\nnote", b"old 3\n\n" + bytes(10**6),
    ],
)  # fmt: skip
def test_malformed_requests_are_refused(body: Any) -> None:
    with pytest.raises(MalformedNote):
        AddCheckpointRequest.parse(body)


# --- the client's side


def test_answers_are_cosignature_lines() -> None:
    signed = checkpoint(TREE)
    lines = (cosign(signed.checkpoint.text, COSIGNER, 7),)
    body = protocol.Answer.cosigned(lines).body
    assert protocol.parse_cosignatures(body) == lines
    data = signed.note.with_signatures(protocol.parse_cosignatures(body)).encode()
    assert verify_cosigned(data, LOG.verifier_key, COSIGNERS).quorum_time == 7


@for_each("body", [b"", b"\n", b"ok\n", b"\xff\n", "— name AAAA".encode(), bytes(10**6)])
def test_other_answers_are_refused(body: Any) -> None:
    with pytest.raises(MalformedNote):
        protocol.parse_cosignatures(body)


def test_a_conflict_tells_a_size() -> None:
    assert protocol.parse_conflict(b"65537\n") == 65537
    for body in (b"", b"\n", b"12", b"012\n", b"12\n\n", b"-1\n", b"conflict\n", b"1" * 40 + b"\n"):
        with pytest.raises(MalformedNote):
            protocol.parse_conflict(body)


# --- split view


@pytest.fixture
def fork() -> Any:
    tree = MemoryTree([b"record-0", b"another"])
    for i in range(2, 9):
        tree.append(b"record-%d" % i)
    return tree


def verified(tree: Any, size: Any = None) -> Any:
    return verify_checkpoint(checkpoint(tree, size).encode(), LOG.verifier_key)


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_two_inconsistent_checkpoints_are_evidence(fork: Any, size: Any) -> None:
    evidence = find_split_view(verified(TREE, size), verified(fork), fork)
    assert evidence is not None
    assert SplitView.parse(evidence.encode()) == evidence
    verify_split_view(evidence, LOG.verifier_key)


def test_one_size_and_two_roots_are_evidence(fork: Any) -> None:
    evidence = find_split_view(verified(TREE, 7), verified(fork, 7), fork)
    assert evidence is not None
    assert evidence.proof == ()
    verify_split_view(evidence, LOG.verifier_key)


def test_consistent_checkpoints_are_none(fork: Any) -> None:
    assert find_split_view(verified(TREE, 3), verified(TREE), TREE) is None
    assert find_split_view(verified(TREE, 1), verified(fork), fork) is None
    assert find_split_view(verified(TREE, 0), verified(fork), fork) is None
    with pytest.raises(MalformedProof, match="larger"):
        find_split_view(verified(fork), verified(TREE), TREE)


def test_an_honest_log_cannot_be_accused(fork: Any) -> None:
    older, newer = checkpoint(TREE, 3).encode(), checkpoint(TREE).encode()
    proof = TREE.consistency_proof(3)
    with pytest.raises(ProofRejected, match="agree"):
        verify_split_view(SplitView(older, newer, TREE.root(3), proof), LOG.verifier_key)
    with pytest.raises(ProofRejected):
        verify_split_view(SplitView(older, newer, fork.root(3), proof), LOG.verifier_key)
    with pytest.raises(ProofRejected):
        verify_split_view(SplitView(newer, newer, fork.root(7), ()), LOG.verifier_key)
    with pytest.raises(MalformedProof, match="larger"):
        verify_split_view(SplitView(newer, older, fork.root(3), ()), LOG.verifier_key)
    with pytest.raises(MalformedProof):
        verify_split_view(SplitView(older, newer, fork.root(3), proof[:-1]), LOG.verifier_key)
    empty = checkpoint(TREE, 0).encode()
    with pytest.raises(MalformedProof):
        verify_split_view(SplitView(empty, newer, bytes(32), ()), LOG.verifier_key)
    stranger = SigningKey(ORIGIN, ED25519, PrivateKey.generate())
    framed = checkpoint(fork, 3, key=stranger).encode()
    with pytest.raises(NoteRejected, match="no signature"):
        verify_split_view(SplitView(framed, newer, TREE.root(3), proof), LOG.verifier_key)


def test_malformed_evidence_is_refused(fork: Any) -> None:
    evidence = find_split_view(verified(TREE, 3), verified(fork), fork)
    assert evidence is not None
    data = evidence.encode()
    for wrong in (b"", data[:-1], data + b"\0", data.replace(b"split-view", b"split-vieW")):
        with pytest.raises(MalformedProof):
            SplitView.parse(wrong)
    long = SplitView(evidence.older, evidence.newer, bytes(32), (bytes(32),) * 65)
    odd = SplitView(evidence.older, evidence.newer, bytes(32), (bytes(31),))
    for crooked in (long, odd):
        with pytest.raises(MalformedProof, match="list of hashes"):
            SplitView.parse(crooked.encode())
    assert TreeHead(3, fork.root(3)).root_hash == evidence.prefix_root
    assert parse_note(evidence.older).text.startswith(ORIGIN)
