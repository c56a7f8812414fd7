"""Checks seed and schedule: keys and epochs with which noise could be chosen or drawn twice."""

from dataclasses import replace
from functools import partial

from ragaudit.encoding.digests import structure
from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.scenario.integrity import RestoredWindow
from ragaudit.lab.scenario.opening import Account, Asked, Event
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.commitments import (
    KeyOpening,
    SeedCommitment,
    counter_key,
    key_leaf,
    slot_key,
)
from ragaudit.ledger.messages.entries import Epoch, Record
from ragaudit.prover.randomness import EPOCH, SeedTree

# --- keys ----------------------------------------------------------------------------------------


@ServiceCheat(
    "equal-keys-for-all-slots",
    "SEED",
    ("seed",),
    reason="the key of another record was committed again",
)
class EqualKeys(SeedTree):
    """Commits to the same noise keys in every slot.

    They are the keys of slot 0.

    Check 17 (`seed`) wants opened keys pairwise distinct.
    """

    def key(self, slot: int, counter: int) -> bytes:
        return counter_key(slot_key(self._secret, self._window, EPOCH, 0), counter)

    def commit(self) -> SeedCommitment:
        roots = b"".join(self._tree(slot).root() for slot in range(self._slots))
        return SeedCommitment(self._secret, self._window, EPOCH, roots, self._queries)

    def open(self, slot: int, counter: int) -> KeyOpening:
        slots = MemoryTree([self._tree(each).root() for each in range(self._slots)])
        path = self._tree(slot).inclusion_proof(counter)
        return KeyOpening(self.key(slot, counter), path, slots.inclusion_proof(slot))

    def _tree(self, slot: int) -> MemoryTree:
        counters = range(self._queries)
        return MemoryTree([key_leaf(EPOCH, slot, c, self.key(slot, c)) for c in counters])


@ServiceCheat("key-not-in-c-seed", "SEED", ("seed",), reason="not the committed value")
class UncommittedKey(SeedTree):
    """Draws noise from a key that was not committed to, and opens that key.

    The key was picked when the activation was known.

    Check 17 (`seed`) wants each opened key in C_seed at its place.
    """

    def key(self, slot: int, counter: int) -> bytes:
        return structure("picked", super().key(slot, counter))

    def open(self, slot: int, counter: int) -> KeyOpening:
        return replace(super().open(slot, counter), key=self.key(slot, counter))


# --- epochs --------------------------------------------------------------------------------------

epoch = partial(ConstructedCheat, family="EPOCH")


@epoch("old-seed-after-an-epoch", checks=("schedule",), reason="epoch 1 (expected 2)")
class AnswersUnderTheOldSeed(RestoredWindow):
    """Answers with the keys of the old epoch when the new one is in force.

    bob gets such answers, in epoch 2.

    Check 9 (`schedule`) wants the epoch in force: lost records may have had these keys.
    """

    def epoch_in_force(self, time: int) -> int:
        return 1 if time == 1000 * (self.start + 70) else super().epoch_in_force(time)

    def activation_of_epoch(self, number: int) -> int | None:
        return super().activation_of_epoch(2) if len(self.epochs) > 1 else 1


@epoch(
    "answers-between-restore-and-instant",
    checks=("schedule",),
    reason="behind the entry of epoch 2",
)
class AnswersBeforeTheInstant(RestoredWindow):
    """Answers under the old epoch between a restore and the next instant.

    alice gets such an answer, under epoch 1.

    Check 9 (`schedule`): behind an epoch entry no record is of an earlier one.
    """

    def script(self) -> list[Event]:
        honest = super().script()
        at = honest.index(("checkpoint", 42))
        return [*honest[:at], ("query", "alice", "a question too early", 1, 40), *honest[at:]]


@epoch("epoch-without-activation", checks=("schedule",), reason="epoch 2 (expected 1)")
class StartsWithoutActivation(RestoredWindow):
    """Uses an epoch before the instant that activates it.

    Epoch 2 answers as soon as it is logged, with the randomness that was known before.

    Check 9 (`schedule`) wants the instant that activates it: keys could be fitted to the noise.
    """

    def script(self) -> list[Event]:
        honest = super().script()
        at = honest.index(("checkpoint", 42))
        return [*honest[:at], ("query", "alice", "a question too early", 1, 40), *honest[at:]]

    def epoch_in_force(self, time: int) -> int:
        return len(self.epochs)


@epoch("counters-anew-in-an-epoch", checks=("counters",), reason="counter 0, expected 1")
class CountsAnew(RestoredWindow):
    """Counts an account's queries from 0 again after a restore.

    The account is bob's.

    Check 8 (`counters`): r queries are for the window, not for each epoch.
    """

    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, counter=0) if account.name == "bob" else record


@epoch("epoch-that-hides-records", checks=("schedule",), reason="the last one cosigned before it")
class HidesRecords(RestoredWindow):
    """Goes on from an earlier checkpoint than was cosigned.

    The new epoch names that checkpoint.

    Check 9 (`schedule`) wants the last: what lies between would seem not to have been known.
    """

    def alter_epoch(self, entry: Epoch) -> Epoch:
        size = self.checkpoints[0][0]
        return replace(entry, size=size, root=self.tree.root(size))


@epoch("two-epochs-at-once", checks=("schedule",), reason="begin at once")
class HasTwoEpochsAtOnce(RestoredWindow):
    """Has two seed epochs activated by one instant.

    Both are logged before it.

    Check 9 (`schedule`) wants one: with two sets of keys at hand noise could be chosen.
    """

    def script(self) -> list[Event]:
        honest = super().script()
        at = honest.index(("checkpoint", 42))
        return [*honest[:at], ("epoch", 40), *honest[at:]]


@epoch("key-of-the-epoch-before", checks=("seed",), reason="not the committed value")
class OpensTheOldKeys(RestoredWindow):
    """Draws noise with the key of the epoch before.

    It is the key that epoch 1 has at the same slot and counter.

    Check 17 (`seed`) wants a key that lies in C_seed of the record's epoch.
    """

    def noise_secret(self, record: Record) -> bytes:
        return super().noise_secret(replace(record, epoch=1))

    def open_key(self, asked: Asked) -> KeyOpening:
        record = asked.record
        return self.seeds[0].open(record.slot, record.counter)
