"""Rows of what anyone may submit: receipts, refusals, claims, statements, as canonical JSON.

A submission has a position (a leaf index, a counter, a size) and an identity, a digest of what it
says: never a signature, as a signer can sign one statement in as many ways as it likes. What has
both in common is the same submission. Two that differ at one place prove all that there is to
prove, so no more are kept; and each account has a share of the space, which no other account fills.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ragaudit.ledger.messages.promises import MAX_CLAIM_BYTES
from ragaudit.verifier.service.database import Origin, Transaction
from ragaudit.verifier.service.database import submissions as table
from ragaudit.verifier.service.errors import CapReached
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

RECEIPT, REFUSAL, CLAIM, STATEMENT = "receipt", "refusal", "claim", "statement"
UNCOSIGNED = "uncosigned"  # receipts with a proof under a checkpoint that was not cosigned

CONTRADICTORY = frozenset({RECEIPT, CLAIM, UNCOSIGNED})  # two at one place contradict each other
LEAST_SHARE_BYTES = 2 * MAX_CLAIM_BYTES  # two claims for one query prove all there is to prove
NOBODY = b""  # whose account V does not know


@dataclass(frozen=True)
class Submission:
    """A checked submission; ``document`` is canonical JSON.

    Attributes:
        account: the pseudonym that it is about, if V knows its registration; `NOBODY` otherwise.
        held: whether that account signed for it.
    """

    kind: str
    position: int
    identity: bytes
    document: bytes
    account: bytes = NOBODY
    held: bool = False


def put(transaction: Transaction, window: Origin, submission: Submission) -> bool:
    """Store a submission unless it is known, or a third at its place; returns whether it was.

    Those that their account signed for are counted apart at a place: no others keep them out.
    """
    if stored(transaction.connection, window, submission) is not None:
        return False
    if submission.kind in CONTRADICTORY and _rivals(transaction.connection, window, submission) > 1:
        return False
    row = {
        "window": window,
        "kind": submission.kind,
        "position": submission.position,
        "identity": submission.identity,
        "account": submission.account,
        "held": submission.held,
        "received": transaction.now,
        "document": submission.document,
    }
    transaction.connection.execute(insert(table).values(row))
    return True


def make_room(transaction: Transaction, window: Origin, submission: Submission, share: int) -> None:
    """Remove an account's submissions of lower positions, lowest first, until one more fits.

    For claims: who shows the nonce of a query was given it by the account, which reveals none
    before it has the answers to all queries before. So the claim that matters is of the last
    query, and the provider, who can claim every answered one, must not fill the share with them.
    """
    connection = transaction.connection
    own = _of(window, submission.kind) & (table.c.account == submission.account)
    excess = _bytes(connection, own) + len(submission.document) - share
    query = select(table.c.position, func.sum(func.length(table.c.document))).where(
        own & (table.c.position < submission.position)
    )
    for position, size in connection.execute(
        query.group_by(table.c.position).order_by(table.c.position)
    ).all():
        if excess <= 0:
            return
        connection.execute(delete(table).where(own & (table.c.position == position)))
        excess -= size


def hold(transaction: Transaction, window: Origin, batch: Sequence[Submission], share: int) -> None:
    """Make room for what an account signed for: of its share, it has as much as it wants.

    Whoever made an account's receipts and refusals, the provider, can submit them too, true ones
    until there is no room for one that is false. What the account did not sign for gives way, the
    latest first; what it signs for and is stored already counts as signed for from now on.

    Args:
        batch: of one kind and of one account, all `held`.
    """
    connection = transaction.connection
    new = [each for each in batch if stored(connection, window, each) is None]
    for each in batch:
        mine = {"held": True, "account": each.account}
        connection.execute(update(table).where(_same(window, each) & ~table.c.held).values(mine))
    own = _of(window, batch[0].kind) & (table.c.account == batch[0].account)
    excess = _bytes(connection, own) + sum(len(each.document) for each in new) - share
    query = select(table.c.position, table.c.identity, func.length(table.c.document))
    others = query.where(own & ~table.c.held).order_by(table.c.received.desc(), table.c.identity)
    for position, identity, size in connection.execute(others).all():
        if excess <= 0:
            return
        place = (table.c.position == position) & (table.c.identity == identity)
        connection.execute(delete(table).where(own & place))
        excess -= size


def stored(connection: Connection, window: Origin, submission: Submission) -> bytes | None:
    """The stored document of the same submission."""
    query = select(table.c.document).where(_same(window, submission))
    document = connection.execute(query).scalar_one_or_none()
    return None if document is None else bytes(document)


def identities(connection: Connection, window: Origin, kind: str) -> list[tuple[int, bytes]]:
    """(position, identity) of every submission of a kind, rising."""
    query = select(table.c.position, table.c.identity).where(_of(window, kind))
    found = connection.execute(query)
    return sorted((position, bytes(identity)) for position, identity in found)


def documents(connection: Connection, window: Origin, kind: str) -> list[bytes]:
    """The documents of a kind by rising position and identity."""
    query = select(table.c.position, table.c.identity, table.c.document).where(_of(window, kind))
    found = [
        (row.position, bytes(row.identity), bytes(row.document))
        for row in connection.execute(query)
    ]
    return [document for _, _, document in sorted(found)]


def page(
    connection: Connection, window: Origin, kind: str, after: bytes, most: int
) -> tuple[list[bytes], bytes | None]:
    """Documents of a kind by rising identity, from the first one above ``after``.

    Args:
        most: bytes that they have together; a single one may have more.

    Returns:
        The documents, and the identity of the last one where more follow, else None.
    """
    rest = _of(window, kind) & (table.c.identity > after)
    size = func.length(table.c.document)
    held, last, more = 0, after, False
    sizes = select(table.c.identity, size).where(rest).order_by(table.c.identity)
    for identity, length in connection.execute(sizes):
        if last != after and held + length > most:
            more = True
            break
        held, last = held + length, bytes(identity)
    chosen = rest & (table.c.identity <= last)
    query = select(table.c.document).where(chosen).order_by(table.c.identity)
    found = [bytes(document) for document in connection.execute(query).scalars()]
    return found, last if more else None


def count(connection: Connection, window: Origin, kind: str) -> int:
    """How many submissions of a kind a window holds."""
    query = select(func.count()).select_from(table).where(_of(window, kind))
    return int(connection.execute(query).scalar_one())


def check_cap(connection: Connection, window: Origin, kind: str, cap: int) -> None:
    """CapReached if the documents of a kind exceed ``cap`` bytes in all."""
    if _bytes(connection, _of(window, kind)) > cap:
        raise CapReached(f"too many {kind}s", where=window, expected=f"at most {cap} bytes in all")


def check_share(
    connection: Connection, window: Origin, kind: str, account: bytes, share: int
) -> None:
    """CapReached if an account's documents of a kind exceed its ``share``, in bytes."""
    if _bytes(connection, _of(window, kind) & (table.c.account == account)) > share:
        whose = account.hex() or "accounts that are not registered"
        raise CapReached(f"too many {kind}s", where=whose, expected=f"at most {share} bytes")


