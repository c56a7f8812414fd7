"""One case for both verifiers."""

from dataclasses import dataclass, replace

import numpy as np
import ragaudit.core as core
import ragaudit.verifier.reference as reference
from ragaudit.circuits.statements import SelectionStatement


@dataclass(frozen=True)
class Case:
    """Everything that a verification of a selection takes."""

    context: bytes
    commitments: bytes
    query: tuple[int, ...]
    noise: tuple[int, ...]
    top_k: int
    selection: bytes
    proof: bytes
    allowed: tuple[int, ...] | None
    squared_norm: int = 127**2
    ties: bool = False

    @property
    def rows(self) -> int:
        return len(self.noise)

    @property
    def statement(self) -> SelectionStatement:
        return SelectionStatement(
            context=self.context,
            rows=self.rows,
            commitments=self.commitments,
            query=np.array(self.query, dtype=np.int16),
            noise=np.array(self.noise, dtype=np.int64),
            top_k=self.top_k,
            selection_commitment=self.selection,
            allowed=self.allowed,
            squared_norm=self.squared_norm,
            keeps_ties=self.ties,
        )


def core_accepts(case: Case, rows: int | None = None) -> bool:
    try:
        statement = case.statement
        if rows is not None:
            statement = replace(statement, rows=rows)
        core.verify_selection(statement, case.proof)
    except core.CoreError:
        return False
    return True


def reference_accepts(case: Case, rows: int | None = None) -> bool:
    try:
        reference.verify_selection(
            case.context,
            case.rows if rows is None else rows,
            case.commitments,
            case.query,
            case.noise,
            case.top_k,
            case.selection,
            case.proof,
            case.allowed,
            case.squared_norm,
            case.ties,
        )
    except reference.ProofRejected:
        return False
    return True
