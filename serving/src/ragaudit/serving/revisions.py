"""The tables of a service and the revisions that they went through: made, upgraded, refused.

Each service has a folder of migrations, Alembic's scripts in one line. A database says its revision
in a table of its own. Nothing is upgraded by the way: a service that finds another revision than
its own refuses to start, and names the command that helps.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ragaudit.encoding.errors import InternalError, RefusedError, UnsupportedError
from ragaudit.ledger.errors import StoreUnavailable
from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    String,
    Table,
    insert,
    inspect,
    select,
)

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

__all__ = ["Schema", "Upgrade", "no_way_back"]

_REVISION_LENGTH = 32  # of Alembic's own table


@dataclass(frozen=True)
class Upgrade:
    """What `Schema.upgrade` did.

    Attributes:
        before: the revision that was found; None for a database without tables.
        after: the one that this software needs.
    """

    before: str | None
    after: str


class Schema:
    """The tables of one service.

    Args:
        metadata: of all of its tables, as they are now.
        table: name of the table that holds the revision.
        scripts: folder of the migrations.
        command: that upgrades, as an operator types it.

    Attributes:
        metadata: as given.
        revision: the table of the revision; Alembic's name for its column.
    """

    def __init__(self, *metadata: MetaData, table: str, scripts: Path, command: str) -> None:
        self.metadata = metadata
        self.revision = Table(
            table, MetaData(), Column("version_num", String(_REVISION_LENGTH), primary_key=True)
        )
        self._scripts = scripts
        self._command = command

    @cached_property
    def revisions(self) -> tuple[str, ...]:
        """The revisions that this software knows, its own last.

        They are those of the files' names: a service that starts loads no migration, nor Alembic.
        """
        files = self._scripts.glob("revision_*.py")
        return tuple(sorted(path.stem.removeprefix("revision_") for path in files))

    @property
    def head(self) -> str:
        """The revision that this software needs."""
        return self.revisions[-1]

    def found(self, connection: Connection) -> str | None:
        """Return the revision of a database, None if it has no tables of this service.

        Args:
            connection: of any transaction.

        Raises:
            StoreUnavailable: the table of the revision has no row.
        """
        if not inspect(connection).has_table(self.revision.name):
            return None
        found = connection.scalar(select(self.revision.c.version_num))
        if found is None:
            raise StoreUnavailable(
                "the database does not say its revision",
                where=self.revision.name,
                expected="the database as it was",
            )
        return str(found)

    def demand(self, connection: Connection) -> None:
        """Check that a database is of the revision that this software needs.

        Args:
            connection: of any transaction.

        Raises:
            StoreUnavailable: it has no tables.
            UnsupportedError: it is of an older revision, or of one that is not known here.
        """
        found = self.found(connection)
        if found is None:
            raise StoreUnavailable(
                "the database has no tables", where="store", expected=self._command
            )
        self._demand_known(found)
        if found != self.head:
            raise UnsupportedError(
                f"the database is of revision {found}, older than this software",
                where="store",
                expected=f"a back-up, then: {self._command}",
            )

    def create(self, connection: Connection) -> None:
        """Make all tables in a database that has none, at the newest revision.

        Args:
            connection: of a transaction that writes.

        Raises:
            UnsupportedError: it has tables already, of another revision.
        """
        if self.found(connection) is not None:
            self.demand(connection)
            return
        for metadata in self.metadata:
            metadata.create_all(connection)
        self.revision.create(connection)
        connection.execute(insert(self.revision).values(version_num=self.head))

    def upgrade(self, connection: Connection) -> Upgrade:
        """Make the tables, or bring older ones to the newest revision: all of it, or nothing.

        Args:
            connection: of a transaction that writes, while nobody serves the database.

        Raises:
            UnsupportedError: of a revision that is not known here.
        """
        found = self.found(connection)
        if found is None:
            self.create(connection)
        else:
            self._demand_known(found)
            self.step(connection, found)
        return Upgrade(found, self.head)

    def step(self, connection: Connection, found: str | None) -> None:
        """Run the migrations from a revision to the newest.

        Args:
            connection: of a transaction that writes.
            found: the database's revision; None to begin without tables.
        """
        from alembic.migration import MigrationContext  # noqa: PLC0415
        from alembic.operations import Operations  # noqa: PLC0415

        context = MigrationContext.configure(connection, opts={"version_table": self.revision.name})
        known = self.revisions
        first = 0 if found is None else known.index(found) + 1
        with Operations.context(context):
            for name in known[first:]:
                self._directory.get_revision(name).module.upgrade()
        context.stamp(self._directory, self.head)

    @cached_property
    def _directory(self) -> "ScriptDirectory":
        from alembic.script import ScriptDirectory  # noqa: PLC0415 - only who upgrades waits for it

        folder = str(self._scripts)
        directory = ScriptDirectory(folder, version_locations=[folder])
        before = None
        for name in self.revisions:
            script = directory.get_revision(name)
            if script.down_revision != before:
                raise InternalError("the migrations are not one line", where=self._scripts.name)
            before = name
        return directory

    def _demand_known(self, found: str) -> None:
        if found not in self.revisions:
            raise UnsupportedError(
                f"the database is of revision {found}, which this software does not know",
                where="store",
                expected=f"the newer release that made it; this one knows up to {self.head}",
            )


def no_way_back() -> RefusedError:
    """Return what the ``downgrade`` of every migration raises.

    An older revision has no place for what was stored since, and that is evidence.
    """
    return RefusedError(
        "a database is not downgraded: the older tables have no place for what was stored since",
        where="store",
        expected="the back-up from before the upgrade, with the release that made it",
    )
