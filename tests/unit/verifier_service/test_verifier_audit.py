"""From the sampling instant to the verdict: lists, challenge, responses, audit, restarts."""

import io
import re
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import verify
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.ledger.messages.challenge import receipts_digest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.privacy.sample import LoggedRecord, draw_sample, sampling_seed
from ragaudit.verifier import keys
from ragaudit.verifier.bundle import read_archive
from recording_auditor import RecordingAuditor
from verifier_service_harness import (
    END,
    INSTANTS,
    SAMPLING,
    WINDOW,
    Story,
    VerifierScenario,
    problem_of,
    pseudonym,
)

BASE = f"/v1/windows/{WINDOW}"
DEADLINE = 100  # seconds, of the harness's policy


def tick(scenario: Any) -> None:
    scenario.service.scheduler.tick()


def settle(scenario: Any) -> None:
    """Wait for the audit's thread."""
    for _ in range(1000):
        if not scenario.service.runner.busy():
            return
        threading.Event().wait(0.01)
    raise AssertionError("the audit does not end")


def judge(scenario: Any) -> str:
    """Let the audit begin if it may and end, and return the window's state."""
    tick(scenario)
    settle(scenario)
    return state(scenario)


def sampled(story: Any) -> Any:
    """Finish an honest window and reach its sampling instant."""
    story.finish()
    story.scenario.clock.at(SAMPLING)
    tick(story.scenario)
    return story.scenario


def state(scenario: Any) -> str:
    return scenario.client.get(BASE).json()["state"]


def respond(story: Any, index: int, body: bytes = b"response") -> Any:
    return story.send("PUT", f"challenge/{index}", body)


def audit(scenario: Any, token: str | None = None) -> Any:
    found = token or keys.read_token(scenario.settings.secrets / keys.TOKEN)
    return scenario.client.post(f"{BASE}/audit", headers={"Authorization": f"Bearer {found}"})


def submit(story: Any, *indices: int) -> None:
    documents = [story.receipt(index).to_json() for index in indices]
    body = canonical_json.dumps({"receipts": documents})
    assert story.scenario.client.post(f"{BASE}/receipts", content=body).status_code == 200


def test_no_challenge_before_the_sampling_instant(story: Any) -> None:
    story.finish()
    story.scenario.clock.now = 1000 * SAMPLING - 1
    tick(story.scenario)
    answer = story.send("GET", "challenge")
    problem_of(answer, 425, "too-early")
    assert answer.headers["retry-after"] == "1"
    assert state(story.scenario) == "closed"
    problem_of(respond(story, 3), 409, "conflict")


def test_the_challenge_recomputes(story: Any) -> None:
    scenario = story.scenario
    anchor = bytes.fromhex(scenario.countersign().json()["activation_anchor"])
    submit(story, 3, 5)
    story.finish()
    scenario.clock.at(SAMPLING)
    challenge = story.send("GET", "challenge").json()
    assert story.send("GET", "challenge").json() == challenge
    unsigned = {name: each for name, each in challenge.items() if name != "signature"}
    verify(
        scenario.keys.statement.public,
        bytes.fromhex(challenge["signature"]),
        "challenge",
        WINDOW,
        sha256(canonical_json.dumps(unsigned)).digest(),
    )
    preimage = bytes.fromhex(challenge["preimage"])
    verify_activation_preimage(WINDOW, anchor, len(INSTANTS), preimage)
    head = scenario.log.tree.head()
    assert (challenge["final_size"], challenge["final_root"]) == (head.size, head.root_hash.hex())
    assert challenge["deadline"] == scenario.clock.now + 1000 * DEADLINE
    drawn = draw_sample(
        [LoggedRecord(i, "t1", pseudonym((i - 3) % 2)) for i in story.records],
        tenants=("t1", "t2"),
        receipts={3, 5},
        rule=Policy.from_json(scenario.policy()).audit,
        seed=sampling_seed(head.root_hash, preimage),
    )
    assert challenge["strata"] == [
        {
            "id": each.stratum.id,
            "population": None if each.stratum.id.startswith("tenant:") else [3, 5],
            "sample": list(each.sample),
        }
        for each in drawn
    ]
    assert [each["id"] for each in challenge["strata"]] == [
        "tenant:t1",
        "tenant:t2",
        f"account:{pseudonym(0).hex()}",
    ]
    assert challenge["strata"][0]["sample"] == story.records


