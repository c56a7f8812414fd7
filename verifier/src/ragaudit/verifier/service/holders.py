"""Whose a submission is: what an account signed with the dispute key of its registration."""

from collections.abc import Sequence
from typing import Any

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.bodies import HeldBody
from ragaudit.ledger.messages.disputes import HolderStatement
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Registration
from ragaudit.verifier.service import handover
from ragaudit.verifier.service.database import Origin
from sqlalchemy import Connection


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

    Raises:
        MalformedRecord: not a holder's statement.
        RejectedError: of another log, of no registered account, or not signed with its dispute key
            for these documents.
    """
    if body.holder is None:
        return None
    statement = HolderStatement.from_json(body.holder)
    check_origin(statement.origin, policy)
    for registration in registrations(connection, origin, statement.pseudonym, shown):
        statement.verify(dispute_key(registration))
    statement.verify_documents(documents)
    return statement.pseudonym


def registrations(
    connection: Connection, origin: Origin, pseudonym: bytes, shown: Registration | None
) -> list[Registration]:
    """Return the registrations of an account: the one it shows, or as the provider gave them.

    An account that shows its own does not depend on the provider's handing entries over.

    Raises:
        RejectedError: there is none.
    """
    if shown is None:
        own = handover.registrations(connection, origin, pseudonym)
    else:
        own = [shown] if shown.pseudonym == pseudonym else []
    if not own:
        raise RejectedError(
            "no registration of this account is known",
            where="pseudonym",
            expected="its entry with an inclusion proof in member registration",
        )
    return own


def dispute_key(registration: Registration) -> PublicKey:
    """Return the registered dispute key; RejectedError if the account has none."""
    if registration.dispute_key is None:
        raise RejectedError("the account registered no dispute key", where="registration")
    return PublicKey.from_raw(registration.dispute_key)


def check_origin(origin: str, policy: Policy) -> None:
    """RejectedError if something signed names another log."""
    if origin != policy.origin:
        raise RejectedError("of another log", where="origin", expected=policy.origin)
