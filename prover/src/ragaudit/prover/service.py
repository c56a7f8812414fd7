"""The prover as one object: everything wired together, its background threads, its operations."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
from prometheus_client import CollectorRegistry, Histogram
from ragaudit.embedders.base import Embedder
from ragaudit.encoding.errors import NotAuthenticated, UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.entries import Epoch
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.answering.answering import Promises, Retrieval
from ragaudit.prover.answering.charging import Charging
from ragaudit.prover.answering.context import Context, refuse_unloaded
from ragaudit.prover.answering.generation import Generation
from ragaudit.prover.answering.generator import Generator
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Stages
from ragaudit.prover.backends.interface import Backend, check_servable
from ragaudit.prover.backends.opening import check_vectors, open_backend, open_embedder
from ragaudit.prover.background import Background, ClockWatch, Succession
from ragaudit.prover.errors import WrongState
from ragaudit.prover.index.builder import IndexBuilder
from ragaudit.prover.index.committed import check_size
from ragaudit.prover.keys import load_digest, load_key, token_digest
from ragaudit.prover.lifecycle.asking import Asking, Generating
from ragaudit.prover.lifecycle.challenges import ChallengeWorker
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.lifecycle.committing import Committer
from ragaudit.prover.lifecycle.cosigning import CosigningRounds, Stamping
from ragaudit.prover.lifecycle.driver import Checkpointer, Driver
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.lifecycle.owning import Owning
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder
from ragaudit.prover.lifecycle.refreshing import Refresher, Watcher
from ragaudit.prover.lifecycle.restoring import Restored, Restorer
from ragaudit.prover.lifecycle.retention import Retention
from ragaudit.prover.randomness import SECRET_BYTES, Randomness, SeedTree, randomness_for
from ragaudit.prover.sequencer import Sequencer, aside
from ragaudit.prover.settings import Settings, StampSettings, window_settings
from ragaudit.prover.store.accounts import Account, Accounts, CallersKeys, Owners
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.fences import FenceFolder, check_space
from ragaudit.prover.store.leadership import Leadership, LeadersStore
from ragaudit.prover.store.states import FINAL, State
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.verifier.connection import check_clocks, check_pins, checked_keys
from ragaudit.prover.verifier.cosigners import Cosigners
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.registrations import Registrar
from ragaudit.prover.window.windows import Window, Windows
from ragaudit.prover.work import JOBS, WindowWork
from ragaudit.serving.clock import UNTIL_CONFIRMED, EvenClock
from ragaudit.serving.jobs.opening import open_runner
from ragaudit.serving.observed import SECONDS, Observer
from ragaudit.serving.rounds import RoundFinder

_ANSWERS = (1, 2, 4, 8, 16, 32)


class CommitMetrics:
    """Counts durable transactions of windows' logs. Safe to use from several threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Add the metrics to a registry."""
        self._seconds = Histogram(
            "ragaudit_commit_seconds",
            "Time until a transaction of a log, and its fence, are durable.",
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._answers = Histogram(
            "ragaudit_commit_answers",
            "Answers and promises that one transaction made durable.",
            buckets=_ANSWERS, registry=registry,
        )  # fmt: skip

    def committed(self, seconds: float, answers: int) -> None:
        """Count a transaction that is durable.

        Args:
            seconds: that it took, without waiting for the one before.
            answers: accounts whose counter it moved; without any, it is not counted.
        """
        if answers:
            self._seconds.observe(seconds)
            self._answers.observe(answers)


@dataclass(frozen=True)
class Components:
    """The parts of the prover, to be replaced one by one by other implementations.

    Attributes:
        pause: waits for so many seconds, until a generated answer is due.
        embedder: returns the embedder of a name; None for the one that the settings describe.
    """

    mechanism: type[Mechanism] = Mechanism
    stages: Stages = field(default_factory=Stages)
    promises: type[Promises] = Promises
    registrar: type[Registrar] = Registrar
    index_builder: type[IndexBuilder] = IndexBuilder
    seed_tree: type[SeedTree] = SeedTree
    policy_builder: type[PolicyBuilder] = PolicyBuilder
    committer: type[Committer] = Committer
    checkpointer: type[Checkpointer] = Checkpointer
    closing: type[Closing] = Closing
    challenges: type[ChallengeWorker] = ChallengeWorker
    driver: type[Driver] = Driver
    refresher: type[Refresher] = Refresher
    watcher: type[Watcher] = Watcher
    stamping: Callable[[StampSettings, Store, VerifierClient], Stamping | None] = Stamping.of
    backend: Callable[[Settings, Store], Backend] = lambda settings, store: open_backend(
        settings.backend, store
    )
    embedder: Callable[[str], Embedder] | None = None
    transport: httpx.BaseTransport | None = None
    cosigner_transport: httpx.BaseTransport | None = None
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], int] = field(default_factory=lambda: EvenClock(UNTIL_CONFIRMED))

    def open_embedder(self, settings: Settings, backend: Backend) -> Embedder:
        """Return the embedder of queries and documents.

        Args:
            settings: name it.
            backend: says how long vectors are where there is no embedder.

        Raises:
            MalformedSettings, EmbedderUnavailable: it cannot be loaded.
        """
        if self.embedder is not None:
            return self.embedder(settings.embedder.name)
        return open_embedder(settings.embedder, backend)


