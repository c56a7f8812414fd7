"""The ten checks of a receipt (docs/spec/05-records.md §5.9), for accounts and for disputes.

Group and sketch operations are handed in: this member holds no compiled code and no numpy.
What a caller cannot supply (a proof not there yet, an embedder) is reported as *not done*;
everything else is checked or raises.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import ReceiptRejected, StepRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.generated import GenerationRequest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.public_parts import PublicPart
from ragaudit.ledger.messages.receipt_body import (
    check_account,
    check_body,
    check_embeddings,
    check_openings,
    reject,
    same,
)
from ragaudit.ledger.messages.receipt_rows import check_commitments, check_rows
from ragaudit.ledger.messages.receipt_steps import (
    OUTSTANDING,
    Step,
    check_nonce,
    run_step,
    run_steps,
)
from ragaudit.ledger.messages.receipt_views import (
    AccountView,
    Embed,
    GroupOperations,
    StepResult,
    WindowView,
)
from ragaudit.ledger.messages.receipts import PublicReceipt, ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.ledger.messages.schedules import LoggedVersion

__all__ = [
    "AccountView",
    "Embed",
    "GroupOperations",
    "StepResult",
    "WindowView",
    "check_inclusion",
    "check_promise",
    "check_quorum",
    "check_receipt_file",
]


def check_receipt_file(
    file: Mapping[str, Any] | ReceiptFile,
    view: WindowView,
    operations: GroupOperations,
    *,
    anchor: bytes | None = None,
    promise: Promise | None = None,
    embed: Embed | None = None,
    account: AccountView | None = None,
) -> list[StepResult]:
    """Check a whole receipt and return the ten steps in order.

    Args:
        file: the receipt file, as JSON value or parsed.
        view: the window, authenticated by the caller.
        operations: commitments and sketch.
        anchor: of the account's nonce chain, if it is anchored.
        promise: the promise that the record keeps, if there was one.
        embed: the committed embedder; without it step 9 is not done.
        account: what the record must say of the account; unknown parts are not compared.

    Raises:
        MalformedRecord: not a receipt file.
        StepRejected: a step failed.
    """
    parsed = file if isinstance(file, ReceiptFile) else ReceiptFile.from_json(file)
    check = _Check(parsed, view, operations, anchor, promise, embed, account or AccountView())
    return run_steps(check, _STEPS)


def check_inclusion(public: PublicReceipt, view: WindowView) -> StepResult:
    """Check step 2 alone: of a receipt that passed the others and has now been completed.

    Raises:
        StepRejected: no proof, or one that is false.
    """
    return run_step(2, view, ("inclusion", lambda known: _inclusion(public, known)))


def check_quorum(public: PublicPart, policy: Policy) -> list[StepResult]:
    """Check step 11 of a receipt whose inclusion holds; no step if the policy names nobody.

    A quorum that is missing accuses nobody: a proof may be older than what the cosigners signed.
    Of a generated answer both proofs must have it.

    Args:
        public: half of the receipt, of a record or of a generated answer.
        policy: of the window, which names further cosigners or does not.

    Raises:
        StepRejected: a line of one of them is false.
    """
    number, name, terms = 11, "cosigners", policy.cosigners
    if terms is None:
        return []
    proofs = [proof for proof in public.proofs if proof is not None]
    if len(proofs) < len(public.proofs):
        return [StepResult(number, name, "not done", OUTSTANDING)]
    try:
        notes = [TlogProof.parse(proof.encode()).checkpoint for proof in proofs]
        findings = [terms.trust.judge(note, policy.keys.log) for note in notes]
    except RagauditError as error:
        raise StepRejected.at(number, name, error) from error
    for finding in findings:
        if finding.time is None:
            later = f"{finding}; a proof that is fetched later may have more"
            return [StepResult(number, name, "not done" if terms.required else "done", later)]
    # Behind both from the later of the two times on.
    last = max(findings, key=lambda finding: finding.time or 0)
    return [StepResult(number, name, "done", f"{last}, since {rfc3339(1000 * (last.time or 0))}")]


def check_promise(
    promise: Promise,
    request: Request | GenerationRequest,
    view: WindowView,
    operations: GroupOperations,
    *,
    account: AccountView,
    embed: Embed | None = None,
) -> None:
    """Check a promise before its nonce is revealed: afterwards nothing in it can change.

    Args:
        promise: as the provider sent it.
        request: as the account asked.
        view, operations, embed: as for `check_receipt_file`.
        account: all that the account knows of itself.

    Raises:
        ReceiptRejected: it is not signed, not of this request, or false in any field.
    """
    try:
        if promise.request != request:
            reject("of another request", where="request")
        if promise.origin != view.policy.origin:
            reject("of another log", expected=view.policy.origin)
        promise.verify(view.policy.keys.provider)
        entry, asked = promise.promised, promise.asked
        index = check_body(entry, asked, view)
        check_account(entry, view, account, index)
        check_openings(promise.openings, entry, asked, view.policy, operations)
        if embed is not None and request.query:
            texts, vectors = [request.query], [promise.openings.embedding]
            check_embeddings(["query"], texts, vectors, embed, view.policy.embedder_tolerance)
    except RagauditError as error:
        where = f"promise, {error.where}" if error.where else "promise"
        raise ReceiptRejected(error.what, where=where, expected=error.expected) from error


def _inclusion(public: PublicReceipt, view: WindowView) -> None:
    keys = view.policy.keys
    public.verify_inclusion(keys.log, CosignerPolicy((keys.cosigner,), 1))


@dataclass
class _Check:
    """The parsed parts of one receipt, and a method per step of docs/spec 5.9.

    A step returns None when it is done, or what it lacks; it raises when it fails.
    """

    file: ReceiptFile
    view: WindowView
    operations: GroupOperations
    anchor: bytes | None
    promise: Promise | None
    embed: Embed | None
    account: AccountView
    record: Record = field(init=False)
    index: LoggedVersion = field(init=False)

    def signature(self) -> str | None:
        public = self.file.public
        if public.origin != self.view.policy.origin:
            reject("receipt of another log", expected=self.view.policy.origin)
        public.verify(self.view.policy.keys.provider)
        return None

    def inclusion(self) -> str | None:
        if self.file.public.proof is None:
            return OUTSTANDING
        _inclusion(self.file.public, self.view)
        return None

    def body(self) -> str | None:
        self.record = self.file.public.record
        self.index = check_body(self.record, self.file.request, self.view)
        if (self.record.nonce is None) != (self.file.request.counter is None):
            reject("a nonce, or none, against the request", where="nonce")
        return check_account(self.record, self.view, self.account, self.index)

    def answer(self) -> str | None:
        self.file.verify_answer_digest()
        return None

    def openings(self) -> str | None:
        openings, request = self.file.private.openings, self.file.request
        check_openings(openings, self.record, request, self.view.policy, self.operations)
        return None

    def selection(self) -> str | None:
        private, record = self.file.private, self.record
        # Ties are kept where no noise is, so T may have more rows than are answered (step 7).
        if self.view.policy.noised and len(private.selected) > record.top_k:
            reject(f"{len(private.selected)} rows", expected=f"at most K = {record.top_k}")
        # B_sel can commit to positions that no row of the index has.
        if private.selected and private.selected[-1] >= record.rows:
            reject(f"position {private.selected[-1]}", expected=f"below N = {record.rows}")
        made = self.operations.commit_selection(private.selected, private.selection_blinding)
        same("selection commitment", made, record.selection_commitment)
        return None

    def rows(self) -> str | None:
        check_rows(self.file, self.record, self.view.policy)
        return None

    def commitments(self) -> str | None:
        policy, index = self.view.policy, self.index.index
        # Of version 1, in the opening: entries of later versions repeat nothing of it.
        secret = self.view.opening.tenant(self.record.tenant).id_commitment
        check_commitments(self.file, self.record, index, policy, self.operations, secret)
        return None

    def embedder(self) -> str | None:
        if self.embed is None:
            return "no embedder at hand"
        private = self.file.private
        # A document of a store may have a vector and no text; there is nothing to repeat then.
        rows = [row for row in private.rows if row.content.strip()]
        names = [f"row {row.position}" for row in rows]
        texts = [row.content for row in rows]
        vectors = [row.vector for row in rows]
        # A vector needs no embedder: step 5 compared it.
        if private.openings.query:
            names, texts = ["query", *names], [private.openings.query, *texts]
            vectors = [private.openings.embedding, *vectors]
        tolerance = self.view.policy.embedder_tolerance
        check_embeddings(names, texts, vectors, self.embed, tolerance)
        return None

    def nonce(self) -> str | None:
        record, request = self.record, self.file.request
        return check_nonce(record, record.nonce, request, self.promise, self.anchor)


_STEPS: Sequence[Step[_Check]] = (
    ("signature", _Check.signature),
    ("inclusion", _Check.inclusion),
    ("body", _Check.body),
    ("answer digest", _Check.answer),
    ("openings", _Check.openings),
    ("selection", _Check.selection),
    ("rows", _Check.rows),
    ("commitments", _Check.commitments),
    ("embedder", _Check.embedder),
    ("nonce", _Check.nonce),
)
