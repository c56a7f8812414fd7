"""The stores that `ragaudit up` can stand before, and the prover's settings for each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragaudit.cli.up.store import Found, chosen, chroma_collections
from ragaudit.prover.keys import write_secret_file
from ragaudit.serving.secret_files import read_secret_file

__all__ = ["Source", "of_chroma", "of_pgvector"]

DSN = "store.dsn"


@dataclass(frozen=True)
class Source:
    """A store that was looked at.

    Attributes:
        found: what is served of it.
        backend: returns the section `backend` of the prover's settings, given the folder in which
            its secrets may be.
        chroma: settings of a Chroma server; None for another store.
    """

    found: Found
    backend: Callable[[Path], dict[str, Any]] = field(repr=False)
    chroma: dict[str, Any] | None = None


def of_chroma(url: str, token_file: Path | None, names: Sequence[str]) -> Source:
    """Return a Chroma server as a source.

    Args:
        url: of the server.
        token_file: secret file of its token; None for a server that wants none.
        names: of the collections that are wanted; empty for all.

    Raises:
        RagauditError: it does not answer, or nothing of it can be served.
    """
    token = None if token_file is None else read_secret_file(token_file)
    found = chosen(chroma_collections(url, token), names)
    settings: dict[str, Any] = {
        "url": url,
        "collections": {each.tenant: each.name for each in found.served},
    }
    if token_file is not None:
        settings["token_file"] = str(token_file.resolve())
    return Source(found, lambda _: {"kind": "chroma", "chroma": settings}, settings)


def of_pgvector(dsn: str, names: Sequence[str]) -> Source:
    """Return a PostgreSQL database with pgvector as a source.

    Args:
        dsn: connection string of libpq.
        names: of the tables that are wanted; empty for all.

    Raises:
        RagauditError: it does not answer, or nothing of it can be served.
    """
    from ragaudit.cli.up.pgvector_tables import pgvector_tables  # noqa: PLC0415 - needs an extra

    tables = {each.collection.name: each for each in pgvector_tables(dsn)}
    good = [each.collection for each in tables.values() if not each.reason]
    bad = [(name, each.reason) for name, each in tables.items() if each.reason]
    found = chosen(good, names, bad)

    def backend(folder: Path) -> dict[str, Any]:
        write_secret_file(folder / DSN, dsn)
        served = {each.tenant: tables[each.name].columns for each in found.served}
        return {
            "kind": "pgvector",
            "pgvector": {"dsn_file": str((folder / DSN).resolve()), "tables": served},
        }

    return Source(found, backend)
