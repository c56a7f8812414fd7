"""Check 15: what accounts disputed, and what became of it."""

from ragaudit.encoding.errors import RagauditError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.disputes import file_digest
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.disputes import KeptDispute, judge
from ragaudit.verifier.procedure.framework import Findings


def check_disputes(context: Context, found: Findings) -> None:
    """15: no account shows an answer that contradicts its record.

    A dispute has no effect on the sample, and none at all unless it is upheld.
    """
    view = WindowView(context.policy, context.opening)
    counts = {"judged": 0, "open": 0}
    for kept in context.disputes:
        where = f"dispute about record {kept.dispute.index}"
        try:
            _check_owner(context, kept)
        except RagauditError as error:
            found.note(f"{where} dismissed: {error}")
            continue
        with found.attempt(where):
            counts["judged" if _check_upheld(context, view, kept) else "open"] += 1
    context.stated.disputes_open = counts["open"]
    found.summary = f"{len(context.disputes)} disputes, {counts['judged']} judged, none upheld"
    if counts["open"]:
        found.note(
            f"{counts['open']} were judged by nobody: the account showed no file, or its record "
            "was sampled and no arbiter found anything"
        )


def _check_owner(context: Context, kept: KeptDispute) -> None:
    """RejectedError unless the account whose record it is disputes it."""
    dispute = kept.dispute
    if dispute.origin != context.policy.origin:
        raise RejectedError("of another log")
    registered = context.registered.get(dispute.pseudonym, ())
    if len(registered) != 1:
        raise RejectedError("no such account")
    key = registered[0].registration.dispute_key
    if key is None:
        raise RejectedError("the account has no dispute key")
    dispute.verify_signature(PublicKey.from_raw(key))
    owned = context.by_account.get(dispute.pseudonym, ())
    if dispute.index not in {each.index for each in owned}:
        raise RejectedError("no record of this account")


def _check_upheld(context: Context, view: WindowView, kept: KeptDispute) -> bool:
    """Whether anybody judged it; RejectedError if it is upheld."""
    if kept.finding is not None:
        _check_finding(context, kept)
    if kept.file is not None:
        if file_digest(kept.file) != kept.dispute.file_digest:
            raise RejectedError("the file is another one than was disputed")
        judgement = judge(kept.file, view, context.engine)
        if judgement.upheld:
            raise RejectedError(judgement.reason)
    if kept.step and kept.file is None and kept.finding is None:
        raise RejectedError(f"step {kept.step} is said to fail, and nothing here shows it")
    return kept.step is not None


def _check_finding(context: Context, kept: KeptDispute) -> None:
    finding, arbiter = kept.finding, context.policy.keys.arbiter
    if finding is None or arbiter is None:
        raise RejectedError("the policy names no arbiter")
    finding.verify_signature(arbiter)
    dispute = kept.dispute
    named = (finding.origin, finding.index, finding.answer_digest, finding.file_digest)
    if named != (dispute.origin, dispute.index, dispute.answer_digest, dispute.file_digest):
        raise RejectedError("the finding is about another file")
    if finding.upheld:
        raise RejectedError(f"upheld by the arbiter: step {finding.step}")
