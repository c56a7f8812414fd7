"""A cosigner of its own: the status table of tlog-witness, forks, parallel clients, restarts."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cosigner_service import LOG, ORIGIN, Clock, Log, make_settings, take_up
from fastapi.testclient import TestClient
from ragaudit.encoding.errors import RefusedError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.cosigner_protocol import (
    MAX_REQUEST_BYTES,
    AddCheckpointRequest,
    parse_conflict,
    parse_cosignatures,
)
from ragaudit.ledger.log.database import open_engine, write_transaction
from ragaudit.ledger.log.notes import ED25519, SigningKey, parse_note
from ragaudit.verifier.cosigner import settings as settings_files
from ragaudit.verifier.cosigner.app import create_app
from ragaudit.verifier.cosigner.store import metadata
from sqlalchemy import update

OTHER = SigningKey("other.example/log", ED25519, PrivateKey.from_seed(b"\x42" * 32))


class Service:
    """A cosigner behind a test client, with a clock that is set."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.settings = settings_files.load(path)
        self.keys = settings_files.load_keys(self.settings)
        self.clock = clock
        self.client = TestClient(create_app(self.settings, clock=clock))

    def post(self, body: bytes) -> Any:
        return self.client.post("/add-checkpoint", content=body)


@pytest.fixture(params=["sqlite", "postgresql"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    members: dict[str, Any] = {"algorithms": ["ed25519", "ml-dsa-44"]}
    if request.param == "postgresql":
        members["database"] = request.getfixturevalue("postgresql").create("cosigner")
    made = make_settings(tmp_path, **members)
    take_up(settings_files.load(made))
    return made


@pytest.fixture
def service(path: Path) -> Iterator[Service]:
    made = Service(path, Clock())
    with made.client:
        yield made


def test_a_checkpoint_is_cosigned_with_every_key_and_shown(service: Service) -> None:
    log = Log(3)
    answer = service.post(log.request(0))
    assert answer.status_code == 200
    note = parse_note(log.note()).with_signatures(parse_cosignatures(answer.content)).encode()
    policy = CosignerPolicy(tuple(key.verifier_key for key in service.keys), 2)
    checked = verify_cosigned(note, LOG.verifier_key, policy)
    assert {each.timestamp for each in checked.cosignatures} == {service.clock.now // 1000}
    shown = service.client.get(log.path)
    assert (shown.status_code, shown.content) == (200, note)
    assert shown.headers["content-type"] == "text/plain; charset=utf-8"


def test_the_log_grows_from_the_empty_tree_on(service: Service) -> None:
    log = Log()
    for count in (0, 1, 1, 5, 250):
        old = log.tree.size
        log.grow(count)
        service.clock.now += 1500
        assert service.post(log.request(old)).status_code == 200
        assert parse_note(service.client.get(log.path).content).text.split("\n")[1] == str(
            log.tree.size
        )


def test_the_same_checkpoint_gets_the_same_cosignatures(service: Service) -> None:
    log = Log(3)
    first = service.post(log.request(0))
    service.clock.now += 5000
    again = service.post(log.request(3))
    assert (again.status_code, again.content) == (200, first.content)


def test_a_key_that_came_later_cosigns_the_last_checkpoint_too(tmp_path: Path) -> None:
    path = make_settings(tmp_path)
    take_up(settings_files.load(path))
    log, clock = Log(3), Clock()
    with Service(path, clock).client as client:
        first = client.post("/add-checkpoint", content=log.request(0)).content
    path.write_text(
        path.read_text().replace('"data"', '"algorithms": ["ed25519", "ml-dsa-44"], "data"', 1)
    )
    later = Service(path, clock)
    with later.client:
        both = later.post(log.request(3))
    assert both.content.startswith(first) and len(parse_cosignatures(both.content)) == 2


def test_nothing_is_shown_before_something_was_cosigned(service: Service) -> None:
    log = Log(3)
    assert service.client.get(log.path).status_code == 404
    for bad in ("ab", "G" * 64, "A" * 64, "0" * 63, "0" * 64):
        assert service.client.get(f"/{bad}/checkpoint").status_code == 404


# --- the table


@pytest.mark.parametrize(
    "body",
    [
        b"", b"old 0\n", b"old x\n\n", b"old 0\n\nnot a note", b"\xff\xff\n\n",
        b"old 01\n\n" * 2, b"old -1\n\n" + Log(1).note(), b"new 0\n\n" + Log(1).note(),
        b"old 0\n" + b"A" * 43 + b"\n\n" + Log(1).note(), b"x" * (MAX_REQUEST_BYTES + 1),
        b"old 0\n" + (b"A" * 43 + b"=\n") * 64 + b"\n" + Log(1).note(),
        Log(3).request(0).replace(b"\n3\n", b"\n0\n"),  # no tree of size 0 has another root
    ],
)  # fmt: skip
def test_400_for_what_is_malformed(service: Service, body: bytes) -> None:
    answer = service.post(body)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_400_for_an_old_size_above_the_new_one(service: Service) -> None:
    request = AddCheckpointRequest(4, (), Log(3).note())
    assert service.post(request.encode()).status_code == 400
    service.post(Log(5).request(0))
    assert service.post(AddCheckpointRequest(5, (), Log(4).note()).encode()).status_code == 400


def test_403_for_another_key_of_a_known_origin(service: Service) -> None:
    thief = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(b"\x43" * 32))
    request = AddCheckpointRequest(0, (), Log(3).note(key=thief))
    assert service.post(request.encode()).status_code == 403
    assert service.client.get(Log().path).status_code == 404


def test_404_for_an_unknown_origin(service: Service) -> None:
    assert service.post(Log(3, key=OTHER).request(0)).status_code == 404


def test_409_with_the_size_for_another_old_size(service: Service) -> None:
    log = Log(5)
    service.post(log.request(0))
    log.grow(4)
    for old in (0, 3, 6, 9):
        answer = service.post(log.request(old))
        assert answer.status_code == 409
        assert answer.content == b"5\n"
        assert answer.headers["content-type"] == "text/x.tlog.size"
    assert service.post(log.request(parse_conflict(b"5\n"))).status_code == 200


def test_422_for_a_false_proof(service: Service) -> None:
    log = Log(5)
    service.post(log.request(0))
    log.grow(4)
    proof = log.tree.consistency_proof(5)
    for bad in (proof[:-1], (*proof, proof[0]), (), (bytes(32), *proof[1:])):
        assert service.post(AddCheckpointRequest(5, bad, log.note()).encode()).status_code == 422
    fresh = AddCheckpointRequest(0, (bytes(32),), Log(5, key=OTHER).note())
    take_up(service.settings, OTHER)
    assert service.post(fresh.encode()).status_code == 422  # a proof from the empty tree


@pytest.mark.parametrize(("size", "common"), [(5, 4), (5, 0), (8, 4), (16, 0)])
def test_422_for_a_fork_which_is_never_cosigned(service: Service, size: int, common: int) -> None:
    log = Log(5)
    service.post(log.request(0))
    before = service.client.get(log.path).content
    fork = Log(size, common)
    assert service.post(fork.request(5)).status_code == 422
    assert service.post(fork.request(0)).status_code == 409
    assert service.post(AddCheckpointRequest(5, (), fork.note()).encode()).status_code == 422
    assert service.client.get(log.path).content == before


def test_other_methods_and_paths(service: Service) -> None:
    assert service.client.get("/add-checkpoint").status_code == 405
    assert service.client.post("/").status_code == 404
    assert service.client.get("/healthz").json() == {"status": "alive"}
    assert service.client.get("/readyz").json() == {"status": "ready"}


# --- atomicity and durability


def test_of_parallel_forks_one_is_cosigned(service: Service) -> None:
    requests = [Log(1 + n % 7, common=0 if n % 2 else 7).request(0) for n in range(12)]
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda body=body: answers.append(service.post(body)))
        for body in requests
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    good = {answer.content for answer in answers if answer.status_code == 200}
    assert len(good) == 1, [answer.status_code for answer in answers]
    size = parse_note(service.client.get(Log().path).content).text.split("\n")[1]
    assert {a.content for a in answers if a.status_code == 409} == {f"{size}\n".encode()}


def test_two_clients_at_once_leave_one_history(service: Service) -> None:
    log = Log(40)
    seen: dict[int, bytes] = {}
    wrong: list[int] = []

    def push(step: int) -> None:
        old = 0
        for size in range(step, 40, step):
            for _ in range(80):
                answer = service.post(log.request(old, size) if old <= size else b"")
                if answer.status_code == 409:
                    old = parse_conflict(answer.content)
                if old > size or answer.status_code == 200:
                    break
            if answer.status_code == 200:
                seen.setdefault(size, answer.content)
                wrong.extend([size] if seen[size] != answer.content else [])
                old = size

    threads = [threading.Thread(target=push, args=(step,)) for step in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and 38 <= max(seen) <= 39
    assert parse_note(service.client.get(log.path).content).text == (
        f"{ORIGIN}\n{max(seen)}\n" + parse_note(log.note(max(seen))).text.split("\n")[2] + "\n"
    )


def test_what_was_cosigned_binds_after_a_restart(path: Path) -> None:
    clock, log = Clock(), Log(5)
    with Service(path, clock).client as client:
        client.post("/add-checkpoint", content=log.request(0))
    again = Service(path, clock)
    with again.client:
        assert again.post(Log(7, 3).request(5)).status_code == 422
        assert again.post(log.grow(2).request(5)).status_code == 200


def test_a_clock_that_went_back_cosigns_nothing(service: Service) -> None:
    log = Log(5)
    service.post(log.request(0))
    service.clock.now -= 1
    assert service.post(log.grow(1).request(5)).status_code == 503
    # What needs no new time is answered as before.
    assert service.post(log.request(4)).status_code == 409
    service.clock.now += 1
    assert service.post(log.request(5)).status_code == 200


def test_a_database_that_cannot_be_written_gives_no_cosignature(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(5)
    history = service.client.app.state.cosigner.store._history  # type: ignore[attr-defined]

    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(history, "advance", full)
    answer = service.post(log.request(0))
    assert answer.status_code == 503 and b"ENOSPC" in answer.content
    monkeypatch.undo()
    # It may have been kept, and then binds: nobody was told otherwise.
    assert service.post(Log(5, 0).request(5)).status_code == 422


def test_one_process_serves_a_database(service: Service, path: Path) -> None:
    with pytest.raises(RefusedError, match="another process"):
        create_app(service.settings, clock=service.clock)


def test_a_restored_backup_refuses_to_start(tmp_path: Path) -> None:
    clock, log, path = Clock(), Log(5), make_settings(tmp_path)
    settings = settings_files.load(path)
    take_up(settings)
    with Service(path, clock).client as client:
        client.post("/add-checkpoint", content=log.request(0))
    shutil.copytree(settings.data, tmp_path / "backup")
    clock.now += 1000
    with Service(path, clock).client as client:
        client.post("/add-checkpoint", content=log.grow(1).request(5))
    for file in settings.data.glob("cosigner.db*"):
        file.unlink()
    for file in (tmp_path / "backup").glob("cosigner.db*"):
        shutil.copy(file, settings.data)
    with pytest.raises(RestoredBackup, match="behind the fence"):
        create_app(settings, clock=clock)
    settings.fence_path.unlink()
    with pytest.raises(RestoredBackup, match="fence is missing"):
        create_app(settings, clock=clock)


def test_a_database_of_another_version_is_refused(path: Path) -> None:
    settings = settings_files.load(path)
    engine = open_engine(settings.database_url)
    with write_transaction(engine) as connection:
        connection.execute(update(metadata.tables["cosigner_state"]).values(schema=2))
    engine.dispose()
    with pytest.raises(UnsupportedError, match="version 2"):
        create_app(settings, clock=Clock())
