"""What an account signs with its dispute key: that a registration is its own, that it submits
receipts itself, that an answer is false (docs/spec/05-records.md §5.10)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ragaudit.client.errors import InvalidReply, StateConflict
from ragaudit.client.session import Session
from ragaudit.client.transport import Service
from ragaudit.client.verifier import SignedFor, SignsFor, VerifierService
from ragaudit.client.window import AccountState, Window
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.bodies import (
    CaseBody,
    DisputesBody,
    FindingBody,
    StatementBody,
    Submission,
)
from ragaudit.ledger.messages.disputes import (
    Dispute,
    Finding,
    HolderStatement,
    RegistrationStatement,
    file_digest,
)
from ragaudit.ledger.messages.promises import Refusal
from ragaudit.ledger.messages.public_halves import PublicHalf, query_index
from ragaudit.ledger.messages.shown_entries import RegistrationEntry

__all__ = [
    "Arbiter",
    "Holder",
    "dispute",
    "holder_of",
    "registration_proof",
    "registration_statement",
    "settle",
    "show_registration",
    "signs_for",
    "submit",
    "submit_refusal",
]

FINDINGS = "/v1/findings"  # of the arbiter, docs/spec/08-services.md §8.9


async def show_registration(session: Session, verifier: VerifierService) -> None:
    """Tell the verifier that the account's registration, with its chain, is its own.

    Without it the verdict counts the account as plain: whoever made a registration could have
    made the chain.

    Args:
        session: of the account.
        verifier: that is told.

    Raises:
        StateConflict: the account has no dispute key.
    """
    holder, origin = await holder_of(session), session.window.origin
    await verifier.tell(origin, "statements", registration_statement(holder, origin))


async def submit(
    session: Session, verifier: VerifierService, halves: Sequence[PublicHalf]
) -> Submission:
    """Give the verifier public halves; an account with a dispute key signs for its own.

    Such an account also tells the verifier that its registration is its own. Receipts without
    an inclusion proof go first: if the account's share has no room for all, the verifier has
    those that the log may lack.

    Args:
        session: of the account.
        verifier: that gets them.
        halves: of receipts of the window, of this account or of others.

    Returns:
        How many were new to the verifier, and how many it knew.
    """
    origin = (await session.opened()).origin
    if not session.signs:
        return await verifier.submit(origin, [half.to_json() for half in halves])
    await show_registration(session, verifier)
    holder = await holder_of(session)
    # A holder statement covers receipts of its own account only (spec 8.3).
    signs, mine = signs_for(holder, origin), holder.account.pseudonym
    own = [half for half in halves if half.pseudonym == mine]
    others = [half for half in halves if half.pseudonym != mine]
    replies = [
        await verifier.submit(origin, [half.to_json() for half in batch], signature)
        for batch, signature in (
            ([half for half in own if None in half.proofs], signs),
            ([half for half in own if None not in half.proofs], signs),
            (others, None),
        )
    ]
    return Submission.total(replies)


async def submit_refusal(
    session: Session, verifier: VerifierService, refusal: Mapping[str, Any]
) -> None:
    """Give the verifier a refusal; an account with a dispute key signs for its own.

    Args:
        session: of the account.
        verifier: that gets it.
        refusal: JSON, signed by the provider.

    Raises:
        MalformedRecord: not a refusal.
    """
    origin = (await session.opened()).origin
    pseudonym, signs = Refusal.from_json(refusal).pseudonym, None
    if session.signs:
        holder = await holder_of(session)
        # A signature under another account's refusal would be refused itself.
        if holder.account.pseudonym == pseudonym:
            signs = signs_for(holder, origin)
    await verifier.refuse(origin, [refusal], signs)


async def dispute(
    session: Session, verifier: VerifierService, receipt_file: Mapping[str, Any]
) -> Dispute:
    """Return a dispute of a receipt file, after sending it; the verifier learns the digest only.

    Args:
        session: of the account.
        verifier: that gets the dispute.
        receipt_file: JSON, as it was received.

    Raises:
        StateConflict: the account has no dispute key.
        MalformedRecord: the file has no public half to name.
    """
    holder = await holder_of(session)
    account = holder.account
    entry = Dispute.issue(holder.key, pseudonym=account.pseudonym, receipt_file=receipt_file)
    # With the registration: the verifier may not have it from the provider yet.
    body = DisputesBody((entry.to_json(),), holder.registration)
    await verifier.tell(session.window.origin, "disputes", body.to_json())
    return entry


@dataclass(frozen=True)
class Holder:
    """An account with what it needs to sign for itself.

    Attributes:
        key: its dispute key.
        account: as the provider showed it.
        registration: its log entry with an inclusion proof; None while there is none.
    """

    key: PrivateKey = field(repr=False)
    account: AccountState
    registration: RegistrationEntry | None


@dataclass(frozen=True)
class Arbiter:
    """The arbiter that a window's policy names, and the window that it judges by.

    Attributes:
        service: its calls.
        window: the window, as it is sent with each case.
    """

    service: Service
    window: Window

    async def judge(self, receipt_file: Mapping[str, Any]) -> tuple[Finding, FindingBody]:
        """Return the finding about a receipt file, with the half that the verifier needs of it.

        Args:
            receipt_file: both halves, JSON.

        Raises:
            StateConflict: the policy names no arbiter.
            InvalidReply: not a finding of the policy's arbiter about this file.
        """
        key = self.window.view.policy.keys.arbiter
        if key is None:
            raise StateConflict("the policy names no arbiter", where=self.window.name)
        # The arbiter believes the window as far as the verifier's countersignature goes (spec 8.9).
        case = CaseBody(dict(receipt_file), self.window.shown.to_json())
        reply = await self.service.post(FINDINGS, case.to_json(), repeatable=True)
        where = self.service.base_url + FINDINGS
        try:
            body = FindingBody.from_json(reply)
            finding = Finding.from_json(body.finding)
            # The key is the policy's: a reply does not say who may judge.
            finding.verify(key)
        except RagauditError as error:
            raise InvalidReply(f"no finding of the arbiter: {error.what}", where=where) from error
        about = finding.origin, finding.file_digest
        # A finding of another case is rightly signed, too.
        if about != (self.window.origin, file_digest(receipt_file)):
            raise InvalidReply("a finding about another file", where=where)
        return finding, body


async def settle(
    origin: str,
    verifier: VerifierService,
    receipt_file: Mapping[str, Any],
    arbiter: Arbiter | None = None,
) -> Mapping[str, Any]:
    """Show a disputed receipt file to the verifier, or to the arbiter if its query was sampled.

    The verifier must not see the file of a sampled query: it gets the arbiter's finding.

    Args:
        origin: of the window's log.
        verifier: that has the dispute.
        receipt_file: both halves, JSON.
        arbiter: None if there is none to ask.

    Returns:
        ``sampled``, and the ``step`` that fails (0: none does, None: this file was not judged, as
        far as the verifier can say).

    Raises:
        MalformedRecord: the file names no record.
        StateConflict, InvalidReply: as `Arbiter.judge`.
    """
    index = query_index(receipt_file)
    status = await verifier.standing(origin, index)
    # The verifier has the noise of a sampled record: the file beside it would tell of scores.
    if not status.sampled:
        return (await verifier.show(origin, index, receipt_file)).to_json()
    # Upheld already, or nobody to ask. What was dismissed may be another file of this query, which
    # anybody may have disputed so that this one is never judged.
    if arbiter is None or status.step:
        return replace(status, step=status.step or None).to_json()
    finding, body = await arbiter.judge(receipt_file)
    await verifier.tell(origin, "findings", body.to_json())
    return replace(status, step=finding.step).to_json()


async def holder_of(session: Session) -> Holder:
    """Return the registered account with its dispute key.

    The registration is the one that was checked and kept before the account asked: what the
    provider shows of it later keeps nothing from the verifier.

    Args:
        session: of the account; it is registered if it was not.

    Raises:
        StateConflict: the account has no dispute key.
    """
    account = await session.register()
    if session.keys is None:
        raise StateConflict(
            "this client has no dispute key", expected="dispute_key= of the account, or state_dir="
        )
    # From the disk: a provider that withholds the proof now cannot take this one back.
    kept = session.state
    entry = None if kept is None else await asyncio.to_thread(kept.registration)
    proof = registration_proof(entry or account.registration)
    return Holder(session.keys.dispute_key, account, proof)


def signs_for(holder: Holder, origin: str) -> SignsFor:
    """Return a function that adds the holder's statement and registration to a request.

    Args:
        holder: who signs.
        origin: of the window's log; a signature holds for that window only.
    """

    def members(documents: Sequence[Mapping[str, Any]]) -> SignedFor:
        statement = HolderStatement.issue(
            holder.key, origin=origin, pseudonym=holder.account.pseudonym, documents=documents
        )
        return statement.to_json(), holder.registration

    return members


def registration_statement(holder: Holder, origin: str) -> dict[str, Any]:
    """Return the body that tells the verifier that a registration is the holder's own.

    Args:
        holder: who signs.
        origin: of the window's log.
    """
    account = holder.account
    statement = RegistrationStatement(
        origin=origin, pseudonym=account.pseudonym, anchor=account.anchor
    ).signed(holder.key)
    return StatementBody(statement.to_json(), holder.registration).to_json()


def registration_proof(entry: RegistrationEntry | None) -> RegistrationEntry | None:
    """Return a registration's entry with its inclusion proof; None while there is none.

    Args:
        entry: as the provider showed it; its proof was checked, or is the verifier's to check.
    """
    return None if entry is None or entry.proof is None else entry
