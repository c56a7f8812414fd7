"""Accounts that asked near-identical things near in time."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from ragaudit.core import _core
from ragaudit.core._arrays import array_bytes, integer

__all__ = ["link_accounts"]


def link_accounts(
    accounts: npt.NDArray[np.int64],
    times: npt.NDArray[np.int64],
    anchored: npt.NDArray[np.uint8],
    sketches: npt.NDArray[np.uint8],
    *,
    tau: int,
    life: int,
    threshold: int,
    progress: Callable[[float], bool | None] | None = None,
    part: tuple[int, int] | None = None,
) -> npt.NDArray[np.int64]:
    """Return the smallest account of each account's component (docs/spec/07-coalition.md §7.2).

    Two accounts are joined if some record of one and some record of the other have times at most
    ``tau`` apart, ``tau + life`` where one of them is anchored, and sketches at most ``threshold``
    bits apart. Every such pair is compared: the time is quadratic in the records that are near in
    time, the memory some 200 bytes a record.

    Args:
        accounts: int64[n], numbers from 0 on, below 2^32 - 1.
        times: int64[n], milliseconds, rising.
        anchored: uint8[n], 0 or 1: whether the time is that of a promise.
        sketches: uint8[n, bytes], 1 to 64 bytes each.
        tau, life: milliseconds, below 2^63.
        threshold: bits, below 2^32.
        progress: as everywhere in `ragaudit.core`.
        part: where the records begin and end whose pairs with later ones are compared; all of them
            if not said. Components of parts that cover all records make those of all pairs.

    Returns:
        int64[accounts], as many as the greatest number and one.

    Raises:
        MalformedInput: another type, shape or range, a part of other records, or times that fall.
        Cancelled: ``progress`` returned False.
    """
    records = (
        array_bytes(accounts, "accounts", [np.int64], 1),
        array_bytes(times, "times", [np.int64], 1),
        array_bytes(anchored, "anchored", [np.uint8], 1),
        array_bytes(sketches, "sketches", [np.uint8], 2),
    )
    count = integer(int(accounts.max(initial=-1)) + 1, "accounts", 32)
    near = (integer(tau, "tau", 63), integer(life, "life", 63), integer(threshold, "threshold", 32))
    among = () if part is None else ((integer(part[0], "part", 63), integer(part[1], "part", 63)),)
    labels = _core.link_accounts(records, sketches.shape[1], count, near, progress, *among)
    return np.frombuffer(labels, dtype="<i8").astype(np.int64, copy=False)
