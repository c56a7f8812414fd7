"""Checks policy, accounting and commitments: what a policy states, and who signed which one."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.digests import structure
from ragaudit.encoding.parameters import LIMITS, B
from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.policy import START
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, Record
from ragaudit.privacy.accounting.gaussian import calibrate
from ragaudit.prover.index.committed import CommittedIndex
from ragaudit.prover.lifecycle.committing import Committer
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder
from ragaudit.prover.window.windows import Window as ProverWindow

# Beyond about 54 the sampler's own distance, times e^epsilon, exceeds any usual delta.
LARGEST_EPSILON: Final = "50"


class AltersPolicy(PolicyBuilder):
    """A policy document with other members; subclasses say which."""

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        """Return the members that differ.

        Args:
            document: the honest policy's members.
            now: Unix seconds.
        """
        raise NotImplementedError

    def document(self, *, now: int, **arguments: Any) -> dict[str, Any]:
        document = super().document(now=now, **arguments)
        return {**document, **self.changes(document, now // 1000)}


class LatePolicy(AltersPolicy):
    """The window has begun before the policy can be countersigned.

    Check 1 (`policy`) wants the countersignature before the start.
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        _, *later = document["activation_instants"]
        return {"start": now - 5, "activation_instants": [now - 5, *later]}


class KMaxIsN(AltersPolicy):
    """K_max is no longer below N: an answer may be the whole index.

    Check 1 (`policy`) wants K_max < N for every tenant.
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"top_k_max": LIMITS.top_k}


class BoastsEpsilon(AltersPolicy):
    """The advertised epsilon is smaller than what sigma gives.

    Check 2 (`accounting`) computes epsilon_acc from sigma.
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"epsilon_acc": "1"}


class NoFiniteEpsilon(AltersPolicy):
    """Noise that barely suffices for one account; a coalition's epsilon has no finite bound.

    Check 2 (`accounting`) wants a finite epsilon for k_max·r queries.
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        sigma = calibrate(
            epsilon_value=LARGEST_EPSILON,
            target=document["delta_acc"],
            queries=document["queries_per_account"],
            relation=document["relation"],
            group_size=document["rows_per_document"],
        )
        return {"sigma": sigma, "epsilon_acc": LARGEST_EPSILON}


class AcceptsEveryVector(AltersPolicy):
    """Every query vector is within the tolerance of every text's.

    Check 1 (`policy`) compares it with the verifier's terms (9.4).
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"embedder_tolerance": 65_535}


class SamplesOfOne(AltersPolicy):
    """A sample finds a window in which everything is bad, and no other.

    Check 1 (`policy`) compares beta, eta and minimum with the verifier's terms (9.4).
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        loose = {"eta": "0.999", "minimum": 0}
        audit = {**document["audit"], "mode": "B", "beta": "0.999", "tenants": loose}
        return {"audit": {**audit, "submitters": {"by": "account", **loose}}}


class PromisesNothing(AltersPolicy):
    """Epsilon 50 at delta one in ten.

    Check 1 (`policy`) compares both with the verifier's terms (9.4).
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"epsilon_acc": "50", "delta_acc": "0.1"}


class AltersPolicyAfterwards(Committer):
    """The opening that is countersigned names another policy than the registered one.

    Check 3 (`commitments`) recomputes the policy's digest in the opening.
    """

    def opening(
        self,
        policy: Policy,
        window: ProverWindow,
        indexes: Mapping[str, CommittedIndex],
        seed_root: bytes,
    ) -> Opening:
        honest = super().opening(policy, window, indexes, seed_root)
        return replace(honest, policy_digest=structure("altered", honest.policy_digest))


class CountersignedLate(Window):
    """The countersignature's clock says that the window had begun.

    Check 1 (`policy`) reads that time, whoever signed it.
    """

    at = START

    def countersignature(self) -> bytes:
        return self.countersigned_at(1000 * self.at)


class RunsAnotherPolicy(Window):
    """The verifier countersigned one policy, the provider runs another.

    Check 1 (`policy`) wants the countersignature to name this policy.
    """

    def countersignature(self) -> bytes:
        kept = self.policy
        # One byte: the digest differs, and nothing that the window does.
        self.policy = replace(kept, canonical=kept.canonical + b" ")
        try:
            return super().countersignature()
        finally:
            self.policy = kept


class ContinuesElsewhere(Window):
    """The policy names a checkpoint of the window before which is not its last one.

    Check 1 (`policy`) wants the final one of a closed window that the verifier knows.
    """

    def previous_checkpoint(self, leaves: int = 2) -> str | None:
        return super().previous_checkpoint(leaves)


class KeepsItsLogKey(Window):
    """The log signs with the key of the window before.

    Check 1 (`policy`) wants another log key in each window.
    """

    def previous_log(self) -> SigningKey:
        return SigningKey(super().previous_log().name, ED25519, self.log_key.private)


