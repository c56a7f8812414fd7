"""A log of ours as files, and what programs of others say of it."""

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tiles import bundles_of, entries_path, tile_path, tiles_of
from ragaudit.ledger.log.tree import TreeHead

OLD_SIZE, NEW_SIZE = 65_537, 70_000
"""Three levels of tiles, the older tree with one entry in the last of them."""

RUN_SECONDS = 120


@dataclass(frozen=True)
class Published:
    """A log as files, and the log itself."""

    folder: Path
    vkey: str
    old: TreeHead
    store: LogStore
    checkpoints: CheckpointStore

    def copied(self, folder: Path) -> Path:
        """Return a copy of the files, to be changed."""
        shutil.copytree(self.folder, folder)
        return folder

    def task(self, indices: Sequence[int], folder: Path | None = None) -> dict[str, Any]:
        """Return what the program `log` is asked: the tree, an older one, and some records."""
        size = self.store.head().size
        return {
            "folder": str(folder or self.folder),
            "vkey": self.vkey,
            "old": {
                "size": self.old.size,
                "root": b64(self.old.root_hash),
                "proof": [*map(b64, self.store.consistency_proof(self.old.size, size))],
            },
            "records": [
                {"index": n, "proof": [*map(b64, self.store.inclusion_proof(n, size))]}
                for n in indices
            ],
        }


def b64(data: bytes) -> str:
    """Return standard base64."""
    return base64.b64encode(data).decode()


def publish(folder: Path, size: int, resource: Callable[[str], bytes]) -> None:
    """Write the log of ``size`` entries as C2SP tlog-tiles wants its files."""
    paths = [*map(tile_path, tiles_of(size)), *map(entries_path, bundles_of(size)), "checkpoint"]
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(resource(path))


def flip(path: Path, at: int = 40) -> None:
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def ask(program: Path, task: dict[str, Any]) -> tuple[int, str]:
    """Return exit code and output of one of the programs that read a task."""
    done = subprocess.run(
        [program],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_SECONDS,
    )
    return done.returncode, done.stdout + done.stderr


def fsck(program: Path, folder: Path, vkey: str, url: str = "") -> tuple[str, str]:
    """Return what tessera's fsck found, as (the fault, the line of success); one of them is empty.

    Its exit code is 0 whatever it finds. With one or two workers a corrupt log makes it wait for
    ever: eight, and a limit of time.

    Args:
        program: that was built.
        folder: the log's files.
        vkey: of the log.
        url: where the log is served, to ask for it there.
    """
    key = folder.parent / f"{folder.name}.vkey"
    key.write_text(vkey, encoding="utf-8")
    where = f"--storage_url={url or f'file://{folder}/'}"
    done = subprocess.run(
        [str(program), where, f"--public_key={key}", "--N=8", "--ui=false"],
        capture_output=True,
        text=True,
        check=True,
        timeout=RUN_SECONDS,
    )
    # A fault repeats whole tiles: its beginning says enough.
    fault = done.stderr.partition("fsck failed: ")[2][:200]
    good = [line for line in done.stderr.splitlines() if "Successfully fsck'd log" in line]
    return fault, "" if fault else "".join(good)
