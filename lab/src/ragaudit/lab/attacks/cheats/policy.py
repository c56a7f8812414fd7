"""Checks policy, accounting and commitments: what a policy states, and who signed which one."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.digests import structure
from ragaudit.encoding.parameters import LIMITS, B
from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.opening import Event, OpenedWindow
from ragaudit.lab.scenario.policy import SMALL_TERMS, START, seeded
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.entries import Opening, Record
from ragaudit.ledger.messages.evidence import OverlappingWindow, Overlaps
from ragaudit.ledger.messages.policy import Policy
from ragaudit.privacy.accounting.gaussian import calibrate
from ragaudit.prover.index.committed import CommittedIndex
from ragaudit.prover.lifecycle.committing import Committer
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder
from ragaudit.prover.window.windows import Window as ProverWindow
from ragaudit.verifier.terms import Terms

# --- one window ----------------------------------------------------------------------------------

# Beyond about 54 the sampler's own distance, times e^epsilon, exceeds any usual delta.
LARGEST_EPSILON: Final = "50"

refused = partial(ServiceCheat, family="POLICY", refused=True)
stated = partial(ConstructedCheat, family="POLICY", checks=("policy",))


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


@refused(
    "late-policy",
    checks=("policy",),
    reason="too late",
    guard="the verifier's clock alone keeps it from countersigning a window that has begun",
)
class LatePolicy(AltersPolicy):
    """Has the policy countersigned after the window began.

    Check 1 (`policy`) wants the countersignature before the start.
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        _, *later = document["activation_instants"]
        return {"start": now - 5, "activation_instants": [now - 5, *later]}


@refused("k-max-not-below-n", checks=("policy",), reason="top_k_max is 1000")
class KMaxIsN(AltersPolicy):
    """Allows answers as large as the index.

    Check 1 (`policy`) wants K_max < N for every tenant.
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"top_k_max": LIMITS.top_k}


@refused("sigma-too-small-for-the-claim", checks=("accounting",), reason="does not give epsilon 1 ")
class BoastsEpsilon(AltersPolicy):
    """Advertises a smaller epsilon than its sigma gives.

    Check 2 (`accounting`) computes epsilon_acc from sigma.
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"epsilon_acc": "1"}


@refused("no-finite-epsilon", checks=("accounting",), reason="no finite epsilon")
class NoFiniteEpsilon(AltersPolicy):
    """Plans for a coalition whose epsilon has no finite bound.

    The noise barely suffices for one account.

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


@refused(
    "tolerance-that-accepts-every-vector", checks=("policy",), reason="most_embedder_tolerance"
)
class AcceptsEveryVector(AltersPolicy):
    """States an embedder tolerance that every vector keeps.

    Check 1 (`policy`) compares it with the verifier's terms (9.4).
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"embedder_tolerance": 65_535}


@refused("samples-of-one", checks=("policy",), reason="most_beta")
class SamplesOfOne(AltersPolicy):
    """States a beta and an eta with which one record stands for all.

    A sample finds a window in which everything is bad, and no other.

    Check 1 (`policy`) compares beta, eta and minimum with the verifier's terms (9.4).
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        loose = {"eta": "0.999", "minimum": 0}
        audit = {**document["audit"], "mode": "B", "beta": "0.999", "tenants": loose}
        return {"audit": {**audit, "submitters": {"by": "account", **loose}}}


@refused("promise-that-is-none", checks=("policy",), reason="most_delta_acc")
class PromisesNothing(AltersPolicy):
    """Promises epsilon 50 at delta 0.1, and keeps it.

    Check 1 (`policy`) compares both with the verifier's terms (9.4).
    """

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"epsilon_acc": "50", "delta_acc": "0.1"}


@refused(
    "opening-of-an-altered-policy",
    checks=("commitments",),
    reason="the opening names another policy",
)
class AltersPolicyAfterwards(Committer):
    """Opens the log under another policy than the registered one.

    It is the opening that is countersigned.

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


@stated("countersigned-late", why="the verifier does not give one", reason="too late")
class CountersignedLate(Window):
    """Presents a countersignature from after the window's start.

    Check 1 (`policy`) reads that time, whoever signed it.
    """

    at = START

    def countersignature(self) -> bytes:
        return self.countersigned_at(1000 * self.at)


