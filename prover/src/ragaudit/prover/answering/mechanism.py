"""The audited mechanism, one step a method: embed, noise on all rows, score, select, commit.

Answering and proving are handed the same object; each step can be replaced alone in a subclass.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import noise_key
from ragaudit.circuits.quantise import quantise
from ragaudit.circuits.selection import scores, select
from ragaudit.circuits.sketch import sketch
from ragaudit.embedders.base import Embedder, checked_embeddings, checked_texts
from ragaudit.ledger.messages.records import Record
from ragaudit.prover.index.index_commitment import CommittedIndex
from ragaudit.prover.window.open_window import OpenWindow

Embedding = npt.NDArray[np.int16]
Scores = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int64]


class Mechanism:
    """The steps that a record's proof speaks of. Safe to use from several threads."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, query: str) -> npt.NDArray[np.float32]:
        """Return the query's embedding, float32[d]."""
        texts = checked_texts([query])
        vectors = checked_embeddings(self._embedder.embed(texts), 1, self._embedder.dimension)
        vector: npt.NDArray[np.float32] = vectors[0]
        return vector

    def quantise(self, vector: npt.NDArray[np.float32]) -> Embedding:
        """Return e: int16[d] of norm at most 127."""
        return quantise(vector).astype(np.int16)

    def sketch(self, embedding: Embedding, seed: bytes, bits: int) -> bytes:
        """Return the sketch of e."""
        return sketch(embedding, seed, bits)

    def draw_noise(
        self, live: OpenWindow, index: CommittedIndex, record: Record, nonce: bytes | None
    ) -> Scores:
        """Return z: one value for every row, whatever is asked (spec 8.7)."""
        key = noise_key(
            live.seed.key(record.slot, record.counter),
            window=record.window,
            tenant=record.tenant,
            version=record.version,
            pseudonym=record.pseudonym,
            epoch=record.epoch,
            slot=record.slot,
            counter=record.counter,
            activation_randomness=live.activation_randomness(record.activation),
            nonce=nonce or b"",
        )
        table = live.noise_table
        parameters = table.parameters
        return core.sample_noise(
            table.thresholds, parameters.factor, parameters.levels, key, index.count
        )

    def scores(
        self, index: CommittedIndex, embedding: Embedding, rows: Positions | None = None
    ) -> Scores:
        """Return s: the exact scores of some rows, of every row by default."""
        if rows is None:
            return index.scorer.scores(embedding)
        return scores(index.rows[rows, : index.dimension], embedding)

    def noised_selection(
        self,
        live: OpenWindow,
        index: CommittedIndex,
        embedding: Embedding,
        noise: Scores,
        top_k: int,
    ) -> tuple[int, ...]:
        """Return T, with scores of as many rows whatever the noise is, and of no more."""
        rule = live.candidate_rules[index.tenant]
        candidates = None if rule is None else rule.candidates(noise)
        if candidates is None:
            return self.select(self.scores(index, embedding), noise, top_k)
        rows, values = candidates
        chosen = self.select(self.scores(index, embedding, rows), values, top_k)
        return tuple(rows[list(chosen)].tolist())

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        """Return T: the positions above the (K+1)-th largest noised score."""
        return select(exact + noise, top_k)

    def selection_commitment(self, selected: Sequence[int], blinding: bytes) -> bytes:
        """Return C_sel."""
        return core.commit_selection(selected, blinding)
