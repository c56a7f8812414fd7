"""Registering accounts in a window's log before their first query: spec 8.2."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.ledger.log.prepared import Prepared
from ragaudit.ledger.messages.records import Registration, entry_leaf_data
from ragaudit.prover.errors import Conflict, WrongState
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import REGISTERS, check_state
from ragaudit.prover.window.entries import insert_entry
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.windows import Windows
from sqlalchemy import Connection, bindparam, func, insert, select, update


@dataclass(frozen=True)
class Registered:
    """An account in a window. ``counter`` is the number of its logged records."""

    account: str
    pseudonym: bytes
    tenant: str
    slot: int
    anchor: bytes | None
    dispute_key: bytes | None
    position: int
    counter: int
    last_time: int


_COLUMNS = [tables.registration.c[name] for name in Registered.__dataclass_fields__]
# Built once: they run in every answer.
_FIND = Prepared(
    select(*_COLUMNS).where(
        tables.registration.c.window == bindparam("window"),
        tables.registration.c.account == bindparam("account"),
    )
)
_COUNT = Prepared(
    update(tables.registration)
    .where(
        tables.registration.c.window == bindparam("of_window"),
        tables.registration.c.account == bindparam("of_account"),
    )
    .values(counter=tables.registration.c.counter + 1, last_time=bindparam("time"))
)


class Registrar:
    """Writes registrations; slots are the rank of the registration."""

    def __init__(self, store: Store, windows: Windows, clock: Callable[[], int]) -> None:
        self._store = store
        self._windows = windows
        self._clock = clock

    def register(
        self, live: OpenWindow, account: Account, anchor: bytes | None, dispute_key: bytes | None
    ) -> tuple[Registered, bool]:
        """Log an account's registration; returns it, and whether it is new.

        Raises:
            MalformedRecord: ``dispute_key`` is not an Ed25519 public key.
            Conflict: registered with another anchor or dispute key, or no slot is left.
            WrongState: the window does not register any more, or not yet.
        """
        with live.account_lock(account.name):
            with self._store.read() as connection:
                known = find(connection, live.name, account.name)
            if known is not None:
                _demand_same(live, known, anchor, dispute_key)
                return known, False
            if account.tenant not in live.policy.tenants:
                raise WrongState(
                    f"the window does not serve tenant {account.tenant}",
                    where=live.name,
                    expected="a window that is created after the tenant has documents",
                )
            return self._log(live, account, anchor, dispute_key), True

    def _log(
        self, live: OpenWindow, account: Account, anchor: bytes | None, dispute_key: bytes | None
    ) -> Registered:
        with live.committing(self._store) as transaction:
            connection = transaction.connection
            check_state(live.name, self._windows.status(connection, live.name).state, REGISTERS)
            return self._insert(connection, live, account, anchor, dispute_key)

    def assign_slot(self, connection: Connection, live: OpenWindow) -> int:
        """Return the slot of the next registration."""
        table = tables.registration
        query = select(func.count()).where(table.c.window == live.name)
        slot = connection.scalar(query) or 0
        if slot >= live.policy.slots:
            raise Conflict(
                "no slot is left", where=live.name, expected=f"at most {live.policy.slots} accounts"
            )
        return slot

    def pseudonym(self, live: OpenWindow, account: Account) -> bytes:
        """Return the pseudonym under which an account is registered."""
        return live.pseudonym_of(account.name)

    def tenant(self, account: Account) -> str:
        """Return the tenant to which an account is registered."""
        return account.tenant

    def _insert(
        self,
        connection: Connection,
        live: OpenWindow,
        account: Account,
        anchor: bytes | None,
        dispute_key: bytes | None,
    ) -> Registered:
        body = Registration(
            window=live.name,
            pseudonym=self.pseudonym(live, account),
            tenant=self.tenant(account),
            slot=self.assign_slot(connection, live),
            anchor=anchor,
            dispute_key=dispute_key,
            time=self._clock(),
        )
        salt = live.randomness.draw(SALT_BYTES, "registration", live.name, account.name)
        position = live.log.entries.append(connection, entry_leaf_data(salt, body))
        insert_entry(connection, live.name, position, body.KIND, salt, body.encode())
        row = Registered(
            account=account.name,
            pseudonym=body.pseudonym,
            tenant=body.tenant,
            slot=body.slot,
            anchor=anchor,
            dispute_key=dispute_key,
            position=position,
            counter=0,
            last_time=0,
        )
        connection.execute(insert(tables.registration).values(window=live.name, **_values(row)))
        return row


def _demand_same(
    live: OpenWindow, known: Registered, anchor: bytes | None, dispute_key: bytes | None
) -> None:
    for name, had, given in (
        ("anchor", known.anchor, anchor),
        ("dispute key", known.dispute_key, dispute_key),
    ):
        if had != given:
            raise Conflict(f"registered with another {name}", where=live.name, expected="the same")


def find(connection: Connection, window: str, account: str) -> Registered | None:
    """Return an account's registration in a window, if there is one."""
    row = _FIND.row(connection, window=window, account=account)
    return None if row is None else Registered(*row)


def find_pseudonym(connection: Connection, window: str, pseudonym: bytes) -> Registered | None:
    """Return the registration of a pseudonym, if there is one."""
    table = tables.registration
    row = connection.execute(
        select(*_COLUMNS).where(table.c.window == window, table.c.pseudonym == pseudonym)
    ).one_or_none()
    return None if row is None else Registered(**row._mapping)


def count_record(connection: Connection, window: str, account: str, time: int) -> None:
    """Consume one unit of the account's budget, in the transaction that logs the record."""
    _COUNT.change(connection, of_window=window, of_account=account, time=time)


def _values(row: Registered) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Registered.__dataclass_fields__}
