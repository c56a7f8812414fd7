"""A process that starts waits for a database server, and not for what waiting does not mend."""

import logging
from pathlib import Path

import pytest
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.database import await_server
from sqlalchemy.exc import OperationalError

URL = "postgresql+psycopg://u:secret@127.0.0.1:1/d"


class Session:
    """One that somebody got."""

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


class Server:
    """One that declines so often, with these words; and a clock."""

    name = "postgresql"

    def __init__(self, words: str, often: float) -> None:
        self.words, self.often = words, often
        self.now, self.asked = 0.0, 0

    def connect(self) -> Session:
        self.asked += 1
        if self.asked > self.often:
            return Session()
        raise OperationalError("", {}, Exception(f"connection failed: {self.words}\nmore"))

    def dispose(self) -> None:
        self.asked += 1000

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def time(self) -> float:
        return self.now


def test_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for words, often, seconds, raised, asked in (
        ("", 0, 60, False, 1),
        ("connection refused", 3, 60, False, 4),
        ("FATAL:  the database system is starting up", 10, 60, False, 11),
        ("FATAL:  das Datenbanksystem startet", 10, 60, False, 11),
        ("connection refused", float("inf"), 5, True, 11),
        ("connection refused", 1, 0, True, 1),
        ('FATAL:  password authentication failed for user "u"', 1, 60, True, 1),
        ('FATAL:  database "d" does not exist', 1, 60, True, 1),
        ("FATAL:  no pg_hba.conf entry for host", 1, 60, True, 1),
    ):
        server = Server(words, often)
        monkeypatch.setattr("ragaudit.ledger.log.database.open_engine", lambda _, made=server: made)
        caplog.clear()
        failed = ""
        with caplog.at_level(logging.WARNING):
            try:
                await_server(URL, seconds, clock=server.time, pause=server.pause)
            except StoreUnavailable as error:
                failed = error.what
        assert (words in failed and failed != "") is raised, words
        assert server.asked == 1000 + asked, words  # and let go of
        # Said once, without the password.
        lines = [each.getMessage() for each in caplog.records]
        assert len(lines) == (asked > 1) and "secret" not in "".join(lines), words


def test_a_file_is_not_waited_for(tmp_path: Path) -> None:
    def pause(_: float) -> None:
        raise AssertionError("waits")

    await_server(f"sqlite:///{tmp_path}/none/x.db", 60, pause=pause)
    with pytest.raises(MalformedError):
        await_server("nonsense", 60, pause=pause)
