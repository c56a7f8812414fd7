"""Sessions of PostgreSQL with advisory locks: what one of several processes holds at a time.

A lock ends with its session, and the session with its process. A process that stands still, or
that the network has cut off, says nothing any more: the server then ends the session by itself, so
that nobody waits for it longer than `SILENT_SECONDS`.
"""

import hashlib
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.database import LOCK_SECONDS, database_errors
from sqlalchemy import Connection, Engine, Executable, text
from sqlalchemy.exc import SQLAlchemyError

__all__ = ["SILENT_SECONDS", "Session", "Turns", "is_locked", "key_of"]

SILENT_SECONDS = 10
_PING_SECONDS = 1.0
_FIRST_WAIT, _LONGEST_WAIT = 0.002, 0.05
_LEAST_SERVER = 140_000  # the first that ends sessions which are idle
_KEYS = "FROM unnest(CAST(:keys AS bigint[])) AS key"
_TRY = text(f"SELECT array_agg(key) {_KEYS} WHERE pg_try_advisory_lock(key)")
_UNLOCK = text(f"SELECT count(pg_advisory_unlock(key)) {_KEYS}")
_UNLOCK_ALL = text("SELECT pg_advisory_unlock_all()")
_HELD = text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND classid::bigint = :high AND objid::bigint = :low AND granted"
)


def key_of(*words: str) -> int:
    """Return the key of an advisory lock, 64 bits with a sign, for something of these names."""
    digest = hashlib.sha256("\0".join(("ragaudit", *words)).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def is_locked(connection: Connection, key: int) -> bool:
    """Return whether any session holds an advisory lock.

    Args:
        connection: of a transaction of PostgreSQL.
    """
    high, low = divmod(key % 2**64, 2**32)
    return bool(connection.scalar(_HELD, {"high": high, "low": low}))


class Session:
    """A session of its own; every statement commits by itself. For several threads."""

    def __init__(self, engine: Engine) -> None:
        """Connect, and begin to say from time to time that this process is alive.

        Raises:
            StoreUnavailable: the server does not answer.
            UnsupportedError: it is older than version 14.
        """
        self._guard = threading.Lock()
        self._closed = threading.Event()
        with database_errors():
            connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            connection.detach()  # closing it ends the session, and its locks with it
            self._connection = connection
            version = connection.scalar(text("SHOW server_version_num"))
            if int(version) < _LEAST_SERVER:
                connection.close()
                raise UnsupportedError(
                    f"server of version {version}", where="PostgreSQL", expected="14 or later"
                )
            # Whatever the cluster's defaults are: what is taken here must be durable.
            connection.exec_driver_sql(
                f"SET idle_session_timeout TO '{SILENT_SECONDS}s'; SET synchronous_commit TO on;"
                f" SET lock_timeout TO '{SILENT_SECONDS // 2}s'"
            )
        threading.Thread(target=self._ping, name="session", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether the session is known to have ended, with all of its locks."""
        return self._closed.is_set()

    def try_lock(self, key: int) -> bool:
        """Take a lock if nobody else holds it; return whether it is taken. As `try_locks`."""
        return key in self.try_locks([key])

    def try_locks(self, keys: Sequence[int]) -> set[int]:
        """Take those locks that nobody else holds; return which these are.

        One that this session holds is taken once more, and must be given back as often.

        Raises:
            StoreUnavailable: the session has ended.
        """
        return set(self.scalar(_TRY, {"keys": list(keys)}) or ())

    def unlock(self, keys: Sequence[int]) -> None:
        """Give locks back; with a session that ended, all of them are."""
        try:
            self.scalar(_UNLOCK, {"keys": list(keys)})
        except StoreUnavailable:
            self.close()

    def scalar(self, statement: Executable, values: dict[str, Any] | None = None) -> Any:
        """Return the first value that a statement gives; it is committed then.

        Raises:
            StoreUnavailable: the session has ended.
        """
        with self._guard, database_errors():
            if self.ended:
                raise StoreUnavailable("the session has ended", where="store")
            try:
                return self._connection.execute(statement, values or {}).scalar()
            except SQLAlchemyError:
                if self._connection.invalidated:
                    self._closed.set()
                raise

    def close(self) -> None:
        """End the session; its locks are free then, if the server answers."""
        ended = self.ended
        self._closed.set()
        with self._guard:
            if not ended and not self._connection.invalidated:
                # A server that is only told of the end lets go of them some time later.
                with suppress(SQLAlchemyError):
                    self._connection.execute(_UNLOCK_ALL)
            self._connection.close()

    def _ping(self) -> None:
        while not self._closed.wait(_PING_SECONDS):
            try:
                self.scalar(text("SELECT 1"))
            except StoreUnavailable:
                self.close()


class Turns:
    """Turns that processes take, one at a time for each key. For several threads.

    Two threads of one process are let in together: they have locks of their own.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._guard = threading.Lock()
        self._session: Session | None = None

    def take(self, key: int) -> Session:
        """Wait until no other process has the turn of a key; `Session.unlock` gives it back.

        Raises:
            StoreUnavailable: the database does not answer, or another process does not end.
        """
        until, wait, renewed = time.monotonic() + LOCK_SECONDS, _FIRST_WAIT, False
        while True:
            session = self._opened()
            try:
                if session.try_lock(key):
                    return session
            except StoreUnavailable:
                # The server may have ended a session that nobody used: the next one tells.
                if renewed or not session.ended:
                    raise
                renewed = True
                continue
            if time.monotonic() >= until:
                raise StoreUnavailable(
                    "another process has not ended its turn", where="store", expected="later"
                )
            # Asked again, not waited for in the server: the session is everybody's here.
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def take_free(self, keys: Sequence[int]) -> dict[int, Session]:
        """Return the turns that no other process has, taken; for the others there is `take`.

        Args:
            keys: distinct.
        """
        try:
            session = self._opened()
            return dict.fromkeys(session.try_locks(keys), session)
        except StoreUnavailable:
            return {}  # `take` tries again, or says what is wrong

    def close(self) -> None:
        """End the session, if there is one."""
        with self._guard:
            if self._session is not None:
                self._session.close()
                self._session = None

    def _opened(self) -> Session:
        with self._guard:
            if self._session is None or self._session.ended:
                self._session = Session(self._engine)
            return self._session
