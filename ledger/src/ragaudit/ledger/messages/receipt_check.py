"""The ten checks of a receipt (docs/spec/05-records.md §5.9), for accounts and for disputes.

Group and sketch operations are handed in: this member holds no compiled code and no numpy.
What a caller cannot supply (a proof not there yet, an embedder) is reported as *not done*;
everything else is checked or raises.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, Protocol

from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import ReceiptRejected, StepRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.messages.chains import activation_of, verify_nonce
from ragaudit.ledger.messages.merkle_commitments import content_digest, row_digest, verify_index_row
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import PublicReceipt, ReceiptFile, ServedRow
from ragaudit.ledger.messages.records import Opening, Record, TenantOpening
from ragaudit.ledger.messages.requests import Openings, Request


class GroupOperations(Protocol):
    """What the check needs from `ragaudit.core` and `ragaudit.circuits`."""

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the 32-byte commitment to d + 4 integers; MalformedError outside their range."""

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return the 32-byte commitment to a set of positions."""

    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        """Return the sketch of a query embedding."""


Embed = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Texts to quantised embeddings, by the committed embedder."""


@dataclass(frozen=True)
class WindowView:
    """What a relying party knows of a window; it has checked the countersignature on it.

    Attributes:
        policy: the countersigned policy.
        opening: entry 0 of the log, countersigned.
        covered_sizes: of the activations a = 1, 2, .. released so far, signed by the verifier.
    """

    policy: Policy
    opening: Opening
    covered_sizes: Sequence[int] = ()


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
    return [check.run(number, name, step) for number, (name, step) in enumerate(_STEPS, 1)]


def check_inclusion(public: PublicReceipt, view: WindowView) -> StepResult:
    """Check step 2 alone: of a receipt that passed the others and has now been completed.

    Raises:
        ReceiptRejected: no proof, or one that is false.
    """
    number, name, keys = 2, _STEPS[1][0], view.policy.keys
    try:
        public.verify_inclusion(keys.log, CosignerPolicy((keys.cosigner,), 1))
    except RagauditError as error:
        raise StepRejected.at(number, name, error) from error
    return StepResult(number, name, "done")


