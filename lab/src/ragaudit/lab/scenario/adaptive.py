"""A window whose questions find their thresholds: MURAG-ADA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.selection import scores
from ragaudit.lab.scenario.generating import GeneratingWindow
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.generation_terms import AdaptiveTerms
from ragaudit.privacy.mechanisms.samplers import Coins, KeyedCoins
from ragaudit.privacy.mechanisms.streams import bin_counts, running_sums

TERMS: Final = AdaptiveTerms((3500, 2500, 1500, 500), Fraction(1), 3)


@dataclass
class AdaptiveWindow(GeneratingWindow):
    """The window; its third question of acme finds rows that are used up, and reads every bin."""

    seed: int = 5  # of whose coins the first two questions stop earlier
    epsilons = ("10", "9/2")
    adaptive = TERMS

    def terms_json(self) -> dict[str, Any]:
        return {
            **super().terms_json(),
            "mechanism": "murag-ada",
            "threshold": {
                "edges": list(self.adaptive.edges),
                "epsilon": str(self.adaptive.epsilon),
                "enough": self.adaptive.enough,
            },
        }

    def read_bins(
        self, record: Record, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, tuple[int, ...]]:
        exact = scores(self.indices[record.tenant].vectors, embedding)
        rows = set(range(len(exact)) if allowed is None else allowed) & self.live(record.tenant)
        counts = bin_counts(exact[sorted(rows)], self.adaptive.edges)
        key = self.seed_commitment.open(record.slot, record.counter).key
        sums = self.count(counts, KeyedCoins(self.question_key(record, key)))
        # `is_relevant` asks for it.
        self.threshold = self.stated_threshold(sums)
        return self.threshold, sums

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        """Return the released sums: a hook for cheats."""
        noisy = running_sums(counts, self.adaptive.epsilon, self.adaptive.enough, coins)
        return tuple(int(total) for total in noisy)

    def stated_threshold(self, sums: Sequence[int]) -> int:
        """Return tau_t: a hook for cheats."""
        return self.adaptive.threshold_of(sums)
