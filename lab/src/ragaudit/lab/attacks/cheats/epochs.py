"""Check schedule and its neighbours: seed epochs that hide records, or let noise be drawn twice."""

from dataclasses import replace
from functools import partial
from typing import Final

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.accounts import Account, Asked
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.restored import RestoredWindow
from ragaudit.ledger.messages.epoch_entry import Epoch
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.seed_commitments import KeyOpening


class AnswersUnderTheOldSeed(RestoredWindow):
    """Epoch 2 is in force, and bob is answered with the keys of epoch 1.

    Check 9 (`schedule`) wants the epoch in force: lost records may have had these keys.
    """

    def epoch_in_force(self, time: int) -> int:
        return 1 if time == 1000 * (self.start + 70) else super().epoch_in_force(time)

    def activation_of_epoch(self, number: int) -> int | None:
        return super().activation_of_epoch(2) if len(self.epochs) > 1 else 1


class AnswersBeforeTheInstant(RestoredWindow):
    """Between the restore and the instant of epoch 2 alice is answered, still under epoch 1.

    Check 9 (`schedule`): behind an epoch entry no record is of an earlier one.
    """

    def script(self) -> list[Event]:
        honest = super().script()
        at = honest.index(("checkpoint", 42))
        return [*honest[:at], ("query", "alice", "a question too early", 1, 40), *honest[at:]]


class StartsWithoutActivation(RestoredWindow):
    """Epoch 2 answers as soon as it is logged, with the randomness that was known before.

    Check 9 (`schedule`) wants the instant that activates it: keys could be fitted to the noise.
    """

    def script(self) -> list[Event]:
        honest = super().script()
        at = honest.index(("checkpoint", 42))
        return [*honest[:at], ("query", "alice", "a question too early", 1, 40), *honest[at:]]

    def epoch_in_force(self, time: int) -> int:
        return len(self.epochs)


class CountsAnew(RestoredWindow):
    """Behind the restore bob's queries are counted from 0 again.

    Check 8 (`counters`): r queries are for the window, not for each epoch.
    """

    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, counter=0) if account.name == "bob" else record


class HidesRecords(RestoredWindow):
    """The epoch names an earlier checkpoint than the last one that was cosigned.

    Check 9 (`schedule`) wants the last: what lies between would seem not to have been known.
    """

    def alter_epoch(self, entry: Epoch) -> Epoch:
        size = self.checkpoints[0][0]
        return replace(entry, size=size, root=self.tree.root(size))


class HasTwoEpochsAtOnce(RestoredWindow):
    """Two epochs are logged before one instant, and it activates both.

    Check 9 (`schedule`) wants one: with two sets of keys at hand noise could be chosen.
    """

    def script(self) -> list[Event]:
        honest = super().script()
        at = honest.index(("checkpoint", 42))
        return [*honest[:at], ("epoch", 40), *honest[at:]]


class OpensTheOldKeys(RestoredWindow):
    """Noise of epoch 2 is drawn with the key that epoch 1 has at the same slot and counter.

    Check 17 (`seed`) wants a key that lies in C_seed of the record's epoch.
    """

    def noise_secret(self, record: Record) -> bytes:
        return super().noise_secret(replace(record, epoch=1))

    def open_key(self, asked: Asked) -> KeyOpening:
        record = asked.record
        return self.seeds[0].open(record.slot, record.counter)


_EASY: Final = "nothing stops a service; evidence made without one shows it in a second"

epoch = partial(ConstructedCheat, family="EPOCH", why=_EASY)

CHEATS: Final = (
    epoch(
        name="old-seed-after-an-epoch",
        description="Answers with the keys of the old epoch when the new one is in force.",
        window=AnswersUnderTheOldSeed,
        checks=("schedule",),
        reason="epoch 1 (expected 2)",
    ),
    epoch(
        name="answers-between-restore-and-instant",
        description="Answers under the old epoch between a restore and the next instant.",
        window=AnswersBeforeTheInstant,
        checks=("schedule",),
        reason="behind the entry of epoch 2",
    ),
    epoch(
        name="epoch-without-activation",
        description="Uses an epoch before the instant that activates it.",
        window=StartsWithoutActivation,
        checks=("schedule",),
        reason="epoch 2 (expected 1)",
    ),
    epoch(
        name="counters-anew-in-an-epoch",
        description="Counts an account's queries from 0 again after a restore.",
        window=CountsAnew,
        checks=("counters",),
        reason="counter 0, expected 1",
    ),
    epoch(
        name="epoch-that-hides-records",
        description="Goes on from an earlier checkpoint than was cosigned.",
        window=HidesRecords,
        checks=("schedule",),
        reason="the last one cosigned before it",
    ),
    epoch(
        name="two-epochs-at-once",
        description="Has two seed epochs activated by one instant.",
        window=HasTwoEpochsAtOnce,
        checks=("schedule",),
        reason="begin at once",
    ),
    epoch(
        name="key-of-the-epoch-before",
        description="Draws noise with the key of the epoch before.",
        window=OpensTheOldKeys,
        checks=("seed",),
        reason="not the committed value",
    ),
)
