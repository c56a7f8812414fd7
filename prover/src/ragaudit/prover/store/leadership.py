"""Which of the processes on one database drives windows and signs: one at a time.

On PostgreSQL a process leads while a session of its own has an advisory lock. That alone would not
stop one that stood still and does not know yet that the lock is another's. So each take-over raises
a number, the *token*, and whatever a leader writes is refused, in its own transaction, once the
token is another one (docs/decisions/0013).
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ragaudit.ledger.log.advisory import Session, is_locked, key_of
from ragaudit.ledger.log.database import Prepared, insert_of
from ragaudit.prover.errors import NotLeading
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from sqlalchemy import Connection, Executable, select

__all__ = ["LeadersStore", "Leadership"]

_KEY = key_of("leader")
_TABLE = tables.leader
_ROW = 1
# A take-over waits for what is being written under the token before it, and comes after that.
_TOKEN = Prepared(select(_TABLE.c.token).where(_TABLE.c.id == _ROW).with_for_update(read=True))
_HOLDER = select(_TABLE.c.holder).where(_TABLE.c.id == _ROW)


class Leadership:
    """Whether this process leads. Safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        """Lead without contest until `contend` is called: a tool that drives alone does not."""
        self._store = store
        self._guard = threading.Lock()
        self._contended = False
        self._token: int | None = None
        self._session: Session | None = None

    @property
    def leads(self) -> bool:
        """Whether this process leads, as far as it knows."""
        session = self._session
        if session is not None and session.ended:
            return False
        return not self._contended or self._token is not None

    def attempt(self) -> bool:
        """Lead if nobody else does; return whether this process leads now.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        with self._guard:
            self._contended = True
            if self.leads:
                return True
            self._forget()
            if self._store.engine.name != "postgresql":
                # Whoever serves a file serves it alone, see `Store.serve`.
                with self._store.write() as connection:
                    self._token = int(connection.execute(self._take_over()).scalar_one())
                return True
            session = Session(self._store.engine)
            try:
                if not session.try_lock(_KEY):
                    session.close()
                    return False
                # On the session that has the lock: one that has ended raises no token.
                self._token = int(session.scalar(self._take_over()))
            except BaseException:
                session.close()
                raise
            self._session = session
            return True

    def check(self) -> None:
        """Check that this process leads, as far as it knows.

        Raises:
            NotLeading: another process does, or nobody.
        """
        if not self.leads:
            raise NotLeading("another process leads", where="prover", expected=self.leader() or "")

    def demand(self, connection: Connection) -> None:
        """Check that nobody took over, and keep everybody from it until the transaction ends.

        Args:
            connection: of a transaction that writes what only the leader may.

        Raises:
            NotLeading: this process does not lead any more.
        """
        if not self._contended:
            return
        row = _TOKEN.row(connection)
        if self._token is None or row is None or row[0] != self._token:
            self.resign()
            raise NotLeading("another process leads", where="prover")

    def resign(self) -> None:
        """Let go of the lead, for another process to take it."""
        with self._guard:
            self._forget()

    def leader(self) -> str | None:
        """Return the name of the process that took over last, None if none ever did."""
        with self._store.read() as connection:
            holder: str | None = connection.scalar(_HOLDER)
        return holder

    def is_vouched(self) -> bool:
        """Return whether another process leads, which has compared its fences; no if this does.

        Raises:
            NotLeading: nobody leads now: what is missing here may be there with the next leader.
        """
        if self._store.engine.name != "postgresql" or self.leads:
            return False
        with self._store.read() as connection:
            if not is_locked(connection, _KEY):
                raise NotLeading("nobody leads now", where="prover", expected="in some seconds")
        return True

    def _forget(self) -> None:
        self._token = None
        if self._session is not None:
            self._session.close()
            self._session = None

    def _take_over(self) -> Executable:
        holder = f"{socket.gethostname()}:{os.getpid()}"
        return (
            insert_of(self._store.engine, _TABLE)
            .values(id=_ROW, token=1, holder=holder)
            .on_conflict_do_update(
                index_elements=[_TABLE.c.id], set_={"token": _TABLE.c.token + 1, "holder": holder}
            )
            .returning(_TABLE.c.token)
        )


class LeadersStore(Store):
    """The database as the leader writes to it: no transaction of a former one commits."""

    def __init__(self, store: Store, leadership: Leadership) -> None:
        super().__init__(store.engine)
        self._shared = store
        self._leadership = leadership

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Yield a transaction of the leader; raises NotLeading, and as `Store.write`."""
        with self._shared.write() as connection:
            self._leadership.demand(connection)
            yield connection

    def hold(self) -> None:
        """Check that this process serves and leads.

        Raises:
            NotLeading: it does not lead.
            RefusedError, StoreUnavailable: as `Store.hold`.
        """
        self._shared.hold()
        self._leadership.check()

    def permit(self, connection: Connection) -> None:
        """Check in a transaction that this process leads; raises NotLeading."""
        self._leadership.demand(connection)