class SampledAtOnce(Window):
    """The sample is drawn 10 s after the end; answers of the last second have no noise, no record.

    An account knows that its answer is in no log when the merge delay is over, and the verifier
    takes no receipt any more: nothing of it is in the evidence. Check 1 (`policy`) compares the
    instant with the verifier's terms (9.4).
    """

    unlogged = False

    def __post_init__(self) -> None:
        self.instants = (*self.instants[:-1], self.end + 10)
        super().__post_init__()

    def script(self) -> list[Event]:
        return [*super().script(), ("answer_exactly", "bob", "what is worth most?", 3, 119)]

    def answer_exactly(self, name: str, text: str, top_k: int, time: int) -> None:
        """Answer a query without noise, and log nothing."""
        self.unlogged = True
        self.answer(self.accounts[name], text, top_k, 1000 * (self.start + time))

    def noise(self, record: Record, key: bytes) -> npt.NDArray[np.int64]:
        noise = super().noise(record, key)
        return np.zeros_like(noise) if self.unlogged else noise


class ChoosesVectors(Window):
    """Of all vectors within the tolerance, the one that favours a row is said to be the text's.

    That undoes or redoes as much noise as the score moves by, B times the tolerance's root at most.
    Check 1 (`policy`) compares the tolerance with the verifier's terms (9.4).
    """

    tolerance = 256

    def __post_init__(self) -> None:
        self.overrides = {**self.overrides, "embedder_tolerance": self.tolerance}
        super().__post_init__()

    def embed(self, text: str) -> npt.NDArray[np.int16]:
        honest = super().embed(text)
        row = self.indices["acme"].vectors[0].astype(np.float64)
        for step in np.arange(math.sqrt(self.tolerance), 0, -0.5):
            moved = honest + step * row / np.linalg.norm(row)
            # Toward zero: no longer than B.
            chosen = np.trunc(moved * min(1.0, B / float(np.linalg.norm(moved))))
            if np.sum((chosen - honest) ** 2) <= self.tolerance:
                return np.asarray(chosen, dtype=np.int16)
        return honest


class ToleratesTheExact(ChoosesVectors):
    """A tolerance for an embedder that gives everybody the same integers.

    Check 3 (`commitments`) allows it none (2.2).
    """

    tolerance = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self.model = HashEmbedder(self.dimension, "wordllama-l2-supercat-256")
        self.embedder = self.model.installed()


CHEATS: Final = (
    ServiceCheat(
        name="late-policy", family="POLICY",
        description="Has the policy countersigned after the window began.",
        parts={"policy_builder": LatePolicy}, refused=True,
        checks=("policy",), reason="too late",
        guard="the verifier's clock alone keeps it from countersigning a window that has begun",
    ),
    ConstructedCheat(
        name="countersigned-late", family="POLICY",
        description="Presents a countersignature from after the window's start.",
        why="the verifier does not give one",
        window=CountersignedLate,
        checks=("policy",), reason="too late",
    ),
    ConstructedCheat(
        name="policy-altered-after-the-countersignature", family="POLICY",
        description="Runs another policy than the one that was countersigned.",
        why="the verifier holds the policy that it countersigned",
        window=RunsAnotherPolicy,
        checks=("policy",), reason="names another window or policy",
    ),
    ServiceCheat(
        name="opening-of-an-altered-policy", family="POLICY",
        description="Opens the log under another policy than the registered one.",
        parts={"committer": AltersPolicyAfterwards}, refused=True,
        checks=("commitments",), reason="the opening names another policy",
    ),
    ConstructedCheat(
        name="continues-another-log", family="POLICY",
        description="Names a checkpoint of the window before that is not its final one.",
        why="the prover takes its last window's final checkpoint",
        window=ContinuesElsewhere,
        checks=("policy",), reason="not the final checkpoint of that window",
    ),
    ConstructedCheat(
        name="log-key-of-another-window", family="POLICY",
        description="Signs the checkpoints of two windows with one key.",
        why="the verifier registers no window with a log key that it has seen",
        window=KeepsItsLogKey,
        checks=("policy",), reason="the log key of the window before",
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
    ServiceCheat(
        name="tolerance-that-accepts-every-vector", family="POLICY",
        description="States an embedder tolerance that every vector keeps.",
        parts={"policy_builder": AcceptsEveryVector}, refused=True,
        checks=("policy",), reason="most_embedder_tolerance",
    ),
    ConstructedCheat(
        name="vectors-chosen-within-the-tolerance", family="POLICY",
        description="Answers with the vector, within a tolerance of 256, that favours a row.",
        why="the verifier countersigns no such tolerance",
        window=ChoosesVectors,
        checks=("policy",), reason="most_embedder_tolerance",
    ),
    ConstructedCheat(
        name="tolerance-of-an-exact-embedder", family="POLICY",
        description="Tolerates vectors near those of an embedder that everybody computes alike.",
        why="the verifier countersigns no such tolerance",
        window=ToleratesTheExact,
        checks=("commitments",), reason="which needs none",
    ),
    ConstructedCheat(
        name="sampled-before-receipts-come", family="POLICY",
        description="Has the sample drawn before receipts of its last, unlogged answers can come.",
        why="the verifier countersigns no such instant",
        window=SampledAtOnce,
        checks=("policy",), reason="least_sampling_delay_seconds",
    ),
    ServiceCheat(
        name="samples-of-one", family="POLICY",
        description="States a beta and an eta with which one record stands for all.",
        parts={"policy_builder": SamplesOfOne}, refused=True,
        checks=("policy",), reason="most_beta",
    ),
    ServiceCheat(
        name="promise-that-is-none", family="POLICY",
        description="Promises epsilon 50 at delta 0.1, and keeps it.",
        parts={"policy_builder": PromisesNothing}, refused=True,
        checks=("policy",), reason="most_delta_acc",
    ),
)  # fmt: skip
