"""Groups of accounts by single linkage: at which levels they form, and how large they are."""

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import linkage

__all__ = ["group_level", "group_sizes"]

Floats = npt.NDArray[np.float64]


def group_sizes(alike: npt.NDArray[np.floating], levels: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the size of the largest group at each level, int64[levels].

    Two accounts are linked at every level up to how alike they are; a group is what links join.

    Args:
        alike: float[A, A], symmetric, at least two accounts.
        levels: in any order.
    """
    formed, sizes = _merges(alike)
    joins = np.searchsorted(-formed, -np.asarray(levels, dtype=float), side="right")
    return np.concatenate([[1], sizes])[joins]


def group_level(alike: npt.NDArray[np.floating], size: int) -> float:
    """Return the largest level at which a group has so many accounts.

    Args:
        alike: as of `group_sizes`.
        size: 2 to A.
    """
    formed, sizes = _merges(alike)
    return float(formed[np.searchsorted(sizes, size)])


def _merges(alike: npt.NDArray[np.floating]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The levels at which groups merge, falling, and the largest size by then."""
    tree = linkage(-alike[np.triu_indices(len(alike), 1)].astype(float), "single")
    return -tree[:, 2], np.maximum.accumulate(tree[:, 3].astype(np.int64))
