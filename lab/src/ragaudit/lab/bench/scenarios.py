"""The scenarios by name, each imported only when it is run: some need every member."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, cast

from ragaudit.lab.bench.measure import Measurement
from ragaudit.lab.bench.scenario import Task

__all__ = ["SCENARIOS", "Scenario", "find"]

Scenario = Callable[[Task], list[Measurement]]

SCENARIOS: Final[Mapping[str, tuple[str, str]]] = {
    "index": ("proofs", "index"),
    "prove": ("proofs", "prove"),
    "verify": ("proofs", "verify"),
    "reference": ("proofs", "reference"),
    "answer": ("answering", "answer"),
    "answer-http": ("answering_http", "answer_http"),
    "audit": ("auditing", "audit"),
}
"""Module of this package, and function."""


def find(name: str) -> Scenario:
    """The scenario called ``name``."""
    module, function = SCENARIOS[name]
    return cast(Scenario, getattr(import_module(f"ragaudit.lab.bench.{module}"), function))
