"""The verifier's tables, and the revisions that they went through."""

from pathlib import Path

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.serving.revisions import Schema
from ragaudit.verifier.service import tables
from sqlalchemy import Connection, inspect, text

_FIRST_RELEASE = 4  # in the column that said the version before there were revisions


def _unmarked(connection: Connection) -> str | None:
    if not inspect(connection).has_table(tables.clock.name):
        return None
    version = connection.scalar(text("SELECT schema FROM clock"))
    if version != _FIRST_RELEASE:
        raise UnsupportedError(
            f"the database is of version {version}, from before the first release",
            where="store",
            expected="a new database: ragaudit verifier init",
        )
    return "0001"


SCHEMA = Schema(
    tables.metadata,
    table="verifier_revision",
    scripts=Path(__file__).parent / "migrations",
    command="ragaudit verifier migrate",
    unmarked=_unmarked,
)
