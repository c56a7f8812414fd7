"""Check seed: noise keys that were not fixed, each for one record, before the window."""

from dataclasses import replace
from typing import Final

from ragaudit.encoding.digests import structure
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.seed_commitments import (
    KeyOpening,
    SeedCommitment,
    counter_key,
    key_leaf,
    slot_key,
)
from ragaudit.prover.randomness import EPOCH, SeedTree


class EqualKeys(SeedTree):
    """The keys of slot 0, committed to in every slot.

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


class UncommittedKey(SeedTree):
    """Another key than the committed one, picked when the activation was known.

    Check 17 (`seed`) wants each opened key in C_seed at its place.
    """

    def key(self, slot: int, counter: int) -> bytes:
        return structure("picked", super().key(slot, counter))

    def open(self, slot: int, counter: int) -> KeyOpening:
        return replace(super().open(slot, counter), key=self.key(slot, counter))


CHEATS: Final = (
    ServiceCheat(
        name="equal-keys-for-all-slots", family="SEED",
        description="Commits to the same noise keys in every slot.",
        parts={"seed_tree": EqualKeys},
        checks=("seed",), reason="the key of another record was committed again",
    ),
    ServiceCheat(
        name="key-not-in-c-seed", family="SEED",
        description="Draws noise from a key that was not committed to, and opens that key.",
        parts={"seed_tree": UncommittedKey},
        checks=("seed",), reason="not the committed value",
    ),
)  # fmt: skip
