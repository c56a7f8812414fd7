"""Charges and answers of the generation channel, and what answers were made of, as stored."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.canonical_json import loads
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.ledger.log.database import Prepared
from ragaudit.ledger.messages.challenge import MAX_ROWS, UsedRow, VotesOfAnswer
from ragaudit.ledger.messages.entries import Charge, Generated, Record, Void
from ragaudit.ledger.messages.kernel import EMBEDDED, Items, Message, form_of
from ragaudit.ledger.messages.receipts import (
    AnyAnswer,
    GenerationRequest,
    LoggedEntry,
)
from ragaudit.ledger.messages.requests import Openings
from ragaudit.prover.store import tables
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import entry_at
from sqlalchemy import Connection, bindparam, insert, select


class MadeOf(Message, where="stored answer"):
    """What an answer was made of, as its replay opens it (docs/spec/11-generation.md §11.12).

    Attributes:
        used: the rows in slots, positions rising.
        votes: as of `Replay`.
    """

    used: Annotated[tuple[UsedRow, ...], Items(0, MAX_ROWS)] = field(repr=False)
    votes: VotesOfAnswer = field(repr=False)


Positions = npt.NDArray[np.int64]
IN_HANDOVER: Final = frozenset({Record.KIND, Charge.KIND, Generated.KIND, Void.KIND})
"""Kinds of entries that the verifier is given after the window, and not as they are logged."""
_WIDTH = np.dtype("<u4")
_BATCH: Final = 1000

# Built once: they run for every question.
_CHARGE = tables.charge.c
_INSERT_CHARGE = Prepared(insert(tables.charge))
_INSERT_GENERATED = Prepared(insert(tables.generated))
_LAST_NUMBER = Prepared(
    select(_CHARGE.number)
    .where(_CHARGE.window == bindparam("of_window"), _CHARGE.tenant == bindparam("of_tenant"))
    .order_by(_CHARGE.number.desc())
    .limit(1)
)
_CHARGED = Prepared(
    select(_CHARGE.number, _CHARGE.rows)
    .where(
        _CHARGE.window == bindparam("of_window"),
        _CHARGE.tenant == bindparam("of_tenant"),
        _CHARGE.number >= bindparam("start"),
    )
    .order_by(_CHARGE.number)
    .limit(_BATCH)
)
_IDENTICAL = Prepared(
    select(_CHARGE.position)
    .where(
        _CHARGE.window == bindparam("of_window"),
        _CHARGE.account == bindparam("of_account"),
        _CHARGE.request == bindparam("digest"),
        _CHARGE.time >= bindparam("since"),
    )
    .order_by(_CHARGE.position.desc())
    .limit(1)
)


class ChargeOpenings(Message, where="stored charge"):
    """What opens the digests of a charge entry."""

    request: GenerationRequest
    openings: Annotated[Openings, EMBEDDED]


@dataclass(frozen=True)
class StoredCharge:
    """A durable charge entry.

    Attributes:
        entry: as it was logged.
        rows: D_t, int64, rising; private.
        blinding: rho_t, 32 bytes; private.
    """

    window: str
    account: str
    entry: LoggedEntry
    opened: ChargeOpenings = field(repr=False)
    rows: Positions = field(repr=False)
    blinding: bytes = field(repr=False)

    @property
    def body(self) -> Charge:
        """The body of the entry."""
        return Charge.parse(self.entry.body)


@dataclass(frozen=True)
class PaidCharge:
    """A charge entry, and which rows it charges.

    Attributes:
        position: in the log.
        rows: D_t, int64, rising; private.
        blinding: rho_t, 32 bytes; private.
    """

    position: int
    body: Charge
    rows: Positions = field(repr=False)
    blinding: bytes = field(repr=False)


@dataclass(frozen=True)
class StoredAnswer:
    """What became of a charge.

    Attributes:
        entry: of the answer, or of the void.
        answer, salt: None of a void.
        leaves: Unix milliseconds before which nothing of it leaves.
    """

    entry: LoggedEntry
    answer: AnyAnswer | None = field(repr=False)
    salt: bytes | None = field(repr=False)
    leaves: int


def insert_charge(
    transaction: LogTransaction,
    live: OpenWindow,
    body: Charge,
    salt: bytes,
    *,
    account: str,
    request: bytes,
    opened: ChargeOpenings,
    rows: Positions,
    blinding: bytes,
) -> StoredCharge:
    """Append a charge entry, and store what only the provider knows of it, in one transaction.

    Args:
        salt: of the leaf, 32 bytes.
        request: SHA-256 of the request's canonical bytes.
        opened: what opens the entry's digests.
        rows, blinding: D_t and rho_t.

    Returns:
        The charge, which is durable once the transaction is.
    """
    encoded = body.encode()
    position = transaction.append(body.KIND, salt, encoded)
    transaction.later(
        _INSERT_CHARGE,
        window=live.name,
        position=position,
        tenant=body.tenant,
        number=body.number,
        account=account,
        counter=body.counter,
        request=request,
        time=body.time,
        openings=opened.encode(),
        rows=rows.astype(_WIDTH).tobytes(),
        blinding=blinding,
    )
    entry = LoggedEntry(position, salt, encoded)
    return StoredCharge(live.name, account, entry, opened, rows, blinding)


def next_number(connection: Connection, window: str, tenant: str) -> int:
    """Return n_t of the tenant's next charge entry."""
    last = _LAST_NUMBER.row(connection, of_window=window, of_tenant=tenant)
    return 0 if last is None else int(last[0]) + 1


