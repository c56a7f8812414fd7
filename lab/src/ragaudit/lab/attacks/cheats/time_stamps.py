"""Check time-stamps: when the log existed, by authorities that are nobody's of the audit."""

from dataclasses import replace
from functools import partial
from typing import Final

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.policy import CLOSED
from ragaudit.lab.scenario.stamped import StampedWindow, authority
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.messages.evidence import TimeStamp


class StampsTheEndLate(StampedWindow):
    """The final checkpoint is stamped when the sample is known: it may be another log by then.

    Check 24 (`time-stamps`) wants the stamp before the sampling instant.
    """

    def stamped_at(self, size: int, time: int) -> int | None:
        return time + 3600 if time >= CLOSED else time + 1


class StampsTheOpeningLate(StampedWindow):
    """Nothing is stamped before the window's end: the opening may be made up by then.

    Check 24 (`time-stamps`) wants a stamp when the window begins.
    """

    def stamped_at(self, size: int, time: int) -> int | None:
        return time + 1 if time >= CLOSED else None


class StampsItself(StampedWindow):
    """One stamp is by an authority of the provider's own.

    Check 24 (`time-stamps`) believes the verifier's roots alone.
    """

    def stamps(self) -> list[TimeStamp]:
        *rest, last = super().stamps()
        _, time, note = self.checkpoints[-1]
        text = parse_checkpoint(note.encode()).checkpoint.text.encode()
        return [*rest, replace(last, token=authority("another root").stamp(text, time + 1))]


class StampsSomethingElse(StampedWindow):
    """The stamp of the final checkpoint is one of something else.

    Check 24 (`time-stamps`) compares what was stamped.
    """

    def stamps(self) -> list[TimeStamp]:
        *rest, last = super().stamps()
        return [*rest, replace(last, token=rest[-1].token)]


constructed = partial(
    ConstructedCheat,
    family="INTEGRITY",
    checks=("time-stamps",),
    why="the verifier's service takes no stamp that it does not believe",
)

CHEATS: Final = (
    constructed(
        name="end-stamped-after-the-sample",
        description="Has the final checkpoint stamped when the sample is known.",
        window=StampsTheEndLate,
        reason="no time stamp of the final checkpoint",
    ),
    constructed(
        name="opening-stamped-at-the-end",
        description="Has nothing stamped before the window is over.",
        window=StampsTheOpeningLate,
        reason="no time stamp of the opening checkpoint",
    ),
    constructed(
        name="stamped-by-itself",
        description="Shows a time stamp of an authority that nobody trusts.",
        window=StampsItself,
        reason="a trusted root's",
    ),
    constructed(
        name="another-thing-stamped",
        description="Shows the time stamp of one checkpoint as that of another.",
        window=StampsSomethingElse,
        reason="a stamp of another checkpoint",
    ),
)
