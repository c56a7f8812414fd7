"""The database away, full, read-only, damaged or restored: 503 and one line; on PostgreSQL too."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from postgresql_server import Server
from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)
from ragaudit.ledger.errors import RestoredBackup, StoreUnavailable
from ragaudit.ledger.log import database
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.serving.clock import system_clock
from ragaudit.verifier.history import FencePlace
from ragaudit.verifier.service.app import create_app
from ragaudit.verifier.service.database import Database, create_tables
from recording_auditor import RecordingAuditor
from sqlalchemy import event
from verifier_service_harness import (
    END,
    WINDOW,
    Story,
    VerifierScenario,
    problem_of,
)


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[Any]:
    with VerifierScenario(tmp_path, RecordingAuditor()).running() as running:
        running.open_window()
        yield running


def spoil(scenario: VerifierScenario, *pragmas: str) -> None:
    """From now on every connection of the service has these settings."""
    engine = scenario.service.database._engine

    def configure(connection: Any, _record: Any) -> None:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "connect", configure)
    engine.dispose()


def said(caplog: pytest.LogCaptureFixture) -> str:
    """The service's log, in which every record is one line without a traceback."""
    records = [each for each in caplog.records if each.name.startswith("ragaudit")]
    assert records
    for record in records:
        assert record.exc_info is None
        assert "\n" not in record.getMessage()
    text = " ".join(record.getMessage() for record in records)
    secrets = ("SELECT", "INSERT", "UPDATE", "parameters", "sqlalche.me", "Traceback")
    assert not [each for each in (*secrets, f"windows/{WINDOW}") if each in text]
    return text


@pytest.mark.parametrize(
    ("pragma", "reason"),
    [("query_only=ON", "SQLITE_READONLY"), ("max_page_count=1", "SQLITE_FULL")],
)
def test_what_cannot_be_written_is_503_and_one_line(
    scenario: Any, caplog: pytest.LogCaptureFixture, pragma: Any, reason: Any
) -> None:
    spoil(scenario, pragma)
    big = {"entries": [{"index": i, "kind": "registration", "salt": "00" * 32, "body": "ab" * 999}
                       for i in range(900)]}  # fmt: skip
    with caplog.at_level(logging.INFO):
        answer = scenario.send("POST", f"/v1/windows/{WINDOW}/entries", big)
    document = problem_of(answer, 503, "store-unavailable")
    assert reason in said(caplog)
    assert document.pop("instance") == f"/v1/windows/{WINDOW}/entries"
    assert "SELECT" not in str(document) and WINDOW not in str(document)
    # What only reads goes on.
    assert scenario.client.get(f"/v1/windows/{WINDOW}").status_code == 200


@pytest.mark.parametrize("damage", ["away", "damaged"])
def test_a_database_that_cannot_be_read(
    scenario: Any, caplog: pytest.LogCaptureFixture, damage: Any
) -> None:
    path = scenario.settings.data / "verifier.db"
    scenario.service.database._engine.dispose()
    for name in (path.name + "-wal", path.name + "-shm"):
        (path.parent / name).unlink(missing_ok=True)
    path.unlink()
    if damage == "away":
        path.mkdir()
    else:
        path.write_bytes(b"not a database at all" * 999)
    with caplog.at_level(logging.INFO):
        for answer in (
            scenario.client.get(f"/v1/windows/{WINDOW}"),
            scenario.client.get("/readyz"),
            scenario.send("POST", f"/v1/windows/{WINDOW}/entries", {"entries": []}),
        ):
            problem_of(answer, 503, "store-unavailable")
    said(caplog)


def test_a_tick_without_a_database_is_one_line(
    scenario: Any, caplog: pytest.LogCaptureFixture
) -> None:

    spoil(scenario, "query_only=ON")
    with pytest.raises(StoreUnavailable), scenario.service.database.write():
        pass


