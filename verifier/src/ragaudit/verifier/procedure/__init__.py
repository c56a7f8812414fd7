"""The audit procedure (docs/spec/09-audit.md): numbered checks over a window's evidence.

    outcome = run(evidence, engine=fastest_engine(), pins=pins)
    outcome = run_opening_checks(evidence, engine=engine, pins=pins, now=milliseconds)

Each check owns its rule. A check is disabled by leaving it out of the list, and in no other way.
"""

from ragaudit.ledger.messages.verdict import EXCEEDED, FAIL, PASS, REFUSED, Status
from ragaudit.verifier.models import CommittedEmbedder
from ragaudit.verifier.procedure.checks import CHECKS, OPENING_CHECKS, run, run_opening_checks
from ragaudit.verifier.procedure.facts import Pins
from ragaudit.verifier.procedure.framework import Check, CheckResult, Outcome

__all__ = [
    "CHECKS",
    "EXCEEDED",
    "FAIL",
    "OPENING_CHECKS",
    "PASS",
    "REFUSED",
    "Check",
    "CheckResult",
    "CommittedEmbedder",
    "Outcome",
    "Pins",
    "Status",
    "run",
    "run_opening_checks",
]