def charged_rows(
    connection: Connection, window: str, tenant: str, start: int
) -> Iterator[tuple[int, Positions]]:
    """Yield number and D_t of the tenant's charge entries from number ``start`` on, in order.

    Args:
        connection: of a transaction, or of `Store.look`: what is charged stays so.
    """
    full = True
    while full:
        batch = _CHARGED.rows(connection, of_window=window, of_tenant=tenant, start=start)
        for number, rows in batch:
            yield int(number), _positions(rows)
            start = int(number) + 1
        full = len(batch) == _BATCH


def charges_of(connection: Connection, window: str, tenant: str) -> Iterator[PaidCharge]:
    """Yield the tenant's charge entries in the log's order."""
    charge, entry = tables.charge.c, tables.entry.c
    same = (charge.window == entry.window) & (charge.position == entry.position)
    query = (
        select(charge.position, entry.body, charge.rows, charge.blinding)
        .join_from(tables.charge, tables.entry, same)
        .where(charge.window == window, charge.tenant == tenant)
        .order_by(charge.number)
    )
    for position, body, rows, blinding in connection.execute(
        query.execution_options(yield_per=1000)
    ):
        yield PaidCharge(
            int(position), Charge.parse(bytes(body)), _positions(rows), bytes(blinding)
        )


def find_charge(
    connection: Connection, window: str, account: str, request: bytes, since: int
) -> int | None:
    """Return where the account's last charge for the same request stands, None if there is none.

    Args:
        request: SHA-256 of its canonical bytes.
        since: Unix milliseconds of the oldest that counts.
    """
    found = _IDENTICAL.row(
        connection, of_window=window, of_account=account, digest=request, since=since
    )
    return None if found is None else int(found[0])


def charge_of(
    connection: Connection, window: str, account: str, counter: int
) -> StoredCharge | None:
    """Return the charge entry with an account's counter, None if it has none.

    Args:
        counter: c, from 0.
    """
    columns = tables.charge.c
    query = select(columns.position).where(
        columns.window == window, columns.account == account, columns.counter == counter
    )
    position = connection.scalar(query)
    return None if position is None else charge_at(connection, window, int(position))


