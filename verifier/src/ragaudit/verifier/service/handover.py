"""The log's content in the verifier's hands: entries at once, records after the close.

The handover is read as a stream of frames; its leaf data and its entries other than records are
derived from it (docs/spec/10-verdict.md §10.1). Whether it is the log's is check 5 of the audit.
It may come in parts, kept until all are there, so that whoever is interrupted goes on (8.3).
"""

import hashlib
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import Conflict, MalformedError, RejectedError
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.database import Rows
from ragaudit.ledger.messages.bodies import CloseBody, HeldParts, RecordsBody
from ragaudit.ledger.messages.entries import Record, Registration, Version
from ragaudit.ledger.messages.handover import (
    KINDS,
    LENGTH_BYTES,
    MAX_FRAME_BYTES,
    MAX_OPENING_BYTES,
    PART_ENTRIES,
    Entry,
    read_frame,
    read_frames,
)
from ragaudit.ledger.messages.items import ENTRIES, FINAL_CHECKPOINT, LEAVES, RECORDS
from ragaudit.ledger.messages.shown import RegistrationEntry
from ragaudit.serving.bodies import MEMORY_BYTES, Body
from ragaudit.verifier.service import capacity, cosigner, tables, windows
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.errors import CapReached, TooLate
from ragaudit.verifier.service.windows import Item, State, Window, check_due
from ragaudit.verifier.settings import Limits
from sqlalchemy import Connection, func, select

# No item of the evidence (spec 10.1): they are gone once the handover is one.
_PREFIX = "handover/"


def check_part(file: BinaryIO, number: int, most: int) -> None:
    """Check the form of a part, before anything of it is kept.

    Args:
        file: of its bytes.
        number: of the part, from 0.
        most: entries that the log may have.

    Raises:
        MalformedError: not frames of the entries that belong here.
        RejectedError: more entries than the log has.
    """
    start = number * PART_ENTRIES
    last = start - 1
    for entry, _ in read_frames(file, start):
        entry.demand_sketch()
        last = entry.index
        if last >= start + PART_ENTRIES:
            raise MalformedError(
                "too many frames", where=f"part {number}", expected=f"at most {PART_ENTRIES}"
            )
        if last >= most:
            raise RejectedError(
                "more entries than the log has", where="handover", expected=f"at most {most}"
            )
    if last < start:
        raise MalformedError("no frames", where=f"part {number}", expected="at least one")


def held_parts(connection: Connection, origin: Origin) -> list[Item]:
    """Return the parts that there are, in order: 0, 1, 2, .. without a gap."""
    return windows.list_items(connection, origin, _PREFIX)


def forget_parts(transaction: Transaction, origin: Origin) -> None:
    """Remove all parts."""
    for item in held_parts(transaction.connection, origin):
        windows.remove_item(transaction, origin, item.name)


_PAGE_ENTRIES = 1000  # read from the database at a time


@dataclass(frozen=True)
class StoredEntry:
    """An entry's row, as it was given during the window or came with the handover.

    Attributes:
        index: of its leaf.
        pseudonym: whom a registration is about, 32 bytes; None for others, and for what check 5
            will not read.
    """

    index: int
    kind: str
    salt: bytes = field(repr=False)
    body: bytes = field(repr=False)
    pseudonym: bytes | None

    @classmethod
    def of(cls, index: int, kind: str, salt: bytes, body: bytes) -> "StoredEntry":
        """Return the row of an entry that was given.

        Args:
            kind: one of docs/spec/05-records.md §5.7, as are salt and body.

        Returns:
            The row; its pseudonym is that of a registration that can be read.
        """
        about = _registration(kind, body)
        return cls(index, kind, salt, body, None if about is None else about.pseudonym)


_ENTRIES = Rows(StoredEntry, tables.entry)


