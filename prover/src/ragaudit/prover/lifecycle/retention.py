"""Deleting what the prover has of a finished window (spec 8.12), and exporting what of an account.

A deletion leaves the window's public part. The signed statement is durable first, beside the fences
and then in the database: from then on nothing of the window is given any more. Then its rows go,
some in each transaction, so that no answer of another window waits for long. Whoever is killed on
the way goes on at the next start; a database that comes from a backup finds the statement beside
the fences, and loses its rows again.

An export (spec 8.13, 10.8) is for whoever asks with a reason: who, when and why is durable before
the first line is written. Rows are read some at a time, each batch in a transaction of its own:
neither an account's million records nor a slow disk under the file holds up answers.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.errors import NotFound, RagauditError, RejectedError, TooEarly
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.database import cut_journal, overwrite_deleted
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.accounts import PROVIDER, AccountRecords, Line
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.ledger.messages.custody import EvidenceAccess, ProviderDeletion
from ragaudit.ledger.messages.entries import Charge, Record
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.prover.errors import VerifierRefused, VerifierUnreachable
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Accounts
from ragaudit.prover.store.database import Store, insert_new
from ragaudit.prover.store.fences import FenceFolder
from ragaudit.prover.store.states import FINAL, State, check_state
from ragaudit.prover.window.charges import ChargeOpenings
from ragaudit.prover.window.records import Delivery, RecordOpenings, entry_at
from ragaudit.prover.window.registrations import Registered, find
from ragaudit.prover.window.windows import Window, Windows
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)

_log = logging.getLogger(__name__)

DAY_MS: Final = 86_400_000
_ROWS: Final = 500  # in one transaction
_AGAIN_SECONDS: Final = 60
# Each behind those that refer to it. Large rows go one at a time.
_TABLES: Final[tuple[tuple[Table, int], ...]] = (
    (tables.idempotency, _ROWS),
    (tables.generated, _ROWS),
    (tables.charge, _ROWS),
    (tables.promise, _ROWS),
    (tables.response, _ROWS),
    (tables.evidence, _ROWS),
    (tables.entry, _ROWS),
    (tables.registration, _ROWS),
    (tables.seed_epoch, 1),
    (tables.index_version, 1),
)
_FORGOTTEN: Final = {
    "log_seed": b"",
    "noise_seed": b"",
    "pseudonym_key": b"",
    "slot_roots": None,
    "challenge": None,
}
"""Of the window's own row."""
_BATCH: Final = 50  # records with the documents that were given for them


@dataclass(frozen=True)
class Stated:
    """What is stored of a deletion.

    Attributes:
        statement: canonical bytes.
        done: whether every row is gone.
    """

    statement: bytes
    done: bool

    @property
    def time(self) -> int:
        """When it was stated, Unix milliseconds."""
        return ProviderDeletion.parse(self.statement).time


