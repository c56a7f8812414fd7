"""A deterministic index, queries and noise of any size, in the prover's own integers.

Beside it: exact search without noise, record or proof, which answering is compared with.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.quantise import quantise, quantise_rows
from ragaudit.circuits.selection import select
from ragaudit.circuits.statements import IndexStatement, SelectionStatement
from ragaudit.encoding.digests import structure
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.bench.harness import ALLOWANCE, Measurement, Notify, measure, silent
from ragaudit.verifier.engines import ProvenSelection, engine

_NAME: Final = "bench"
_DIGEST: Final = structure("bench", "context")
"""Every digest in a statement here: there is no window that it could be of."""

_BLOCK_ROWS = 8192  # real vectors exist for so many rows at a time
_ROWS_A_TOPIC = 40


@dataclass(frozen=True)
class Sizes:
    """The sizes of a workload.

    Attributes:
        rows: N.
        dimension: d.
        top_k: K.
        sigma: as in the policy, a decimal.
        records: R, which are proven or verified together.
        queries: r, of an account: noise keys of r counters are committed to together.
    """

    rows: int
    dimension: int
    top_k: int
    sigma: str
    records: int = 1
    queries: int = 100


@dataclass(frozen=True)
class Question:
    """One query with its noise and its answer.

    Attributes:
        query: int16[d].
        noise: int64[N].
        selected: T.
        blinding, commitment: of the selection, 32 bytes each.
        above: |F|, rows that the noise alone puts into the answer.
        undecided: |U|, rows of which the proof speaks one by one.
    """

    query: npt.NDArray[np.int16]
    noise: npt.NDArray[np.int64]
    selected: tuple[int, ...]
    blinding: bytes
    commitment: bytes
    above: int
    undecided: int


@dataclass(frozen=True)
class _Record:
    """What a statement takes from a record."""

    top_k: int
    selection_commitment: bytes
    policy_digest: bytes = _DIGEST
    window: str = _NAME
    tenant: str = _NAME
    version: int = 1


class Workload:
    """Random directions with some structure: topics, documents around them, a query near one.

    Args:
        sizes: how large.
        folder: where rows, blindings and commitments are kept for other processes, which then
            load them instead of making them again; None to keep nothing.
        seed: of all vectors; blindings and proofs are random.
    """

    def __init__(self, sizes: Sizes, folder: Path | None = None, seed: int = 1) -> None:
        self.sizes = sizes
        self.seed = seed
        self._folder = folder

    def embeddings(self) -> list[npt.NDArray[np.float32]]:
        """Return blocks of float32[., d]: what an embedder gives, and an index is made of."""
        return [block for _, block in self._embeddings()]

    @cached_property
    def rows(self) -> npt.NDArray[np.int8]:
        """Completed rows, int8[N, d + 4]."""

        def make() -> npt.NDArray[np.int8]:
            rows = np.empty((self.sizes.rows, self.sizes.dimension + 4), dtype=np.int8)
            for start, block in self._embeddings():
                rows[start : start + len(block)] = core.complete_rows(quantise_rows(block))
            return rows

        return self._kept("rows", make)

    @cached_property
    def vectors(self) -> npt.NDArray[np.int8]:
        """int8[N, d]."""
        return np.ascontiguousarray(self.rows[:, : self.sizes.dimension])

    @cached_property
    def blindings(self) -> npt.NDArray[np.uint8]:
        """uint8[N, 32]."""
        return self._kept("blindings", lambda: core.random_scalars(self.sizes.rows))

    @cached_property
    def commitments(self) -> bytes:
        """C_0 .. C_(N-1), 32 bytes each."""

        def make() -> npt.NDArray[np.uint8]:
            made = core.commit_rows(self.rows, self.blindings)
            return np.frombuffer(made, dtype=np.uint8)

        return self._kept("commitments", make).tobytes()

    def units(self) -> npt.NDArray[np.float32]:
        """Return float32[N, d], unit vectors: what a search without noise and records keeps."""
        rows = np.empty((self.sizes.rows, self.sizes.dimension), dtype=np.float32)
        for start in range(0, len(rows), _BLOCK_ROWS):
            block = self.vectors[start : start + _BLOCK_ROWS].astype(np.float32)
            rows[start : start + _BLOCK_ROWS] = block / np.linalg.norm(block, axis=1, keepdims=True)
        return rows

    @cached_property
    def scorer(self) -> core.Scorer:
        """What scores all rows exactly."""
        return core.Scorer(self.vectors)

    def query(self, number: int = 0) -> npt.NDArray[np.int16]:
        """Return int16[d], a quantised vector near a document.

        Args:
            number: of the document; from the first again after the last.
        """
        random = np.random.default_rng([self.seed, 2, number])
        near = self.vectors[number % self.sizes.rows].astype(np.float64)
        noise = random.standard_normal(self.sizes.dimension)
        return quantise(near + 0.5 * noise * np.std(near)).astype(np.int16)

    def draw_noise(self, number: int = 0) -> npt.NDArray[np.int64]:
        """Return int64[N], the noise of a record, as the verifier draws it again.

        Args:
            number: of the record; its key is a digest of that.
        """
        key = structure("bench", "noise", number)
        return engine("core").sample_noise(self.sizes.sigma, key, self.sizes.rows)

    def question(self, number: int = 0) -> Question:
        """Return query, noise and answer of a record, with the sizes of F and U (spec 4.6.2).

        Args:
            number: of the record.
        """
        query, noise, top_k = self.query(number), self.draw_noise(number), self.sizes.top_k
        selected = select(self.scorer.scores(query) + noise, top_k)
        blinding = core.random_scalars(1)[0].tobytes()
        zeta = np.partition(noise, len(noise) - 1 - top_k)[len(noise) - 1 - top_k]
        above = int(np.count_nonzero(noise > zeta + 2 * SQUARED_NORM))
        undecided = int(np.count_nonzero(np.abs(noise - zeta) <= 2 * SQUARED_NORM))
        commitment = core.commit_selection(selected, blinding)
        return Question(query, noise, selected, blinding, commitment, above, undecided)

    def index_statement(self, commitments: bytes) -> IndexStatement:
        """Return what there is to prove of the rows.

        Args:
            commitments: C_0 || .. || C_(N-1), 32 bytes each.
        """
        return IndexStatement.of(
            policy_digest=_DIGEST,
            window=_NAME,
            tenant=_NAME,
            version=1,
            index_root=_DIGEST,
            dimension=self.sizes.dimension,
            commitments=commitments,
        )

    def statement(self, question: Question) -> SelectionStatement:
        """Return what there is to prove of one record."""
        return SelectionStatement.of(
            _Record(self.sizes.top_k, question.commitment),
            body=b"",
            index_root=_DIGEST,
            commitments=self.commitments,
            seed_root=_DIGEST,
            activation_randomness=_DIGEST,
            query=question.query,
            noise=question.noise,
        )

    def prove(self, question: Question) -> bytes:
        """Return the selection argument of one record."""
        return core.prove_selection(
            self.statement(question),
            self.rows,
            self.blindings,
            question.selected,
            question.blinding,
        )

    def proven(self, question: Question) -> ProvenSelection:
        """Return what the verifier checks of one record: its statement and a new proof."""
        return self.statement(question), self.prove(question)

    @property
    def committed(self) -> bool:
        """Whether `commitments` were made already, here or by an earlier process."""
        return "commitments" in self.__dict__ or (
            self._folder is not None and self._file(self._folder, "commitments").exists()
        )

    def keep_commitments(self, commitments: bytes) -> None:
        """Take over commitments that were made elsewhere.

        Args:
            commitments: to `rows` under `blindings`, as `commitments` has them.
        """
        self._kept("commitments", lambda: np.frombuffer(commitments, dtype=np.uint8))
        self.__dict__["commitments"] = commitments

    def _embeddings(self) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """Blocks of float32[., d] with the number of their first row."""
        rows, d = self.sizes.rows, self.sizes.dimension
        topics = np.random.default_rng([self.seed, 0]).standard_normal(
            (rows // _ROWS_A_TOPIC + 1, d), dtype=np.float32
        )
        for start in range(0, rows, _BLOCK_ROWS):
            random = np.random.default_rng([self.seed, 1, start])
            count = min(_BLOCK_ROWS, rows - start)
            chosen = random.integers(0, len(topics), count)
            yield start, topics[chosen] + random.standard_normal((count, d), dtype=np.float32)

    def _file(self, folder: Path, name: str) -> Path:
        return folder / f"{name}-{self.sizes.rows}x{self.sizes.dimension}-{self.seed}.npy"

    def _kept(self, name: str, make: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """What ``make`` makes, from the folder if an earlier process put it there."""
        if self._folder is None:
            return make()
        path = self._file(self._folder, name)
        if path.exists():
            found: npt.NDArray[Any] = np.load(path)
            return found
        made = make()
        self._folder.mkdir(parents=True, exist_ok=True)
        # Renamed when it is whole: no other process loads half a file.
        unfinished = path.with_suffix(f".{os.getpid()}.npy")
        np.save(unfinished, made)
        unfinished.replace(path)
        return made


NUMPY = "NumPy exact search, bare"
FAISS = "FAISS exact search, bare"
FAISS_INT8 = "FAISS int8 search, bare"


def numpy_search(work: Workload, runs: int) -> Measurement:
    """Measure the K nearest rows in float32: a matrix product and a partial sort.

    Args:
        work: index and query.
        runs: under the clock, at most.
    """
    units, top_k = work.units(), work.sizes.top_k
    query = work.query().astype(np.float32)

    def search() -> object:
        similarity = units @ query
        return np.argpartition(similarity, -top_k)[-top_k:]

    return measure(NUMPY, search, runs)


def faiss_search(work: Workload, runs: int) -> Measurement | None:
    """Measure the same with FAISS's flat inner-product index.

    Args:
        work, runs: as of `numpy_search`.

    Returns:
        The measurement; None where FAISS is not installed.
    """
    if find_spec("faiss") is None:
        return None
    return measure(FAISS, _faiss(work), runs)


def faiss_int8_search(work: Workload, runs: int) -> Measurement | None:
    """Measure FAISS over the very int8 vectors that answering scores, a quarter of float32's bytes.

    Args:
        work, runs: as of `numpy_search`.

    Returns:
        The measurement; None where FAISS is not installed.
    """
    if find_spec("faiss") is None:
        return None
    import faiss  # noqa: PLC0415 - optional

    kind = faiss.ScalarQuantizer.QT_8bit_direct_signed
    index = faiss.IndexScalarQuantizer(work.sizes.dimension, kind, faiss.METRIC_INNER_PRODUCT)
    for start in range(0, work.sizes.rows, _BLOCK_ROWS):
        index.add(work.vectors[start : start + _BLOCK_ROWS].astype(np.float32))
    query = work.query().astype(np.float32)[np.newaxis]
    return measure(FAISS_INT8, lambda: index.search(query, work.sizes.top_k), runs)


def _faiss(work: Workload) -> Callable[[], object]:
    import faiss  # noqa: PLC0415 - optional

    index = faiss.IndexFlatIP(work.sizes.dimension)
    index.add(work.units())
    query = work.query().astype(np.float32)[np.newaxis]
    return lambda: index.search(query, work.sizes.top_k)


@dataclass(frozen=True)
class Task:
    """One scenario to be run.

    Attributes:
        runs: runs under the clock, at most.
        allowance: seconds under the clock after which no further run is begun.
    """

    work: Workload
    runs: int
    notify: Notify = silent
    allowance: float = ALLOWANCE

    def stage(self, what: str, done: int = 0, total: int = 0) -> None:
        """Say what is being done, how much of it, and out of how much (0: unknown)."""
        self.notify(what, done, total)

    def measure(self, name: str, action: Callable[[], object], records: int = 1) -> Measurement:
        """Measure ``action`` with this task's runs and allowance, saying so.

        Args:
            name, action, records: as of `ragaudit.lab.bench.harness.measure`.
        """
        self.stage(name)
        return measure(name, action, self.runs, records=records, allowance=self.allowance)
