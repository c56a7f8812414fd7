"""Inner products: a largest norm far above that of every row, so that rows become nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.statements import IndexStatement, NormOpening
from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.versions import Row

INNER_PRODUCTS: Final = {"metric": "inner-product", "largest_norm": "1"}


@dataclass
class InnerProducts(IntegrityWindow):
    """An honest window of inner products."""

    overrides: dict[str, Any] = field(default_factory=lambda: dict(INNER_PRODUCTS))


class RoundsToNothing(InnerProducts):
    """At a largest norm of 999,999,999 every row is rounded to zeros, and every score is a tie.

    The opening says so truly. Check 4 (`index-proof`) holds the norm of the longest row against the
    verifier's terms.
    """

    def completed_rows(self, rows: Sequence[Row]) -> npt.NDArray[np.int16]:
        nothing = np.zeros((len(rows), self.dimension), dtype=np.int16)
        return core.complete_rows(nothing, self.policy.squared_norm).astype(np.int16)


class OverstatesTheNorm(RoundsToNothing):
    """The same, and the opening says of a row that it is as long as any may be.

    Check 4 (`index-proof`): the argument shows what completes the row.
    """

    def show_norm(
        self,
        opening: NormOpening,
        statement: IndexStatement,
        rows: npt.NDArray[Any],
        blindings: npt.NDArray[np.uint8],
    ) -> NormOpening:
        honest = super().show_norm(opening, statement, rows, blindings)
        return replace(honest, value=1, squares=(1, 0, 0, 0), anchor=self.dimension)


_index = partial(
    ConstructedCheat, family="INTEGRITY", checks=("index-proof",),
    why="the verifier countersigns no such window",
)  # fmt: skip

CHEATS: Final = (
    _index(
        name="rows-rounded-to-nothing",
        description="States a largest norm at which every row is rounded to zeros.",
        window=RoundsToNothing, reason="most_norm_ratio",
    ),
    _index(
        name="norm-overstated",
        description="Says that a row of zeros is a long one.",
        window=OverstatesTheNorm, reason="the verification equation does not hold",
    ),
)  # fmt: skip
