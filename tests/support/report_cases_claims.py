"""Outcomes of windows without noise, which claim no privacy."""

from dataclasses import replace

from ragaudit.ledger.messages.verdict import PRIVACY_CHECKS
from ragaudit.verifier.procedure import CHECKS, CheckResult, Outcome, Status, covered
from report_cases import SCOPE, outcome

UNAPPLIED = {*PRIVACY_CHECKS, "promises"}


def unnoised(**statuses: Status) -> Outcome:
    """An outcome of a window without noise, with some checks' statuses changed."""
    default = dict.fromkeys(UNAPPLIED, Status.NOT_APPLICABLE) | statuses
    checks = tuple(
        CheckResult(c.number, c.id, c.title, default.get(c.id, Status.PASS), f"in order, {c.id}")
        for c in CHECKS
    )
    base = replace(
        outcome(),
        checks=checks,
        epsilon=None,
        coalition=dict.fromkeys(("claimed", "estimated", "max")),
        scope={
            **SCOPE,
            "privacy": "none",
            "norm_bound": 4095,
            "public_columns": [{"name": "colour", "type": "string"}],
        },
        not_covered=covered.not_covered("A", {"plain": 1}, noised=False, columns=True),
        assumptions=covered.ASSUMPTIONS[:1],
    )
    return replace(base, result=base.claims.result)
