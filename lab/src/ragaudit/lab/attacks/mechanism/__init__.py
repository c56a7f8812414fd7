"""Auditing a mechanism as a black box, by attack.

    from ragaudit.lab.attacks.mechanism import Audit, audit, subject
    found = audit(subject("half-the-sigma"), Audit(trials=2_000, seed=1))

The interface names are those of DP-Auditorium, so that its mechanisms, generators and testers plug
in, and ours into it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragaudit.lab.attacks.mechanism.auditing import Audit, Result, Verdict, audit
    from ragaudit.lab.attacks.mechanism.subjects import (
        SUBJECTS,
        AdvantageTester,
        DatasetGenerator,
        Mechanism,
        PropertyTester,
        Subject,
        subject,
    )

__all__ = [
    "SUBJECTS",
    "AdvantageTester",
    "Audit",
    "DatasetGenerator",
    "Mechanism",
    "PropertyTester",
    "Result",
    "Subject",
    "Verdict",
    "audit",
    "subject",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a name of `__all__`, whose module is only imported now: help needs none."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        modules = (import_module(f"{__name__}.{home}") for home in ("auditing", "subjects"))
        return next(getattr(each, name) for each in modules if hasattr(each, name))
