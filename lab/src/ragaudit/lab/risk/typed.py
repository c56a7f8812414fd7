"""Refuse arguments of another type at the entrance, by the argument's name.

Numbers are read elsewhere (:mod:`ragaudit.privacy.numbers`); here all other arguments are checked.
"""

import inspect
import types
import typing
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from functools import wraps
from typing import Any, TypeVar

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.relations import NeighboringRelation

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
