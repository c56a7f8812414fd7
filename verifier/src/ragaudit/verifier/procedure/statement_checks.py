"""Checks 12 to 15: what the provider signed for accounts, against the log and by itself.

Verifier and arbiter judge a disputed receipt file as check 15 does (docs/spec 5.10): it counts only
if the provider's signature binds every part of it; what an account changed in its own file accuses
nobody. The log is not asked there: the public part goes to check 13.
"""

from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import Any, Final

from ragaudit.encoding.errors import InternalError, RagauditError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import StepRejected
from ragaudit.ledger.log.tree import leaf_hash
from ragaudit.ledger.messages.disputes import file_digest
from ragaudit.ledger.messages.entries import Charge, Generated, Record
from ragaudit.ledger.messages.evidence import KeptDispute
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import (
    GroupOperations,
    WindowView,
    check_file,
)
from ragaudit.ledger.messages.receipts import (
    PublicPart,
    bound_receipt,
)
from ragaudit.verifier.procedure.context import Context, ReceivedClaim
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings

_A: Final = {Record.KIND: "a record", Charge.KIND: "a charge", Generated.KIND: "an answer"}

ANSWER_STEP: Final = 4  # where a file fails that is signed and has not the form of an answer


def check_promises(context: Context, found: Findings) -> None:
    """12: promises are made in time, every revealed one is kept, none twice for one counter."""
    bodies: dict[tuple[bytes, int], bytes] = {}  # by query, SHA-256
    count = 0
    for claim in context.claims:
        pseudonym, counter = claim.query
        where = f"promise for query {counter} of {pseudonym.hex()}"
        # Two queries promised for one counter would be answered under one noise key.
        body = sha256(claim.promise.body).digest()
        if bodies.setdefault(claim.query, body) != body:
            found.fault("another promise was signed for the same query", where)
        # An expired promise binds the provider to nothing any more (5.8).
        if not claim.in_time(context.policy):
            found.note(f"{where}: dismissed, as it had expired when it was claimed")
            continue
        with found.attempt(where):
            if context.reveals_nonce(claim):
                _check_time(context.policy, claim)
                _check_kept(context, claim)
                count += 1
    found.summary = f"{count} revealed promises, all kept"


def _check_time(policy: Policy, claim: ReceivedClaim) -> None:
    """RejectedError for a promise made after its claim, or too late for anybody to claim it."""
    made = claim.promised.time
    # One-sided: an old promise is what an account may claim, one of the future nobody could have.
    if made > claim.received + 1000 * policy.clock_skew_seconds:
        raise RejectedError(
            f"made at {rfc3339(made)}, but claimed at {rfc3339(claim.received)} already"
        )
    if made > policy.last_promise:
        raise RejectedError(
            f"made at {rfc3339(made)}, when no account could claim any more",
            expected=f"{rfc3339(policy.last_promise)} at the latest",
        )


def _check_kept(context: Context, claim: ReceivedClaim) -> None:
    """RejectedError unless the log keeps the promise; check 8 says that one entry counts so."""
    (pseudonym, counter), promised = claim.query, claim.promised
    what = "charge entry" if isinstance(promised, Charge) else promised.KIND
    same = [
        context.entry_of(one)
        for one in context.queries_of(pseudonym)
        if (one.kind, one.counter) == (promised.KIND, counter)
    ]
    # A provider that saw the nonce, and with it the noise, must not drop the query.
    if not same:
        raise RejectedError(f"no {what} keeps it, although its nonce was revealed")
    kept = [one for one in same if _keeps(one.body, claim)]
    if not kept:
        raise RejectedError(f"the {what} contradicts it")
    if isinstance(promised, Charge):
        _check_answered(context, kept[0].entry, claim.nonce)


def _keeps(body: Record | Charge, claim: ReceivedClaim) -> bool:
    # Of a charge, another place, or other rows that pay, would be chosen with coins in view.
    if body.promised() != claim.promised:
        return False
    return isinstance(body, Charge) or body.nonce == claim.nonce  # a charge's is in its answer


def _check_answered(context: Context, charge: int, nonce: bytes) -> None:
    """RejectedError unless the promised charge has an answer, with the nonce."""
    answer = context.answer_of(charge)
    # Whoever sees the coins and may stay silent chooses among answers.
    if answer is None:
        raise RejectedError("no answer keeps it, although its nonce was revealed")
    if answer.nonce != nonce:
        # One that is not of the chain is check 11's, and that there is none check 28's.
        owner = "answers" if answer.nonce is None else "nonces"
        raise MissingInput(owner, "the answer has another nonce")


def check_receipts(context: Context, found: Findings) -> None:
    """13: what a receipt names stands where the receipt says, and no two contradict.

    Of a generated answer that are its charge and its answer. The public parts of disputed receipt
    files are receipts like any other.

    Two receipts for one query of an account at two places of the log contradict each other only
    if one of them is not in the log, which is found here, or if the log holds the query twice,
    which `counters` says.
    """
    log = context.log
    receipts, disputed = context.receipts, context.disputed_receipts
    first: dict[int, bytes] = {}  # identity, by index in the log
    for receipt in chain(receipts, disputed):
        where = f"receipt for {receipt.name}"
        for kind, place, data in receipt.leaves:
            # A receipt without its leaf is a query that was answered and left out of the log.
            if place >= log.size or log.tree.subtree_hash(0, place) != leaf_hash(data):
                found.fault(f"signed for {_A[kind]} that is not in the log at that place", where)
        # Identity leaves out what nobody signed (8.8): two copies of one receipt are no fault.
        identity = receipt.identity
        if first.setdefault(receipt.index, identity) != identity:
            found.fault("two different receipts were signed", where)
    found.summary = f"{len(receipts) + len(disputed)} receipts, all of them in the log"


