"""Exact scores of all rows, and the best of them, for one question and for many that wait together.

Rows of 16 bits are those of windows without noise, where the best rows are all that is wanted; rows
of 8 bits those of windows with noise, where every score is. Beside them stands search in binary32,
which is not exact: NumPy's matrix product with a partial sort.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from ragaudit import core
from ragaudit.circuits.selection import select
from ragaudit.encoding.errors import InternalError
from ragaudit.lab.bench.harness import Measurement
from ragaudit.lab.bench.workload import Task, faiss_search, numpy_search
from ragaudit.ledger.messages.policy import LARGE_B

BEST = "exact scoring: best rows of 16 bits"
ALL = "exact scoring: all rows of 8 bits"


def scores(task: Task) -> list[Measurement]:
    """Measure the best rows and all scores, for one question and for R that wait.

    Args:
        task: workload, whose records are the questions that wait; number of runs and allowance.

    Raises:
        InternalError: the rows found are not those of all scores.
    """
    work, asked = task.work, task.work.sizes.records
    units, top_k = work.units(), work.sizes.top_k
    narrow = np.stack([work.query(number) for number in range(asked)])
    # Shortened, not rounded: no vector is longer than B.
    wide = np.trunc(units * np.float32(LARGE_B - 1)).astype(np.int16)
    directions = narrow / np.linalg.norm(narrow, axis=1, keepdims=True)
    near = np.trunc(directions * (LARGE_B - 1)).astype(np.int16)
    best, every = core.Scorer(wide), core.Scorer(work.vectors)
    for query, rows in zip(near, best.select_exactly(near, [top_k] * asked), strict=True):
        exact = wide.astype(np.int64) @ query.astype(np.int64)
        if tuple(rows.tolist()) != select(exact, top_k, keep_ties=True):
            raise InternalError("the best rows are others", where=BEST)
    one = numpy_search(work, task.runs)
    queries = narrow.T.astype(np.float32)

    def search() -> object:
        return np.argpartition(units @ queries, -top_k, axis=0)[-top_k:]

    together = task.measure(f"{one.name}, {asked} at once", search, records=asked).beside(one)
    faiss = faiss_search(work, task.runs)
    found = [one, together, *([faiss.beside(one)] if faiss else [])]
    for count in dict.fromkeys([1, asked]):
        actions: dict[str, Callable[[], object]] = {
            BEST: partial(best.select_exactly, near[:count], [top_k] * count),
            ALL: partial(every.scores_many, narrow[:count]),
        }
        for name, action in actions.items():
            measured = task.measure(f"{name}, {count} at once", action, records=count)
            found.append(measured.beside(one))
    return found
