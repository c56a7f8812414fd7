"""The accounts of a window: registered in its log before their first query (spec 8.2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.errors import Conflict
from ragaudit.ledger.log.database import Prepared, Rows, Several
from ragaudit.ledger.messages.entries import Registration
from ragaudit.prover.errors import WrongState
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import REGISTERS, check_state
from ragaudit.prover.window.windows import Windows
from sqlalchemy import ColumnElement, Connection, bindparam, case, func, select, update

if TYPE_CHECKING:
    from ragaudit.prover.window.log_transaction import LogTransaction
    from ragaudit.prover.window.open_window import OpenWindow


@dataclass(frozen=True)
class Registered:
    """An account in a window.

    Attributes:
        pseudonym: 32 bytes, in this window only.
        slot: rank of its registration, from 0; its noise keys are the slot's.
        anchor: of its nonce chain, 32 bytes; None for a plain account.
        dispute_key: 32 bytes, None if the account gave none.
        position: of its registration in the log.
        counter: the number of its logged records.
        last_time: of the last one, or of a later answer or void, Unix milliseconds.
    """

    account: str
    pseudonym: bytes
    tenant: str
    slot: int
    anchor: bytes | None
    dispute_key: bytes | None
    position: int
    counter: int
    last_time: int


_REGISTRATIONS = Rows(Registered, tables.registration)
# Built once: they run in every answer.
_FIND = Prepared(
    _REGISTRATIONS.select(
        tables.registration.c.window == bindparam("window"),
        tables.registration.c.account == bindparam("account"),
    )
)
_FIND_EACH = Several(
    _REGISTRATIONS.select(tables.registration.c.window == bindparam("window")),
    tables.registration.c.account,
)
_LAST = tables.registration.c.last_time
_TIME: ColumnElement[int] = bindparam("time")
# Whatever the order in which a transaction runs these two: nothing is dated before either.
_LATER = case((_LAST > _TIME, _LAST), else_=_TIME)
COUNT = Prepared(
    update(tables.registration)
    .where(
        tables.registration.c.window == bindparam("of_window"),
        tables.registration.c.account == bindparam("of_account"),
    )
    .values(counter=tables.registration.c.counter + 1, last_time=_LATER)
)
"""Consumes one query of an account's budget, in the transaction that logs it."""
ADVANCE_TIME = Prepared(
    update(tables.registration)
    .where(
        tables.registration.c.window == bindparam("of_window"),
        tables.registration.c.account == bindparam("of_account"),
    )
    .values(last_time=_LATER)
)
"""Lets nothing more of an account be dated before a time, in the transaction that logs it."""


