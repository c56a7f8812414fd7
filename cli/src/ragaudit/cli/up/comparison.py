"""What a store answered, beside the exact ranking of the rows that it held at the start."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.metrics import scaled
from ragaudit.circuits.quantise import quantise
from ragaudit.ledger.messages.policy import LARGE_B
from ragaudit.prover.backends.interface import Backend

__all__ = ["Compared", "Exact", "Tally"]

_EXAMPLES = 5
# Rounding moves an entry by a half at most, by 1/12 in the mean square. A score has the errors of
# two vectors of length B, the difference of two scores those of two such scores: its standard
# deviation is at most sqrt(4/12) / B, as a cosine. Beyond five of them it is something else (one
# pair in a million).
ROUNDING = 5 * (4 / 12) ** 0.5 / LARGE_B


@dataclass(frozen=True)
class Compared:
    """One query's two lists of ids, best first.

    Attributes:
        after_write: whether the rows may have changed since they were read.
        gap: see `Exact.gap`.
    """

    store: tuple[str, ...]
    exact: tuple[str, ...]
    after_write: bool = False
    gap: float | None = None

    @property
    def rounded(self) -> bool:
        """Whether they differ, and only by rounding."""
        return self.store != self.exact and self.gap is not None and self.gap <= ROUNDING

    @property
    def common(self) -> int:
        """Ids that stand in both."""
        return len(set(self.store) & set(self.exact))

    @property
    def words(self) -> str:
        """How they differ."""
        if self.store == self.exact:
            return "the same rows in the same order"
        rounding = ", by rounding" if self.rounded else ""
        if set(self.store) == set(self.exact):
            return f"the same rows in another order{rounding}"
        return f"{self.common} of {len(self.exact)} rows in common{rounding}"


class Exact:
    """The rows of one collection as integers, and the exact search that a window would prove."""

    def __init__(self, backend: Backend, tenant: str, metric: str, page_rows: int) -> None:
        """Read all rows.

        Args:
            backend: of stored vectors.
            tenant: whose rows.
            metric: that the store ranks by.
            page_rows: read at a time.

        Raises:
            BackendUnavailable, MalformedDocument, MalformedError: rows that a window could not
                commit to either.
        """
        documents = [row for page in backend.pages(tenant, page_rows) for row in page]
        vectors = np.array([row.vector for row in documents], dtype=np.float32)
        self.ids = tuple(row.id for row in documents)
        self._places = {name: at for at, name in enumerate(self.ids)}
        self._scorer = core.Scorer(scaled(vectors, metric, norm_bound=LARGE_B))

    def first(
        self, vector: npt.NDArray[np.float32], top_k: int, allowed: Sequence[str] | None
    ) -> tuple[str, ...]:
        """Return the ids of the best rows: by falling score, then in row order.

        Args:
            vector: of the query, float32[d].
            top_k: how many.
            allowed: ids that pass the query's filter; None for all.
        """
        scores = self._scorer.scores(quantise(vector, LARGE_B).astype(np.int16))
        if allowed is None:
            places = np.arange(len(self.ids))
        else:
            known = sorted(self._places[name] for name in allowed if name in self._places)
            places = np.array(known, dtype=np.int64)
        best = places[np.lexsort((places, -scores[places]))[:top_k]]
        return tuple(self.ids[at] for at in best)

    def gap(
        self, vector: npt.NDArray[np.float32], store: Sequence[str], exact: Sequence[str]
    ) -> float | None:
        """Return the largest difference in score between two rows that stand at the same place.

        Args:
            vector: of the query, float32[d].
            store: ids as the store returned them.
            exact: ids as `first` returned them.

        Returns:
            As a share of B², a cosine; None if there is a place that one of the
            lists lacks, or a row that was not there at the start.
        """
        if tuple(store) == tuple(exact):
            return 0.0
        if len(store) != len(exact) or not self._places.keys() >= set(store):
            return None
        scores = self._scorer.scores(quantise(vector, LARGE_B).astype(np.int16)).astype(np.int64)
        pairs = zip(store, exact, strict=True)
        steps = [abs(int(scores[self._places[a]] - scores[self._places[b]])) for a, b in pairs]
        return max(steps, default=0) / LARGE_B**2


@dataclass
class Tally:
    """What was compared, and what a prover would have refused.

    Attributes:
        rounded: answers that differ only where scores are closer than rounding can tell.
        columns: how often a filter named a column of the metadata.
        examples: the first answers that had other rows.
    """

    queries: int = 0
    same: int = 0
    reordered: int = 0
    rounded: int = 0
    in_common: int = 0
    asked_for: int = 0
    after_write: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    columns: Counter[str] = field(default_factory=Counter)
    examples: list[Compared] = field(default_factory=list)

    def add(self, compared: Compared) -> None:
        """Count a query."""
        self.queries += 1
        self.same += compared.store == compared.exact
        rows_alike = set(compared.store) == set(compared.exact)
        self.reordered += rows_alike and compared.store != compared.exact
        self.rounded += compared.rounded
        self.in_common += compared.common
        self.asked_for += len(compared.exact)
        self.after_write += compared.after_write
        if not rows_alike and len(self.examples) < _EXAMPLES:
            self.examples.append(compared)

    @property
    def so_far(self) -> str:
        """How many were compared, and how many differ."""
        return f"{self.queries} queries compared, {self.queries - self.same} differ"

    @property
    def recall(self) -> float | None:
        """The share of the exact rows that the store returned; None before any query."""
        return self.in_common / self.asked_for if self.asked_for else None

    def to_json(self) -> dict[str, Any]:
        """Return the counts; no verdict is among them, as there is none."""
        return {
            "verdict": None,
            "queries": self.queries,
            "same": self.same,
            "reordered": self.reordered,
            "other_rows": self.queries - self.same - self.reordered,
            "by_rounding": self.rounded,
            "recall": self.recall,
            "after_write": self.after_write,
            "refused": dict(self.refused),
            "filter_columns": dict(self.columns),
        }

    def lines(self) -> Iterator[str]:
        """Yield the report."""
        yield "SHADOW: the store answered. Nothing was logged, no receipt was given: no verdict."
        yield f"{self.queries} queries were compared with the exact ranking of the first rows:"
        yield f"  {self.same} with the same rows in the same order"
        yield f"  {self.reordered} with the same rows in another order"
        yield f"  {self.queries - self.same - self.reordered} with other rows"
        if self.rounded:
            yield (
                f"  {self.rounded} of those that differ do so only where scores are closer than"
                f" {ROUNDING:.1e}: rounding to integers"
            )
        if self.recall is not None:
            yield f"  {self.recall:.4f} of the exact rows were in the store's answers"
        if self.after_write:
            yield f"  {self.after_write} were asked after a write, which a window takes up later"
        for each in self.examples:
            extra = ", ".join(name for name in each.store if name not in each.exact)
            left = ", ".join(name for name in each.exact if name not in each.store)
            words = f"{extra or 'nothing'} instead of {left or 'nothing'}"
            apart = "" if each.gap is None else f" (scores {each.gap:.1e} apart)"
            yield f"  e.g. the store returned {words}{apart}"
        if self.refused:
            yield "A prover would have refused:"
            for words, number in sorted(self.refused.items()):
                yield f"  {number} x {words}"
        if self.columns:
            named = ", ".join(sorted(self.columns))
            yield f"Filters named columns that have to be declared public: {named}"


def columns_of(where: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns that a filter names.

    Args:
        where: as Chroma's clients send it.
    """
    for key, value in where.items():
        if key in {"$and", "$or"} and isinstance(value, list):
            for part in value:
                if isinstance(part, Mapping):
                    yield from columns_of(part)
        elif not key.startswith(("$", "#")):
            yield key
