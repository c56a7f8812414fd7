"""`ragaudit receipt prove-missing`, `verify-missing`: from the published log to an accusation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client.blocking import Client
from ragaudit.client.cli import app
from ragaudit.encoding import canonical_json
from ragaudit.ledger.log.tiles import TILE_WIDTH, Tile, parse_path, tile_path, tiles_of
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.entries import Close
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.handover import Entry
from typer.testing import CliRunner

RUNNER = CliRunner()
LOG = "/v1/windows/w1/log/"


def tile_bytes(tree: MemoryTree, tile: Tile) -> bytes:
    first = tile.index * TILE_WIDTH
    hashes = (tree.subtree_hash(8 * tile.level, first + i) for i in range(tile.width))
    return b"".join(hashes)


@pytest.fixture(autouse=True)
def network(provider: Any, verifier: Any, intercept: Callable[..., None]) -> None:
    """The provider's log is published beside its other calls."""

    def handle(request: httpx.Request) -> Any:
        path = request.url.path
        if path == f"{LOG}checkpoint":
            return httpx.Response(200, content=provider.head())
        if path.startswith(LOG):
            tile = parse_path(path.removeprefix(LOG))
            assert isinstance(tile, Tile)
            return httpx.Response(200, content=tile_bytes(provider.tree, tile))
        return (verifier if request.url.host == "verifier" else provider).handle(request)

    intercept(handle)


@pytest.fixture
def receipt(tmp_path: Path) -> Path:
    """A receipt file whose record is in the log."""
    with Client(
        "http://provider", "secret-api-key", window="w1", state_dir=tmp_path,
        verifier_url="http://verifier", allow_unpinned=True,
    ) as client:  # fmt: skip
        path = client.search("what is it?", 3).receipt.path
        assert path is not None
        return path


@pytest.fixture
def policy(provider: Any, tmp_path: Path) -> Path:
    path = tmp_path / "policy.json"
    path.write_bytes(provider.policy.canonical + b"\n")
    return path


def rewrite(provider: Any, entries: list[Any]) -> None:
    """Make the provider's log one of these entries."""
    provider.entries = entries
    tree = MemoryTree()
    for index, (kind, salt, body) in enumerate(entries):
        tree.append(Entry(index, kind, salt, body).leaf)
    provider.tree = tree


def replaced(provider: Any) -> None:
    """Put the opening's bytes where the record was."""
    kind, salt, body = provider.entries[2]
    rewrite(provider, [*provider.entries[:2], (kind, bytes(32), body)])
    assert salt != bytes(32)


def cut_off(provider: Any) -> None:
    """Leave the record out, so that the log ends before it."""
    rewrite(provider, provider.entries[:2])


def prove(receipt: Path, policy: Path, *options: str) -> tuple[int, str, Path]:
    out = receipt.with_suffix(".missing")
    done = RUNNER.invoke(
        app,
        ["prove-missing", str(receipt), "--policy", str(policy), "-o", str(out), *options],
    )
    return done.exit_code, done.output, out


ONLINE = ("--prover", "http://provider")


def verified(proof: Path, policy: Path) -> tuple[int, Any]:
    done = RUNNER.invoke(app, ["verify-missing", str(proof), "--policy", str(policy), "--json"])
    return done.exit_code, json.loads(done.output)


def test_a_record_that_was_replaced_is_proven_missing(
    receipt: Path, policy: Path, provider: Any
) -> None:
    replaced(provider)
    code, output, proof = prove(receipt, policy, *ONLINE)
    assert (code, "has another one there" in output) == (0, True)
    shown = {"origin": provider.origin, "index": 2, "size": 3, "shown": "another leaf"}
    assert verified(proof, policy) == (0, shown)


def test_the_proof_has_nothing_of_the_private_half(
    receipt: Path, policy: Path, provider: Any
) -> None:
    replaced(provider)
    proof = prove(receipt, policy, *ONLINE)[2].read_text()
    private = json.loads(receipt.read_bytes())["private"]
    assert "what is it?" not in proof and private["salt_q"] not in proof


def test_a_record_that_is_logged_is_not_proven_missing(receipt: Path, policy: Path) -> None:
    code, output, proof = prove(receipt, policy, *ONLINE)
    assert (code, "the entry is in the log" in output, proof.exists()) == (4, True, False)


