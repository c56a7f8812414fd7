"""The prover's tables, the ledger's among them, and the revisions that they went through."""

from pathlib import Path

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger.log import schema as ledger_schema
from ragaudit.prover.store import tables
from ragaudit.serving.revisions import Schema
from sqlalchemy import Connection, inspect, text

_NUMBERED = "prover_schema"  # the table that said the version before there were revisions
_REVISIONS = {2: "0001", 3: "0002"}


def _unmarked(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_NUMBERED):
        return None
    version = connection.scalar(text(f"SELECT version FROM {_NUMBERED}"))  # noqa: S608 - constant
    if version not in _REVISIONS:
        raise UnsupportedError(
            f"the database is of version {version}, from before the first release",
            where="store",
            expected="a new database: ragaudit prover init",
        )
    return _REVISIONS[version]


SCHEMA = Schema(
    ledger_schema.metadata,
    tables.metadata,
    table="prover_revision",
    scripts=Path(__file__).parent / "migrations",
    command="ragaudit prover migrate",
    unmarked=_unmarked,
)
