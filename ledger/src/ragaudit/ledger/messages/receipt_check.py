"""The checks of a receipt, for accounts and for disputes (docs/spec 5.9 and 11.10).

A record's has ten steps, a generated answer's seven, and both run in one order. Group and sketch
operations are handed in: this member holds no compiled code and no numpy. What a caller cannot
supply (a proof not there yet, an embedder) is reported as *not done*; everything else is checked or
raises.

A window without noise serves scores, best first, and keeps ties: T may have more rows than K. Then
what was not served is opened together (4.6.10), so that nothing better can be kept back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, Literal, NoReturn, Protocol, TypeVar

from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import ReceiptRejected, StepRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.chains import activation_of, verify_nonce
from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW, read_columns
from ragaudit.ledger.messages.commitments import (
    completed_row,
    content_digest,
    row_digest,
    verify_index_row,
)
from ragaudit.ledger.messages.documents import check_secret, id_key
from ragaudit.ledger.messages.entries import (
    Charge,
    Epoch,
    Opening,
    QueryEntry,
    Record,
    TenantOpening,
    Version,
)
from ragaudit.ledger.messages.filters import Filter, request_filter
from ragaudit.ledger.messages.generation_terms import GenerationTerms, KeywordVoting, TokenVoting
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import (
    AnyAnswer,
    AnyFile,
    GeneratedAnswer,
    GeneratedFile,
    GeneratedKeywords,
    GeneratedReceipt,
    GenerationRequest,
    PrivateReceipt,
    PublicPart,
    ReceiptFile,
    ServedRow,
    UnservedRow,
    read_receipt,
)
from ragaudit.ledger.messages.requests import Document, Openings, Request, float32_values
from ragaudit.ledger.messages.schedules import (
    EpochSchedule,
    LoggedEpoch,
    LoggedVersion,
    VersionSchedule,
)
from ragaudit.ledger.messages.ties import TiesStatement, check_named

__all__ = [
    "AccountView",
    "Embed",
    "GroupOperations",
    "StepResult",
    "WindowView",
    "check_body",
    "check_file",
    "check_inclusion",
    "check_promise",
    "check_quorum",
    "check_rows",
    "same",
]

OUTSTANDING: Final = "an inclusion proof is outstanding"


class GroupOperations(Protocol):
    """What the check needs from `ragaudit.core` and `ragaudit.circuits`."""

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the 32-byte commitment to d + 4 integers; MalformedError outside their range."""

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return the 32-byte commitment to a set of positions."""

    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        """Return the sketch of a query embedding."""

    def quantise(self, vector: Sequence[float], norm_bound: int) -> Sequence[int]:
        """Return the integer vector of real numbers (spec 2.1), or MalformedError."""

    def verify_ties(self, statement: TiesStatement, proof: bytes) -> None:
        """Check a ties opening (spec 4.6.10); RejectedError if it does not prove the statement."""


Embed = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Texts to quantised embeddings, by the committed embedder."""


@dataclass(frozen=True)
class WindowView:
    """What a relying party knows of a window; it has checked the countersignature on it.

    Attributes:
        policy: the countersigned policy.
        opening: entry 0 of the log, countersigned.
        covered_sizes: of the activations a = 1, 2, .. released so far, signed by the verifier.
        versions: (log index, body) of the entries of later index versions, whose inclusion in the
            log the caller has checked.
        epochs: (log index, body) of the entries of later seed epochs, likewise.
    """

    policy: Policy
    opening: Opening
    covered_sizes: Sequence[int] = ()
    versions: Sequence[tuple[int, Version]] = ()
    epochs: Sequence[tuple[int, Epoch]] = ()

    @property
    def schedule(self) -> VersionSchedule:
        """The versions of all tenants; MalformedRecord if the entries do not follow each other."""
        return VersionSchedule.of(self.policy, self.opening, self.versions, self.covered_sizes)

    def index(self, record: QueryEntry) -> LoggedVersion:
        """Return the index that a record was answered from.

        Args:
            record: promised or logged.

        Raises:
            ReceiptRejected: not the version in force at its time, or another N. While no covered
                sizes are known, only that the named version exists is checked.
            MalformedRecord: no such tenant or version.
        """
        self.opening.tenant(record.tenant)
        schedule = self.schedule
        # Before the first instant nobody knows the order of instants and entries; a window whose
        # index never changes does not depend on it.
        if self.policy.retrieval.versions and self.covered_sizes:
            return schedule.verify(record)
        return schedule.named(record)

    def epoch(self, record: QueryEntry) -> LoggedEpoch:
        """Return the seed epoch that a record names.

        Args:
            record: promised or logged.

        Raises:
            ReceiptRejected: not the epoch in force at its time. While no covered sizes are known,
                only that the named epoch exists is checked.
            MalformedRecord: the epoch entries do not follow each other.
        """
        schedule = EpochSchedule.of(self.policy, self.opening, self.epochs, self.covered_sizes)
        if self.policy.epochs and self.covered_sizes:
            return schedule.verify(record)
        return schedule.named(record)