def test_the_receipts_list(story: Any) -> None:
    scenario = story.scenario
    submit(story, 4, 3)
    story.finish()
    scenario.clock.at(SAMPLING)
    listed = story.send("GET", "challenge").json()["receipts_list"]
    expected = [(index, story.receipt(index).identity) for index in (3, 4)]
    assert listed["digest"] == receipts_digest(expected).hex()
    assert (listed["count"], listed["time"]) == (2, 1000 * SAMPLING - 1)
    fields = (WINDOW, bytes.fromhex(listed["digest"]), listed["count"], listed["time"])
    signature = bytes.fromhex(listed["signature"])
    verify(scenario.keys.statement.public, signature, "receipts-list", *fields)


def test_the_list_is_signed_by_the_service_itself(story: Any) -> None:
    story.scenario.clock.at(SAMPLING)
    tick(story.scenario)
    assert story.scenario.client.get(BASE).json()["times"]["listed"] == 1000 * SAMPLING


def test_the_list_is_the_same_after_an_outage(tmp_path: Path, auditor: Any) -> None:
    """It names the end of the intake, whenever the service comes back."""
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running():
        scenario.open_window()
        story = Story(scenario)
        submit(story, 3)
        story.finish()
    again = VerifierScenario(tmp_path, auditor)
    again.clock.at(SAMPLING + 500)
    with again.running():
        again.log = scenario.log
        story.scenario = again
        tick(again)
        challenge = story.send("GET", "challenge").json()
        assert challenge["receipts_list"]["time"] == 1000 * SAMPLING - 1
        assert challenge["receipts_list"]["count"] == 1
        # The provider is not charged with the verifier's outage.
        assert challenge["deadline"] == 1000 * (SAMPLING + 500 + DEADLINE)


def test_the_challenge_is_drawn_without_being_asked_for(story: Any) -> None:
    scenario = sampled(story)
    assert state(scenario) == "challenged"
    deadline = scenario.client.get(BASE).json()["times"]["deadline"]
    assert deadline == 1000 * (SAMPLING + DEADLINE)


def test_responses(story: Any) -> None:
    sampled(story)
    index = story.records[0]
    assert respond(story, index).status_code == 204
    assert respond(story, index).status_code == 204
    problem_of(respond(story, index, b"another"), 409, "conflict")
    problem_of(respond(story, 0), 404, "not-found")
    problem_of(respond(story, 10**9), 404, "not-found")
    problem_of(respond(story, -1), 400, "malformed-request")
    problem_of(respond(story, 2**70), 400, "malformed-request")
    assert story.scenario.client.get(BASE).json()["counts"]["responses"] == 1


def answer_all(story: Any) -> None:
    for index in story.records:
        assert respond(story, index, b"response %d" % index).status_code == 204


def test_the_audit_runs_when_everything_is_answered(story: Any, auditor: Any) -> None:
    submit(story, 3)
    scenario = sampled(story)
    problem_of(audit(scenario), 409, "conflict")
    scenario.clock.now += 5000
    answer_all(story)
    assert judge(scenario) == "decided"
    assert scenario.client.get(f"{BASE}/verdict").content == auditor.verdict
    evidence = auditor.seen[-1]
    public = [
        "activations.json", "checkpoints.json", "clock.json", "countersignature.json",
        "embedder.json", "empty-checkpoint.txt", "entries.json", "final-checkpoint.txt",
        "index/t1/1.bin", "index/t2/1.bin", "judged.json", "leaves.bin", "opening.json",
        "policy.json", "receipts-list.json", "receipts.json", "refusals.json", "statements.json",
        "terms.json",
    ]  # fmt: skip
    confidential = ["challenge.json", "claims.json", "disputes.json", "records.bin"]
    confidential += [f"responses/{index}.bin" for index in story.records]
    assert sorted(evidence) == sorted(
        [f"public/{name}" for name in public] + [f"confidential/{name}" for name in confidential]
    )
    clock = canonical_json.loads(evidence["public/clock.json"])
    assert clock == {
        "responses": {str(index): 1000 * (SAMPLING + 5) for index in story.records},
        "claims": {},
        "close": 1000 * END,
        "records": 1000 * END,
    }
    activations = canonical_json.loads(evidence["public/activations.json"])
    assert [each["a"] for each in activations] == [1, 2]
    assert canonical_json.loads(evidence["public/receipts.json"]) == [story.receipt(3).to_json()]
    notes = canonical_json.loads(evidence["public/checkpoints.json"])
    assert notes == [evidence["public/final-checkpoint.txt"].decode()]


