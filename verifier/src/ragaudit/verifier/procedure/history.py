"""The history of a window in words, for people: what changed in it, and when nobody was there."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from ragaudit.encoding.text import rfc3339
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import MAX_EVIDENCE, Findings
from ragaudit.verifier.procedure.outages import MOST_OUTAGES, outages

# With a line for how many there are more, and room for what went wrong meanwhile.
_MOST: Final = MAX_EVIDENCE - MOST_OUTAGES - 1
_REASONS: Final = {
    "restore": "database or fence had been restored or lost",
    "key-loss": "the seed of the noise was lost, or had become known",
}


def note_history(context: Context, found: Findings) -> None:
    """Say which indexes and seeds changed, when, and why, in log order; then the outages.

    Args:
        context: of the run.
        found: of check 9.
    """
    lines = []
    # Told by whoever needs them: words for people are no rule that could be broken.
    with suppress(MissingInput):
        lines = [text for _, text in sorted([*_versions(context), *_epochs(context)])]
    for line in lines[:_MOST]:
        found.note(line)
    if len(lines) > _MOST:
        found.note(f"{len(lines) - _MOST} more changes")
    for line in outages(context):
        found.note(line)


def _versions(context: Context) -> Iterator[tuple[int, str]]:
    times = {index: version.time for index, version in context.version_entries}
    for logged in context.schedule.versions:
        index = logged.index
        if logged.entry:
            yield (
                logged.entry,
                f"{rfc3339(times[logged.entry])}: version {index.version} of the index of "
                f"{index.tenant}, {index.rows} rows, logged as entry {logged.entry}; "
                f"{_in_force(context, logged.activation)}",
            )


def _epochs(context: Context) -> Iterator[tuple[int, str]]:
    bodies = dict(context.epoch_entries)
    for logged in context.epochs.epochs:
        if logged.entry:
            epoch = bodies[logged.entry]
            yield (
                logged.entry,
                f"{rfc3339(epoch.time)}: {_REASONS[epoch.reason]}; the log goes on behind entry "
                f"{logged.entry - 1} (cosigned up to {epoch.size} entries) with seed epoch "
                f"{epoch.epoch}, nothing is answered before it; "
                f"{_in_force(context, logged.activation)}",
            )


def _in_force(context: Context, activation: int | None) -> str:
    if activation is None:
        return "never in force: the window had no instant left"
    instant = context.policy.activation_instants[activation - 1]
    return f"in force from {rfc3339(1000 * instant)}"
