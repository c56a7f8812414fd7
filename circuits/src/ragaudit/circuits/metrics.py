"""The vectors of a store as rows of an index: one integer form for each metric (spec 2.5).

An index ranks by inner products of integers, best first. A metric is served where that is the
ranking of the store: cosine always, inner products at one scale for all rows, Euclidean distance
where all rows have one length. Anything else is refused.
"""

from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import IntegerRows, quantise_rows, row_type
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import B

__all__ = ["COSINE", "INNER_PRODUCT", "L2", "METRICS", "UNIT_TOLERANCE", "scaled"]

COSINE: Final = "cosine"
INNER_PRODUCT: Final = "inner-product"
L2: Final = "l2"
METRICS: Final = (COSINE, INNER_PRODUCT, L2)

UNIT_TOLERANCE: Final = 5e-4
"""Of a length from 1: 2^-11, within which normalised binary16 entries (halfvec) stay."""

_BLOCK_ROWS = 4096


def scaled(
    vectors: npt.NDArray[Any],
    metric: str,
    largest_norm: Decimal | None = None,
    norm_bound: int = B,
) -> IntegerRows:
    """Return the integer rows [N, d] of a store's vectors, every norm at most ``norm_bound``.

    For cosine and l2 each row is
    `quantise.quantise` of its vector. For inner products all rows have the scale
    ``norm_bound / largest_norm``, so that longer vectors keep their advantage; a row that rounding
    would lift above the bound is quantised by itself, and one far below a unit becomes zero.

    Args:
        vectors: real numbers [N, d], as the store returned them.
        metric: one of `METRICS`, the policy's.
        largest_norm: of the policy, positive; for inner products only.
        norm_bound: B of the policy, 127 or 4095.

    Raises:
        MalformedError: unknown metric, NaN or infinity; for inner products a norm above
            ``largest_norm``, for cosine a vector without direction, for l2 a vector that is not
            of unit length; ``where`` names the first bad row.
    """
    if metric not in METRICS:
        raise MalformedError(f"unknown metric {metric!r}", expected=", ".join(METRICS))
    if (largest_norm is None) == (metric == INNER_PRODUCT):
        raise MalformedError(
            "wrong largest norm", where="largest_norm", expected="one for inner products, else none"
        )
    if largest_norm is not None:
        return _at_one_scale(vectors, largest_norm, norm_bound)
    if metric == L2:
        _check_unit(vectors)
    return quantise_rows(vectors, norm_bound)


def _check_unit(vectors: npt.NDArray[Any]) -> None:
    norms = _norms(vectors)
    _refuse(
        vectors,
        # Written so that a NaN is off as well.
        ~(np.abs(norms - 1) <= UNIT_TOLERANCE),
        norms,
        f"norm 1 within {UNIT_TOLERANCE}: l2 ranks other vectors otherwise than cosine",
    )


def _at_one_scale(vectors: npt.NDArray[Any], largest_norm: Decimal, norm_bound: int) -> IntegerRows:
    if not largest_norm.is_finite() or largest_norm <= 0:
        raise MalformedError("not a norm", where="largest_norm", expected="a positive number")
    most = float(largest_norm)
    norms = _norms(vectors)
    # One unit in the last place of binary32: a store returns unit vectors a little too long.
    _refuse(
        vectors,
        ~(norms <= most * (1 + 2**-23)),
        norms,
        f"at most {largest_norm}, the policy's largest norm",
    )
    result: npt.NDArray[Any] = np.empty(vectors.shape, dtype=row_type(norm_bound))
    for start in range(0, len(vectors), _BLOCK_ROWS):
        block = vectors[start : start + _BLOCK_ROWS].astype(np.float64) * (norm_bound / most)
        # Halves toward zero, as in quantisation.
        rounded = np.copysign(np.ceil(np.abs(block) - 0.5), block)
        long = np.einsum("ij,ij->i", rounded, rounded) > norm_bound * norm_bound
        result[start : start + len(block)] = np.where(long[:, np.newaxis], 0, rounded)
        for row in np.flatnonzero(long):
            result[start + row] = quantise_rows(block[row : row + 1], norm_bound)[0]
    return result


def _norms(vectors: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return float64[N]; NaN or infinity where an entry is."""
    if vectors.ndim != 2:
        raise MalformedError(f"vectors have shape {vectors.shape}", expected="[N, d]")
    norms = np.empty(len(vectors), dtype=np.float64)
    for start in range(0, len(vectors), _BLOCK_ROWS):
        block = vectors[start : start + _BLOCK_ROWS].astype(np.float64)
        norms[start : start + len(block)] = np.sqrt(np.einsum("ij,ij->i", block, block))
    return norms


def _refuse(
    vectors: npt.NDArray[Any],
    bad: npt.NDArray[np.bool_],
    norms: npt.NDArray[np.float64],
    expected: str,
) -> None:
    if not np.any(bad):
        return
    row = int(np.argmax(bad))
    finite = bool(np.all(np.isfinite(vectors[row])))
    what = f"vector of norm {norms[row]:.6g}" if finite else "NaN or infinity"
    raise MalformedError(what, where=f"row {row}", expected=expected)
