"""Registration, index upload, countersignature or refusal."""

import threading
from pathlib import Path
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.signing import verify
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.messages.chains import activation_anchor
from ragaudit.verifier.service import challenge, providers, windows
from recording_auditor import RecordingAuditor
from verifier_service_harness import (
    INSTANTS,
    ORIGIN,
    PROVIDER,
    START,
    WINDOW,
    VerifierScenario,
    index_of,
    problem_of,
)

pytestmark = ON_EACH_ENGINE

INDEX = f"/v1/windows/{WINDOW}/tenants/t1/versions/1"
COUNTERSIGN = f"/v1/windows/{WINDOW}/countersign"


def test_a_window_opens(scenario: Any, auditor: Any) -> None:
    scenario.open_anew()
    assert sorted(auditor.seen[0]) == [
        "public/embedder.json", "public/empty-checkpoint.txt", "public/index/t1/1.bin",
        "public/index/t2/1.bin", "public/opening.json", "public/policy.json", "public/terms.json",
    ]  # fmt: skip
    message = scenario.countersign().json()
    verify(
        scenario.keys.statement.public, bytes.fromhex(message["signature"]), "countersignature",
        WINDOW, bytes.fromhex(message["policy_digest"]),
        structure("opening-digest", b"\x11" * 32, b"opening"), scenario.service.terms.digest,
        bytes.fromhex(message["activation_anchor"]), message["time"],
    )  # fmt: skip
    assert message["time"] == scenario.clock.now
    assert len(auditor.seen) == 1  # the second call gave the stored bytes


def test_the_anchor_is_of_a_seed_that_a_restart_keeps(tmp_path: Path, auditor: Any) -> None:
    first = VerifierScenario(tmp_path, auditor)
    with first.running():
        first.open_window()
        message = first.countersign().json()
    with VerifierScenario(tmp_path, auditor).running() as second:
        with second.service.database.read() as connection:
            window = windows.get(connection, ORIGIN)
        seed = challenge.chain_seed(second.keys, window)
        assert second.countersign().json() == message
    anchor = activation_anchor(WINDOW, seed, len(INSTANTS))
    assert anchor.hex() == message["activation_anchor"]


def test_two_windows_have_different_seeds(scenario: Any) -> None:
    assert scenario.register().status_code == 201
    assert scenario.register(window="w2").status_code == 201
    with scenario.service.database.read() as connection:
        found = [windows.get(connection, windows.of(PROVIDER, w)) for w in (WINDOW, "w2")]
        seeds = {challenge.chain_seed(scenario.keys, window) for window in found}
    assert len(seeds) == 2


def test_a_log_key_serves_one_window(scenario: Any) -> None:
    """One key for two windows would let a checkpoint of one pass for one of the other."""
    assert scenario.register().status_code == 201
    keys = {**scenario.policy()["keys"]}
    document = problem_of(scenario.register(window="w2", keys=keys), 422, "rejected")
    assert document["where"] == "keys/log" and WINDOW in document["detail"]
    assert scenario.register().status_code == 200
    for key in (5, "no key"):  # check 1 says what is wrong with these
        name = f"w-{type(key).__name__}"
        assert scenario.register(window=name, keys={**keys, "log": key}).status_code == 201


def test_registering_again_is_the_same_and_other_content_is_a_conflict(scenario: Any) -> None:
    first = scenario.register()
    assert first.status_code == 201
    policy = canonical_json.dumps(scenario.policy())
    assert first.json() == {
        "window": WINDOW,
        "state": "registered",
        "policy_digest": structure("policy", policy).hex(),
    }
    again = scenario.register()
    assert (again.status_code, again.json()) == (200, first.json())
    problem_of(scenario.register(sigma="2000"), 409, "conflict")


@pytest.mark.parametrize("role", ["provider", "cosigner", "verifier", "verdict"])
def test_a_policy_names_the_pinned_keys(scenario: Any, role: Any) -> None:
    keys = {**scenario.policy()["keys"], role: seeded("other").public.raw.hex()}
    document = problem_of(scenario.register(keys=keys), 422, "rejected")
    assert document["where"] == f"policy/keys/{role}"


