"""Facts: values derived from the evidence once, each owned by the check that vouches for it."""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, overload

from ragaudit.encoding.errors import InternalError, RagauditError

T = TypeVar("T")

CONFIDENTIAL_PART: Final = "confidential part"
"""What a check names as missing when only the public part of the evidence is at hand."""


class MissingInput(Exception):
    """An input is missing or unusable.

    Attributes:
        owner: id of the check that says so, or CONFIDENTIAL_PART.
        reason: for people.
    """

    def __init__(self, owner: str, reason: str) -> None:
        super().__init__(owner, reason)
        self.owner = owner
        self.reason = reason


class Fact(Generic[T]):
    """A lazily computed attribute that turns refusals into :class:`MissingInput` of its owner.

    The value, or the reason why there is none, is kept.
    """

    def __init__(self, owner: str, compute: Callable[[Any], T]) -> None:
        self._owner = owner
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "Fact[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> "T | Fact[T]":
        if instance is None:
            return self
        known: dict[str, Any] = instance.__dict__.setdefault("_known", {})
        if self._name not in known:
            known[self._name] = self._outcome(instance)
        outcome = known[self._name]
        if isinstance(outcome, MissingInput):
            raise MissingInput(outcome.owner, outcome.reason)
        value: T = outcome
        return value

    def _outcome(self, instance: object) -> "T | MissingInput":
        try:
            return self._compute(instance)
        except MissingInput as missing:
            return missing
        except InternalError:
            raise
        except RagauditError as error:
            return MissingInput(self._owner, str(error))


def fact(owner: str) -> Callable[[Callable[[Any], T]], Fact[T]]:
    """Return a decorator that makes a method a fact, for which the check ``owner`` vouches."""
    return lambda compute: Fact(owner, compute)
