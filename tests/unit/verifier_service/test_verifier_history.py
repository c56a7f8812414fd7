"""A verifier whose database lost part of what it signed signs nothing more, and says what helps."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from databases import verifier_tables
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.errors import RestoredBackup, StoreUnavailable
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest
from ragaudit.ledger.log.database import write_transaction
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.bodies import OpeningBody
from ragaudit.verifier.history import HistoryLost
from ragaudit.verifier.service import cosigner, providers, tables, windows
from ragaudit.verifier.service.database import Database
from recording_auditor import RecordingAuditor
from restoring import BackUp
from sqlalchemy import update
from verifier_service_harness import (
    NOW,
    ORIGIN,
    SAMPLING,
    WINDOW,
    Story,
    VerifierScenario,
    problem_of,
)

BASE = f"/v1/windows/{WINDOW}"


@pytest.fixture(params=["sqlite", "postgresql"])
def opened(
    tmp_path: Path, request: pytest.FixtureRequest, make_database: Callable[..., str]
) -> Callable[[], VerifierScenario]:
    """Makes the service anew, on the same database."""
    url = None
    if request.param == "postgresql":
        url = make_database("postgresql", verifier_tables)

    def make() -> VerifierScenario:
        scenario = VerifierScenario(tmp_path, RecordingAuditor())
        if url is not None:
            scenario.settings = scenario.settings.model_copy(update={"database": url})
        return scenario

    return make


@pytest.fixture
def scenario(opened: Callable[[], VerifierScenario]) -> Iterator[VerifierScenario]:
    made = opened()
    with made.running():
        made.open_window()
        yield made


def grow(scenario: VerifierScenario, size: int, label: str = "leaf") -> bytes:
    """Let the log grow; the request to cosign it."""
    old = scenario.log.tree.size
    for index in range(old, size):
        scenario.log.tree.append(b"%s %d" % (label.encode(), index))
    return scenario.log.add_request(old)


def fork(scenario: VerifierScenario, old: int, size: int) -> bytes:
    """A request for another history after the first entries."""
    scenario.log.tree = MemoryTree(b"leaf %d" % index for index in range(old))
    return grow(scenario, size, "fork")


def sizes(scenario: VerifierScenario) -> list[int]:
    # Past the fence: what is in the database, and nothing that the service says.
    with write_transaction(scenario.service.database.engine) as connection:
        return [each.size for each in cosigner.all_of(connection, ORIGIN)]


def test_a_database_that_is_put_back_cosigns_nothing_more(
    scenario: VerifierScenario, opened: Callable[[], VerifierScenario]
) -> None:
    url = scenario.settings.database_url
    assert scenario.add_checkpoint(grow(scenario, 6)).status_code == 200
    with closing(BackUp(url)) as old:
        assert scenario.add_checkpoint(grow(scenario, 11)).status_code == 200
        with closing(BackUp(url)) as newest:
            old.restore()
            # Before anything was asked that writes: what only reads is behind, too.
            problem_of(scenario.client.get(BASE), 503, "history-lost")  # type: ignore[arg-type]
            problem_of(scenario.add_checkpoint(fork(scenario, 6, 11)), 503, "history-lost")
            ready = problem_of(scenario.client.get("/readyz"), 503, "history-lost")  # type: ignore[arg-type]
            assert "behind the fence" in ready["detail"] and "new keys" in ready["expected"]
            assert scenario.client.get("/healthz").status_code == 200
            with pytest.raises(HistoryLost):
                scenario.service.scheduler.tick()
            assert sizes(scenario) == [6]
            # A command that attests nothing, and has no fence, moves no mark on.
            with closing(Database(url, scenario.clock)) as database:
                providers.add(database, "else", seeded("else").public)
            problem_of(scenario.add_checkpoint(fork(scenario, 6, 11)), 503, "history-lost")
            scenario.service.close()
            with pytest.raises(RestoredBackup, match="behind the fence"), opened().running():
                pass
            # The way out: the database as it was, and a start.
            newest.restore()
    again = opened()
    with again.running():
        assert again.client.get("/readyz").status_code == 200
        grow(again, 11)
        assert again.add_checkpoint(grow(again, 12)).status_code == 200
        assert sizes(again) == [6, 11, 12]


def test_one_millisecond_is_enough_to_lose(scenario: VerifierScenario) -> None:
    """The clock stands still: times alone would not tell the back-up from the database."""
    with closing(BackUp(scenario.settings.database_url)) as old:
        assert scenario.add_checkpoint(grow(scenario, 5)).status_code == 200
        old.restore()
    problem_of(scenario.add_checkpoint(fork(scenario, 0, 5)), 503, "history-lost")


def test_a_part_of_the_database_that_is_put_back(
    scenario: VerifierScenario, opened: Callable[[], VerifierScenario]
) -> None:
    """A repaired file, or one table of a back-up: the mark is the last one, and rows are gone."""
    scenario.add_checkpoint(grow(scenario, 6))
    scenario.add_checkpoint(grow(scenario, 11))
    with write_transaction(scenario.service.database.engine) as connection:
        connection.execute(tables.checkpoint.delete().where(tables.checkpoint.c.size > 6))
    problem_of(scenario.add_checkpoint(fork(scenario, 6, 11)), 503, "history-lost")
    problem_of(scenario.client.get("/readyz"), 503, "history-lost")  # type: ignore[arg-type]
    scenario.service.close()
    with pytest.raises(RestoredBackup, match="a statement that left is gone"), opened().running():
        pass


def test_no_statement_leaves_a_second_time(tmp_path: Path) -> None:
    """Each of those that bind: what says that it left is taken out, and it is asked for again."""
    scenario = VerifierScenario(tmp_path, RecordingAuditor())
    with scenario.running():
        scenario.open_window()
        service, engine = scenario.service, scenario.service.database.engine
        Story(scenario).finish()
        scenario.clock.at(SAMPLING)
        assert scenario.client.get(f"{BASE}/activations/1").status_code == 200
        service.scheduler.tick()
        with write_transaction(engine) as connection:
            connection.execute(update(tables.window).values(sealed=1))
        service.runner._decide(ORIGIN, b"verdict")
        registrar, window = service.registrar, tables.window
        given = {"opening": b"", "empty_checkpoint": b""}
        request = OpeningBody.from_json(scenario.opening())
        with service.database.read() as connection:
            known = windows.get(connection, ORIGIN)

        def accept() -> None:
            registrar._accept(known, request, given, {})

        def release() -> None:
            answer = scenario.client.get(f"{BASE}/activations/1")
            problem_of(answer, 503, "history-lost")  # type: ignore[arg-type]
            raise HistoryLost(answer.json()["detail"])

        asked: dict[str, tuple[Any, Callable[[], Any]]] = {
            "receipts list": ("listed", lambda: service.sampler.sign_list(ORIGIN)),
            "challenge": ("challenged", lambda: service.sampler.draw(ORIGIN)),
            "verdict": ("decided", lambda: service.runner._decide(ORIGIN, b"another")),
            "countersignature": ("countersigned", accept),
            "activation": (None, release),
        }
        for name, (column, ask) in asked.items():
            with write_transaction(engine) as connection:
                if column is None:
                    connection.execute(tables.activation.delete())
                else:
                    forgotten = update(window).where(window.c.origin == ORIGIN)
                    connection.execute(forgotten.values({column: None}))
            if name == "countersignature":  # in time, as far as the database knows
                scenario.clock.now = NOW
                with write_transaction(engine) as connection:
                    connection.execute(update(tables.clock).values(latest=0))
            with pytest.raises(HistoryLost, match="a statement that left is gone"):
                ask()
            service.database._history._lost = None  # as of a new start, on a whole database
            with write_transaction(engine) as connection:
                times = {"listed": 1, "challenged": 1, "decided": 1, "countersigned": 1}
                connection.execute(update(window).values(times))
            scenario.clock.at(SAMPLING)


def test_a_commit_that_the_fence_does_not_know_is_no_loss(
    opened: Callable[[], VerifierScenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended between the two, again and again: no answer left, and the database is the newest."""
    first = opened()
    with first.running():
        first.open_window()
        first.add_checkpoint(grow(first, 3))
    for size in (4, 5, 6):
        each = opened()
        place, key = each.settings.fence_place, each.keys.cosigner
        each.log.tree = MemoryTree(b"leaf %d" % index for index in range(size - 1))
        with closing(Database(each.settings.database_url, each.clock, place)) as database:
            with monkeypatch.context() as patched, pytest.raises(StoreUnavailable, match="ENOSPC"):
                patched.setattr("ragaudit.ledger.log.fence.os.pwrite", _full)
                cosigner.add_checkpoint(database, key, grow(each, size), cap=100)
            with database.read() as connection:
                assert cosigner.all_of(connection, ORIGIN)[-1].size == size
            # Nothing more until the start: it would be two ahead of what the fence knows.
            with pytest.raises(StoreUnavailable, match="an earlier write failed"):
                database.check()


