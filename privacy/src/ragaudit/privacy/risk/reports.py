"""Reports of the local mechanisms, drawn as the mechanisms define them.

All randomness comes from the generator that is passed in. These samplers use floating point: they
are for simulations and audits, never for the protection of real data.
"""

import numpy as np
import numpy.typing as npt
from ragaudit.privacy.risk.mechanisms import (
    grr_probabilities,
    oue_probabilities,
    ss_probability,
)
from ragaudit.privacy.risk.validation import IntegerArray

__all__ = ["randomized_response", "subset_selection", "unary_encoding"]

BoolArray = npt.NDArray[np.bool_]


def randomized_response(
    targets: IntegerArray, records: int, epsilon: float, generator: np.random.Generator
) -> IntegerArray:
    """Generalized randomized response: one record per target, shape (n,)."""
    keep, _ = grr_probabilities(records, epsilon)
    kept = generator.random(len(targets)) < keep
    others = generator.integers(0, records - 1, len(targets))
    return np.asarray(np.where(kept, targets, others + (others >= targets)), dtype=np.int64)


def unary_encoding(
    targets: IntegerArray, records: int, epsilon: float, generator: np.random.Generator
) -> BoolArray:
    """Optimal unary encoding: one vector of bits per target, shape (n, records)."""
    at_target, elsewhere = oue_probabilities(epsilon)
    bits = generator.random((len(targets), records)) < elsewhere
    bits[np.arange(len(targets)), targets] = generator.random(len(targets)) < at_target
    return np.asarray(bits)


def subset_selection(
    targets: IntegerArray, records: int, epsilon: float, subset: int, generator: np.random.Generator
) -> BoolArray:
    """Subset selection: membership in the reported subset, shape (n, records)."""
    inside = generator.random(len(targets)) < ss_probability(records, epsilon, subset)
    keys = generator.random((len(targets), records))
    # The target comes first or last in the random order, as the coin says.
    keys[np.arange(len(targets)), targets] = np.where(inside, -1.0, 2.0)
    chosen = np.argpartition(keys, subset - 1, axis=1)[:, :subset]
    members = np.zeros((len(targets), records), dtype=np.bool_)
    np.put_along_axis(members, chosen, True, axis=1)
    return members
