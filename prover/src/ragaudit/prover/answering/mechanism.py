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
from ragaudit.encoding.parameters import B
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.receipts import (
    MAX_SELECTED,
    MAX_UNSERVED_BYTES,
    unserved_bytes,
)
from ragaudit.prover.errors import MalformedQuery
from ragaudit.prover.index.committed import CommittedIndex, Search
from ragaudit.prover.sequencer import Pace, together
from ragaudit.prover.window.open_window import OpenWindow

Embedding = npt.NDArray[np.int16]
Scores = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int64]


class Mechanism:
    """The steps that a record's proof speaks of. Safe to use from several threads."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._pace = Pace()

    def embed(self, query: str) -> npt.NDArray[np.float32]:
        """Return the query's embedding, float32[d], as the embedder gives it.

        Args:
            query: text of 1 to 8,192 bytes of UTF-8, as `check_request` lets it through.

        Raises:
            MalformedError: the text or its embedding cannot be used (no words, NaN, infinity).
        """
        # Checked on both sides: a model's NaN would pass every comparison after it.
        texts = checked_texts([query])
        embedded = self._pace.call(self._embedder.embed, texts)
        vectors = checked_embeddings(embedded, 1, self._embedder.dimension)
        vector: npt.NDArray[np.float32] = vectors[0]
        return vector

    def quantise(self, vector: npt.NDArray[np.float32], norm_bound: int = B) -> Embedding:
        """Return e, int16[d] of norm at most B, of float32[d] (docs/spec/02-integers.md §2.1).

        Args:
            vector: float32[d], not zero, without NaN or infinity.
            norm_bound: B of the policy.
        """
        try:
            return core.quantise(vector.astype(np.float64), norm_bound)
        except core.MalformedInput:
            return quantise(vector, norm_bound).astype(np.int16)  # says what is wrong

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
            live.epochs.tree(record.epoch).key(record.slot, record.counter),
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
        if rows is None:
            return index.scorer.scores(embedding)
        if index.rows.dtype == np.int8:
            return core.scores_of(index.rows, rows, embedding)
        # Without noise: the selected rows only.
        return scores(index.rows[rows, : index.dimension], embedding)

    def noised_selection(
        self,
        live: OpenWindow,
        index: CommittedIndex,
        embedding: Embedding,
        noise: Scores,
        top_k: int,
        allowed: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """Return T, rising positions; as many rows are scored whatever the noise is.

        Rows whose noise is too low to win are left out (`ragaudit.circuits.selection`).

        Args:
            embedding: e, int16[d].
            noise: z, int64[N], of all rows.
            allowed: the rows that pass the filter; None for all.
        """
        # All rows are scored: which of them pass is public, how near they are is not.
        if allowed is not None:
            exact = self.scores(index, embedding)
            return self.select_allowed(exact, noise, top_k, allowed)
        # The rows to score follow from the noise alone: the time of an answer says nothing of it.
        rule = live.versions.rule(index)
        candidates = None if rule is None else rule.candidates(noise)
        if candidates is None:
            return self.select(self.scores(index, embedding), noise, top_k)
        rows, values = candidates
        winners = self.select(self.scores(index, embedding, rows), values, top_k)
        return tuple(rows[list(winners)].tolist())

    def exact_selection(
        self,
        index: CommittedIndex,
        embedding: Embedding,
        top_k: int,
        allowed: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """Return T without noise: the K best rows and all that tie with the last, rising.

        Args:
            embedding: e, int16[d].
            allowed: the rows that pass the filter; None for all.

        Raises:
            MalformedQuery: more rows tie than a receipt can name.
        """
        selected = self.select_exactly(index, embedding, top_k, allowed)
        if len(selected) > MAX_SELECTED:
            raise MalformedQuery(
                "too many rows tie", where="query", expected=f"at most {MAX_SELECTED}"
            )
        # Any of them may be the ones that are not served; all are opened where T is too large.
        columns = [index.columns_of(at) for at in selected] if len(selected) > top_k else []
        owned = bool(index.id_keys)
        if unserved_bytes(columns, index.count, owned=owned) > MAX_UNSERVED_BYTES:
            raise MalformedQuery("rows that tie hold too much", where="query", expected="fewer")
        return selected

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        """Return T: the positions above the (K+1)-th largest noised score, rising.

        Args:
            exact: s, int64.
            noise: z of the same rows, int64.
        """
        return select(exact + noise, top_k)

    def select_allowed(
        self, exact: Scores, noise: Scores, top_k: int, allowed: Sequence[int]
    ) -> tuple[int, ...]:
        """Return T as `select` does, among the rows that pass a filter.

        Args:
            exact, noise: s and z of all rows, int64[N].
            allowed: positions of the rows that pass.
        """
        return select(exact + noise, top_k, allowed)

    def select_exactly(
        self,
        index: CommittedIndex,
        embedding: Embedding,
        top_k: int,
        allowed: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """Return T: the positions of at least the K-th largest score, rising (spec 4.6.9).

        Args:
            embedding: e, int16[d].
            allowed: the rows that pass the filter, rising; None for all.
        """
        # Scored are few rows, certified to be enough; what the time tells then is no secret here
        # (docs/notes/zero-knowledge.md §5). With noise this is not called.
        rows = None if allowed is None else np.array(allowed, dtype=np.int64)
        search = Search(embedding, top_k, rows)
        together(index.find_best, search, long=index.pace.long)
        return tuple(search.found.tolist())

    def order(
        self, index: CommittedIndex, embedding: Embedding, selected: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Return T with scores, the best first and equal ones by position (spec 4.6.10).

        Args:
            embedding: e, int16[d].
            selected: T.
        """
        rows = np.array(selected, dtype=np.int64)
        exact = self.scores(index, embedding, rows).tolist()
        return sorted(zip(selected, exact, strict=True), key=lambda row: (-row[1], row[0]))

    def selection_commitment(self, selected: Sequence[int], blinding: bytes) -> bytes:
        """Return C_sel, 32 bytes, which step 6 of a receipt's check opens to T (spec 5.9).

        Args:
            selected: T, distinct positions, rising.
            blinding: rho_sel, a canonical scalar, 32 bytes.
        """
        return core.commit_selection(selected, blinding)