class Handover:
    """Takes entries, records (as a whole, or in parts) and the close of a window."""

    def __init__(self, database: Database, limits: Limits) -> None:
        self._database = database
        self._limits = limits

    def records_bytes(self, origin: Origin) -> int:
        """Return the largest handover that this window's log and policy allow, in bytes.

        Raises:
            NotFound, Conflict: no window of the provider to hand over.
        """
        sizes = MAX_OPENING_BYTES + self.most_entries(origin) * (LENGTH_BYTES + MAX_FRAME_BYTES)
        return min(sizes, self._limits.records_bytes)

    def most_entries(self, origin: Origin) -> int:
        """Return how many entries a handover may have; raises as `records_bytes`."""
        with self._database.read() as connection:
            window = windows.demand_countersigned(windows.get(connection, origin))
            return _most_entries(connection, window)

    def put_entries(self, origin: Origin, documents: Sequence[Entry]) -> None:
        """Keep entries other than records as they are given during the window.

        Args:
            documents: in any order; the leaf index of each is the provider's word until check 5.

        Raises:
            MalformedError: a kind that is unknown, or a record.
            Conflict: an index given before with other content, or after the handover.
            CapReached: too many entries.
        """
        for number, document in enumerate(documents):
            if document.kind not in KINDS - {Record.KIND}:
                raise MalformedError(
                    "not a kind that is given at once", where=f"entries/{number}/kind"
                )
        with self._database.write() as transaction:
            window = _open(transaction, origin)
            # The entries of a handover are final: one that is added later would not be in it.
            if window.records is not None:
                raise Conflict("the log was handed over", where=origin)
            known = count_entries(transaction.connection, origin)
            for document in documents:
                entry = StoredEntry.of(document.index, document.kind, document.salt, document.body)
                known += _put_entry(transaction, origin, entry)
            # After the puts: with one too many nothing of the request is kept.
            if known > self._limits.entries:
                raise CapReached("too many entries", expected=f"at most {self._limits.entries}")

    def shown(self, origin: Origin, document: RegistrationEntry | None) -> Registration | None:
        """Return the registration that an account shows with its proof; None if it shows none.

        It is kept as if the provider had given it: a provider that keeps a registration back would
        otherwise keep back the account's claims and disputes. Where the provider gave another
        entry for the index, or there is no room, nothing is kept, and the proof is believed.

        Args:
            document: member ``registration`` of a request (docs/spec/08-services.md §8.9).

        Raises:
            MalformedError: not a registration, or not a proof.
            RejectedError: not of this window, or not in the log under a cosigned checkpoint.
        """
        if document is None:
            return None
        body = Registration.parse(document.body)
        with self._database.read() as connection:
            window = windows.demand_countersigned(windows.get(connection, origin))
            policy = windows.policy(connection, window)
        if body.window != policy.window:
            raise RejectedError("of another window", where="registration", expected=policy.window)
        document.verify_inclusion(policy)
        entry = StoredEntry(
            document.index, Registration.KIND, document.salt, document.body, body.pseudonym
        )
        with suppress(Conflict), self._database.write() as transaction:
            connection = transaction.connection
            room = count_entries(connection, origin) < self._limits.entries
            if room and windows.get(connection, origin).records is None:
                _put_entry(transaction, origin, entry)
        return body

    def put_records(self, origin: Origin, body: Body) -> None:
        """Keep the whole log's content, and what is derived from it.

        Args:
            body: frames, one for each log entry (docs/spec/08-services.md §8.3).

        Raises:
            MalformedError: see `read_frames`.
            RejectedError: an entry given before is missing or differs, or there are more entries
                than the cosigned log and the policy allow.
            CapReached: too many entries other than records.
            TooEarly: before the window's end.
            Conflict: another handover was given.
            TooLate: after the sampling instant.
        """
        with self._database.read() as connection:
            window = windows.get(connection, origin)
            windows.demand_countersigned(window)
            most = _most_entries(connection, window)
        with _temporary() as leaves, _temporary() as listed:
            given = self._given(origin)
            late, known = _derive(body.file, leaves, listed, given, most, self._limits.entries)
            with self._database.write() as transaction:
                window = _open(transaction, origin)
                stored = windows.find_item(transaction.connection, origin, RECORDS)
                if stored is not None and stored.digest == body.digest:
                    return
                if stored is not None:
                    raise Conflict("another handover was given", where=origin)
                # After the above: what was taken in time is confirmed at any time.
                check_in_time(transaction, window)
                # The comparison ran outside of this transaction, as it may take minutes. Entries
                # are added meanwhile, and never changed.
                if count_entries(transaction.connection, origin) != known:
                    raise Conflict("entries arrived meanwhile", where=origin)
                windows.put_item(transaction, origin, RECORDS, body.file)
                windows.put_item(transaction, origin, LEAVES, leaves)
                windows.put_item(transaction, origin, ENTRIES, listed)
                for index, offset in late:
                    frame = read_frame(body.file, offset, index)
                    entry = StoredEntry.of(index, frame.kind, frame.salt, frame.body)
                    _put_entry(transaction, origin, entry)
                forget_parts(transaction, origin)
                windows.note(transaction, origin, records=transaction.now)

    def _given(self, origin: Origin) -> Iterator[StoredEntry]:
        """Yield the entries given so far by leaf index; no transaction is open in between."""
        after = -1
        while True:
            with self._database.read() as connection:
                page = _page(connection, origin, after)
            if not page:
                return
            yield from page
            after = page[-1].index

    def close(self, origin: Origin, request: CloseBody) -> None:
        """Close the window's log at its final checkpoint.

        Args:
            request: the checkpoint as the log has it; only its tree head is taken from it.

        Raises:
            MalformedNote, NoteRejected: not a checkpoint with both signatures.
            RejectedError: not the largest one that was cosigned.
            TooEarly: before the window's end.
            Conflict: closed at another one.
            TooLate: after the sampling instant.
        """
        with self._database.write() as transaction:
            window = _open(transaction, origin)
            policy = windows.policy(transaction.connection, window)
            cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
            final = request.final_checkpoint.encode("utf-8")
            head = verify_cosigned(final, policy.keys.log, cosigners).signed.head
            latest = cosigner.last(transaction.connection, origin)
            if latest is None or latest.head != head:
                different = Conflict if window.closed is not None else RejectedError
                raise different("not the largest cosigned checkpoint", where="final_checkpoint")
            if window.closed is not None:
                return
            check_in_time(transaction, window)
            # V's own copy: the same head may come back with other lines of strangers under it.
            windows.put_item(transaction, origin, FINAL_CHECKPOINT, latest.note)
            windows.advance(transaction, origin, State.CLOSED)

    def put_part(self, origin: Origin, number: int, body: Body) -> None:
        """Keep a part of the handover.

        Args:
            number: of the part, from 0.
            body: frames of the entries from `PART_ENTRIES` times the number on.

        Raises:
            MalformedError: see `read_handover`; too many or no frames.
            RejectedError: more entries than the log has.
            Conflict: another part of this number was given, the one before was not, or the handover
                was taken.
            CapReached: more bytes than a handover may have.
            TooEarly, TooLate: as for `put_records`.
        """
        check_part(body.file, number, self.most_entries(origin))
        limit = self.records_bytes(origin)
        with self._database.write() as transaction:
            window = windows.get(transaction.connection, origin)
            if window.records is not None:
                raise Conflict("the log was handed over", where=origin)
            check_in_time(transaction, window)
            there = held_parts(transaction.connection, origin)
            if number > len(there):
                raise Conflict(
                    "a part before it is missing", where=f"part {number}", expected=f"{len(there)}"
                )
            if number < len(there):
                if there[number].digest != body.digest:
                    raise Conflict("another part was given", where=f"part {number}")
                return
            if sum(item.size for item in there) + body.size > limit:
                raise CapReached(
                    "too many bytes", where=f"part {number}", expected=f"at most {limit}"
                )
            # The order of the names is that of the numbers.
            windows.put_item(transaction, origin, f"{_PREFIX}{number:09}", body.file)

    def held_parts(self, origin: Origin) -> HeldParts:
        """Return how much of a handover there is."""
        with self._database.read() as connection:
            window = windows.demand_countersigned(windows.get(connection, origin))
            held = held_parts(connection, origin)
        return HeldParts(len(held), window.records is not None)

    def put_parts(self, origin: Origin, request: RecordsBody) -> None:
        """Take the parts as the handover.

        Args:
            request: which they are.

        Raises:
            As `put_records`; RejectedError also if the parts have another digest, Conflict if there
            are not so many. Parts that are refused are forgotten.
        """
        with self._database.read() as connection:
            item = windows.find_item(connection, origin, RECORDS)
            held = held_parts(connection, origin)
        if item is not None:
            if item.digest != request.digest:
                raise Conflict("another handover was given", where=origin)
            return
        if len(held) != request.parts:
            raise Conflict(f"{len(held)} parts", where=origin, expected=f"{request.parts} parts")
        with _temporary() as file:
            digest, size = hashlib.sha256(), 0
            with self._database.read() as connection:
                for part in held:
                    for data in windows.stream_item(connection, origin, part.name):
                        file.write(data)
                        digest.update(data)
                        size += len(data)
            body = Body(file, size, digest.digest())
            try:
                if body.digest != request.digest:
                    raise RejectedError("the parts have another digest", where="digest")
                self.put_records(origin, body)
            except (MalformedError, RejectedError):
                with self._database.write() as transaction:
                    forget_parts(transaction, origin)
                raise


