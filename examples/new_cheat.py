"""A cheating provider of your own, and the proof that one check catches it.

Run it with ``python new_cheat.py``.
"""

import tempfile
from pathlib import Path

from ragaudit.lab.attacks import ServiceCheat, stage
from ragaudit.prover.answering.mechanism import Mechanism, Scores


class FavoursTheFirstRow(Mechanism):
    """The first row of the index is always among the selected ones."""

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        return tuple(sorted({0, *super().select(exact, noise, top_k)[1:]}))


CHEAT = ServiceCheat(
    name="favours-the-first-row",
    family="SELECTION",
    description="Sells the first place of every answer.",
    parts={"mechanism": FavoursTheFirstRow},
    checks=("selection",),
    reason="selection argument does not hold",
)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        staged = stage(CHEAT, Path(folder))
        print("caught:", staged.caught, "by", staged.outcome.failed)
        # Proof that the check is what catches it: without the check, the window passes.
        print("without the check:", staged.without(CHEAT.checks).result)
