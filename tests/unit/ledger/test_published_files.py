"""docs/spec/06-ledger.md §6.2: a log as static files, `checkpoint` last, on both databases."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from databases import ledger_tables
from ledger_logs import COSIGNER, COSIGNERS, KEY, fill
from ragaudit.ledger.errors import NoteRejected, RestoredBackup, UnknownResource
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.published_files import publish
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tiles import bundles_of, entries_path, tile_path, tiles_of


class Log:
    """A log that grows, and its checkpoints."""

    def __init__(self, url: str) -> None:
        self.engine = open_engine(url)
        self.store = LogStore.create(self.engine, KEY.verifier_key)
        self.checkpoints = CheckpointStore(self.store, COSIGNERS)

    def grow(self, size: int) -> None:
        """Append up to a size, and have it cosigned."""
        fill(self.store, size - self.store.head().size)
        signed = self.checkpoints.sign(KEY)
        line = cosign(signed.checkpoint.text, COSIGNER, 1_700_000_000)
        self.checkpoints.add_cosignatures(size, [line])


@pytest.fixture
def log(engine_name: str, make_database: Callable[..., str]) -> Iterator[Log]:
    made = Log(make_database(engine_name, ledger_tables))
    yield made
    made.engine.dispose()


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def expected(log: Log, size: int) -> dict[str, bytes]:
    paths = [*map(tile_path, tiles_of(size)), *map(entries_path, bundles_of(size)), "checkpoint"]
    return {path: log.checkpoints.resource(path) for path in paths}


def test_files_are_what_the_service_answers_and_partial_tiles_go(log: Log, tmp_path: Path) -> None:
    folder = tmp_path / "published" / "w1"
    log.grow(255)
    assert publish(log.checkpoints, folder).size == 255
    assert files(folder) == expected(log, 255)
    log.grow(255 + 256 + 3)
    publish(log.checkpoints, folder)
    assert files(folder) == expected(log, 514)
    log.grow(520)
    publish(log.checkpoints, folder)
    # Those of the older checkpoint stay until the tile is full: somebody may be reading it.
    older = {"tile/0/002.p/2", "tile/entries/002.p/2"}
    assert files(folder).keys() - expected(log, 520).keys() == older
    before = {path: (folder / path).stat().st_ino for path in files(folder)}
    publish(log.checkpoints, folder)
    after = {path: (folder / path).stat().st_ino for path in files(folder)}
    assert {path for path in after if after[path] != before[path]} == {"checkpoint"}


def test_nothing_is_published_before_its_cosignature(log: Log, tmp_path: Path) -> None:
    fill(log.store, 3)
    log.checkpoints.sign(KEY)
    with pytest.raises(UnknownResource):
        publish(log.checkpoints, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_a_folder_that_is_ahead_or_another_logs_is_left_alone(log: Log, tmp_path: Path) -> None:
    log.grow(5)
    other = Log(f"sqlite:///{tmp_path / 'other.db'}")
    other.grow(4)
    with other.store.transaction() as connection:
        other.store.append(connection, bytes(32))
    other.grow(6)
    folder = tmp_path / "folder"
    publish(other.checkpoints, folder)
    before = files(folder)
    with pytest.raises(RestoredBackup):  # it is ahead: 6 entries
        publish(log.checkpoints, folder)
    log.grow(7)
    with pytest.raises(RestoredBackup):  # its fifth entry is another
        publish(log.checkpoints, folder)
    note = before["checkpoint"].replace(b"\n6\n", b"\n5\n")
    (folder / "checkpoint").write_bytes(note)
    with pytest.raises(NoteRejected):
        publish(log.checkpoints, folder)
    (folder / "checkpoint").write_bytes(before["checkpoint"])
    assert files(folder) == before
    other.engine.dispose()


class Stopped(BaseException):
    """As if the process ended here."""


def test_after_a_stop_at_any_step_all_that_checkpoint_covers_is_there(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped before every call that changes or synchronises a file; nothing is cleaned up."""
    log.grow(255)
    steps: list[str] = []
    limit = [10**9]

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            if len(steps) >= limit[0]:
                raise Stopped
            steps.append(name)
            return call(*arguments, **options)

        return step

    def watch(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(os, "fsync", counted("fsync", os.fsync))
        patch.setattr(Path, "replace", counted("replace", Path.replace))
        patch.setattr(shutil, "rmtree", counted("rmtree", shutil.rmtree))

    first = tmp_path / "all"
    publish(log.checkpoints, first)
    old = expected(log, 255)
    log.grow(260)
    with monkeypatch.context() as patched:
        watch(patched)
        publish(log.checkpoints, first)
    # Each file before its name, all names before `checkpoint`, nothing deleted before that.
    assert steps[-4:] == ["replace", "fsync", "rmtree", "rmtree"]
    assert steps[-6] == "fsync"
    new, count = expected(log, 260), len(steps)
    for number in range(count):
        folder = tmp_path / str(number)
        for path, data in old.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        steps.clear()
        limit[0] = number
        with monkeypatch.context() as patched, pytest.raises(Stopped):
            watch(patched)
            publish(log.checkpoints, folder)
        found = files(folder)
        covered = new if found["checkpoint"] == new["checkpoint"] else old
        assert {path: found.get(path) for path in covered} == covered
        publish(log.checkpoints, folder)
        assert files(folder) == new
