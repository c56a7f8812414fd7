"""Windows as they are stored: one row each, whose state only ever moves along `states`.

Every change is a transaction of its own, or part of the caller's, so that a process killed at any
moment finds the window in a state from which `driver` continues.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import Conflict
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.log.database import Prepared, Rows
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.errors import KeyChanged, UnknownWindow, WindowUnusable
from ragaudit.prover.sequencer import Lookup
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import FINAL, State, check_transition
from sqlalchemy import Connection, bindparam, func, insert, select, update


@dataclass(frozen=True)
class Window:
    """A window's row. ``policy`` and ``embedder`` are the canonical bytes that were committed."""

    name: str
    state: State
    policy: bytes
    embedder: bytes
    log_seed: bytes = field(repr=False)
    noise_seed: bytes = field(repr=False)
    pseudonym_key: bytes = field(repr=False)
    slot_roots: bytes | None
    opening_salt: bytes | None = field(repr=False)
    opening_body: bytes | None
    countersignature: bytes | None
    unusable: str | None
    stopped: bool
    entries_sent: int
    final_checkpoint: bytes | None
    handed_over: bool
    challenge: bytes | None = field(repr=False)
    verdict: bytes | None

    def check_key(self, own: PublicKey, file: Path) -> None:
        """Check that the provider's key is the one that the window has committed to.

        Args:
            own: the key that the settings name.
            file: where it was read, for the error.

        Raises:
            KeyChanged: it is another one.
        """
        key = Policy.parse(self.policy).keys.provider
        if key != own:
            raise KeyChanged(
                "not the provider's key that an unfinished window has committed to",
                where=f"window {self.name}: {file}",
                expected=f"the private key of {hex_encode(key.raw)}",
            )


@dataclass(frozen=True)
class Status:
    """What answering needs to know of a window's row."""

    state: State
    unusable: str | None
    stopped: bool
    generation: int


@dataclass(frozen=True)
class Recent:
    """What an application between two windows is told of one."""

    name: str
    state: State
    policy: bytes
    opening_body: bytes | None


RECENT = 8  # of one tenant follow each other; whoever plans more of them waits without being told
_WINDOWS = Rows(Window, tables.window)
_RECENT = Rows(Recent, tables.window)
_STATUSES = Rows(Status, tables.window)
_NAMED = tables.window.c.name == bindparam("name")
# Built once: the first runs several times a second for every window, the second twice in an answer.
_GET = Prepared(_WINDOWS.select(_NAMED))
_STATUS = Prepared(_STATUSES.select(_NAMED))
_OPEN = Prepared(
    select(tables.window.c.name)
    .where(
        tables.window.c.state == State.OPEN,
        tables.window.c.unusable.is_(None),
        tables.window.c.stopped.is_(False),
    )
    .order_by(tables.window.c.number.desc())
)


