"""The cosigner: the status table of tlog-witness, forks, parallel requests, restarts."""

import threading
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.cosigner_protocol import (
    AddCheckpointRequest,
    parse_conflict,
    parse_cosignatures,
)
from ragaudit.ledger.log.notes import ED25519, SigningKey, parse_note, sign_note
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.verifier.service import cosigner, windows
from ragaudit.verifier.settings import Limits
from verifier_service_harness import ORIGIN, SAMPLING, Log, VerifierScenario, problem_of

pytestmark = ON_EACH_ENGINE


@pytest.fixture
def opened(scenario: Any) -> Any:
    scenario.open_window()
    return scenario


def grow(scenario: Any, count: int) -> None:
    for _ in range(count):
        scenario.log.tree.append(sha256(str(scenario.log.tree.size).encode()).digest())


def fork_of(scenario: Any, size: int, common: int) -> Log:
    tree = MemoryTree()
    for index in range(size):
        label = str(index) if index < common else f"fork {index}"
        tree.append(sha256(label.encode()).digest())
    return Log(scenario.log.key, tree)


def opened_policy(scenario: Any) -> Any:
    with scenario.service.database.read() as connection:
        window = windows.get(connection, ORIGIN)
        return windows.policy(connection, window)


def stored(scenario: Any) -> Any:
    with scenario.service.database.read() as connection:
        return cosigner.all_of(connection, ORIGIN)


def test_a_checkpoint_is_cosigned_with_the_verifiers_clock(opened: Any) -> None:
    grow(opened, 3)
    answer = opened.add_checkpoint(opened.log.add_request(0))
    assert answer.status_code == 200
    note = parse_note(opened.log.checkpoint()).with_signatures(parse_cosignatures(answer.content))
    policy = CosignerPolicy((opened.keys.cosigner.verifier_key,), 1)
    cosigned = verify_cosigned(note.encode(), opened.log.key.verifier_key, policy)
    assert cosigned.quorum_time == opened.clock.now // 1000
    assert [each.note for each in stored(opened)] == [note.encode()]


def test_the_log_grows(opened: Any) -> None:
    sizes = []
    for count in (0, 1, 1, 5, 250):
        old = opened.log.tree.size
        grow(opened, count)
        opened.clock.now += 1500
        assert opened.add_checkpoint(opened.log.add_request(old)).status_code == 200
        sizes.append(opened.log.tree.size)
    assert [each.head.size for each in stored(opened)] == sizes
    times = [each.time for each in stored(opened)]
    assert times == sorted(times)
    digest = sha256(opened.log.key.name.encode()).hexdigest()
    latest = opened.client.get(f"/cosigner/{digest}/checkpoint")
    assert latest.content == stored(opened)[-1].note


def test_the_same_checkpoint_gets_the_same_cosignature(opened: Any) -> None:
    grow(opened, 3)
    first = opened.add_checkpoint(opened.log.add_request(0))
    opened.clock.now += 5000
    again = opened.add_checkpoint(opened.log.add_request(3))
    assert (again.status_code, again.content) == (200, first.content)
    assert len(stored(opened)) == 1


def test_a_request_that_waited_longer_than_the_skew_is_not_cosigned(opened: Any) -> None:
    grow(opened, 3)
    skew = 1000 * opened_policy(opened).clock_skew_seconds
    body = opened.log.add_request(0)
    late = opened.add_checkpoint(body, read=opened.clock.now - skew - 1000)
    assert late.status_code == 503 and b"skew" in late.content
    assert stored(opened) == []
    ahead = opened.add_checkpoint(body, read=opened.clock.now + skew + 1)
    assert ahead.status_code == 503 and "clocks differ" in ahead.text
    assert opened.add_checkpoint(body, read=opened.clock.now - skew).status_code == 200
    # The one that is there already says nothing new, so it may be as late as it likes.
    again = opened.add_checkpoint(opened.log.add_request(3), read=opened.clock.now - 10 * skew)
    assert again.status_code == 200


@pytest.mark.parametrize("read", ["-1", "soon", str(2**60)])
def test_the_time_of_a_request_is_a_time(opened: Any, read: Any) -> None:
    grow(opened, 3)
    headers = {"Ragaudit-Time": read}
    body = opened.log.add_request(0)
    answer = opened.client.post("/cosigner/add-checkpoint", content=body, headers=headers)
    assert answer.status_code == 400