@dataclass(frozen=True)
class AccountView:
    """What an account knows of itself; None where the checker does not know it.

    Attributes:
        registration_index: of its registration in the log, for the activation.
        counter: of the record that it expects.
    """

    tenant: str | None = None
    pseudonym: bytes | None = None
    slot: int | None = None
    registration_index: int | None = None
    counter: int | None = None


@dataclass(frozen=True)
class StepResult:
    """One check: ``done`` and passed, or ``not done`` with what it lacked."""

    number: int
    name: str
    status: Literal["done", "not done"]
    detail: str = ""


C = TypeVar("C")
Step = tuple[str, Callable[[C], str | None]]
"""A name, and what returns None when it is done, or what it lacks; it raises when it fails."""


def _run(check: C, steps: Sequence[Step[C]]) -> list[StepResult]:
    """Run steps in order, numbered from 1.

    Raises:
        StepRejected: a step failed; those behind it were not run.
    """
    return [_run_step(number, check, step) for number, step in enumerate(steps, 1)]


def _run_step(number: int, check: C, step: Step[C]) -> StepResult:
    """Run one step; whatever it finds is a rejection of the receipt at this step.

    Raises:
        StepRejected: it failed.
    """
    name, run = step
    try:
        missing = run(check)
    except RagauditError as error:
        raise StepRejected.at(number, name, error) from error
    if missing is None:
        return StepResult(number, name, "done")
    return StepResult(number, name, "not done", missing)


def check_file(
    file: Mapping[str, Any] | AnyFile,
    view: WindowView,
    operations: GroupOperations,
    *,
    anchor: bytes | None = None,
    promise: Promise | None = None,
    embed: Embed | None = None,
    account: AccountView | None = None,
) -> list[StepResult]:
    """Check a whole receipt and return the steps of its channel in order.

    Of a generated answer no account can see that the right rows paid, and that the answer is made
    of them: that is checks 26 to 30 of the audit.

    Args:
        file: the receipt file, as JSON value or parsed; with proofs or without.
        view: the window, authenticated by the caller.
        operations: commitments and sketch.
        anchor: of the account's nonce chain, if it is anchored.
        promise: the promise that record or charge keeps, if there was one.
        embed: the committed embedder; without it its step is not done.
        account: what record or charge must say of the account; unknown parts are not compared.

    Raises:
        MalformedRecord: not a receipt file.
        StepRejected: a step failed; those behind it were not run.
    """
    parsed = read_receipt(file) if isinstance(file, Mapping) else file
    known = (view, operations, anchor, promise, embed, account or AccountView())
    if isinstance(parsed, GeneratedFile):
        return _run(_Check(parsed, *known), _GENERATED_STEPS)
    return _run(_DocumentsCheck(parsed, *known), _STEPS)


