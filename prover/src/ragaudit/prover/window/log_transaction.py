"""A transaction that changes a window's log, or an account's counters."""

from collections.abc import Callable

from sqlalchemy import Connection

__all__ = ["LogTransaction"]


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
