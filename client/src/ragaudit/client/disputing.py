"""What an account signs with its dispute key: that a registration is its own, that an answer is
false (docs/spec/05-records.md §5.10)."""

from collections.abc import Mapping
from typing import Any

from ragaudit.client.errors import StateConflict
from ragaudit.client.registration import AccountState
from ragaudit.client.session import Session
from ragaudit.client.verifier import VerifierService
from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.disputes import Dispute, RegistrationStatement

__all__ = ["dispute", "registration_proof", "settle", "show_registration"]


async def show_registration(session: Session, verifier: VerifierService) -> None:
    """Tell the verifier that the account's registration, with its chain, is its own.

    Without it the verdict counts the account as plain: whoever made a registration could have
    made the chain.

    Raises:
        StateConflict: the account has no dispute key.
    """
    account = await session.register()
    statement = RegistrationStatement.issue(
        _keys(session).dispute_key,
        origin=session.window.origin,
        pseudonym=account.pseudonym,
        anchor=account.anchor,
    )
    body = {"statement": statement.to_json(), "registration": registration_proof(account)}
    await verifier.tell(session.window.origin, "statements", body)


async def dispute(
    session: Session, verifier: VerifierService, receipt_file: Mapping[str, Any]
) -> Dispute:
    """Dispute a receipt file, of which the verifier learns the digest only.

    Raises:
        StateConflict: the account has no dispute key.
        MalformedRecord: the file has no public half to name.
    """
    account = await session.register()
    made = Dispute.issue(
        _keys(session).dispute_key, pseudonym=account.pseudonym, receipt_file=receipt_file
    )
    body = {"disputes": [made.to_json()], "registration": registration_proof(account)}
    await verifier.tell(session.window.origin, "disputes", body)
    return made


async def settle(
    origin: str, verifier: VerifierService, receipt_file: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Show a disputed receipt file to the verifier if, and only if, its record was not sampled.

    Returns:
        ``sampled``, and ``step``, which fails (0: none does, None: not judged). Of a sampled
        record the verifier must not see the file: take it to the arbiter.
    """
    index = receipt_file["public"]["index"]
    standing = await verifier.standing(origin, index)
    if standing["sampled"]:
        return standing
    return await verifier.show(origin, index, receipt_file)


def _keys(session: Session) -> Any:
    if session.keys is None:
        raise StateConflict("the account has no dispute key", expected="state_dir=")
    return session.keys


def registration_proof(account: AccountState) -> dict[str, Any] | None:
    """Return the registration's entry with its inclusion proof; None while there is none."""
    entry = account.registration
    if entry is None or entry.proof is None:
        return None
    return {
        "index": entry.index,
        "salt": hex_encode(entry.salt),
        "body": hex_encode(entry.body),
        "proof": entry.proof,
    }