def fits(
    connection: Connection, window: Origin, submission: Submission, share: int, cap: int
) -> bool:
    """Whether one more document keeps within its account's ``share`` and within ``cap``."""
    kind, size = _of(window, submission.kind), len(submission.document)
    own = kind & (table.c.account == submission.account)
    return _bytes(connection, own) + size <= share and _bytes(connection, kind) + size <= cap


def share(cap: int, slots: int) -> int:
    """Bytes of ``cap`` that each of a window's accounts has to itself."""
    return cap // (slots + 1)  # one is of all strangers together


def received(connection: Connection, window: Origin, kind: str) -> dict[bytes, int]:
    """When each submission of a kind was taken (Unix milliseconds), by identity."""
    query = select(table.c.identity, table.c.received).where(_of(window, kind))
    return {bytes(row.identity): row.received for row in connection.execute(query)}


def claimed(connection: Connection, window: Origin, account: bytes, counter: int) -> bool:
    """Whether there is a claim for this query of an account."""
    place = (table.c.account == account) & (table.c.position == counter)
    query = select(func.count()).select_from(table).where(_of(window, CLAIM) & place)
    return bool(connection.execute(query).scalar_one())


def _rivals(connection: Connection, window: Origin, submission: Submission) -> int:
    place = (table.c.account == submission.account) & (table.c.position == submission.position)
    place &= table.c.held == submission.held
    query = select(func.count()).select_from(table).where(_of(window, submission.kind) & place)
    return int(connection.execute(query).scalar_one())


def _bytes(connection: Connection, condition: ColumnElement[bool]) -> int:
    query = select(func.sum(func.length(table.c.document))).where(condition)
    return int(connection.execute(query).scalar_one() or 0)


def _of(window: Origin, kind: str) -> ColumnElement[bool]:
    return (table.c.window == window) & (table.c.kind == kind)


def _same(window: Origin, submission: Submission) -> ColumnElement[bool]:
    named = (table.c.position == submission.position) & (table.c.identity == submission.identity)
    return _of(window, submission.kind) & named
