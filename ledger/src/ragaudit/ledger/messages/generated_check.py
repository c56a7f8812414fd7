"""The check of a generated answer and its receipt, step by step (spec 5.9, as 11.10 has it)."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.messages.entries import Charge, Generated
from ragaudit.ledger.messages.generated import (
    AnyAnswer,
    GeneratedAnswer,
    GeneratedFile,
    GeneratedKeywords,
    GeneratedReceipt,
)
from ragaudit.ledger.messages.generation_terms import GenerationTerms, KeywordVoting, TokenVoting
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_body import (
    check_account,
    check_body,
    check_embeddings,
    check_openings,
    reject,
    same,
)
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
    """Check a generated answer with its receipt and return the seven steps in order.

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
    return run_steps(check, _STEPS)


def check_generated_inclusion(public: GeneratedReceipt, view: WindowView) -> StepResult:
    """Check step 2 alone: of a receipt that passed the others and has now been completed.

    Raises:
        StepRejected: a proof that is false.
    """
    return run_step(2, view, ("inclusion", lambda known: _inclusion(public, known)))


def _inclusion(public: GeneratedReceipt, view: WindowView) -> str | None:
    keys = view.policy.keys
    for kind, entry in public.entries:
        # A proof that is there is checked, also while the other one is outstanding.
        if entry.proof is not None:
            entry.verify_inclusion(kind, keys.log, CosignerPolicy((keys.cosigner,), 1))
    return OUTSTANDING if any(entry.proof is None for _, entry in public.entries) else None


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
        self._check_turn(answered)
        if (answered.nonce is None) != (request.counter is None):
            reject("a nonce, or none, against the request", where="nonce")
        return check_account(self.charge, self.view, self.account, index)

    def _check_turn(self, answered: Generated) -> None:
        charge, public = self.charge, self.file.public
        same("window of the answer", answered.window, charge.window)
        same("tenant of the answer", answered.tenant, charge.tenant)
        same("charge of the answer", answered.charge, public.charge.index)
        # An answer before its charge would be one that was not paid for.
        if public.answer.index <= public.charge.index or answered.time < charge.time:
            reject("an answer before its charge", where="answer")

    def answer(self) -> str | None:
        self.file.verify_answer_digest()
        digest = self.file.answer.digest(self.file.private.salt_a)
        same("answer digest", digest, self.file.public.answered.generated_digest)
        terms = self.view.policy.generation
        assert terms is not None  # a charge entry elsewhere has failed step 3
        check_form(self.file.answer, terms)
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
        answered, request = self.file.public.answered, self.file.request
        return check_nonce(self.charge, answered.nonce, request, self.promise, self.anchor)


_STEPS: Sequence[Step[_Check]] = (
    ("signature", _Check.signature),
    ("inclusion", _Check.inclusion),
    ("body", _Check.body),
    ("answer digest", _Check.answer),
    ("openings", _Check.openings),
    ("embedder", _Check.embedder),
    ("nonce", _Check.nonce),
)


def check_form(answer: AnyAnswer, terms: GenerationTerms) -> None:
    """Check that the answerer of these terms can give an answer.

    Raises:
        ReceiptRejected: it is of another form, has more than the terms allow, or keywords with
            another text than their own where no model writes it.
    """
    answerer = terms.answerer
    if isinstance(answerer, KeywordVoting) and isinstance(answer, GeneratedKeywords):
        _check_keywords(answer, answerer)
    elif isinstance(answerer, TokenVoting) and isinstance(answer, GeneratedAnswer):
        _check_tokens(answer, answerer, terms)
    else:
        due = "keywords" if isinstance(answerer, KeywordVoting) else "tokens"
        reject("an answer of another answerer", "answer", f"one of {due}")


def _check_keywords(answer: GeneratedKeywords, answerer: KeywordVoting) -> None:
    found, most = answer.keywords or (), answerer.sizes[-1]
    # Fewer than every size are possible: a word that no voter has is none to release.
    if len(found) > most:
        reject(f"{len(found)} keywords", "answer.keywords", f"at most {most}")
    if stopped := set(found) & set(answerer.stop_words):
        reject(f"the stop word {min(stopped)!r}", "answer.keywords", "words that count")
    if answerer.final == "keywords" and answer.text != " ".join(found):
        reject("not the released words", "answer.text", "these, joined by spaces")


def _check_tokens(answer: GeneratedAnswer, answerer: TokenVoting, terms: GenerationTerms) -> None:
    tokens, vocabulary = answer.tokens, terms.vocabulary
    if len(tokens) > answerer.tokens:
        reject(f"{len(tokens)} tokens", "answer.tokens", f"at most {answerer.tokens}")
    if strange := [token for token in tokens if token >= vocabulary.size]:
        reject(f"token {strange[0]}", "answer.tokens", f"below {vocabulary.size}")
    if vocabulary.end in tokens[:-1]:
        reject("tokens behind the end", "answer.tokens", "the end token last")
    most = terms.answer_epsilon // answerer.epsilon_token
    if answer.private > most:
        reject(f"{answer.private} private tokens", "answer.private", f"at most {most}")
