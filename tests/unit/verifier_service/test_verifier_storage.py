"""The database away, full, read-only or damaged: 503 and one line, nothing of what is stored."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.errors import MalformedError, UnavailableError, UnsupportedError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.prover.store import tables as prover_tables
from ragaudit.prover.store.database import Store
from ragaudit.serving.clock import system_clock
from ragaudit.verifier.service import tables
from ragaudit.verifier.service.app import create_app
from ragaudit.verifier.service.database import Database
from sqlalchemy import event, update
from verifier_service_harness import WINDOW, Desk, RecordingAuditor, problem_of


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Any]:
    with Desk(tmp_path, RecordingAuditor()).running() as running:
        running.open_window()
        yield running


def spoil(desk: Desk, *pragmas: str) -> None:
    """From now on every connection of the service has these settings."""
    engine = desk.service.database._engine

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
    for secret in ("SELECT", "INSERT", "UPDATE", "parameters", "sqlalche.me", "Traceback", WINDOW):
        assert secret not in text
    return text


@pytest.mark.parametrize(
    ("pragma", "reason"),
    [("query_only=ON", "SQLITE_READONLY"), ("max_page_count=1", "SQLITE_FULL")],
)
def test_what_cannot_be_written_is_503_and_one_line(
    desk: Any, caplog: pytest.LogCaptureFixture, pragma: Any, reason: Any
) -> None:
    spoil(desk, pragma)
    big = {"entries": [{"index": i, "kind": "registration", "salt": "00" * 32, "body": "ab" * 999}
                       for i in range(900)]}  # fmt: skip
    with caplog.at_level(logging.INFO):
        answer = desk.send("POST", f"/v1/windows/{WINDOW}/entries", big)
    document = problem_of(answer, 503, "store-unavailable")
    assert reason in said(caplog)
    assert document.pop("instance") == f"/v1/windows/{WINDOW}/entries"
    assert "SELECT" not in str(document) and WINDOW not in str(document)
    # What only reads goes on.
    assert desk.client.get(f"/v1/windows/{WINDOW}").status_code == 200


@pytest.mark.parametrize("damage", ["away", "damaged"])
def test_a_database_that_cannot_be_read(
    desk: Any, caplog: pytest.LogCaptureFixture, damage: Any
) -> None:
    path = desk.settings.data / "verifier.db"
    desk.service.database._engine.dispose()
    for name in (path.name + "-wal", path.name + "-shm"):
        (path.parent / name).unlink(missing_ok=True)
    path.unlink()
    if damage == "away":
        path.mkdir()
    else:
        path.write_bytes(b"not a database at all" * 999)
    with caplog.at_level(logging.INFO):
        for answer in (
            desk.client.get(f"/v1/windows/{WINDOW}"),
            desk.client.get("/readyz"),
            desk.send("POST", f"/v1/windows/{WINDOW}/entries", {"entries": []}),
        ):
            problem_of(answer, 503, "store-unavailable")
    said(caplog)


def test_a_tick_without_a_database_is_one_line(desk: Any, caplog: pytest.LogCaptureFixture) -> None:

    spoil(desk, "query_only=ON")
    with pytest.raises(StoreUnavailable), desk.service.database.write():
        pass


def test_a_disk_without_room_for_bodies(
    desk: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_arguments: object, **_named: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile.write", full)
    with caplog.at_level(logging.INFO):
        answer = desk.send("POST", f"/v1/windows/{WINDOW}/entries", {"entries": []})
    problem_of(answer, 503, "unavailable")
    assert "ENOSPC" in said(caplog)


# --- at the start ---------------------------------------------------------------------------------


def test_a_start_that_cannot_be_says_why(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RecordingAuditor())

    def start(**changes: object) -> None:
        create_app(desk.settings.model_copy(update=changes), auditor=RecordingAuditor())

    (tmp_path / "file").write_text("x")
    with pytest.raises(UnavailableError, match="no folder"):
        start(data=tmp_path / "file" / "data")
    with pytest.raises(UnavailableError, match="fence cannot be opened"):
        start(fence=tmp_path / "file" / "fence")
    (tmp_path / "rubbish.db").write_bytes(b"not a database at all" * 999)
    with pytest.raises(UnavailableError, match="SQLITE_NOTADB"):
        start(database=f"sqlite:///{tmp_path / 'rubbish.db'}", fence=tmp_path / "f1")
    with pytest.raises(UnavailableError, match="cannot write"):
        start(database=f"sqlite:///{tmp_path / 'none' / 'x.db'}", fence=tmp_path / "f2")


def test_a_database_of_another_version_is_refused_as_by_the_prover(tmp_path: Path) -> None:
    mine, theirs = f"sqlite:///{tmp_path}/verifier.db", f"sqlite:///{tmp_path}/prover.db"
    database, store = Database(mine, system_clock), Store.create(theirs)
    with database.write() as transaction:
        transaction.connection.execute(update(tables.clock).values(schema=99))
    with store.write() as connection:
        connection.execute(update(prover_tables.schema).values(version=99))
    database.close()
    store.close()
    with pytest.raises(UnsupportedError, match="database of version 99") as verifiers:
        Database(mine, system_clock)
    with pytest.raises(UnsupportedError) as provers:
        Store.open(theirs)
    assert (verifiers.value.what, verifiers.value.where) == (provers.value.what, "store")


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
        (tmp_path / "data" / "verifier.db").touch(mode=0o644)  # of an earlier version
        with Desk(tmp_path, RecordingAuditor()).running() as running:
            running.open_window()
            for path in (tmp_path / "data").iterdir():
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    finally:
        os.umask(before)
