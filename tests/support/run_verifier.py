"""A verifier service of a test, which may go on from what another test's had done."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from types import NoneType
from typing import Any, Self

from fastapi import FastAPI
from fastapi.testclient import TestClient
from kept_folders import KeptFolder
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.clock import Clock
from ragaudit.ledger.errors import CorruptLog
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import providers, tables
from ragaudit.verifier.service.app import create_app
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.database import Database, create_tables
from ragaudit.verifier.settings import Settings, make_data_folder
from recording_auditor import RecordingAuditor
from sqlalchemy import Engine, func, select
from sqlalchemy.exc import DatabaseError

_kept: dict[str, KeptFolder] = {}


class RunVerifier:
    """A verifier that knows one provider.

    One without a database starts when it is first asked: until then it may go on from another's.
    """

    settings: Settings
    keys: VerifierKeys
    provider: str
    provider_key: PrivateKey
    open_anew: Callable[[], None]

    def __init__(self, folder: Path, auditor: Auditor | None, clock: Clock) -> None:
        self.folder = folder
        self.auditor = auditor
        self.clock = clock
        self._starting = Lock()

    @contextmanager
    def running(self, settings: Settings | None = None) -> Iterator[Self]:
        self._given = used = settings or self.settings
        make_data_folder(used)
        self._app: FastAPI | None = None
        # Of clocks and auditors of a test's own nobody knows what they have to do with a window.
        usual = type(self.clock) is Clock and type(self.auditor) in {RecordingAuditor, NoneType}
        here = not used.database and used.fence is None and used.data == self.folder / "data"
        self._fresh = usual and here and not (used.data / "verifier.db").exists()
        with ExitStack() as self._stack:
            if not self._fresh:
                self._start()
            yield self
            if self._app is None:
                return
            # Whatever a test did: the sums that decide what there is room for are the true ones.
            # Of a database that a test has spoiled there is nothing to say.
            with suppress(DatabaseError, CorruptLog):
                engine = self.service.database.engine
                assert summed_up(engine) == kept_sums(engine)

    def once(self, part: str, make: Callable[[], object], *about: object) -> None:
        """Make a part of the folder, or write it as it once was made."""
        like = repr((part, about)).replace(str(self.folder), "")
        if like in _kept:
            _kept[like].restore(self.folder)
        else:
            make()
            _kept[like] = KeptFolder.of(self.folder, (part,))

    def _start(self) -> None:
        if self._fresh:
            self.once("data", self._pin, self.clock, self.keys.public())
            self._fresh = False
        else:
            self._pin()
        self._app = create_app(self._given, clock=self.clock, auditor=self.auditor)
        client = TestClient(self._app, raise_server_exceptions=False)
        self._client = self._stack.enter_context(client)

    def _pin(self) -> None:
        create_tables(self._given.database_url)
        with closing(Database(self._given.database_url, self.clock)) as database:
            providers.add(database, self.provider, self.provider_key.public)

    @property
    def app(self) -> FastAPI:
        app: FastAPI = self.client.app  # type: ignore[assignment]
        return app

    @property
    def service(self) -> Any:
        return self.app.state.service

    @property
    def client(self) -> TestClient:
        with self._starting:
            if self._app is None:
                self._start()
        return self._client

    def open_window(self) -> None:
        """Open a window, or go on from one that was opened so; its auditor was another."""
        if self._fresh:
            self._fresh = False
            about = (self._given, self.auditor, self.clock, self.keys.public())
            self.once("data", self.open_anew, *about)
        else:
            self.open_anew()


def summed_up(engine: Engine) -> dict[tuple[str, str, bytes], int]:
    """Return what the documents of each window, kind and account take, bytes."""
    table = tables.submission
    owner = (table.c.window, table.c.kind, table.c.account)
    query = select(*owner, func.sum(func.length(table.c.document))).group_by(*owner)
    with engine.connect() as connection:
        return {
            (one, kind, account): size for one, kind, account, size in connection.execute(query)
        }


def kept_sums(engine: Engine) -> dict[tuple[str, str, bytes], int]:
    """Return the same as the service keeps it, without sums of nothing."""
    table = tables.submission_space
    query = select(table.c.window, table.c.kind, table.c.account, table.c.bytes)
    with engine.connect() as connection:
        rows = connection.execute(query.where(table.c.bytes != 0))
        return {(one, kind, account): size for one, kind, account, size in rows}