def charge_at(connection: Connection, window: str, position: int) -> StoredCharge | None:
    """Return the charge at a position of the log, None if there is none."""
    columns = tables.charge.c
    query = select(columns.account, columns.openings, columns.rows, columns.blinding).where(
        columns.window == window, columns.position == position
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return StoredCharge(
        window,
        row.account,
        _entry(connection, window, position),
        ChargeOpenings.parse(row.openings),
        _positions(row.rows),
        bytes(row.blinding),
    )


def answer_of_charge(connection: Connection, window: str, charge: int) -> StoredAnswer | None:
    """Return what became of the charge at a position, None while nothing did."""
    columns = tables.generated.c
    query = select(columns.position, columns.answer, columns.salt, columns.leaves).where(
        columns.window == window, columns.charge == charge
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return StoredAnswer(
        _entry(connection, window, row.position),
        None if row.answer is None else _answer(row.answer),
        None if row.salt is None else bytes(row.salt),
        int(row.leaves),
    )


def made_of(connection: Connection, window: str, charge: int) -> MadeOf | None:
    """Return what the answer to the charge at a position was made of; None if it is not stored."""
    columns = tables.generated.c
    query = select(columns.made_of).where(columns.window == window, columns.charge == charge)
    data = connection.scalar(query)
    return None if data is None else MadeOf.parse(bytes(data))


def put_answer(
    transaction: LogTransaction,
    live: OpenWindow,
    charge: StoredCharge,
    body: Generated | Void,
    salt: bytes,
    *,
    answer: AnyAnswer | None = None,
    salt_a: bytes | None = None,
    leaves: int = 0,
    made_of: MadeOf | None = None,
) -> None:
    """Append the answer to a charge, or its void, and store it in the same transaction.

    Args:
        charge: that ``body`` names.
        salt: of the leaf, 32 bytes.
        answer, salt_a: None of a void.
        leaves: Unix milliseconds before which nothing of it leaves.
        made_of: None where nothing is replayed.
    """
    position = transaction.append(body.KIND, salt, body.encode())
    # What the account is promised next must not seem to be of before (check 28).
    transaction.advance_time(charge.account, body.time)
    transaction.later(
        _INSERT_GENERATED,
        window=live.name,
        charge=body.charge,
        position=position,
        answer=None if answer is None else answer.encode(),
        salt=salt_a,
        leaves=leaves,
        made_of=None if made_of is None else made_of.encode(),
    )


def put_void(transaction: LogTransaction, live: OpenWindow, charge: StoredCharge, now: int) -> None:
    """Void a charge that has no answer; nothing happens to one that has.

    Args:
        charge: whose nonce, if it is an anchored account's, was never revealed.
        now: the clock's, Unix milliseconds.
    """
    place = charge.entry.index
    # An earlier run may have come so far.
    if answer_of_charge(transaction.connection, live.name, place) is None:
        salt = live.randomness.draw(SALT_BYTES, "void", live.name, place)
        time = transaction.next_time(charge.account, now)
        void = Void(live.name, charge.body.tenant, place, time)
        put_answer(transaction, live, charge, void, salt)


def unanswered(connection: Connection, window: str) -> list[int]:
    """Return the positions of the charges without an answer, in the log's order."""
    charge, generated = tables.charge.c, tables.generated.c
    same = (generated.window == charge.window) & (generated.charge == charge.position)
    query = (
        select(charge.position)
        .join_from(tables.charge, tables.generated, same, isouter=True)
        .where(charge.window == window, generated.charge.is_(None))
        .order_by(charge.position)
    )
    return [int(position) for position in connection.scalars(query)]


def _entry(connection: Connection, window: str, position: int) -> LoggedEntry:
    entry = entry_at(connection, window, position)
    return LoggedEntry(position, bytes(entry.salt), bytes(entry.body))


def _answer(data: bytes) -> AnyAnswer:
    answer: AnyAnswer = form_of(AnyAnswer).read(loads(data))
    return answer


def _positions(data: Any) -> Positions:
    return np.frombuffer(bytes(data), dtype=_WIDTH).astype(np.int64)