class Registrar:
    """Registers accounts. Safe to use from several threads."""

    def __init__(self, store: Store, windows: Windows, clock: Callable[[], int]) -> None:
        self._store = store
        self._windows = windows
        self._clock = clock

    def register(
        self, live: "OpenWindow", account: Account, anchor: bytes | None, dispute_key: bytes | None
    ) -> tuple[Registered, bool]:
        """Log an account's registration; one that is registered alike stays as it is.

        Args:
            anchor: of its nonce chain, 32 bytes; None for a plain account.
            dispute_key: an Ed25519 public key, 32 bytes; None for the one that is kept of the
                account, if there is one.

        Returns:
            The registration, and whether it is new.

        Raises:
            MalformedRecord: ``dispute_key`` is not an Ed25519 public key.
            Conflict: registered with another anchor or dispute key, or no slot is left; or an
                anchor in a window without noise, where there is nothing to anchor.
            WrongState: the window does not register any more, or not yet.
        """
        if anchor is not None and not live.policy.noised:
            raise Conflict(
                "an anchor in a window without noise", where=live.name, expected="anchor null"
            )
        # Under the lock: two calls at once must not take two slots.
        with live.account_lock(account.id):
            with self._store.read() as connection:
                row = find(connection, live.name, account.id)
            if row is not None:
                # What is in the log stays, whatever key was kept of the account since.
                _check_same(live, row, anchor, dispute_key or row.dispute_key)
                return row, False
            if account.tenant not in live.policy.tenants:
                raise WrongState(
                    f"the window does not serve tenant {account.tenant}",
                    where=live.name,
                    expected="a window that is created after the tenant has documents",
                )
            return self._log(live, account, anchor, dispute_key or account.dispute_key), True

    def _log(
        self, live: "OpenWindow", account: Account, anchor: bytes | None, dispute_key: bytes | None
    ) -> Registered:
        with live.committing(self._store) as transaction:
            connection = transaction.connection
            # In the same transaction: a window that closes meanwhile gets no entry any more.
            check_state(live.name, self._windows.status(connection, live.name).state, REGISTERS)
            return self._insert(transaction, live, account, anchor, dispute_key)

    def assign_slot(self, connection: Connection, live: "OpenWindow") -> int:
        """Return the slot of the next registration: no two accounts share noise keys.

        Args:
            connection: of the transaction that logs the registration.

        Raises:
            Conflict: every slot of the policy is taken.
        """
        table = tables.registration
        # Rank of the registration: check 7 demands slots 0, 1, 2, ... in the log's order.
        last = connection.scalar(select(func.max(table.c.slot)).where(table.c.window == live.name))
        slot = 0 if last is None else last + 1
        if slot >= live.policy.slots:
            raise Conflict(
                "no slot is left", where=live.name, expected=f"at most {live.policy.slots} accounts"
            )
        return slot

    def pseudonym(self, live: "OpenWindow", account: Account) -> bytes:
        """Return the pseudonym under which an account is registered."""
        return live.pseudonym_of(account.name, account.user)

    def tenant(self, account: Account) -> str:
        """Return the tenant to which an account is registered."""
        return account.tenant

    def _insert(
        self,
        transaction: "LogTransaction",
        live: "OpenWindow",
        account: Account,
        anchor: bytes | None,
        dispute_key: bytes | None,
    ) -> Registered:
        connection = transaction.connection
        body = Registration(
            window=live.name,
            pseudonym=self.pseudonym(live, account),
            tenant=self.tenant(account),
            slot=self.assign_slot(connection, live),
            anchor=anchor,
            dispute_key=dispute_key,
            time=self._clock(),
        )
        salt = live.randomness.draw(SALT_BYTES, "registration", live.name, account.id)
        position = transaction.append(body.KIND, salt, body.encode())
        row = Registered(
            account=account.id,
            pseudonym=body.pseudonym,
            tenant=body.tenant,
            slot=body.slot,
            anchor=anchor,
            dispute_key=dispute_key,
            position=position,
            counter=0,
            last_time=0,
        )
        _REGISTRATIONS.insert(connection, row, window=live.name)
        return row


def _check_same(
    live: "OpenWindow", row: Registered, anchor: bytes | None, dispute_key: bytes | None
) -> None:
    for name, old, new in (
        ("anchor", row.anchor, anchor),
        ("dispute key", row.dispute_key, dispute_key),
    ):
        if old != new:
            raise Conflict(f"registered with another {name}", where=live.name, expected="the same")


def find_each(store: Store, window: str, accounts: Sequence[str]) -> dict[str, Registered]:
    """Return the registrations in a window that there are of some accounts, by account."""
    with store.look() as connection:
        rows = map(_REGISTRATIONS.of, _FIND_EACH.rows(connection, accounts, window=window))
        return {row.account: row for row in rows}


def find(connection: Connection, window: str, account: str) -> Registered | None:
    """Return an account's registration in a window, None if there is none."""
    row = _FIND.row(connection, window=window, account=account)
    return None if row is None else _REGISTRATIONS.of(row)


def find_pseudonym(connection: Connection, window: str, pseudonym: bytes) -> Registered | None:
    """Return the registration of a pseudonym, None if there is none.

    Args:
        pseudonym: 32 bytes.
    """
    table = tables.registration
    return _REGISTRATIONS.find(connection, table.c.window == window, table.c.pseudonym == pseudonym)


def all_used_counters(connection: Connection, window: str) -> dict[bytes, int]:
    """Return `used_counters` of every registered account, by pseudonym, where it is not 0."""
    pseudonyms = connection.scalars(
        select(tables.registration.c.pseudonym).where(tables.registration.c.window == window)
    ).all()
    used = {each: used_counters(connection, window, each) for each in map(bytes, pseudonyms)}
    return {pseudonym: count for pseudonym, count in used.items() if count}


def used_counters(connection: Connection, window: str, pseudonym: bytes) -> int:
    """Return how many counters of a pseudonym are logged or promised: what the fence compares.

    Args:
        connection: of the transaction that compares them, or a reading one.
        pseudonym: 32 bytes; one that is not registered has used none.
    """
    registered = find_pseudonym(connection, window, pseudonym)
    if registered is None:
        return 0
    promise = tables.promise.c
    last: int | None = connection.scalar(
        select(func.max(promise.counter)).where(
            promise.window == window, promise.account == registered.account
        )
    )
    # A promise uses its counter, too: another one for it would fail check 12.
    return registered.counter if last is None else max(registered.counter, last + 1)
