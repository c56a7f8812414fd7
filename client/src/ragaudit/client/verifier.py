"""What an account tells the verifier, and the arbiter: receipts, claims, disputes.

What an account says there of itself it signs with its dispute key: that a registration is its own,
that it submits receipts itself, that an answer is false (docs/spec/05-records.md §5.10).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ragaudit.client.errors import InvalidReply, StateConflict
from ragaudit.client.transport import Service
from ragaudit.client.window import AccountState, Window
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.checkpoints import verify_checkpoint
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.messages.bodies import (
    MAX_BATCH,
    CaseBody,
    ClaimBody,
    DisputesBody,
    FindingBody,
    ReceiptsBody,
    RefusalsBody,
    StatementBody,
    Submission,
)
from ragaudit.ledger.messages.disputes import (
    Dispute,
    DisputeStatus,
    Finding,
    HolderStatement,
    RegistrationStatement,
    file_digest,
)
from ragaudit.ledger.messages.identifiers import read_origin
from ragaudit.ledger.messages.promises import Claim, Refusal
from ragaudit.ledger.messages.receipts import PublicPart, query_index
from ragaudit.ledger.messages.shown import RegistrationEntry, ShownKeys

__all__ = ["Arbiter", "Holder", "VerifierService"]

FINDINGS = "/v1/findings"  # of the arbiter, docs/spec/08-services.md §8.9
Json = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Holder:
    """An account with what it needs to sign for itself.

    Attributes:
        key: its dispute key.
        account: as the provider showed it.
        registration: its log entry; None while there is none.
    """

    key: PrivateKey = field(repr=False)
    account: AccountState
    registration: RegistrationEntry | None

    @property
    def proven(self) -> RegistrationEntry | None:
        """The registration with its inclusion proof; None while there is none.

        The proof was checked, or is the verifier's to check.
        """
        entry = self.registration
        return None if entry is None or entry.proof is None else entry

    def signs(self, origin: str, documents: Sequence[Json]) -> dict[str, Any]:
        """Return the statement that the account submits these documents itself.

        Args:
            origin: of the window's log; a signature holds for that window only.
            documents: of one request, whose digest the statement covers.
        """
        return HolderStatement.issue(
            self.key, origin=origin, pseudonym=self.account.pseudonym, documents=documents
        ).to_json()


@dataclass(frozen=True)
class Arbiter:
    """The arbiter that a window's policy names, and the window that it judges by.

    Attributes:
        service: its calls.
        window: the window, as it is sent with each case.
    """

    service: Service
    window: Window

    async def judge(self, receipt_file: Json) -> tuple[Finding, FindingBody]:
        """Return the finding about a receipt file, with the half that the verifier needs of it.

        Args:
            receipt_file: both parts, JSON.

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


