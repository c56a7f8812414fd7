"""Deleting what the prover has of a finished window beyond its public part (spec 8.12).

The signed statement is durable first, beside the fences and then in the database: from then on
nothing of the window is given any more. Then its rows go, some in each transaction, so that no
answer of another window waits for long. Whoever is killed on the way goes on at the next start; a
database that comes from a backup finds the statement beside the fences, and loses its rows again.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from ragaudit.encoding.errors import NotFound, RagauditError, RejectedError, TooEarly
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.database import cut_journal, overwrite_deleted
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.deletion import ProviderDeletion
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.prover.errors import VerifierRefused, VerifierUnreachable
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store, insert_new
from ragaudit.prover.store.fences import FenceFolder
from ragaudit.prover.store.states import FINAL, State, check_state
from ragaudit.prover.window.windows import Window, Windows
from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, tuple_, update

__all__ = ["Retention", "check_kept", "deletion_of"]

_log = logging.getLogger(__name__)

DAY_MS: Final = 86_400_000
_ROWS: Final = 500  # in one transaction
_AGAIN_SECONDS: Final = 60
# Each behind those that refer to it. Large rows go one at a time.
_TABLES: Final[tuple[tuple[Table, int], ...]] = (
    (tables.idempotency, _ROWS),
    (tables.answered, _ROWS),
    (tables.served, _ROWS),
    (tables.record, _ROWS),
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
