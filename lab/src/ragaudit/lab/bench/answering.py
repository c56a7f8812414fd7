"""Answering one query in this process: one open window of one tenant, synthetic rows.

All that a service does for a query is done: admission, embedding (here a hash: a real embedder
is measured apart), noise, selection, commitment, the log's entry, both parts of the receipt and
the reply's JSON. Left out, unless it is asked for, is what makes the entry durable: the database
does not synchronize and there is no fence. Commitments are random bytes: no time depends on them.
What it is compared with is exact search over the same vectors, without noise, record, receipt or
proof.
"""

import functools
import secrets
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.bench.harness import STEP, Measurement, summarise
from ragaudit.lab.bench.workload import (
    Sizes,
    Task,
    Workload,
    faiss_int8_search,
    faiss_search,
    numpy_search,
)
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.log.store import HeadRow, LogStore
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.challenge import Activation
from ragaudit.ledger.messages.commitments import content_digest
from ragaudit.ledger.messages.manifests import GeneratorManifest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import GenerationRequest
from ragaudit.ledger.messages.requests import Request
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.prover.answering.answering import Retrieval
from ragaudit.prover.answering.charging import Charging
from ragaudit.prover.answering.context import Context
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Stages
from ragaudit.prover.backend_settings import ChannelSettings
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.index.committed import BYTES, CommittedIndex
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder
from ragaudit.prover.randomness import OsRandomness, SeedTree
from ragaudit.prover.settings import WindowSettings
from ragaudit.prover.store.accounts import Account, Accounts
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State
from ragaudit.prover.window.charges import StoredCharge
from ragaudit.prover.window.log_transaction import WindowFence
from ragaudit.prover.window.open_window import OpenWindow, WindowLog
from ragaudit.prover.window.registrations import Registrar
from ragaudit.prover.window.windows import Windows
from sqlalchemy import Connection, event

WINDOW, TENANT = "bench", "bench"


@dataclass(frozen=True)
class Channel:
    """A generation channel: its settings, and its model's manifest."""

    settings: ChannelSettings
    generator: GeneratorManifest


