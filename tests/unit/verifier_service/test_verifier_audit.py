"""From the sampling instant to the verdict: lists, challenge, responses, audit, restarts."""

import io
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import verify
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.ledger.messages.challenge import receipts_digest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.privacy.sample import LoggedRecord, draw_sample, sampling_seed
from ragaudit.verifier import keys
from ragaudit.verifier.bundle import read_archive
from verifier_service_harness import (
    END,
    INSTANTS,
    SAMPLING,
    WINDOW,
    Desk,
    RecordingAuditor,
    Story,
    problem_of,
    pseudonym,
)

BASE = f"/v1/windows/{WINDOW}"
DEADLINE = 100  # seconds, of the harness's policy


def tick(desk: Any) -> None:
    desk.service.scheduler.tick()


def settle(desk: Any) -> None:
    """Wait for the audit's thread."""
    for _ in range(1000):
        if not desk.service.runner.busy():
            return
        threading.Event().wait(0.01)
    raise AssertionError("the audit does not end")


def judge(desk: Any) -> str:
    """Let the audit begin if it may and end, and return the window's state."""
    tick(desk)
    settle(desk)
    return state(desk)


def sampled(story: Any) -> Any:
    """Finish an honest window and reach its sampling instant."""
    story.finish()
    story.desk.clock.at(SAMPLING)
    tick(story.desk)
    return story.desk


def state(desk: Any) -> str:
    return desk.client.get(BASE).json()["state"]


def respond(story: Any, index: int, body: bytes = b"response") -> Any:
    return story.send("PUT", f"challenge/{index}", body)


def audit(desk: Any, token: str | None = None) -> Any:
    found = token or keys.read_token(desk.settings.secrets / keys.TOKEN)
    return desk.client.post(f"{BASE}/audit", headers={"Authorization": f"Bearer {found}"})


def submit(story: Any, *indices: int) -> None:
    documents = [story.receipt(index).to_json() for index in indices]
    body = canonical_json.dumps({"receipts": documents})
    assert story.desk.client.post(f"{BASE}/receipts", content=body).status_code == 200


def test_no_challenge_before_the_sampling_instant(story: Any) -> None:
    story.finish()
    story.desk.clock.now = 1000 * SAMPLING - 1
    tick(story.desk)
    answer = story.send("GET", "challenge")
    problem_of(answer, 425, "too-early")
    assert answer.headers["retry-after"] == "1"
    assert state(story.desk) == "closed"
    problem_of(respond(story, 3), 409, "conflict")


