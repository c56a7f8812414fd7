"""Exact search without noise, record or proof: what answering is compared with."""

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from ragaudit.lab.bench.measure import Measurement, measure
from ragaudit.lab.bench.workload import Workload

__all__ = ["faiss_int8_search", "faiss_search", "numpy_search"]

_BLOCK_ROWS = 8192

NUMPY = "NumPy exact search, bare"
FAISS = "FAISS exact search, bare"
FAISS_INT8 = "FAISS int8 search, bare"


def numpy_search(work: Workload, runs: int) -> Measurement:
    """Measure the K nearest rows in float32: a matrix product and a partial sort.

    Args:
        work: index and query.
        runs: under the clock, at most.
    """
    units, top_k = work.units(), work.sizes.top_k
    query = work.query().astype(np.float32)

    def search() -> object:
        similarity = units @ query
        return np.argpartition(similarity, -top_k)[-top_k:]

    return measure(NUMPY, search, runs)


def faiss_search(work: Workload, runs: int) -> Measurement | None:
    """Measure the same with FAISS's flat inner-product index.

    Args:
        work, runs: as of `numpy_search`.

    Returns:
        The measurement; None where FAISS is not installed.
    """
    if find_spec("faiss") is None:
        return None
    return measure(FAISS, _faiss(work), runs)


def faiss_int8_search(work: Workload, runs: int) -> Measurement | None:
    """Measure FAISS over the very int8 vectors that answering scores, a quarter of float32's bytes.

    Args:
        work, runs: as of `numpy_search`.

    Returns:
        The measurement; None where FAISS is not installed.
    """
    if find_spec("faiss") is None:
        return None
    import faiss  # noqa: PLC0415 - optional

    kind = faiss.ScalarQuantizer.QT_8bit_direct_signed
    index = faiss.IndexScalarQuantizer(work.sizes.dimension, kind, faiss.METRIC_INNER_PRODUCT)
    for start in range(0, work.sizes.rows, _BLOCK_ROWS):
        index.add(work.vectors[start : start + _BLOCK_ROWS].astype(np.float32))
    query = work.query().astype(np.float32)[np.newaxis]
    return measure(FAISS_INT8, lambda: index.search(query, work.sizes.top_k), runs)


def _faiss(work: Workload) -> Callable[[], object]:
    import faiss  # noqa: PLC0415 - optional

    index = faiss.IndexFlatIP(work.sizes.dimension)
    index.add(work.units())
    query = work.query().astype(np.float32)[np.newaxis]
    return lambda: index.search(query, work.sizes.top_k)
