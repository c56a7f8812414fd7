"""Checks 12 to 14: what the provider signed for accounts, against the log.

Anyone may submit anything, so only what the provider's signature binds counts against it; the
rest is dismissed.
"""

from collections.abc import Iterator

from ragaudit.encoding.errors import RagauditError, RejectedError
from ragaudit.encoding.times import rfc3339
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Refusal
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.verifier import evidence as items
from ragaudit.verifier.procedure.claims import ReceivedClaim, claims, revealed
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.framework import Findings


def check_promises(context: Context, found: Findings) -> None:
    """12: promises are made in time, every revealed one is kept, none twice for one counter."""
    promised: dict[tuple[bytes, int], bytes] = {}
    kept = 0
    for claim in claims(context):
        pseudonym, counter = claim.query
        where = f"promise for query {counter} of {pseudonym.hex()}"
        if promised.setdefault(claim.query, claim.promise.body) != claim.promise.body:
            found.fault("another promise was signed for the same query", where)
        if not claim.in_time(context.policy):
            found.note(f"{where}: dismissed, as it had expired when it was claimed")
            continue
        with found.attempt(where):
            if revealed(context, claim):
                _check_made(context.policy, claim)
                _check_kept(context, claim)
                kept += 1
    found.summary = f"{kept} revealed promises, all kept"


def _check_made(policy: Policy, claim: ReceivedClaim) -> None:
    made = claim.record.time
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
    """That several records carry the counter is `counters`' to say."""
    pseudonym, counter = claim.query
    records = context.by_account.get(pseudonym, ())
    same = [each.record for each in records if each.record.counter == counter]
    if not same:
        raise RejectedError("no record keeps it, although its nonce was revealed")
    if not any(each.nonce == claim.nonce and each.promised() == claim.record for each in same):
        raise RejectedError("the record contradicts it")


def check_receipts(context: Context, found: Findings) -> None:
    """13: every receipt's record stands where the receipt says, and no two contradict.

    The public halves of disputed receipt files are receipts like any other.

    Two receipts for one query of an account at two places of the log contradict each other only
    if one of them is not in the log, which is found here, or if the log holds the query twice,
    which `counters` says.
    """
    log = context.log
    receipts = (*context.receipts, *context.disputed_receipts)
    seen: dict[int, PublicReceipt] = {}
    for receipt in receipts:
        where = f"receipt for record {receipt.index}"
        if receipt.index >= len(log.leaves) or log.leaves[receipt.index] != receipt.leaf_data:
            found.fault("signed for a record that is not in the log at that place", where)
        other = seen.setdefault(receipt.index, receipt)
        if other.identity != receipt.identity:
            found.fault("two different receipts were signed", where)
    found.summary = f"{len(receipts)} receipts, all of them in the log"


def check_refusals(context: Context, found: Findings) -> None:
    """14: no refusal came too early, or counts queries that the log lacks."""
    policy = context.policy
    refusals = list(_refusals(context.list(items.REFUSALS, found.owner), policy))
    for refusal in refusals:
        where = f"refusal to {refusal.pseudonym.hex()} at {rfc3339(refusal.time)}"
        with found.attempt(where):
            refusal.verify_budget(policy.queries_per_account)
        with found.attempt(where):
            logged = len(context.by_account.get(refusal.pseudonym, ()))
            if refusal.counter > logged:
                raise RejectedError(
                    f"counts {refusal.counter} queries", expected=f"{logged}, as the log has"
                )
    found.summary = f"{len(refusals)} refusals, none contradicted by the log"


def _refusals(listed: list[object], policy: Policy) -> Iterator[Refusal]:
    for value in listed:
        try:
            refusal = Refusal.from_json(value)
            refusal.verify_signature(policy.keys.provider)
        except RagauditError:
            continue
        if refusal.origin == policy.origin:
            yield refusal