def test_the_challenge_recomputes(story: Any) -> None:
    desk = story.desk
    anchor = bytes.fromhex(desk.countersign().json()["activation_anchor"])
    submit(story, 3, 5)
    story.finish()
    desk.clock.at(SAMPLING)
    challenge = story.send("GET", "challenge").json()
    assert story.send("GET", "challenge").json() == challenge
    unsigned = {name: each for name, each in challenge.items() if name != "signature"}
    verify(
        desk.keys.statement.public,
        bytes.fromhex(challenge["signature"]),
        "challenge",
        WINDOW,
        sha256(canonical_json.dumps(unsigned)).digest(),
    )
    preimage = bytes.fromhex(challenge["preimage"])
    verify_activation_preimage(WINDOW, anchor, len(INSTANTS), preimage)
    head = desk.log.tree.head()
    assert (challenge["final_size"], challenge["final_root"]) == (head.size, head.root_hash.hex())
    assert challenge["deadline"] == desk.clock.now + 1000 * DEADLINE
    drawn = draw_sample(
        [LoggedRecord(i, "t1", pseudonym((i - 3) % 2)) for i in story.records],
        tenants=("t1", "t2"),
        receipts={3, 5},
        rule=Policy.from_json(desk.policy()).audit,
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
    desk = story.desk
    submit(story, 4, 3)
    story.finish()
    desk.clock.at(SAMPLING)
    listed = story.send("GET", "challenge").json()["receipts_list"]
    expected = [(index, story.receipt(index).identity) for index in (3, 4)]
    assert listed["digest"] == receipts_digest(expected).hex()
    assert (listed["count"], listed["time"]) == (2, 1000 * SAMPLING - 1)
    fields = (WINDOW, bytes.fromhex(listed["digest"]), listed["count"], listed["time"])
    signature = bytes.fromhex(listed["signature"])
    verify(desk.keys.statement.public, signature, "receipts-list", *fields)


def test_the_list_is_signed_by_the_service_itself(story: Any) -> None:
    story.desk.clock.at(SAMPLING)
    tick(story.desk)
    assert story.desk.client.get(BASE).json()["times"]["listed"] == 1000 * SAMPLING


def test_the_list_is_the_same_after_an_outage(tmp_path: Path, auditor: Any) -> None:
    """It names the end of the intake, whenever the service comes back."""
    desk = Desk(tmp_path, auditor)
    with desk.running():
        desk.open_window()
        story = Story(desk)
        submit(story, 3)
        story.finish()
    again = Desk(tmp_path, auditor)
    again.clock.at(SAMPLING + 500)
    with again.running():
        again.log = desk.log
        story.desk = again
        tick(again)
        challenge = story.send("GET", "challenge").json()
        assert challenge["receipts_list"]["time"] == 1000 * SAMPLING - 1
        assert challenge["receipts_list"]["count"] == 1
        # The provider is not charged with the verifier's outage.
        assert challenge["deadline"] == 1000 * (SAMPLING + 500 + DEADLINE)


def test_the_challenge_is_drawn_without_being_asked_for(story: Any) -> None:
    desk = sampled(story)
    assert state(desk) == "challenged"
    deadline = desk.client.get(BASE).json()["times"]["deadline"]
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
    assert story.desk.client.get(BASE).json()["counts"]["responses"] == 1


def answer_all(story: Any) -> None:
    for index in story.records:
        assert respond(story, index, b"response %d" % index).status_code == 204


def test_the_audit_runs_when_everything_is_answered(story: Any, auditor: Any) -> None:
    submit(story, 3)
    desk = sampled(story)
    problem_of(audit(desk), 409, "conflict")
    desk.clock.now += 5000
    answer_all(story)
    assert judge(desk) == "decided"
    assert desk.client.get(f"{BASE}/verdict").content == auditor.verdict
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
    desk = sampled(story)
    assert respond(story, story.records[0]).status_code == 204
    desk.clock.at(SAMPLING + DEADLINE)
    assert judge(desk) == "challenged"
    desk.clock.now += 1
    assert respond(story, story.records[1]).status_code == 204  # late: kept, and marked by its time
    assert judge(desk) == "decided"
    clock = canonical_json.loads(auditor.seen[-1]["public/clock.json"])
    assert clock["responses"] == {
        str(story.records[0]): 1000 * SAMPLING,
        str(story.records[1]): 1000 * (SAMPLING + DEADLINE) + 1,
    }
    problem_of(respond(story, story.records[2]), 409, "conflict")


def test_a_silent_provider_gets_a_verdict(story: Any, auditor: Any) -> None:
    """No close, no handover: the procedure judges what there is at the sampling instant."""
    desk = story.desk
    body = {"entries": story.documents()[:3]}
    assert story.send("POST", "entries", body).status_code == 204
    desk.clock.at(SAMPLING)
    assert judge(desk) == "decided"
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
    with Desk(tmp_path, auditor).running() as desk:
        desk.open_window()
        desk.clock.at(SAMPLING)
        judge(desk)
        judge(desk)
        found = desk.client.get(f"{BASE}/progress").json()
        assert found["state"] == "auditing"
        assert found["step"].startswith("failed")
        problem_of(desk.client.get(f"{BASE}/verdict"), 404, "not-found")  # type: ignore[arg-type]
        auditor.failing = False
        assert audit(desk).status_code == 202
        settle(desk)
        assert state(desk) == "decided"
        assert audit(desk).status_code == 202


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
    with Desk(tmp_path, auditor).running() as desk:
        desk.open_window()
        desk.clock.at(SAMPLING)
        tick(desk)
        assert auditor.running.wait(10)
        found = desk.client.get(f"{BASE}/progress").json()
        assert (found["state"], found["step"], found["total"]) == ("auditing", "selection", 2000)
    again = Desk(tmp_path, RecordingAuditor())
    again.clock.at(SAMPLING + 1)
    with again.running():
        assert judge(again) == "decided"
    assert sorted(again.auditor.seen[-1]) == sorted(auditor.seen[-1])  # type: ignore[union-attr]


def test_bundles_and_reports(story: Any, auditor: Any) -> None:
    desk = story.desk
    story.finish()
    for path in ("verdict", "report.html", "report.txt", "bundle"):
        problem_of(desk.client.get(f"{BASE}/{path}"), 404, "not-found")
    desk.clock.at(SAMPLING)
    tick(desk)
    answer_all(story)
    judge(desk)
    public = read_archive(io.BytesIO(desk.client.get(f"{BASE}/bundle").content))
    assert public.part == "public"
    assert public.verdict == auditor.verdict
    assert all(name.startswith("public/") for name in public.evidence)
    token = keys.read_token(desk.settings.secrets / keys.TOKEN)
    headers = {"Authorization": f"Bearer {token}"}
    whole = desk.client.get(f"{BASE}/bundle/confidential", headers=headers)
    everything = read_archive(io.BytesIO(whole.content))
    assert everything.evidence.digests() == auditor.seen[-1].digests()
    page = desk.client.get(f"{BASE}/report.html")
    assert page.text == "<p>report</p>"
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert desk.client.get(f"{BASE}/report.txt").text == "report"
    assert desk.client.get(BASE).json()["result"] == "PASS"


def test_the_evidence_does_not_change_after_it_was_sealed(story: Any, auditor: Any) -> None:
    desk = sampled(story)
    answer_all(story)
    judge(desk)
    before = auditor.seen[-1].digests()
    problem_of(respond(story, story.records[0], b"another"), 409, "conflict")
    assert respond(story, story.records[0], b"response 3").status_code == 204
    submitted = desk.client.post(
        f"{BASE}/receipts", content=canonical_json.dumps({"receipts": [story.receipt(3).to_json()]})
    )
    problem_of(submitted, 409, "too-late")
    desk.client.get(f"{BASE}/activations/1")
    bundle = desk.client.get(f"{BASE}/bundle").content
    shown = read_archive(io.BytesIO(bundle)).evidence.digests()
    assert shown == {name: before[name] for name in shown}


def test_the_auditor_cannot_hurry(story: Any) -> None:
    problem_of(audit(story.desk), 409, "conflict")
    problem_of(audit(sampled(story)), 409, "conflict")


def test_status_of_windows(desk: Any) -> None:
    problem_of(desk.client.get(BASE), 404, "not-found")
    problem_of(desk.client.get(f"{BASE}/progress"), 404, "not-found")
    desk.register()
    found = desk.client.get(BASE).json()
    assert found["state"] == "registered"
    assert found["times"]["registered"] == desk.clock.now
    assert found["result"] is None
    idle = {"state": "registered", "step": "", "done": 0, "total": 0}
    assert desk.client.get(f"{BASE}/progress").json() == idle
