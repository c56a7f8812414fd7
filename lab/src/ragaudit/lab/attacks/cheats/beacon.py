"""Check beacon: who mixes in another round than the one that nobody could choose."""

from functools import partial
from typing import Any, Final

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.beacon import CHAIN, OTHER, BeaconWindow
from ragaudit.ledger.messages.beacon import BeaconRound


class TakesTheRoundOfAnotherInstant(BeaconWindow):
    """The second activation is released with the first one's round, which was known before.

    Check 25 (`beacon`) compares with the round that the policy fixes.
    """

    def round(self, a: int) -> BeaconRound | None:
        return CHAIN.round(self.number(1 if a == 2 else a))


class TakesALaterRound(BeaconWindow):
    """The verifier draws the sample with the next round: of several, it could take the best one.

    Check 25 (`beacon`) compares with the round that the policy fixes.
    """

    def round(self, a: int) -> BeaconRound | None:
        return CHAIN.round(self.number(a) + (a == len(self.instants)))


class ForgesARound(BeaconWindow):
    """The first round is signed for another number: its randomness is one of the forger's choice.

    Check 25 (`beacon`) verifies the signature.
    """

    def round(self, a: int) -> BeaconRound | None:
        if a > 1:
            return super().round(a)
        return BeaconRound(self.number(a), CHAIN.round(self.number(a) + 7).signature)


class TakesAnotherChain(BeaconWindow):
    """Rounds are of a chain whose key somebody of the audit may hold.

    Check 25 (`beacon`) verifies with the key that the policy names.
    """

    def round(self, a: int) -> BeaconRound | None:
        return OTHER.round(self.number(a))


class LeavesTheBeaconOut(BeaconWindow):
    """Releases have no rounds: the verifier alone decides, as with no beacon.

    Check 25 (`beacon`) wants a round with each.
    """

    def round(self, a: int) -> BeaconRound | None:
        return None


class ReleasesTooEarly(BeaconWindow):
    """An activation says that it was released at its instant, when its round was not due yet.

    Check 25 (`beacon`) compares with the round's time.
    """

    def released(self, a: int) -> int:
        return 1000 * self.instants[a - 1] + 5


class DrawsTooEarly(BeaconWindow):
    """The challenge says that it was drawn before its round was due.

    Check 25 (`beacon`) compares with the round's time.
    """

    def drawn(self) -> int:
        return super().drawn() - 1000


class NamesLaterRounds(BeaconWindow):
    """The policy names the rounds after those that its instants fix.

    Check 1 (`policy`) computes them.
    """

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        found = super().document(keys, changes)
        return {**found, "activation_rounds": [each + 1 for each in found["activation_rounds"]]}


class KnowsTheNoiseBefore(BeaconWindow):
    """Noise is made of the activation value alone: who knows it, knows the noise before the round.

    Check 19 (`selection`) draws the noise with the round.
    """

    def beacon(self, a: int) -> bytes:
        return b"" if a < len(self.instants) else super().beacon(a)


class KnowsTheSampleBefore(BeaconWindow):
    """The sample is drawn without the round: verifier and provider may have chosen it together.

    Check 16 (`sampling`) draws it with the round.
    """

    def beacon(self, a: int) -> bytes:
        return super().beacon(a) if a < len(self.instants) else b""


class AnswersBeforeTheRound(BeaconWindow):
    """A record is dated before the round of its activation was due: its noise was not known then.

    Check 9 (`schedule`) compares with the round's time.
    """

    delay = 12  # the round of the first instant is due when the window runs


constructed = partial(
    ConstructedCheat,
    family="INTEGRITY",
    checks=("beacon",),
    why="the verifier's service releases nothing without the round that the policy fixes",
)

CHEATS: Final = (
    constructed(
        name="round-of-another-instant",
        slow=True,
        description="Releases an activation with the round of the instant before.",
        window=TakesTheRoundOfAnotherInstant,
        reason="activation 2: round",
    ),
    constructed(
        name="later-round",
        description="Draws the sample with a later round than the policy fixes.",
        window=TakesALaterRound,
        reason="of the beacon",
    ),
    constructed(
        name="forged-round",
        description="Releases an activation with a signature that is not its round's.",
        window=ForgesARound,
        reason="activation 1: signature does not verify",
    ),
    constructed(
        name="round-of-another-chain",
        slow=True,
        description="Releases activations with rounds of a chain that the policy does not name.",
        window=TakesAnotherChain,
        reason="activation 1: signature does not verify",
    ),
    constructed(
        name="beacon-left-out",
        slow=True,
        description="Releases activations without the beacon's rounds.",
        window=LeavesTheBeaconOut,
        reason="no round of the beacon",
    ),
    constructed(
        name="released-before-the-round",
        description="Releases an activation before its round is due.",
        window=ReleasesTooEarly,
        reason="made before its round was due",
    ),
    constructed(
        name="drawn-before-the-round",
        slow=True,
        description="Draws the sample before its round is due.",
        window=DrawsTooEarly,
        reason="made before its round was due",
    ),
    constructed(
        name="noise-without-the-beacon",
        slow=True,
        description="Draws noise from the verifier's value alone.",
        window=KnowsTheNoiseBefore,
        checks=("selection",),
        reason="selection",
        why="the prover of this program mixes in what it was released",
    ),
    constructed(
        name="sample-without-the-beacon",
        slow=True,
        description="Draws the sample from the verifier's value alone.",
        window=partial(KnowsTheSampleBefore, mode="B"),
        checks=("sampling",),
        reason="the sample is not the one that the seed gives",
    ),
    constructed(
        name="answered-before-the-round",
        slow=True,
        description="Dates an answer before the round that its noise needs.",
        window=AnswersBeforeTheRound,
        checks=("schedule",),
        reason="or later",
        why="the prover of this program does not answer before its activation is released",
    ),
)
