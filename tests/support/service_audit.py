"""The audit of a window through the service, awaited."""

from __future__ import annotations

import threading

from ragaudit.ledger.messages.verdict import Verdict
from service_window import ServiceWindow
from verifier_service_harness import Desk


def decide(desk: Desk, window: ServiceWindow) -> Verdict:
    """Let the audit run and verify its verdict."""
    desk.service.scheduler.tick()
    for _ in range(6000):
        if not desk.service.runner.busy():
            break
        threading.Event().wait(0.01)
    answer = desk.client.get(f"/v1/windows/{window.window}/verdict")
    assert answer.status_code == 200, answer.text
    return Verdict.verify(answer.content, desk.keys.verdict.public)


def failed(verdict: Verdict) -> list[str]:
    return [check.id for check in verdict.predicate.checks if check.status == "FAIL"]
