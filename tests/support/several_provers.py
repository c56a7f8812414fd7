"""Two provers on one PostgreSQL, and calls to them at the same time."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from ragaudit.prover.http.app import create_app
from ragaudit.prover.service import Service
from scenario import ProverScenario

PATIENCE = 120


@pytest.fixture
def join(first: ProverScenario) -> Iterator[Callable[..., ProverScenario]]:
    """A function that lets another process join; it need not be on the same machine."""
    joined: list[Service] = []

    def make(fences: Path | None = None) -> ProverScenario:
        settings = first.settings
        if fences is not None:
            store = settings.store.model_copy(update={"fence_folder": fences})
            settings = settings.model_copy(update={"store": store})
        app = create_app(settings, components=first.components)
        joined.append(app.state.service)
        api = TestClient(app, raise_server_exceptions=False)
        made = replace(first, service=app.state.service, api=api)
        take(made)
        return made

    yield make
    for service in joined:
        service.stop()


def take(scenario: ProverScenario) -> None:
    """As `Service.start` does, without threads: tests take each step."""
    scenario.service.store.serve()
    scenario.service._fences.take()
    scenario.service.leadership.attempt()


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    gate = threading.Barrier(len(calls))
    found: list[Any] = [None] * len(calls)

    def run(number: int) -> None:
        gate.wait(PATIENCE)
        try:
            found[number] = calls[number]()
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return found