@stated(
    "policy-altered-after-the-countersignature",
    why="the verifier holds the policy that it countersigned",
    reason="names another window or policy",
)
class RunsAnotherPolicy(Window):
    """Runs another policy than the one that was countersigned.

    Check 1 (`policy`) wants the countersignature to name this policy.
    """

    def countersignature(self) -> bytes:
        kept = self.policy
        # One byte: the digest differs, and nothing that the window does.
        self.policy = replace(kept)
        vars(self.policy)["canonical"] = kept.canonical + b" "
        try:
            return super().countersignature()
        finally:
            self.policy = kept


@stated(
    "continues-another-log",
    why="the prover takes its last window's final checkpoint",
    reason="not the final checkpoint of that window",
)
class ContinuesElsewhere(Window):
    """Names a checkpoint of the window before that is not its final one.

    Check 1 (`policy`) wants the final one of a closed window that the verifier knows.
    """

    def previous_checkpoint(self, leaves: int = 2) -> str | None:
        return super().previous_checkpoint(leaves)


@stated(
    "log-key-of-another-window",
    why="the verifier registers no window with a log key that it has seen",
    reason="the log key of the window before",
)
class KeepsItsLogKey(Window):
    """Signs the checkpoints of two windows with one key.

    Check 1 (`policy`) wants another log key in each window.
    """

    def previous_log(self) -> SigningKey:
        return SigningKey(super().previous_log().name, ED25519, self.log_key.private)


@stated(
    "sampled-before-receipts-come",
    why="the verifier countersigns no such instant",
    reason="least_sampling_delay_seconds",
)
class SampledAtOnce(Window):
    """Has the sample drawn before receipts of its last, unlogged answers can come.

    It is drawn 10 s after the end; answers of the last second have no noise and no record.

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


@stated(
    "vectors-chosen-within-the-tolerance",
    why="the verifier countersigns no such tolerance",
    reason="most_embedder_tolerance",
)
class ChoosesVectors(Window):
    """Answers with the vector, within a tolerance of 256, that favours a row.

    It says that this vector is the text's.

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


@ConstructedCheat(
    "tolerance-of-an-exact-embedder",
    "POLICY",
    ("commitments",),
    why="the verifier countersigns no such tolerance",
    reason="which needs none",
)
class ToleratesTheExact(ChoosesVectors):
    """Tolerates vectors near those of an embedder that everybody computes alike.

    The policy states a tolerance for it.

    Check 3 (`commitments`) allows it none (2.2).
    """

    tolerance = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self.model = HashEmbedder(self.dimension, "wordllama-l2-supercat-256")
        self.embedder = self.model.installed()


# --- windows of one provider beside each other ---------------------------------------------------


def beside(window: OpenedWindow, other: Policy, /, **changes: Any) -> bytes:
    """Return the item about one other window of the provider, at the same time.

    Args:
        window: that the evidence is of.
        other: policy of the other; name and provider become such a window's.
        changes: to that policy.
    """
    members = {
        "provider": window.policy.provider,
        "window": "beside",
        "previous_checkpoint": None,
        **changes,
    }
    origin = f"{members['provider']}/ragaudit/{members['window']}"
    log = str(SigningKey(origin, ED25519, seeded(f"log of {origin}")).verifier_key)
    document = other.to_json()
    keys = {**document["keys"], "log": log}
    policy = Policy.from_json({**document, "keys": keys, **members})
    return Overlaps((OverlappingWindow(policy, allowed=100, shared=1),)).encode()


ONE_AT_A_TIME: Final = Terms.of({**SMALL_TERMS.to_json(), "most_overlapping_windows": 0})
_at_once = partial(
    ConstructedCheat,
    family="POLICY",
    checks=("policy",),
    reason="overlap it, the first is beside",
    why="the verifier countersigns no such window",
)


@_at_once("two-budgets-at-once", given={"terms": ONE_AT_A_TIME})
class AnswersTwice(Window):
    """Answers from the same documents in two windows at the same time.

    Each window has a budget of its own.

    Check 1 (`policy`) allows as many windows for a tenant at once as the verifier's terms.
    """

    def opening_items(self) -> dict[str, bytes]:
        return {**super().opening_items(), names.OVERLAPS: beside(self, self.policy)}


@_at_once("exact-answers-beside-noise", given={"terms": ONE_AT_A_TIME})
class AnswersExactlyElsewhere(Window):
    """Shows exactly, in another window, what noise protects in this one.

    Check 1 (`policy`) allows as many windows for a tenant at once as the verifier's terms.
    """

    def opening_items(self) -> dict[str, bytes]:
        exact = IntegrityWindow().policy
        return {**super().opening_items(), names.OVERLAPS: beside(self, exact)}
