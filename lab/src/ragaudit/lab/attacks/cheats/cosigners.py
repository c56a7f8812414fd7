"""Check cosigners: a quorum of third parties that the policy promises, and that is not there."""

from functools import partial
from typing import Final

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.cosigned import CosignedWindow
from ragaudit.lab.scenario.policy import CLOSED, seeded, third_party
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey, parse_note


class HidesTheEnd(CosignedWindow):
    """Third parties see the log, but not its end: that may be another one for them.

    Check 23 (`cosigners`) wants their quorum over the final checkpoint.
    """

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        return {} if time >= CLOSED else super().cosigned_by(size, time)


class ShowsTheLogLate(CosignedWindow):
    """Third parties see the log for the first time when the window is over.

    Check 23 (`cosigners`) wants their quorum when the window begins.
    """

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        return {} if time < CLOSED else super().cosigned_by(size, time)


class CosignsLate(CosignedWindow):
    """The quorum over the final checkpoint is of after the sampling instant.

    Check 23 (`cosigners`) wants it before the sample is known.
    """

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        late = 3600 if time >= CLOSED else 0
        return {name: at + late for name, at in super().cosigned_by(size, time).items()}


class CosignsAlone(CosignedWindow):
    """One third party of three has cosigned the end, and is shown as the quorum.

    Check 23 (`cosigners`) counts.
    """

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        found = super().cosigned_by(size, time)
        return {"one": found["one"]} if time >= CLOSED else found


class ShowsAnotherLog(CosignedWindow):
    """What third parties cosigned is another log of the same size.

    Check 23 (`cosigners`) wants the heads that the verifier cosigned.
    """

    def further(self) -> list[str]:
        size, time, _ = self.checkpoints[2]
        note = parse_note(self.sign_head(self.forked(size)).encode())
        lines = [cosign(note.text, third_party(name), time + 1) for name in ("one", "two")]
        other = note.with_signatures(lines).encode().decode()
        return [other if at == 2 else text for at, text in enumerate(super().further())]


class InventsThirdParties(CosignedWindow):
    """The further cosigners of the policy are the provider itself, three times.

    Check 1 (`policy`) wants those that the verifier lists in its terms (9.4).
    """

    def party(self, name: str) -> SigningKey:
        return SigningKey(f"{name}.example", COSIGNATURE_V1, seeded(f"the provider as {name}"))


constructed = partial(
    ConstructedCheat,
    family="INTEGRITY",
    checks=("cosigners",),
    why="the prover's service shows what was cosigned, and asks again until the sampling instant",
)

CHEATS: Final = (
    constructed(
        name="end-unseen-by-third-parties",
        description="Keeps the final checkpoint from the further cosigners.",
        window=HidesTheEnd,
        reason="no final checkpoint has the quorum them",
    ),
    constructed(
        name="log-shown-late-to-third-parties",
        description="Shows the further cosigners nothing before the window's end.",
        window=ShowsTheLogLate,
        reason="the opening checkpoint has the quorum since",
    ),
    constructed(
        name="end-cosigned-after-the-sample",
        description="Has the final checkpoint cosigned by third parties when the sample is known.",
        window=CosignsLate,
        reason="the final checkpoint has the quorum since",
    ),
    constructed(
        name="quorum-of-one",
        description="Shows the cosignature of one third party as that of the quorum.",
        window=CosignsAlone,
        reason="quorum them NOT reached",
    ),
    constructed(
        name="third-parties-saw-another-log",
        description="Shows the further cosigners another log than the verifier.",
        window=ShowsAnotherLog,
        reason="not one that the verifier cosigned",
    ),
    ConstructedCheat(
        name="third-parties-of-its-own",
        family="INTEGRITY",
        description="Names three further cosigners of which it holds the keys.",
        why="the verifier's terms do not list them",
        window=InventsThirdParties,
        checks=("policy",),
        reason="is not among the further cosigners that the verifier knows",
    ),
)