def test_a_retry_after_a_lost_answer(opened: Any) -> None:
    grow(opened, 3)
    opened.add_checkpoint(opened.log.add_request(0))
    lost = opened.add_checkpoint(opened.log.add_request(0))
    assert lost.status_code == 409
    assert lost.headers["content-type"] == "text/x.tlog.size"
    assert parse_conflict(lost.content) == 3
    assert opened.add_checkpoint(opened.log.add_request(3)).status_code == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"old 0\n", b"old x\n\n", b"old 0\n\nnot a note", b"\xff\xff\n\n", b"old 01\n\n" * 2],
)
def test_malformed_requests(opened: Any, body: Any) -> None:
    answer = opened.add_checkpoint(body)
    assert answer.status_code == 400
    assert stored(opened) == []


def test_a_request_has_a_limit(opened: Any) -> None:
    problem_of(opened.add_checkpoint(b"x" * (2**18 + 5000)), 413, "too-large")


def test_old_size_above_the_new_one(opened: Any) -> None:
    grow(opened, 3)
    request = AddCheckpointRequest(4, (), opened.log.checkpoint())
    assert opened.add_checkpoint(request.encode()).status_code == 400


def test_another_signer(opened: Any) -> None:
    other = SigningKey(opened.log.key.name, ED25519, seeded("thief"))
    request = AddCheckpointRequest(0, (), opened.log.checkpoint(key=other))
    assert opened.add_checkpoint(request.encode()).status_code == 403
    assert stored(opened) == []


def test_unknown_and_not_yet_countersigned_origins(scenario: Any) -> None:
    assert scenario.add_checkpoint(scenario.log.add_request(0)).status_code == 404
    scenario.register()
    assert scenario.add_checkpoint(scenario.log.add_request(0)).status_code == 404


def test_a_truncated_proof(opened: Any) -> None:
    grow(opened, 5)
    opened.add_checkpoint(opened.log.add_request(0))
    grow(opened, 4)
    proof = opened.log.tree.consistency_proof(5)
    for bad in (proof[:-1], (*proof, proof[0]), (), (bytes(32), *proof[1:])):
        request = AddCheckpointRequest(5, bad, opened.log.checkpoint())
        assert opened.add_checkpoint(request.encode()).status_code == 422


def test_a_proof_from_the_empty_tree(opened: Any) -> None:
    grow(opened, 5)
    request = AddCheckpointRequest(0, (bytes(32),), opened.log.checkpoint())
    assert opened.add_checkpoint(request.encode()).status_code == 422


@pytest.mark.parametrize(("size", "common"), [(5, 4), (5, 0), (8, 4), (16, 0)])
def test_a_fork_is_never_cosigned(opened: Any, size: Any, common: Any) -> None:
    grow(opened, 5)
    opened.add_checkpoint(opened.log.add_request(0))
    before = stored(opened)
    fork = fork_of(opened, size, common)
    assert opened.add_checkpoint(fork.add_request(5)).status_code == 422
    assert opened.add_checkpoint(fork.add_request(0)).status_code == 409
    mixed = AddCheckpointRequest(5, (), fork.checkpoint())
    assert opened.add_checkpoint(mixed.encode()).status_code == 422
    assert stored(opened) == before


def test_a_smaller_tree_is_never_cosigned(opened: Any) -> None:
    grow(opened, 5)
    opened.add_checkpoint(opened.log.add_request(0))
    for old in (0, 3, 4):
        request = AddCheckpointRequest(old, (), opened.log.checkpoint(4))
        assert opened.add_checkpoint(request.encode()).status_code == 409
    request = AddCheckpointRequest(5, (), opened.log.checkpoint(4))
    assert opened.add_checkpoint(request.encode()).status_code == 400