def entries_of(
    connection: Connection, origin: Origin, kinds: Collection[str] = KINDS
) -> Iterator[StoredEntry]:
    """Yield the entries given so far of these kinds, by leaf index; few of them are in memory."""
    after = -1
    while page := _page(connection, origin, after, kinds):
        yield from page
        after = page[-1].index


def _page(
    connection: Connection, origin: Origin, after: int, kinds: Collection[str] = KINDS
) -> list[StoredEntry]:
    """The first entries given behind a leaf index, in order."""
    c = tables.entry.c
    query = _ENTRIES.select(c.window == origin, c.index > after, c.kind.in_(kinds))
    return _ENTRIES.all(connection, query.order_by(c.index).limit(_PAGE_ENTRIES))


def count_entries(connection: Connection, origin: Origin) -> int:
    """Return how many entries of a window are stored."""
    query = select(func.count()).select_from(tables.entry).where(tables.entry.c.window == origin)
    return int(connection.execute(query).scalar_one())


def registration(connection: Connection, origin: Origin, pseudonym: bytes) -> Registration | None:
    """Return the account's registration, if it was given; that there is only one is check 7's."""
    return next(iter(registrations(connection, origin, pseudonym)), None)


def registrations(connection: Connection, origin: Origin, pseudonym: bytes) -> list[Registration]:
    """Return the account's registrations as they were given, by rising index."""
    columns = tables.entry.c
    query = _ENTRIES.select(columns.window == origin, columns.pseudonym == pseudonym)
    return [
        Registration.parse(entry.body)
        for entry in _ENTRIES.all(connection, query.order_by(columns.index))
    ]


