"""Windows without noise, with all services: one component of the prover is not the honest one."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.parameters import B
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.lab.attacks.cheats.disputes import RewritesContent
from ragaudit.lab.attacks.cheats.embedding import OtherTenant
from ragaudit.lab.scenario.exact import ExactScenario
from ragaudit.ledger.messages.requests import Answer
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Logged, Stages

Scores = npt.NDArray[np.int64]


class PassesTheBestOver(Mechanism):
    """The nearest row is never selected.

    Check 19 (`selection`): T holds every row that is tied with the K-th or better.
    """

    def select_exactly(
        self, exact: Scores, top_k: int, allowed: Sequence[int] | None = None
    ) -> tuple[int, ...]:
        rows = range(len(exact)) if allowed is None else allowed
        best = max(rows, key=lambda i: int(exact[i]))
        return super().select_exactly(exact, top_k, [i for i in rows if i != best])


class IgnoresFilters(Mechanism):
    """Every row passes every filter.

    Check 19 (`selection`) is about the rows that pass the record's filter.
    """

    def select_exactly(
        self, exact: Scores, top_k: int, allowed: Sequence[int] | None = None
    ) -> tuple[int, ...]:
        return super().select_exactly(exact, top_k)


class CutsVectors(Mechanism):
    """Entries of vectors are cut off where the rule is to round them.

    Check 18 (`embedding`) quantises what was asked again.
    """

    def quantise(
        self, vector: npt.NDArray[np.float32], norm_bound: int = B
    ) -> npt.NDArray[np.int16]:
        honest = super().quantise(vector, norm_bound)
        scale = np.linalg.norm(honest.astype(np.float64)) / np.linalg.norm(vector)
        return np.trunc(scale * vector.astype(np.float64)).astype(np.int16)


class FlattersAScore(Logged):
    """The best score of each answer is one higher than it is.

    Check 15 (`disputes`): the account computes scores from the rows that it was served.
    """

    def answer_documents(self) -> Answer:
        best, *others = super().answer_documents().documents
        assert best.score is not None
        return Answer((replace(best, score=best.score + 1), *others))


exact = partial(ServiceCheat, family="INTEGRITY", scenario=ExactScenario)

CHEATS: Final = (
    exact(
        name="best-row-passed-over",
        description="Never selects the nearest row, in a service without noise.",
        parts={"mechanism": PassesTheBestOver},
        checks=("selection",), reason="selection argument does not hold",
    ),
    exact(
        name="filters-ignored",
        description="Answers whoever filters from all rows.",
        parts={"mechanism": IgnoresFilters},
        checks=("selection",), reason="selection argument does not hold",
        complaint="does not pass the filter",
    ),
    exact(
        name="vectors-cut",
        description="Cuts entries of query vectors off instead of rounding them.",
        parts={"mechanism": CutsVectors},
        checks=("embedding",), reason="vector", complaint="embedding",
    ),
    exact(
        name="score-flattered",
        description="States a better score than the best row has.",
        parts={"stages": Stages(logged=FlattersAScore)}, disputes=True,
        checks=("disputes",), reason="upheld by the arbiter: step 8", complaint="score",
    ),
    exact(
        name="exact-and-edited",
        description="Serves other content than was committed to, without noise.",
        parts={"stages": Stages(selected=RewritesContent)}, disputes=True,
        checks=("disputes",), reason="upheld by the arbiter: step 8",
        complaint="step 8 (commitments)",
    ),
    exact(
        name="exact-and-another-tenants",
        description="Answers accounts of one tenant exactly, from another one's index.",
        parts={"stages": Stages(query=OtherTenant)},
        checks=("containment",), reason="tenant beta", complaint="tenant",
    ),
)  # fmt: skip
