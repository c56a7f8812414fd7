"""Auditing a mechanism as a black box, by attack.

    from ragaudit.lab.attacks.mechanism import Audit, audit, subject
    found = audit(subject("half-the-sigma"), Audit(trials=2_000, seed=1))

The interface names are those of DP-Auditorium, so that its mechanisms, generators and testers plug
in, and ours into it.
"""

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
