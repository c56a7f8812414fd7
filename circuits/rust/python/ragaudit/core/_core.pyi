"""The compiled module: memory in, bytes out. Only ragaudit.core calls it."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from ragaudit.core._budgets import CheckedBudget, CheckedCharge
from ragaudit.core._statements import CheckedIndex, CheckedSelection, CheckedTies

__all__ = [
    "SQUARED_NORM",
    "Cancelled",
    "CoreError",
    "MalformedInput",
    "NoiseSampler",
    "ProofRejected",
    "ScoredRows",
    "commit_marked",
    "commit_rows",
    "commit_selection",
    "complete_rows",
    "generator",
    "link_accounts",
    "prove_budget",
    "prove_charges",
    "prove_index",
    "prove_selection",
    "prove_ties",
    "random_scalars",
    "reblind_rows",
    "running_sums",
    "transcript_trace",
    "verify_budget",
    "verify_charges",
    "verify_index",
    "verify_selection",
    "verify_selections",
    "verify_ties",
]

KNOWN_POSITIONS: Final[int]
SQUARED_NORM: Final[int]

class CoreError(Exception): ...
class MalformedInput(CoreError): ...

class ProofRejected(CoreError):
    failed: list[int]

class Cancelled(CoreError): ...

_Memory: TypeAlias = npt.NDArray[np.uint8]
_Progress: TypeAlias = Callable[[float], bool | None] | None

def generator(name: str, index: int) -> bytes: ...
def position_encodings(count: int) -> bytes: ...
def use_positions(encodings: bytes) -> None: ...
def transcript_trace(
    argument: str, operations: Sequence[tuple[str, str, bytes, int]]
) -> list[tuple[bytes, bytes]]: ...
def complete_rows(
    vectors: _Memory, entry_bytes: int, dimension: int, squared_norm: int
) -> bytes: ...
def random_scalars(count: int) -> bytes: ...
def link_accounts(
    records: tuple[_Memory, _Memory, _Memory, _Memory],
    width: int,
    accounts: int,
    near: tuple[int, int, int],
    progress: _Progress,
    part: tuple[int, int] | None = ...,
) -> bytearray: ...
def commit_rows(
    rows: _Memory, entry_bytes: int, width: int, blindings: _Memory, progress: _Progress
) -> bytes: ...
def reblind_rows(
    row_commitments: bytes, old: _Memory, new: _Memory, progress: _Progress
) -> bytes: ...
def prove_index(
    statement: CheckedIndex,
    rows: _Memory,
    entry_bytes: int,
    blindings: _Memory,
    progress: _Progress,
) -> bytes: ...
def verify_index(statement: CheckedIndex, proof: bytes, progress: _Progress) -> None: ...
def commit_marked(marks: bytes, blinding: bytes) -> bytes: ...
def commit_selection(positions: Sequence[int], blinding: bytes) -> bytes: ...
def prove_selection(
    statement: CheckedSelection,
    rows: tuple[_Memory, int],
    blindings: _Memory,
    selected: Sequence[int],
    selection_blinding: bytes,
    progress: _Progress,
) -> bytes: ...
def verify_selection(statement: CheckedSelection, proof: bytes) -> None: ...
def verify_selections(
    proven: Sequence[tuple[CheckedSelection, bytes]], progress: _Progress
) -> None: ...
def prove_ties(
    statement: CheckedTies,
    rows: _Memory,
    entry_bytes: int,
    blindings: _Memory,
    progress: _Progress,
) -> bytes: ...
def verify_ties(statement: CheckedTies, proof: bytes) -> None: ...
def prove_budget(
    statement: CheckedBudget,
    charged: Sequence[Sequence[int]],
    blindings: _Memory,
    progress: _Progress,
) -> bytes: ...
def verify_budget(statement: CheckedBudget, proof: bytes, progress: _Progress) -> None: ...
def prove_charges(
    statement: CheckedCharge,
    rows: tuple[_Memory, int, int],
    blindings: _Memory,
    charges: tuple[Sequence[Sequence[int]], _Memory, Sequence[int]],
    progress: _Progress,
) -> bytes: ...
def verify_charges(statement: CheckedCharge, proof: bytes, progress: _Progress) -> None: ...
def running_sums(points: bytes, numbers: Sequence[int]) -> list[bytes]: ...
def scores_of(
    rows: _Memory, width: int, positions: npt.NDArray[np.int64], query: _Memory
) -> npt.NDArray[np.int64]: ...
def quantise(vector: _Memory, norm_bound: int) -> bytes: ...

class ScoredRows:
    def __new__(
        cls, rows: _Memory, entry_bytes: int, width: int, instructions: str = "fastest"
    ) -> ScoredRows: ...
    def scores(self, queries: _Memory) -> npt.NDArray[np.int64]: ...
    def best(
        self,
        queries: _Memory,
        top_k: Sequence[int],
        allowed: Sequence[npt.NDArray[np.int64] | None],
    ) -> list[npt.NDArray[np.int64]]: ...

class NoiseSampler:
    def __new__(cls, thresholds: bytes, factor: int, levels: int) -> NoiseSampler: ...
    def sample(self, key: bytes, count: int) -> bytearray: ...
