"""Cheating providers that test the audit.

    from ragaudit.attacks import CATALOGUE, run
    outcome = run("half-the-sigma")

Each entry says how it is staged, which checks catch it and why. `ragaudit attack` lists and runs
them; docs/researcher.md says how to add one.
"""

from ragaudit.attacks.catalogue import CATALOGUE, find
from ragaudit.attacks.cheat import Cheat, ConstructedCheat, ServiceCheat
from ragaudit.attacks.running import Staged, run, stage

__all__ = [
    "CATALOGUE",
    "Cheat",
    "ConstructedCheat",
    "ServiceCheat",
    "Staged",
    "find",
    "run",
    "stage",
]
