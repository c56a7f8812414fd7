"""Transactions that change a window's log or an account's counters, of several requests at a time.

One transaction and one fence make the answers of several requests durable. Whoever comes while
nobody commits, commits at once, with all who wait by then; who comes meanwhile waits for that to
end. So one client alone never waits, and many share the two synchronisations of the disk. Nobody
goes on before the transaction *and* the fence are durable.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from ragaudit.encoding.errors import InternalError, UnavailableError
from ragaudit.ledger.errors import CorruptLog, RestoredBackup
from ragaudit.ledger.log.fence import GROUP_RECORDS
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

T = TypeVar("T")
# After these nobody knows what the transaction still holds, or whether the database is the one.
_OF_ALL = (UnavailableError, CorruptLog, RestoredBackup, SQLAlchemyError)


class LogTransaction:
    """One transaction, or a part of it; `OpenWindow.committing` makes it.

    Attributes:
        counters: how many counters accounts have at its end, by pseudonym, of those that moved.
    """

    def __init__(self, connection: Connection, check: Callable[[bytes, int], None]) -> None:
        """Begin with nothing.

        Args:
            connection: of the transaction.
            check: compares an account's counters with the fence, see `WindowFence.check_account`.
        """
        self.connection = connection
        self._check = check
        self.counters: dict[bytes, int] = {}

    def use_counter(self, pseudonym: bytes, used: int, after: int) -> None:
        """Compare an account's counters with the fence, which notes ``after`` once durable.

        Args:
            pseudonym: 32 bytes.
            used: how many counters are logged or promised, as this transaction reads them.
            after: how many are at its end.

        Raises:
            RestoredBackup: the fence knows of more.
        """
        # Before anything is written: a restored database is noticed while nothing has changed.
        self._check(pseudonym, used)
        self.counters[pseudonym] = after

    def part(self) -> "LogTransaction":
        """Return a part, whose counters do not count before `take`."""
        return LogTransaction(self.connection, self._check)

    def take(self, part: "LogTransaction") -> None:
        """Let the counters of a part count: its changes were kept."""
        self.counters |= part.counters


Begin = Callable[[], AbstractContextManager[LogTransaction]]


@dataclass(eq=False)
class _Member:
    """One change that waits to be made durable; ``done`` once it is, or has failed."""

    work: Callable[[LogTransaction], Any]
    result: Any = None
    error: BaseException | None = None
    done: bool = False


class GroupCommit:
    """Makes changes of a window's log durable, several at a time. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[_Member] = []
        self._leading = False

    def run(self, begin: Begin, work: Callable[[LogTransaction], T]) -> T:
        """Return what ``work`` returned, once all that it changed is durable.

        Args:
            begin: opens the transaction, and makes it durable at its end.
            work: changes the log, in the transaction that it is given; a failure of its own
                undoes its changes, and nobody else's.

        Raises: what ``work`` raises, or ``begin``: then nothing of it may be answered.
        """
        member = _Member(work)
        with self._changed:
            self._waiting.append(member)
        while group := self._next(member):
            self._commit(begin, group)
        if member.error is not None:
            raise member.error
        result: T = member.result
        return result

    def _next(self, member: _Member) -> list[_Member]:
        """Wait until a member is done, then return nothing; or until its thread has to commit."""
        with self._changed:
            while self._leading and not member.done:
                self._changed.wait()
            if member.done:
                return []
            self._leading = True
            group, self._waiting = self._waiting[:GROUP_RECORDS], self._waiting[GROUP_RECORDS:]
            return group

    def _commit(self, begin: Begin, group: list[_Member]) -> None:
        try:
            with begin() as transaction:
                if len(group) == 1:
                    group[0].result = group[0].work(transaction)
                else:
                    for member in group:
                        _attempt(member, transaction)
        except BaseException as error:
            for member in group:
                member.error = member.error or error
        finally:
            with self._changed:
                for member in group:
                    member.done = True
                self._leading = False
                self._changed.notify_all()


def _attempt(member: _Member, transaction: LogTransaction) -> None:
    """Do one member's work; undo it, and nothing else, if it fails for reasons of its own.

    Raises: what leaves the whole transaction in doubt.
    """
    own = transaction.part()
    try:
        with transaction.connection.begin_nested():
            member.result = member.work(own)
    except IntegrityError as error:
        reason = f"the database refused a statement: {type(error.orig).__name__}"
        member.error = InternalError(reason, where="store")
    except _OF_ALL:
        raise
    except Exception as error:
        member.error = error
    else:
        transaction.take(own)
