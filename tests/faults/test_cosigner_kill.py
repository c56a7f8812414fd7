"""SIGKILL of a cosigner's process: what was answered binds it for good."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from cosigner_service import CosignerProcess, Log
from ragaudit.ledger.log.cosigner_protocol import parse_conflict, parse_cosignatures
from ragaudit.ledger.log.notes import parse_note
from restoring import BackUp

pytestmark = pytest.mark.slow

ROUNDS = 4


@pytest.fixture
def process(tmp_path: Path) -> Iterator[CosignerProcess]:
    made = CosignerProcess(tmp_path / "cosigner")
    try:
        yield made
    finally:
        made.stop()


class Pusher(threading.Thread):
    """Grows a log one entry at a time, and remembers what it was given for each size."""

    def __init__(self, url: str, log: Log, acknowledged: dict[int, bytes]) -> None:
        super().__init__()
        self.url, self.log, self.acknowledged = url, log, acknowledged
        self.enough = threading.Event()
        self.wrong: list[str] = []

    def run(self) -> None:
        old, given = max(self.acknowledged, default=0), 0
        with httpx.Client(base_url=self.url, timeout=30) as client:
            while True:
                if self.log.tree.size <= old:
                    self.log.grow(1)
                try:
                    answer = client.post("/add-checkpoint", content=self.log.request(old))
                except httpx.HTTPError:
                    return  # killed
                if answer.status_code == 409:
                    old = parse_conflict(answer.content)
                elif answer.status_code == 200:
                    old = self.log.tree.size
                    self.acknowledged[old] = answer.content
                    given += 1
                    if given >= 5:
                        self.enough.set()
                else:
                    self.wrong.append(answer.text)
                    return


def test_after_every_kill_the_last_head_still_binds(process: CosignerProcess) -> None:
    log, acknowledged = Log(), dict[int, bytes]()
    for _ in range(ROUNDS):
        process.start()
        pusher = Pusher(process.url, log, acknowledged)
        pusher.start()
        assert pusher.enough.wait(60)
        process.kill()  # in the middle of whatever it was doing
        pusher.join(60)
        assert pusher.wrong == []
        process.start()
        largest = max(acknowledged)
        with httpx.Client(base_url=process.url, timeout=30) as client:
            note = parse_note(client.get(log.path).content)
            size = int(note.text.split("\n")[1])
            # At most the one head whose answer was cut off is beyond what was told.
            assert largest <= size <= log.tree.size
            if size == largest:
                (given,) = parse_cosignatures(acknowledged[largest])
                assert note.signatures[-1] == given
            fork = Log(size + 1, common=size - 1)
            assert client.post("/add-checkpoint", content=fork.request(size)).status_code == 422
            stale = client.post("/add-checkpoint", content=log.request(0))
            assert (stale.status_code, stale.content) == (409, f"{size}\n".encode())
        process.stop()


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_one_whose_database_was_put_back_never_signs_a_second_history(
    tmp_path: Path, engine: str, make_database: Callable[..., str]
) -> None:
    members = {"database": make_database("postgresql")} if engine == "postgresql" else {}
    process = CosignerProcess(tmp_path / "one", **members)
    url = process.settings.database_url

    def ask(log: Log, old: int) -> httpx.Response:
        return httpx.post(f"{process.url}/add-checkpoint", content=log.request(old))

    try:
        process.start()
        log = Log(6)
        assert ask(log, 0).status_code == 200
        old = BackUp(url)
        assert ask(log.grow(5), 6).status_code == 200
        newest = BackUp(url)
        old.restore()
        for request in (Log(11, 6), Log(12, 6)):
            assert ask(request, 6).status_code == 503
        ready = httpx.get(f"{process.url}/readyz")
        assert ready.status_code == 503 and "behind the fence" in ready.json()["detail"]
        process.kill()
        said = process.fails()
        assert "behind the fence" in said and "new keys" in said
        newest.restore()
        process.start()
        assert ask(Log(11, 6), 6).status_code == 409
        assert ask(Log(12, 6), 11).status_code == 422
        assert ask(log.grow(1), 11).status_code == 200
        for each in (old, newest):
            each.close()
    finally:
        process.stop()