@dataclass(frozen=True)
class Retention:
    """Deletes on the operator's word, and by the rule of the settings.

    Attributes:
        store: of the leader.
        key: the provider's.
        days: after a window's end; None to keep everything until the operator says so.
        verdict: asks the verifier for the signed verdict of a window; None if there is none yet.
    """

    store: Store
    windows: Windows
    fences: FenceFolder
    key: PrivateKey
    days: int | None
    clock: Callable[[], int]
    verdict: Callable[[str], bytes | None]

    def step(self) -> None:
        """State what is due, and delete what was stated.

        Raises:
            RejectedError, VerifierRefused, VerifierUnreachable: one that answers no more cannot be
                judged by what the verifier says; what else was due is done.
        """
        failed: RagauditError | None = None
        for name in self._due():
            try:
                self.state(name)
            except TooEarly:
                pass  # the next time
            except (RejectedError, VerifierRefused, VerifierUnreachable) as error:
                failed = error  # of this window: others are due all the same
        for name, statement in self._stated():
            # Whoever deletes rows has the statement where no backup of them is: the leader that
            # stated it may have been another machine.
            self.fences.state_deletion(name, statement)
            self._delete(name)
        if failed is not None:
            raise failed

    def state(self, name: str) -> None:
        """State that a window's rows are deleted, which `step` does; calling again changes nothing.

        Args:
            name: of a finished window, or of one that answers no more and was judged all the same.

        Raises:
            UnknownWindow: there is none of this name.
            WrongState: it is not finished.
            TooEarly: a request may still be a retry of one that it answered; or the verifier has
                not judged the one that answers no more.
            VerifierUnreachable, VerifierRefused, RejectedError: its verdict is not to be had.
            NotLeading, StoreUnavailable: nothing is stated.
        """
        self.store.hold()
        window = self.windows.get(name)
        if window.unusable is not None and window.state not in FINAL:
            window = self._judged(window)
        check_state(name, window.state, FINAL)
        policy = Policy.parse(window.policy)
        kept = policy.end + policy.retrieval.retry_seconds
        wait = 1000 * kept - self.clock()
        if window.state is State.ARCHIVED and wait > 0:
            raise TooEarly(
                "its answers are still given again", where=name, retry_after=1 + wait // 1000
            )
        with self.store.read() as connection:
            if deletion_of(connection, name) is not None:
                return
            statement = self._statement(connection, window, policy)
        # Outside of what a backup of the database brings back, and before anything is gone.
        self._store(name, policy, self.fences.state_deletion(name, statement.encode()))
        _log.warning("window %s: everything but its public part is deleted", name)

    def _judged(self, window: Window) -> Window:
        """Archive a window that answers no more, and which no step of its own ends, by its verdict.

        Until there is one its operator may still restore it, and go on.
        """
        envelope, policy = self.verdict(window.name), Policy.parse(window.policy)
        if envelope is None:
            raise TooEarly(
                "the verifier has not judged it yet",
                where=window.name,
                expected="a verdict, or a restore",
                retry_after=_AGAIN_SECONDS,
            )
        verdict = Verdict.verify(envelope, policy.keys.verdict)
        if verdict.subjects.get(items.POLICY) != hashlib.sha256(window.policy).hexdigest():
            raise RejectedError("a verdict about another policy", where=window.name)
        with self.store.write() as connection:
            self.windows.advance(
                connection, window.name, window.state, State.ARCHIVED, verdict=envelope
            )
        return self.windows.get(window.name)

    def recall(self) -> None:
        """Take up the deletions that this database does not know: it came from a backup.

        To be called before a window is loaded.

        Raises:
            MalformedError, RejectedError: a file beside the fences is not this provider's statement
                about the window that it is named after.
        """
        for name, path in self.fences.deletions().items():
            with self.store.read() as connection:
                policy = connection.scalar(
                    select(tables.window.c.policy).where(tables.window.c.name == name)
                )
                if policy is None or deletion_of(connection, name) is not None:
                    continue
            self._store(name, Policy.parse(policy), path.read_bytes())
            _log.warning("window %s came back from a backup, and is deleted again", name)

    def _store(self, name: str, policy: Policy, statement: bytes) -> None:
        try:
            found = ProviderDeletion.parse(statement)
            found.verify(self.key.public)
            # A file under another name must not delete another window.
            if found.origin != policy.origin:
                raise RejectedError("of another window", where="origin", expected=policy.origin)
        except RagauditError as error:
            error.where = f"{name}.deletion beside the fences: {error.where}"
            raise
        row = {"window": name, "statement": statement, "done": False}
        table = tables.window.c
        with self.store.write() as connection:
            insert_new(connection, tables.deletion, [row])
            # In a backup of before its verdict: it was given, or nothing would have been stated.
            connection.execute(
                update(tables.window)
                .where(table.name == name, table.state.not_in(FINAL))
                .values(state=State.ARCHIVED)
            )

    def _statement(
        self, connection: Connection, window: Window, policy: Policy
    ) -> ProviderDeletion:
        verdict = window.verdict
        # One that was not handed over is no evidence; one that was lost, with the end of the log,
        # is the verifier's alone, and what it covers beyond these rows nobody here can count.
        final = window.final_checkpoint if window.handed_over else None
        return ProviderDeletion(
            origin=policy.origin,
            verdict=None if verdict is None else hashlib.sha256(verdict).digest(),
            entries=connection.scalar(
                select(func.count()).select_from(tables.entry).where(_of(tables.entry, window.name))
            )
            or 0,
            checkpoint=None if final is None else parse_checkpoint(final).head,
            time=self.clock(),
        ).signed(self.key)

    def _due(self) -> Iterator[str]:
        if self.days is None:
            return
        stated = select(tables.deletion.c.window)
        window = tables.window.c
        query = select(window.name, window.policy).where(
            window.state.in_(FINAL) | window.unusable.is_not(None), window.name.not_in(stated)
        )
        with self.store.read() as connection:
            rows = connection.execute(query.order_by(window.number)).all()
        for name, policy in rows:
            if self.clock() >= 1000 * Policy.parse(policy).end + self.days * DAY_MS:
                yield name

    def _stated(self) -> list[tuple[str, bytes]]:
        table = tables.deletion.c
        query = select(table.window, table.statement).where(table.done.is_(False))
        with self.store.read() as connection:
            return [(name, bytes(statement)) for name, statement in connection.execute(query)]

    def _delete(self, name: str) -> None:
        for table, count in _TABLES:
            while self._delete_some(name, table, count):
                pass
        this = tables.deletion.c.window == name
        with self.store.write() as connection:
            overwrite_deleted(connection)
            connection.execute(
                update(tables.window).where(tables.window.c.name == name).values(**_FORGOTTEN)
            )
            connection.execute(update(tables.deletion).where(this).values(done=True))
        cut_journal(self.store.engine)
        _log.info("window %s: the deletion is done", name)

    def _delete_some(self, name: str, table: Table, count: int) -> bool:
        key = tuple_(*table.primary_key)
        some = select(*table.primary_key).where(_of(table, name)).limit(count)
        with self.store.write() as connection:
            overwrite_deleted(connection)
            gone = connection.execute(delete(table).where(key.in_(some)))
            return gone.rowcount == count


