"""What answering does for all rows: noise, exact scores, and who of them pays."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from ragaudit.core import _core
from ragaudit.core._arrays import ENTRIES, Rows, array_bytes, exact_bytes, integer

__all__ = ["Scorer", "commit_marked", "sample_noise"]


def sample_noise(
    thresholds: bytes, factor: int, levels: int, key: bytes, count: int
) -> npt.NDArray[np.int64]:
    """Return int64[count]: discrete Gaussian noise under `key` (docs/spec/03-noise.md §3.4).

    Args:
        thresholds: the table's 2w thresholds, 16 bytes little endian each, rising.
        factor: K of the convolution.
        levels: L, 0 for a direct table.
        key: 32 bytes.
        count: at most 2^38 bytes of key stream, 16 (L + 1) per sample.

    Raises:
        MalformedInput: another type, length or range.
    """
    sampler = _sampler(
        exact_bytes(thresholds, "thresholds"),
        integer(factor, "factor"),
        integer(levels, "levels", 32),
    )
    data = sampler.sample(exact_bytes(key, "key", 32), integer(count, "count"))
    return np.frombuffer(data, dtype="<i8").astype(np.int64, copy=False)


class Scorer:
    """Exact scores of all rows of an index, whose vectors it keeps.

    The same as ragaudit.circuits.selection.scores, several times as fast.
    """

    def __init__(self, vectors: Rows) -> None:
        """Copy the vectors, int8[N, d] or int16[N, d].

        Raises:
            MalformedInput: another type or shape, or an int16 row of squared norm 2^24 or more.
        """
        data = array_bytes(vectors, "vectors", ENTRIES, 2)
        # A copy: the caller may write to its array between two queries.
        self._rows = _core.ScoredRows(data, vectors.dtype.itemsize, vectors.shape[1])

    def scores(self, query: npt.NDArray[np.int16]) -> npt.NDArray[np.int64]:
        """Return int64[N]: the inner products of all rows with the query.

        Args:
            query: int16[d]; for int8 rows with 128 sum |e_j| < 2^31 (norm at most 127 and d <= 4096
                give less than 2^20), for int16 rows with a squared norm below 2^24.

        Raises:
            MalformedInput: another type, length or size.
        """
        data = array_bytes(query, "query", [np.int16], 1)
        scores = np.frombuffer(self._rows.scores(data), dtype="<i8")
        return scores.astype(np.int64, copy=False)


@lru_cache(maxsize=16)
def _sampler(thresholds: bytes, factor: int, levels: int) -> _core.NoiseSampler:
    """Return the sampler of a table, which is public; making one takes longer than a short draw."""
    return _core.NoiseSampler(thresholds, factor, levels)


def commit_marked(marks: npt.NDArray[np.bool_], blinding: bytes) -> bytes:
    """Return the sum of A_i over the marked rows + blinding H, 32 bytes, as `commit_selection`.

    It takes a time that depends on the number of rows only, and not on that of marks. The first
    call for so many rows takes seconds, and keeps at most 57 MB of tables.

    Args:
        marks: bool[N], whether a row is one of them, N <= 2^32.
        blinding: a canonical scalar, 32 bytes.

    Raises:
        MalformedInput: another type or shape, or a scalar that is not canonical.
    """
    secret = exact_bytes(blinding, "blinding", 32)
    return _core.commit_marked(array_bytes(marks, "marks", [np.bool_], 1).tobytes(), secret)
