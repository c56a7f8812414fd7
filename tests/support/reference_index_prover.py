"""The plain Python prover of index arguments; the cheating suite ships it."""

from ragaudit.lab.attacks.forging.index_prover import (
    FIRST_COLUMN,
    Claim,
    begin,
    commit_field_rows,
    junk_claim,
    offset_claim,
    prove_index,
)

__all__ = [
    "FIRST_COLUMN",
    "Claim",
    "begin",
    "commit_field_rows",
    "junk_claim",
    "offset_claim",
    "prove_index",
]
