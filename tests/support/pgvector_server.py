"""A PostgreSQL server with pgvector: the one of a wheel, or else Debian's with its extension."""

from __future__ import annotations

from pathlib import Path

import postgresql_server


def programs() -> Path | None:
    """The folder of initdb and postgres beside pgvector, if there is one."""
    found = postgresql_server.wheel()
    return found or next((folder for folder in _debian() if _has_pgvector(folder)), None)


def _debian() -> list[Path]:
    found = postgresql_server.installed()
    return [] if found is None else [found]


def _has_pgvector(folder: Path) -> bool:
    version = folder.parent.name
    return Path(f"/usr/share/postgresql/{version}/extension/vector.control").is_file()
