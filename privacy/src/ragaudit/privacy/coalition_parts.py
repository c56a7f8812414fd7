"""A coalition estimate by parts: whose pairs each compares, and what all of them join."""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

__all__ = ["join_links", "parts_of"]

# A sum with any time that is estimated with fits 64 bits.
_FURTHEST = 2**62 - 1


def parts_of(times: npt.NDArray[np.int64], reach: int, pairs: int) -> list[tuple[int, int]]:
    """Return parts of records, none of them empty, for about as many comparisons each.

    Args:
        times: int64[n], milliseconds, rising.
        reach: the most that two records are apart that are compared, milliseconds.
        pairs: of a part, at least 1; a single record may have more.
    """
    count = len(times)
    latest = np.searchsorted(times, times + min(reach, _FURTHEST), "right")
    compared = np.cumsum(latest - np.arange(count) - 1)
    total = int(compared[-1]) if count else 0
    ends = np.searchsorted(compared, np.arange(pairs, total, pairs)) + 1
    edges = np.unique(np.concatenate([[0], ends, [count]])).tolist()
    return list(pairwise(edges))


def join_links(
    count: int, links: Iterable[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
) -> npt.NDArray[np.int64]:
    """Return int64[count]: for each account the smallest one of its component.

    Args:
        count: of accounts, which are numbered from 0 on.
        links: accounts that are of one component, pair by pair.
    """
    labels = np.arange(count)
    for pairs in links:
        ends = np.stack(pairs)
        while True:
            found = labels[ends]
            apart = found[0] != found[1]
            if not apart.any():
                break
            ends, found = ends[:, apart], found[:, apart]
            # Each component goes under the smallest that it is linked with, all at once.
            parents = np.arange(count)
            np.minimum.at(parents, found.max(axis=0), found.min(axis=0))
            while not np.array_equal(above := parents[parents], parents):
                parents = above
            labels = parents[labels]
    return labels