class VerifierService:
    """The verifier's calls that need no authentication: their content carries signatures.

    Windows are told apart by the origin of their log, `<provider>/ragaudit/<window>`. Every call
    raises as `Service.request`, and InvalidReply for a reply of another form.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def aclose(self) -> None:
        """Close the connections."""
        await self._service.aclose()

    async def keys(self) -> ShownKeys:
        """Return the verifier's name, public keys and time (`GET /v1/keys`).

        Raises:
            InvalidReply: something else.
        """
        value = await self._service.get("/v1/keys")
        try:
            return ShownKeys.from_json(value)
        except MalformedError as error:
            where = self._service.base_url
            raise InvalidReply("not the keys of a verifier", where=where) from error

    async def cosigned_size(self, log_key: VerifierKey) -> int:
        """Return the size of the largest checkpoint of a log that the verifier has cosigned.

        Args:
            log_key: whose checkpoint it is.

        Raises:
            InvalidReply: not a checkpoint of that log.
        """
        name = hashlib.sha256(log_key.name.encode()).hexdigest()
        note = await self._service.request("GET", f"/cosigner/{name}/checkpoint")
        try:
            # By the log's own signature: a verifier cannot make up evidence against a provider.
            return verify_checkpoint(note, log_key).head.size
        except RagauditError as error:
            raise InvalidReply("not a checkpoint", where=self._service.base_url) from error

    async def show_registration(self, origin: str, holder: Holder) -> None:
        """Tell the verifier that an account's registration, with its chain, is its own.

        Without it the verdict counts the account as plain: whoever made a registration could have
        made the chain.

        Args:
            origin: of the window's log.
            holder: whose registration it is.
        """
        account = holder.account
        statement = RegistrationStatement(
            origin=origin, pseudonym=account.pseudonym, anchor=account.anchor
        ).signed(holder.key)
        body = StatementBody(statement.to_json(), holder.proven)
        await self._post(origin, "statements", body.to_json())

    async def submit(
        self, origin: str, halves: Sequence[PublicPart], holder: Holder | None = None
    ) -> Submission:
        """Give the verifier public parts; a holder signs for its own, and shows its registration.

        Receipts without an inclusion proof go first: if the account's share has no room for all,
        the verifier has those that the log may lack.

        Args:
            origin: of the window's log.
            halves: of receipts of the window, of this account or of others; they go in batches.
            holder: so that no other submitter takes the room of its receipts.

        Returns:
            How many were new to the verifier, and how many it knew.
        """
        if holder is None:
            return await self._submit(origin, ReceiptsBody, [half.to_json() for half in halves])
        await self.show_registration(origin, holder)
        # A holder statement covers receipts of its own account only (spec 8.3).
        mine = holder.account.pseudonym
        own = [half for half in halves if half.pseudonym == mine]
        batches = (
            ([half for half in own if None in half.proofs], holder),
            ([half for half in own if None not in half.proofs], holder),
            ([half for half in halves if half.pseudonym != mine], None),
        )
        return Submission.total([
            await self._submit(origin, ReceiptsBody, [half.to_json() for half in batch], signs)
            for batch, signs in batches
        ])  # fmt: skip

    async def refuse(self, origin: str, refusal: Json, holder: Holder | None = None) -> Submission:
        """Give the verifier a signed refusal of the provider; a holder signs for its own.

        Args:
            origin, holder: as for `submit`.
            refusal: JSON, as the provider signed it (docs/spec/05-records.md §5.8).

        Raises:
            MalformedRecord: not a refusal.
        """
        whose = Refusal.from_json(refusal).pseudonym
        # A signature under another account's refusal would be refused itself.
        signer = holder if holder is not None and holder.account.pseudonym == whose else None
        return await self._submit(origin, RefusalsBody, [refusal], signer)

    async def claim(
        self, origin: str, claim: Claim, registration: RegistrationEntry | None
    ) -> None:
        """Claim the answer to a promise whose nonce was revealed to no avail.

        Args:
            origin: of the window's log.
            claim: the promise as the provider signed it, and the revealed nonce.
            registration: the account's; the provider may have withheld it from the verifier.
        """
        body = ClaimBody(claim.promise.to_json(), claim.nonce, registration)
        await self._post(origin, "claims", body.to_json())

    async def dispute(self, origin: str, receipt_file: Json, holder: Holder) -> Dispute:
        """Return the dispute of a receipt file, after sending it; the verifier learns a digest.

        Args:
            origin: of the window's log.
            receipt_file: JSON, as it was received.
            holder: whose receipt it is.

        Raises:
            MalformedRecord: the file has no public part to name.
        """
        # Of the file as it came: its digest is what the verifier compares a file with later.
        entry = Dispute.issue(
            holder.key, pseudonym=holder.account.pseudonym, receipt_file=receipt_file
        )
        # With the registration: the verifier may not have it from the provider yet.
        body = DisputesBody((entry.to_json(),), holder.proven)
        await self._post(origin, "disputes", body.to_json())
        return entry

    async def settle(self, origin: str, receipt_file: Json, arbiter: Arbiter | None = None) -> Json:
        """Show a disputed receipt file to the verifier, or to the arbiter if it was sampled.

        The verifier must not see the file of a sampled query: it gets the arbiter's finding.

        Args:
            origin: of the window's log.
            receipt_file: both parts, JSON.
            arbiter: None if there is none to ask.

        Returns:
            ``sampled``, and the ``step`` that fails (0: none does, None: this file was not judged,
            as far as the verifier can say).

        Raises:
            MalformedRecord: the file names no record.
            StateConflict, InvalidReply: as `Arbiter.judge`.
        """
        case = f"disputes/{query_index(receipt_file)}"
        status = _read(DisputeStatus.from_json, await self._service.get(_path(origin, case)))
        # The verifier has the noise of a sampled record: the file beside it would tell of scores.
        # It answers 409 before it reads the body (spec 8.3).
        if not status.sampled:
            path = _path(origin, f"{case}/file")
            data = await self._service.request("PUT", path, dict(receipt_file))
            return _read(DisputeStatus.from_json, self._service.value(path, data)).to_json()
        # Upheld already, or nobody to ask. What was dismissed may be another file of this query,
        # which anybody may have disputed so that this one is never judged.
        if arbiter is None or status.step:
            return replace(status, step=status.step or None).to_json()
        finding, body = await arbiter.judge(receipt_file)
        await self._post(origin, "findings", body.to_json())
        return replace(status, step=finding.step).to_json()

    async def _submit(
        self, origin: str, kind: type[ReceiptsBody] | type[RefusalsBody], documents: Sequence[Json],
        holder: Holder | None = None,
    ) -> Submission:  # fmt: skip
        replies = []
        # Each batch is signed for by itself: the digest covers the documents of one request.
        for start in range(0, len(documents), MAX_BATCH):
            batch = [dict(document) for document in documents[start : start + MAX_BATCH]]
            body = kind(
                tuple(batch),
                holder=None if holder is None else holder.signs(origin, batch),
                registration=None if holder is None else holder.proven,
            )
            what = "receipts" if kind is ReceiptsBody else "refusals"
            reply = await self._post(origin, what, body.to_json())
            replies.append(_read(Submission.from_json, reply))
        return Submission.total(replies)

    async def _post(self, origin: str, what: str, body: Json) -> Any:
        # A second arrival is "known" to the verifier, by what it says (spec 8.8).
        return await self._service.post(_path(origin, what), body, repeatable=True)


def _path(origin: str, rest: str) -> str:
    """Return the path of a window's call; other providers may have a window of the same name."""
    provider, window = read_origin(origin)
    return f"/v1/windows/{window}/{rest}?provider={provider}"


def _read(read: Callable[[Any], T], reply: Any) -> T:
    try:
        return read(reply)
    except MalformedError as error:
        raise InvalidReply(f"not such a reply: {error.what}", where="verifier") from error
