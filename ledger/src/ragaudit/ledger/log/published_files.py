"""A log as static files, for a web server or a mirror: C2SP tlog-tiles without a service.

    folder/checkpoint  folder/tile/0/x001/x234/067  folder/tile/entries/000.p/17

Every file is written whole and made durable under another name before it gets its own. `checkpoint`
is the last one, so whoever reads it finds what it covers, also after a loss of power. A partial
tile is deleted once `checkpoint` covers the full one, to which readers then turn (spec 6.2).
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ragaudit.ledger.errors import RestoredBackup, UnknownResource
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import verify_checkpoint
from ragaudit.ledger.log.durable import synchronise
from ragaudit.ledger.log.tiles import bundles_of, entries_path, tile_path, tiles_of
from ragaudit.ledger.log.tree import EMPTY_ROOT, TreeHead

__all__ = ["CHECKPOINT", "publish"]

CHECKPOINT = "checkpoint"
_NEW = ".new"
_PARTIAL = ".p"


def publish(checkpoints: CheckpointStore, folder: Path) -> TreeHead:
    """Write what the last cosigned checkpoint covers and the folder has not; return its head.

    May be repeated at any time, also after a crash. One process at a time writes to a folder.

    Args:
        checkpoints: of the log.
        folder: of this log alone; it is made if it is missing.

    Raises:
        UnknownResource: no checkpoint is cosigned yet.
        RestoredBackup: the folder has a larger checkpoint, or one of another history.
        MalformedNote, NoteRejected: the folder's checkpoint is not of this log.
        OSError: a file cannot be written; `checkpoint` is then as before.
    """
    # First: another process that leads meanwhile may publish more.
    last = _published(checkpoints, folder)
    signed = checkpoints.cosigned()
    if signed is None:
        raise UnknownResource("no cosigned checkpoint yet", where=checkpoints.log_key.name)
    if last.size > signed.head.size or checkpoints.root(last.size) != last.root_hash:
        raise RestoredBackup(
            "what is published is not a beginning of this log",
            where=str(folder / CHECKPOINT),
            expected=f"at most {signed.head.size} entries",
        )
    written = set()
    for path in _paths(signed.head.size, last.size):
        written |= _write(folder / path, checkpoints.resource(path))
    for each in sorted(written):
        synchronise(each)
    # Last: what it covers is there, and stays there if power is lost now.
    _write(folder / CHECKPOINT, signed.encode())
    synchronise(folder)
    _collect(folder)
    return signed.head


def _published(checkpoints: CheckpointStore, folder: Path) -> TreeHead:
    try:
        note = (folder / CHECKPOINT).read_bytes()
    except FileNotFoundError:
        return TreeHead(0, EMPTY_ROOT)
    return verify_checkpoint(note, checkpoints.log_key).head


def _paths(size: int, since: int) -> Iterator[str]:
    yield from map(entries_path, bundles_of(size, since))
    yield from map(tile_path, tiles_of(size, since))


def _write(path: Path, data: bytes) -> set[Path]:
    """Write a file durably and whole; return the folders whose entries are to be made durable."""
    changed = {path.parent}
    for folder in path.parents:
        if folder.is_dir():
            break
        changed.add(folder.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + _NEW)
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    return changed


def _collect(folder: Path) -> None:
    """Delete the partial tiles of full ones, also those that an earlier crash left."""
    for partial in list((folder / "tile").rglob(f"*{_PARTIAL}")):
        # Only after a checkpoint covers the full one; what a crash wrote beyond is not yet shown,
        # but then the full tile is as right, and what is partial is its beginning.
        if partial.with_suffix("").is_file():
            shutil.rmtree(partial)
