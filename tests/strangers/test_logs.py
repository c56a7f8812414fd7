"""Our log, read by golang.org/x/mod and by transparency-dev/tessera, from its files alone."""

import json
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from published_log import NEW_SIZE, Published, ask, b64, flip, fsck, publish
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.notes import ED25519, SigningKey, VerifierKey
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tiles import TILE_WIDTH, Tile, encode_entry_bundle, parse_path

pytestmark = [pytest.mark.strangers, pytest.mark.timeout(900)]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


INDICES = (0, 1, 255, 256, 65_535, 65_536, NEW_SIZE - 1)
FROZEN = Path(__file__).parents[1] / "frozen" / "0.1.0"
LAST_BUNDLE = "tile/entries/273.p/112"


def test_x_mod_accepts_note_consistency_and_records(programs: Path, published: Published) -> None:
    code, said = ask(programs / "log", published.task(INDICES))
    assert (code, said) == (0, f"{NEW_SIZE} {b64(published.store.head().root_hash)}\n")


def test_x_mod_rejects_another_key(programs: Path, published: Published) -> None:
    other = SigningKey(
        published.vkey.partition("+")[0], ED25519, PrivateKey.from_seed(b"\x09" * 32)
    )
    task = {**published.task(INDICES), "vkey": str(other.verifier_key)}
    code, said = ask(programs / "log", task)
    assert code == 1
    assert "no verifiable signatures" in said


@pytest.mark.parametrize("path", ["tile/0/000", "tile/1/000", "tile/0/273.p/112"])
def test_x_mod_rejects_a_changed_tile(
    path: str, programs: Path, published: Published, tmp_path: Path
) -> None:
    folder = published.copied(tmp_path / "files")
    flip(folder / path)
    code, said = ask(programs / "log", published.task(INDICES, folder))
    assert code == 1
    assert "inconsistent tile" in said


def test_x_mod_rejects_a_changed_entry(
    programs: Path, published: Published, tmp_path: Path
) -> None:
    folder = published.copied(tmp_path / "files")
    flip(folder / LAST_BUNDLE, -1)
    code, said = ask(programs / "log", published.task(INDICES, folder))
    assert code == 1
    assert f"record {NEW_SIZE - 1}" in said


def test_x_mod_rejects_our_proof_of_another_record(programs: Path, published: Published) -> None:
    task = published.task((7,))
    task["records"][0]["index"] = 8
    code, said = ask(programs / "log", task)
    assert code == 1
    assert "record 8" in said


def test_x_mod_rejects_another_older_tree(programs: Path, published: Published) -> None:
    task = published.task(())
    task["old"]["root"] = b64(published.store.root(published.old.size - 1))
    code, said = ask(programs / "log", task)
    assert code == 1
    assert "consistency" in said


def test_fsck_derives_every_tile_again(programs: Path, published: Published) -> None:
    fault, good = fsck(programs / "fsck", published.folder, published.vkey)
    assert fault == ""
    assert f"size {NEW_SIZE} and root {b64(published.store.head().root_hash)}" in good


def test_fsck_asks_over_http(programs: Path, published: Published) -> None:
    handler = partial(Quiet, directory=str(published.folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/"
            fault, good = fsck(programs / "fsck", published.folder, published.vkey, url)
        finally:
            server.shutdown()
            thread.join()
    assert fault == ""
    assert f"size {NEW_SIZE}" in good


@pytest.mark.parametrize("path", ["tile/1/000", "tile/0/017", "tile/entries/017", LAST_BUNDLE])
def test_fsck_rejects_a_changed_file(
    path: str, programs: Path, published: Published, tmp_path: Path
) -> None:
    folder = published.copied(tmp_path / "files")
    flip(folder / path)
    fault, good = fsck(programs / "fsck", folder, published.vkey)
    assert (fault != "", good) == (True, "")


def test_fsck_rejects_a_changed_checkpoint(
    programs: Path, published: Published, tmp_path: Path
) -> None:
    folder = published.copied(tmp_path / "files")
    text = (folder / "checkpoint").read_text(encoding="utf-8")
    (folder / "checkpoint").write_text(text.replace(f"\n{NEW_SIZE}\n", f"\n{NEW_SIZE - 1}\n"))
    fault, _ = fsck(programs / "fsck", folder, published.vkey)
    assert "invalid signature" in fault


def resource_of(store: LogStore, path: str) -> bytes:
    """What a tile or bundle of a log holds that signs no checkpoint here."""
    found = parse_path(path)
    if isinstance(found, Tile):
        return store.tile(found)
    start = TILE_WIDTH * found.index
    return encode_entry_bundle(store.entries(start, start + found.width))


def test_the_frozen_window_is_accepted_by_both(programs: Path, tmp_path: Path) -> None:
    """The log of a whole audit: its leaves and its final checkpoint, as they stand in evidence."""
    vkey = json.loads((FROZEN / "keys.json").read_bytes())["log"]
    with zipfile.ZipFile(FROZEN / "bundle.zip") as bundle:
        leaves = bundle.read("public/leaves.bin")
        final = bundle.read("public/final-checkpoint.txt")
    entries = [leaves[at : at + 32] for at in range(0, len(leaves), 32)]
    engine = open_engine(f"sqlite:///{tmp_path}/ledger.db")
    store = LogStore.create(engine, VerifierKey.parse(vkey))
    with store.transaction() as connection:
        store.extend(connection, entries)
    publish(
        tmp_path / "files",
        len(entries),
        lambda path: final if path == "checkpoint" else resource_of(store, path),
    )
    size = len(entries)
    task = {
        "folder": str(tmp_path / "files"),
        "vkey": vkey,
        "records": [
            {"index": n, "proof": [*map(b64, store.inclusion_proof(n, size))]} for n in range(size)
        ],
    }
    code, said = ask(programs / "log", task)
    assert (code, said) == (0, f"{size} {b64(store.head().root_hash)}\n")
    fault, good = fsck(programs / "fsck", tmp_path / "files", vkey)
    assert fault == ""
    assert f"size {size} and root {b64(store.head().root_hash)}" in good
    engine.dispose()
