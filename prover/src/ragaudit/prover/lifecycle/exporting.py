"""Everything that the prover has of one account, for whoever asks with a reason (spec 8.13, 10.8).

Who, when and why is durable before the first line is written. Rows are read some at a time, each
batch in a transaction of its own: neither an account's million records nor a slow disk under the
file holds up answers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.errors import NotFound
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.account_records import PROVIDER, AccountRecords, Line
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.ledger.messages.charges import Charge
from ragaudit.ledger.messages.evidence_access import EvidenceAccess
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Record
from ragaudit.prover.lifecycle.retention import check_kept, deletion_of
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Accounts
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.answered import Delivery
from ragaudit.prover.window.charges import ChargeOpenings
from ragaudit.prover.window.records import RecordOpenings, entry_at
from ragaudit.prover.window.registrations import Registered, find
from ragaudit.prover.window.windows import Window, Windows
from sqlalchemy import Connection, Row, Select, func, insert, select

__all__ = ["Export", "accesses_of", "count_accesses"]

_BATCH: Final = 50  # records with the documents that were given for them


@dataclass(frozen=True)
class Export:
    """Writes what is stored of an account.

    Attributes:
        key: the provider's, which signs that it was opened.
        clock: Unix milliseconds.
    """

    store: Store
    key: PrivateKey
    clock: Callable[[], int]

    def write(
        self,
        account: str,
        windows: Sequence[str],
        said: AccessBody,
        file: BinaryIO,
        *,
        user: str | None = None,
    ) -> list[str]:
        """Write the lines of an account's records, and before that, who opened them and why.

        Args:
            account: by name.
            windows: by name; none for every window that has the account and was not deleted.
            said: by whoever opens them.
            file: gets the lines, window by window in order of creation.
            user: whose records, of those whom the account names; None for its own.

        Returns:
            The names of the windows.

        Raises:
            UnknownAccount, UnknownWindow: there is none of this name.
            NotFound: a window is without the account, or was deleted; or every window is.
        """
        found = self._found(Accounts(self.store).named(account, user).id, windows)
        with self.store.write() as connection:
            for window, registered in found:
                self._record(connection, window, registered.pseudonym, said)
        for window, registered in found:
            provider = Policy.parse(window.policy).provider
            head = AccountRecords(PROVIDER, provider, window.name, registered.pseudonym)
            file.writelines(head.lines(self.lines(window.name, registered)))
        return [window.name for window, _ in found]

    def lines(self, window: str, registered: Registered) -> Iterator[Line]:
        """Yield what is stored of an account in a window.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        with self.store.read() as connection:
            yield Line.of_entry(entry_at(connection, window, registered.position))
        account = registered.account
        for row in self._rows(_records(window, account), tables.record.c.counter, window):
            yield from _of_record(row)
        for row in self._rows(_charges(window, account), tables.charge.c.counter, window):
            yield from self._of_charge(row)
        for row in self._rows(_promises(window, account), tables.promise.c.counter, window):
            nonce = None if row.nonce is None else bytes(row.nonce).hex()
            yield Line("promise", {"promise": loads(bytes(row.message)), "nonce": nonce})

    def _found(self, account: str, names: Sequence[str]) -> list[tuple[Window, Registered]]:
        register = Windows(self.store)
        for name in names:
            register.get(name)
        found = []
        for window in register.all():
            if names and window.name not in names:
                continue
            with self.store.read() as connection:
                registered = find(connection, window.name, account)
                if names:
                    check_kept(connection, window.name)
                elif deletion_of(connection, window.name) is not None:
                    continue
            if registered is not None:
                found.append((window, registered))
            elif names:
                raise NotFound(f"no records of {account}", where=window.name)
        if not found:
            raise NotFound(f"no window has records of {account}")
        return found

    def _record(
        self, connection: Connection, window: Window, pseudonym: bytes, said: AccessBody
    ) -> None:
        table = tables.window.c
        # Two exports at once would otherwise both be of one number.
        connection.execute(select(table.name).where(table.name == window.name).with_for_update())
        before = _last_access(connection, window.name)
        now = self.clock()
        access = EvidenceAccess.issue(
            self.key,
            origin=Policy.parse(window.policy).origin,
            before=before,
            what=f"account/{pseudonym.hex()}",
            reader=said.reader,
            reason=said.reason,
            time=now if before is None else max(now, before.time),
        )
        row = {"window": window.name, "number": access.number}
        connection.execute(insert(tables.access).values(**row, message=dumps(access.to_json())))

    def _rows(self, query: Select[Any], counter: Any, window: str) -> Iterator[Row[Any]]:
        start, full = 0, True
        while full:
            batch = query.where(counter >= start).order_by(counter).limit(_BATCH)
            # In one reading: rows that go meanwhile must not make a batch look like the last.
            with self.store.read() as connection:
                check_kept(connection, window)
                rows = connection.execute(batch).all()
            yield from rows
            full = len(rows) == _BATCH
            start = rows[-1].counter + 1 if rows else start

    def _of_charge(self, row: Row[Any]) -> Iterator[Line]:
        yield Line.of_entry(Entry(row.position, Charge.KIND, row.salt, row.body))
        opened = ChargeOpenings.decode(bytes(row.openings))
        # When it was ready may tell of rows: until it leaves, there is none (spec 11.11).
        left = row.leaves is not None and row.leaves <= self.clock()
        answered = left and row.answer is not None
        if left:
            yield Line.of_entry(Entry(row.at, row.kind, row.answer_salt, row.answer_body))
        yield Line.opened(
            row.position,
            opened.request,
            opened.openings,
            issued=row.leaves if answered else None,
            answer=loads(bytes(row.answer)) if answered else None,
            salt=bytes(row.salt_a) if answered else None,
        )