def test_a_log_that_may_grow_proves_nothing(receipt: Path, policy: Path, provider: Any) -> None:
    cut_off(provider)
    code, output, proof = prove(receipt, policy, *ONLINE)
    assert (code, "may still come" in output, proof.exists()) == (4, True, False)


def test_a_log_that_was_closed_without_the_record_is_proof(
    receipt: Path, policy: Path, provider: Any, tmp_path: Path
) -> None:
    # The record would have been at 2: a log of the opening and the close ends before it.
    rewrite(provider, provider.entries[:1])
    provider.append("close", Close("w1", 0, 0, 1).encode())
    entries = tmp_path / "entries.json"
    listed = [Entry(i, *entry) for i, entry in enumerate(provider.entries)]
    entries.write_bytes(Entries(tuple(listed)).encode())
    code, output, proof = prove(receipt, policy, *ONLINE, "--entries", str(entries))
    assert (code, "closed with 2 entries" in output) == (0, True)
    assert verified(proof, policy)[1]["shown"] == "the end of the log"
    entries.write_bytes(b"[]")
    assert prove(receipt, policy, *ONLINE, "--entries", str(entries))[0] == 2


def publish(provider: Any, folder: Path, cut: Callable[[Tile], bool]) -> None:
    """Write the log as static files; partial tiles only where ``cut`` says so."""
    tree, size = provider.tree, provider.tree.size
    (folder / "checkpoint").parent.mkdir()
    (folder / "checkpoint").write_bytes(provider.head())
    for tile in tiles_of(size):
        whole = tile if cut(tile) else Tile(tile.level, tile.index)
        path = folder / tile_path(whole)
        path.parent.mkdir(parents=True, exist_ok=True)
        # The full tile holds what came later too; nothing of that is under the checkpoint.
        path.write_bytes(tile_bytes(tree, tile).ljust(32 * whole.width, b"\0"))


@pytest.mark.parametrize("partial", [True, False])
def test_a_folder_of_static_files_is_a_log_too(
    receipt: Path, policy: Path, provider: Any, tmp_path: Path, partial: bool
) -> None:
    replaced(provider)
    publish(provider, tmp_path / "log", lambda _tile: partial)
    window = tmp_path / "window.json"
    window.write_bytes(canonical_json.dumps(provider._window()))
    options = ("--window", str(window), "--log", str(tmp_path / "log"))
    code, _, proof = prove(receipt, policy, *options)
    assert code == 0 and verified(proof, policy)[0] == 0


def test_a_tile_that_does_not_fit_the_checkpoint_accuses_nobody(
    receipt: Path, policy: Path, provider: Any, tmp_path: Path
) -> None:
    publish(provider, tmp_path / "log", lambda _tile: True)
    for path in (tmp_path / "log/tile").rglob("*.p/*"):
        path.write_bytes(bytes(len(path.read_bytes())))
    code, output, proof = prove(receipt, policy, *ONLINE, "--log", str(tmp_path / "log"))
    assert (code, "another root" in output, proof.exists()) == (1, True, False)


def test_an_empty_folder_is_no_log(receipt: Path, policy: Path, tmp_path: Path) -> None:
    code, output, _ = prove(receipt, policy, *ONLINE, "--log", str(tmp_path / "none"))
    assert code == 2 and "no checkpoint" in output


def test_a_saved_window_says_nothing_of_where_its_log_is(
    receipt: Path, policy: Path, provider: Any, tmp_path: Path
) -> None:
    window = tmp_path / "window.json"
    window.write_bytes(canonical_json.dumps(provider._window()))
    code, output, _ = prove(receipt, policy, "--window", str(window))
    assert code == 2 and "--log or --prover" in output


def test_a_false_proof_is_false_and_a_damaged_one_unusable(
    receipt: Path, policy: Path, provider: Any
) -> None:
    replaced(provider)
    proof = prove(receipt, policy, *ONLINE)[2]
    value = json.loads(proof.read_bytes())
    proof.write_bytes(canonical_json.dumps({**value, "leaf": "00" * 32}))
    assert verified(proof, policy)[0] == 1
    proof.write_bytes(canonical_json.dumps({**value, "leaf": None}))
    assert verified(proof, policy)[0] == 2
