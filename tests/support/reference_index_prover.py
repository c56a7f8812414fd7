"""The plain Python prover of index arguments; the cheating suite ships it."""

from ragaudit.attacks.forging.index_prover import begin, commit_field_rows, prove_index

__all__ = ["begin", "commit_field_rows", "prove_index"]