def check_inclusion(public: PublicPart, view: WindowView) -> StepResult:
    """Check step 2 alone: of a receipt that passed the others and has now been completed.

    Raises:
        StepRejected: no proof, or one that is false.
    """

    def included(known: WindowView) -> None:
        if _inclusion(public, known) is not None:
            reject("the inclusion proof is outstanding", where="receipt")

    return _run_step(2, view, ("inclusion", included))


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
        view, operations, embed: as for `check_file`.
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
            shown = [("query", request.query, promise.openings.embedding)]
            check_embeddings(shown, embed, view.policy.embedder_tolerance)
    except RagauditError as error:
        where = f"promise, {error.where}" if error.where else "promise"
        raise ReceiptRejected(error.what, where=where, expected=error.expected) from error


def _inclusion(public: PublicPart, view: WindowView) -> str | None:
    keys = view.policy.keys
    # A proof that is there is checked, also while another one is outstanding.
    found = public.checkpoints(keys.log, CosignerPolicy((keys.cosigner,), 1))
    return OUTSTANDING if None in found else None


F = TypeVar("F", ReceiptFile, GeneratedFile)


@dataclass
class _Check(Generic[F]):
    """The parts of one receipt, and a method per step.

    A step returns None when it is done, or what it lacks; it raises when it fails.
    """

    file: F
    view: WindowView
    operations: GroupOperations
    anchor: bytes | None
    promise: Promise | None
    embed: Embed | None
    account: AccountView
    index: LoggedVersion = field(init=False)

    def signature(self) -> str | None:
        public = self.file.public
        if public.origin != self.view.policy.origin:
            reject("receipt of another log", "origin", self.view.policy.origin)
        public.verify(self.view.policy.keys.provider)
        return None

    def inclusion(self) -> str | None:
        return _inclusion(self.file.public, self.view)

    def body(self) -> str | None:
        public, query = self.file.public, self.file.public.query
        self.index = check_body(query, self.file.asked, self.view)
        if isinstance(public, GeneratedReceipt):
            _check_turn(public)
        if (public.nonce is None) != (self.file.request.counter is None):
            reject("a nonce, or none, against the request", where="nonce")
        return check_account(query, self.view, self.account, self.index)

    def answer(self) -> str | None:
        file = self.file
        file.verify_answer_digest()
        if isinstance(file, GeneratedFile):
            digest = file.answer.digest(file.private.salt_a)
            same("answer digest", digest, file.public.answered.generated_digest)
            terms = self.view.policy.generation
            assert terms is not None  # a charge entry elsewhere has failed step 3
            check_form(file.answer, terms)
        return None

    def openings(self) -> str | None:
        openings, query = self.file.private.openings, self.file.public.query
        check_openings(openings, query, self.file.asked, self.view.policy, self.operations)
        return None

    def embedder(self) -> str | None:
        if self.embed is None:
            return "no embedder at hand"
        private, openings = self.file.private, self.file.private.openings
        # A document of a store may have a vector and no text; there is nothing to repeat then.
        served = private.rows if isinstance(private, PrivateReceipt) else ()
        shown: list[tuple[str, str, Sequence[int]]] = [
            (f"row {row.position}", row.content, row.vector)
            for row in served
            if row.content.strip()
        ]
        # A vector needs no embedder: step 5 compared it.
        if openings.query:
            shown.insert(0, ("query", openings.query, openings.embedding))
        check_embeddings(shown, self.embed, self.view.policy.embedder_tolerance)
        return None

    def nonce(self) -> str | None:
        entry, nonce = self.file.public.query, self.file.public.nonce
        if self.promise is not None:
            # Compared whole: any field still open would be a choice of who pays, or of what is
            # read, made with noise or coins in view.
            self.promise.verify_kept(entry)
            if self.promise.request != self.file.request:
                reject("another request than promised", where="request")
        if nonce is None:
            if self.anchor is not None:
                expected = "the chain's: the account is anchored"
                reject("no nonce", where="nonce", expected=expected)
            return None
        if self.anchor is None:
            return "the anchor of the nonce chain is not known here"
        verify_nonce(entry.window, entry.pseudonym, self.anchor, entry.counter, nonce)
        return None if self.promise is not None else "the promise is not known here"


