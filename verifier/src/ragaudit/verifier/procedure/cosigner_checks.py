"""Check 23: the further cosigners that the policy names saw the log that the audit is about."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from ragaudit.encoding.text import hex_encode, rfc3339
from ragaudit.ledger.log.tlog_policy import QuorumFinding
from ragaudit.ledger.messages.verdict import Status
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.framework import Findings


def check_cosigners(context: Context, found: Findings) -> None:
    """23: the quorum stands behind opening and final checkpoint; what it lacks is said."""
    policy = context.policy
    terms = policy.cosigners
    assert terms is not None  # or the check is not listed
    shown, head = context.further, context.final.signed.head
    opening = next((one for one in shown if one.signed.head.size > 0), None)
    final = next((one for one in shown if one.signed.head == head), None)
    records, in_time = context.record_places, _in_time(context, shown)
    context.stated.quorum = {
        "policy": hex_encode(terms.trust.digest),
        "quorum": terms.trust.quorum,
        "known": len(terms.trust.cosigners),
        "opening": _stated(opening),
        "final": _stated(final),
        "records": len(records),
        "records_in_time": in_time,
    }
    # Before queries come, the opening has been seen; before the sample is drawn, the end.
    begun = policy.start + policy.merge_delay_seconds + policy.clock_skew_seconds
    for what, finding, limit in (
        ("opening", opening, begun),
        ("final", final, policy.sampling_instant),
    ):
        reason = ""
        if finding is None:
            reason = f"no {what} checkpoint has the quorum {terms.trust.quorum}"
        elif finding.time is not None and finding.time > limit:
            time, due = rfc3339(1000 * finding.time), rfc3339(1000 * limit)
            reason = f"the {what} checkpoint has the quorum since {time}, due by {due}"
        if reason and terms.required:
            found.fault(reason)
        elif reason:
            found.downgrade(Status.NOT_ESTABLISHED, f"that third parties saw the log: {reason}")
        if finding is not None:
            found.note(f"{what} checkpoint of {finding.signed.head.size} entries: {finding}")
    found.note(f"{in_time} of {len(records)} records under the quorum within the merge delay")
    found.summary = (
        f"quorum {terms.trust.quorum} of {len(terms.trust.cosigners)} further cosigners for "
        f"opening and final checkpoint, for {in_time} of {len(records)} records in time"
    )


def _stated(finding: QuorumFinding | None) -> Mapping[str, Any] | None:
    """Return what the verdict says of one checkpoint; None where none has the quorum."""
    if finding is None:
        return None
    cosigned = {name: line.timestamp for name, line in finding.cosignatures.items()}
    return {"size": finding.signed.head.size, "time": finding.time, "cosigned": cosigned}


def _in_time(context: Context, shown: Sequence[QuorumFinding]) -> int:
    """Return how many records a checkpoint with the quorum covered within the merge delay.

    It counts from the first checkpoint that covers the record and the verifier cosigned: the
    receipt may be complete from then on, and says with which cosigners.
    """
    policy = context.policy
    known = context.checkpoints
    sizes, first = [one.size for one in known], [one.time for one in known]
    larger = [one.signed.head.size for one in shown]
    # From each size on, the earliest time at which the quorum had seen so much or more.
    times = [one.time or 0 for one in shown]
    earliest = list(accumulate(reversed(times), min))[::-1]
    allowed = policy.merge_delay_seconds + policy.clock_skew_seconds
    count = 0
    for index in context.record_places:
        at, by = bisect_right(sizes, index), bisect_right(larger, index)
        covered = at < len(sizes) and by < len(larger)
        count += covered and earliest[by] <= first[at] + allowed
    return count
