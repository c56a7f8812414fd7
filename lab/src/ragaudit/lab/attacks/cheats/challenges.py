"""Checks sampling and selection: samples, challenges and proofs that are not what they seem."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.selection import scores, select
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding.digests import structure
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.attacks.cheats.selection import Scores, constructed, with_services
from ragaudit.lab.attacks.forging import selection_prover
from ragaudit.lab.scenario.opening import Asked
from ragaudit.lab.scenario.policy import END, INSTANTS, START
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.entries import Close, Record
from ragaudit.prover.lifecycle.challenges import ChallengeWorker
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import LoggedRecord
from ragaudit.verifier import reference
from ragaudit.verifier.reference.field import ORDER

# --- samples -------------------------------------------------------------------------------------

# Less than the two seconds by which the scenario outlasts the deadline.
_MARGIN_MS = 1500


sampled = partial(ConstructedCheat, family="SAMPLING", checks=("sampling",))


@ServiceCheat("no-answer", "SAMPLING", ("sampling",), reason="is missing")
class WithholdsAnAnswer(ChallengeWorker):
    """Does not answer for a sampled record.

    It leaves out the first record of the sample.

    Check 16 (`sampling`) wants every sampled record answered.
    """

    def prepare(
        self, live: OpenWindow, positions: Sequence[int], *others: Any, **named: Any
    ) -> None:
        super().prepare(live, positions[1:], *others, **named)


@ServiceCheat("late-answer", "SAMPLING", ("sampling",), reason="answered at")
class AnswersLate(ChallengeWorker):
    """Answers the challenge after the deadline.

    Check 16 (`sampling`) wants every answer by the deadline.
    """

    def deliver(self, live: OpenWindow) -> None:
        policy = live.policy
        deadline = 1000 * (policy.sampling_instant + policy.audit.deadline_seconds)
        if self._verifier.clock() > deadline + _MARGIN_MS:
            super().deliver(live)


@sampled(
    "root-cosigned-after-the-sampling-instant",
    why="the cosigner stops at the sampling instant",
    reason="cosigned at",
)
class ClosesLate(Window):
    """Has the final root cosigned when the sample can be known.

    Check 16 (`sampling`) wants the final checkpoint cosigned before the sampling instant.
    """

    def close(self) -> None:
        body = Close(self.window, len(self.asked), self.estimate(), 1000 * END)
        self.append("close", body.encode())
        self.checkpoint(INSTANTS[-1] - START)


@sampled(
    "sampling-nonce-not-the-committed-one",
    why="it takes a verifier that picks the sample",
    reason="not the chain's preimage",
)
class OtherSamplingNonce(Window):
    """Draws the sample with another nonce than the countersigned chain's.

    Check 16 (`sampling`) wants n_A on the countersigned chain.
    """

    def challenge(self, strata: list[dict[str, Any]], listed: dict[str, Any]) -> dict[str, Any]:
        message = super().challenge(strata, listed)
        return self.sign_challenge({**message, "preimage": "5e" * 32})


# --- proofs --------------------------------------------------------------------------------------

FIELD = 2**255 - 19  # of ristretto255, RFC 9496 §4


class AltersProofs(ChallengeWorker):
    """Hands over other proofs than the prover made; subclasses say which."""

    def argument(self, proof: bytes) -> bytes:
        """Return the bytes to hand over in place of a proof."""
        raise NotImplementedError


@with_services("proof-replayed", "PROOF")
class ReplaysAProof(ChallengeWorker):
    """Hands over the proof of another record.

    One record's proof stands for every record.

    Check 19 (`selection`): the record's body is in the context of its argument.
    """

    _first: bytes | None = None

    def argument(self, proof: bytes) -> bytes:
        if self._first is None:
            self._first = proof
        return self._first


@with_services("proof-with-a-flipped-bit", "PROOF")
class FlipsABit(AltersProofs):
    """Hands over proofs with one bit flipped.

    Check 19 (`selection`) catches it.
    """

    def argument(self, proof: bytes) -> bytes:
        middle = len(proof) // 2
        return proof[:middle] + bytes([proof[middle] ^ 1]) + proof[middle + 1 :]


@with_services("non-canonical-point", "PROOF")
class NonCanonicalPoint(AltersProofs):
    """Encodes a point of the proof in another way than the only one.

    The first point is encoded as its negative field element, which decodes to the same.

    Check 19 (`selection`) decodes canonical encodings only.
    """

    def argument(self, proof: bytes) -> bytes:
        value = int.from_bytes(proof[:32], "little")
        return (FIELD - value).to_bytes(32, "little") + proof[32:]


@with_services("non-canonical-scalar", "PROOF")
class NonCanonicalScalar(AltersProofs):
    """Encodes a scalar of the proof in another way than the only one.

    The last scalar is encoded with the group order added, which is the same scalar.

    Check 19 (`selection`) decodes canonical encodings only.
    """

    def argument(self, proof: bytes) -> bytes:
        value = int.from_bytes(proof[-32:], "little")
        return proof[:-32] + (value + ORDER).to_bytes(32, "little")


@with_services("another-transcript-context", "PROOF")
class OtherContext(ChallengeWorker):
    """Proves the selection under the context of another window.

    Check 19 (`selection`) recomputes the context from the window's policy and log.
    """

    def statement(
        self, live: OpenWindow, record: Record, logged: LoggedRecord
    ) -> SelectionStatement:
        honest = super().statement(live, record, logged)
        return replace(honest, context=structure("another window", honest.context))


# Rows of U, of which alone the argument speaks: the others' place is decided by the noise (spec
# 4.6.2), so only these can trade places.
NEAR = 2 * SQUARED_NORM


@constructed(
    "row-dependent-threshold", "SELECTION", why="the honest prover function has one threshold"
)
class OwnThresholds(Window):
    """Proves the selection with thresholds that differ from row to row.

    So two rows trade places.

    The shift is a component on A_U of C_t. Check 19 (`selection`): the form of the opening has no
    theta on that block, so what C_t holds there does not count towards Y
    (docs/spec/04-arguments.md §4.6.7).

    Attributes:
        traded: the selected row that gave way and the one that took its place; None before.
    """

    traded: tuple[int, int] | None = None

    def select(
        self, tenant: str, embedding: npt.NDArray[np.int16], noise: Scores, top_k: int
    ) -> tuple[int, ...]:
        honest = super().select(tenant, embedding, noise, top_k)
        zeta = np.sort(noise)[::-1][top_k]
        near = [int(i) for i in np.flatnonzero(np.abs(noise - zeta) <= NEAR)]
        inside = [i for i in near if i in honest]
        outside = [i for i in near if i not in honest]
        if self.traded is not None or not inside or not outside:
            return honest
        self.traded = inside[0], outside[0]
        return tuple(sorted({*honest, outside[0]} - {inside[0]}))

    def prove(self, asked: Asked) -> bytes:
        index, query = self.indices[asked.served_tenant], asked.embedding
        noised = scores(index.vectors, query) + asked.noise
        if asked.selected == select(noised, asked.record.top_k):
            return super().prove(asked)
        assert self.traded is not None
        one, other = self.traded
        statement = selection_prover.reference_statement(self.statement(asked))
        pretended = noised.copy()
        pretended[[one, other]] = noised[[other, one]]
        honest = selection_prover.honest_assignment(statement, pretended.tolist())
        shift = [int(pretended[i] - noised[i]) for i in statement.U]
        committed = selection_prover.Index(
            index.rows.tolist(),
            [int.from_bytes(each.tobytes(), "little") for each in index.blindings],
            index.commitment.commitments,
        )
        blinding = int.from_bytes(asked.selection_blinding, "little")
        assignment = replace(honest, shift=shift)
        return selection_prover.prove_boundary(
            reference, statement, committed, assignment, blinding
        )
