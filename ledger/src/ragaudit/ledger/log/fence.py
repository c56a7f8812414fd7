"""The fence: how far the log had come, durable outside the database (spec 6.10).

A database restored from a backup has lost its last rows, and would give their indices, counters
and noise a second time. So before an answer leaves, the tree head and the account's counter are
appended to a file of its own and synchronised; at start the database must not be behind it.

File: a header line ``ragaudit/v1/fence <origin>``, then records of 96 bytes: tree size (8, little
endian), root (32), pseudonym (32, zeros if the entry is of no account), number of the account's
records (6), place among the records of its commit (1), how many more of these there are (1),
SHA-256 of the 80 bytes before, cut to 16. The records of one commit are synchronised together.
What a crash cut short is of the last commit; its answers never left, because the synchronisation
had not returned.

Verifier and cosigner have one file for all logs: the head is the number and mark of their last
transaction, and the counts are how far each statement of each log has come
(`ragaudit.verifier.history`).

Keep the file on another device than the database's backup covers, and never restore it.
"""

import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragaudit.encoding.errors import InternalError, MalformedError, RefusedError
from ragaudit.ledger.errors import RestoredBackup, UnknownResource
from ragaudit.ledger.log.durable import replace_file
from ragaudit.ledger.log.tree import EMPTY_ROOT, TreeHead

HEADER = "ragaudit/v1/fence"
PSEUDONYM_BYTES = 32
RECORD_BYTES = 96
GROWTH_BYTES = 2**22  # since it was compacted last, before it is again
GROUP_RECORDS = 32  # at most, of one commit: what a crash can damage at the end of the file
_PAYLOAD_BYTES = 80
_COUNT_BYTES = 6
_NOBODY = bytes(PSEUDONYM_BYTES)


@dataclass(frozen=True, slots=True)
class FenceRecord:
    """One durable tree head.

    Attributes:
        head: size and root.
        pseudonym: of the account whose record was the last, 32 bytes; None for another entry.
        records: how many records that account had then.
        place: among those of its commit, from 0.
        more: how many its commit has beside it, fewer than `GROUP_RECORDS`.
    """

    head: TreeHead
    pseudonym: bytes | None
    records: int
    place: int = 0
    more: int = 0

    def encode(self) -> bytes:
        """Return the record's 96 bytes."""
        payload = (
            self.head.size.to_bytes(8, "little")
            + self.head.root_hash
            + (self.pseudonym or _NOBODY)
            + self.records.to_bytes(_COUNT_BYTES, "little")
            + bytes([self.place, self.more])
        )
        return payload + _checksum(payload)

    @classmethod
    def parse(cls, data: bytes) -> "FenceRecord":
        """Return the record of 96 bytes; the strict inverse of `encode`.

        Args:
            data: of the file.

        Raises:
            MalformedError: anything else.
        """
        payload = data[:_PAYLOAD_BYTES]
        if len(data) != RECORD_BYTES or _checksum(payload) != data[_PAYLOAD_BYTES:]:
            raise MalformedError("not a fence record", where="fence")
        head = TreeHead(int.from_bytes(payload[:8], "little"), payload[8:40])
        pseudonym = payload[40:72]
        records = int.from_bytes(payload[72:78], "little")
        place, more = payload[78:]
        if place > more or more >= GROUP_RECORDS:
            raise MalformedError("not a fence record", where="fence")
        return cls(head, None if pseudonym == _NOBODY else pseudonym, records, place, more)


class FenceReader:
    """What the fence of one window's log says; one that another process holds is read, too.

    Attributes:
        path: of the file.
        head: the largest that was durable.
        records: number of records by pseudonym.
    """

    def __init__(self, path: Path, origin: str) -> None:
        """Read nothing yet, see `read`."""
        self.path = path
        self.head = TreeHead(0, EMPTY_ROOT)
        self.records: dict[bytes, int] = {}
        self._origin = origin
        self._header = f"{HEADER} {origin}\n".encode()

    def read(self) -> None:
        """Read the file.

        Raises:
            MalformedError: of another log, or damaged before its last commit.
        """
        data = self.path.read_bytes()
        # Against the fence of another window a restored database would seem up to date.
        if not data.startswith(self._header):
            raise MalformedError("the fence of another log", where=str(self.path))
        starts = range(len(self._header), len(data), RECORD_BYTES)
        broken = None  # number of the first record that is damaged
        for number, start in enumerate(starts):
            record = _read(data[start : start + RECORD_BYTES])
            if record is not None:
                self._merge(record)
            elif broken is None:
                broken = number
            if broken is None:
                continue
            # What a crash cut short, in any order, is of the last commit: a record of a later one
            # says that the damaged one was synchronised.
            later = record is not None and number - record.place > broken
            if later or len(starts) - broken > GROUP_RECORDS:
                raise MalformedError("not a fence record", where=f"fence: record {broken}")

    def check(self, root_of: Callable[[int], bytes], records_of: Callable[[bytes], int]) -> None:
        """Compare the database with the fence, before anything is answered.

        Args:
            root_of: root of the database's tree at a size; UnknownResource if it is smaller.
            records_of: number of an account's records in the database.

        Raises:
            RestoredBackup: the database is behind the fence, or holds another history.
        """
        self.check_head(root_of)
        for pseudonym in self.records:
            self.check_account(pseudonym, records_of(pseudonym))

    def check_head(self, root_of: Callable[[int], bytes]) -> None:
        """Compare the database's tree with the fence.

        Args:
            root_of: as of `check`.

        Raises:
            RestoredBackup: the tree is smaller, or another one.
        """
        try:
            root = root_of(self.head.size)
        except UnknownResource as error:
            raise RestoredBackup(
                "the database is behind the fence", where=self._origin, expected=error.expected
            ) from error
        # The size alone is not enough: a restored database that went on has the size again, with
        # other records under the indices that were given out.
        if root != self.head.root_hash:
            raise RestoredBackup("the database holds another history", where=self._origin)

    def check_account(self, pseudonym: bytes, records: int) -> None:
        """Compare an account's number of records in the database with the fence.

        Args:
            pseudonym: of the account, 32 bytes.
            records: how many of it the database has.

        Raises:
            RestoredBackup: there are fewer.
        """
        least = self.records.get(pseudonym, 0)
        if records < least:
            raise RestoredBackup(
                "an account's counter is behind the fence",
                where=self._origin,
                expected=f"at least {least}",
            )

    def _merge(self, record: FenceRecord) -> None:
        # Threads write in any order, so the last record of the file need not be the highest.
        if record.head.size > self.head.size:
            self.head = record.head
        if record.pseudonym is not None:
            earlier = self.records.get(record.pseudonym, 0)
            self.records[record.pseudonym] = max(earlier, record.records)