def test_the_audit_waits_for_the_deadline_only(story: Any, auditor: Any) -> None:
    scenario = sampled(story)
    assert respond(story, story.records[0]).status_code == 204
    scenario.clock.at(SAMPLING + DEADLINE)
    assert judge(scenario) == "challenged"
    scenario.clock.now += 1
    assert respond(story, story.records[1]).status_code == 204  # late: kept, and marked by its time
    assert judge(scenario) == "decided"
    clock = canonical_json.loads(auditor.seen[-1]["public/clock.json"])
    assert clock["responses"] == {
        str(story.records[0]): 1000 * SAMPLING,
        str(story.records[1]): 1000 * (SAMPLING + DEADLINE) + 1,
    }
    problem_of(respond(story, story.records[2]), 409, "conflict")


def test_a_silent_provider_gets_a_verdict(story: Any, auditor: Any) -> None:
    """No close, no handover: the procedure judges what there is at the sampling instant."""
    scenario = story.scenario
    body = {"entries": story.documents()[:3]}
    assert story.send("POST", "entries", body).status_code == 204
    scenario.clock.at(SAMPLING)
    assert judge(scenario) == "decided"
    evidence = auditor.seen[-1]
    assert "confidential/challenge.json" not in evidence
    assert "public/final-checkpoint.txt" not in evidence
    assert canonical_json.loads(evidence["public/entries.json"]) == story.documents()[:3]
    assert canonical_json.loads(evidence["public/clock.json"])["close"] is None
    problem_of(story.send("GET", "challenge"), 409, "conflict")


def test_a_record_that_cannot_be_read_is_judged_without_a_challenge(
    story: Any, auditor: Any
) -> None:
    story.entries[3].body = b"not a record"
    assert judge(sampled(story)) == "decided"
    assert "confidential/challenge.json" not in auditor.seen[-1]
    assert auditor.seen[-1]["confidential/records.bin"] == story.handover()


class FailingAuditor(RecordingAuditor):
    failing = True

    def audit(self, evidence: Any, now: Any, progress: Any) -> Any:
        if self.failing:
            raise RuntimeError("a fault of the software")
        return super().audit(evidence, now, progress)


def test_a_failed_audit_starts_again_when_the_auditor_asks(tmp_path: Path) -> None:
    auditor = FailingAuditor()
    with VerifierScenario(tmp_path, auditor).running() as scenario:
        scenario.open_window()
        scenario.clock.at(SAMPLING)
        judge(scenario)
        judge(scenario)
        found = scenario.client.get(f"{BASE}/progress").json()
        assert found["state"] == "auditing"
        assert found["step"].startswith("failed")
        problem_of(scenario.client.get(f"{BASE}/verdict"), 404, "not-found")  # type: ignore[arg-type]
        auditor.failing = False
        assert audit(scenario).status_code == 202
        settle(scenario)
        assert state(scenario) == "decided"
        assert audit(scenario).status_code == 202


class StoppableAuditor(RecordingAuditor):
    def __init__(self) -> None:
        super().__init__()
        self.running = threading.Event()

    def audit(self, evidence: Any, now: Any, progress: Any) -> Any:
        self.seen.append(evidence)
        for step in range(2000):
            progress("selection", step, 2000)
            self.running.set()
            threading.Event().wait(0.005)
        return self.verdict