@pytest.mark.parametrize(
    ("changes", "status", "name"),
    [
        ({"format": "ragaudit/v3/policy"}, 400, "malformed"),
        ({"window": "W 1"}, 400, "malformed"),
        ({"window": 1}, 400, "malformed"),
        ({"keys": None}, 400, "malformed"),
        ({"provider": "other"}, 422, "rejected"),
    ],
)
def test_what_cannot_be_filed_is_refused(
    scenario: Any, changes: Any, status: Any, name: Any
) -> None:
    problem_of(scenario.register(**changes), status, name)
    assert scenario.client.get(f"/v1/windows/{WINDOW}").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"policy": {}, "embedder": {}, "more": 1}',
        b'{"policy": {}, "policy": {}, "embedder": {}}',
        b'{"policy": {"x": 1.5}, "embedder": {}}',
        b'{"policy": {"x": NaN}, "embedder": {}}',
        b'{"policy": {"x": 1e3}, "embedder": {}}',
        b'{"policy": {"x": 99999999999999999999}, "embedder": {}}',
        b'{"policy": {"x": "\\ud800"}, "embedder": {}}',
        b'{"policy": {}, "embedder": {}',
        b"\xff",
        b'{"policy": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"policy": ' + b'{"a":' * 40 + b"1" + b"}" * 40 + b', "embedder": {}}',
    ],
)
def test_malformed_registrations(scenario: Any, body: Any) -> None:
    problem_of(scenario.send("POST", "/v1/windows", body), 400, "malformed-request")


def test_a_registration_has_a_limit(scenario: Any) -> None:
    body = b'{"policy": "' + b"x" * (8 * 2**20) + b'"}'
    problem_of(scenario.send("POST", "/v1/windows", body), 413, "too-large")


def test_a_body_of_unknown_length_has_the_limit_too(scenario: Any) -> None:
    pieces = [b"x" * 2**20] * 9
    headers = scenario.headers("POST", "/v1/windows", b"".join(pieces))
    answer = scenario.client.request("POST", "/v1/windows", content=iter(pieces), headers=headers)
    problem_of(answer, 413, "too-large")


def test_index_uploads(scenario: Any) -> None:
    problem_of(scenario.send("PUT", INDEX, index_of("t1", b"index")), 404, "not-found")
    scenario.register()
    assert scenario.send("PUT", INDEX, index_of("t1", b"index")).status_code == 204
    assert scenario.send("PUT", INDEX, index_of("t1", b"index")).status_code == 204
    problem_of(scenario.send("PUT", INDEX, index_of("t1", b"another")), 409, "conflict")
    problem_of(
        scenario.send("PUT", INDEX.replace("t1", "t9"), index_of("t9", b"index")), 404, "not-found"
    )
    problem_of(
        scenario.send("PUT", INDEX.replace("t1", "T"), index_of("t1", b"index")),
        400,
        "malformed-request",
    )


def test_an_index_larger_than_memory_and_chunk(scenario: Any) -> None:
    scenario.register()
    content = index_of("t1", b"proof", rows=100_000)
    assert scenario.send("PUT", INDEX, content).status_code == 204
    with scenario.service.database.read() as connection:
        assert windows.read_item(connection, ORIGIN, "public/index/t1/1.bin") == content


def test_an_index_after_the_countersignature(scenario: Any) -> None:
    scenario.open_anew()
    assert scenario.send("PUT", INDEX, index_of("t1", b"index")).status_code == 204
    problem_of(scenario.send("PUT", INDEX, index_of("t1", b"another")), 409, "conflict")


def test_no_countersignature_before_every_index(scenario: Any) -> None:
    scenario.register()
    problem_of(scenario.countersign(), 409, "conflict")
    scenario.send("PUT", INDEX, index_of("t1", b"index"))
    assert problem_of(scenario.countersign(), 409, "conflict")["where"] == "t2"


def test_another_opening_after_the_countersignature(scenario: Any) -> None:
    scenario.open_anew()
    for change in ({"salt": "22" * 32}, {"opening": "00"}, {"empty_checkpoint": "x"}):
        answer = scenario.send("POST", COUNTERSIGN, {**scenario.opening(), **change})
        problem_of(answer, 409, "conflict")


@pytest.mark.parametrize(
    "change", [{"salt": "11"}, {"salt": "ZZ" * 32}, {"opening": "abc"}, {"opening": 1}, {"x": 1}]
)
def test_malformed_openings(scenario: Any, change: Any) -> None:
    scenario.register()
    scenario.put_indexes()
    answer = scenario.send("POST", COUNTERSIGN, {**scenario.opening(), **change})
    problem_of(answer, 400, "malformed-request")


REFUSAL = canonical_json.dumps({"payload": "UkVGVVNFRA==", "signatures": []})


def test_a_refused_window_stays_refused(scenario: Any, auditor: Any) -> None:
    auditor.refusal = REFUSAL
    scenario.register()
    scenario.put_indexes()
    document = problem_of(scenario.countersign(), 422, "refused-window")
    assert document["verdict"] == canonical_json.loads(REFUSAL)
    auditor.refusal = None
    assert (
        problem_of(scenario.countersign(), 422, "refused-window")["verdict"] == document["verdict"]
    )
    assert scenario.client.get(f"/v1/windows/{WINDOW}/verdict").content == REFUSAL
    assert scenario.client.get(f"/v1/windows/{WINDOW}").json()["state"] == "refused"
    problem_of(scenario.send("PUT", INDEX, index_of("t1", b"another")), 409, "conflict")
    problem_of(scenario.client.get(f"/v1/windows/{WINDOW}/activations/1"), 409, "conflict")
    assert scenario.add_checkpoint(scenario.log.add_request(0)).status_code == 404