class _DocumentsCheck(_Check[ReceiptFile]):
    """What a record has beside: the rows that were selected and served."""

    def selection(self) -> str | None:
        private, record = self.file.private, self.file.public.query
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
        check_rows(self.file, self.file.public.query, self.view.policy)
        return None

    def commitments(self) -> str | None:
        policy, index, record = self.view.policy, self.index.index, self.file.public.query
        # Of version 1, in the opening: entries of later versions repeat nothing of it.
        secret = self.view.opening.tenant(record.tenant).id_commitment
        check_commitments(self.file, record, index, policy, self.operations, secret)
        return None


_STEPS: Sequence[Step[_DocumentsCheck]] = (
    ("signature", _DocumentsCheck.signature),
    ("inclusion", _DocumentsCheck.inclusion),
    ("body", _DocumentsCheck.body),
    ("answer digest", _DocumentsCheck.answer),
    ("openings", _DocumentsCheck.openings),
    ("selection", _DocumentsCheck.selection),
    ("rows", _DocumentsCheck.rows),
    ("commitments", _DocumentsCheck.commitments),
    ("embedder", _DocumentsCheck.embedder),
    ("nonce", _DocumentsCheck.nonce),
)
_GENERATED_STEPS: Sequence[Step[_Check[GeneratedFile]]] = (
    ("signature", _Check.signature),
    ("inclusion", _Check.inclusion),
    ("body", _Check.body),
    ("answer digest", _Check.answer),
    ("openings", _Check.openings),
    ("embedder", _Check.embedder),
    ("nonce", _Check.nonce),
)


def check_body(record: QueryEntry, request: Request, view: WindowView) -> LoggedVersion:
    """Check what an entry must say of policy, opening and request; return the index it names.

    Args:
        record: promised or logged; also a charge entry.
        request: the account's own copy.
        view: of the window.

    Raises:
        ReceiptRejected: it says something else.
        MalformedRecord: a tenant or version that the window does not have.
    """
    policy = view.policy
    index = view.index(record)
    same("policy", record.policy_digest, policy.digest)
    same("window", record.window, policy.window)
    view.epoch(record)
    if isinstance(record, Charge):
        _check_charge(record, policy)
    else:
        _check_record(record, request, policy)
    if record.counter >= policy.queries_per_account:
        reject(f"counter {record.counter}", "counter", f"0..{policy.queries_per_account - 1}")
    if record.slot >= policy.slots:
        reject(f"slot {record.slot}", "slot", f"0..{policy.slots - 1}")
    if record.activation >= policy.activations:
        reject(f"activation {record.activation}", "activation", f"1..{policy.activations - 1}")
    if not 1000 * policy.start <= record.time < 1000 * policy.end:
        period = f"{rfc3339(1000 * policy.start)} to {rfc3339(1000 * policy.end)}"
        reject("a time outside the window", "time", period)
    if request.counter is not None:
        same("counter", record.counter, request.counter)
    return index


def _check_record(record: Record, request: Request, policy: Policy) -> None:
    same("top_k", record.top_k, request.top_k)
    if record.top_k > policy.top_k_max:
        reject(f"K = {record.top_k}", "top_k", f"1..{policy.top_k_max}")
    if not policy.noised and record.nonce is not None:
        reject("a nonce where no noise is drawn", "nonce", "none")


def _check_charge(charge: Charge, policy: Policy) -> None:
    terms = policy.generation
    if terms is None:
        reject("a charge entry", "charge", "a window with a generation channel")
    # Another threshold would be one that was chosen with the question in hand. What bins have to do
    # with it, check 27 says.
    if terms.adaptive is None:
        same("threshold", charge.threshold, terms.threshold)
    # Later ones are of a restored prover, which may have lost charges.
    same("epoch", charge.epoch, 1)


