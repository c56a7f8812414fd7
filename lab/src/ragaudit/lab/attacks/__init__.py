"""Cheating providers that test the audit.

    from ragaudit.lab.attacks import CATALOGUE, run
    outcome = run("half-the-sigma")

Each entry says how it is staged, which checks catch it and why. `ragaudit attack` lists and runs
them; docs/researcher.md says how to add one.
"""

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
