"""Cheating providers that test the audit.

    from ragaudit.attacks import CATALOGUE, run
    outcome = run("half-the-sigma")

Each entry says how it is staged, which checks catch it and why. `ragaudit attack` lists and runs
them; docs/researcher.md says how to add one.
"""

from ragaudit.attacks.catalogue import CATALOGUE, find
from ragaudit.attacks.cheat import Cheat, ConstructedCheat, Intrusion, ServiceCheat
from ragaudit.attacks.running import Attempt, Staged, intrude, run, stage

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
