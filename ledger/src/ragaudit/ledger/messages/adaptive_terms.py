"""How a question finds its threshold under MURAG-ADA (docs/spec/11-generation.md §11.8, §11.9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.ratios import read_ratio

__all__ = ["MAX_BINS", "AdaptiveTerms"]

MAX_BINS: Final = 64
_MAX_ENOUGH: Final = 2**32
_LARGEST_SCALE: Final = 2**16
"""Of the noise of a count (11.2), which is 1/eps_thr."""
_LARGEST_EPSILON: Final = 44
"""Of a count: with more there is no noise to speak of."""


@dataclass(frozen=True, slots=True)
class AdaptiveTerms:
    """Bins of scores, read from the highest down until there is enough.

    Attributes:
        edges: the lower edge of each bin, falling, 0..B², 1 to 64 of them. A bin reaches from its
            edge, which is not in it, up to the edge before, and the first one up to B². So there is
            no gap, and the rows that were counted are all those above the last edge.
        epsilon: eps_thr, of one count, 2^-16..44.
        enough: reading stops after the first released sum above it, 0..2^32.
    """

    edges: tuple[int, ...]
    epsilon: Fraction
    enough: int

    def threshold_of(self, sums: Sequence[int]) -> int:
        """Return tau_t, as the released sums of a question say.

        Args:
            sums: of the bins that were read, in their order.

        Raises:
            RejectedError: reading stopped elsewhere than after the first sum above `enough`, or
                after the last bin.
        """
        reading = [total <= self.enough for total in sums]
        last = len(self.edges)
        if not all(reading[:-1]) or len(sums) > last or (len(sums) < last and all(reading)):
            raise RejectedError(
                f"{len(sums)} bins were read",
                expected=f"up to the first sum above {self.enough}, at most {last}",
            )
        return self.edges[len(sums) - 1]

    @classmethod
    def read(cls, value: Any, where: str) -> "AdaptiveTerms":
        """Return the terms of a JSON value; MalformedPolicy."""
        f = Fields(value, "edges epsilon enough", MalformedPolicy, where)
        edges = f.integers("edges", (1, MAX_BINS), 0, SQUARED_NORM)
        if any(below >= above for above, below in pairwise(edges)):
            raise f.error("edges", "edges that do not fall", "each below the one before")
        epsilon = read_ratio(f, "epsilon", least=Fraction(1, _LARGEST_SCALE))
        if epsilon > _LARGEST_EPSILON:
            raise f.error("epsilon", "out of range", f"at most {_LARGEST_EPSILON}")
        return cls(
            edges=edges,
            epsilon=epsilon,
            enough=f.integer("enough", 0, _MAX_ENOUGH),
        )