def test_of_two_parallel_forks_one_is_cosigned(opened: Any) -> None:
    """All requests race from the empty tree; whichever wins, nothing inconsistent is signed."""
    requests = [
        fork_of(opened, 1 + n % 7, common=0 if n % 2 else 7).add_request(0) for n in range(12)
    ]
    answers = []
    threads = [
        threading.Thread(target=lambda body=body: answers.append(opened.add_checkpoint(body)))
        for body in requests
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses.count(200) == len(stored(opened)) == 1
    assert set(statuses) == {200, 409}


def test_parallel_growth_stays_one_history(opened: Any) -> None:
    grow(opened, 40)
    answers = []

    def push(start: int) -> None:
        for size in range(start, 41, 4):
            old = 0
            for _ in range(50):
                answer = opened.add_checkpoint(opened.log.add_request(old, size))
                if answer.status_code != 409 or parse_conflict(answer.content) > size:
                    break
                old = parse_conflict(answer.content)
            answers.append((size, answer.status_code))

    threads = [threading.Thread(target=push, args=(start,)) for start in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {status for _, status in answers} <= {200, 409}
    for each in stored(opened):
        assert each.head == opened.log.tree.head(each.head.size)
    assert stored(opened)[-1].head.size == 40


def test_the_store_survives_a_restart(tmp_path: Path, auditor: Any) -> None:
    first = VerifierScenario(tmp_path, auditor)
    with first.running():
        first.open_window()
        grow(first, 3)
        assert first.add_checkpoint(first.log.add_request(0)).status_code == 200
    second = VerifierScenario(tmp_path, auditor)
    with second.running():
        assert second.add_checkpoint(fork_of(second, 4, 0).add_request(0)).status_code == 409
        assert second.add_checkpoint(fork_of(second, 4, 0).add_request(3)).status_code == 422
        second.log = first.log
        grow(second, 1)
        assert second.add_checkpoint(second.log.add_request(3)).status_code == 200
        assert [each.head.size for each in stored(second)] == [3, 4]


def test_nothing_is_cosigned_from_the_sampling_instant_on(opened: Any) -> None:
    grow(opened, 1)
    opened.clock.now = 1000 * SAMPLING - 1
    assert opened.add_checkpoint(opened.log.add_request(0)).status_code == 200
    opened.clock.now = 1000 * SAMPLING
    assert opened.add_checkpoint(opened.log.add_request(1)).status_code == 403
    grow(opened, 1)
    assert opened.add_checkpoint(opened.log.add_request(1)).status_code == 403
    assert len(stored(opened)) == 1


def test_nothing_is_cosigned_while_the_clock_is_behind(opened: Any) -> None:
    grow(opened, 1)
    opened.add_checkpoint(opened.log.add_request(0))
    grow(opened, 1)
    opened.clock.now -= 1
    problem_of(opened.add_checkpoint(opened.log.add_request(1)), 503, "clock-stepped")
    assert len(stored(opened)) == 1
    opened.clock.now += 1
    assert opened.add_checkpoint(opened.log.add_request(1)).status_code == 200


def test_lines_of_other_keys_are_not_kept(opened: Any) -> None:
    grow(opened, 1)
    other = SigningKey("other.example/log", ED25519, seeded("other"))
    note = parse_note(opened.log.checkpoint())
    padded = note.with_signatures([sign_note(note.text, other)])
    request = AddCheckpointRequest(0, (), padded.encode())
    assert opened.add_checkpoint(request.encode()).status_code == 200
    assert b"other.example" not in stored(opened)[0].note


def test_checkpoints_have_a_cap(tmp_path: Path, auditor: Any) -> None:
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running():
        scenario.open_window()
        # As after a start with less: nothing is countersigned under such a limit.
        settings = scenario.settings.model_copy(update={"limits": Limits(checkpoints=2)})
        scenario.app.state.service = replace(scenario.service, settings=settings)
        for old in (0, 1):
            grow(scenario, 1)
            assert scenario.add_checkpoint(scenario.log.add_request(old)).status_code == 200
        grow(scenario, 1)
        assert scenario.add_checkpoint(scenario.log.add_request(2)).status_code == 429
        assert scenario.add_checkpoint(scenario.log.add_request(2, 2)).status_code == 200


def test_no_checkpoint_of_an_unknown_log(opened: Any) -> None:
    problem_of(opened.client.get(f"/cosigner/{'00' * 32}/checkpoint"), 404, "not-found")
    problem_of(opened.client.get("/cosigner/xyz/checkpoint"), 400, "malformed-request")
    digest = sha256(opened.log.key.name.encode()).hexdigest()
    problem_of(opened.client.get(f"/cosigner/{digest}/checkpoint"), 404, "not-found")
