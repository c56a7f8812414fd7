"""Reports of the local mechanisms, drawn as the mechanisms define them.

All randomness comes from the generator that is passed in. These samplers use floating point: they
are for simulations and audits, never for the protection of real data.
"""

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.mechanisms import (
    grr_probabilities,
    oue_probabilities,
    ss_probability,
)
from ragaudit.lab.risk.typed import typed
from ragaudit.lab.risk.validation import IntegerArray, check_integer, integer_array

__all__ = ["randomized_response", "subset_selection", "unary_encoding"]

LARGEST_REPORTS = 2**28
"""Most bits of all reports of one call."""

BoolArray = npt.NDArray[np.bool_]


@typed
def randomized_response(
    targets: IntegerArray, records: int, epsilon: float, generator: np.random.Generator
) -> IntegerArray:
    """Draw reports of generalized randomized response: one record per target, shape (n,).

    Args:
        targets: shape (n,), the true records.
        records: m >= 2.
        epsilon: >= 0.
        generator: of all randomness.
    """
    keep, _ = grr_probabilities(records, epsilon)
    true = _targets(targets, records)
    kept = generator.random(len(true)) < keep
    others = generator.integers(0, records - 1, len(true))
    return np.asarray(np.where(kept, true, others + (others >= true)), dtype=np.int64)


@typed
def unary_encoding(
    targets: IntegerArray, records: int, epsilon: float, generator: np.random.Generator
) -> BoolArray:
    """Draw reports of optimal unary encoding: one vector of bits per target, shape (n, records).

    Args:
        targets, records, epsilon, generator: as of :func:`randomized_response`.

    Raises:
        InvalidArgumentError: a value out of its range, or more than `LARGEST_REPORTS` bits.
    """
    at_target, elsewhere = oue_probabilities(epsilon)
    true = _targets(targets, records, cells=records)
    bits = generator.random((len(true), records)) < elsewhere
    bits[np.arange(len(true)), true] = generator.random(len(true)) < at_target
    return np.asarray(bits)


@typed
def subset_selection(
    targets: IntegerArray, records: int, epsilon: float, subset: int, generator: np.random.Generator
) -> BoolArray:
    """Draw reports of subset selection: membership in the reported subset, shape (n, records).

    Args:
        targets, records, epsilon, generator: as of :func:`randomized_response`.
        subset: omega, 1 to records - 1.

    Raises:
        InvalidArgumentError: a value out of its range, or more than `LARGEST_REPORTS` bits.
    """
    share = ss_probability(records, epsilon, subset)
    true = _targets(targets, records, cells=records)
    inside = generator.random(len(true)) < share
    keys = generator.random((len(true), records))
    # The target comes first or last in the random order, as the coin says.
    keys[np.arange(len(true)), true] = np.where(inside, -1.0, 2.0)
    chosen = np.argpartition(keys, subset - 1, axis=1)[:, :subset]
    members = np.zeros((len(true), records), dtype=np.bool_)
    np.put_along_axis(members, chosen, True, axis=1)
    return members


def _targets(targets: IntegerArray, records: int, cells: int = 1) -> IntegerArray:
    """The targets as a vector of records, if so many cells each can be held.

    Raises:
        InvalidArgumentError: no vector of such records, or too many reports.
    """
    m = check_integer(records, "records", least=2)
    true = integer_array(targets, "targets")
    if true.ndim != 1 or (true.size and not 0 <= true.min() <= true.max() < m):
        raise InvalidArgumentError(
            "not a vector of record numbers", where="targets", expected=f"0 to {m - 1}"
        )
    if len(true) * cells > LARGEST_REPORTS:
        raise InvalidArgumentError(
            f"{len(true)} reports on {m} records", where="records",
            expected=f"at most {LARGEST_REPORTS} bits in all",
        )  # fmt: skip
    return true
