"""An index, a record and their proofs, small enough to make often."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ragaudit import core
from ragaudit.circuits.statements import IndexStatement, SelectionStatement

CONTEXT = bytes(range(32))


@dataclass(frozen=True)
class Index:
    """An index and what its prover knows."""

    rows: npt.NDArray[np.int8]
    blindings: npt.NDArray[np.uint8]
    commitments: bytes

    @property
    def count(self) -> int:
        return int(self.rows.shape[0])

    @property
    def dimension(self) -> int:
        return int(self.rows.shape[1]) - 4

    def statement(self, **changes: Any) -> IndexStatement:
        statement = IndexStatement(CONTEXT, self.count, self.dimension, self.commitments)
        return replace(statement, **changes)


@dataclass(frozen=True)
class Record:
    """A query, its noise and what was selected."""

    index: Index
    query: npt.NDArray[np.int16]
    noise: npt.NDArray[np.int64]
    top_k: int
    selected: tuple[int, ...]
    blinding: bytes
    allowed: tuple[int, ...] | None = None

    def commitment(self) -> bytes:
        return core.commit_selection(self.selected, self.blinding)

    def statement(self, **changes: Any) -> SelectionStatement:
        statement = SelectionStatement(
            context=CONTEXT,
            rows=self.index.count,
            commitments=self.index.commitments,
            query=self.query,
            noise=self.noise,
            top_k=self.top_k,
            selection_commitment=self.commitment(),
            allowed=self.allowed,
        )
        return replace(statement, **changes)

    def prove(self, *, progress: core.Progress | None = None, **changes: Any) -> bytes:
        """``changes`` are to what the prover knows, and to the statement."""
        known: dict[str, Any] = {
            "rows": self.index.rows,
            "blindings": self.index.blindings,
            "selected": self.selected,
            "selection_blinding": self.blinding,
        }
        stated = {name: value for name, value in changes.items() if name not in known}
        known |= {name: value for name, value in changes.items() if name in known}
        return core.prove_selection(self.statement(**stated), **known, progress=progress)

    def verify(self, proof: bytes, **changes: Any) -> None:
        core.verify_selection(self.statement(**changes), proof)

    def proven(self, proof: bytes) -> tuple[SelectionStatement, bytes]:
        return self.statement(), proof


def _make_index(count: int, dimension: int, seed: int) -> Index:
    """Random rows of squared norm at most B²."""
    random = np.random.default_rng(seed)
    bound = int(127 / dimension**0.5)
    vectors = random.integers(-bound, bound + 1, (count, dimension), dtype=np.int8)
    rows = core.complete_rows(vectors)
    blindings = core.random_scalars(count)
    return Index(rows, blindings, core.commit_rows(rows, blindings))


def _mechanism(
    index: Index,
    query: npt.NDArray[np.int16],
    noise: npt.NDArray[np.int64],
    top_k: int,
    allowed: tuple[int, ...] | None,
) -> tuple[int, ...]:
    """Noise-then-select, straight from its definition."""
    scores = index.rows[:, : index.dimension].astype(np.int64) @ query.astype(np.int64)
    noised = [int(score) + int(z) for score, z in zip(scores, noise, strict=True)]
    positions = tuple(range(index.count)) if allowed is None else allowed
    if len(positions) <= top_k:
        return tuple(sorted(positions))
    boundary = sorted((noised[i] for i in positions), reverse=True)[top_k]
    return tuple(sorted(i for i in positions if noised[i] > boundary))


def _make_record(
    index: Index,
    seed: int,
    *,
    top_k: int = 2,
    spread: int = 30_000,
    allowed: tuple[int, ...] | None = None,
) -> Record:
    """A record that selects what the mechanism selects."""
    random = np.random.default_rng(seed)
    bound = int(127 / index.dimension**0.5)
    query = random.integers(-bound, bound + 1, index.dimension).astype(np.int16)
    noise = random.integers(-spread, spread + 1, index.count).astype(np.int64)
    selected = _mechanism(index, query, noise, top_k, allowed)
    blinding = core.random_scalars(1).tobytes()
    return Record(index, query, noise, top_k, selected, blinding, allowed)


@pytest.fixture(scope="session")
def make_index() -> Callable[..., Index]:
    """make_index(count, dimension, seed)."""
    return _make_index


@pytest.fixture(scope="session")
def make_record() -> Callable[..., Record]:
    """make_record(index, seed, top_k=, spread=, allowed=)."""
    return _make_record


@pytest.fixture(scope="session")
def index() -> Index:
    return _make_index(7, 5, seed=1)


@pytest.fixture(scope="session")
def index_proof(index: Index) -> bytes:
    return core.prove_index(index.statement(), index.rows, index.blindings)


@pytest.fixture(scope="session")
def record(index: Index) -> Record:
    return _make_record(index, seed=2)


@pytest.fixture(scope="session")
def proof(record: Record) -> bytes:
    return record.prove()
