"""Answering one query in this process: everything but the log's durability, and its steps.

What it is compared with is exact search over the same vectors, without noise, record, receipt or
proof.
"""

import functools
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from ragaudit.lab.bench.in_process import InProcess
from ragaudit.lab.bench.measure import STEP, Measurement, summarise
from ragaudit.lab.bench.searching import faiss_int8_search, faiss_search, numpy_search
from ragaudit.lab.bench.task import Task
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Stages

__all__ = ["ANSWER", "answer"]

ANSWER = "answer one query, nothing durable"
REST = "the rest"

# Methods by the step that they belong to; none of them calls another one.
_OF_MECHANISM = {
    "embed": "embedding, by a hash",
    "quantise": "quantise and sketch",
    "sketch": "quantise and sketch",
    "draw_noise": "noise",
    "scores": "scores of the candidates",
    "select": "select and commit",
    "selection_commitment": "select and commit",
}
_OF_STAGES = {
    "query": {"admit": "admission"},
    "selected": {"documents": "documents", "commit_record": "log, not durable"},
    "logged": {"answer": "receipt"},
}
_STEPS = ("admission", *_OF_MECHANISM.values(), "documents", "log, not durable", "receipt")

T = TypeVar("T")


def answer(task: Task) -> list[Measurement]:
    """Measure answering in this process and its steps, beside exact search with NumPy and FAISS.

    The steps are timed inside the whole: their sum is the whole, but for what is called the rest.

    Args:
        task: workload, number of runs and allowance.
    """
    task.stage("NumPy")
    baseline = numpy_search(task.work, task.runs)
    task.stage("FAISS")
    libraries = [faiss_search(task.work, task.runs), faiss_int8_search(task.work, task.runs)]
    task.stage("making window and documents")
    taken: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="ragaudit-bench-") as folder:
        desk = InProcess(
            task.work,
            Path(folder),
            # One more than counts: the first warms up.
            task.runs + 1,
            mechanism=_timed(Mechanism, _OF_MECHANISM, taken),
            stages=_timed_stages(taken),
        )

        def answer_next() -> None:
            taken.append(defaultdict(float))
            begun = time.perf_counter()
            desk.answer()
            taken[-1][REST] += time.perf_counter() - begun - sum(taken[-1].values())

        whole = task.measure(ANSWER, answer_next).beside(baseline)
        desk.close()
    counted = taken[-whole.runs :]  # the first run warmed up
    steps = [
        summarise(STEP + step, [each[step] for each in counted]).beside(baseline)
        for step in dict.fromkeys([*_STEPS, REST])
    ]
    searches = [each.beside(baseline) for each in libraries if each is not None]
    return [baseline, *searches, whole, *steps]


def _timed_stages(taken: list[dict[str, float]]) -> Stages:
    """The stages of a query, each step of which is timed."""
    honest = Stages()
    timed = {
        name: _timed(getattr(honest, name), steps, taken) for name, steps in _OF_STAGES.items()
    }
    return replace(honest, **timed)


def _timed(of: type[T], steps: Mapping[str, str], taken: list[dict[str, float]]) -> type[T]:
    """A subclass that adds the seconds of every step to the last of ``taken``."""

    def around(method: Callable[..., Any], step: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def timed(*arguments: Any, **options: Any) -> Any:
            begun = time.perf_counter()
            try:
                return method(*arguments, **options)
            finally:
                taken[-1][step] += time.perf_counter() - begun

        return timed

    methods = {name: around(getattr(of, name), step) for name, step in steps.items()}
    return cast(type[T], type(f"Timed{of.__name__}", (of,), methods))