class InProcess:
    """Answers up to ``queries`` queries to the workload's index, its documents short texts."""

    def __init__(
        self,
        work: Workload,
        folder: Path,
        queries: int,
        *,
        mechanism: type[Mechanism] = Mechanism,
        stages: Stages | None = None,
        channel: Channel | None = None,
        durable: bool = False,
        url: str | None = None,
    ) -> None:
        """Make database, documents, index and window in ``folder``, which is empty.

        Args:
            queries: that will be answered, at most ``sizes.queries`` by an account.
            mechanism, stages: what answers; for measuring its steps, subclasses.
            channel: of generation, if the window has one.
            durable: whether an entry is on the disk, and in the fence, before it counts.
            url: of SQLAlchemy, of an empty database; a file in ``folder`` if there is none.
        """
        sizes = work.sizes
        self._sizes = sizes
        self._asked = 0
        self._store = Store.create(url or f"sqlite:///{folder / 'prover.sqlite'}")
        self._fence = folder / "fence" if durable else None
        if not durable:
            event.listen(self._store.engine, "connect", _forget_durability)
            self._store.engine.dispose()  # connections opened before the listener
        documents = [Document(f"{n}", f"Document number {n}.") for n in range(sizes.rows)]
        backend = StoredDocuments(self._store)
        backend.add(TENANT, documents)
        self._accounts = [
            Account(f"bench-{n}", TENANT) for n in range(-(-queries // sizes.queries))
        ]
        windows = Windows(self._store)
        provider, log_key = PrivateKey.generate(), PrivateKey.generate()
        policy = _policy(sizes, len(self._accounts), provider, log_key, channel)
        embedder = HashEmbedder(sizes.dimension)
        self._live = self._open(windows, policy, log_key, embedder, _index(work, documents))
        index = self._live.indexes[TENANT]
        index.prepare(scorer=self._live.versions.rule(index) is None)
        registrar, accounts = Registrar(self._store, windows, _clock), Accounts(self._store)
        for each in self._accounts:
            accounts.add(each.tenant, each.name)
            registrar.register(self._live, each, None, None)
        self._live.activate(
            Activation(
                window=policy.window,
                a=1,
                preimage=bytes(BYTES),
                covered_size=len(self._accounts),
                time=0,
            )
        )
        self._retrieval = Retrieval(Context(
            store=self._store, windows=windows, backend=backend, mechanism=mechanism(embedder),
            key=provider, clock=_clock, stages=stages or Stages(),
        ))  # fmt: skip
        self._charging = Charging(self._retrieval.context)

    def answer(self) -> bytes:
        """Answer the next query; returns the reply: its receipt file."""
        account, query = self._next()
        request = Request(query, self._sizes.top_k, filter="")
        return self._retrieval.take(self._live, account, request).answer().encode()

    def charge(self) -> StoredCharge:
        """Charge the next question to the rows above the channel's threshold."""
        account, query = self._next()
        return self._charging.take(self._live, account, GenerationRequest(query))

    def _next(self) -> tuple[Account, str]:
        number = self._asked
        self._asked += 1
        return self._accounts[number // self._sizes.queries], f"Question number {number}?"

    def close(self) -> None:
        self._store.close()

    def _open(
        self,
        windows: Windows,
        policy: Policy,
        log_key: PrivateKey,
        embedder: HashEmbedder,
        index: CommittedIndex,
    ) -> OpenWindow:
        """The window, open, with an empty log."""
        secret, pseudonym_key = secrets.token_bytes(32), secrets.token_bytes(32)
        windows.create(
            WINDOW,
            policy=policy.canonical,
            embedder=embedder.manifest().encode(),
            log_seed=log_key.seed(),
            noise_seed=secret,
            pseudonym_key=pseudonym_key,
        )
        windows.note(WINDOW, state=State.OPEN)
        key = SigningKey(policy.origin, ED25519, log_key)
        entries = LogStore.create(self._store.engine, key.verifier_key)
        cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
        log = WindowLog(entries, CheckpointStore(entries, cosigners), key)
        fence: WindowFence = NoFence(Path("none"), entries, lambda _: 0)
        if self._fence is not None:
            fence = WindowFence(self._fence, entries, lambda _: 0)
            fence.open()
        return OpenWindow(
            policy=policy,
            pseudonym_key=pseudonym_key,
            indexes={TENANT: index},
            seed=SeedTree(WINDOW, secret, policy.slots, policy.queries_per_account),
            log=log,
            fence=fence,
            randomness=OsRandomness(),
            anchor=bytes(BYTES),
        )


class NoFence(WindowFence):
    """Nothing outside the database."""

    def check_head(self, connection: Connection) -> HeadRow:
        return self.entries.lock(connection)

    def check_account(self, pseudonym: bytes, used: int) -> None:
        pass

    def advance(self, head: TreeHead, counters: Mapping[bytes, int]) -> None:
        pass


def _policy(
    sizes: Sizes, slots: int, provider: PrivateKey, log_key: PrivateKey, channel: Channel | None
) -> Policy:
    cosigner = SigningKey("verifier.example", COSIGNATURE_V1, PrivateKey.generate())
    shown = ShownKeys(
        arbiter=None,
        name="bench",
        cosigner=cosigner.verifier_key,
        verifier=PrivateKey.generate().public,
        verdict=PrivateKey.generate().public,
        time=_clock(),
    )
    settings = WindowSettings(
        opens_after_seconds=1, length_seconds=10**6, activation_every_seconds=10**6,
        sigma=sizes.sigma, epsilon_acc=None, top_k_max=sizes.top_k,
        queries_per_account=sizes.queries, slots=slots, coalition_max=1,
        generation=None if channel is None else channel.settings,
    )  # fmt: skip
    return PolicyBuilder("bench.example", provider.public).build(
        window=WINDOW,
        log_key=log_key.public,
        settings=settings,
        tenants=[TENANT],
        dimension=sizes.dimension,
        verifier=shown,
        previous_checkpoint=None,
        # In the past, so that the window has begun and queries are answered at once.
        now=_clock() - 10_000,
        generator=None if channel is None else channel.generator,
    )


def _index(work: Workload, documents: Sequence[Document]) -> CommittedIndex:
    random, count = np.random.default_rng(1), work.sizes.rows
    return CommittedIndex(
        tenant=TENANT,
        ids=tuple(each.id for each in documents),
        content_digests=b"".join(content_digest(each.content) for each in documents),
        rows=work.rows,
        blindings=work.blindings,
        salts=random.bytes(BYTES * count),
        # Answering copies them into receipts and no more; real ones take longer to make than all
        # that is measured.
        commitments=random.bytes(BYTES * count),
        root=bytes(BYTES),
        proof=b"",
    )


def _clock() -> int:
    return time.time_ns() // 10**6


def _forget_durability(connection: Any, _: object) -> None:
    # What a disk takes would drown the steps; it is in what is measured over HTTP.
    connection.execute("PRAGMA synchronous=OFF")


ANSWER = "answer one query, nothing durable"
REST = "the rest"

# Methods by the step that they belong to; none of them calls another one.
_OF_MECHANISM = {
    "embed": "embedding, by a hash",
    "quantise": "quantise and sketch",
    "sketch": "quantise and sketch",
    "draw_noise": "noise",
    "scores": "scores of the candidates",
    "select": "select and commit",
    "selection_commitment": "select and commit",
}
_OF_STAGES = {
    "query": {"admit": "admission"},
    "selected": {"documents": "documents", "commit_record": "log, not durable"},
    "logged": {"answer": "receipt"},
}
_STEPS = ("admission", *_OF_MECHANISM.values(), "documents", "log, not durable", "receipt")

T = TypeVar("T")


def answer(task: Task) -> list[Measurement]:
    """Measure answering in this process and its steps, beside exact search with NumPy and FAISS.

    The steps are timed inside the whole: their sum is the whole, but for what is called the rest.

    Args:
        task: workload, number of runs and allowance.
    """
    task.stage("NumPy")
    baseline = numpy_search(task.work, task.runs)
    task.stage("FAISS")
    libraries = [faiss_search(task.work, task.runs), faiss_int8_search(task.work, task.runs)]
    task.stage("making window and documents")
    taken: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="ragaudit-bench-") as folder:
        desk = InProcess(
            task.work,
            Path(folder),
            # One more than counts: the first warms up.
            task.runs + 1,
            mechanism=_timed(Mechanism, _OF_MECHANISM, taken),
            stages=_timed_stages(taken),
        )

        def answer_next() -> None:
            taken.append(defaultdict(float))
            begun = time.perf_counter()
            desk.answer()
            taken[-1][REST] += time.perf_counter() - begun - sum(taken[-1].values())

        whole = task.measure(ANSWER, answer_next).beside(baseline)
        desk.close()
    counted = taken[-whole.runs :]  # the first run warmed up
    steps = [
        summarise(STEP + step, [each[step] for each in counted]).beside(baseline)
        for step in dict.fromkeys([*_STEPS, REST])
    ]
    searches = [each.beside(baseline) for each in libraries if each is not None]
    return [baseline, *searches, whole, *steps]


def _timed_stages(taken: list[dict[str, float]]) -> Stages:
    """The stages of a query, each step of which is timed."""
    honest = Stages()
    timed = {
        name: _timed(getattr(honest, name), steps, taken) for name, steps in _OF_STAGES.items()
    }
    return replace(honest, **timed)


def _timed(of: type[T], steps: Mapping[str, str], taken: list[dict[str, float]]) -> type[T]:
    """A subclass that adds the seconds of every step to the last of ``taken``."""

    def around(method: Callable[..., Any], step: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def timed(*arguments: Any, **options: Any) -> Any:
            begun = time.perf_counter()
            try:
                return method(*arguments, **options)
            finally:
                taken[-1][step] += time.perf_counter() - begun

        return timed

    methods = {name: around(getattr(of, name), step) for name, step in steps.items()}
    return cast(type[T], type(f"Timed{of.__name__}", (of,), methods))
