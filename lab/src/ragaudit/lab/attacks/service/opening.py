"""SEED, INDEX and POLICY: cheats in what is fixed before the window."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from ragaudit.encoding.digests import structure
from ragaudit.encoding.parameters import LIMITS
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.merkle_commitments import (
    KeyOpening,
    SeedCommitment,
    counter_key,
    key_leaf,
    slot_key,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening
from ragaudit.privacy.accounting import calibrate
from ragaudit.prover.index import CommittedIndex, IndexBuilder, Rows, Scalars
from ragaudit.prover.lifecycle.committing import Committer
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder
from ragaudit.prover.randomness import EPOCH, SeedTree
from ragaudit.prover.window.windows import Window

# Beyond about 54 the sampler's own distance, times e^epsilon, exceeds any usual delta.
LARGEST_EPSILON: Final = "50"


class EqualKeys(SeedTree):
    """The keys of slot 0, committed to in every slot."""

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
    """Another key than the committed one, picked when the activation was known."""

    def key(self, slot: int, counter: int) -> bytes:
        return structure("picked", super().key(slot, counter))

    def open(self, slot: int, counter: int) -> KeyOpening:
        return replace(super().open(slot, counter), key=self.key(slot, counter))


class LongRow(IndexBuilder):
    """One row of norm 128."""

    def complete_rows(self, vectors: Rows) -> Rows:
        rows = super().complete_rows(vectors)
        rows[3] = 0
        rows[3, :4] = 64
        return rows


class WrongSquares(IndexBuilder):
    """The squares of one row do not complete it: its norm may be anything."""

    def complete_rows(self, vectors: Rows) -> Rows:
        rows = super().complete_rows(vectors)
        rows[5, -1] += 1
        return rows


class ForeignRow(IndexBuilder):
    """One commitment is to another row than the one that is proven and served."""

    def commit_rows(self, rows: Rows, blindings: Scalars) -> bytes:
        return super().commit_rows(np.concatenate([rows[1:2], rows[1:]]), blindings)


class AltersPolicy(PolicyBuilder):
    """A policy document with other members."""

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        """The members that differ; ``now`` in seconds."""
        raise NotImplementedError

    def document(self, *, now: int, **arguments: Any) -> dict[str, Any]:
        document = super().document(now=now, **arguments)
        return {**document, **self.changes(document, now // 1000)}


class LatePolicy(AltersPolicy):
    """The window has begun before the policy can be countersigned."""

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        _, *later = document["activation_instants"]
        return {"start": now - 5, "activation_instants": [now - 5, *later]}


class KMaxIsN(AltersPolicy):
    """K_max is no longer below N: an answer may be the whole index."""

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"top_k_max": LIMITS.top_k}


class BoastsEpsilon(AltersPolicy):
    """The advertised epsilon is smaller than what sigma gives."""

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"epsilon_acc": "1"}


class NoFiniteEpsilon(AltersPolicy):
    """Noise that barely suffices for one account; a coalition's epsilon has no finite bound."""

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        sigma = calibrate(
            epsilon_value=LARGEST_EPSILON,
            target=document["delta_acc"],
            queries=document["queries_per_account"],
            relation=document["relation"],
            group_size=document["rows_per_document"],
        )
        return {"sigma": sigma, "epsilon_acc": LARGEST_EPSILON}


class AltersPolicyAfterwards(Committer):
    """The opening that is countersigned names another policy than the registered one."""

    def opening(
        self,
        policy: Policy,
        window: Window,
        indexes: Mapping[str, CommittedIndex],
        seed_root: bytes,
    ) -> Opening:
        honest = super().opening(policy, window, indexes, seed_root)
        return replace(honest, policy_digest=structure("altered", honest.policy_digest))


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
    ServiceCheat(
        name="row-of-norm-128", family="INDEX",
        description="Commits to a row of norm 128, whose scores the noise does not cover.",
        parts={"index_builder": LongRow}, refused=True,
        checks=("index-proof",), reason="index of acme",
    ),
    ServiceCheat(
        name="squares-do-not-complete", family="INDEX",
        description="Commits to a row that its four squares do not complete to norm 127.",
        parts={"index_builder": WrongSquares}, refused=True,
        checks=("index-proof",), reason="index of acme",
    ),
    ServiceCheat(
        name="commitment-to-another-row", family="INDEX",
        description="Publishes a commitment that is not to the row that the argument is about.",
        parts={"index_builder": ForeignRow}, refused=True,
        checks=("index-proof",), reason="index of acme",
    ),
    ServiceCheat(
        name="late-policy", family="POLICY",
        description="Has the policy countersigned after the window began.",
        parts={"policy_builder": LatePolicy}, refused=True,
        checks=("policy",), reason="too late",
        guard="the verifier's clock alone keeps it from countersigning a window that has begun",
    ),
    ServiceCheat(
        name="opening-of-an-altered-policy", family="POLICY",
        description="Opens the log under another policy than the registered one.",
        parts={"committer": AltersPolicyAfterwards}, refused=True,
        checks=("commitments",), reason="the opening names another policy",
    ),
    ServiceCheat(
        name="k-max-not-below-n", family="POLICY",
        description="Allows answers as large as the index.",
        parts={"policy_builder": KMaxIsN}, refused=True,
        checks=("policy",), reason="top_k_max is 1000",
    ),
    ServiceCheat(
        name="sigma-too-small-for-the-claim", family="POLICY",
        description="Advertises a smaller epsilon than its sigma gives.",
        parts={"policy_builder": BoastsEpsilon}, refused=True,
        checks=("accounting",), reason="does not give epsilon 1 ",
    ),
    ServiceCheat(
        name="no-finite-epsilon", family="POLICY",
        description="Plans for a coalition whose epsilon has no finite bound.",
        parts={"policy_builder": NoFiniteEpsilon}, refused=True,
        checks=("accounting",), reason="no finite epsilon",
    ),
)  # fmt: skip
