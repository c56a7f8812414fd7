"""Whole windows through the service with the real procedure: PASS, FAIL and REFUSED, signed."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from procedure_cases import use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.lab.scenario.policy import COUNTERSIGNED, DEADLINE_SECONDS, INSTANTS, START
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.verifier import keys
from ragaudit.verifier.bundle import read_archive
from ragaudit.verifier.engines import engine
from ragaudit.verifier.recheck import recheck
from service_audit import decide, failed
from service_window import ServiceWindow
from verifier_service_harness import VerifierScenario


@pytest.fixture(autouse=True)
def quick() -> None:
    use_cached_table()


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[VerifierScenario]:
    clock = Clock(1000 * (COUNTERSIGNED - 60))
    with VerifierScenario(tmp_path, None, clock).running() as running:
        yield running


@pytest.mark.parametrize("mode", ["A", "B"])
def test_an_honest_window_passes(scenario: Any, mode: Any, tmp_path: Path) -> None:
    window = ServiceWindow(scenario, mode=mode)
    window.play()
    window.submit()
    window.hand_over()
    window.reach_sampling()
    sampled = window.respond()
    verdict = decide(scenario, window)
    assert (verdict.result, failed(verdict)) == ("PASS", [])
    token = keys.read_token(scenario.settings.secrets / keys.TOKEN)
    base = f"/v1/windows/{window.window}"
    whole = scenario.client.post(
        f"{base}/bundle/confidential",
        headers={"Authorization": f"Bearer {token}"},
        json={"reader": "A. Ito", "reason": "the whole is judged again"},
    )
    evidence = read_archive(io.BytesIO(whole.content)).evidence
    assert evidence.digests() == dict(verdict.subjects)
    for content in (whole.content, scenario.client.get(f"{base}/bundle").content):
        path = tmp_path / "bundle.zip"
        path.write_bytes(content)
        again = recheck(path, engine=engine("core"), pins=window.pins)
        again.raise_for_differences()
    assert sum(name.startswith("confidential/responses/") for name in evidence) == len(sampled)
    for name, phrase in (("report.html", "<html"), ("report.txt", "PASS")):
        assert phrase in scenario.client.get(f"{base}/{name}").text


def test_a_provider_that_does_not_answer_fails(scenario: Any) -> None:
    window = ServiceWindow(scenario)
    window.play()
    window.submit()
    window.hand_over()
    window.reach_sampling()
    scenario.clock.now = 1000 * (INSTANTS[-1] + DEADLINE_SECONDS) + 1
    verdict = decide(scenario, window)
    assert verdict.result == "FAIL"
    assert "sampling" in failed(verdict)


def test_a_late_answer_fails(scenario: Any) -> None:
    window = ServiceWindow(scenario)
    window.play()
    window.submit()
    window.hand_over()
    window.reach_sampling()
    scenario.clock.now = 1000 * (INSTANTS[-1] + DEADLINE_SECONDS) + 1
    window.respond()
    verdict = decide(scenario, window)
    assert (verdict.result, failed(verdict)) == ("FAIL", ["sampling"])


@pytest.mark.parametrize("handed_over", [False, True])
def test_a_provider_that_never_closes_fails(scenario: Any, handed_over: Any) -> None:
    window = ServiceWindow(scenario)
    window.play()
    if handed_over:
        scenario.clock.at(INSTANTS[-1] - 10)
        window.send("PUT", "/records", window.handover())
    window.reach_sampling()
    verdict = decide(scenario, window)
    assert verdict.result == "FAIL"
    assert "log" in failed(verdict)


def test_a_provider_that_never_comes_back_fails(scenario: Any) -> None:
    """Countersigned, and then nothing at all."""
    window = ServiceWindow(scenario)
    window.open()
    window.reach_sampling()
    verdict = decide(scenario, window)
    assert verdict.result == "FAIL"


def test_an_unreadable_record_fails_with_its_reason(scenario: Any) -> None:
    window = ServiceWindow(scenario)
    window.encode_record = lambda record: record.encode()[:-1]  # type: ignore[method-assign]
    window.play()
    window.hand_over()
    window.reach_sampling()
    verdict = decide(scenario, window)
    assert verdict.result == "FAIL"
    assert "log" in failed(verdict)


def test_a_cheating_index_is_refused(scenario: Any, tmp_path: Path) -> None:
    window = ServiceWindow(scenario)
    window.prove_index = lambda *given: bytes(2912)  # type: ignore[method-assign]
    window.prepare()
    target = f"/v1/windows/{window.window}/countersign"
    answer = scenario.send("POST", target, window.opening_request())
    assert answer.status_code == 422
    envelope = canonical_json.dumps(answer.json()["verdict"])
    verdict = Verdict.verify(envelope, scenario.keys.verdict.public)
    assert (verdict.result, failed(verdict)) == ("REFUSED", ["index-proof"])
    assert "public/countersignature.json" not in verdict.subjects
    assert scenario.client.get(f"/v1/windows/{window.window}/verdict").content == envelope
    assert "REFUSED" in scenario.client.get(f"/v1/windows/{window.window}/report.txt").text
    path = tmp_path / "bundle.zip"
    path.write_bytes(scenario.client.get(f"/v1/windows/{window.window}/bundle").content)
    recheck(path, engine=engine("core")).raise_for_differences()


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"sigma": "0.5"}, "accounting"),
        ({"relation": "add"}, "policy"),
        ({"start": START + 400}, "policy"),
        ({"tenants": []}, "policy"),
        ({"top_k_max": 20}, "policy"),
    ],
)
def test_a_policy_that_does_not_hold_is_refused(scenario: Any, changes: Any, check: Any) -> None:
    """Signed, with the reason, however malformed the policy is."""
    window = ServiceWindow(scenario)
    window.prepare()
    policy = {**window.policy_json(), **changes, "window": "w2"}
    policy["keys"]["log"] = policy["keys"]["log"].replace("w1", "w2")
    document = {"policy": policy, "embedder": window.model.manifest().to_json()}
    assert scenario.send("POST", "/v1/windows", document).status_code == 201
    for tenant, index in window.indices.items():
        if changes.get("tenants") != []:
            target = f"/v1/windows/w2/tenants/{tenant}/versions/1"
            assert scenario.send("PUT", target, index.commitment.encode()).status_code == 204
    answer = scenario.send("POST", "/v1/windows/w2/countersign", window.opening_request())
    assert answer.status_code == 422, answer.text
    envelope = canonical_json.dumps(answer.json()["verdict"])
    verdict = Verdict.verify(envelope, scenario.keys.verdict.public)
    assert verdict.result == "REFUSED"
    assert "policy" in failed(verdict) or check in failed(verdict)


def test_a_window_that_comes_too_late_is_refused(scenario: Any) -> None:
    window = ServiceWindow(scenario)
    window.prepare()
    scenario.clock.at(INSTANTS[0])
    answer = scenario.send("POST", "/v1/windows/w1/countersign", window.opening_request())
    assert answer.status_code == 422
    envelope = canonical_json.dumps(answer.json()["verdict"])
    verdict = Verdict.verify(envelope, scenario.keys.verdict.public)
    assert (verdict.result, failed(verdict)) == ("REFUSED", ["policy"])
