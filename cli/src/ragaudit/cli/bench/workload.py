"""A deterministic index, query and noise of any size, in the prover's own integers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import NoiseParameters, table
from ragaudit.circuits.quantise import quantise, quantise_rows
from ragaudit.circuits.selection import scores, select
from ragaudit.encoding.digests import structure

__all__ = ["Sizes", "Workload"]

CONTEXT = structure("bench", "context")


@dataclass(frozen=True)
class Sizes:
    """N rows of d entries, K asked for, sigma as in the policy."""

    rows: int
    dimension: int
    top_k: int
    sigma: str


@dataclass(frozen=True)
class Workload:
    """Random directions with some structure: topics, documents around them, a query near one."""

    sizes: Sizes
    seed: int = 1
    context: bytes = field(default=CONTEXT, init=False)

    @cached_property
    def embeddings(self) -> npt.NDArray[np.float32]:
        """float32[N, d]: documents around one direction per forty of them."""
        random = np.random.default_rng(self.seed)
        topics = random.standard_normal((self.sizes.rows // 40 + 1, self.sizes.dimension))
        own = random.standard_normal((self.sizes.rows, self.sizes.dimension))
        chosen = random.integers(0, len(topics), self.sizes.rows)
        return np.asarray(topics[chosen] + own, dtype=np.float32)

    @cached_property
    def vectors(self) -> npt.NDArray[np.int8]:
        """int8[N, d]."""
        return quantise_rows(self.embeddings)

    @cached_property
    def rows(self) -> npt.NDArray[np.int8]:
        """Completed rows, int8[N, d + 4]."""
        return core.complete_rows(self.vectors)

    @cached_property
    def blindings(self) -> npt.NDArray[np.uint8]:
        return core.random_scalars(self.sizes.rows)

    @cached_property
    def commitments(self) -> bytes:
        return core.commit_rows(self.rows, self.blindings)

    @cached_property
    def query(self) -> npt.NDArray[np.int16]:
        """int16[d], near document 0."""
        random = np.random.default_rng(self.seed + 1)
        vector = self.embeddings[0] + 0.5 * random.standard_normal(self.sizes.dimension)
        return quantise(vector).astype(np.int16)

    @cached_property
    def noise_table(self) -> tuple[bytes, int, int]:
        """Thresholds, factor and levels of the sampler."""
        parameters = NoiseParameters.for_sigma(self.sizes.sigma)
        return table(parameters).thresholds, parameters.factor, parameters.levels

    def noise(self, key: bytes = bytes(32)) -> npt.NDArray[np.int64]:
        """int64[N], one value per row."""
        return core.sample_noise(*self.noise_table, key, self.sizes.rows)

    def answer(self, noise: npt.NDArray[np.int64]) -> tuple[int, ...]:
        """T: the positions that noise-then-select serves."""
        return select(scores(self.vectors, self.query) + noise, self.sizes.top_k)

    def prover(self) -> Callable[[], bytes]:
        """What proves one record; its answer is drawn beforehand."""
        noise = self.noise()
        selected = self.answer(noise)
        return lambda: self._prove(noise, selected, self._selection_blinding)

    def statement(self) -> core.SelectionInstance:
        """One record with a valid proof."""
        noise = self.noise()
        selected = self.answer(noise)
        return core.SelectionInstance(
            self.context,
            self.sizes.rows,
            self.commitments,
            self.query,
            noise,
            self.sizes.top_k,
            core.commit_selection(selected, self._selection_blinding),
            self._prove(noise, selected, self._selection_blinding),
        )

    @cached_property
    def _selection_blinding(self) -> bytes:
        return bytes(core.random_scalars(1)[0].tobytes())

    def _prove(
        self, noise: npt.NDArray[np.int64], selected: tuple[int, ...], blinding: bytes
    ) -> bytes:
        return core.prove_selection(
            self.context,
            self.rows,
            self.blindings,
            self.commitments,
            self.query,
            noise,
            self.sizes.top_k,
            selected,
            blinding,
        )

    def exact_search(self) -> npt.NDArray[np.int64]:
        """The baseline of answering: NumPy's exact top K in float32, no noise, no record."""
        similarity = self._unit @ self.query.astype(np.float32)
        return np.argpartition(similarity, -self.sizes.top_k)[-self.sizes.top_k :]

    @cached_property
    def _unit(self) -> npt.NDArray[np.float32]:
        norms = np.linalg.norm(self.embeddings, axis=1, keepdims=True)
        return np.ascontiguousarray(self.embeddings / norms)
