"""SIGKILL of the verifier's process: what was answered is kept, what is kept is one history."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosigner_protocol import (
    AddCheckpointRequest,
    parse_conflict,
    parse_cosignatures,
)
from ragaudit.ledger.log.notes import parse_note
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.verifier.service import cosigner, windows
from restoring import BackUp
from service_window import ServiceWindow
from verifier_process import ProcessScenario, VerifierProcess

ORIGIN = windows.of("rag.example", "w1")

pytestmark = pytest.mark.slow

ROUNDS = 4


@pytest.fixture
def process(tmp_path: Path) -> Iterator[VerifierProcess]:
    made = VerifierProcess(tmp_path)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def scenario(process: VerifierProcess) -> Iterator[ProcessScenario]:
    with closing(ProcessScenario(process)) as made:
        yield made


class Pusher(threading.Thread):
    """Grows the log one entry at a time and remembers every cosignature that it was given."""

    def __init__(self, url: str, window: ServiceWindow, acknowledged: dict[int, bytes]) -> None:
        super().__init__()
        self.url, self.window, self.acknowledged = url, window, acknowledged
        self.seen = threading.Event()
        self.wrong: list[str] = []

    def run(self) -> None:
        tree = self.window.tree
        old = max(self.acknowledged, default=0)
        with httpx.Client(base_url=self.url, timeout=30) as client:
            while True:
                if tree.size <= old:
                    tree.append(b"entry %d" % tree.size)
                try:
                    answer = client.post("/cosigner/add-checkpoint", content=self.request(old))
                except httpx.HTTPError:
                    return  # killed
                if answer.status_code == 409:
                    old = parse_conflict(answer.content)
                elif answer.status_code == 200:
                    self.acknowledged[tree.size] = answer.content
                    old = tree.size
                    self.seen.set()
                else:
                    self.wrong.append(answer.text)
                    return

    def request(self, old: int) -> bytes:
        window = self.window
        head = Checkpoint(window.origin, window.tree.head())
        proof = window.tree.consistency_proof(old) if old else ()
        return AddCheckpointRequest(
            old, proof, sign_checkpoint(head, window.log_key).encode()
        ).encode()


def stored(scenario: ProcessScenario) -> list[cosigner.StoredCheckpoint]:
    with scenario.service.database.read() as connection:
        return cosigner.all_of(connection, ORIGIN)


def test_killed_while_cosigning(process: Any, scenario: Any) -> None:
    process.start()
    window = ServiceWindow(scenario)
    window.open()
    acknowledged: dict[int, bytes] = {}
    for number in range(ROUNDS):
        pusher = Pusher(process.url, window, acknowledged)
        pusher.start()
        assert pusher.seen.wait(60)
        time.sleep(0.037 * (number + 1))
        process.kill()
        pusher.join()
        assert pusher.wrong == []
        process.start()
        _check_store(scenario, window, acknowledged)
        _check_fork_refused(scenario, window)


def test_a_full_disk_cosigns_nothing_and_forgets_nothing(process: Any, scenario: Any) -> None:
    """No file may grow any more: 503 and a problem; with room again, it goes on where it was."""
    process.start()
    window = ServiceWindow(scenario)
    window.open()
    acknowledged: dict[int, bytes] = {}
    files = process.settings.data.glob("verifier.db*")
    process.limit_files(max(file.stat().st_size for file in files) + 40_000)
    refused = 0
    while refused < 3:
        window.tree.append(b"entry %d" % window.tree.size)
        answer = _push(scenario, window, acknowledged)
        if answer.status_code == 200:
            acknowledged[window.tree.size] = answer.content
            continue
        assert answer.status_code == 503, answer.text
        assert answer.json()["type"] == "urn:ragaudit:problem:store-unavailable"
        assert "INSERT" not in answer.text and "Traceback" not in answer.text
        assert window.tree.size not in {each.head.size for each in stored(scenario)}
        refused += 1
    process.limit_files()
    answer = _push(scenario, window, acknowledged)
    if answer.status_code == 503:  # a fence whose write failed is opened again by a start only
        process.kill()
        process.start()
        answer = _push(scenario, window, acknowledged)
    assert answer.status_code == 200, answer.text
    acknowledged[window.tree.size] = answer.content
    process.kill()
    process.start()
    _check_store(scenario, window, acknowledged)
    _check_fork_refused(scenario, window)


def _push(scenario: Any, window: Any, acknowledged: dict[int, bytes]) -> httpx.Response:
    pusher = Pusher(scenario.process.url, window, acknowledged)
    answer: httpx.Response = scenario.add_checkpoint(pusher.request(max(acknowledged, default=0)))
    if answer.status_code == 409:
        answer = scenario.add_checkpoint(pusher.request(parse_conflict(answer.content)))
    return answer


def _check_store(scenario: Any, window: Any, acknowledged: Any) -> None:
    """Every answer is kept bit for bit, and at most the unanswered one is there besides."""
    known = {each.head.size: each for each in stored(scenario)}
    for size, answer in acknowledged.items():
        note = parse_note(known[size].note)
        assert note.signature_of(scenario.keys.cosigner.verifier_key) in parse_cosignatures(answer)
    for each in known.values():
        assert each.head == window.tree.head(each.head.size)
    times = [known[size].time for size in sorted(known)]
    assert times == sorted(times)


def _check_fork_refused(scenario: Any, window: Any) -> None:
    latest = stored(scenario)[-1].head.size
    fork = MemoryTree([b"fork %d" % index for index in range(latest)])
    for old, size in ((0, latest), (latest, latest), (0, 1)):
        head = Checkpoint(window.origin, fork.head(size))
        request = AddCheckpointRequest(old, (), sign_checkpoint(head, window.log_key).encode())
        assert scenario.add_checkpoint(request.encode()).status_code in (400, 409, 422)
    assert stored(scenario)[-1].head == window.tree.head(latest)


def test_killed_during_an_upload(process: Any, scenario: Any) -> None:
    process.start()
    window = ServiceWindow(scenario)
    super(ServiceWindow, window).open()
    embedder = window.model.manifest().to_json()
    document = {"policy": window.policy_json(), "embedder": embedder}
    assert scenario.send("POST", "/v1/windows", document).status_code == 201
    target = "/v1/windows/w1/tenants/acme/versions/1"
    content = window.indices["acme"].commitment.encode()
    headers = {**scenario.headers("PUT", target, content), "Content-Length": str(len(content))}

    def half() -> Iterator[Any]:
        yield content[: len(content) // 2]
        process.kill()
        yield content[len(content) // 2 :]

    with pytest.raises(httpx.HTTPError):
        scenario.client.request("PUT", target, content=half(), headers=headers)
    process.start()
    with scenario.service.database.read() as connection:
        assert windows.find_item(connection, ORIGIN, "public/index/acme/1.bin") is None
    for tenant, index in window.indices.items():
        path = f"/v1/windows/w1/tenants/{tenant}/versions/1"
        assert scenario.send("PUT", path, index.commitment.encode()).status_code == 204
    target = "/v1/windows/w1/countersign"
    first = scenario.send("POST", target, window.opening_request())
    assert first.status_code == 200
    process.kill()
    process.start()
    assert scenario.send("POST", target, window.opening_request()).content == first.content


def test_a_database_that_was_put_back_is_not_served(process: Any, scenario: Any) -> None:
    process.start()
    window = ServiceWindow(scenario)
    window.open()
    url = process.settings.database_url

    def cosign(size: int, old: int) -> Any:
        while window.tree.size < size:
            window.tree.append(b"entry %d" % window.tree.size)
        return scenario.add_checkpoint(Pusher(process.url, window, {}).request(old))

    assert cosign(6, 0).status_code == 200
    with closing(BackUp(url)) as older:
        assert cosign(11, 6).status_code == 200
        with closing(BackUp(url)) as newest:
            older.restore()
            assert cosign(12, 6).status_code == 503
            ready = scenario.client.get("/readyz")
            assert ready.status_code == 503 and "behind the fence" in ready.json()["detail"]
            process.kill()
            said = process.fails()
            assert "behind the fence" in said and "new keys" in said
            newest.restore()
    process.start()
    assert cosign(12, 11).status_code == 200
