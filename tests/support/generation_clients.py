"""Clients of the library, which ask the generation channel of a real prover."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from generation_channel import CHANNEL, TERMS, records
from ragaudit.client import Client
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.states import State
from scenario import ProverScenario

Open = Callable[..., Client]


class Crash(BaseException):
    """The client's process ends here."""


def crash(*_: Any, **__: Any) -> Any:
    raise Crash


@pytest.fixture
def opened(channel: ProverScenario, tmp_path: Path) -> Iterator[Open]:
    """As `clients_of`, of a window that is nothing else."""
    yield from clients_of(channel, tmp_path)


def clients_of(scenario: ProverScenario, folder: Path, **terms: Any) -> Iterator[Open]:
    """Yield a function that gives a client of bob, anchored, or of ada, plain; the window is open.

    Args:
        folder: for the state of bob's.
        terms: of the window, beside those of the channel.
    """
    clients = list[Client]()
    keys = scenario.verifier.get("/v1/keys").json()

    def make(account: str = "bob") -> Client:
        # Each its own: an application of another test's would be of another event loop.
        more: Any = {"state_dir": folder / "state"} if account == "bob" else {"anchored": False}
        client = Client(
            "http://prover",
            scenario.keys[account],
            verifier_url="http://verifier",
            verifier_key=keys["verifier"],
            clock=scenario.clock,
            transport=httpx.ASGITransport(scenario.api.app),
            verifier_transport=httpx.ASGITransport(scenario.verifier.app),
            **more,
        )
        clients.append(client)
        return client

    StoredDocuments(scenario.service.store).add("one", records(), replace=True)
    scenario.create(**{**TERMS, "generation": CHANNEL, **terms})
    scenario.drive(State.COUNTERSIGNED)
    for account in ("ada", "bob"):
        client = make(account)
        client.register()
        client.close()
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)
    yield make
    for client in clients:
        client.close()