def test_an_audit_that_a_shutdown_stops_starts_again(tmp_path: Path) -> None:
    auditor = StoppableAuditor()
    with VerifierScenario(tmp_path, auditor).running() as scenario:
        scenario.open_window()
        scenario.clock.at(SAMPLING)
        tick(scenario)
        assert auditor.running.wait(10)
        found = scenario.client.get(f"{BASE}/progress").json()
        assert (found["state"], found["step"], found["total"]) == ("auditing", "selection", 2000)
    again = VerifierScenario(tmp_path, RecordingAuditor())
    again.clock.at(SAMPLING + 1)
    with again.running():
        assert judge(again) == "decided"
    assert sorted(again.auditor.seen[-1]) == sorted(auditor.seen[-1])  # type: ignore[union-attr]


def test_bundles_and_reports(story: Any, auditor: Any) -> None:
    scenario = story.scenario
    story.finish()
    for path in ("verdict", "report.html", "report.txt", "bundle"):
        problem_of(scenario.client.get(f"{BASE}/{path}"), 404, "not-found")
    scenario.clock.at(SAMPLING)
    tick(scenario)
    answer_all(story)
    judge(scenario)
    public = read_archive(io.BytesIO(scenario.client.get(f"{BASE}/bundle").content))
    assert public.part == "public"
    assert public.verdict == auditor.verdict
    assert all(name.startswith("public/") for name in public.evidence)
    token = keys.read_token(scenario.settings.secrets / keys.TOKEN)
    headers = {"Authorization": f"Bearer {token}"}
    said = {"reader": "A. Ito", "reason": "complaint 17"}
    whole = scenario.client.post(f"{BASE}/bundle/confidential", headers=headers, json=said)
    everything = read_archive(io.BytesIO(whole.content))
    assert everything.evidence.digests() == auditor.seen[-1].digests()
    page = scenario.client.get(f"{BASE}/report.html")
    assert page.text == "<p>report</p>"
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert scenario.client.get(f"{BASE}/report.txt").text == "report"
    assert scenario.client.get(BASE).json()["result"] == "PASS"


def test_the_evidence_does_not_change_after_it_was_sealed(story: Any, auditor: Any) -> None:
    scenario = sampled(story)
    answer_all(story)
    judge(scenario)
    before = auditor.seen[-1].digests()
    problem_of(respond(story, story.records[0], b"another"), 409, "conflict")
    assert respond(story, story.records[0], b"response 3").status_code == 204
    submitted = scenario.client.post(
        f"{BASE}/receipts", content=canonical_json.dumps({"receipts": [story.receipt(3).to_json()]})
    )
    problem_of(submitted, 409, "too-late")
    scenario.client.get(f"{BASE}/activations/1")
    bundle = scenario.client.get(f"{BASE}/bundle").content
    shown = read_archive(io.BytesIO(bundle)).evidence.digests()
    assert shown == {name: before[name] for name in shown}


def test_the_auditor_cannot_hurry(story: Any) -> None:
    early = audit(story.scenario)
    problem_of(early, 409, "conflict")
    instant = rfc3339(1000 * Policy.from_json(story.scenario.policy()).sampling_instant)
    assert f"not due, the window is countersigned (expected {instant} or later" in early.text
    early = audit(sampled(story))
    problem_of(early, 409, "conflict")
    assert re.search(
        r"expected all responses, or 20[0-9TZ:.-]+ or later: their deadline", early.text
    )


def test_status_of_windows(scenario: Any) -> None:
    problem_of(scenario.client.get(BASE), 404, "not-found")
    problem_of(scenario.client.get(f"{BASE}/progress"), 404, "not-found")
    scenario.register()
    found = scenario.client.get(BASE).json()
    assert found["state"] == "registered"
    assert found["times"]["registered"] == scenario.clock.now
    assert found["result"] is None
    idle = {"state": "registered", "step": "", "done": 0, "total": 0}
    assert scenario.client.get(f"{BASE}/progress").json() == idle