def _derive(
    file: BinaryIO,
    leaves: BinaryIO,
    listed: BinaryIO,
    given: Iterator[StoredEntry],
    most: int,
    most_listed: int,
) -> tuple[list[tuple[int, int]], int]:
    """Write the leaf data to ``leaves`` and `public/entries.json` to ``listed``, entry by entry.

    Returns:
        (index, offset of the frame) of the entries that were not given before and that others ask
        for: registrations, whose accounts have shares from now on, and versions, which disputed
        answers may be of; and how many were given before.
    """
    others = known = 0
    late: list[tuple[int, int]] = []
    following = next(given, None)
    listed.write(b"[")
    for frame, offset in read_frames(file):
        frame.demand_sketch()
        if frame.index >= most:
            raise RejectedError(
                "more entries than the log has", where="handover", expected=f"at most {most}"
            )
        leaves.write(frame.leaf)
        if frame.kind != Record.KIND:
            others += 1
            if others > most_listed:
                raise CapReached("too many entries", expected=f"at most {most_listed}")
            separator = b"," if others > 1 else b""
            listed.write(separator + canonical_json.dumps(frame.to_json()))
        entry = StoredEntry.of(frame.index, frame.kind, frame.salt, frame.body)
        asked_for = entry.pseudonym is not None or entry.kind == Version.KIND
        # Both are in the order of the log, and no index is left out of the handover.
        if following is None or following.index != frame.index:
            if asked_for:
                late.append((frame.index, offset))
            continue
        if following != entry:
            raise RejectedError(
                "the entry was given before with other content", where=f"entry {frame.index}"
            )
        known, following = known + 1, next(given, None)
    listed.write(b"]")
    if following is not None:
        raise RejectedError("an entry given before is missing", where=f"entry {following.index}")
    return late, known


def _registration(kind: str, body: bytes) -> Registration | None:
    """Return the registration that an entry is, if it can be read."""
    if kind != Registration.KIND:
        return None
    try:
        return Registration.parse(body)
    except MalformedError:
        return None


def _most_entries(connection: Connection, window: Window) -> int:
    """Return how many entries the cosigned log has and the policy allows."""
    policy = windows.policy(connection, window)
    latest = cosigner.last(connection, window.origin)
    cosigned = 0 if latest is None else latest.head.size
    # What no checkpoint covers is in no log that anybody confirmed.
    return min(cosigned, capacity.most_entries(policy))


@contextmanager
def _temporary() -> Iterator[BinaryIO]:
    with tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES) as file:
        yield cast(BinaryIO, file)


def _open(transaction: Transaction, origin: Origin) -> Window:
    window = windows.get(transaction.connection, origin)
    return windows.demand_countersigned(window)


def check_in_time(transaction: Transaction, window: Window) -> None:
    """Check that it is between the window's end and its sampling instant."""
    policy = windows.policy(transaction.connection, window)
    check_due(policy.end, transaction.now)
    if transaction.now >= 1000 * policy.sampling_instant:
        raise TooLate("the sampling instant has passed", where=window.origin)


def _put_entry(transaction: Transaction, origin: Origin, entry: StoredEntry) -> int:
    """Store an entry; return 1 if it is new, 0 if it was known."""
    columns = tables.entry.c
    stored = _ENTRIES.find(
        transaction.connection, columns.window == origin, columns.index == entry.index
    )
    if stored is None:
        _ENTRIES.insert(transaction.connection, entry, window=origin)
        return 1
    if stored != entry:
        raise Conflict("given before with other content", where=f"entry {entry.index}")
    return 0
