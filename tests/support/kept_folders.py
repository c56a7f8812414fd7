"""Folders that a session's tests set up once: each has a copy, and services of its own on it."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KeptFolder:
    """Mode and content of files by their paths below a folder."""

    files: dict[Path, tuple[int, bytes]]

    @classmethod
    def of(cls, folder: Path, parts: Iterable[str]) -> "KeptFolder":
        """Keep parts of a folder; services may have its databases open."""
        found = [path for part in parts for path in (folder / part).rglob("*") if path.is_file()]
        # A fence comes before its database, which may be ahead of it and never behind.
        found.sort(key=lambda path: (path.suffix == ".db", path))
        return cls(
            {
                path.relative_to(folder): (path.stat().st_mode, _content(path))
                for path in found
                if path.suffix not in {".db-wal", ".db-shm"}
            }
        )

    def restore(self, folder: Path, part: str = "") -> None:
        """Write the files, or those of a part; nobody has the databases open."""
        for name, (mode, data) in self.files.items():
            if name.is_relative_to(part):
                path = folder / name
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.write_bytes(data)
                path.chmod(mode)


def _content(path: Path) -> bytes:
    if path.suffix != ".db":
        return path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        return connection.serialize()