def check_promise(
    promise: Promise,
    request: Request,
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
            _reject("of another request", where="request")
        if promise.origin != view.policy.origin:
            _reject("of another log", expected=view.policy.origin)
        promise.verify(view.policy.keys.provider)
        record = promise.record
        _check_body(record, request, view)
        _check_account(record, view, account)
        _check_openings(promise.openings, record, request, view.policy, operations)
        if embed is not None:
            texts, vectors = [request.query], [promise.openings.embedding]
            _check_embeddings(["query"], texts, vectors, embed, view.policy.embedder_tolerance)
    except RagauditError as error:
        where = f"promise, {error.where}" if error.where else "promise"
        raise ReceiptRejected(error.what, where=where, expected=error.expected) from error


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
    tenant: TenantOpening = field(init=False)

    def run(self, number: int, name: str, step: "Callable[[_Check], str | None]") -> StepResult:
        """Run one step; whatever it finds is a rejection of the receipt at this step."""
        try:
            missing = step(self)
        except RagauditError as error:
            raise StepRejected.at(number, name, error) from error
        if missing is None:
            return StepResult(number, name, "done")
        return StepResult(number, name, "not done", missing)

    def signature(self) -> str | None:
        public = self.file.public
        if public.origin != self.view.policy.origin:
            _reject("receipt of another log", expected=self.view.policy.origin)
        public.verify(self.view.policy.keys.provider)
        return None

    def inclusion(self) -> str | None:
        public = self.file.public
        if public.proof is None:
            return "the inclusion proof is outstanding"
        keys = self.view.policy.keys
        public.verify_inclusion(keys.log, CosignerPolicy((keys.cosigner,), 1))
        return None

    def body(self) -> str | None:
        self.record = self.file.public.record
        self.tenant = self.view.opening.tenant(self.record.tenant)
        _check_body(self.record, self.file.request, self.view)
        if (self.record.nonce is None) != (self.file.request.counter is None):
            _reject("a nonce, or none, against the request", where="nonce")
        return _check_account(self.record, self.view, self.account)

    def answer(self) -> str | None:
        self.file.verify_answer_digest()
        return None

    def openings(self) -> str | None:
        openings, request = self.file.private.openings, self.file.request
        _check_openings(openings, self.record, request, self.view.policy, self.operations)
        return None

    def selection(self) -> str | None:
        private, record = self.file.private, self.record
        if len(private.selected) > record.top_k:
            _reject(f"{len(private.selected)} rows", expected=f"at most K = {record.top_k}")
        # B_sel can commit to positions that no row of the index has.
        if private.selected and private.selected[-1] >= record.rows:
            _reject(f"position {private.selected[-1]}", expected=f"below N = {record.rows}")
        made = self.operations.commit_selection(private.selected, private.selection_blinding)
        _same("selection commitment", made, record.selection_commitment)
        return None

    def rows(self) -> str | None:
        private = self.file.private
        if tuple(row.position for row in private.rows) != private.selected:
            _reject("the rows are not the selected ones")
        opened = [(row.position, row.id, row.content) for row in private.rows]
        served = [(row.position, row.id, row.content) for row in self.file.answer.documents]
        if served != opened:
            _reject("the documents are not the receipt's rows")
        return None

    def commitments(self) -> str | None:
        for row in self.file.private.rows:
            self._row(row)
        return None

    def _row(self, row: ServedRow) -> None:
        where = f"row {row.position}"
        if len(row.vector) != self.view.policy.dimension:
            _reject(f"{len(row.vector)} entries", where, f"{self.view.policy.dimension}")
        completed = (*row.vector, *row.squares)
        if sum(entry * entry for entry in completed) != SQUARED_NORM:
            _reject("another norm", where, f"squared norm {SQUARED_NORM} of a completed row")
        if self.operations.commit_row(completed, row.blinding) != row.commitment:
            _reject("the vector is not the committed one", where)
        # The root is the countersigned one: a row made up for this answer has no path to it.
        verify_index_row(
            root=self.tenant.index_root,
            rows=self.tenant.rows,
            position=row.position,
            commitment=row.commitment,
            row=row_digest(row.salt, row.id, content_digest(row.content)),
            path=row.path,
        )

    def embedder(self) -> str | None:
        if self.embed is None:
            return "no embedder at hand"
        private = self.file.private
        names = ["query", *(f"row {row.position}" for row in private.rows)]
        texts = [private.openings.query, *(row.content for row in private.rows)]
        vectors = [private.openings.embedding, *(row.vector for row in private.rows)]
        tolerance = self.view.policy.embedder_tolerance
        _check_embeddings(names, texts, vectors, self.embed, tolerance)
        return None

    def nonce(self) -> str | None:
        record = self.record
        if self.promise is not None:
            self.promise.verify_kept(record)
            if self.promise.request != self.file.request:
                _reject("another request than promised", where="request")
        if record.nonce is None:
            if self.anchor is not None:
                _reject("no nonce", where="nonce", expected="the chain's: the account is anchored")
            return None
        if self.anchor is None:
            return "the anchor of the nonce chain is not known here"
        verify_nonce(record.window, record.pseudonym, self.anchor, record.counter, record.nonce)
        return None if self.promise is not None else "the promise is not known here"


_STEPS: tuple[tuple[str, Callable[[_Check], str | None]], ...] = (
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


def _check_body(record: Record, request: Request, view: WindowView) -> None:
    """What a record, promised or logged, must say of policy, opening and request."""
    policy = view.policy
    tenant = view.opening.tenant(record.tenant)
    _same("policy", record.policy_digest, policy.digest)
    _same("window", record.window, policy.window)
    _same("version", record.version, tenant.version)
    _same("rows", record.rows, tenant.rows)
    _same("epoch", record.epoch, 1)  # the only one of version 1
    _same("top_k", record.top_k, request.top_k)
    if record.top_k > policy.top_k_max:
        _reject(f"K = {record.top_k}", "top_k", f"1..{policy.top_k_max}")
    if record.counter >= policy.queries_per_account:
        _reject(f"counter {record.counter}", "counter", f"0..{policy.queries_per_account - 1}")
    if record.slot >= policy.slots:
        _reject(f"slot {record.slot}", "slot", f"0..{policy.slots - 1}")
    if record.activation >= policy.activations:
        _reject(f"activation {record.activation}", "activation", f"1..{policy.activations - 1}")
    if not 1000 * policy.start <= record.time < 1000 * policy.end:
        period = f"{rfc3339(1000 * policy.start)} to {rfc3339(1000 * policy.end)}"
        _reject("a time outside the window", "time", period)
    if request.counter is not None:
        _same("counter", record.counter, request.counter)


def _check_account(record: Record, view: WindowView, account: AccountView) -> str | None:
    """Compare with what is known of the account; return what is not known."""
    for name in ("tenant", "pseudonym", "slot", "counter"):
        expected = getattr(account, name)
        if expected is not None:
            _same(name, getattr(record, name), expected)
    if account.pseudonym is None:
        return "the account is not known here"
    if account.registration_index is None or not view.covered_sizes:
        return "the activation of the registration is not known here"
    entries = (0, account.registration_index)
    instants = [activation_of(index, view.covered_sizes) for index in entries]
    known = [instant for instant in instants if instant is not None]
    if len(known) < len(entries):
        _reject("the registration is not activated", where="activation")
    # The later of the two: no randomness that was out before opening and registration were logged.
    _same("activation", record.activation, max(known))
    return None


def _check_openings(
    openings: Openings,
    record: Record,
    request: Request,
    policy: Policy,
    operations: GroupOperations,
) -> None:
    openings.verify(record, request)
    embedding = openings.embedding
    if len(embedding) != policy.dimension:
        _reject(f"{len(embedding)} entries", "embedding", f"{policy.dimension}")
    # A longer query has scores beyond B², which noise of this sigma does not cover.
    if sum(entry * entry for entry in embedding) > SQUARED_NORM:
        _reject("norm above the bound", "embedding", f"squared norm at most {SQUARED_NORM}")
    terms = policy.estimator
    if operations.sketch(embedding, terms.seed, terms.sketch_bits) != openings.sketch:
        _reject("not the sketch of the embedding", where="sketch")


def _check_embeddings(
    names: Sequence[str],
    texts: Sequence[str],
    vectors: Sequence[Sequence[int]],
    embed: Embed,
    tolerance: int,
) -> None:
    for name, made, vector in zip(names, embed(texts), vectors, strict=True):
        if len(made) != len(vector):
            _reject(f"{len(vector)} entries", name, f"{len(made)}")
        distance = sum((int(a) - int(b)) ** 2 for a, b in zip(made, vector, strict=True))
        if distance > tolerance:
            _reject(f"embedding off by {distance}", name, f"at most {tolerance}")


def _same(where: str, found: object, expected: object) -> None:
    if found != expected:
        _reject(f"{_shown(found)}", where, _shown(expected))


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _reject(what: str, where: str = "", expected: str = "") -> NoReturn:
    raise ReceiptRejected(what, where=where, expected=expected)