def check_refusals(context: Context, found: Findings) -> None:
    """14: no refusal came too early, or counts queries that the log lacks."""
    policy, refusals = context.policy, context.refusals
    for refusal in refusals:
        where = f"refusal to {refusal.pseudonym.hex()} at {rfc3339(refusal.time)}"
        with found.attempt(where):
            refusal.verify_budget(policy.queries_per_account)
        with found.attempt(where):
            logged = context.query_count(refusal.pseudonym)
            # Fewer than the log has may be true: the account went on asking after the refusal.
            if refusal.counter > logged:
                raise RejectedError(
                    f"counts {refusal.counter} queries", expected=f"{logged}, as the log has"
                )
    found.summary = f"{len(refusals)} refusals, none contradicted by the log"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a bound receipt file shows.

    Attributes:
        public: its public part, without proofs, which nobody signed.
        step: of docs/spec 5.9, or 11.10 of a generated answer, that fails; 0 if none does.
        reason: what failed; may name a position, so it stays with whoever judged.
    """

    public: PublicPart
    step: int
    reason: str = ""

    @property
    def upheld(self) -> bool:
        """Whether the provider signed something false."""
        return self.step > 0


def judge(document: dict[str, Any], view: WindowView, operations: GroupOperations) -> Judgement:
    """Judge a receipt file by steps 1 to 8 and 10 of docs/spec 5.9, or 1 to 5 and 7 of 11.10.

    The step that is left out compares texts with vectors and takes the committed embedder, which
    few have at hand.

    Args:
        document: the file, a JSON value.
        view: the window, authenticated.
        operations: what opens commitments: an engine.

    Raises:
        RagauditError: the provider did not sign it, part for part.
    """
    public = bound_receipt(document, view.policy)
    # From here on the provider signed every part: what is false now, it said.
    try:
        whole = {**document, "public": public.to_json()}
        check_file(whole, view, operations)
    except InternalError:
        raise
    except StepRejected as error:
        return Judgement(public, error.step, str(error))
    except RagauditError as error:
        return Judgement(public, ANSWER_STEP, str(error))
    return Judgement(public, 0)


def check_disputes(context: Context, found: Findings) -> None:
    """15: no account shows an answer that contradicts its record, or its charge.

    A dispute has no effect on the sample, and none at all unless it is upheld.
    """
    view = WindowView(
        context.policy,
        context.opening,
        versions=context.version_entries,
        epochs=context.epoch_entries,
    )
    counts = {"judged": 0, "open": 0}
    for item in context.disputes:
        where = f"dispute about entry {item.dispute.index}"
        try:
            _check_owner(context, item)
        except RagauditError as error:
            # Whoever disputes another's answers fails nobody's window.
            found.note(f"{where} dismissed: {error}")
            continue
        with found.attempt(where):
            counts["judged" if _check_upheld(context, view, item) else "open"] += 1
    context.stated.disputes_open = counts["open"]
    found.summary = f"{len(context.disputes)} disputes, {counts['judged']} judged, none upheld"
    if counts["open"]:
        found.note(
            f"{counts['open']} were judged by nobody: the account showed no file, or its query "
            "was sampled and no arbiter found anything"
        )


def _check_owner(context: Context, item: KeptDispute) -> None:
    """RejectedError unless the account whose query it is disputes it."""
    dispute = item.dispute
    if dispute.origin != context.policy.origin:
        raise RejectedError("of another log")
    registered, more = context.registrations.first(dispute.pseudonym)
    if registered is None or more:
        raise RejectedError("no such account")
    key = context.registrations[registered.rank].body.dispute_key
    if key is None:
        raise RejectedError("the account has no dispute key")
    dispute.verify(PublicKey.from_raw(key))
    queries = context.queries_of(dispute.pseudonym)
    if dispute.index not in {query.entry for query in queries}:
        raise RejectedError("no record or charge entry of this account")


def _check_upheld(context: Context, view: WindowView, item: KeptDispute) -> bool:
    """Whether anybody judged it; RejectedError if it is upheld."""
    if item.finding is not None:
        _check_finding(context, item)
    if item.file is not None:
        # The account fixed the file by its digest before the draw: no other can be fitted to it.
        if file_digest(item.file) != item.dispute.file_digest:
            raise RejectedError("the file is another one than was disputed")
        judgement = judge(item.file, view, context.engine)
        if judgement.upheld:
            raise RejectedError(judgement.reason)
    # A verifier cannot fail a window by its word alone: it shows the file, or the finding.
    if item.step and item.file is None and item.finding is None:
        raise RejectedError(f"step {item.step} is said to fail, and nothing here shows it")
    return item.step is not None


def _check_finding(context: Context, item: KeptDispute) -> None:
    """RejectedError unless the arbiter of the policy found about this file, and did not uphold."""
    finding, arbiter = item.finding, context.policy.keys.arbiter
    if finding is None or arbiter is None:
        raise RejectedError("the policy names no arbiter")
    finding.verify(arbiter)
    dispute = item.dispute
    about = (finding.origin, finding.index, finding.answer_digest, finding.file_digest)
    if about != (dispute.origin, dispute.index, dispute.answer_digest, dispute.file_digest):
        raise RejectedError("the finding is about another file")
    if finding.upheld:
        raise RejectedError(f"upheld by the arbiter: step {finding.step}")
