"""Checks of arguments. Nothing is clipped: a value out of range is refused by its name.

Numbers are read elsewhere (:mod:`ragaudit.privacy.numbers`); `typed` checks all other arguments of
an entrance by their annotations.
"""

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from fractions import Fraction
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.numbers import LARGEST_COUNT, count, real, sequence

FloatArray = npt.NDArray[np.float64]
IntegerArray = npt.NDArray[np.int64]

SUM_TOLERANCE = 1e-9
"""How far from 1 the sum of a probability vector may be."""


class AssumptionError(InvalidArgumentError):
    """A result was asked for outside of the assumptions under which it is proved."""


def check_finite(value: object, name: str) -> float:
    """Return a number of any kind as a float (:func:`ragaudit.privacy.numbers.real`).

    Args:
        value: an int, float, text, Decimal or Fraction; no bool, and nothing that is not finite.
        name: of the argument, for the error.

    Raises:
        InvalidArgumentError: another type, or out of range; so for all checks of this module.
    """
    return real(value, name)


def check_non_negative(value: object, name: str) -> float:
    """Return a number >= 0 as a float."""
    return real(value, name, least=0)


def check_positive(value: object, name: str) -> float:
    """Return a number > 0 as a float."""
    return real(value, name, above=0)


def check_probability(value: object, name: str) -> float:
    """Return a number in [0, 1] as a float."""
    return real(value, name, least=0, most=1)


def check_epsilon(value: object) -> float:
    """Return the DP parameter epsilon (natural logarithm), >= 0."""
    return real(value, "epsilon", least=0)


def check_delta(value: object) -> float:
    """Return the DP parameter delta, in [0, 1]."""
    return real(value, "delta", least=0, most=1)


def check_integer(value: object, name: str, *, least: int, most: int = LARGEST_COUNT) -> int:
    """Return an integer of [least, most]; a bool or a float is none.

    Args:
        value: an int, or a NumPy integer.
        name: of the argument, for the error.
        least, most: ends of the range, both allowed.
    """
    return count(value, name, least=least, most=most)


