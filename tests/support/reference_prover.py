"""The plain Python prover of selection arguments; the cheating suite ships it."""

from ragaudit.lab.attacks.forging.moves import Mask, Moves, modules
from ragaudit.lab.attacks.forging.selection_prover import (
    BITS,
    Assignment,
    Index,
    commit_rows,
    commit_selection,
    four_squares,
    honest_assignment,
    prove_boundary,
    prove_everything,
    scores,
    select,
)

__all__ = [
    "BITS",
    "Assignment",
    "Index",
    "Mask",
    "Moves",
    "commit_rows",
    "commit_selection",
    "four_squares",
    "honest_assignment",
    "modules",
    "prove_boundary",
    "prove_everything",
    "scores",
    "select",
]
