"""Checks charges and replay under MURAG-ADA: thresholds and sums that are not what was counted."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.selection import scores
from ragaudit.lab.attacks.cheats.generation import constructed
from ragaudit.lab.scenario.adaptive import AdaptiveWindow
from ragaudit.privacy.mechanisms.samplers import Coins


class ReleasesExactCounts(AdaptiveWindow):
    """The second question's sums have no noise, and the threshold is as they say.

    Check 30 (`replay`): the noise is that of the coins.
    """

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        if not self.lies:
            return super().count(counts, coins)
        sums = list(accumulate(counts))
        read = sum(total <= self.adaptive.enough for total in sums)
        return tuple(sums[: read + 1])

    @property
    def lies(self) -> bool:
        """Whether the next charge entry is the one that lies."""
        return len(self.charged) == 1


class ReleasesExactCountsOfAVoid(ReleasesExactCounts):
    """The question whose sums have no noise gets no answer.

    Check 30 (`replay`): sums are released whatever becomes of the answer.
    """

    @property
    def lies(self) -> bool:
        return len(self.charged) == 2


class RepeatsTheSums(AdaptiveWindow):
    """The second question has the sums of the first one, which was alike.

    Check 30 (`replay`): each question has coins of its own.
    """

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        return (
            self.charged[0].charge.sums if len(self.charged) == 1 else super().count(counts, coins)
        )


class StopsABinEarly(AdaptiveWindow):
    """The first question reads a bin less than its sums ask for, and saves these documents.

    Check 27 (`charges`): where reading stops is a function of the sums.
    """

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        honest = super().count(counts, coins)
        return honest if self.charged else honest[:-1]

    def stated_threshold(self, sums: Sequence[int]) -> int:
        return self.adaptive.edges[len(sums) - 1]


class StopsABinLate(AdaptiveWindow):
    """The first question reads a bin more than its sums ask for, and drains these documents.

    Check 27 (`charges`).
    """

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        honest = super().count(counts, coins)
        if self.charged:
            return honest
        more = honest[-1] + counts[len(honest)] + int(coins.laplace(1 / self.adaptive.epsilon))
        return (*honest, more)

    def stated_threshold(self, sums: Sequence[int]) -> int:
        return self.adaptive.edges[len(sums) - 1]


class StatesAnotherThreshold(AdaptiveWindow):
    """The first question charges documents of a bin that was not read.

    Check 27 (`charges`): tau_t is the lower edge of the last bin that was read.
    """

    def stated_threshold(self, sums: Sequence[int]) -> int:
        below = 0 if self.charged else 1
        return self.adaptive.edges[len(sums) - 1 + below]


class LeavesACountedRowUncharged(AdaptiveWindow):
    """A document is counted and does not pay, so that it answers longer than others.

    Check 27 (`charges`): every live document above the threshold pays.
    """

    def due_rows(
        self, tenant: str, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, ...]:
        due = super().due_rows(tenant, embedding, allowed)
        exact = scores(self.indices[tenant].vectors, embedding)
        best = max(due, key=lambda i: int(exact[i]), default=None)
        return due if self.charged else tuple(i for i in due if i != best)


CHEATS: Final = (
    constructed(
        name="counts-without-noise",
        description="Releases exact counts as sums.",
        window=ReleasesExactCounts,
        checks=("replay",),
        reason="rows and coins give other sums",
        slow=False,
    ),
    constructed(
        name="counts-of-a-void-without-noise",
        description="Releases exact counts of a question, and voids it.",
        window=ReleasesExactCountsOfAVoid,
        checks=("replay",),
        reason="rows and coins give other sums",
    ),
    constructed(
        name="sums-of-another-question",
        description="Releases the sums of the question before.",
        window=RepeatsTheSums,
        checks=("replay",),
        reason="rows and coins give other sums",
    ),
    constructed(
        name="reading-stopped-early",
        description="Stops counting although the sum is not above what is enough.",
        window=StopsABinEarly,
        checks=("charges",),
        reason="bins were read",
    ),
    constructed(
        name="reading-stopped-late",
        description="Counts on although the sum is above what is enough.",
        window=StopsABinLate,
        checks=("charges",),
        reason="bins were read",
    ),
    constructed(
        name="threshold-of-another-bin",
        description="Charges documents down to a bin that was not read.",
        window=StatesAnotherThreshold,
        checks=("charges",),
        reason="as the released sums say",
    ),
    constructed(
        name="counted-document-uncharged",
        description="Counts a document, and leaves it out of the charge.",
        window=LeavesACountedRowUncharged,
        checks=("charges",),
        reason="charge entry",
    ),
)
