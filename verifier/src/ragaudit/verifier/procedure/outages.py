"""For people: when a window's log went on without its cosigner, and what came how late.

No rule is judged here (check 9 owns times): a restart, a verifier that was away, a beacon that was
late and a network that was cut all look alike from outside, and are told as V's own clock shows
them.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from ragaudit.encoding.text import rfc3339
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput

MOST_OUTAGES: Final = 5  # lines, with one for how many there are more
TOLD_FROM: Final = 0.5  # of the merge delay: what a log may wait without being told


class _Outage(NamedTuple):
    """How long one lasted (milliseconds), since when (Unix milliseconds), and its words."""

    milliseconds: int
    start: int
    line: str


def outages(context: Context) -> Iterator[str]:
    """Yield at most `MOST_OUTAGES` lines, the longest outages, in order of time.

    Args:
        context: of a window; what cannot be read of it is told by the check that owns it.
    """
    found: list[_Outage] = []
    for source in (_waits(context), _activations(context), _handover(context), _sample(context)):
        with suppress(MissingInput):
            found.extend(source)
    told = sorted(found, reverse=True)
    if len(told) > MOST_OUTAGES:
        told = told[: MOST_OUTAGES - 1]
    for each in sorted(told, key=lambda outage: outage.start):
        yield each.line
    if len(found) > len(told):
        yield f"{len(found) - len(told)} shorter outages"


def _waits(context: Context) -> Iterator[_Outage]:
    """Each wait that used up more than half of what is allowed."""
    policy, final = context.policy, context.log.tree.size
    inside = [known for known in context.checkpoints if known.size < final]
    ends = [*((each.size, each.time) for each in inside), (final, context.final_time)]
    sizes, start = [size for size, _ in ends], 0
    # Of the entries that wait for each, the first: all of them would be the window in memory.
    stamped: dict[int, int] = {}
    for index, time in _times(context):
        number = bisect_right(sizes, index)
        stamped[number] = min(time, stamped.get(number, time))
    for number, (size, seconds) in enumerate(ends):
        first = stamped.get(number, 1000 * seconds)
        wait = 1000 * seconds - first
        if wait > TOLD_FROM * 1000 * policy.merge_delay_seconds:
            yield _Outage(
                wait,
                first,
                f"{rfc3339(first)} to {rfc3339(1000 * seconds)}: no checkpoint was cosigned "
                f"while {size - start} entries waited for one, the first for {wait // 1000} of the "
                f"{policy.merge_delay_seconds} seconds that the policy allows",
            )
        start = size


def _times(context: Context) -> Iterable[tuple[int, int]]:
    """(log index, time) of entries that are stamped when they are logged.

    An anchored account's record is stamped when it is promised, and logged once that is revealed.
    """
    yield from ((each.entry, each.time) for each in context.registrations.summaries())
    yield from ((index, version.time) for index, version in context.version_entries)
    for logged in context.records.summaries():
        if not logged.anchored:
            yield logged.entry, logged.time


def _activations(context: Context) -> Iterator[_Outage]:
    """Each activation that was released late: until then nothing that needs it was answered.

    One that came after the window's end was perhaps asked for by nobody.
    """
    policy = context.policy
    for a, message in sorted(context.activations.items()):
        if message.time >= 1000 * policy.end:
            continue
        what = f"activation {a} was released"
        yield from _late(context, message.time, policy.release_instant(a), what, "it was due")


def _handover(context: Context) -> Iterator[_Outage]:
    """A log that came later than any entry may stay uncovered."""
    if (taken := context.clock.records) is not None:
        end = context.policy.end
        yield from _late(context, taken, end, "the log was handed over", "the window's end")


def _sample(context: Context) -> Iterator[_Outage]:
    """A sample that was drawn late."""
    policy = context.policy
    drawn = context.challenge.deadline - 1000 * policy.audit.deadline_seconds
    due = policy.release_instant(policy.activations)
    yield from _late(context, drawn, due, "the sample was drawn", "it was due")


def _late(context: Context, came: int, due: int, what: str, after: str) -> Iterator[_Outage]:
    """What came (Unix milliseconds) later than it was due (Unix seconds), by the merge delay."""
    late = came - 1000 * due
    if late > 1000 * context.policy.merge_delay_seconds:
        line = f"{rfc3339(came)}: {what}, {late // 1000} seconds after {after}"
        yield _Outage(late, 1000 * due, line)
