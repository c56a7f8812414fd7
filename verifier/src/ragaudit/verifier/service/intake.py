"""What anyone may submit: receipts, refusals, claims, disputes.

Everything taken in carries the provider's signature and binds to it: a part that nobody signed
(a proof, an opening) is verified here, so that no third party can plant evidence against an honest
provider. Nothing of a request is kept unless all of it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import SALT_BYTES, structure
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.chains import verify_nonce
from ragaudit.ledger.cosignatures import CosignerPolicy
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.json_fields import Fields
from ragaudit.ledger.notes import Note, parse_note
from ragaudit.ledger.policy import Policy
from ragaudit.ledger.promises import Promise, Refusal
from ragaudit.ledger.receipts import FILE_FORMAT, PRIVATE_FORMAT, PublicReceipt
from ragaudit.ledger.records import Record, Registration
from ragaudit.ledger.tlog_proof import TlogProof
from ragaudit.ledger.tree import TreeHead
from ragaudit.verifier.service import cosigner, handover, submissions, windows
from ragaudit.verifier.service.activation import check_due
from ragaudit.verifier.service.authentication import Provider
from ragaudit.verifier.service.bodies import Claim
from ragaudit.verifier.service.database import Database, Transaction
from ragaudit.verifier.service.errors import TooLateError
from ragaudit.verifier.service.submissions import (
    CLAIM,
    DISPUTE,
    RECEIPT,
    REFUSAL,
    UNCOSIGNED,
    Submission,
)

_PRIVATE_MEMBERS = frozenset({"private", "selection_blinding", "salt_r", "rows", "salt_e"})

MAX_UNCOSIGNED_BYTES = 8 * 2**20  # beside the cap of a kind, within one JSON document

Counts = dict[str, int]
T = TypeVar("T")


class Intake:
    """Checks submissions and stores each once.

    Args:
        cap: bytes that the submissions of one kind may take in one window.
    """

    def __init__(self, database: Database, cap: int) -> None:
        self._database = database
        self._cap = cap

    def receipts(self, name: str, documents: Sequence[dict[str, Any]]) -> Counts:
        """Take public halves before the sampling instant.

        Raises:
            MalformedError: not a public half. RejectedError: not of this window, not signed by
                its provider, or with a proof that does not verify.
            TooLateError, CapError.
        """
        policy = self._policy(name)
        checked = _checked("receipts", documents, policy, _receipt)
        stripped = [_submission(replace(receipt, proof=None)) for receipt, _ in checked]
        with self._database.write() as transaction:
            _check_time(transaction, name, policy.sampling_instant)
            for receipt, head in checked:
                if head is not None and not cosigner.has(transaction.connection, name, head):
                    _keep_uncosigned(transaction, name, _bare(receipt, policy), head)
            return self._put(transaction, name, RECEIPT, stripped)

    def refusals(self, name: str, documents: Sequence[dict[str, Any]]) -> Counts:
        """Take signed refusals before the sampling instant. Raises as `receipts`."""
        policy = self._policy(name)
        checked = _checked("refusals", documents, policy, _refusal)
        return self._store(name, REFUSAL, checked, policy.sampling_instant)

    def claim(self, name: str, document: Claim) -> Counts:
        """Take a promise with its revealed nonce, while it lives and before the window's end.

        Raises as `receipts`; RejectedError for a promise that has expired.
        """
        policy = self._policy(name)
        promise, submission = _claim(document, policy)
        self._check_nonce(name, promise.record, document.nonce)
        with self._database.write() as transaction:
            _check_time(transaction, name, policy.end)
            _check_life(promise.record.time, policy, self._database.now())
            return self._put(transaction, name, CLAIM, [submission])

    def dispute(self, name: str, document: dict[str, Any]) -> Counts:
        """Take a receipt file before the sampling instant. Raises as `receipts`."""
        policy = self._policy(name)
        return self._store(name, DISPUTE, [_dispute(document, policy)], policy.sampling_instant)

    def claims(self, provider: Provider, name: str) -> list[object]:
        """The claims, for the provider; TooEarlyError before the window's end."""
        with self._database.read() as connection:
            window = windows.of_provider(connection, name, provider.name)
            end = windows.policy(connection, window).end
            check_due(end, self._database.now())
            documents = submissions.documents(connection, name, CLAIM)
        return [canonical_json.loads(each) for each in documents]

    def _policy(self, name: str) -> Policy:
        with self._database.read() as connection:
            return windows.policy(connection, windows.get(connection, name))

    def _check_nonce(self, name: str, record: Record, nonce: bytes) -> None:
        """ChainRejected if the account's registration is known and the nonce is not its chain's."""
        with self._database.read() as connection:
            given = handover.entries_of(connection, name).values()
        for kind, _, body in given:
            if kind != Registration.KIND:
                continue
            registration = _registration(body)
            if registration is None or registration.pseudonym != record.pseudonym:
                continue
            if registration.anchor is None:
                raise RejectedError("the account is not anchored", where="promise")
            verify_nonce(name, record.pseudonym, registration.anchor, record.counter, nonce)

    def _store(self, name: str, kind: str, checked: Sequence[Submission], until: int) -> Counts:
        with self._database.write() as transaction:
            _check_time(transaction, name, until)
            return self._put(transaction, name, kind, checked)

    def _put(
        self, transaction: Transaction, name: str, kind: str, checked: Sequence[Submission]
    ) -> Counts:
        new = sum(submissions.put(transaction, name, each) for each in checked)
        submissions.check_cap(transaction.connection, name, kind, self._cap)
        return {"accepted": new, "known": len(checked) - new}


