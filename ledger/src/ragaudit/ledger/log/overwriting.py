"""That deleted rows leave nothing in an SQLite file; a server sees to that itself."""

from ragaudit.ledger.log.database import database_errors
from sqlalchemy import Connection, Engine

__all__ = ["cut_journal", "overwrite_deleted"]


def overwrite_deleted(connection: Connection) -> None:
    """Have SQLite overwrite with zeros what is deleted from here on; a server leaves it to itself.

    Args:
        connection: of a transaction that writes.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete=ON")


def cut_journal(engine: Engine) -> None:
    """Empty SQLite's write-ahead log, which holds rows that were deleted, if nobody reads it now.

    Raises:
        StoreUnavailable: the database does not answer.
    """
    if engine.name != "sqlite":
        return
    with database_errors(), engine.connect() as connection:
        # By the driver: within a transaction there would be somebody who reads.
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
