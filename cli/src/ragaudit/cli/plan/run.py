"""A whole plan: budget, simulation on an index, costs of recalls, verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.planning.budget import (
    Budget,
    Price,
    Targets,
    budget,
    price_of_account,
    price_of_coalition,
)
from ragaudit.privacy.planning.retrieval import (
    Interval,
    RecallCost,
    Simulation,
    Verdict,
    cost_of_recall,
    judge,
    mean_interval,
)

if TYPE_CHECKING:
    from ragaudit.cli.plan.collection import Collection

SIGMAS = (
    "0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10",
)  # fmt: skip
"""Simulated beside the planned sigma: from nearly noise-free to random."""


@dataclass(frozen=True)
class Trial:
    """The terms of a simulation.

    Attributes:
        index, questions, tenant: as in `collection.load`.
        top_k: K.
        trials: draws of noise for every question and sigma.
        seed: makes the draws repeatable.
        recalls: wanted recalls whose cost is looked up, each above 0 and at most 1.

    Raises:
        MalformedError: a number out of range; ``where`` is its name as an option.
    """

    index: Path | None = None
    questions: Path | None = None
    tenant: str | None = None
    top_k: int = 5
    trials: int = 3
    seed: str = "0"
    recalls: tuple[float, ...] = (0.5, 0.8, 0.9, 0.95)

    def __post_init__(self) -> None:
        for name, value, most in (("top_k", self.top_k, 1000), ("trials", self.trials, 10**6)):
            if isinstance(value, bool) or not 1 <= value <= most:
                raise MalformedError(f"{name} is {value}", where=name, expected=f"1 to {most}")
        for recall in self.recalls:
            if not 0 < recall <= 1:
                raise MalformedError(
                    f"recall is {recall}", where="recall", expected="above 0, at most 1"
                )


@dataclass(frozen=True)
class IndexSummary:
    """An index that was tried.

    Attributes:
        name: for messages.
        rows: N.
        dimension: d.
        questions: how many were asked.
        question_source: where they are from.
    """

    name: str
    rows: int
    dimension: int
    questions: int
    question_source: str


@dataclass(frozen=True)
class RetrievalPlan:
    """What the noise does to retrieval.

    Attributes:
        left_out: tenants that were not tried, and their rows, at most K.
        by_index: index -> its recall at every point of the simulation.
        quantised: recall@K of the integer vectors without noise against the real ones.
        prices: sigma -> (one account's, the coalition's over all windows), for every simulated
            sigma.
        blind: the largest K/N of the indexes, from which ceilings of recall are computed.
        costs: one for each wanted recall.
        trial: the request.
        indexes: what was tried.
        simulation: its results.
    """

    trial: Trial
    indexes: tuple[IndexSummary, ...]
    left_out: dict[str, int]
    simulation: Simulation
    by_index: dict[str, tuple[Interval, ...]]
    quantised: Interval
    prices: dict[str, tuple[Price, Price]]
    blind: Fraction
    costs: tuple[RecallCost, ...]


@dataclass(frozen=True)
class Plan:
    """The whole output of `ragaudit plan`.

    Attributes:
        budget: sigma and what it promises.
        retrieval: None without a simulation.
        verdict: on both.
    """

    budget: Budget
    retrieval: RetrievalPlan | None
    verdict: Verdict


class Watcher(Protocol):
    """Receives the progress of the simulation."""

    def stage(self, what: str) -> object:
        """Begin something of unknown length.

        Args:
            what: a participle with its object, as "drawing".
        """

    def asked(self, done: int, total: int) -> object:
        """Take note that so many questions of the simulation are done.

        Args:
            done, total: questions of all indexes together.
        """


def make_plan(targets: Targets, sigma: str | None, trial: Trial | None, watcher: Watcher) -> Plan:
    """Return the plan.

    Args:
        targets: the terms.
        sigma: price this one instead of calibrating.
        trial: None for no simulation.
        watcher: receives the progress.

    Raises:
        MalformedError: a bad value or file; ``where`` is the argument's name.
        RefusedError: no sigma keeps the promise.
    """
    plan = budget(targets, sigma)
    retrieval = None if trial is None else _try(plan, trial, watcher)
    simulation = None if retrieval is None else retrieval.simulation
    return Plan(plan, retrieval, judge(plan, simulation))


def _try(plan: Budget, trial: Trial, watcher: Watcher) -> RetrievalPlan:
    # Imported here: numpy, the compiled core and the embedder, for a simulation only.
    from ragaudit.circuits.selection import select  # noqa: PLC0415
    from ragaudit.cli.plan.collection import (  # noqa: PLC0415
        load,
        noise_of,
        quantised_recall,
        scored,
    )
    from ragaudit.privacy.planning.retrieval import simulate  # noqa: PLC0415

    loaded = load(trial.index, trial.questions, trial.tenant, trial.top_k, watcher.stage)
    collections = loaded.collections
    total = sum(len(collection.questions) for collection in collections)
    sigmas = _with(SIGMAS, plan.sigma)
    simulation = simulate(
        scored(collections),
        noise_of(sigmas, trial.seed),
        select,
        top_k=trial.top_k,
        trials=trial.trials,
        progress=lambda done: watcher.asked(done, total),
    )
    targets = plan.targets
    return RetrievalPlan(
        trial,
        tuple(_summary(collection) for collection in collections),
        loaded.left_out,
        simulation,
        _by_index(collections, simulation),
        quantised_recall(collections, trial.top_k),
        {
            sigma: (
                price_of_account(targets, sigma),
                price_of_coalition(targets, sigma, windows=targets.windows),
            )
            for sigma in sigmas
        },
        # The largest: a ceiling must not be too low for any of the indexes.
        max(Fraction(trial.top_k, len(collection.rows)) for collection in collections),
        tuple(cost_of_recall(simulation, targets, recall) for recall in trial.recalls),
    )


def _summary(index: "Collection") -> IndexSummary:
    rows, dimension = index.rows.shape
    return IndexSummary(index.name, rows, dimension, len(index.questions), index.question_source)


def _by_index(
    collections: Sequence["Collection"], simulation: Simulation
) -> dict[str, tuple[Interval, ...]]:
    """Return each collection's own recall at every point; its questions follow one another."""
    import numpy as np  # noqa: PLC0415 - for a simulation only

    recalls = {}
    first = 0
    for collection in collections:
        own = slice(first, first + len(collection.questions))
        recalls[collection.name] = tuple(
            mean_interval(np.array(point.by_question[own]), highest=1.0)
            for point in simulation.points
        )
        first = own.stop
    return recalls


def _with(sigmas: Sequence[str], planned: str) -> list[str]:
    # By value: 0.1 and 0.10 are one sigma, and would be simulated twice.
    others = [sigma for sigma in sigmas if Fraction(sigma) != Fraction(planned)]
    return sorted([*others, planned], key=Fraction)
