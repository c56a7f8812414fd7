"""A provider and both services in this process: all is done when the scenario's clock says so."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx
from fastapi import FastAPI
from ragaudit.encoding.errors import InternalError, RagauditError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.signing import PublicKey
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.policy import COLUMNS, small_terms_file
from ragaudit.ledger.messages.columns import canonical_text
from ragaudit.ledger.messages.disputes import Finding
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import PublicPart
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.command.set_up import SetUp, set_up
from ragaudit.prover.http.app import create_app as create_prover
from ragaudit.prover.keys import load_key
from ragaudit.prover.lifecycle.driver import Driver
from ragaudit.prover.service import Components, Service
from ragaudit.prover.settings import (
    AuditSettings,
    EstimatorSettings,
    TimingSettings,
    WindowSettings,
    load_settings,
)
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State
from ragaudit.verifier import keys as verifier_keys
from ragaudit.verifier.arbiter import Arbiter, read_window
from ragaudit.verifier.engines import fastest_engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import (
    CHECKS,
    OPENING_CHECKS,
    REFUSED,
    Outcome,
    run,
    run_opening_checks,
)
from ragaudit.verifier.service import providers
from ragaudit.verifier.service.app import create_app as create_verifier
from ragaudit.verifier.service.auditor import Auditor, ReportProgress
from ragaudit.verifier.service.database import create_tables
from ragaudit.verifier.settings import Limits, make_data_folder
from ragaudit.verifier.settings import Settings as VerifierSettings
from starlette.types import ASGIApp

PROVIDER: Final = "provider.example"
WINDOW: Final = "w1"
TENANTS: Final = ("acme", "beta")
ROWS: Final = 20

SETTINGS: Final = WindowSettings(
    opens_after_seconds=20,
    length_seconds=60,
    activation_every_seconds=30,
    sampling_after_seconds=20,
    epsilon_acc="20",
    delta_acc="0.00001",
    delta_policy="0.00001",
    sigma="4",
    relation=NeighboringRelation.REPLACE,
    top_k_max=3,
    queries_per_account=4,
    slots=6,
    coalition_max=2,
    embedder_tolerance=4,
    estimator=EstimatorSettings(theta="0.9", tau_seconds=10, sketch_bits=64),
    audit=AuditSettings(mode="A", deadline_seconds=100),
    merge_delay_seconds=15,
    clock_skew_seconds=2,
    promise_life_seconds=30,
    claim_margin_seconds=5,
    release_seconds=20,
    retry_seconds=0,
    account_index=False,
    epochs=False,
)
"""A small window: every record is checked, and noise outweighs the scores."""

EXACT_SETTINGS: Final = WindowSettings(
    privacy="none",
    public_columns={each.name: each.type for each in COLUMNS},
    filters=True,
    query_kinds=("text", "vector"),
    versions=True,
    **SETTINGS.model_dump(
        exclude_unset=True,
        exclude={
            "epsilon_acc", "delta_acc", "delta_policy", "sigma", "relation", "coalition_max",
            "retry_seconds", "account_index", "epochs",
        },
    ),
)  # fmt: skip
"""The same window without noise, with all that a policy may allow."""


def documents(tenant: str, count: int = ROWS) -> list[Document]:
    """Return a tenant's documents, texts that differ in number and tenant only.

    Args:
        tenant: its name.
        count: how many.
    """
    return [Document(f"{tenant}-{i}", f"document {i} of {tenant}") for i in range(count)]


def shelved_documents(tenant: str, count: int = ROWS) -> list[Document]:
    """Return the same documents with a shelf and a year each, and two copies of one of them.

    Args:
        tenant: its name.
        count: how many, the copies not counted.
    """
    columns = [{"shelf": "left" if i % 2 else "right", "year": 2000 + i} for i in range(count)]
    made = [
        Document(each.id, each.content, canonical_text(values))
        for each, values in zip(documents(tenant, count), columns, strict=True)
    ]
    copies = [Document(f"{tenant}-copy-{n}", made[3].content, made[3].attributes) for n in (1, 2)]
    return [*made, *copies]


@dataclass(frozen=True)
class Offer:
    """What a provider offers in a window.

    Attributes:
        settings: of the window.
        documents: of each tenant, by its name.
    """

    settings: WindowSettings
    documents: Callable[[str], list[Document]]


PRIVATE: Final = Offer(SETTINGS, documents)
EXACT: Final = Offer(EXACT_SETTINGS, shelved_documents)


def ingest(made: SetUp, offer: "Offer | None" = None) -> None:
    """Store the documents of every tenant in the provider's database, which is closed again.

    Args:
        made: the provider's folder.
        offer: whose documents; those of `PRIVATE` if it is not given.
    """
    of = (offer or PRIVATE).documents
    store = Store.open(load_settings(made.settings).store.url)
    for tenant in TENANTS:
        StoredDocuments(store).add(tenant, of(tenant))
    store.close()


def prover_folder(folder: Path) -> SetUp:
    """Return what `new_prover_folder` made in a folder, or in a copy of it."""
    keys = folder / "keys"
    provider = load_key(keys / "provider.key").public
    return SetUp(folder / "prover.yaml", keys / "operator.token", provider)


def new_prover_folder(folder: Path, offer: Offer = PRIVATE) -> SetUp:
    """Make settings, keys and documents of the scenario's provider.

    Args:
        folder: an empty one, or none yet.
        offer: whose documents.
    """
    made = set_up(folder, provider=PROVIDER, verifier="http://verifier.test")
    ingest(made, offer)
    return made


def machine_seconds() -> int:
    """Return the machine's time in Unix milliseconds, at a whole second."""
    return 1000 * (time.time_ns() // 10**9)


@dataclass
class Clock:
    """Unix milliseconds that only the scenario moves; services and client libraries read them.

    Attributes:
        now: what it shows; the machine's time at first, unless it is said.
        step: milliseconds by which each reading moves it.
    """

    now: int = field(default_factory=machine_seconds)
    step: int = 0

    def __call__(self) -> int:
        self.now += self.step
        return self.now

    def at(self, seconds: int) -> None:
        """Go to a Unix second, or stay where the clock is if that is later: it never goes back.

        Args:
            seconds: Unix time in whole seconds, though the clock itself counts milliseconds.
        """
        self.now = max(self.now, 1000 * seconds)


class Loop:
    """An event loop in a thread of its own, on which the applications run."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="services", daemon=True)
        self._thread.start()

    def call(self, transport: httpx.ASGITransport, request: httpx.Request) -> httpx.Response:
        """Run a request on the loop and return its whole response.

        Blocks the calling thread, which must not be the loop's own.

        Args:
            transport: leads into the application; nothing leaves the process.
            request: as a client prepared it.
        """
        return asyncio.run_coroutine_threadsafe(_answer(transport, request), self._loop).result()

    def close(self) -> None:
        """Stop the loop and its thread."""
        asyncio.run_coroutine_threadsafe(
            self._loop.shutdown_default_executor(), self._loop
        ).result()
        # Only now: a worker thread that outlived the loop would answer into a closed one.
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class AppTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends requests to an application; remembers the last answer with each path's last name.

    Attributes:
        asked, answered: last JSON body sent to and received from ``.../<name>``, by name.
        calls: method and path of every request that arrived.
        down: whether the application cannot be reached.
    """

    def __init__(self, app: ASGIApp, loop: Loop) -> None:
        """Lead into an application.

        Args:
            app: the application.
            loop: the one on which it always runs, whichever thread or loop asks.
        """
        # An exception of the application is a 500 to its caller, as over a network.
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._loop = loop
        self.asked: dict[str, Any] = {}
        self.answered: dict[str, Any] = {}
        self.calls: list[tuple[str, str]] = []
        self.down = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._noted(request, self._call(request))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # The application stays on its own loop, whichever loop asks.
        response = await asyncio.to_thread(self._call, request)
        return self._noted(request, response)

    def _call(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            raise httpx.ConnectError("refused", request=request)
        self.calls.append((request.method, request.url.path))
        return self._loop.call(self._transport, request)

    def _noted(self, request: httpx.Request, response: httpx.Response) -> httpx.Response:
        name = request.url.path.rsplit("/", 1)[-1]
        if request.method == "POST" and response.is_success:
            self.asked[name] = _json(request.content)
            self.answered[name] = _json(response.content)
        return response


async def _answer(transport: httpx.ASGITransport, request: httpx.Request) -> httpx.Response:
    response = await transport.handle_async_request(request)
    content = await response.aread()
    return httpx.Response(response.status_code, headers=response.headers, content=content)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


VERIFIER: Final = "regulator.example/cosigner"

_POLL_SECONDS = 0.002
# Far more than a window has: what has not come to rest by then never will.
_MOST_STEPS = 100


class SteppedDriver(Driver):
    """Moves windows when the scenario says so, and not when the service's own threads ask."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._thread = threading.get_ident()

    def step(self, name: str) -> bool:
        # A step that the service's own threads took between two moves of the clock would make the
        # order of events, and with it every staged cheat, depend on the machine.
        return threading.get_ident() == self._thread and super().step(name)

    def checkpoint(self, name: str) -> None:
        if threading.get_ident() == self._thread:
            super().checkpoint(name)


@dataclass
class Prover:
    """The prover's application with the components of one cheat."""

    service: Service
    app: FastAPI
    transport: AppTransport
    token: str = field(repr=False)

    @classmethod
    def open(
        cls,
        made: SetUp,
        components: Components,
        loop: Loop,
        clock: Clock,
        verifier: AppTransport,
        window: WindowSettings = SETTINGS,
    ) -> "Prover":
        """Open a service on the settings, keys and database that were made.

        Args:
            made: the provider's folder.
            components: honest but for one cheat. Driver, embedder, transport and clock are
                replaced, so that time stands still between steps and nothing needs a network.
            loop: on which the application runs.
            clock: of the whole scenario.
            verifier: leads to the verifier, whose keys this prover does not pin.
            window: settings of its window.
        """
        found = load_settings(made.settings)
        settings = found.model_copy(
            update={
                "verifier": found.verifier.model_copy(update={"allow_unpinned": True}),
                "window": window,
                "timing": TimingSettings(checkpoint_seconds=0.05, driver_seconds=60),
            }
        )
        staged = replace(
            components,
            driver=SteppedDriver,
            embedder=lambda _name: HashEmbedder(),
            transport=verifier,
            clock=clock,
        )
        app = create_prover(settings, components=staged)
        token = made.operator_token.read_text(encoding="utf-8").strip()
        return cls(app.state.service, app, AppTransport(app, loop), token)

    def operate(self, path: str, body: dict[str, Any]) -> Any:
        """Make an operator's call and return its answer.

        Args:
            path: below ``/v1/operator/``.
            body: as JSON.

        Raises:
            InternalError: the service answered with an error.
        """
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx.Client(transport=self.transport, base_url="http://prover.test") as http:
            answer = http.post(f"/v1/operator/{path}", json=body, headers=headers)
        if answer.is_error:
            raise InternalError(f"the operator was told: {answer.text[:300]}", where=path)
        return answer.json()

    @property
    def state(self) -> State:
        return self.service.windows.get(WINDOW).state

    @property
    def policy(self) -> Policy:
        return Policy.parse(self.service.windows.get(WINDOW).policy)

    def drive(self) -> list[str]:
        """Take steps until nothing changes.

        Returns:
            What went wrong, in words: one line, after which the window is left as it is, or none.

        Raises:
            InternalError: the window never comes to rest.
        """
        for _ in range(_MOST_STEPS):
            try:
                if not self.service.driver.step(WINDOW):
                    return []
            except RagauditError as error:
                return [f"prover: {error}"]
        raise InternalError("the prover's window never rests", where=str(self.state))

    def checkpoint(self) -> None:
        """Sign the log and have it cosigned."""
        self.service.driver.checkpoint(WINDOW)

    def close(self) -> None:
        """Stop the service and its threads."""
        self.service.stop()


class ScenarioAuditor(Auditor):
    """The verifier's procedure, with a list of checks that the scenario chooses."""

    def __init__(self, keys: verifier_keys.VerifierKeys, without: Sequence[str]) -> None:
        super().__init__(keys, "auto")
        self._without = without
        self._embedder = HashEmbedder().installed()
        self.evidence: Evidence | None = None
        self.opening: tuple[Evidence, int] | None = None
        self.outcome: Outcome | None = None

    def check_opening(self, evidence: Evidence, now: int) -> bytes | None:
        # In memory: it is judged again, without some checks, when the service is gone.
        self.opening = Evidence.of({name: evidence[name] for name in evidence}), now
        outcome = self.judge_opening(self._without)
        if outcome.result != REFUSED:
            return None
        self.outcome = outcome
        return outcome.sign(self._key, evidence.digests(), time=now)

    def audit(self, evidence: Evidence, now: int, progress: ReportProgress) -> bytes:
        self.evidence = Evidence.of({name: evidence[name] for name in evidence})
        self.outcome = self.judge(self._without)
        return self.outcome.sign(self._key, evidence.digests(), time=now)

    def judge_opening(self, without: Sequence[str] = ()) -> Outcome:
        """Run the checks before the window over its opening.

        Args:
            without: ids of checks to leave out.

        Raises:
            InternalError: no opening was handed in.
        """
        if self.opening is None:
            raise InternalError("the window was never handed in")
        evidence, now = self.opening
        left = tuple(each for each in OPENING_CHECKS if each.id not in without)
        return run_opening_checks(
            evidence, engine=self._engine, now=now, checks=left, pins=self._pins
        )

    def judge(self, without: Sequence[str] = ()) -> Outcome:
        """Run the procedure over the evidence.

        Args:
            without: ids of checks to leave out.

        Raises:
            InternalError: the window was never audited.
        """
        if self.evidence is None:
            raise InternalError("the window was never audited")
        left = tuple(each for each in CHECKS if each.id not in without)
        return run(
            self.evidence, engine=self._engine, checks=left, pins=self._pins,
            embedder=self._embedder,
        )  # fmt: skip


@dataclass
class Verifier:
    """The verifier's application; its scheduler runs when `tick` is called."""

    app: FastAPI
    service: Any
    auditor: ScenarioAuditor
    transport: AppTransport
    key: str
    arbiter: Arbiter
    clock: Clock

    @classmethod
    def open(
        cls,
        folder: Path,
        loop: Loop,
        clock: Clock,
        made: SetUp,
        without: Sequence[str],
        limits: Limits,
    ) -> "Verifier":
        """Open a verifier that has pinned the provider's key.

        Args:
            folder: of the verifier; one that has no secrets yet gets new keys. The arbiter's folder
                stands beside it: the two parties share nothing.
            loop: on which the application runs.
            clock: of the whole scenario.
            made: the provider's folder, for its public key.
            without: ids of checks that this verifier does not make.
            limits: on what it takes and keeps; small ones are soon reached.
        """
        arbiter = open_arbiter(folder.parent / "arbiter")
        settings = VerifierSettings(
            name=VERIFIER,
            arbiter_key=arbiter.public.raw.hex(),
            data=folder / "data",
            secrets=folder / "secrets",
            terms=small_terms_file(folder),
            limits=limits,
        )
        # A copied verifier keeps its keys: the countersigned policy names them.
        fresh = not settings.secrets.exists()
        if fresh:
            verifier_keys.create(settings.secrets, VERIFIER)
        keys = verifier_keys.load(settings.secrets, VERIFIER, settings.arbiter)
        make_data_folder(settings)
        create_tables(settings.database_url)
        auditor = ScenarioAuditor(keys, without)
        app = create_verifier(settings, clock=clock, auditor=auditor)
        service = app.state.service
        providers.add(service.database, PROVIDER, made.provider_key)
        key = keys.statement.public.raw.hex()
        return cls(app, service, auditor, AppTransport(app, loop), key, arbiter, clock)

    def arbitrate(self, file: dict[str, Any], window: Any) -> tuple[Finding, PublicPart]:
        """Return the arbiter's finding about a receipt file, with its public part.

        Args:
            file: the receipt file as JSON.
            window: as the provider shows it (docs/spec/08-services.md §8.6).

        Raises:
            RagauditError: the file accuses nobody, or the window is not what the verifier
                countersigned.
        """
        view = read_window(window, PublicKey.from_raw(bytes.fromhex(self.key)))
        return self.arbiter.judge(file, view, fastest_engine(), self.clock)

    def tick(self) -> None:
        """Do what is due by the clock, and wait for an audit that began."""
        self.service.scheduler.tick()
        while self.service.runner.busy():
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        self.service.close()


def open_arbiter(folder: Path) -> Arbiter:
    """Return the scenario's arbiter, from a folder of its own; made if it is missing."""
    return Arbiter(folder) if folder.exists() else Arbiter.create(folder)