class Fence(FenceReader):
    """The fence of one window's log; one process at a time, several threads."""

    def __init__(self, path: Path, origin: str, *, log_is_empty: bool) -> None:
        """Open the fence at ``path``, read its records and compact it.

        Args:
            path: of the file.
            origin: of the log.
            log_is_empty: of the database; only then may the file be missing, and is created.

        Raises:
            RefusedError: another process holds it.
            RestoredBackup: the log has entries and the file is missing.
            MalformedError: of another log, or damaged before its last record.
        """
        super().__init__(path, origin)
        self._lock = threading.Lock()
        self._broken = False
        self._process_lock = _take(path.with_name(path.name + ".lock"))
        try:
            if self.path.exists():
                self.read()
            elif not log_is_empty:
                raise RestoredBackup("the fence is missing", where=str(self.path))
            self._file, self._end = self._compact()
        except BaseException:
            os.close(self._process_lock)
            raise

    def advance(self, head: TreeHead, pseudonym: bytes | None = None, records: int = 0) -> None:
        """Make it durable that the log reached ``head`` with ``records`` records of an account.

        Args:
            head: of the log after the commit.
            pseudonym: of the account, 32 bytes; None for an entry of no account.
            records: that the account has in this tree.

        Raises: as `advance_all`.
        """
        self.advance_all(head, {} if pseudonym is None else {pseudonym: records})

    def advance_all(self, head: TreeHead, counts: Mapping[bytes, int]) -> None:
        """Make it durable that the log reached ``head``, with the records of several accounts.

        Returns after the data is on the disk. Calls may come out of order from several threads: the
        highest values count.

        Args:
            head: of the log after the commit.
            counts: how many records accounts have in this tree, by pseudonym, 32 bytes; at most
                `GROUP_RECORDS`, none for an entry of no account.

        Raises:
            OSError: it could not be made durable; no answer must leave, and every later call
                fails too until the fence is opened again.
            MalformedError: not a pseudonym, or too many.
            InternalError: an earlier call failed.
        """
        if len(counts) > GROUP_RECORDS:
            raise MalformedError(
                f"{len(counts)} accounts", where="fence", expected=f"at most {GROUP_RECORDS}"
            )
        if any(len(who) != PSEUDONYM_BYTES or who == _NOBODY for who in counts):
            raise MalformedError("not a pseudonym", where="fence", expected="32 bytes, not zero")
        group = [
            FenceRecord(head, who, count, place, len(counts) - 1)
            for place, (who, count) in enumerate(counts.items())
        ] or [FenceRecord(head, None, 0)]
        data = b"".join(record.encode() for record in group)
        with self._lock:
            if self._broken:
                raise InternalError("an earlier write failed: open it again", where="fence")
            # A failed write may have reached the disk or not, and fsync reports a loss once only:
            # from here on nothing may leave on the strength of this file.
            self._broken = True  # until the write below is known to be on the disk
            count = os.pwrite(self._file, data, self._end)
            if count != len(data):
                raise OSError(f"fence: only {count} bytes were written")
            os.fsync(self._file)
            self._end += len(data)
            for record in group:
                self._merge(record)
            # A process that runs for a year would leave a file that the next start reads for long.
            if self._end > self._compacted + GROWTH_BYTES:
                grown = self._file
                self._file, self._end = self._compact()
                os.close(grown)
            self._broken = False

    def close(self) -> None:
        """Close the file and release the lock; every later call of `advance` fails."""
        with self._lock:
            self._broken = True  # the system gives the descriptor to the next file that is opened
        os.close(self._file)
        os.close(self._process_lock)

    def _compact(self) -> tuple[int, int]:
        """Durably replace the file by one record per account; return it, open, and its length."""
        records = [FenceRecord(self.head, who, count) for who, count in self.records.items()]
        if not records and self.head.size:
            records = [FenceRecord(self.head, None, 0)]
        data = self._header + b"".join(record.encode() for record in records)
        # Whole or not at all: a crash here leaves the old fence, which is as high.
        replace_file(self.path, data)
        self._compacted = len(data)
        return os.open(self.path, os.O_WRONLY | os.O_CLOEXEC), len(data)


def _read(data: bytes) -> FenceRecord | None:
    """Return the record of 96 bytes, None if they are damaged."""
    try:
        return FenceRecord.parse(data)
    except MalformedError:
        return None


def _take(path: Path) -> int:
    """Lock the file at ``path`` until it is closed; return its descriptor."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise RefusedError("another process holds the fence", where=str(path)) from None
    return file


def _checksum(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()[:16]
