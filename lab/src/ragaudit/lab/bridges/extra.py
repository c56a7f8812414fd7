"""The libraries of the extra `bridges`, loaded when they are needed."""

from importlib import import_module
from typing import Any

from ragaudit.encoding.errors import UnsupportedError


def library(name: str) -> Any:
    """Return a module of an optional library.

    Args:
        name: of the module; its first part is the library that the error names.

    Raises:
        UnsupportedError: the library is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"{name.partition('.')[0]} is not installed",
            where="bridges",
            expected="ragaudit-lab with its extra `bridges`",
        ) from error
