"""Many small cases in one test: each test costs pytest more time than such a case takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

import pytest

PARAM = type(pytest.param())
Test = TypeVar("Test", bound=Callable[..., None])


def for_each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, in one test; the first case that fails is named.

    The cases share the test's fixtures: none may change them.
    """
    known = (names,) if isinstance(names, str) else names
    given = [(case,) if isinstance(names, str) else case for case in cases]
    if PARAM in {type(part) for case in given for part in (case, *case)}:
        raise TypeError("a case with an id or a mark is a test: pytest.mark.parametrize")

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            assert given
            for case in given:
                values = dict(zip(known, case, strict=True))
                try:
                    test(**fixtures, **values)
                except BaseException as error:  # pytest's own are no exceptions
                    error.add_note(f"where {values!r:.400}")
                    raise

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in known]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return decorate