def test_a_disk_without_room_for_bodies(
    scenario: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_arguments: object, **_named: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile.write", full)
    with caplog.at_level(logging.INFO):
        answer = scenario.send("POST", f"/v1/windows/{WINDOW}/entries", {"entries": []})
    problem_of(answer, 503, "unavailable")
    assert "ENOSPC" in said(caplog)


# --- at the start ---------------------------------------------------------------------------------


def test_a_start_that_cannot_be_says_why(tmp_path: Path) -> None:
    scenario = VerifierScenario(tmp_path, RecordingAuditor())

    def start(**changes: object) -> None:
        create_app(scenario.settings.model_copy(update=changes), auditor=RecordingAuditor())

    (tmp_path / "file").write_text("x")
    with pytest.raises(UnavailableError, match="no folder"):
        start(data=tmp_path / "file" / "data")
    scenario.settings.data.mkdir()
    create_tables(scenario.settings.database_url)
    with pytest.raises(UnavailableError, match="fence cannot be opened"):
        start(fence=tmp_path / "file" / "fence")
    (tmp_path / "rubbish.db").write_bytes(b"not a database at all" * 999)
    with pytest.raises(UnavailableError, match="SQLITE_NOTADB"):
        start(database=f"sqlite:///{tmp_path / 'rubbish.db'}", fence=tmp_path / "f1")
    with pytest.raises(UnavailableError, match="cannot write"):
        start(database=f"sqlite:///{tmp_path / 'none' / 'x.db'}", fence=tmp_path / "f2")


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql2+x://u:secret@h/d", "postgresql://u:secret@:x/d"]
)
def test_a_database_url_that_is_none(url: str) -> None:
    with pytest.raises((MalformedError, UnsupportedError)) as caught:
        Database(url, system_clock)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_database_that_does_not_answer() -> None:
    with pytest.raises((UnavailableError, UnsupportedError)) as caught:
        Database("postgresql+psycopg://u:secret@127.0.0.1:1/d?connect_timeout=2", system_clock)
    assert "secret" not in str(caught.value)


def test_files_are_their_owners_only(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "verifier.db").touch(mode=0o644)  # as a copy may have it
        with VerifierScenario(tmp_path, RecordingAuditor()).running() as running:
            running.open_window()
            for path in (tmp_path / "data").iterdir():
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    finally:
        os.umask(before)


def opened(folder: Any) -> VerifierScenario:
    return VerifierScenario(folder, RecordingAuditor())


def test_a_missing_fence_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path).running() as scenario:
        scenario.register()
    scenario.settings.fence_path.unlink()
    with pytest.raises(RestoredBackup), opened(tmp_path).running():
        pass


def test_commands_before_the_first_start_need_no_fence(tmp_path: Path) -> None:
    scenario = opened(tmp_path)
    scenario.settings.data.mkdir()
    create_tables(scenario.settings.database_url)
    database = Database(scenario.settings.database_url, scenario.clock)
    with database.write():
        pass
    database.close()
    with scenario.running():
        assert scenario.client.get("/readyz").status_code == 200


def test_one_process_serves_a_database(tmp_path: Path) -> None:
    with opened(tmp_path).running() as first:
        assert first.client.get("/readyz").status_code == 200
        with pytest.raises(RefusedError), opened(tmp_path).running():
            pass


def test_what_still_runs_after_the_close_writes_nowhere(tmp_path: Path) -> None:
    """As a tick may that a shutdown abandoned, while another file has the fence's descriptor."""
    create_tables(f"sqlite:///{tmp_path}/verifier.db")
    place = FencePlace(tmp_path / "fence", "one")
    database = Database(f"sqlite:///{tmp_path}/verifier.db", lambda: 1, place)
    assert database._history is not None
    fence = database._history._fence
    descriptor = fence._file
    database.close()
    with (tmp_path / "secret").open("w+b") as file:
        os.dup2(file.fileno(), descriptor)
        with pytest.raises(StoreUnavailable, match="closed"), database.write():
            pass
        with pytest.raises(InternalError, match="open it again"):
            fence.advance(TreeHead(1, bytes(32)))
        file.seek(0)
        assert file.read() == b""


