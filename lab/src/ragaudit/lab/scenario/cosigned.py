"""A window whose policy names further cosigners (docs/spec/05-records.md §5.2)."""

from collections.abc import Callable
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.policy import THIRD_PARTIES, third_party
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import SigningKey, parse_note
from ragaudit.ledger.messages import items as names


def trust_text(threshold: int = 2, party: Callable[[str], SigningKey] = third_party) -> str:
    """Return a trust policy of three, in its canonical text.

    Args:
        threshold: of the quorum, 1..3.
        party: gives the key of each by its name.
    """
    lines = [f"witness {name} {party(name).verifier_key}" for name in THIRD_PARTIES]
    group = f"group them {threshold} {' '.join(THIRD_PARTIES)}"
    return "\n".join([*lines, group, "quorum them", ""])


class CosignedWindow(IntegrityWindow):
    """`IntegrityWindow` with three further cosigners, of whom two must stand behind the log."""

    demand = "required"

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        asked = {"demand": self.demand, "trust": trust_text(party=self.party)}
        return {**super().document(keys, changes), "cosigners": asked}

    def party(self, name: str) -> SigningKey:
        """Return the key of a further cosigner: a hook for cheats."""
        return third_party(name)

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        """Return who cosigns a checkpoint, and when: a hook for cheats.

        Args:
            size: of the checkpoint, in entries.
            time: at which the verifier cosigned it, Unix seconds.
        """
        return {"one": time + 1, "three": time + 2}

    def further(self) -> list[str]:
        """Return the notes with the lines of the log and of the further cosigners."""
        notes = []
        for size, time, text in self.checkpoints:
            given = self.cosigned_by(size, time)
            if not given:
                continue
            note = parse_note(text.encode())
            own = note.signature_of(self.log_key.verifier_key)
            assert own is not None
            lines = [cosign(note.text, self.party(name), at) for name, at in given.items()]
            bare = type(note)(note.text, (own,))
            notes.append(bare.with_signatures(lines).encode().decode())
        return notes

    def items(self) -> dict[str, bytes]:
        found = super().items()
        return {**found, names.COSIGNED: canonical_json.dumps(self.further())}
