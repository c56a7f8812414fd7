"""Check selection: proofs altered, replayed, or made of other tables than the record has."""

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.selection import scores, select
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding.digests import structure
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.attacks.cheats.selection import Scores, constructed, with_services
from ragaudit.lab.attacks.forging import selection_prover
from ragaudit.lab.scenario.accounts import Asked
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.records import Record
from ragaudit.prover.lifecycle.challenges import ChallengeWorker
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import LoggedRecord
from ragaudit.verifier import reference
from ragaudit.verifier.reference.field import ORDER

FIELD = 2**255 - 19  # of ristretto255, RFC 9496 §4


class AltersProofs(ChallengeWorker):
    """Hands over other proofs than the prover made; subclasses say which."""

    def argument(self, proof: bytes) -> bytes:
        """Return the bytes to hand over in place of a proof."""
        raise NotImplementedError


class ReplaysAProof(ChallengeWorker):
    """One record's proof for every record.

    Check 19 (`selection`): the record's body is in the context of its argument.
    """

    _first: bytes | None = None

    def argument(self, proof: bytes) -> bytes:
        if self._first is None:
            self._first = proof
        return self._first


class FlipsABit(AltersProofs):
    """One bit of every proof is wrong.

    Check 19 (`selection`) catches it.
    """

    def argument(self, proof: bytes) -> bytes:
        middle = len(proof) // 2
        return proof[:middle] + bytes([proof[middle] ^ 1]) + proof[middle + 1 :]


class NonCanonicalPoint(AltersProofs):
    """The first point is encoded as its negative field element, which decodes to the same.

    Check 19 (`selection`) decodes canonical encodings only.
    """

    def argument(self, proof: bytes) -> bytes:
        value = int.from_bytes(proof[:32], "little")
        return (FIELD - value).to_bytes(32, "little") + proof[32:]


class NonCanonicalScalar(AltersProofs):
    """The last scalar is encoded with the group order added, which is the same scalar.

    Check 19 (`selection`) decodes canonical encodings only.
    """

    def argument(self, proof: bytes) -> bytes:
        value = int.from_bytes(proof[-32:], "little")
        return proof[:-32] + (value + ORDER).to_bytes(32, "little")


class OtherContext(ChallengeWorker):
    """Proves under the context of another window.

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


class OwnThresholds(Window):
    """Two rows trade places, each measured against a threshold of its own.

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


CHEATS: Final = (
    with_services(
        name="proof-replayed", family="PROOF",
        description="Hands over the proof of another record.",
        parts={"challenges": ReplaysAProof},
    ),
    with_services(
        name="proof-with-a-flipped-bit", family="PROOF",
        description="Hands over proofs with one bit flipped.",
        parts={"challenges": FlipsABit},
    ),
    with_services(
        name="non-canonical-point", family="PROOF",
        description="Encodes a point of the proof in another way than the only one.",
        parts={"challenges": NonCanonicalPoint},
    ),
    with_services(
        name="non-canonical-scalar", family="PROOF",
        description="Encodes a scalar of the proof in another way than the only one.",
        parts={"challenges": NonCanonicalScalar},
    ),
    with_services(
        name="another-transcript-context", family="PROOF",
        description="Proves the selection under the context of another window.",
        parts={"challenges": OtherContext},
    ),
    constructed(
        name="row-dependent-threshold", family="SELECTION",
        description="Proves the selection with thresholds that differ from row to row.",
        why="the honest prover function has one threshold",
        window=OwnThresholds,
    ),
)  # fmt: skip