def test_no_countersignature_is_left_of_a_refused_window(scenario: Any, auditor: Any) -> None:
    auditor.refusal = REFUSAL
    scenario.register()
    scenario.put_indexes()
    scenario.countersign()
    with scenario.service.database.read() as connection:
        names = [item.name for item in windows.list_items(connection, ORIGIN)]
    assert "public/countersignature.json" not in names


def test_a_policy_with_unusable_tenants_reaches_the_checks(scenario: Any, auditor: Any) -> None:
    """Check 1 refuses it with a signed reason; it must not hang for want of an upload."""
    auditor.refusal = REFUSAL
    scenario.register(tenants=[{"id": "Not A Name"}, 7, {"id": 9}])
    problem_of(scenario.countersign(), 422, "refused-window")


class SlowAuditor(RecordingAuditor):
    """Checks that outlast the window's start."""

    clock: Any
    finished: int

    def check_opening(self, evidence: Any, now: Any) -> Any:
        self.seen.append(evidence)
        if now >= 1000 * min(START, *INSTANTS):
            return REFUSAL
        self.clock.at(self.finished)
        return None


@pytest.mark.parametrize(
    ("finished", "status"), [(INSTANTS[0] - 1, 200), (INSTANTS[0], 422), (START, 422)]
)
def test_checks_that_end_too_late_refuse(tmp_path: Path, finished: Any, status: Any) -> None:
    auditor = SlowAuditor()
    auditor.finished = finished
    scenario = VerifierScenario(tmp_path, auditor)
    auditor.clock = scenario.clock
    with scenario.running():
        scenario.register()
        scenario.put_indexes()
        assert scenario.countersign().status_code == status


class WaitingAuditor(RecordingAuditor):
    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = threading.Event(), threading.Event()

    def check_opening(self, evidence: Any, now: Any) -> Any:
        self.entered.set()
        assert self.go.wait(10)
        return super().check_opening(evidence, now)


def test_parallel_countersigning_checks_once(tmp_path: Path) -> None:
    auditor = WaitingAuditor()
    with VerifierScenario(tmp_path, auditor).running() as scenario:
        scenario.register()
        scenario.put_indexes()
        answers = []
        threads = [
            threading.Thread(target=lambda: answers.append(scenario.countersign()))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        assert auditor.entered.wait(10)
        auditor.go.set()
        for thread in threads:
            thread.join()
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content
    assert len(auditor.seen) == 1


def test_another_provider_cannot_touch_the_window(scenario: Any) -> None:
    other = seeded("other")
    providers.add(scenario.service.database, "other", other.public)
    scenario.register()
    for method, target, body in (
        ("PUT", INDEX, b"index"),
        ("POST", COUNTERSIGN, canonical_json.dumps(scenario.opening())),
    ):
        headers = scenario.headers(method, target, body, key=other, provider="other")
        answer = scenario.client.request(method, target, content=body, headers=headers)
        problem_of(answer, 404, "not-found")


def test_the_keys_are_what_a_policy_names(scenario: Any) -> None:
    found = scenario.client.get("/v1/keys").json()
    assert found == {**scenario.keys.public(), "time": scenario.clock.now}
    assert found["name"] in found["cosigner"]


def test_health_and_readiness(scenario: Any) -> None:
    assert scenario.client.get("/healthz").json() == {"status": "alive"}
    assert scenario.client.get("/readyz").json() == {"status": "ready"}
    scenario.clock.now -= 1
    problem_of(scenario.client.get("/readyz"), 503, "clock-stepped")


def test_unknown_paths_and_methods_are_problems(scenario: Any) -> None:
    problem_of(scenario.client.get("/nothing"), 404, "not-found")
    problem_of(scenario.client.delete("/v1/keys"), 405, "method-not-allowed")
    assert PROVIDER not in scenario.client.get("/nothing").text


class BrokenAuditor(RecordingAuditor):
    def check_opening(self, evidence: Any, now: Any) -> None:
        raise RuntimeError("secret detail")


def test_an_unexpected_error_shows_nothing(tmp_path: Path) -> None:
    with VerifierScenario(tmp_path, BrokenAuditor()).running() as scenario:
        scenario.register()
        scenario.put_indexes()
        document = problem_of(scenario.countersign(), 500, "internal")
        assert "secret" not in str(document)
