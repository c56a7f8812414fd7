"""Cheating providers that test the audit.

    from ragaudit.lab.attacks import CATALOGUE, run
    outcome = run("half-the-sigma")

Each entry says how it is staged, which checks catch it and why. `ragaudit attack` lists and runs
them; docs/researcher.md says how to add one.
"""

from ragaudit.lab.attacks.catalogue import CATALOGUE, find
from ragaudit.lab.attacks.cheat import Cheat, ConstructedCheat, Intrusion, ServiceCheat
from ragaudit.lab.attacks.running import Attempt, Staged, intrude, run, stage

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
