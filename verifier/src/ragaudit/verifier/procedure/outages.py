"""For people: when a window's log went on without its cosigner, and how late it was handed over.

No rule is judged here (check 9 owns times): a restart, a verifier that was away and a network that
was cut all look alike from outside, and are told as what V's own clock shows of them.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from ragaudit.encoding.text import rfc3339
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput

MOST_OUTAGES: Final = 5  # lines, with one for how many there are more
TOLD_FROM: Final = 0.5  # of the merge delay


def outages(context: Context) -> Iterator[str]:
    """Yield at most `MOST_OUTAGES` lines, the longest waits of the log, in order of time.

    Args:
        context: of a window; what cannot be read of it is told by the check that owns it.
    """
    waits, handover = _known(_waits(context)), _known(_handover(context))
    room = MOST_OUTAGES - len(handover)
    longest = sorted(waits, reverse=True)[: room if len(waits) <= room else room - 1]
    yield from (line for wait, line in waits if (wait, line) in longest)
    if len(waits) > len(longest):
        yield f"{len(waits) - len(longest)} shorter waits for a cosigned checkpoint"
    yield from (line for _, line in handover)


def _known(lines: Iterator[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines, as far as what they need can be read."""
    with suppress(MissingInput):
        return list(lines)
    return []


def _waits(context: Context) -> Iterator[tuple[int, str]]:
    """(milliseconds, line) of each wait that used up more than half of what is allowed."""
    policy, final = context.policy, context.log.tree.size
    inside = [known for known in context.checkpoints if known.size < final]
    ends = [*((each.size, each.time) for each in inside), (final, context.final_time)]
    times, start = dict(_times(context)), 0
    for size, seconds in ends:
        stamped = [times[index] for index in range(start, size) if index in times]
        wait = 1000 * seconds - min(stamped, default=1000 * seconds)
        if wait > TOLD_FROM * 1000 * policy.merge_delay_seconds:
            yield (
                wait,
                f"{rfc3339(min(stamped))} to {rfc3339(1000 * seconds)}: no checkpoint was cosigned "
                f"while {size - start} entries waited for one, the first for {wait // 1000} of the "
                f"{policy.merge_delay_seconds} seconds that the policy allows",
            )
        start = size


def _times(context: Context) -> Iterable[tuple[int, int]]:
    """(log index, time) of entries that are stamped when they are logged.

    An anchored account's record is stamped when it is promised, and logged once that is revealed.
    """
    yield from ((each.index, each.registration.time) for each in context.registrations)
    yield from ((index, version.time) for index, version in context.version_entries)
    for logged in context.records.summaries():
        if not logged.anchored:
            yield logged.entry, logged.time


def _handover(context: Context) -> Iterator[tuple[int, str]]:
    """(milliseconds, line) of a log that came later than any entry may stay uncovered."""
    policy, taken = context.policy, context.clock.records
    late = 0 if taken is None else taken - 1000 * policy.end
    if late > 1000 * policy.merge_delay_seconds:
        yield (
            late,
            f"{rfc3339(1000 * policy.end + late)}: the log was handed over, {late // 1000} seconds "
            "after the window's end",
        )
