"""The verifier knows which windows of a provider it countersigned for the same time (spec 9.10)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from databases import ON_EACH_ENGINE
from ragaudit.ledger.messages.commitments import IndexCommitment
from ragaudit.ledger.messages.evidence import Overlaps
from ragaudit.ledger.messages.items import OVERLAPS
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.service import windows
from recording_auditor import RecordingAuditor
from verifier_service_harness import (
    END,
    PROVIDER,
    START,
    VerifierScenario,
    problem_of,
)

pytestmark = ON_EACH_ENGINE

LATER = {"start": END, "end": END + 1000, "activation_instants": [END, END + 9, END + 4000]}
INSIDE = {"start": START + 1, "end": END, "activation_instants": [START + 1, START + 9, END + 4000]}


def countersign(scenario: VerifierScenario, name: str, **changes: Any) -> int:
    """Register a window, upload its indexes, ask for its countersignature; return the status."""
    policy = scenario.policy(window=name, **changes)
    assert scenario.register(window=name, **changes).status_code == 201
    for tenant in (each["id"] for each in policy["tenants"]):
        index = IndexCommitment(name, tenant, 1, 4, b"c" * 64, b"d" * 64, b"index").encode()
        target = f"/v1/windows/{name}/tenants/{tenant}/versions/1"
        assert scenario.send("PUT", target, index).status_code == 204
    target = f"/v1/windows/{name}/countersign"
    return scenario.send("POST", target, scenario.opening()).status_code


def beside(evidence: Evidence) -> list[tuple[str, int, int]]:
    if OVERLAPS not in evidence:
        return []
    found = Overlaps.parse(evidence[OVERLAPS]).messages
    return [(each.policy.window, each.allowed, each.shared) for each in found]


def test_the_evidence_names_countersigned_windows_of_the_same_time(
    scenario: Any, auditor: Any
) -> None:
    assert countersign(scenario, "first") == 200
    assert beside(auditor.seen[-1]) == []
    # Registered alone is none, and half-open intervals that touch do not overlap.
    assert scenario.register(window="draft").status_code == 201
    assert countersign(scenario, "later", **LATER) == 200
    assert beside(auditor.seen[-1]) == []
    assert countersign(scenario, "inside", **INSIDE) == 200
    assert beside(auditor.seen[-1]) == [("first", 100, 1)]
    renamed = [{"id": "other", "owner_key": None}]
    assert countersign(scenario, "renamed", **INSIDE, tenants=renamed) == 200
    assert beside(auditor.seen[-1]) == [("first", 100, 1), ("inside", 100, 1)]
    assert countersign(scenario, "third") == 200
    assert beside(auditor.seen[-1]) == [("first", 100, 2), ("inside", 100, 2), ("renamed", 100, 0)]


def test_a_window_countersigned_later_is_in_the_evidence_of_an_earlier_one(scenario: Any) -> None:
    assert countersign(scenario, "first") == 200
    assert countersign(scenario, "inside", **INSIDE) == 200
    with scenario.service.database.read() as connection:
        for name, other in (("first", "inside"), ("inside", "first")):
            window = windows.get(connection, windows.of(PROVIDER, name))
            held = windows.overlaps(connection, window)
            assert beside(Evidence.of(held)) == [(other, 100, 1)]


@dataclass
class Busy(RecordingAuditor):
    """While it checks a window for the first time, another one is countersigned."""

    meanwhile: Callable[[], None] | None = field(default=None, repr=False)

    def check_opening(self, evidence: Evidence, now: int) -> bytes | None:
        meanwhile, self.meanwhile = self.meanwhile, None
        decided = super().check_opening(evidence, now)
        if meanwhile is not None:
            meanwhile()
        return decided


def test_two_windows_that_are_checked_at_once_see_each_other(tmp_path: Path) -> None:
    auditor = Busy()
    with VerifierScenario(tmp_path, auditor).running() as scenario:
        auditor.meanwhile = lambda: _expect(countersign(scenario, "second"), 200)
        assert countersign(scenario, "first") == 200
    assert [beside(each) for each in auditor.seen] == [[], [], [("second", 100, 1)]]


def _expect(found: int, status: int) -> None:
    assert found == status


def test_a_refusal_keeps_what_it_was_refused_for(scenario: Any, auditor: Any) -> None:
    assert countersign(scenario, "first") == 200
    auditor.refusal = auditor.verdict
    assert countersign(scenario, "second") == 422
    with scenario.service.database.read() as connection:
        origin = windows.of(PROVIDER, "second")
        assert windows.read_item(connection, origin, OVERLAPS) == auditor.seen[-1][OVERLAPS]
    answer = scenario.send("POST", "/v1/windows/second/countersign", scenario.opening())
    problem_of(answer, 422, "refused-window")


def test_a_policy_that_nobody_can_read_overlaps_nothing(scenario: Any) -> None:
    assert scenario.register(window="broken", sigma="no number").status_code == 201
    with scenario.service.database.read() as connection:
        window = windows.get(connection, windows.of(PROVIDER, "broken"))
        assert windows.overlaps(connection, window) == {}
