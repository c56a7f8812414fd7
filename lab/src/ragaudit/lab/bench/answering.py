"""Answering one query in this process: everything but the log's durability, and its steps.

What it is compared with is exact search over the same vectors, without noise, record, receipt or
proof.
"""

import functools
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ragaudit.lab.bench.in_process import InProcess
from ragaudit.lab.bench.measure import STEP, Measurement, summarise
from ragaudit.lab.bench.scenario import Task
from ragaudit.lab.bench.searching import faiss_int8_search, faiss_search, numpy_search
from ragaudit.prover.answering.answering import Answering

__all__ = ["ANSWER", "answer"]

ANSWER = "answer one query, nothing durable"
REST = "the rest"

# Methods of `Answering` by the step that they belong to; none of them calls another one.
_STEPS = {
    "admit": "admission",
    "embed": "embedding, by a hash",
    "quantise": "quantise and sketch",
    "sketch": "quantise and sketch",
    "draw_noise": "noise",
    "scores": "scores of the candidates",
    "select": "select and commit",
    "selection_commitment": "select and commit",
    "served_documents": "documents",
    "_commit": "log, not durable",
    "respond": "receipt",
}


def answer(task: Task) -> list[Measurement]:
    """Answering in this process with its steps, beside exact search with NumPy and FAISS."""
    task.stage("NumPy")
    baseline = numpy_search(task.work, task.runs)
    task.stage("FAISS")
    libraries = [faiss_search(task.work, task.runs), faiss_int8_search(task.work, task.runs)]
    task.stage("making window and documents")
    taken: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="ragaudit-bench-") as folder:
        desk = InProcess(task.work, Path(folder), task.runs + 1, _timed(taken))

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
        for step in dict.fromkeys([*_STEPS.values(), REST])
    ]
    searches = [each.beside(baseline) for each in libraries if each is not None]
    return [baseline, *searches, whole, *steps]


def _timed(taken: list[dict[str, float]]) -> type[Answering]:
    """`Answering` that adds the seconds of every step to the last of ``taken``."""

    def around(method: Callable[..., Any], step: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def timed(*arguments: Any, **options: Any) -> Any:
            begun = time.perf_counter()
            try:
                return method(*arguments, **options)
            finally:
                taken[-1][step] += time.perf_counter() - begun

        return timed

    methods = {name: around(getattr(Answering, name), step) for name, step in _STEPS.items()}
    return cast(type[Answering], type("TimedAnswering", (Answering,), methods))