def check_account(
    record: QueryEntry, view: WindowView, account: AccountView, index: LoggedVersion
) -> str | None:
    """Compare with what is known of the account; return what is not known.

    Args:
        record: promised or logged.
        view: of the window.
        account: what is known.
        index: the index that the record names.

    Raises:
        ReceiptRejected: the record says something else.
    """
    for name in ("tenant", "pseudonym", "slot", "counter"):
        expected = getattr(account, name)
        if expected is not None:
            same(name, getattr(record, name), expected)
    if account.pseudonym is None:
        return "the account is not known here"
    if account.registration_index is None or not view.covered_sizes:
        return "the activation of the registration is not known here"
    entries = (0, account.registration_index, index.entry, view.epoch(record).entry)
    instants = [activation_of(index, view.covered_sizes) for index in entries]
    known = [instant for instant in instants if instant is not None]
    if len(known) < len(entries):
        reject("the registration is not activated", where="activation")
    # The latest of them: no randomness that was out before opening, registration, index and epoch
    # were logged.
    same("activation", record.activation, max(known))
    return None


def check_openings(
    openings: Openings,
    record: QueryEntry,
    request: Request,
    policy: Policy,
    operations: GroupOperations,
) -> None:
    """Check what opens a record: the question and filter asked, the embedding and its sketch.

    Args:
        openings: of the receipt or promise.
        record, request, policy, operations: as of `check_file`.

    Raises:
        ReceiptRejected: it opens something else, or an embedding that must not be.
        UnsupportedError, MalformedRecord: a request that the window does not take.
    """
    request.question.check_policy(policy)
    request_filter(request.filter, policy)
    openings.verify(record, request)
    embedding = openings.embedding
    if len(embedding) != policy.dimension:
        reject(f"{len(embedding)} entries", "embedding", f"{policy.dimension}")
    # A longer query has scores beyond B², which noise of this sigma does not cover.
    if sum(entry * entry for entry in embedding) > policy.squared_norm:
        reject("norm above the bound", "embedding", f"squared norm at most {policy.squared_norm}")
    # Of a vector nothing is left to an embedder: the integers follow from it exactly.
    if request.vector:
        made = operations.quantise(float32_values(request.vector), policy.norm_bound)
        if tuple(map(int, made)) != embedding:
            reject("not the integers of the vector", where="embedding")
    terms = policy.estimator
    if operations.sketch(embedding, terms.seed, terms.sketch_bits) != openings.sketch:
        reject("not the sketch of the embedding", where="sketch")


def check_embeddings(
    shown: Sequence[tuple[str, str, Sequence[int]]], embed: Embed, tolerance: int
) -> None:
    """Check embeddings against the committed embedder's.

    Args:
        shown: for each text a name for errors, the text, and its integer embedding as it is shown.
        embed: the committed embedder.
        tolerance: of the squared distance.

    Raises:
        ReceiptRejected: one farther off.
    """
    again = embed([text for _, text, _ in shown])
    for (name, _, vector), made in zip(shown, again, strict=True):
        if len(made) != len(vector):
            reject(f"{len(vector)} entries", name, f"{len(made)}")
        distance = sum((int(a) - int(b)) ** 2 for a, b in zip(made, vector, strict=True))
        if distance > tolerance:
            reject(f"embedding off by {distance}", name, f"at most {tolerance}")


def _check_turn(public: GeneratedReceipt) -> None:
    """Check what charge and answer say of each other."""
    charge, answered = public.query, public.answered
    same("window of the answer", answered.window, charge.window)
    same("tenant of the answer", answered.tenant, charge.tenant)
    same("charge of the answer", answered.charge, public.charge.index)
    # An answer before its charge would be one that was not paid for.
    if public.answer.index <= public.charge.index or answered.time < charge.time:
        reject("an answer before its charge", where="answer")


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


