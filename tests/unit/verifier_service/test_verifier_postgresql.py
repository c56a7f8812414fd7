"""The verifier on PostgreSQL; a server that is away, read-only or damaged is 503 and one line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgresql_server import Server
from ragaudit.encoding.errors import UnavailableError
from ragaudit.verifier.service.app import create_app
from verifier_service_harness import END, WINDOW, Desk, RecordingAuditor, Story, problem_of

BASE = f"/v1/windows/{WINDOW}"


@pytest.fixture
def url(postgresql: Server) -> str:
    return postgresql.create("verifier")


@pytest.fixture
def desk(tmp_path: Path, url: str) -> Iterator[Desk]:
    made = Desk(tmp_path, RecordingAuditor())
    with made.running(made.settings.model_copy(update={"database": url})) as running:
        running.open_window()
        yield running


def said(caplog: pytest.LogCaptureFixture) -> str:
    """What the service logged: one line a record, nothing of what is stored."""
    records = [each for each in caplog.records if each.name.startswith("ragaudit")]
    assert records
    for record in records:
        assert record.exc_info is None
        assert "\n" not in record.getMessage()
    text = " ".join(record.getMessage() for record in records)
    for secret in ("SELECT", "INSERT", "UPDATE", "parameters", "sqlalche.me", "Traceback", WINDOW):
        assert secret not in text
    return text


def test_a_window_to_its_sample(desk: Desk) -> None:
    story = Story(desk)
    story.send("POST", "entries", {"entries": story.documents()})
    final = story.cosign()
    desk.clock.at(END)
    assert story.send("PUT", "records", story.handover()).status_code == 204
    answer = story.send("POST", "close", {"final_checkpoint": final.decode()})
    assert answer.status_code == 204, answer.text
    shown = desk.client.get(BASE).json()
    assert (shown["state"], shown["counts"]["entries"]) == ("closed", len(story.documents()))


def test_a_server_that_goes_and_comes_back(
    desk: Desk, postgresql: Server, caplog: pytest.LogCaptureFixture
) -> None:
    postgresql.stop()
    try:
        with caplog.at_level(logging.INFO):
            for answer in (
                desk.client.get(BASE),
                desk.client.get("/readyz"),
                desk.send("POST", f"{BASE}/entries", {"entries": []}),
            ):
                problem_of(answer, 503, "store-unavailable")  # type: ignore[arg-type]
        said(caplog)
    finally:
        postgresql.start()
    assert desk.client.get("/readyz").status_code == 200
    assert desk.client.get(BASE).json()["state"] == "countersigned"


def test_sessions_that_are_cut_off(desk: Desk, postgresql: Server) -> None:
    """As by a restart between two requests: the next one takes a new session."""
    postgresql.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'verifier'"
    )
    assert desk.client.get("/readyz").status_code == 200


def test_a_read_only_server(
    desk: Desk, postgresql: Server, caplog: pytest.LogCaptureFixture
) -> None:
    postgresql.execute("ALTER DATABASE verifier SET default_transaction_read_only TO on")
    desk.service.database._engine.dispose()
    with caplog.at_level(logging.INFO):
        answer = desk.send("POST", f"{BASE}/entries", {"entries": []})
    problem_of(answer, 503, "store-unavailable")
    assert "ReadOnlySqlTransaction" in said(caplog)
    assert desk.client.get(BASE).status_code == 200  # what only reads goes on


def test_a_damaged_table(desk: Desk, postgresql: Server, caplog: pytest.LogCaptureFixture) -> None:
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
        problem_of(desk.client.get(BASE), 503, "store-unavailable")  # type: ignore[arg-type]
    assert "DataCorrupted" in said(caplog)


def test_a_start_without_a_server(tmp_path: Path, postgresql: Server, url: str) -> None:
    desk = Desk(tmp_path, RecordingAuditor())
    settings = desk.settings.model_copy(update={"database": url})
    postgresql.stop()
    try:
        with pytest.raises(UnavailableError, match="the database failed"):
            create_app(settings, auditor=RecordingAuditor())
    finally:
        postgresql.start()
