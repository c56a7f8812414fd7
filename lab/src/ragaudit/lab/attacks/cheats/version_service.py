"""Windows without noise whose documents change, with all services: one component is not honest."""

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.embedders.base import Embedder
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.lab.scenario.exact import ChangingScenario
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Selected, Stages
from ragaudit.prover.index.committed import CommittedIndex
from ragaudit.prover.window.records import Delivery


class ScoresAStaleVersion(Mechanism):
    """The rows that are scored are those of the first version, whatever came into force since.

    Check 19 (`selection`) is about the version that the record names.
    """

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._first: dict[str, CommittedIndex] = {}

    def scores(
        self,
        index: CommittedIndex,
        embedding: npt.NDArray[np.int16],
        rows: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.int64]:
        first = self._first.setdefault(index.tenant, index)
        # What is served is scored rightly: the account checks that.
        return super().scores(first if rows is None else index, embedding, rows)


class DeliversLess(Selected):
    """The last row of an answer is left out, and not named as withdrawn.

    Check 15 (`disputes`): what is served and what is withdrawn are together the first K of T.
    """

    def delivered(self) -> Delivery:
        honest = super().delivered()
        # Where rows tie, no opening of the others could be proven.
        tied = len(self.opened.selected) > self.record.top_k
        return honest if tied else replace(honest, rows=honest.rows[:-1])


changing = partial(ServiceCheat, family="VERSION", scenario=ChangingScenario)

CHEATS: Final = (
    changing(
        name="stale-version-scored",
        description="Scores the first version of an index when another is in force.",
        parts={"mechanism": ScoresAStaleVersion},
        checks=("selection",), reason="selection argument does not hold",
    ),
    changing(
        name="fewer-rows-delivered",
        description="Leaves out a row, and does not say that it is withdrawn.",
        parts={"stages": Stages(selected=DeliversLess)}, disputes=True,
        checks=("disputes",), reason="upheld by the arbiter: step 7", complaint="step 7 (rows)",
    ),
)  # fmt: skip
