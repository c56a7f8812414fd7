"""Checks of arguments. Nothing is clipped: a value out of range is refused by its name."""

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError

__all__ = [
    "SUM_TOLERANCE",
    "AssumptionError",
    "FloatArray",
    "IntegerArray",
    "check_delta",
    "check_epsilon",
    "check_finite",
    "check_integer",
    "check_non_negative",
    "check_positive",
    "check_probability",
    "check_vector",
    "probability_vector",
    "row_stochastic",
]

FloatArray = npt.NDArray[np.float64]
IntegerArray = npt.NDArray[np.int64]

SUM_TOLERANCE = 1e-9
"""How far from 1 the sum of a probability vector may be."""


class AssumptionError(InvalidArgumentError):
    """A result was asked for outside of the assumptions under which it is proved."""


def check_finite(value: object, name: str) -> float:
    """Return a real number as a float.

    Raises:
        InvalidArgumentError: a bool, another type, NaN or infinite; ``where`` is ``name``.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InvalidArgumentError(f"not a number: {type(value).__name__}", where=name)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidArgumentError("not finite", where=name, expected="a finite number")
    return number


def check_non_negative(value: object, name: str) -> float:
    """Return a number >= 0 as a float."""
    number = check_finite(value, name)
    if number < 0:
        raise InvalidArgumentError(f"{number:g} is negative", where=name, expected="at least 0")
    return number


def check_positive(value: object, name: str) -> float:
    """Return a number > 0 as a float."""
    number = check_finite(value, name)
    if number <= 0:
        raise InvalidArgumentError(f"{number:g} is not positive", where=name, expected="above 0")
    return number


def check_probability(value: object, name: str) -> float:
    """Return a number in [0, 1] as a float."""
    number = check_finite(value, name)
    if not 0 <= number <= 1:
        raise InvalidArgumentError(f"{number!r} out of range", where=name, expected="0 to 1")
    return number


def check_epsilon(value: object) -> float:
    """Return the DP parameter epsilon (natural logarithm), >= 0."""
    return check_non_negative(value, "epsilon")


def check_delta(value: object) -> float:
    """Return the DP parameter delta, in [0, 1]."""
    return check_probability(value, "delta")


def check_integer(value: object, name: str, *, least: int, most: int | None = None) -> int:
    """Return an integer of [least, most]; a bool or a float is none."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidArgumentError(f"not an integer: {type(value).__name__}", where=name)
    expected = f"at least {least}" if most is None else f"{least} to {most}"
    if value < least or (most is not None and value > most):
        raise InvalidArgumentError(f"{value} out of range", where=name, expected=expected)
    return int(value)


def check_vector(
    values: Sequence[float] | npt.NDArray[np.generic], name: str, *, least: int = 1
) -> FloatArray:
    """Return finite numbers as a read-only float64 vector of at least ``least`` entries."""
    vector = _float_array(values, name)
    if vector.ndim != 1:
        raise InvalidArgumentError(f"{vector.ndim} dimensions", where=name, expected="a vector")
    if len(vector) < least:
        raise InvalidArgumentError(
            f"{len(vector)} entries", where=name, expected=f"at least {least}"
        )
    vector.flags.writeable = False
    return vector


def probability_vector(
    values: Sequence[float] | npt.NDArray[np.generic], name: str, *, least: int = 1
) -> FloatArray:
    """Return a read-only vector of probabilities: >= 0, sum 1 within ``SUM_TOLERANCE``."""
    vector = check_vector(values, name, least=least)
    if (vector < 0).any():
        raise InvalidArgumentError("a negative probability", where=name, expected="at least 0")
    total = float(vector.sum())
    if abs(total - 1) > SUM_TOLERANCE:
        raise InvalidArgumentError(f"sums to {total!r}", where=name, expected="a sum of 1")
    return vector


def row_stochastic(
    values: Sequence[Sequence[float]] | npt.NDArray[np.generic], name: str
) -> FloatArray:
    """Return a read-only matrix whose rows are probability vectors.

    Shape (records, outputs): entry ``[z, theta]`` is ``p(theta | z)``.
    """
    matrix = _float_array(values, name)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidArgumentError("not a matrix", where=name, expected="records x outputs")
    if (matrix < 0).any():
        raise InvalidArgumentError("a negative probability", where=name, expected="at least 0")
    if (np.abs(matrix.sum(axis=1) - 1) > SUM_TOLERANCE).any():
        raise InvalidArgumentError("a row does not sum to 1", where=name, expected="sums of 1")
    matrix.flags.writeable = False
    return matrix


def _float_array(values: object, name: str) -> FloatArray:
    """A copy as float64; bools, text and ragged lists are refused."""
    try:
        raw = np.asarray(values)
    except ValueError as error:
        raise InvalidArgumentError("not a rectangular array", where=name) from error
    if raw.dtype == np.bool_ or not (
        np.issubdtype(raw.dtype, np.floating) or np.issubdtype(raw.dtype, np.integer)
    ):
        raise InvalidArgumentError(f"entries of type {raw.dtype}", where=name, expected="numbers")
    array = raw.astype(np.float64)
    if not np.isfinite(array).all():
        raise InvalidArgumentError("an entry is not finite", where=name, expected="finite numbers")
    return array
