"""Check sampling: a sample that could be known, and challenges that are not answered."""

from collections.abc import Sequence
from typing import Any, Final

from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.scenario.policy import END, INSTANTS, START
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.records import Close
from ragaudit.prover.lifecycle.challenges import ChallengeWorker
from ragaudit.prover.window.open_window import OpenWindow

# Less than the two seconds by which the scenario outlasts the deadline.
_MARGIN_MS = 1500


class WithholdsAnAnswer(ChallengeWorker):
    """Never answers for the first record of the sample.

    Check 16 (`sampling`) wants every sampled record answered.
    """

    def prepare(
        self, live: OpenWindow, positions: Sequence[int], *others: Any, **named: Any
    ) -> None:
        super().prepare(live, positions[1:], *others, **named)


class AnswersLate(ChallengeWorker):
    """Answers when the deadline has passed.

    Check 16 (`sampling`) wants every answer by the deadline.
    """

    def deliver(self, live: OpenWindow) -> None:
        policy = live.policy
        deadline = 1000 * (policy.sampling_instant + policy.audit.deadline_seconds)
        if self._verifier.clock() > deadline + _MARGIN_MS:
            super().deliver(live)


class ClosesLate(Window):
    """The final root is cosigned when the sampling nonce is known.

    Check 16 (`sampling`) wants the final checkpoint cosigned before the sampling instant.
    """

    def close(self) -> None:
        body = Close(self.window, len(self.asked), self.estimate(), 1000 * END)
        self.append("close", body.encode())
        self.checkpoint(INSTANTS[-1] - START)


class OtherSamplingNonce(Window):
    """The sample is drawn with a nonce that the verifier did not commit to.

    Check 16 (`sampling`) wants n_A on the countersigned chain.
    """

    def challenge(self, strata: list[dict[str, Any]], listed: dict[str, Any]) -> dict[str, Any]:
        message = super().challenge(strata, listed)
        return self.sign_challenge({**message, "preimage": "5e" * 32})


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
    ConstructedCheat(
        name="root-cosigned-after-the-sampling-instant", family="SAMPLING",
        description="Has the final root cosigned when the sample can be known.",
        why="the cosigner stops at the sampling instant",
        window=ClosesLate,
        checks=("sampling",), reason="cosigned at",
    ),
    ConstructedCheat(
        name="sampling-nonce-not-the-committed-one", family="SAMPLING",
        description="Draws the sample with another nonce than the countersigned chain's.",
        why="it takes a verifier that picks the sample",
        window=OtherSamplingNonce,
        checks=("sampling",), reason="not the chain's preimage",
    ),
)  # fmt: skip