def check_rows(file: ReceiptFile, record: Record, policy: Policy) -> None:
    """Check which rows were answered of those selected (step 7); what they hold is step 8's.

    Args:
        file: of one answer.
        record: of its body.
        policy: of the window.

    Raises:
        ReceiptRejected: rows other than the first K of T without the withdrawn ones, or documents
            other than the rows.
    """
    private = file.private
    answered = [row.position for row in private.rows]
    withdrawn = [row.position for row in private.withdrawn]
    # Without scores there is one order, which says nothing.
    if policy.noised and answered != sorted(answered):
        reject("the rows are not the selected ones", expected="rising positions")
    check_named(private.selected, answered, withdrawn, record.top_k)
    # What the log counts is what the account was told, or it has both under one signature.
    due = None if policy.noised else len(withdrawn)
    if record.withheld != due:
        reject(f"the record counts {record.withheld} rows", "withheld", f"{due}")
    _check_unserved(private, record)
    _check_documents(file, policy)


def _check_unserved(private: PrivateReceipt, record: Record) -> None:
    opened = () if private.ties is None else tuple(row.position for row in private.ties.rows)
    served = {row.position for row in private.rows}
    due = len(private.selected) > record.top_k
    unserved = tuple(position for position in private.selected if position not in served)
    if opened != (unserved if due else ()):
        expected = "the rows of T that were not served" if due else "no rows"
        reject("other rows opened", where="ties", expected=expected)
    if any((row.score is not None) != due for row in private.withdrawn):
        expected = "a score each" if due else "no scores"
        reject("scores of withdrawn rows", where="withdrawn", expected=expected)


def _check_documents(file: ReceiptFile, policy: Policy) -> None:
    rows, documents = file.private.rows, file.answer.documents
    opened = [(row.position, row.id, row.content, row.columns, row.attributes) for row in rows]
    served = [(d.position, d.id, d.content, d.columns, d.attributes) for d in documents]
    if served != opened:
        reject("the documents are not the receipt's rows")
    for document in documents:
        # A score of a noised window would show the row's true place.
        if (document.score is None) != policy.noised:
            expected = "none" if policy.noised else "one for each document"
            reject("scores", where="answer", expected=expected)


def check_commitments(
    file: ReceiptFile,
    record: Record,
    index: TenantOpening,
    policy: Policy,
    operations: GroupOperations,
    id_commitment: bytes | None,
) -> None:
    """Check that rows are those of the index, their scores, and that none better is kept back.

    Args:
        file: of one answer, whose rows passed `check_rows`.
        record: of its body.
        index: that it was answered from.
        policy: of the window.
        operations: of the group.
        id_commitment: of the tenant, in the opening; None without ``owners``.

    Raises:
        ReceiptRejected, CommitmentRejected: a row of no index, of another one, under the id key of
            another document, or one that does not pass the filter; another score or document
            secret; or rows left out that precede one that was served.
        MalformedRecord, MalformedProof: columns that the policy does not declare, or no path.
    """
    asked = request_filter(file.request.filter, policy)
    embedding = file.private.openings.embedding
    key_of = _id_keys(file.private, record, policy, id_commitment)
    for row, document in zip(file.private.rows, file.answer.documents, strict=True):
        _check_row(row, index, policy, operations, key_of(row.id) or row.id_key)
        _check_filter(row, asked, policy)
        _check_score(document, row, embedding)
    if file.private.ties is not None:
        withdrawn = {row.position: row.id for row in file.private.withdrawn}
        for unserved in file.private.ties.rows:
            _check_leaf(unserved, unserved.row_digest, index, unserved.id_key)
            name = withdrawn.get(unserved.position)
            if name is not None and key_of(name) != unserved.id_key:
                reject("the id key of another document", where=f"row {unserved.position}")
            _check_filter(unserved, asked, policy)
        _check_ties(file, record, index, policy, operations)


def _id_keys(
    private: PrivateReceipt, record: Record, policy: Policy, commitment: bytes | None
) -> Callable[[str], bytes | None]:
    """Return what gives the id key of a document, or None where no secret is disclosed."""
    secret, owned = private.document_secret, policy.owners is not None
    if (secret is not None) != (owned and not policy.noised):
        expected = "none with noise, or without owners" if secret else "that of the tenant"
        reject("document secret", where="document_secret", expected=expected)
    # With noise a row brings the key in its leaf along: nobody else than its owner may test ids.
    shown = owned and policy.noised
    if wrong := [row for row in private.rows if (row.id_key is not None) != shown]:
        expected = "one" if shown else "none without noise and owners"
        reject("id key", where=f"row {wrong[0].position}", expected=expected)
    if secret is None:
        return lambda _: None
    check_secret(policy.window, record.tenant, secret, commitment)
    return partial(id_key, policy.window, record.tenant, secret)


