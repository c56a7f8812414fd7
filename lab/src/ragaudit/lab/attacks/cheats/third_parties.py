"""Checks cosigners, time-stamps and beacon: what outsiders say, and what is made of it."""

from dataclasses import replace
from functools import partial
from typing import Any

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.policy import CLOSED, seeded, third_party
from ragaudit.lab.scenario.third_parties import (
    CHAIN,
    OTHER,
    BeaconWindow,
    CosignedWindow,
    StampedWindow,
    authority,
)
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey, parse_note
from ragaudit.ledger.messages.beacon import BeaconRound
from ragaudit.ledger.messages.evidence import TimeStamp

# --- further cosigners ---------------------------------------------------------------------------

cosigned = partial(
    ConstructedCheat,
    family="INTEGRITY",
    checks=("cosigners",),
    why="the prover's service shows what was cosigned, and asks again until the sampling instant",
)


@cosigned("end-unseen-by-third-parties", reason="no final checkpoint has the quorum them")
class HidesTheEnd(CosignedWindow):
    """Keeps the final checkpoint from the further cosigners.

    They see the rest of the log; its end may be another one for them.

    Check 23 (`cosigners`) wants their quorum over the final checkpoint.
    """

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        return {} if time >= CLOSED else super().cosigned_by(size, time)


@cosigned("log-shown-late-to-third-parties", reason="the opening checkpoint has the quorum since")
class ShowsTheLogLate(CosignedWindow):
    """Shows the further cosigners nothing before the window's end.

    Check 23 (`cosigners`) wants their quorum when the window begins.
    """

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        return {} if time < CLOSED else super().cosigned_by(size, time)


@cosigned(
    "end-cosigned-after-the-sample",
    reason="the final checkpoint has the quorum since 2030-03-17T18:48:43Z",
)
class CosignsLate(CosignedWindow):
    """Has the final checkpoint cosigned by third parties when the sample is known.

    Check 23 (`cosigners`) wants it before the sample is known.
    """

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        late = 3600 if time >= CLOSED else 0
        return {name: at + late for name, at in super().cosigned_by(size, time).items()}


@cosigned("quorum-of-one", reason="quorum them NOT reached")
class CosignsAlone(CosignedWindow):
    """Shows the cosignature of one third party as that of the quorum.

    There are three, and only that one has cosigned the end.

    Check 23 (`cosigners`) counts.
    """

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        found = super().cosigned_by(size, time)
        return {"one": found["one"]} if time >= CLOSED else found


@cosigned("third-parties-saw-another-log", reason="not one that the verifier cosigned")
class ShowsAnotherLog(CosignedWindow):
    """Shows the further cosigners another log than the verifier.

    It has the same size.

    Check 23 (`cosigners`) wants the heads that the verifier cosigned.
    """

    def further(self) -> list[str]:
        size, time, _ = self.checkpoints[2]
        note = parse_note(self.sign_head(self.forked(size)).encode())
        lines = [cosign(note.text, third_party(name), time + 1) for name in ("one", "two")]
        other = note.with_signatures(lines).encode().decode()
        return [other if at == 2 else text for at, text in enumerate(super().further())]


@ConstructedCheat(
    "third-parties-of-its-own",
    "INTEGRITY",
    ("policy",),
    why="the verifier's terms do not list them",
    reason="is not among the further cosigners that the verifier knows",
)
class InventsThirdParties(CosignedWindow):
    """Names three further cosigners of which it holds the keys.

    Check 1 (`policy`) wants those that the verifier lists in its terms (9.4).
    """

    def party(self, name: str) -> SigningKey:
        return SigningKey(f"{name}.example", COSIGNATURE_V1, seeded(f"the provider as {name}"))


# --- time stamps ---------------------------------------------------------------------------------

stamped = partial(
    ConstructedCheat,
    family="INTEGRITY",
    checks=("time-stamps",),
    why="the verifier's service takes no stamp that it does not believe",
)


@stamped("end-stamped-after-the-sample", reason="no time stamp of the final checkpoint")
class StampsTheEndLate(StampedWindow):
    """Has the final checkpoint stamped when the sample is known.

    The log may be another one by then.

    Check 24 (`time-stamps`) wants the stamp before the sampling instant.
    """

    def stamped_at(self, size: int, time: int) -> int | None:
        return time + 3600 if time >= CLOSED else time + 1


@stamped("opening-stamped-at-the-end", reason="no time stamp of the opening checkpoint")
class StampsTheOpeningLate(StampedWindow):
    """Has nothing stamped before the window is over.

    The opening may be made up by then.

    Check 24 (`time-stamps`) wants a stamp when the window begins.
    """

    def stamped_at(self, size: int, time: int) -> int | None:
        return time + 1 if time >= CLOSED else None