def check_vector(
    values: Sequence[float] | npt.NDArray[np.generic], name: str, *, least: int = 1
) -> FloatArray:
    """Return finite numbers as a read-only float64 vector of at least ``least`` entries.

    Args:
        values: a list of numbers of any kind, or an array.
        name: of the argument, for the error.
        least: fewest entries.
    """
    vector = number_array(values, name)
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
    """Return a read-only vector of probabilities: >= 0, sum 1 within ``SUM_TOLERANCE``.

    Args:
        values, name, least: as of :func:`check_vector`.
    """
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

    Args:
        values: a list of rows, or an array.
        name: of the argument, for the error.
    """
    matrix = number_array(values, name)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidArgumentError("not a matrix", where=name, expected="records x outputs")
    if (matrix < 0).any():
        raise InvalidArgumentError("a negative probability", where=name, expected="at least 0")
    if (np.abs(matrix.sum(axis=1) - 1) > SUM_TOLERANCE).any():
        raise InvalidArgumentError("a row does not sum to 1", where=name, expected="sums of 1")
    matrix.flags.writeable = False
    return matrix


def number_array(values: object, name: str, *, finite: bool = True) -> FloatArray:
    """Return a copy as float64 of any shape: of an array as it is, of a list number by number.

    Args:
        finite: False lets infinite entries of arrays pass, and NaN.
    """
    raw = values if isinstance(values, np.ndarray) else _array(values, name)
    if raw.dtype == np.bool_ or not (
        np.issubdtype(raw.dtype, np.floating) or np.issubdtype(raw.dtype, np.integer)
    ):
        raise InvalidArgumentError(f"entries of type {raw.dtype}", where=name, expected="numbers")
    array = raw.astype(np.float64)
    if finite and not np.isfinite(array).all():
        raise InvalidArgumentError("an entry is not finite", where=name, expected="finite numbers")
    return array


def integer_array(values: object, name: str) -> IntegerArray:
    """Return a copy as int64 of whole numbers, of any shape.

    Args:
        values: numbers without fraction, also floats; an array of any shape, or nested lists.
        name: of the argument, for the error.
    """
    raw = number_array(values, name)
    if (np.abs(raw) > LARGEST_COUNT).any() or (raw != np.floor(raw)).any():
        raise InvalidArgumentError("not whole numbers", where=name, expected="whole numbers")
    return raw.astype(np.int64)


def _array(values: object, name: str) -> npt.NDArray[np.float64]:
    items = sequence(values, name)
    if items and all(isinstance(item, list | tuple | np.ndarray) for item in items):
        rows = [number_array(item, name) for item in items]
        if len({row.shape for row in rows}) > 1:
            raise InvalidArgumentError("rows of different length", where=name, expected="a matrix")
        return np.array(rows)
    return np.array([real(item, name) for item in items], dtype=np.float64)


_OF_ALIASES: dict[Any, type] = {tuple: tuple, Callable: Callable, typing.Literal: str}  # type: ignore[dict-item]
"""Annotations with brackets whose class is checked."""

F = TypeVar("F", bound=Callable[..., Any])

# Checked elsewhere: numbers of every kind, relations by their names.
_READ = (int, float, complex, Fraction, NeighboringRelation)


def typed(entrance: F) -> F:
    """Return the function, which now refuses arguments that are not of the annotated class.

    Checked are classes, unions of classes, and protocols that can be checked at run time; arrays,
    sequences and functions are left to the function. Of a class, its constructor is checked.

    Args:
        entrance: a function or a class whose parameters are annotated.

    Raises:
        InvalidArgumentError: on a call: an object of another type; ``where`` is the argument.
    """
    if inspect.isclass(entrance):
        setattr(entrance, "__init__", typed(vars(entrance)["__init__"]))  # noqa: B010 - a method
        return entrance
    signature = inspect.signature(entrance)
    expected: dict[str, tuple[type, ...]] | None = None

    @wraps(entrance)
    def checked(*args: Any, **kwargs: Any) -> Any:
        nonlocal expected
        if expected is None:  # not before: annotations may name what is defined later
            expected = _classes(entrance)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            # A parameter without an entry is checked by the function itself.
            kinds = expected.get(name)
            if kinds is not None and not isinstance(value, kinds):
                raise InvalidArgumentError(
                    f"wrong type: {type(value).__name__}",
                    where=name,
                    expected=" or ".join(kind.__name__ for kind in kinds),
                )
        return entrance(*args, **kwargs)

    return typing.cast(F, checked)


def _classes(function: Callable[..., Any]) -> dict[str, tuple[type, ...]]:
    hints = typing.get_type_hints(function)
    # What is returned is ours, and no argument.
    hints.pop("return", None)
    classes = {name: _alternatives(hint) for name, hint in hints.items()}
    return {name: kinds for name, kinds in classes.items() if kinds}


def _alternatives(hint: Any) -> tuple[type, ...]:
    """Return the classes of an annotation; none if something in it is not checked here."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = []
    for part in typing.get_args(hint) if union else (hint,):
        if part is Any:
            return ()
        origin = typing.get_origin(part) or part
        kind = _OF_ALIASES.get(origin, origin)
        if (kind is not part and kind not in _OF_ALIASES.values()) or not inspect.isclass(kind):
            return ()
        if _is_read(kind):
            return ()
        kinds.append(kind)
    return tuple(kinds)


def _is_read(kind: type) -> bool:
    if kind is bool:
        return False
    protocol = getattr(kind, "_is_protocol", False)
    if protocol:
        # Other protocols cannot be asked for with isinstance: it would raise TypeError.
        return not getattr(kind, "_is_runtime_protocol", False)
    return kind is object or (issubclass(kind, _READ) and not _is_choice(kind))


def _is_choice(kind: type) -> bool:
    return issubclass(kind, Enum) and kind is not NeighboringRelation