class Service:
    """One prover on one database. `start` and `stop` its background threads."""

    def __init__(self, settings: Settings, components: Components) -> None:
        """Open keys, database and embedder.

        Raises:
            MalformedSettings, StoreUnavailable, EmbedderUnavailable: something is not there.
        """
        self.settings = settings
        self.clock = components.clock
        provider_key = load_key(settings.keys.provider_file)
        self._provider_key = provider_key.public
        self._operator_digest = load_digest(settings.keys.operator_digest_file)
        self.observer = Observer(
            settings.operation, service="ragaudit-prover", name=settings.provider
        )
        self.store = Store.open(settings.store.url)
        self.accounts = Accounts(self.store)
        self.owners = Owners(self.store)
        self.callers = CallersKeys(self.accounts, self.owners, self._operator_digest)
        self.windows = Windows(self.store)
        self.leadership = Leadership(self.store)
        # What only the leader does writes through this: a former one is refused.
        leading = LeadersStore(self.store, self.leadership)
        self.backend = components.backend(settings, self.store)
        self.embedder = components.open_embedder(settings, self.backend)
        self.verifier = VerifierClient.of(settings, provider_key, self.clock, components.transport)
        self._clock_watch = ClockWatch(self.clock, self.verifier, self.windows, settings)
        self.policy_builder = components.policy_builder(settings.provider, provider_key.public)

        self.runner = open_runner(settings.jobs, JOBS, self.store.engine)

        def builder(randomness: Randomness, work: WindowWork) -> IndexBuilder:
            return components.index_builder(
                self.backend, self.embedder, randomness, settings.backend.page_rows, work
            )

        further = Cosigners.of(settings.cosigners, components.cosigner_transport)
        self._fences = FenceFolder(settings.store.fence_folder)
        committer = components.committer(
            store=leading,
            windows=Windows(leading),
            builder=builder,
            runner=self.runner,
            seed_tree=components.seed_tree,
            verifier=self.verifier,
            fences=self._fences,
            asked=None if further is None else further.policy,
        )
        commits = CommitMetrics(self.observer.metrics.registry)
        self.open_windows = OpenWindows(
            self.store,
            self.windows,
            committer,
            vouched=self.leadership.is_vouched,
            on_committed=commits.committed,
        )
        shown = (self.windows, self.open_windows)
        self.owning = Owning(self.store, *shown, self.backend, self.clock)
        rounds = (*shown, self.verifier, self.clock)
        stamping = components.stamping(settings.time_stamps, leading, self.verifier)
        self.cosigning = CosigningRounds(*rounds, further, stamping)
        self.rounds = RoundFinder(settings.beacon)
        self.registrar = components.registrar(self.store, self.windows, self.clock)
        self.mechanism = components.mechanism(self.embedder)
        self.retrieval = Retrieval(
            Context(
                store=self.store,
                windows=self.windows,
                backend=self.backend,
                mechanism=self.mechanism,
                key=provider_key,
                clock=self.clock,
                stages=components.stages,
            )
        )
        self.asking = Asking(
            retrieval=self.retrieval,
            open_windows=self.open_windows,
            open_window=self.open_window,
            registrar=self.registrar,
            accounts=self.accounts,
        )
        # One for each request that may be worked on: none waits for a thread of another.
        self.sequencer = Sequencer(settings.limits.workers)
        self.promises = components.promises(retrieval=self.retrieval, verifier=self.verifier)
        self.generator = None if settings.generator is None else Generator(settings.generator)
        charging = Charging(self.retrieval.context)
        generation = Generation(charging, self.generator, self.promises)
        self.generating = Generating(
            generation, self.retrieval.context, self.asking, components.pause
        )
        self._closing = (self.runner, self.cosigning, self.rounds, self.generating, generation)
        self.refresher = components.refresher(
            store=leading,
            windows=Windows(leading),
            open_windows=self.open_windows,
            builder=builder,
            runner=self.runner,
            verifier=self.verifier,
            clock=self.clock,
            before_seconds=settings.timing.refresh_before_seconds,
        )
        self.driver = components.driver(
            store=leading,
            windows=Windows(leading),
            open_windows=self.open_windows,
            committer=committer,
            checkpointer=components.checkpointer(self.verifier, self.clock),
            closing=components.closing(
                store=leading,
                retrieval=self.retrieval,
                generation=generation,
                verifier=self.verifier,
                clock=self.clock,
            ),
            challenges=components.challenges(
                store=leading,
                backend=self.backend,
                mechanism=self.mechanism,
                verifier=self.verifier,
                runner=self.runner,
            ),
            runner=self.runner,
            verifier=self.verifier,
            rounds=self.rounds,
            clock=self.clock,
            on_countersigned=self.asking.register_all
            if settings.window.register_accounts
            else None,
        )
        self.watcher = components.watcher(
            store=leading,
            windows=Windows(leading),
            open_windows=self.open_windows,
            backend=self.backend,
            page_rows=settings.backend.page_rows,
            tell=self.observer.compared,
        )
        self.retention = Retention(
            store=leading,
            windows=self.windows,
            fences=self._fences,
            key=provider_key,
            days=settings.store.retention_days,
            clock=self.clock,
            verdict=self.verifier.verdict,
        )
        self.succession = Succession(
            store=self.store,
            leadership=self.leadership,
            windows=self.windows,
            open_windows=self.open_windows,
            runner=self.runner,
            background=partial(
                Background,
                windows=self.windows,
                open_windows=self.open_windows,
                driver=self.driver,
                refresher=self.refresher,
                cosigning=self.cosigning,
                retention=self.retention,
                timing=settings.timing,
                # What is in the prover's own database only changes by the prover.
                watcher=None if settings.backend.kind == "store" else self.watcher,
                poll_seconds=settings.backend.poll_seconds,
            ),
        )

    def start(self) -> None:
        """Serve the database, load the countersigned windows; the one that leads drives them.

        Raises:
            RefusedError: another prover has this database alone, a key is not the one that an
                unfinished window has committed to, or the verifier's keys are not pinned.
            StoreUnavailable: the folder of the fences cannot be written.
        """
        check_pins(self.settings.verifier)
        self.store.serve()
        self._fences.take()
        self.leadership.attempt()
        self.retention.recall()
        self.accounts.ensure_tenants(self.settings.backend.tenants)
        unfinished = [window for window in self.windows.all() if window.state not in FINAL]
        # Before the first is driven: nothing is signed with a wrong key.
        for window in unfinished:
            window.check_key(self._provider_key, self.settings.keys.provider_file)
        # Before the threads start: a database behind its fence shows now, not at the first query.
        for window in unfinished:
            if window.countersignature is not None:
                self.open_windows.get(window.name)
                if self.leadership.leads:
                    self.driver.compare(window.name)
        self._clock_watch.start()
        self.succession.start()

    def stop(self) -> None:
        """Stop the background threads, wait for them, and let go of files and connections."""
        self.sequencer.close()
        self.runner.stop()  # a step that waits for a job ends
        self._clock_watch.stop()
        self.succession.stop()  # its steps need the connections that are closed below
        for each in (*self._closing, self.open_windows, self.verifier):
            each.close()
        self.backend.close()
        self._fences.release()
        self.store.close()

    def check_ready(self) -> None:
        """Check that queries can be answered.

        Raises:
            StoreUnavailable, BackendUnavailable: database or documents do not answer, the fences
                cannot be written, or a disk is nearly full.
            ClockStepped: the system's clock was set.
            WindowUnusable: an unfinished window is behind its fence.
        """
        self.store.check_writable()
        self.observer.check()
        self.backend.check()
        # Both disks: without the fence no answer leaves, whatever the database can take.
        self._fences.check()
        for path in (self.store.file, self.settings.store.fence_folder):
            check_space(path, self.settings.store.free_bytes_min)
        self.windows.check_usable(self.clock())

    def check_operator(self, token: str) -> None:
        """Check that a token is the operator's.

        Raises:
            NotAuthenticated: another one.
        """
        # In constant time: the comparison says nothing of how much of a guess was right.
        if not hmac.compare_digest(token_digest(token), self._operator_digest):
            raise NotAuthenticated(
                "not the operator's token", where="Authorization", expected="Bearer <token>"
            )

    def create_window(self, name: str, overrides: dict[str, Any]) -> Window:
        """Create a window from the settings, changed by ``overrides``, and begin to drive it.

        Args:
            name: of the window; names are never reused.
            overrides: settings of the window by name, sections nested.

        Raises:
            MalformedSettings: overrides or policy are out of range, a store ranks by another
                metric or has vectors of another length, or texts may be asked without an embedder.
            MalformedDocument: a tenant has too few documents for K_max, or too many for B and d.
            Conflict: the name was used.
            VerifierUnreachable, VerifierMessageRejected: no keys, or not the pinned ones.
            ClocksDiffer: records would not lie between the cosigned times around them.
        """
        self.windows.check_unused(name)  # what a used one's policy would say misleads
        options = window_settings(self.settings.window, overrides)
        tenants = check_servable(self.backend, options.top_k_max)
        check_vectors(self.backend, self.embedder, options.metric, options.query_kinds)
        keys = checked_keys(self.verifier.keys(), self.settings.verifier)
        check_clocks(self.clock(), keys.time, options.clock_skew_seconds)
        manifest = self.embedder.manifest()
        log_key = PrivateKey.generate()  # never of an experiment's seed, which is public
        policy = self.policy_builder.build(
            window=name,
            log_key=log_key.public,
            settings=options,
            tenants=tenants,
            dimension=self.backend.dimension() or self.embedder.dimension,
            tolerance=manifest.tolerance,
            verifier=keys,
            previous_checkpoint=self.windows.last_handed_over(keys.verifier),
            now=self.clock(),
            trust=self.cosigning.trust,
            chain=self.rounds.chain,
            generator=None if self.generator is None else self.generator.manifest,
        )
        for each in tenants:
            check_size(each, self.backend.count(each), policy.dimension, policy.norm_bound)
        randomness = randomness_for(policy.experiment_seed)
        window = self.windows.create(
            name,
            policy=policy.canonical,
            embedder=manifest.encode(),
            log_seed=log_key.seed(),
            noise_seed=randomness.draw(SECRET_BYTES, "noise seed", name),
            pseudonym_key=randomness.draw(SECRET_BYTES, "pseudonym key", name),
        )
        self.succession.drive(name)
        return window

    def abandon_window(self, name: str) -> Window:
        """End a window that the verifier has not countersigned; see `Driver.abandon`."""
        self.driver.abandon(name, "abandoned by the operator")
        return self.windows.get(name)

    def stop_window(self, name: str) -> Window:
        """Stop answering in an open window now; its log is closed at its end.

        Raises:
            UnknownWindow, WrongState: there is none of this name, or it is not open.
        """
        window = self.windows.get(name)
        # Only the queries end: claims may be made until the end, so its log stays open.
        if window.state is not State.OPEN:
            raise WrongState(f"the window is {window.state}", where=name, expected=State.OPEN)
        self.windows.note(name, stopped=True)
        return self.windows.get(name)

    def open_window(self, name: str, account: Account) -> OpenWindow:
        """Return a window to query, or refuse with a signature if it is not countersigned.

        Args:
            account: authenticated; its pseudonym stands in a refusal.

        Raises:
            UnknownWindow, QueryRefused: none of this name, or not open, as its state says.
        """
        if (live := self.open_windows.loaded(name)) is not None:
            return live
        window = self.windows.get(name)
        if window.countersignature is not None and window.state not in FINAL:
            return aside(self.open_windows.get, name)
        raise refuse_unloaded(self.retrieval.context.key, window, account, self.clock())

    def policy_of(self, window: str) -> Policy:
        """Return the policy of a window; UnknownWindow if there is none of this name."""
        live = self.open_windows.loaded(window)
        return Policy.parse(self.windows.get(window).policy) if live is None else live.policy


def restore_window(
    settings: Settings, name: str, reason: str, components: Components | None = None
) -> Restored:
    """Let a window go on after a restore; the service does not run.

    Args:
        settings: of the service.
        name: of the window.
        reason: one of `Epoch.REASONS`.
        components: instead of the usual, for tests.

    Raises:
        UnsupportedError: another reason.
        RagauditError: as `Restorer.restore`, and as for a start of the service.
    """
    if reason not in Epoch.REASONS:
        raise UnsupportedError(f"reason {reason!r}", expected=" or ".join(Epoch.REASONS))
    service = Service(settings, components or Components())
    try:
        service.retention.recall()
        return restorer_of(service).restore(name, reason)
    finally:
        service.stop()


def restorer_of(service: Service) -> Restorer:
    """Return what restores windows of a service that is not started."""
    return Restorer(
        store=service.store,
        windows=service.windows,
        open_windows=service.open_windows,
        verifier=service.verifier,
        clock=service.clock,
    )