@stamped("stamped-by-itself", reason="a trusted root's")
class StampsItself(StampedWindow):
    """Shows a time stamp of an authority that nobody trusts.

    The authority is the provider's own.

    Check 24 (`time-stamps`) believes the verifier's roots alone.
    """

    def stamps(self) -> list[TimeStamp]:
        *rest, last = super().stamps()
        _, time, note = self.checkpoints[-1]
        text = parse_checkpoint(note.encode()).checkpoint.text.encode()
        return [*rest, replace(last, token=authority("another root").stamp(text, time + 1))]


@stamped("another-thing-stamped", reason="a stamp of another checkpoint")
class StampsSomethingElse(StampedWindow):
    """Shows the time stamp of one checkpoint as that of another.

    It is shown as that of the final one.

    Check 24 (`time-stamps`) compares what was stamped.
    """

    def stamps(self) -> list[TimeStamp]:
        *rest, last = super().stamps()
        return [*rest, replace(last, token=rest[-1].token)]


# --- the beacon ----------------------------------------------------------------------------------

released = partial(
    ConstructedCheat,
    family="INTEGRITY",
    checks=("beacon",),
    why="the verifier's service releases nothing without the round that the policy fixes",
)


@released("round-of-another-instant", slow=True, reason="activation 2: round")
class TakesTheRoundOfAnotherInstant(BeaconWindow):
    """Releases an activation with the round of the instant before.

    It is the second activation, and that round was known before.

    Check 25 (`beacon`) compares with the round that the policy fixes.
    """

    def round(self, a: int) -> BeaconRound | None:
        return CHAIN.round(self.number(1 if a == 2 else a))


@released("later-round", reason="of the beacon")
class TakesALaterRound(BeaconWindow):
    """Draws the sample with a later round than the policy fixes.

    It is the next round; of several, the verifier could take the best one.

    Check 25 (`beacon`) compares with the round that the policy fixes.
    """

    def round(self, a: int) -> BeaconRound | None:
        return CHAIN.round(self.number(a) + (a == len(self.instants)))


@released("forged-round", reason="activation 1: signature does not verify")
class ForgesARound(BeaconWindow):
    """Releases an activation with a signature that is not its round's.

    The first round is signed for another number, so that the forger chooses its randomness.

    Check 25 (`beacon`) verifies the signature.
    """

    def round(self, a: int) -> BeaconRound | None:
        if a > 1:
            return super().round(a)
        return BeaconRound(self.number(a), CHAIN.round(self.number(a) + 7).signature)


@released("round-of-another-chain", slow=True, reason="activation 1: signature does not verify")
class TakesAnotherChain(BeaconWindow):
    """Releases activations with rounds of a chain that the policy does not name.

    Somebody of the audit may hold the key of that chain.

    Check 25 (`beacon`) verifies with the key that the policy names.
    """

    def round(self, a: int) -> BeaconRound | None:
        return OTHER.round(self.number(a))


@released("beacon-left-out", slow=True, reason="no round of the beacon")
class LeavesTheBeaconOut(BeaconWindow):
    """Releases activations without the beacon's rounds.

    The verifier alone then decides.

    Check 25 (`beacon`) wants a round with each.
    """

    def round(self, a: int) -> BeaconRound | None:
        return None


@released("released-before-the-round", reason="made before its round was due")
class ReleasesTooEarly(BeaconWindow):
    """Releases an activation before its round is due.

    The activation says that it was released at its instant.

    Check 25 (`beacon`) compares with the round's time.
    """

    def released(self, a: int) -> int:
        return 1000 * self.instants[a - 1] + 5


@released("drawn-before-the-round", slow=True, reason="made before its round was due")
class DrawsTooEarly(BeaconWindow):
    """Draws the sample before its round is due.

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


@released(
    "noise-without-the-beacon",
    checks=("selection",),
    slow=True,
    reason="selection",
    why="the prover of this program mixes in what it was released",
)
class KnowsTheNoiseBefore(BeaconWindow):
    """Draws noise from the verifier's value alone.

    Who knows that value knows the noise before the round.

    Check 19 (`selection`) draws the noise with the round.
    """

    def beacon(self, a: int) -> bytes:
        return b"" if a < len(self.instants) else super().beacon(a)


@released(
    "sample-without-the-beacon",
    checks=("sampling",),
    given={"mode": "B"},
    slow=True,
    reason="the sample is not the one that the seed gives",
)
class KnowsTheSampleBefore(BeaconWindow):
    """Draws the sample from the verifier's value alone.

    Verifier and provider may have chosen it together.

    Check 16 (`sampling`) draws it with the round.
    """

    def beacon(self, a: int) -> bytes:
        return super().beacon(a) if a < len(self.instants) else b""


@released(
    "answered-before-the-round",
    checks=("schedule",),
    slow=True,
    reason="or later",
    why="the prover of this program does not answer before its activation is released",
)
class AnswersBeforeTheRound(BeaconWindow):
    """Dates an answer before the round that its noise needs.

    Check 9 (`schedule`) compares with the round's time.
    """

    delay = 12  # the round of the first instant is due when the window runs
