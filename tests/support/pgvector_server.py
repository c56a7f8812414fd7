"""A PostgreSQL server with pgvector: the one of a wheel, or else Debian's with its extension."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import postgresql_server
import pytest


@contextmanager
def running() -> Iterator[postgresql_server.Server]:
    """Start such a server, and remove it afterwards; skip the test where there is none."""
    found = programs()
    if found is None:
        pytest.skip("there is no PostgreSQL with pgvector: make setup")
    server = postgresql_server.Server(found)
    try:
        server.start()
        yield server
    finally:
        server.close()


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