class Windows:
    """The register of windows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._statuses = Lookup(self._find_statuses)

    def create(
        self,
        name: str,
        *,
        policy: bytes,
        embedder: bytes,
        log_seed: bytes,
        noise_seed: bytes,
        pseudonym_key: bytes,
    ) -> Window:
        """Store a draft.

        Args:
            name: of the window; the origin of its log contains it.
            policy: canonical bytes.
            embedder: canonical bytes of the manifest.
            log_seed: of the key that signs the log's checkpoints, 32 bytes.
            noise_seed: s_W, 32 bytes (spec 5.5).
            pseudonym_key: 32 bytes.

        Raises:
            Conflict: the name was used.
        """
        table = tables.window
        with self._store.write() as connection:
            self.check_unused(name, connection)
            # Order of creation, by a counter: the system's clock may be set.
            last = connection.scalar(select(func.max(table.c.number)))
            connection.execute(
                insert(table).values(
                    name=name,
                    number=0 if last is None else last + 1,
                    state=State.DRAFT,
                    policy=policy,
                    embedder=embedder,
                    log_seed=log_seed,
                    noise_seed=noise_seed,
                    pseudonym_key=pseudonym_key,
                    stopped=False,
                    entries_sent=0,
                    handed_over=False,
                    generation=0,
                )
            )
        return self.get(name)

    def check_unused(self, name: str, connection: Connection | None = None) -> None:
        """Check that no window ever had a name, whatever became of it.

        Args:
            connection: of a transaction to read in; a new one if None.

        Raises:
            Conflict: one had.
        """
        if connection is None:
            with self._store.read() as own:
                self.check_unused(name, own)
            return
        table = tables.window
        if connection.scalar(select(table.c.name).where(table.c.name == name)) is not None:
            raise Conflict(
                "this name was used", where=name, expected="another one: names are never used again"
            )

    def get(self, name: str, connection: Connection | None = None) -> Window:
        """Return a window; UnknownWindow if there is none of this name.

        Args:
            connection: of a transaction to read in; a new one if None.
        """
        if connection is None:
            with self._store.read() as own:
                return self.get(name, own)
        row = _GET.row(connection, name=name)
        if row is None:
            raise UnknownWindow("no such window", where=name[:64])
        return _WINDOWS.of(row)

    def status_now(self, name: str) -> Status:
        """Return the state of a window as it is committed; as `status`."""
        found = self._statuses.get(name)
        if found is None:
            raise UnknownWindow("no such window", where=name[:64])
        return found

    def _find_statuses(self, names: Sequence[str]) -> dict[str, Status]:
        with self._store.look() as connection:
            rows = {name: _STATUS.row(connection, name=name) for name in names}
        return {name: _STATUSES.of(row) for name, row in rows.items() if row is not None}

    def status(self, connection: Connection, name: str) -> Status:
        """Return the state of a window, without its large columns.

        Args:
            connection: of a transaction to read in.

        Raises:
            UnknownWindow: there is none of this name.
        """
        row = _STATUS.row(connection, name=name)
        if row is None:
            raise UnknownWindow("no such window", where=name[:64])
        return _STATUSES.of(row)

    def all(self) -> list[Window]:
        """Return every window in order of creation."""
        query = _WINDOWS.select().order_by(tables.window.c.number)
        with self._store.read() as connection:
            return _WINDOWS.all(connection, query)

    def unfinished(self) -> list[str]:
        """Return the names of the windows that the driver still moves."""
        query = (
            select(tables.window.c.name)
            .where(tables.window.c.state.not_in(FINAL), tables.window.c.unusable.is_(None))
            .order_by(tables.window.c.number)
        )
        with self._store.read() as connection:
            return list(connection.scalars(query))

    def open(self) -> list[str]:
        """Return the names of the open windows that answer, the newest first."""
        with self._store.read() as connection:
            return [row[0] for row in _OPEN.rows(connection)]

    def last_handed_over(self, verifier: PublicKey) -> str | None:
        """Return the final checkpoint of the last window that was handed over to a verifier.

        Args:
            verifier: its key; another one does not know that window, and would refuse the next
                (check 1).
        """
        for window in reversed(self.all()):
            final = window.final_checkpoint if window.handed_over else None
            if final is not None and Policy.parse(window.policy).keys.verifier == verifier:
                return final.decode("utf-8")
        return None

    def check_usable(self, now: int) -> None:
        """Check that no window that is to answer is behind its fence.

        Args:
            now: Unix milliseconds.

        Raises:
            WindowUnusable: one is, and has not ended yet.
        """
        for window in self.all():
            if window.unusable is None or window.state in FINAL:
                continue
            if now < 1000 * Policy.parse(window.policy).end:
                raise WindowUnusable(window.unusable, where=window.name)

    def recent(self) -> list[Recent]:
        """Return the windows that were created last, the newest first."""
        query = _RECENT.select().order_by(tables.window.c.number.desc()).limit(RECENT)
        with self._store.read() as connection:
            return _RECENT.all(connection, query)

    def advance(
        self, connection: Connection, name: str, before: State, after: State, **values: Any
    ) -> None:
        """Move a window from one state to the next, with further columns, in ``connection``.

        Args:
            connection: of the transaction that does what the transition stands for.
            before: the state that the caller has read.
            values: further columns by name.

        Raises:
            WrongState: no such transition, or the window is no longer in ``before``.
        """
        check_transition(name, before, after)
        # Read again: another thread may have moved it since the caller looked.
        current = self.get(name, connection).state
        if current != before:
            check_transition(name, current, after)
        connection.execute(
            update(tables.window).where(tables.window.c.name == name).values(state=after, **values)
        )

    def note(self, name: str, **values: Any) -> None:
        """Store columns other than the state.

        Args:
            values: columns by name.
        """
        with self._store.write() as connection:
            connection.execute(
                update(tables.window).where(tables.window.c.name == name).values(**values)
            )

    def activations(self, name: str, connection: Connection | None = None) -> dict[int, bytes]:
        """Return the activation messages received so far, by number.

        Args:
            connection: as of `get`.
        """
        if connection is None:
            with self._store.read() as own:
                return self.activations(name, own)
        table = tables.activation
        query = select(table.c.number, table.c.message).where(table.c.window == name)
        return {row.number: row.message for row in connection.execute(query)}

    def raise_generation(self, connection: Connection, name: str) -> None:
        """Have every process read the activations and versions of a window again.

        Args:
            connection: of the transaction that adds one.
        """
        table = tables.window
        connection.execute(
            update(table).where(table.c.name == name).values(generation=table.c.generation + 1)
        )

    def add_activation(
        self, connection: Connection, name: str, number: int, message: bytes
    ) -> None:
        """Store an activation; the caller has verified it.

        Args:
            connection: of the transaction that stores it.
            number: a, from 1.
            message: canonical bytes, as the verifier signed it.
        """
        connection.execute(
            insert(tables.activation).values(window=name, number=number, message=message)
        )
        self.raise_generation(connection, name)
