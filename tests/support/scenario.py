"""Fixtures over the scenario of the laboratory.

A prover and the real verifier in one process, on one clock that the tests set; and an honest
window for cheats to go on from.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from kept_folders import KeptFolder
from procedure_cases import use_cached_table
from ragaudit.embedders import registry
from ragaudit.embedders.base import Embedder
from ragaudit.embedders.wordllama import WordLlamaEmbedder
from ragaudit.encoding.text import b64_decode
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.scenario import ExactScenario, Prepared, Scenario
from ragaudit.lab.scenario.services import AppTransport, Clock, Loop, documents
from ragaudit.ledger.messages.chains import NonceChain
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.command.set_up import set_up
from ragaudit.prover.http.app import create_app
from ragaudit.prover.service import Components, Service
from ragaudit.prover.settings import Settings, load_settings
from ragaudit.prover.store.accounts import Account, Accounts
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State
from ragaudit.verifier.service import providers
from ragaudit.verifier.service.database import Database, create_tables
from regulator import Regulator

START = 1_790_000_000_000
ROWS = 12
WINDOW = {
    "opens_after_seconds": 60,
    "length_seconds": 600,
    "activation_every_seconds": 100,
    "sampling_after_seconds": 60,
    "merge_delay_seconds": 55,
    "sigma": "40",
    "epsilon_acc": None,
    "top_k_max": 4,
    "queries_per_account": 6,
    "retry_seconds": 0,
    "slots": 4,
    "coalition_max": 2,
    "promise_life_seconds": 300,
    "release_seconds": 60,
    "audit": {"mode": "A", "deadline_seconds": 600},
}


ELSEWHERE = {"RAGAUDIT_PROVER__STORE__URL", "RAGAUDIT_VERIFIER__DATABASE"}
"""Variables of a test whose databases are not in its folder."""
NOT_OPENING = {
    *("mechanism", "stages", "promises", "closing", "challenges", "refresher", "watcher"),
    *("pause", "embedder", "transport", "clock"),
}
"""Components that have no part in a window until it is open, or are looked at one by one."""
EVERYBODY = ("ada", "bob", "cyd")
KEPT_WINDOWS = 16  # of a megabyte each


@dataclass(frozen=True)
class Kept:
    """A window that is open, from which another scenario goes on."""

    folder: KeptFolder
    now: int
    chains: dict[str, NonceChain]
    said: tuple[dict[str, Any], dict[str, Any], list[tuple[str, str]]]


_set_up: list[tuple[KeptFolder, dict[str, str]]] = []
_opened: dict[bytes | None, Kept] = {}
STANDARD = Components()


@dataclass
class ProverScenario:
    """Everything a test needs; `service` is not started: `drive` takes the steps."""

    folder: Path
    clock: Clock
    regulator: Regulator
    transport: AppTransport
    settings: Settings
    components: Components
    service: Service
    api: TestClient
    keys: dict[str, str]
    chains: dict[str, NonceChain] = field(default_factory=dict)

    @property
    def verifier(self) -> TestClient:
        return self.regulator.client

    def headers(self, account: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[account]}"}

    @property
    def operator(self) -> dict[str, str]:
        token = (self.folder / "prover/keys/operator.token").read_text().strip()
        return {"Authorization": f"Bearer {token}"}

    def create(self, name: str = "w1", **overrides: Any) -> None:
        self.service.create_window(name, {**WINDOW, **overrides})

    def state(self, name: str = "w1") -> State:
        return self.service.windows.get(name).state

    def policy(self, name: str = "w1") -> Any:
        return self.service.open_windows.get(name).policy

    def drive(self, until: State, name: str = "w1") -> None:
        """Take steps, with the cosigner's, until the window is in a state."""
        for _ in range(50):
            if self.state(name) == until:
                return
            self.service.driver.step(name)
            if self.service.windows.get(name).countersignature is not None:
                self.service.driver.checkpoint(name)
        raise AssertionError(f"{self.state(name)} instead of {until}")

    def close(self) -> None:
        """Go to the window's end, where it closes."""
        self.clock.at(self.policy().end)
        self.drive(State.CLOSED)

    def hand_over(self) -> None:
        """Close the window, and hand its log over."""
        self.close()
        self.service.driver.step("w1")

    def draw(self) -> None:
        """Go to when the challenge is stored, and nothing is opened yet."""
        self.clock.at(self.policy().sampling_instant)
        self.drive(State.CHALLENGED)

    def decide(self, steps: int = 500) -> dict[str, Any]:
        """Open what was drawn, hand it over, and return the verdict's predicate.

        Args:
            steps: in which the verifier's audit has to end.
        """
        self.service.driver.step("w1")
        self.clock.at(self.policy().release_time // 1000)
        for _ in range(steps):
            if self.state() is State.ARCHIVED:
                break
            self.service.driver.step("w1")
            self.verifier.get("/v1/windows/w1/progress")
        envelope = json.loads(self.service.windows.get("w1").verdict or "{}")
        predicate: dict[str, Any] = json.loads(b64_decode(envelope["payload"]))["predicate"]
        return predicate

    def register(self, account: str, *, anchored: bool = False, name: str = "w1") -> None:
        anchor = None
        if anchored:
            live = self.service.open_windows.get(name)
            length = live.policy.queries_per_account
            chain = NonceChain(name, live.pseudonym_of(account), b"\x07" * 32, length)
            self.chains[account] = chain
            anchor = chain.anchor.hex()
        answer = self.post(f"/v1/windows/{name}/registration", account, {"anchor": anchor})
        assert answer.status_code in {200, 201}, answer.text

    def open(
        self,
        name: str = "w1",
        window: dict[str, Any] = WINDOW,
        registered: Sequence[str] = EVERYBODY,
        **overrides: Any,
    ) -> None:
        """Bring a window to where it is open; or go on, as after a restart, from one like it.

        Everybody registers plainly, and bob with an anchor.
        """
        options = {**window, **overrides}
        like = self._like(name, options, registered)
        if (kept := _opened.get(like)) is not None:
            self._go_on_from(kept, name)
            return
        self.open_anew(name, options, registered)
        if like is not None:
            folder = KeptFolder.of(self.folder, ("prover", "verifier/data"))
            said = (self.transport.asked, self.transport.answered, self.transport.calls)
            _opened[like] = Kept(folder, self.clock.now, dict(self.chains), deepcopy(said))
            if len(_opened) > KEPT_WINDOWS:
                del _opened[next(iter(_opened))]

    def _like(self, *about: Any) -> bytes | None:
        """All that a window comes from; None where it comes from more than a scenario has."""
        service, verifier = self.service, self.regulator.settings
        if (
            any(
                getattr(self.components, each.name) != getattr(STANDARD, each.name)
                for each in fields(Components)
                if each.name not in NOT_OPENING
            )
            or (self.components.transport, self.components.clock) != (self.transport, self.clock)
            or type(service.embedder) not in {HashEmbedder, WordLlamaEmbedder}
            or self.regulator.started
            or verifier.time_stamp_roots is not None
            or verifier.beacon.chain_file is not None
            or os.environ.keys() & ELSEWHERE
        ):
            return None
        settings = [each.model_dump() for each in (service.settings, verifier)]
        parts = repr((about, self.clock.now, service.embedder.manifest(), settings))
        found = sha256(parts.replace(str(self.folder), "").encode())
        for path, (_, data) in KeptFolder.of(self.folder, ("",)).files.items():
            found.update(repr((path, data)).encode())
        return found.digest()

    def _go_on_from(self, kept: Kept, name: str) -> None:
        self.service.store.engine.dispose()
        kept.folder.restore(self.folder)
        self.clock.now = kept.now
        self.chains = dict(kept.chains)
        transport = self.transport
        transport.asked, transport.answered, transport.calls = deepcopy(kept.said)
        self.service.open_windows.get(name)  # in memory, as once it was opened

    def open_anew(
        self,
        name: str = "w1",
        options: dict[str, Any] = WINDOW,
        registered: Sequence[str] = EVERYBODY,
    ) -> None:
        self.service.create_window(name, options)
        self.drive(State.COUNTERSIGNED, name)
        for account in registered:
            self.register(account, anchored=account == "bob", name=name)
        self.service.driver.checkpoint(name)
        self.clock.at(self.policy(name).start)
        self.drive(State.OPEN, name)

    def post(self, path: str, account: str, body: Any) -> Any:
        return self.api.post(path, json=body, headers=self.headers(account))

    def ask(
        self, account: str = "ada", query: str = "bread", top_k: int = 2, name: str = "w1"
    ) -> Any:
        return self.post(
            f"/v1/windows/{name}/query", account, {"query": query, "top_k": top_k, "filter": ""}
        )

    def promise(self, counter: int, query: str = "bread", account: str = "bob") -> Any:
        body = {"query": query, "top_k": 2, "filter": "", "counter": counter}
        return self.post("/v1/windows/w1/promise", account, body)

    def reveal(self, counter: int, account: str = "bob", nonce: bytes | None = None) -> Any:
        value = self.chains[account].nonce(counter) if nonce is None else nonce
        return self.post(
            "/v1/windows/w1/reveal", account, {"counter": counter, "nonce": value.hex()}
        )

    def account(self, name: str) -> Account:
        return Account(name, "one" if name in {"ada", "bob"} else "two")

    def restart(self, components: Components | None = None) -> None:
        """Give the database to a new service, as after a restart."""
        self.service.stop()
        self.components = components or self.components
        app = create_app(self.settings, components=self.components)
        self.service = app.state.service
        self.api = TestClient(app, raise_server_exceptions=False)


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """The real one."""
    return registry.load()


def pinned(settings: Settings, keys: dict[str, str | None]) -> Settings:
    """The settings with the verifier's keys, as `GET /v1/keys` shows them, as pins."""
    pins = {f"{role}_key": keys[role] for role in ("arbiter", "cosigner", "verifier", "verdict")}
    return settings.model_copy(update={"verifier": settings.verifier.model_copy(update=pins)})


@contextmanager
def scenarios(folder: Path) -> Iterator[Callable[..., ProverScenario]]:
    """Yield a function that makes a scenario with other components, and stop it afterwards."""
    made: list[ProverScenario] = []
    clock = Clock(START, step=1)
    if _set_up:
        _set_up[0][0].restore(folder, "verifier/secrets")
    regulator = Regulator(folder / "verifier", clock)
    with ExitStack() as stack:
        loop = Loop()
        stack.callback(loop.close)
        stack.callback(regulator.stop)

        def make(**components: Any) -> ProverScenario:
            transport = AppTransport(regulator, loop)
            settings, keys = _provider(folder, regulator)
            standard = {
                "embedder": lambda _: HashEmbedder(16),
                "transport": transport,
                "clock": clock,
            }
            parts = Components(**{**standard, **components})
            app = create_app(settings, components=parts)
            api = TestClient(app, raise_server_exceptions=False)
            scenario = ProverScenario(
                folder, clock, regulator, transport, settings, parts, app.state.service, api, keys
            )
            made.append(scenario)
            return scenario

        yield make
        for scenario in made:
            scenario.service.stop()


def _provider(folder: Path, regulator: Regulator) -> tuple[Settings, dict[str, str]]:
    """Settings of a provider that the verifier knows, and the API keys of its accounts."""
    keeps = not os.environ.keys() & ELSEWHERE
    if keeps and _set_up:
        kept, keys = _set_up[0]
        kept.restore(folder)
        return pinned(load_settings(folder / "prover/prover.yaml"), regulator.keys), dict(keys)
    paths = set_up(folder / "prover", provider="provider.example", verifier="http://verifier")
    create_tables(regulator.settings.database_url)
    with closing(Database(regulator.settings.database_url, lambda: START)) as database:
        providers.add(database, "provider.example", paths.provider_key)
    settings = pinned(load_settings(paths.settings), regulator.keys)
    keys = fill(settings)
    if keeps:
        parts = ("prover", "verifier/data", "verifier/secrets")
        _set_up.append((KeptFolder.of(folder, parts), dict(keys)))
    return settings, keys


def fill(settings: Settings) -> dict[str, str]:
    """Two tenants with documents, three accounts; returns their API keys."""
    store = Store.open(settings.store.url)
    for tenant in ("one", "two"):
        StoredDocuments(store).add(tenant, documents(tenant, ROWS))
    accounts = Accounts(store)
    people = (("one", "ada"), ("one", "bob"), ("two", "cyd"))
    keys = {name: accounts.add(tenant, name) for tenant, name in people}
    store.close()
    return keys


@pytest.fixture
def make_scenario(tmp_path: Path) -> Iterator[Callable[..., ProverScenario]]:
    """A function that makes a scenario with other components."""
    with scenarios(tmp_path) as make:
        yield make


@pytest.fixture
def scenario(make_scenario: Callable[..., ProverScenario]) -> ProverScenario:
    """A prover and a verifier that know each other; no window yet."""
    return make_scenario()


@pytest.fixture(scope="module")
def open_scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProverScenario]:
    """An open window that a module's tests share: they may only make requests that are refused."""
    with scenarios(tmp_path_factory.mktemp("open")) as make:
        scenario = make()
        scenario.open()
        yield scenario


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """An honest window up to its first query; who goes on from it has a copy."""
    use_cached_table()
    return Scenario(tmp_path_factory.mktemp("prepared"), Components()).prepare()


@pytest.fixture(scope="session")
def prepared_exact(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The same without noise."""
    return ExactScenario(tmp_path_factory.mktemp("exact"), Components()).prepare()