def _full(*_given: object) -> int:
    raise OSError(28, "No space left on device")


def test_a_fence_of_another_time_or_service(opened: Callable[[], VerifierScenario]) -> None:
    scenario = opened()
    path = scenario.settings.fence_path
    with scenario.running():
        scenario.open_window()
    earlier = path.read_bytes()
    with (again := opened()).running():
        again.add_checkpoint(grow(again, 4))
        again.add_checkpoint(grow(again, 5))
    newest = path.read_bytes()
    for content, error, said in (
        (earlier, RestoredBackup, "not the one beside which"),
        (newest.replace(b"regulator", b"regulates"), MalformedError, "of another log"),
        (None, RestoredBackup, "the fence is missing"),
    ):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(error, match=said), opened().running():
            pass
        path.touch()
    path.write_bytes(newest)
    with opened().running():
        pass


def test_a_file_that_is_copied_over_the_one_in_use(tmp_path: Path) -> None:
    """As `cp` does, the newer one's journal beside it: whatever is read, nothing forks."""
    scenario = VerifierScenario(tmp_path, RecordingAuditor())
    with scenario.running():
        scenario.open_window()
        scenario.add_checkpoint(grow(scenario, 6))
        path = tmp_path / "data" / "verifier.db"
        with closing(sqlite3.connect(path)) as live:
            live.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        old = path.read_bytes()
        scenario.add_checkpoint(grow(scenario, 11))
        with path.open("r+b") as file:
            file.write(old)
            file.truncate()
        answers = [scenario.add_checkpoint(fork(scenario, 6, size)) for size in (11, 12)]
        assert all(each.status_code in (409, 422, 500, 503) for each in answers), answers
    request = AddCheckpointRequest.parse(fork(scenario, 6, 11))
    assert request.old_size == 6
    try:
        with (again := VerifierScenario(tmp_path, RecordingAuditor())).running():
            assert again.add_checkpoint(fork(again, 6, 11)).status_code in (409, 422)
    except RestoredBackup:
        pass