def _of(table: Table, window: str) -> ColumnElement[bool]:
    """Which rows of a window go: all, and of its entries those of records."""
    condition: ColumnElement[bool] = table.c.window == window
    return condition & (table.c.kind == Record.KIND) if table is tables.entry else condition


def deletion_of(connection: Connection, window: str) -> Stated | None:
    """Return what was stated of a window, None if nothing was."""
    table = tables.deletion.c
    query = select(table.statement, table.done).where(table.window == window)
    row = connection.execute(query).one_or_none()
    return None if row is None else Stated(*row)


def check_kept(connection: Connection, window: str) -> None:
    """Check that of a window more than its public part is kept.

    Args:
        window: by name, also of one that does not exist.

    Raises:
        NotFound: it was deleted.
    """
    stated = deletion_of(connection, window)
    if stated is not None:
        raise NotFound(f"deleted at {rfc3339(stated.time)}", where=window)


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
        for row in self._rows(_records(window, account), tables.entry.c.counter, window):
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
        opened = ChargeOpenings.parse(bytes(row.openings))
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
    stored = RecordOpenings.parse(bytes(row.openings))
    sketch = (stored.openings.salt_s, stored.openings.sketch)
    yield Line.of_entry(Entry(row.position, Record.KIND, row.salt, row.body, *sketch))
    # A claimed record was logged, and nothing left for it.
    given = None if row.delivery is None else Delivery.decode(bytes(row.delivery)).to_json()
    issued = None if given is None else row.issued
    yield Line.opened(row.position, stored.request, stored.openings, issued=issued, answer=given)


def _records(window: str, account: str) -> Select[Any]:
    entry = tables.entry.c
    return (
        select(entry.position, entry.counter, entry.salt, entry.body)
        .add_columns(entry.openings, entry.issued, entry.delivery)
        .where(entry.window == window, entry.account == account)
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
