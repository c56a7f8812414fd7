"""What an account signs with its dispute key: that a registration is its own, that an answer is
false (docs/spec/05-records.md §5.10)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragaudit.client.errors import InvalidReply, StateConflict
from ragaudit.client.registration import AccountState
from ragaudit.client.session import Session
from ragaudit.client.transport import Service
from ragaudit.client.verifier import VerifierService
from ragaudit.client.window import Window
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.disputes import Dispute, Finding, RegistrationStatement, file_digest

__all__ = [
    "Arbiter",
    "Holder",
    "dispute",
    "registration_proof",
    "registration_statement",
    "settle",
    "show_registration",
]

FINDINGS = "/v1/findings"  # of the arbiter, docs/spec/08-services.md §8.9


async def show_registration(session: Session, verifier: VerifierService) -> None:
    """Tell the verifier that the account's registration, with its chain, is its own.

    Without it the verdict counts the account as plain: whoever made a registration could have
    made the chain.

    Raises:
        StateConflict: the account has no dispute key.
    """
    account, origin = await session.register(), session.window.origin
    holder = Holder(_keys(session).dispute_key, account)
    await verifier.tell(origin, "statements", registration_statement(holder, origin))


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


@dataclass(frozen=True)
class Holder:
    """An account as far as it signs for itself: its dispute key and its registration."""

    key: PrivateKey = field(repr=False)
    account: AccountState


@dataclass(frozen=True)
class Arbiter:
    """The arbiter that a window's policy names, and the window that it judges by."""

    service: Service
    window: Window

    async def judge(self, receipt_file: Mapping[str, Any]) -> tuple[Finding, Mapping[str, Any]]:
        """Return the finding about a receipt file, and the reply, which is for the verifier.

        Raises:
            StateConflict: the policy names no arbiter.
            InvalidReply: not a finding of the policy's arbiter about this file.
        """
        key = self.window.view.policy.keys.arbiter
        if key is None:
            raise StateConflict("the policy names no arbiter", where=self.window.name)
        case = {"file": receipt_file, "window": self.window.shown}
        reply = await self.service.post(FINDINGS, case, repeatable=True)
        where = self.service.base_url + FINDINGS
        try:
            finding = Finding.from_json(reply.get("finding") if isinstance(reply, dict) else None)
            finding.verify_signature(key)
        except RagauditError as error:
            raise InvalidReply(f"no finding of the arbiter: {error.what}", where=where) from error
        if (finding.origin, finding.file_digest) != (
            self.window.origin,
            file_digest(receipt_file),
        ):
            raise InvalidReply("a finding about another file", where=where)
        return finding, reply


async def settle(
    origin: str,
    verifier: VerifierService,
    receipt_file: Mapping[str, Any],
    arbiter: Arbiter | None = None,
) -> Mapping[str, Any]:
    """Show a disputed receipt file to the verifier, or to the arbiter if its record was sampled.

    Of a sampled record the verifier must not see the file: it gets the arbiter's finding.

    Returns:
        ``sampled``, and ``step``, which fails (0: none does, None: not judged).

    Raises:
        StateConflict, InvalidReply: as `Arbiter.judge`.
    """
    index = receipt_file["public"]["index"]
    standing = await verifier.standing(origin, index)
    if not standing["sampled"]:
        return await verifier.show(origin, index, receipt_file)
    if arbiter is None or standing["step"] is not None:
        return standing
    finding, reply = await arbiter.judge(receipt_file)
    await verifier.tell(origin, "findings", reply)
    return {**standing, "step": finding.step}


def _keys(session: Session) -> Any:
    if session.keys is None:
        raise StateConflict("the account has no dispute key", expected="state_dir=")
    return session.keys


def registration_statement(holder: Holder, origin: str) -> dict[str, Any]:
    """Return the body that tells the verifier that a registration is the holder's own."""
    account = holder.account
    statement = RegistrationStatement.issue(
        holder.key, origin=origin, pseudonym=account.pseudonym, anchor=account.anchor
    )
    return {"statement": statement.to_json(), "registration": registration_proof(account)}


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
