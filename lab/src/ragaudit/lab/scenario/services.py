"""Both services in this process. Their background work is done when the scenario says so."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx
from fastapi import FastAPI
from ragaudit.encoding.errors import InternalError, RagauditError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.signing import PublicKey
from ragaudit.lab.scenario.clock import Clock
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.policy import small_terms_file
from ragaudit.lab.scenario.transport import AppTransport, Loop
from ragaudit.ledger.messages.disputes import Finding
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.prover.backends import Document, StoredDocuments
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
    Pins,
    run,
    run_opening_checks,
)
from ragaudit.verifier.procedure.statement_checks import Judgement, judge
from ragaudit.verifier.report import render_html, render_text
from ragaudit.verifier.service import providers
from ragaudit.verifier.service.app import create_app as create_verifier
from ragaudit.verifier.settings import Limits
from ragaudit.verifier.settings import Settings as VerifierSettings

PROVIDER: Final = "provider.example"
VERIFIER: Final = "regulator.example/cosigner"
WINDOW: Final = "w1"
TENANTS: Final = ("acme", "beta")
ROWS: Final = 20

_POLL_SECONDS = 0.002
# Far more than a window has: what has not come to rest by then never will.
_MOST_STEPS = 100

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
    merge_delay_seconds=30,
    clock_skew_seconds=2,
    promise_life_seconds=30,
    claim_margin_seconds=5,
    release_seconds=20,
)
"""A small window: every record is checked, and noise outweighs the scores."""


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
        cls, made: SetUp, components: Components, loop: Loop, clock: Clock, verifier: AppTransport
    ) -> "Prover":
        """Open a service on the settings, keys and database that were made.

        Args:
            made: the provider's folder.
            components: honest but for one cheat. Driver, embedder, transport and clock are
                replaced, so that time stands still between steps and nothing needs a network.
            loop: on which the application runs.
            clock: of the whole scenario.
            verifier: leads to the verifier, whose keys this prover does not pin.
        """
        found = load_settings(made.settings)
        settings = found.model_copy(
            update={
                "verifier": found.verifier.model_copy(update={"allow_unpinned": True}),
                "window": SETTINGS,
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


def documents(tenant: str, count: int = ROWS) -> list[Document]:
    """Return a tenant's documents, texts that differ in number and tenant only.

    Args:
        tenant: its name.
        count: how many.
    """
    return [Document(f"{tenant}-{i}", f"document {i} of {tenant}") for i in range(count)]


def ingest(made: SetUp) -> None:
    """Store the documents of every tenant in the provider's database, which is closed again."""
    store = Store.open(load_settings(made.settings).store.url)
    for tenant in TENANTS:
        StoredDocuments(store).add(tenant, documents(tenant))
    store.close()


class ScenarioAuditor:
    """The verifier's procedure, with a list of checks that the scenario chooses."""

    def __init__(self, keys: verifier_keys.VerifierKeys, without: Sequence[str]) -> None:
        self._key = keys.verdict
        self._pins = Pins(
            cosigner=keys.cosigner.verifier_key,
            verifier=keys.statement.public,
            verdict=keys.verdict.public,
        )
        self._without = without
        self._embedder = HashEmbedder().installed()
        self._engine = fastest_engine()
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

    def judge_dispute(self, file: dict[str, Any], view: WindowView) -> Judgement:
        return judge(file, view, self._engine)

    def audit(self, evidence: Evidence, now: int, progress: Any) -> bytes:
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

    def result(self, verdict: bytes) -> str:
        return Verdict.verify(verdict, self._key.public).result

    def report_html(self, verdict: bytes) -> str:
        return render_html(Verdict.verify(verdict, self._key.public))

    def report_text(self, verdict: bytes) -> str:
        return render_text(Verdict.verify(verdict, self._key.public))


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
        auditor = ScenarioAuditor(keys, without)
        app = create_verifier(settings, clock=clock, auditor=auditor)
        service = app.state.service
        providers.add(service.database, PROVIDER, made.provider_key)
        key = keys.statement.public.raw.hex()
        return cls(app, service, auditor, AppTransport(app, loop), key, arbiter, clock)

    def arbitrate(self, file: dict[str, Any], window: Any) -> tuple[Finding, PublicReceipt]:
        """Return the arbiter's finding about a receipt file, with its public half.

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


def prover_folder(folder: Path) -> SetUp:
    """Return what `new_prover_folder` made in a folder, or in a copy of it."""
    keys = folder / "keys"
    provider = load_key(keys / "provider.key").public
    return SetUp(folder / "prover.yaml", keys / "operator.token", provider)


def new_prover_folder(folder: Path) -> SetUp:
    """Make settings, keys and documents of the scenario's provider.

    Args:
        folder: an empty one, or none yet.
    """
    made = set_up(folder, provider=PROVIDER, verifier="http://verifier.test")
    ingest(made)
    return made
