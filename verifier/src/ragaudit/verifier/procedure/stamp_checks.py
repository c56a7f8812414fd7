"""Check 24: when opening and final checkpoint existed, by authorities that the verifier trusts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragaudit.encoding.errors import RejectedError, UnsupportedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.log.timestamps import Stamp, read_roots, verify_stamp
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.time_stamps import TimeStamps
from ragaudit.ledger.messages.verdict import Status
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import STAMP_LIBRARY, MissingInput
from ragaudit.verifier.procedure.framework import Findings


@dataclass(frozen=True, slots=True)
class _Due:
    """A checkpoint that is to be stamped, and when it may have been; Unix seconds."""

    what: str
    sizes: frozenset[int]
    earliest: int
    latest: int


def check_time_stamps(context: Context, found: Findings) -> None:
    """24: opening and final checkpoint have stamps from the time at which they were made."""
    policy, stamps, stated = context.policy, _stamps(context), dict[str, Any]()
    for due in _due(context):
        own = [(stamp.not_after, size) for size, stamp in stamps if size in due.sizes]
        fitting = [(time, size) for time, size in own if due.earliest <= time <= due.latest]
        stated[due.what] = None
        if fitting:
            time, size = min(fitting)
            stated[due.what] = {"size": size, "time": time, "stamps": len(fitting)}
            shown = rfc3339(1000 * time)
            found.note(f"the {due.what} checkpoint, of {size} entries, existed by {shown}")
            continue
        found.note(f"{len(own)} time stamps of the {due.what} checkpoint, none of them in time")
        between = " to ".join(rfc3339(1000 * time) for time in (due.earliest, due.latest))
        reason = f"no time stamp of the {due.what} checkpoint is from {between}"
        if policy.time_stamps:
            found.fault(reason)
        else:
            text = f"when the log existed, by anybody but provider and verifier: {reason}"
            found.downgrade(Status.NOT_ESTABLISHED, text)
    context.stated.time_stamps = stated
    found.summary = "opening and final checkpoint are stamped by a trusted authority, in time"


def _due(context: Context) -> tuple[_Due, _Due]:
    """What is stamped, and when that may have been (spec 9, check 24)."""
    policy = context.policy
    # Every tree but the empty one has the opening as its first leaf.
    opening = frozenset(one.size for one in context.checkpoints) - {0}
    skew = policy.clock_skew_seconds
    begun = policy.start + policy.merge_delay_seconds + skew
    first = context.countersignature.time // 1000 - skew
    final = context.final.signed.head.size
    return (
        _Due("opening", opening, first, begun),
        _Due("final", frozenset({final}), policy.end - skew, policy.sampling_instant),
    )


def _stamps(context: Context) -> Sequence[tuple[int, Stamp]]:
    """Every stamp that was taken, each verified under the roots that were taken with them.

    Raises:
        MissingInput: `time-stamps` for one that is false: the verifier took none such.
    """
    known = {one.size: one.signed.checkpoint for one in context.checkpoints}
    pem = context.item(items.STAMP_ROOTS, "time-stamps")
    roots = read_roots(pem) if pem else ()  # of a verifier that trusts none
    found = []
    for stamp in context.parsed(items.TIME_STAMPS, "time-stamps", TimeStamps.parse).messages:
        if stamp.size not in known:
            raise RejectedError("not one that the verifier cosigned", where=f"size {stamp.size}")
        try:
            found.append((stamp.size, verify_stamp(stamp.token, known[stamp.size], roots)))
        except UnsupportedError as error:
            # Nobody's fault, and nothing that could be said without it.
            raise MissingInput(STAMP_LIBRARY, str(error)) from error
    return found