def test_what_the_fence_cannot_hold_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path).running() as scenario:
        scenario.open_window()

        def fail(*_given: object) -> int:
            raise OSError("disk full")

        with monkeypatch.context() as patched:
            patched.setattr("ragaudit.ledger.log.fence.os.pwrite", fail)
            answer = scenario.add_checkpoint(scenario.log.add_request(0))
            problem_of(answer, 503, "store-unavailable")
        problem_of(scenario.client.get("/readyz"), 503, "store-unavailable")  # type: ignore[arg-type]
        with pytest.raises(StoreUnavailable), scenario.service.database.write():
            pass


BASE = f"/v1/windows/{WINDOW}"


@pytest.fixture
def url(postgresql: Server) -> str:
    return postgresql.create("verifier")


@pytest.fixture
def remote(tmp_path: Path, url: str) -> Iterator[VerifierScenario]:
    made = VerifierScenario(tmp_path, RecordingAuditor())
    with made.running(made.settings.model_copy(update={"database": url})) as running:
        running.open_window()
        yield running


def test_a_window_to_its_sample(remote: VerifierScenario) -> None:
    story = Story(remote)
    story.send("POST", "entries", {"entries": story.documents()})
    final = story.cosign()
    remote.clock.at(END)
    assert story.send("PUT", "records", story.handover()).status_code == 204
    answer = story.send("POST", "close", {"final_checkpoint": final.decode()})
    assert answer.status_code == 204, answer.text
    shown = remote.client.get(BASE).json()
    assert (shown["state"], shown["counts"]["entries"]) == ("closed", len(story.documents()))


def test_a_server_that_goes_and_comes_back(
    remote: VerifierScenario, postgresql: Server, caplog: pytest.LogCaptureFixture
) -> None:
    postgresql.stop()
    try:
        with caplog.at_level(logging.INFO):
            for answer in (
                remote.client.get(BASE),
                remote.client.get("/readyz"),
                remote.send("POST", f"{BASE}/entries", {"entries": []}),
            ):
                problem_of(answer, 503, "store-unavailable")  # type: ignore[arg-type]
        said(caplog)
    finally:
        postgresql.start()
    assert remote.client.get("/readyz").status_code == 200
    assert remote.client.get(BASE).json()["state"] == "countersigned"


def test_sessions_that_are_cut_off(
    remote: VerifierScenario, postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a restart between two requests: the next one takes a new session."""
    monkeypatch.setattr(database, "_FRESH_SECONDS", 0)  # no restart is as fast as this
    postgresql.execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = 'verifier'"
    )
    assert remote.client.get("/readyz").status_code == 200


def test_a_read_only_server(
    remote: VerifierScenario, postgresql: Server, caplog: pytest.LogCaptureFixture
) -> None:
    postgresql.execute("ALTER DATABASE verifier SET default_transaction_read_only TO on")
    remote.service.database._engine.dispose()
    with caplog.at_level(logging.INFO):
        answer = remote.send("POST", f"{BASE}/entries", {"entries": []})
    problem_of(answer, 503, "store-unavailable")
    assert "ReadOnlySqlTransaction" in said(caplog)
    assert remote.client.get(BASE).status_code == 200  # what only reads goes on


def test_a_damaged_table(
    remote: VerifierScenario, postgresql: Server, caplog: pytest.LogCaptureFixture
) -> None:
    path = postgresql.execute("SELECT pg_relation_filepath('\"window\"')", "verifier")
    postgresql.execute("CHECKPOINT")
    postgresql.stop()
    try:
        with (postgresql.data / path).open("r+b") as file:
            file.seek(4096)
            file.write(b"damage")
    finally:
        postgresql.start()
    with caplog.at_level(logging.INFO):
        problem_of(remote.client.get(BASE), 503, "store-unavailable")  # type: ignore[arg-type]
    assert "DataCorrupted" in said(caplog)


def test_a_start_without_a_server(tmp_path: Path, postgresql: Server, url: str) -> None:
    remote = VerifierScenario(tmp_path, RecordingAuditor())
    changed = {"database": url, "database_wait_seconds": 0}
    settings = remote.settings.model_copy(update=changed)
    postgresql.stop()
    try:
        with pytest.raises(UnavailableError, match="the database failed"):
            create_app(settings, auditor=RecordingAuditor())
    finally:
        postgresql.start()
