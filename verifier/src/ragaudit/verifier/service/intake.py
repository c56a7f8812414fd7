"""What anyone may submit: receipts, refusals, claims, disputes.

Everything taken in carries the provider's signature and binds to it: a part that nobody signed
(a proof, an opening) is verified here, so that no third party can plant evidence against an honest
provider. Nothing of a request is kept unless all of it is.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.ledger.chains import verify_nonce
from ragaudit.ledger.cosignatures import CosignerPolicy
from ragaudit.ledger.policy import Policy
from ragaudit.ledger.promises import Promise, Refusal
from ragaudit.ledger.receipts import PRIVATE_FORMAT, PublicReceipt, ReceiptFile
from ragaudit.ledger.records import Record, Registration
from ragaudit.verifier.service import handover, submissions, windows
from ragaudit.verifier.service.activation import check_due
from ragaudit.verifier.service.authentication import Provider
from ragaudit.verifier.service.bodies import Claim
from ragaudit.verifier.service.database import Database, Transaction
from ragaudit.verifier.service.errors import TooLateError
from ragaudit.verifier.service.submissions import CLAIM, DISPUTE, RECEIPT, REFUSAL, Submission

_PRIVATE_MEMBERS = frozenset({"private", "selection_blinding", "salt_r", "rows", "salt_e"})

Counts = dict[str, int]


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
        return self._store(name, RECEIPT, checked, until=policy.sampling_instant)

    def refusals(self, name: str, documents: Sequence[dict[str, Any]]) -> Counts:
        """Take signed refusals before the sampling instant. Raises as `receipts`."""
        policy = self._policy(name)
        checked = _checked("refusals", documents, policy, _refusal)
        return self._store(name, REFUSAL, checked, until=policy.sampling_instant)

    def claim(self, name: str, document: Claim) -> Counts:
        """Take a promise with its revealed nonce before the window's end. Raises as `receipts`."""
        policy = self._policy(name)
        promise, submission = _claim(document, policy)
        self._check_nonce(name, promise.record, document.nonce)
        return self._store(name, CLAIM, [submission], until=policy.end)

    def dispute(self, name: str, document: object) -> Counts:
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
        counts = {"accepted": 0, "known": 0}
        with self._database.write() as transaction:
            if transaction.now >= 1000 * until:
                raise TooLateError(f"no {kind}s any more", where=name, expected=f"before {until}")
            for each in checked:
                new = submissions.put(transaction, name, each)
                counts["accepted" if new else "known"] += 1
                if not new and kind == RECEIPT:
                    _complete(transaction, name, each)
            submissions.check_cap(transaction.connection, name, kind, self._cap)
        return counts


def _complete(transaction: Transaction, name: str, given: Submission) -> None:
    """Add the proof to a receipt that was stored without one."""
    stored = submissions.stored(transaction.connection, name, given)
    if stored is None or PublicReceipt.parse(stored).proof is not None:
        return
    if PublicReceipt.parse(given.document).proof is not None:
        submissions.replace(transaction, name, given)


def _checked(
    what: str,
    documents: Sequence[dict[str, Any]],
    policy: Policy,
    check: Callable[[dict[str, Any], Policy], Submission],
) -> list[Submission]:
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


def _receipt(document: dict[str, Any], policy: Policy) -> Submission:
    if document.get("format") == PRIVATE_FORMAT or _PRIVATE_MEMBERS & document.keys():
        raise RejectedError(
            "a private half is for the account's eyes", expected="the public half only"
        )
    receipt = PublicReceipt.from_json(document)
    _check_receipt(receipt, policy)
    return Submission(RECEIPT, receipt.index, receipt.signature, receipt.encode())


def _check_receipt(receipt: PublicReceipt, policy: Policy) -> None:
    _check_origin(receipt.origin, policy)
    receipt.verify_signature(policy.keys.provider)
    if receipt.proof is not None:
        # The log's signature is enough: a checkpoint that was never cosigned is evidence, too.
        receipt.verify_inclusion(policy.keys.log, CosignerPolicy((policy.keys.cosigner,), 0))


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


def _dispute(document: object, policy: Policy) -> Submission:
    file = ReceiptFile.from_json(document)
    _check_receipt(file.public, policy)
    file.verify_answer_digest()
    return Submission(DISPUTE, file.public.index, file.public.signature, file.encode())


def _check_origin(origin: str, policy: Policy) -> None:
    if origin != policy.origin:
        raise RejectedError("of another log", where="origin", expected=policy.origin)


def _registration(body: bytes) -> Registration | None:
    """The registration of an entry; None if it cannot be read, which check 5 judges."""
    try:
        return Registration.decode(body)
    except MalformedError:
        return None
