"""What anyone may submit, as stored, and whose it is: receipts, refusals, claims, statements.

A submission has a position (a leaf index, a counter, a size) and an identity, a digest of what it
says: never a signature, as a signer can sign one statement in as many ways as it likes. What has
both in common is the same submission. Two that differ at one place prove all that there is to
prove, so no more are kept; and each account has a share of the space, which no other account fills.
What an account signed for with the dispute key of its registration is held by it.

The space that is taken is summed as submissions come and go: each asks whether there is room for
one more, and adding up the documents, or the accounts, every time would take quadratic time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.log.database import Rows
from ragaudit.ledger.messages.bodies import HeldBody
from ragaudit.ledger.messages.disputes import HolderStatement
from ragaudit.ledger.messages.entries import Registration
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import (
    MAX_CLAIM_BYTES,
    MAX_SUBMITTED_BYTES,
    least_share,
)
from ragaudit.verifier.service import handover, tables
from ragaudit.verifier.service.database import Origin, Transaction
from ragaudit.verifier.service.errors import CapReached
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

_space = tables.submission_space

EVERYBODY = b"*"  # no pseudonym, which has 32 bytes


def taken_space(connection: Connection, window: Origin, kind: str, account: bytes) -> int:
    """Return the bytes of the documents of a kind.

    Args:
        account: whose they are; `EVERYBODY` for all together.
    """
    query = select(_space.c.bytes).where(
        _space.c.window == window, _space.c.kind == str(kind), _space.c.account == account
    )
    return int(connection.scalar(query) or 0)


def add_space(connection: Connection, window: Origin, kind: str, account: bytes, size: int) -> None:
    """Count a document that came, or one that went.

    Args:
        connection: of a writing transaction, of which there is one at a time.
        size: of the document, bytes; below 0 for one that went.
    """
    of_kind = (_space.c.window == window) & (_space.c.kind == str(kind))
    for counted in (account, EVERYBODY):
        own = of_kind & (_space.c.account == counted)
        more = update(_space).where(own).values(bytes=_space.c.bytes + size)
        if not connection.execute(more).rowcount:
            row = {"window": window, "kind": str(kind), "account": counted, "bytes": size}
            connection.execute(insert(_space).values(row))


def forget_space(connection: Connection, window: Origin, kind: str) -> None:
    """Count none any more: all documents of a kind went."""
    gone = (_space.c.window == window) & (_space.c.kind == str(kind))
    connection.execute(delete(_space).where(gone))


class Kind(StrEnum):
    """What is submitted, as it is stored and named in errors."""

    RECEIPT = "receipt"
    REFUSAL = "refusal"
    CLAIM = "claim"
    STATEMENT = "statement"
    UNCOSIGNED = "uncosigned"  # a receipt with a proof under a checkpoint that was not cosigned


CONTRADICTORY = frozenset({Kind.RECEIPT, Kind.CLAIM, Kind.UNCOSIGNED})  # two at one place
LEAST_SHARE_BYTES: Final = 2**14
"""With less for each, a window has more slots than a verifier takes: two claims have to fit."""
POOL_BYTES: Final = 240 * 2**20
"""Of a kind, divided among the accounts of a window where that gives them more than the least."""
MAX_UNCOSIGNED_BYTES: Final = 15 * 2**20
"""As `POOL_BYTES`, of receipts under checkpoints that were not cosigned: these come beside others
and are in one item of the evidence with them."""
LEAST_UNCOSIGNED_BYTES: Final = 2**12
"""Of an account: a receipt with its proof takes about 3 kB."""
NOBODY = b""  # whose account V does not know


@dataclass(frozen=True)
class Submission:
    """A checked submission.

    Attributes:
        document: canonical JSON.
        account: the pseudonym that it is about, if V knows its registration; `NOBODY` otherwise.
        held: whether that account signed for it.
    """

    kind: Kind
    position: int
    identity: bytes
    document: bytes
    account: bytes = NOBODY
    held: bool = False


@dataclass(frozen=True, order=True)
class Place:
    """Where a submission stands, without its document; ordered by position and identity.

    Attributes:
        received: when it was taken, Unix milliseconds.
    """

    position: int
    identity: bytes
    received: int


_SUBMISSIONS = Rows(Submission, tables.submission)
_PLACES = Rows(Place, tables.submission)
_table = tables.submission
_ROWS = 100  # read at a time: a document may have 16 MiB


def put(transaction: Transaction, window: Origin, submission: Submission) -> bool:
    """Store a submission unless it is known, or a third at its place: docs/spec 8.8.

    Those that their account signed for are counted apart at a place: no others keep them out.

    Returns:
        Whether it is stored now and was not before.
    """
    if stored(transaction.connection, window, submission) is not None:
        return False
    if submission.kind in CONTRADICTORY and _rivals(transaction.connection, window, submission) > 1:
        return False
    connection = transaction.connection
    _SUBMISSIONS.insert(connection, submission, window=window, received=transaction.now)
    size = len(submission.document)
    add_space(connection, window, submission.kind, submission.account, size)
    return True


def make_room(transaction: Transaction, window: Origin, submission: Submission, share: int) -> None:
    """Remove an account's submissions of lower positions, lowest first, until one more fits.

    For claims: who shows the nonce of a query was given it by the account, which reveals none
    before it has the answers to all queries before. So the claim that matters is of the last
    query, and the provider, who can claim every answered one, must not fill the share with them.

    Args:
        submission: a claim that is not stored.
        share: bytes that claims of one account may take.
    """
    connection, kind, account = transaction.connection, submission.kind, submission.account
    excess = taken_space(connection, window, kind, account) + len(submission.document) - share
    if excess <= 0:
        return
    own = _of(window, kind) & (_table.c.account == account)
    query = select(_table.c.position, func.sum(func.length(_table.c.document))).where(
        own & (_table.c.position < submission.position)
    )
    for position, size in connection.execute(
        query.group_by(_table.c.position).order_by(_table.c.position)
    ).all():
        if excess <= 0:
            return
        connection.execute(delete(_table).where(own & (_table.c.position == position)))
        add_space(connection, window, kind, account, -size)
        excess -= size


def hold(transaction: Transaction, window: Origin, batch: Sequence[Submission], share: int) -> None:
    """Make room for what an account signed for: of its share, it has as much as it wants.

    Whoever made an account's receipts and refusals, the provider, can submit them too, true ones
    until there is no room for one that is false. What the account did not sign for gives way, the
    latest first; what it signs for and is stored already counts as signed for from now on.

    Args:
        batch: of one kind and of one account, all `held`.
        share: bytes that submissions of this kind and of one account may take.
    """
    connection, kind, account = transaction.connection, batch[0].kind, batch[0].account
    new = 0
    for submission in batch:
        same = _same(window, submission)
        found = select(_table.c.account, func.length(_table.c.document)).where(same)
        known = connection.execute(found).one_or_none()
        if known is None:
            new += len(submission.document)
            continue
        before, stored_size = known
        connection.execute(update(_table).where(same).values(held=True, account=account))
        add_space(connection, window, kind, before, -stored_size)
        add_space(connection, window, kind, account, stored_size)
    excess = taken_space(connection, window, kind, account) + new - share
    if excess <= 0:
        return
    own = _of(window, kind) & (_table.c.account == account)
    query = select(_table.c.position, _table.c.identity, func.length(_table.c.document))
    others = query.where(own & ~_table.c.held).order_by(_table.c.received.desc(), _table.c.identity)
    for position, identity, size in connection.execute(others).all():
        if excess <= 0:
            return
        place = (_table.c.position == position) & (_table.c.identity == identity)
        connection.execute(delete(_table).where(own & place))
        add_space(connection, window, kind, account, -size)
        excess -= size


def stored(connection: Connection, window: Origin, submission: Submission) -> bytes | None:
    """Return the stored document of the same submission, or None."""
    query = select(_table.c.document).where(_same(window, submission))
    document: bytes | None = connection.scalar(query)
    return document


def places(connection: Connection, window: Origin, kind: Kind) -> list[Place]:
    """Return the place of every submission of a kind, rising."""
    return sorted(_PLACES.all(connection, _PLACES.select(_of(window, kind))))


def documents(connection: Connection, window: Origin, kind: Kind) -> Iterator[bytes]:
    """Yield the documents of a kind by rising position and identity, read some at a time."""
    query = select(_table.c.document).where(_of(window, kind))
    ordered = query.order_by(_table.c.position, _table.c.identity)
    return iter(connection.scalars(ordered.execution_options(yield_per=_ROWS)))


def page(
    connection: Connection, window: Origin, kind: Kind, after: bytes, most: int
) -> tuple[list[bytes], bytes | None]:
    """Return documents of a kind by rising identity, from the first one above ``after``.

    Args:
        most: bytes that they have together; a single one may have more.
        after: identity of the last document of the page before; empty for the first page.

    Returns:
        The documents, and the identity of the last one where more follow, else None.
    """
    rest = _of(window, kind) & (_table.c.identity > after)
    size = func.length(_table.c.document)
    held, last, more = 0, after, False
    sizes = select(_table.c.identity, size).where(rest).order_by(_table.c.identity)
    for identity, length in connection.execute(sizes):
        # The first is taken at any size: a page without documents would be asked for again.
        if last != after and held + length > most:
            more = True
            break
        held, last = held + length, identity
    chosen = rest & (_table.c.identity <= last)
    query = select(_table.c.document).where(chosen).order_by(_table.c.identity)
    return list(connection.scalars(query)), last if more else None


def count(connection: Connection, window: Origin, kind: Kind) -> int:
    """Return how many submissions of a kind a window holds."""
    query = select(func.count()).select_from(_table).where(_of(window, kind))
    return int(connection.execute(query).scalar_one())


def check_cap(connection: Connection, window: Origin, kind: Kind, cap: int) -> None:
    """Check what all documents of a kind take.

    Raises:
        CapReached: they exceed ``cap`` bytes.
    """
    if taken_space(connection, window, kind, EVERYBODY) > cap:
        raise CapReached(f"too many {kind}s", where=window, expected=f"at most {cap} bytes in all")


def check_share(
    connection: Connection, window: Origin, kind: Kind, account: bytes, share: int
) -> None:
    """Check what an account's documents of a kind take.

    Args:
        account: a pseudonym, or `NOBODY` for all strangers together.

    Raises:
        CapReached: they exceed its ``share``, in bytes.
    """
    if taken_space(connection, window, kind, account) > share:
        whose = account.hex() or "accounts that are not registered"
        raise CapReached(f"too many {kind}s", where=whose, expected=f"at most {share} bytes")


@dataclass(frozen=True)
class Room:
    """What the documents of a kind may take in a window, bytes; nothing of it is set aside.

    Attributes:
        share: of each account, which no other account fills; strangers have one together.
        all: together.
    """

    share: int
    all: int

    @classmethod
    def of(cls, limit: int, slots: int) -> Self:
        """Return the room of a kind in a window: docs/spec 8.8.

        Args:
            limit: of the verifier's settings.
            slots: of the policy.
        """
        shares = slots + 1  # one is of all strangers together
        share = min(limit // shares, max(POOL_BYTES // shares, least_share(slots)))
        return cls(share, share * shares)

    @classmethod
    def of_uncosigned(cls, slots: int) -> Self:
        """Return the room of receipts under checkpoints that were not cosigned, likewise."""
        share = max(MAX_UNCOSIGNED_BYTES // (slots + 1), LEAST_UNCOSIGNED_BYTES)
        return cls(share, share * (slots + 1))


def fits(connection: Connection, window: Origin, submission: Submission, room: Room) -> bool:
    """Return whether there is room for one more document."""
    kind, size = submission.kind, len(submission.document)
    own = taken_space(connection, window, kind, submission.account)
    taken = taken_space(connection, window, kind, EVERYBODY)
    return own + size <= room.share and taken + size <= room.all


def most_slots(limit: int) -> int:
    """Return for how many slots of a policy there is room, each with its least share.

    Args:
        limit: of the verifier's settings.
    """
    # Of a verifier that takes less, nobody could know that its shares are smaller.
    least = LEAST_SHARE_BYTES if limit >= MAX_SUBMITTED_BYTES else 2 * MAX_CLAIM_BYTES
    return limit // least - 1


def claimed(connection: Connection, window: Origin, account: bytes, counter: int) -> bool:
    """Return whether there is a claim for this query of an account.

    Args:
        account: the pseudonym.
        counter: of the query, from 0.
    """
    place = (_table.c.account == account) & (_table.c.position == counter)
    query = select(func.count()).select_from(_table).where(_of(window, Kind.CLAIM) & place)
    return bool(connection.execute(query).scalar_one())


def holder(
    connection: Connection,
    origin: Origin,
    policy: Policy,
    body: HeldBody,
    documents: Sequence[Any],
    shown: Registration | None,
) -> bytes | None:
    """Return the pseudonym of the account that signed for a request's documents; None if none did.

    Args:
        shown: the account's registration, if it came with the request.
        documents: as they were submitted, in their order: that is what was signed (5.10).

    Raises:
        MalformedRecord: not a holder's statement.
        RejectedError: of another log, of no registered account, or not signed with its dispute key
            for these documents.
    """
    if body.holder is None:
        return None
    statement = HolderStatement.from_json(body.holder)
    check_origin(statement.origin, policy)
    # Under each: of a pseudonym that is registered twice nobody can say which key is its own.
    for registration in registrations(connection, origin, statement.pseudonym, shown):
        statement.verify(dispute_key(registration))
    statement.verify_documents(documents)
    return statement.pseudonym


def registrations(
    connection: Connection, origin: Origin, pseudonym: bytes, shown: Registration | None
) -> list[Registration]:
    """Return the registrations of an account: the one it shows, or as the provider gave them.

    An account that shows its own does not depend on the provider's handing entries over.

    Args:
        shown: the registration that came with the request and was proven (`Handover.shown`).

    Raises:
        RejectedError: there is none.
    """
    if shown is None:
        own = handover.registrations(connection, origin, pseudonym)
    else:
        # For itself only: with another's registration nobody signs for this account.
        own = [shown] if shown.pseudonym == pseudonym else []
    if not own:
        raise RejectedError(
            "no registration of this account is known",
            where="pseudonym",
            expected="its entry with an inclusion proof in member registration",
        )
    return own


def dispute_key(registration: Registration) -> PublicKey:
    """Return the registered dispute key.

    Raises:
        RejectedError: the account has none.
    """
    if registration.dispute_key is None:
        raise RejectedError("the account registered no dispute key", where="registration")
    return PublicKey.from_raw(registration.dispute_key)


def check_origin(origin: str, policy: Policy) -> None:
    """Check that something signed names the log of ``policy``.

    Raises:
        RejectedError: it names another one.
    """
    if origin != policy.origin:
        raise RejectedError("of another log", where="origin", expected=policy.origin)


def _rivals(connection: Connection, window: Origin, submission: Submission) -> int:
    place = (_table.c.account == submission.account) & (_table.c.position == submission.position)
    place &= _table.c.held == submission.held
    query = select(func.count()).select_from(_table).where(_of(window, submission.kind) & place)
    return int(connection.execute(query).scalar_one())


def _of(window: Origin, kind: Kind) -> ColumnElement[bool]:
    return (_table.c.window == window) & (_table.c.kind == kind)


def _same(window: Origin, submission: Submission) -> ColumnElement[bool]:
    named = (_table.c.position == submission.position) & (_table.c.identity == submission.identity)
    return _of(window, submission.kind) & named
