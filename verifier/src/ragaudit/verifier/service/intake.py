"""What anyone may submit: receipts, refusals, claims.

Everything taken in carries the provider's signature and binds to it: a part that nobody signed
(a proof, an opening) is verified here, so that no third party can plant evidence against an honest
provider. Nothing of a request is kept unless all of it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import (
    Conflict,
    MalformedError,
    RagauditError,
    RefusedError,
    RejectedError,
    TooEarly,
)
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.notes import Note, parse_note
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.bodies import ClaimBody, HeldBody, ReceiptsBody, RefusalsBody
from ragaudit.ledger.messages.chains import verify_nonce
from ragaudit.ledger.messages.entries import QueryEntry, Registration
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Claim, ClaimsPage, Promise, Refusal
from ragaudit.ledger.messages.receipts import (
    GeneratedPrivate,
    PrivateReceipt,
    PublicPart,
    read_public_part,
)
from ragaudit.verifier.service import cosigner, handover, submissions, windows
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.submissions import Kind, Room, Submission, check_origin
from ragaudit.verifier.service.windows import check_before, check_due
from sqlalchemy import Connection

# Of a private part (5.8): of a record whose noise is opened V must not hold these, too (8.9).
_PRIVATE_MEMBERS = frozenset(
    {"private", "selection_blinding", "salt_r", "salt_a", "rows", "salt_e"}
)
_PRIVATE_FORMATS = frozenset({PrivateReceipt.FORMAT, GeneratedPrivate.FORMAT})
_NONE: Mapping[int, TlogProof] = {}

CLAIMS_PAGE_BYTES = 8 * 2**20  # a provider need not read all claims at once

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

    def receipts(
        self, origin: Origin, document: ReceiptsBody, shown: Registration | None
    ) -> Counts:
        """Take public parts before the sampling instant.

        Args:
            document: receipts of any accounts; of one account if it comes with a holder statement.
            shown: the account's registration, if it came with them.

        Returns:
            How many are kept now, and how many were known.

        Raises:
            MalformedError: not a public part.
            RejectedError: not of this window, not signed by its provider, with a proof that does
                not verify, or not of the account that signed for it.
            TooLate: from the sampling instant on.
            CapReached: above the account's share, or the cap (docs/spec/08-services.md §8.8).
        """
        policy = windows.policy_of(self._database, origin)
        checked = _checked("receipts", document.receipts, policy, _receipt)
        # Their proofs are checked by now; those that are evidence themselves are kept apart, below.
        stripped = [_submission(_with_only(receipt)) for receipt, _ in checked]
        held = self._held(origin, policy, document, document.receipts, shown, stripped)
        with self._database.write() as transaction:
            check_before(transaction, origin, policy.sampling_instant)
            for (receipt, heads), submission in zip(checked, held, strict=True):
                for number, head in enumerate(heads):
                    if head is None or cosigner.has(transaction.connection, origin, head):
                        continue
                    bare = _bare(receipt, number, policy)
                    _keep_uncosigned(transaction, origin, policy, bare, head, held=submission.held)
            return self._put(transaction, origin, policy, Kind.RECEIPT, held)

    def refusals(
        self, origin: Origin, document: RefusalsBody, shown: Registration | None
    ) -> Counts:
        """Take signed refusals before the sampling instant; all else is as for `receipts`."""
        policy = windows.policy_of(self._database, origin)
        checked = _checked("refusals", document.refusals, policy, _refusal)
        held = self._held(origin, policy, document, document.refusals, shown, checked)
        with self._database.write() as transaction:
            check_before(transaction, origin, policy.sampling_instant)
            return self._put(transaction, origin, policy, Kind.REFUSAL, held)

    def claim(self, origin: Origin, document: ClaimBody, shown: Registration | None) -> Counts:
        """Take a promise with its revealed nonce, while it lives and before the window's end.

        A promise that is dated ahead, or later than any may be made, is taken: check 12 says so.

        Args:
            shown: the account's registration, if it came with it.

        Raises:
            MalformedError, CapReached: as `receipts`.
            RejectedError: as `receipts`, or the promise has expired, or the nonce is not that of
                the account's chain.
            TooLate: from the window's end on.
            Conflict: the account's registration is not known.
        """
        policy = windows.policy_of(self._database, origin)
        # The nonce shows that the account asked: a promise alone may be made by the provider.
        promise, submission = _claim(document, policy)
        self._check_nonce(origin, policy, promise.promised, document.nonce, shown)
        with self._database.write() as transaction:
            # From the end on the provider reads them, to log each that its log lacks, and closes
            # (8.3).
            check_before(transaction, origin, policy.end)
            if transaction.now > _expiry(promise.promised.time, policy):
                raise RejectedError("the promise has expired", where="promise")
            room = Room.of(self._cap, policy.slots)
            if submissions.stored(transaction.connection, origin, submission) is None:
                submissions.make_room(transaction, origin, submission, room.share)
            return self._put(transaction, origin, policy, Kind.CLAIM, [submission])

    def claims(self, origin: Origin, after: bytes) -> ClaimsPage:
        """Return a page of the claims, for the provider.

        The writing transaction orders it behind every claim that was taken before the end.

        Args:
            after: identity of the last claim of the page before; empty for the first page.

        Raises:
            TooEarly: before the window's end.
        """
        policy = windows.policy_of(self._database, origin)
        check_due(policy.end, self._database.now())  # spares the early ones the transaction
        with self._database.write() as transaction:
            check_due(policy.end, transaction.now)
            found, last = submissions.page(
                transaction.connection, origin, Kind.CLAIM, after, CLAIMS_PAGE_BYTES
            )
        return ClaimsPage(tuple(map(canonical_json.loads, found)), last)

    def claimed(self, origin: Origin, pseudonym: bytes, counter: int, made: int) -> bool:
        """Return whether a promise for this query was claimed, once one of ``made`` cannot be.

        If not, the provider may supersede that promise: the writing transaction orders this
        behind every claim of it.

        Args:
            counter: of the query, from 0.
            made: time of the promise that was not answered, Unix milliseconds.

        Raises:
            TooEarly: such a promise has not expired.
        """
        policy = windows.policy_of(self._database, origin)
        with self._database.write() as transaction:
            left = _expiry(made, policy) + 1 - transaction.now
            if left > 0:
                # Rounded up: who waits this long is not early again.
                raise TooEarly("the promise has not expired", retry_after=-(-left // 1000))
            return submissions.claimed(transaction.connection, origin, pseudonym, counter)

    def _check_nonce(
        self,
        origin: Origin,
        policy: Policy,
        record: QueryEntry,
        nonce: bytes,
        registration: Registration | None,
    ) -> None:
        """Check that the nonce is the one of the account's chain for this query.

        Raises:
            Conflict: the account's registration is not known.
            RejectedError: the account is not anchored, or has no such query.
            ChainRejected: another nonce.
        """
        if registration is None or registration.pseudonym != record.pseudonym:
            with self._database.read() as connection:
                registration = handover.registration(connection, origin, record.pseudonym)
        if registration is None:
            raise Conflict(
                "the account's registration is not known",
                where="promise",
                expected="its entry with an inclusion proof in member registration",
            )
        if registration.anchor is None:
            raise RejectedError("the account is not anchored", where="promise")
        if record.counter >= policy.queries_per_account:
            raise RejectedError("the account has no such query", where="promise")
        verify_nonce(policy.window, record.pseudonym, registration.anchor, record.counter, nonce)

    def _held(
        self,
        origin: Origin,
        policy: Policy,
        body: HeldBody,
        documents: Sequence[dict[str, Any]],
        shown: Registration | None,
        checked: Sequence[Submission],
    ) -> list[Submission]:
        """Return the submissions, held if their account signed for the request."""
        with self._database.read() as connection:
            holder = submissions.holder(connection, origin, policy, body, documents, shown)
        if holder is None:
            return list(checked)
        for number, submission in enumerate(checked):
            if submission.account != holder:
                raise RejectedError(
                    "of another account than signed for it",
                    where=f"document {number}",
                    expected="what one account holds",
                )
        return [replace(submission, held=True) for submission in checked]

    def _put(
        self,
        transaction: Transaction,
        origin: Origin,
        policy: Policy,
        kind: Kind,
        checked: Sequence[Submission],
    ) -> Counts:
        connection = transaction.connection
        new, room = 0, Room.of(self._cap, policy.slots)
        owned = [_owned(connection, origin, submission) for submission in checked]
        if owned and owned[0].held:
            submissions.hold(transaction, origin, owned, room.share)
        for submission in owned:
            new += submissions.put(transaction, origin, submission)
        # After the puts: what is too much rolls the whole request back.
        for account in {submission.account for submission in owned}:
            submissions.check_share(connection, origin, kind, account, room.share)
        submissions.check_cap(connection, origin, kind, room.all)
        return {"accepted": new, "known": len(checked) - new}


def _owned(connection: Connection, origin: Origin, submission: Submission) -> Submission:
    """Return the submission, its account's if that is registered, else with strangers'."""
    known = handover.registration(connection, origin, submission.account) is not None
    return (
        submission if known or submission.held else replace(submission, account=submissions.NOBODY)
    )


def _keep_uncosigned(
    transaction: Transaction,
    origin: Origin,
    policy: Policy,
    receipt: PublicPart,
    head: TreeHead,
    *,
    held: bool,
) -> None:
    """Keep a proof under a checkpoint that the log signed and nobody cosigned, if there is room.

    Its space is its own, and each account has a share of it: a provider can sign a checkpoint of
    every size that its log ever had, all of them true, and must keep out neither what accounts hold
    beside nor their receipts, which are taken in any case.
    """
    identity = structure("uncosigned", head.size, head.root_hash)
    about, place = receipt.pseudonym, head.size
    submission = Submission(Kind.UNCOSIGNED, place, identity, receipt.encode(), about, held)
    owned = _owned(transaction.connection, origin, submission)
    room = Room.of_uncosigned(policy.slots)
    if held:
        submissions.hold(transaction, origin, [owned], room.share)
    if submissions.fits(transaction.connection, origin, owned, room):
        submissions.put(transaction, origin, owned)


def _bare(receipt: PublicPart, number: int, policy: Policy) -> PublicPart:
    """Return the receipt with one of its proofs, its checkpoint with the log's line only.

    Nothing else of a proof counts, and each is kept under the checkpoint that it shows.
    """
    text = receipt.proofs[number]
    assert text is not None  # it has a head
    proof = TlogProof.parse(text.encode())
    note = parse_note(proof.checkpoint)
    lines = tuple(line for line in note.signatures if line.by(policy.keys.log))
    bare = TlogProof(proof.index, proof.path, Note(note.text, lines).encode())
    return _with_only(receipt, {number: bare})


def _with_only(receipt: PublicPart, proofs: Mapping[int, TlogProof] = _NONE) -> PublicPart:
    """Return the receipt with these of its proofs, by their place among its entries."""
    return receipt.with_proofs(*[proofs.get(at) for at in range(len(receipt.leaves))])


def _checked(
    what: str,
    documents: Sequence[dict[str, Any]],
    policy: Policy,
    check: Callable[[dict[str, Any], Policy], T],
) -> list[T]:
    """Return what ``check`` makes of every document; an error says which one failed."""
    checked = []
    for number, document in enumerate(documents):
        try:
            checked.append(check(document, policy))
        except RagauditError as error:
            # 400 or 422, whatever family a part names: a request is malformed, or false.
            family = MalformedError if isinstance(error, MalformedError) else RejectedError
            where = f"{what}/{number}: {error.where}" if error.where else f"{what}/{number}"
            raise family(error.what, where=where, expected=error.expected) from error
    return checked


def _receipt(
    document: dict[str, Any], policy: Policy
) -> tuple[PublicPart, tuple[TreeHead | None, ...]]:
    """Return the receipt, and of each of its proofs the head of the checkpoint, if there is one."""
    if document.get("format") in _PRIVATE_FORMATS or _PRIVATE_MEMBERS & document.keys():
        raise RejectedError(
            "a private part is for the account's eyes", expected="the public part only"
        )
    receipt = read_public_part(document)
    check_origin(receipt.origin, policy)
    # Unsigned, anyone could plant a receipt that contradicts an honest log.
    receipt.verify(policy.keys.provider)
    # The log's signature is enough: a checkpoint that was never cosigned is evidence, too.
    found = receipt.checkpoints(policy.keys.log, CosignerPolicy((policy.keys.cosigner,), 0))
    return receipt, tuple(None if each is None else each.signed.head for each in found)


def _submission(receipt: PublicPart) -> Submission:
    account = receipt.pseudonym
    return Submission(Kind.RECEIPT, receipt.index, receipt.identity, receipt.encode(), account)


def _refusal(document: dict[str, Any], policy: Policy) -> Submission:
    refusal = Refusal.from_json(document)
    check_origin(refusal.origin, policy)
    refusal.verify(policy.keys.provider)
    place = (refusal.counter, refusal.identity)
    return Submission(Kind.REFUSAL, *place, refusal.encode(), refusal.pseudonym)


def _claim(document: ClaimBody, policy: Policy) -> tuple[Promise, Submission]:
    promise = Promise.from_json(document.promise)
    check_origin(promise.origin, policy)
    promise.verify(policy.keys.provider)
    try:
        encoded = Claim(promise, document.nonce).encode_within(policy.slots)
    except RefusedError as error:
        raise RejectedError(error.what, where="promise", expected=error.expected) from error
    entry = promise.promised
    return promise, Submission(
        Kind.CLAIM, entry.counter, promise.identity, encoded, entry.pseudonym
    )


def _expiry(made: int, policy: Policy) -> int:
    """Return the last millisecond of V's clock at which a promise made then can be claimed."""
    return made + policy.promise_life + 1000 * policy.clock_skew_seconds
