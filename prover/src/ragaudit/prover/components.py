"""The parts that a prover is made of."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx
from ragaudit.embedders.base import Embedder
from ragaudit.prover.answering.answering import Promises
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Stages
from ragaudit.prover.backends.interface import Backend
from ragaudit.prover.index.builder import IndexBuilder
from ragaudit.prover.lifecycle.challenges import ChallengeWorker
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.lifecycle.committing import Committer
from ragaudit.prover.lifecycle.driver import Checkpointer, Driver
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder
from ragaudit.prover.lifecycle.refreshing import Refresher
from ragaudit.prover.lifecycle.stamping import Stamping
from ragaudit.prover.lifecycle.watching import Watcher
from ragaudit.prover.randomness import SeedTree
from ragaudit.prover.settings import Settings
from ragaudit.prover.stamp_settings import StampSettings
from ragaudit.prover.store.database import Store
from ragaudit.prover.vector_stores.opening import open_backend, open_embedder
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.registrations import Registrar
from ragaudit.serving.clock import UNTIL_CONFIRMED, EvenClock


def backend_of_settings(settings: Settings, store: Store) -> Backend:
    """Return the backend that the settings name.

    Args:
        store: the prover's own database, where documents may be, too.
    """
    return open_backend(settings.backend, store)


@dataclass(frozen=True)
class Components:
    """The parts of the prover, to be replaced one by one by other implementations.

    Attributes:
        pause: waits for so many seconds, until an answer in words is due.
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
    backend: Callable[[Settings, Store], Backend] = backend_of_settings
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
