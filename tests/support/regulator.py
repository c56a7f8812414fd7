"""The verifier of the prover's scenarios."""

import threading
from pathlib import Path

from fastapi.testclient import TestClient
from ragaudit.lab.scenario.policy import small_terms_file
from ragaudit.lab.scenario.services import Clock
from ragaudit.serving.rounds import BeaconSettings
from ragaudit.verifier import keys
from ragaudit.verifier.service.app import create_app
from ragaudit.verifier.settings import Settings, make_data_folder
from starlette.types import Receive, Scope, Send


class Regulator:
    """The verifier of a scenario; it starts when it is first asked."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.clock = clock
        secrets, name = folder / "secrets", "regulator.example/cosigner"
        if not secrets.exists():
            keys.create(secrets, name)
        self.keys = keys.load(secrets, name).public()
        self.settings = Settings(
            name=name,
            data=folder / "data",
            secrets=secrets,
            terms=small_terms_file(folder),
            time_stamp_roots=roots if (roots := folder / "roots.pem").exists() else None,
            beacon=_beacon(folder),
            tick_seconds=0.05,
        )
        make_data_folder(self.settings)
        self._lock = threading.Lock()
        self._running: TestClient | None = None

    @property
    def started(self) -> bool:
        return self._running is not None

    @property
    def client(self) -> TestClient:
        with self._lock:
            if self._running is None:
                running = TestClient(create_app(self.settings, clock=self.clock))
                self._running = running.__enter__()
            return self._running

    def stop(self) -> None:
        if self._running is not None:
            self._running.__exit__()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.client.app(scope, receive, send)


def _beacon(folder: Path) -> BeaconSettings:
    """Of the folder's chain and rounds, where a test has put a chain there."""
    chain = folder / "chain.json"
    if not chain.exists():
        return BeaconSettings()
    sources = (str(folder / "first"), str(folder / "second"))
    return BeaconSettings(sources=sources, chain_file=chain, every_seconds=0.1)