def accesses_of(connection: Connection, window: str) -> list[EvidenceAccess]:
    """Return who exported records of a window's accounts, from the first."""
    table = tables.access.c
    query = select(table.message).where(table.window == window).order_by(table.number)
    return [_access(message) for message in connection.scalars(query)]


def count_accesses(connection: Connection, window: str) -> int:
    """Return how often records of a window's accounts were exported."""
    query = select(func.count()).where(tables.access.c.window == window)
    return int(connection.execute(query).scalar_one())


def _last_access(connection: Connection, window: str) -> EvidenceAccess | None:
    table = tables.access.c
    query = select(table.message).where(table.window == window)
    message = connection.scalar(query.order_by(table.number.desc()).limit(1))
    return None if message is None else _access(message)


def _access(message: bytes) -> EvidenceAccess:
    return EvidenceAccess.from_json(loads(bytes(message)))


def _of_record(row: Row[Any]) -> Iterator[Line]:
    stored = RecordOpenings.decode(bytes(row.openings))
    sketch = (stored.openings.salt_s, stored.openings.sketch)
    yield Line.of_entry(Entry(row.position, Record.KIND, row.salt, row.body, *sketch))
    # A claimed record was logged, and nothing left for it.
    given = None if row.delivery is None else Delivery.decode(bytes(row.delivery)).to_json()
    issued = None if given is None else row.issued
    yield Line.opened(row.position, stored.request, stored.openings, issued=issued, answer=given)


def _records(window: str, account: str) -> Select[Any]:
    record, entry, answered = tables.record.c, tables.entry.c, tables.answered.c
    same = (entry.window == record.window) & (entry.position == record.position)
    given = (answered.window == record.window) & (answered.position == record.position)
    return (
        select(record.position, record.counter, record.openings, record.issued)
        .add_columns(entry.salt, entry.body, answered.delivery)
        .join_from(tables.record, tables.entry, same)
        .outerjoin(tables.answered, given)
        .where(record.window == window, record.account == account)
    )


def _charges(window: str, account: str) -> Select[Any]:
    charge, generated, entry = tables.charge.c, tables.generated.c, tables.entry.c
    later = tables.entry.alias()
    same = (entry.window == charge.window) & (entry.position == charge.position)
    of_it = (generated.window == charge.window) & (generated.charge == charge.position)
    answer = (later.c.window == generated.window) & (later.c.position == generated.position)
    return (
        # Not which rows paid, nor what the answer was made of: no account is told.
        select(charge.position, charge.counter, charge.openings, entry.salt, entry.body)
        .add_columns(generated.position.label("at"), generated.leaves, generated.answer)
        .add_columns(generated.salt.label("salt_a"), later.c.kind)
        .add_columns(later.c.salt.label("answer_salt"), later.c.body.label("answer_body"))
        .join_from(tables.charge, tables.entry, same)
        .outerjoin(tables.generated, of_it)
        .outerjoin(later, answer)
        .where(charge.window == window, charge.account == account)
    )


def _promises(window: str, account: str) -> Select[Any]:
    promise = tables.promise.c
    return select(promise.counter, promise.message, promise.nonce).where(
        promise.window == window, promise.account == account
    )
