"""The check of an answer in words and its receipt, step by step (spec 5.9, as 11.10 has it)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.errors import StepRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.messages.chains import verify_nonce
from ragaudit.ledger.messages.charges import Charge, Generated
from ragaudit.ledger.messages.generated import GeneratedFile, GeneratedReceipt
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_body import (
    check_account,
    check_body,
    check_embeddings,
    check_openings,
    reject,
    same,
)
from ragaudit.ledger.messages.receipt_views import (
    AccountView,
    Embed,
    GroupOperations,
    StepResult,
    WindowView,
)

__all__ = ["check_generated_file", "check_generated_inclusion"]


def check_generated_file(
    file: GeneratedFile,
    view: WindowView,
    operations: GroupOperations,
    *,
    anchor: bytes | None = None,
    promise: Promise | None = None,
    embed: Embed | None = None,
    account: AccountView | None = None,
) -> list[StepResult]:
    """Check an answer in words with its receipt and return the seven steps in order.

    That the right rows paid, and that the answer is made of them, no account can see: that is
    checks 26 to 30 of the audit.

    Args:
        file: as it arrived, or with proofs.
        view: the window, authenticated by the caller.
        operations: the sketch of an embedding.
        anchor: of the account's nonce chain, if it is anchored.
        promise: of the charge entry, if there was one.
        embed: the committed embedder; without it step 6 is not done.
        account: what the charge must say of the account; unknown parts are not compared.

    Raises:
        StepRejected: a step failed.
    """
    check = _Check(file, view, operations, anchor, promise, embed, account or AccountView())
    return [_run(number, name, partial(step, check)) for number, name, step in _STEPS]


def check_generated_inclusion(public: GeneratedReceipt, view: WindowView) -> StepResult:
    """Check step 2 alone: of a receipt that passed the others and has now been completed.

    Raises:
        StepRejected: a proof that is false.
    """
    return _run(2, "inclusion", lambda: _inclusion(public, view))


def _run(number: int, name: str, step: Callable[[], str | None]) -> StepResult:
    """Run one step; whatever it finds is a rejection of the receipt at this step."""
    try:
        missing = step()
    except RagauditError as error:
        raise StepRejected.at(number, name, error) from error
    if missing is None:
        return StepResult(number, name, "done")
    return StepResult(number, name, "not done", missing)


def _inclusion(public: GeneratedReceipt, view: WindowView) -> str | None:
    keys = view.policy.keys
    entries = ((Charge.KIND, public.charge), (Generated.KIND, public.answer))
    for kind, entry in entries:
        # A proof that is there is checked, also while the other one is outstanding.
        if entry.proof is not None:
            entry.verify_inclusion(kind, keys.log, CosignerPolicy((keys.cosigner,), 1))
    outstanding = any(entry.proof is None for _, entry in entries)
    return "an inclusion proof is outstanding" if outstanding else None


@dataclass
class _Check:
    """The parts of one answer's receipt, and a method per step.

    A step returns None when it is done, or what it lacks; it raises when it fails.
    """

    file: GeneratedFile
    view: WindowView
    operations: GroupOperations
    anchor: bytes | None
    promise: Promise | None
    embed: Embed | None
    account: AccountView

    @property
    def charge(self) -> Charge:
        return self.file.public.charged

    def signature(self) -> str | None:
        public = self.file.public
        same("origin", public.origin, self.view.policy.origin)
        public.verify(self.view.policy.keys.provider)
        return None

    def inclusion(self) -> str | None:
        return _inclusion(self.file.public, self.view)

    def body(self) -> str | None:
        request, answered = self.file.request, self.file.public.answered
        index = check_body(self.charge, request.retrieval, self.view)
        if (answered.nonce is None) != (request.counter is None):
            reject("a nonce, or none, against the request", where="nonce")
        return check_account(self.charge, self.view, self.account, index)

    def answer(self) -> str | None:
        digest = self.file.answer.digest(self.file.private.salt_a)
        same("answer digest", digest, self.file.public.answered.answer_digest)
        return None

    def openings(self) -> str | None:
        openings, request = self.file.private.openings, self.file.request
        policy = self.view.policy
        check_openings(openings, self.charge, request.retrieval, policy, self.operations)
        return None

    def embedder(self) -> str | None:
        if self.embed is None:
            return "no embedder at hand"
        openings, tolerance = self.file.private.openings, self.view.policy.embedder_tolerance
        texts, vectors = [openings.query], [openings.embedding]
        check_embeddings(["query"], texts, vectors, self.embed, tolerance)
        return None

    def nonce(self) -> str | None:
        charge, nonce = self.charge, self.file.public.answered.nonce
        if self.promise is not None:
            # Compared whole: any field still open would be a choice of who pays, made with the
            # coins in view.
            self.promise.verify_kept(charge)
            if self.file.request != self.promise.request:
                reject("another request than promised", where="request")
        if nonce is None:
            if self.anchor is not None:
                reject("no nonce", where="nonce", expected="the chain's: the account is anchored")
            return None
        if self.anchor is None:
            return "the anchor of the nonce chain is not known here"
        verify_nonce(charge.window, charge.pseudonym, self.anchor, charge.counter, nonce)
        return None if self.promise is not None else "the promise is not known here"


_STEPS: tuple[tuple[int, str, Callable[[_Check], str | None]], ...] = (
    (1, "signature", _Check.signature),
    (2, "inclusion", _Check.inclusion),
    (3, "body", _Check.body),
    (4, "answer digest", _Check.answer),
    (5, "openings", _Check.openings),
    (6, "embedder", _Check.embedder),
    (7, "nonce", _Check.nonce),
)
