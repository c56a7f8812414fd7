"""Objects of another type are refused at the entrance, by the argument's name.

Numbers have their own way in (:mod:`ragaudit.privacy.numbers`); this looks at all other arguments.
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

__all__ = ["typed"]

_OF_ALIASES: dict[Any, type] = {tuple: tuple, Callable: Callable, typing.Literal: str}  # type: ignore[dict-item]
"""Annotations with brackets whose kind is looked at."""

F = TypeVar("F", bound=Callable[..., Any])

# Read, and refused, elsewhere: numbers of every kind, relations by their words.
_READ = (int, float, complex, Fraction, NeighboringRelation)


def typed(entrance: F) -> F:
    """Refuse arguments that are not of the annotated class, before the function sees them.

    Looked at are classes, unions of classes, and protocols that can be checked at run time; arrays,
    sequences and functions are left to the function. Of a class, its constructor is looked at.

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
            kinds = expected.get(name)
            if kinds is not None and not isinstance(value, kinds):
                raise InvalidArgumentError(
                    f"wrong type: {type(value).__name__}",
                    where=name,
                    expected=" or ".join(each.__name__ for each in kinds),
                )
        return entrance(*args, **kwargs)

    return typing.cast(F, checked)


def _classes(function: Callable[..., Any]) -> dict[str, tuple[type, ...]]:
    hints = typing.get_type_hints(function)
    hints.pop("return", None)
    found = {name: _alternatives(hint) for name, hint in hints.items()}
    return {name: kinds for name, kinds in found.items() if kinds}


def _alternatives(hint: Any) -> tuple[type, ...]:
    """The classes of an annotation; none if something in it is not for us to check."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = []
    for each in typing.get_args(hint) if union else (hint,):
        if each is Any:
            return ()
        origin = typing.get_origin(each) or each
        kind = _OF_ALIASES.get(origin, origin)
        if (kind is not each and kind not in _OF_ALIASES.values()) or not inspect.isclass(kind):
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
        return not getattr(kind, "_is_runtime_protocol", False)
    return kind is object or (issubclass(kind, _READ) and not _is_choice(kind))


def _is_choice(kind: type) -> bool:
    return issubclass(kind, Enum) and kind is not NeighboringRelation
