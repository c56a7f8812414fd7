"""SAMPLING, PROOF and COALITION: cheats in the close and in answers to the challenge."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding.digests import structure
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.ledger.messages.records import Record
from ragaudit.prover.lifecycle.challenges import ChallengeWorker
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import LoggedRecord

# Parameters of ristretto255 (RFC 9496 §4).
FIELD = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
_MARGIN_MS = 1500


class WithholdsAnAnswer(ChallengeWorker):
    """Never answers for the first record of the sample."""

    def prepare(self, live: OpenWindow, positions: Sequence[int], notify: Any = None) -> None:
        super().prepare(live, positions[1:], notify)


class AnswersLate(ChallengeWorker):
    """Answers when the deadline has passed."""

    def deliver(self, live: OpenWindow) -> None:
        policy = live.policy
        deadline = 1000 * (policy.sampling_instant + policy.audit.deadline_seconds)
        if self._verifier.clock() > deadline + _MARGIN_MS:
            super().deliver(live)


class AltersProofs(ChallengeWorker):
    """Hands over other proofs than the prover made."""

    def prove(self, live: OpenWindow, record: Record, logged: LoggedRecord) -> bytes:
        return self.altered(super().prove(live, record, logged))

    def altered(self, proof: bytes) -> bytes:
        raise NotImplementedError


class ReplaysAProof(ChallengeWorker):
    """One record's proof for every record."""

    _first: bytes | None = None

    def prove(self, live: OpenWindow, record: Record, logged: LoggedRecord) -> bytes:
        if self._first is None:
            self._first = super().prove(live, record, logged)
        return self._first


class FlipsABit(AltersProofs):
    """One bit of every proof is wrong."""

    def altered(self, proof: bytes) -> bytes:
        middle = len(proof) // 2
        return proof[:middle] + bytes([proof[middle] ^ 1]) + proof[middle + 1 :]


class NonCanonicalPoint(AltersProofs):
    """The first point is encoded as its negative field element, which decodes to the same."""

    def altered(self, proof: bytes) -> bytes:
        value = int.from_bytes(proof[:32], "little")
        return (FIELD - value).to_bytes(32, "little") + proof[32:]


class NonCanonicalScalar(AltersProofs):
    """The last scalar is encoded with the group order added, which is the same scalar."""

    def altered(self, proof: bytes) -> bytes:
        value = int.from_bytes(proof[-32:], "little")
        return proof[:-32] + (value + ORDER).to_bytes(32, "little")


class OtherContext(ChallengeWorker):
    """Proves under the context of another window."""

    def statement(
        self, live: OpenWindow, record: Record, logged: LoggedRecord
    ) -> SelectionStatement:
        honest = super().statement(live, record, logged)
        return replace(honest, context=structure("another window", honest.context))


class UnderstatesTheCoalition(Closing):
    """Claims that nobody acts together."""

    def coalition_claim(self, live: OpenWindow, logged: Any) -> int:
        return max(1, super().coalition_claim(live, logged) - 1)


CHEATS: Final = (
    ServiceCheat(
        name="no-answer", family="SAMPLING",
        description="Does not answer for a sampled record.",
        parts={"challenges": WithholdsAnAnswer},
        checks=("sampling",), reason="is missing",
    ),
    ServiceCheat(
        name="late-answer", family="SAMPLING",
        description="Answers the challenge after the deadline.",
        parts={"challenges": AnswersLate},
        checks=("sampling",), reason="answered at",
    ),
    ServiceCheat(
        name="proof-replayed", family="PROOF",
        description="Hands over the proof of another record.",
        parts={"challenges": ReplaysAProof},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="proof-with-a-flipped-bit", family="PROOF",
        description="Hands over proofs with one bit flipped.",
        parts={"challenges": FlipsABit},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="non-canonical-point", family="PROOF",
        description="Encodes a point of the proof in another way than the only one.",
        parts={"challenges": NonCanonicalPoint},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="non-canonical-scalar", family="PROOF",
        description="Encodes a scalar of the proof in another way than the only one.",
        parts={"challenges": NonCanonicalScalar},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="another-transcript-context", family="PROOF",
        description="Proves the selection under the context of another window.",
        parts={"challenges": OtherContext},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="coalition-understated", family="COALITION",
        description="Claims a smaller coalition than the sketches show.",
        parts={"closing": UnderstatesTheCoalition},
        checks=("coalition",), reason="the provider claims 1 accounts, the sketches give 2",
    ),
)  # fmt: skip