def _keep_uncosigned(
    transaction: Transaction, name: str, receipt: PublicReceipt, head: TreeHead
) -> None:
    """Keep a proof under a checkpoint that the log signed and nobody cosigned.

    Its cap is its own: what the provider signs besides must not crowd out receipts.
    """
    identity = structure("uncosigned", receipt.signature, head.size, head.root_hash)
    submission = Submission(UNCOSIGNED, receipt.index, identity, receipt.encode())
    submissions.put(transaction, name, submission)
    submissions.check_cap(transaction.connection, name, UNCOSIGNED, MAX_UNCOSIGNED_BYTES)


def _bare(receipt: PublicReceipt, policy: Policy) -> PublicReceipt:
    """The receipt with a proof whose checkpoint has the log's line only: all that counts."""
    if receipt.proof is None:
        return receipt
    proof = TlogProof.parse(receipt.proof.encode())
    note = parse_note(proof.checkpoint)
    lines = tuple(line for line in note.signatures if line.by(policy.keys.log))
    return receipt.with_proof(TlogProof(proof.index, proof.path, Note(note.text, lines).encode()))


def _check_time(transaction: Transaction, name: str, until: int) -> None:
    if transaction.now >= 1000 * until:
        raise TooLateError("taken no more", where=name, expected=f"before {until}")


def _checked(
    what: str,
    documents: Sequence[dict[str, Any]],
    policy: Policy,
    check: Callable[[dict[str, Any], Policy], T],
) -> list[T]:
    """Check every document of a list; an error says which one failed."""
    checked = []
    for number, document in enumerate(documents):
        try:
            checked.append(check(document, policy))
        except RagauditError as error:
            family = MalformedError if isinstance(error, MalformedError) else RejectedError
            where = f"{what}/{number}: {error.where}" if error.where else f"{what}/{number}"
            raise family(error.what, where=where, expected=error.expected) from error
    return checked


def _receipt(document: dict[str, Any], policy: Policy) -> tuple[PublicReceipt, TreeHead | None]:
    """The receipt, and the head of the checkpoint in its proof, if it has one."""
    if document.get("format") == PRIVATE_FORMAT or _PRIVATE_MEMBERS & document.keys():
        raise RejectedError(
            "a private half is for the account's eyes", expected="the public half only"
        )
    receipt = PublicReceipt.from_json(document)
    _check_origin(receipt.origin, policy)
    receipt.verify_signature(policy.keys.provider)
    if receipt.proof is None:
        return receipt, None
    # The log's signature is enough: a checkpoint that was never cosigned is evidence, too.
    cosigners = CosignerPolicy((policy.keys.cosigner,), 0)
    return receipt, receipt.verify_inclusion(policy.keys.log, cosigners).signed.head


def _submission(receipt: PublicReceipt) -> Submission:
    return Submission(RECEIPT, receipt.index, receipt.signature, receipt.encode())


def _refusal(document: dict[str, Any], policy: Policy) -> Submission:
    refusal = Refusal.from_json(document)
    _check_origin(refusal.origin, policy)
    refusal.verify_signature(policy.keys.provider)
    return Submission(REFUSAL, refusal.counter, refusal.signature, refusal.encode())


def _claim(document: Claim, policy: Policy) -> tuple[Promise, Submission]:
    promise = Promise.from_json(document.promise)
    _check_origin(promise.origin, policy)
    promise.verify(policy.keys.provider)
    claim = {"promise": promise.to_json(), "nonce": document.nonce.hex()}
    identity = structure("claim", promise.signature, document.nonce)
    encoded = canonical_json.dumps(claim)
    return promise, Submission(CLAIM, promise.record.counter, identity, encoded)


def _check_life(made: int, policy: Policy, now: int) -> None:
    """RejectedError for a promise made longer ago than promises live."""
    oldest = now - 1000 * (policy.promise_life_seconds + policy.clock_skew_seconds)
    if made < oldest:
        raise RejectedError(
            f"made at {made}, and it is {now}", where="promise", expected=f"{oldest} or later"
        )


def _dispute(document: dict[str, Any], policy: Policy) -> Submission:
    """A receipt file whose every part the provider's signature binds.

    The parts are taken as they are: an answer in a form that no honest provider gives is the
    provider's own, since it signed its digest.
    """
    file = Fields(document, "format request answer public private", MalformedRecord)
    file.constant("format", FILE_FORMAT)
    public = PublicReceipt.from_json(file.raw("public"), "public")
    _check_origin(public.origin, policy)
    public.verify_signature(policy.keys.provider)
    private = file.raw("private")
    salt = private.get("salt_r") if isinstance(private, dict) else None
    if not isinstance(salt, str):
        raise MalformedError("no salt_r", where="private", expected="a private half")
    halves = [canonical_json.dumps(file.raw(name)) for name in ("request", "answer", "private")]
    if structure("answer", hex_decode(salt, SALT_BYTES), *halves) != public.answer_digest:
        raise RejectedError("another answer was signed", where="answer_digest")
    # Nobody signed the proof, and the log itself says what it is for.
    kept = {**document, "public": replace(public, proof=None).to_json()}
    return Submission(DISPUTE, public.index, public.signature, canonical_json.dumps(kept))


def _check_origin(origin: str, policy: Policy) -> None:
    if origin != policy.origin:
        raise RejectedError("of another log", where="origin", expected=policy.origin)


def _registration(body: bytes) -> Registration | None:
    """The registration of an entry; None if it cannot be read, which check 5 judges."""
    try:
        return Registration.decode(body)
    except MalformedError:
        return None
