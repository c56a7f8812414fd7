"""An index, a record and their proofs, small enough to make often."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ragaudit import core

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

    def prove(self, **changes: Any) -> bytes:
        index = self.index
        arguments = {
            "context": CONTEXT,
            "rows": index.rows,
            "blindings": index.blindings,
            "commitments": index.commitments,
            "query": self.query,
            "noise": self.noise,
            "top_k": self.top_k,
            "selected": self.selected,
            "selection_blinding": self.blinding,
            "allowed": self.allowed,
        }
        return core.prove_selection(**{**arguments, **changes})

    def verify(self, proof: bytes, **changes: Any) -> None:
        arguments = {
            "context": CONTEXT,
            "rows": self.index.count,
            "commitments": self.index.commitments,
            "query": self.query,
            "noise": self.noise,
            "top_k": self.top_k,
            "selection_commitment": self.commitment(),
            "proof": proof,
            "allowed": self.allowed,
        }
        core.verify_selection(**{**arguments, **changes})

    def instance(self, proof: bytes) -> core.SelectionInstance:
        return core.SelectionInstance(
            CONTEXT,
            self.index.count,
            self.index.commitments,
            self.query,
            self.noise,
            self.top_k,
            self.commitment(),
            proof,
            self.allowed,
        )


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
def context() -> bytes:
    return CONTEXT


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
    return core.prove_index(CONTEXT, index.rows, index.blindings, index.commitments)


@pytest.fixture(scope="session")
def record(index: Index) -> Record:
    return _make_record(index, seed=2)


@pytest.fixture(scope="session")
def proof(record: Record) -> bytes:
    return record.prove()
