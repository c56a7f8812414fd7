"""Facts: values derived from the evidence once, each owned by the check that vouches for it."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from ragaudit.encoding.errors import InternalError, RagauditError
from ragaudit.verifier.procedure.framework import Lacking

T = TypeVar("T")


class Fact(Generic[T]):
    """A lazily computed attribute that turns refusals into :class:`Lacking` of its owner.

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
        if isinstance(outcome, Lacking):
            raise Lacking(outcome.owner, outcome.reason)
        value: T = outcome
        return value

    def _outcome(self, instance: object) -> "T | Lacking":
        try:
            return self._compute(instance)
        except Lacking as lacking:
            return lacking
        except InternalError:
            raise
        except RagauditError as error:
            return Lacking(self._owner, str(error))


def fact(owner: str) -> Callable[[Callable[[Any], T]], Fact[T]]:
    """Declare a fact that the check ``owner`` vouches for."""
    return lambda compute: Fact(owner, compute)
