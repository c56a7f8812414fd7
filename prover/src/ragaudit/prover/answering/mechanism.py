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
from ragaudit.prover.index import CommittedIndex
from ragaudit.prover.window.open_window import OpenWindow

Embedding = npt.NDArray[np.int16]
Scores = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int64]


class Mechanism:
    """The steps that a record's proof speaks of. Safe to use from several threads."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, query: str) -> npt.NDArray[np.float32]:
        """Return the query's embedding, float32[d], as the embedder gives it.

        Args:
            query: text of 1 to 8,192 bytes of UTF-8, as `check_request` lets it through.

        Raises:
            MalformedError: the text or its embedding cannot be used (no words, NaN, infinity).
        """
        # Checked on both sides: a model's NaN would pass every comparison after it.
        texts = checked_texts([query])
        vectors = checked_embeddings(self._embedder.embed(texts), 1, self._embedder.dimension)
        vector: npt.NDArray[np.float32] = vectors[0]
        return vector

    def quantise(self, vector: npt.NDArray[np.float32]) -> Embedding:
        """Return e, int16[d] of norm at most 127, of float32[d] (docs/spec/02-integers.md §2.1).

        Args:
            vector: float32[d], not zero, without NaN or infinity.
        """
        return quantise(vector).astype(np.int16)

    def sketch(self, embedding: Embedding, seed: bytes, bits: int) -> bytes:
        """Return the sketch of e, ``bits`` signs of projections, packed (spec 2.4).

        Args:
            embedding: int16[d].
            seed: of the policy's estimator, 32 bytes.
        """
        return sketch(embedding, seed, bits)

    def draw_noise(
        self, live: OpenWindow, index: CommittedIndex, record: Record, nonce: bytes | None
    ) -> Scores:
        """Return z, int64[N]: one value for every row, whatever is asked (spec 8.7).

        Args:
            record: the key binds its window, tenant, slot, counter and activation.
            nonce: the account's, 32 bytes; None for a plain account.
        """
        # The released activation is part of the key: nobody knew the noise before its instant.
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
        # One position of the key stream for each of all N rows, whatever the filter (spec 3.4).
        table = live.noise_table
        parameters = table.parameters
        return core.sample_noise(
            table.thresholds, parameters.factor, parameters.levels, key, index.count
        )

    def scores(
        self, index: CommittedIndex, embedding: Embedding, rows: Positions | None = None
    ) -> Scores:
        """Return s, int64: the exact scores of some rows, of every row by default.

        Args:
            embedding: e, int16[d].
            rows: int64, positions of the rows to score.
        """
        # The compiled loop pays for whole indexes only; both are exact integers (spec 2.3).
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
        """Return T, rising positions; as many rows are scored whatever the noise is.

        Rows whose noise is too low to win are left out (`ragaudit.circuits.selection`).

        Args:
            embedding: e, int16[d].
            noise: z, int64[N].
        """
        # The rows to score follow from the noise alone: the time of an answer says nothing of it.
        rule = live.candidate_rules[index.tenant]
        candidates = None if rule is None else rule.candidates(noise)
        if candidates is None:
            return self.select(self.scores(index, embedding), noise, top_k)
        rows, values = candidates
        winners = self.select(self.scores(index, embedding, rows), values, top_k)
        return tuple(rows[list(winners)].tolist())

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        """Return T: the positions above the (K+1)-th largest noised score, rising.

        Args:
            exact: s, int64.
            noise: z of the same rows, int64.
        """
        return select(exact + noise, top_k)

    def selection_commitment(self, selected: Sequence[int], blinding: bytes) -> bytes:
        """Return C_sel, 32 bytes, which step 6 of a receipt's check opens to T (spec 5.9).

        Args:
            selected: T, distinct positions, rising.
            blinding: rho_sel, a canonical scalar, 32 bytes.
        """
        return core.commit_selection(selected, blinding)
