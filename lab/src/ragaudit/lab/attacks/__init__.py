"""Cheating providers that test the audit.

    from ragaudit.lab.attacks import CATALOGUE, run
    outcome = run("half-the-sigma")

Each entry says how it is staged, which checks catch it and why. `ragaudit attack` lists and runs
them; docs/researcher.md says how to add one.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragaudit.lab.attacks.catalogue import CATALOGUE, Staged, find, intrude, run, stage
    from ragaudit.lab.attacks.cheat import Attempt, Cheat, ConstructedCheat, Intrusion, ServiceCheat

__all__ = [
    "CATALOGUE",
    "Attempt",
    "Cheat",
    "ConstructedCheat",
    "Intrusion",
    "ServiceCheat",
    "Staged",
    "find",
    "intrude",
    "run",
    "stage",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a name of `__all__`, whose module is only imported now: help needs none."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.catalogue"), name)