def _check_row(
    row: ServedRow,
    index: TenantOpening,
    policy: Policy,
    operations: GroupOperations,
    key: bytes | None,
) -> None:
    where = f"row {row.position}"
    completed = completed_row(row, policy)
    if _is_null(row):
        reject("a deleted row", where, "withdrawn")
    if operations.commit_row(completed, row.blinding) != row.commitment:
        reject("the vector is not the committed one", where)
    digest = row_digest(row.salt, row.id, content_digest(row.content, row.attributes))
    # Under another document's key it would be listed, and said to be gone, as that one.
    _check_leaf(row, digest, index, key)


def _is_null(row: ServedRow) -> bool:
    """Whether a row stands where a document was deleted (5.4): nothing of it is left to serve.

    Without noise its leaf should say so, which `_check_filter` refuses; this is by what it holds.
    A vector of zeros alone is none: with inner products short vectors are rounded to it (2.5).
    """
    held = row.content or row.attributes or row.columns != NO_COLUMNS
    return not held and not any(row.vector)


def _check_leaf(
    row: ServedRow | UnservedRow, digest: bytes, index: TenantOpening, key: bytes | None
) -> None:
    # The root is the countersigned one: a row made up for this answer has no path to it.
    verify_index_row(
        root=index.index_root,
        rows=index.rows,
        position=row.position,
        commitment=row.commitment,
        row=digest,
        path=row.path,
        columns=row.columns,
        id_key=key,
    )


def _check_filter(row: ServedRow | UnservedRow, asked: Filter, policy: Policy) -> None:
    # Of no selection, whatever the filter: it would keep a document out of the first K.
    if row.columns == NULL_ROW:
        reject("a row marked as deleted", where=f"row {row.position}", expected="a live row")
    if not asked.passes(read_columns(row.columns, policy.retrieval.public_columns)):
        reject("does not pass the filter", where=f"row {row.position}")


def _check_score(document: Document, row: ServedRow, embedding: Sequence[int]) -> None:
    if document.score is None:
        return
    score = sum(a * b for a, b in zip(row.vector, embedding, strict=True))
    if score != document.score:
        reject("another score", where=f"row {row.position}", expected=f"{score}")


def _check_ties(
    file: ReceiptFile,
    record: Record,
    index: TenantOpening,
    policy: Policy,
    operations: GroupOperations,
) -> None:
    private, ties = file.private, file.private.ties
    if ties is None:
        return
    served = {document.position: document.score or 0 for document in file.answer.documents}
    withdrawn = {row.position: row.score or 0 for row in private.withdrawn}
    statement = TiesStatement.of(
        record,
        body=file.public.body,
        index_root=index.index_root,
        query=private.openings.embedding,
        selected=private.selected,
        served=served,
        withdrawn=withdrawn,
        commitments={row.position: row.commitment for row in ties.rows},
        squared_norm=policy.squared_norm,
    )
    # That the others have the least score, the opening shows; of equal ones the first positions
    # are answered.
    named = served | withdrawn
    last = max(position for position in named if named[position] == min(named.values()))
    if last > statement.others[0]:
        reject("a row was passed over", where=f"row {statement.others[0]}")
    operations.verify_ties(statement, ties.proof)


def same(where: str, found: object, expected: object) -> None:
    """Check that ``found`` is ``expected``; ReceiptRejected, which shows both."""
    if found != expected:
        reject(f"{_shown(found)}", where, _shown(expected))


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def reject(what: str, where: str = "", expected: str = "") -> NoReturn:
    """Raise ReceiptRejected."""
    raise ReceiptRejected(what, where=where, expected=expected)
