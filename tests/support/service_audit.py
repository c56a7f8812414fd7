"""The audit of a window through the service, awaited."""

from __future__ import annotations

import threading

from ragaudit.ledger.messages.verdict import Verdict
from service_window import ServiceWindow
from verifier_service_harness import VerifierScenario


def decide(scenario: VerifierScenario, window: ServiceWindow) -> Verdict:
    """Let the audit run and verify its verdict."""
    scenario.service.scheduler.tick()
    for _ in range(6000):
        if not scenario.service.runner.busy():
            break
        threading.Event().wait(0.01)
    answer = scenario.client.get(f"/v1/windows/{window.window}/verdict")
    assert answer.status_code == 200, answer.text
    return Verdict.verify(answer.content, scenario.keys.verdict.public)


def failed(verdict: Verdict) -> list[str]:
    return [check.id for check in verdict.predicate.checks if check.status == "FAIL"]
