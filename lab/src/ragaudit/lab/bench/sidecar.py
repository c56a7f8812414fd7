"""The prover in front of a real Chroma: what an answer costs over the bare store.

One run: Chroma's own server with N random rows, `ragaudit up`'s prover and verifier before it, and
the same HTTP requests to either. Each of the many clients has an account of its own, as an account
is answered one query at a time.
"""

import base64
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
from ragaudit.cli.processes import ServiceProcess, free_port
from ragaudit.cli.up.run import Options, Parties, Running, running
from ragaudit.cli.up.store import BASE, Found, chosen, chroma_collections
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.bench.sidecar_phases import Clock, Spent

__all__ = ["Latency", "SidecarRun", "measure"]

NAME = "bench"
BATCH = 500
TOPICS = 64
WARM_UP = 10
_PAGE = 4096  # bytes of a page of memory, in /proc/PID/statm
_SAMPLE_SECONDS = 1.0
_TIMEOUT = 600.0
Vectors = npt.NDArray[np.float32]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Latency:
    """Seconds of an answer, and answers a second.

    Attributes:
        p50, p99: of all answers.
        per_second: of all clients together.
    """

    p50: float
    p99: float
    per_second: float

    @classmethod
    def of(cls, seconds: Sequence[float], wall: float) -> "Latency":
        """Return the figures of a run.

        Args:
            seconds: of each answer, two at least.
            wall: from the first question to the last answer.
        """
        cuts = statistics.quantiles(seconds, n=100, method="inclusive")
        return cls(statistics.median(seconds), cuts[98], len(seconds) / wall)


@dataclass(frozen=True)
class SidecarRun:
    """What was measured at one number of rows.

    Attributes:
        store, sidecar: with one client.
        store_busy, sidecar_busy: with many.
        ratio, ratio_busy: p50 over the store's, with one client; p99 over the store's, with many.
        spent, spent_busy: where the time of the prover's answers went.
        first_receipt: seconds from the start of setting up to the first receipt.
        memory: resident MiB of the prover's process, sampled every second at half load.
    """

    rows: int
    dimension: int
    top_k: int
    clients: int
    store: Latency
    sidecar: Latency
    store_busy: Latency
    sidecar_busy: Latency
    spent: Spent
    spent_busy: Spent
    first_receipt: float
    memory: tuple[float, ...] = field(repr=False, default=())

    @property
    def ratio(self) -> float:
        return self.sidecar.p50 / self.store.p50

    @property
    def ratio_busy(self) -> float:
        return self.sidecar_busy.p99 / self.store_busy.p99

    @property
    def growth(self) -> float | None:
        """MiB by which the median of the last tenth of samples exceeds that of the second."""
        tenth = len(self.memory) // 10
        if tenth == 0:
            return None
        return statistics.median(self.memory[-tenth:]) - statistics.median(
            self.memory[tenth : 2 * tenth]
        )

    def to_json(self) -> dict[str, Any]:
        """Return all figures."""
        return {
            **asdict(self),
            "ratio": self.ratio,
            "ratio_busy": self.ratio_busy,
            "memory_growth": self.growth,
        }


def measure(
    rows: int, dimension: int, top_k: int, runs: int, clients: int, minutes: float, tell: Tell
) -> SidecarRun:
    """Measure at one number of rows.

    Args:
        rows: N.
        dimension: d.
        top_k: K, below N.
        runs: answers of each client that count.
        clients: of the busy part.
        minutes: of half load, for the memory; 0 for none.
        tell: is told what is being done.

    Raises:
        UnsupportedError: Chroma's server is not installed.
        RagauditError: a service did not do its part.
    """
    generator = np.random.default_rng(1)
    topics = generator.normal(size=(TOPICS, dimension))
    with tempfile.TemporaryDirectory(
        prefix="ragaudit-sidecar-", ignore_cleanup_errors=True
    ) as made:
        folder = Path(made)
        with _chroma(folder) as url:
            tell(f"N = {rows}: filling the store")
            _fill(url, _near(topics, rows, generator))
            questions = _near(topics, 256, generator)
            store = _Target(url, "", _identifier(url, {}), questions, top_k)
            tell(f"N = {rows}: the bare store")
            alone = store.ask_alone(runs)
            busy = store.ask_together([""] * clients, runs)
            begun = time.perf_counter()
            metrics = free_port()
            options = _options(folder / "up", url, clients, metrics)
            with running(options, _Quiet(tell)) as both:
                keys = _keys(both.parties)
                place = _identifier(both.parties.prover_url, _header(keys[0]))
                sidecar = _Target(both.parties.prover_url, keys[0], place, questions, top_k)
                sidecar.ask_once()
                first = time.perf_counter() - begun
                tell(f"N = {rows}: the prover in front of it")
                clock = Clock(metrics)
                answered, spent = sidecar.ask_alone(runs), clock.spent()
                pressed, spent_busy = sidecar.ask_together(keys, runs), clock.spent()
                memory = _half_load(both, sidecar, keys, pressed, 60 * minutes)
    return SidecarRun(
        rows=rows,
        dimension=dimension,
        top_k=top_k,
        clients=clients,
        store=alone,
        sidecar=answered,
        store_busy=busy,
        sidecar_busy=pressed,
        spent=spent,
        spent_busy=spent_busy,
        first_receipt=first,
        memory=tuple(memory),
    )


class _Target:
    """One address, asked the same questions."""

    def __init__(self, url: str, key: str, identifier: str, questions: Vectors, top_k: int) -> None:
        self._url = url
        self._key = key
        self._path = f"{BASE}/{identifier}/query"
        self._bodies = [
            {
                "query_embeddings": [question.tolist()],
                "n_results": top_k,
                "include": ["metadatas", "documents", "distances"],
            }
            for question in questions
        ]

    def ask_once(self) -> None:
        """Ask one question."""
        self._ask(self._key, 1, 0, threading.Event())

    def ask_alone(self, runs: int) -> Latency:
        """Ask with one client."""
        return self.ask_together([self._key], runs)

    def ask_together(self, keys: Sequence[str], runs: int) -> Latency:
        """Ask with one client for each key, all of them at once."""
        found: list[list[float]] = []
        go = threading.Event()
        threads = [
            threading.Thread(target=lambda key=key, n=n: found.append(self._ask(key, runs, n, go)))
            for n, key in enumerate(keys)
        ]
        for thread in threads:
            thread.start()
        begun = time.perf_counter()
        go.set()
        for thread in threads:
            thread.join()
        wall = time.perf_counter() - begun
        return Latency.of([each for seconds in found for each in seconds], wall)

    def ask_paced(self, keys: Sequence[str], per_second: float, seconds: float) -> None:
        """Ask at a rate, spread over the clients, for a time."""
        pause, end = len(keys) / per_second, time.perf_counter() + seconds

        def client(key: str, number: int) -> None:
            with self._client(key) as http:
                turn = number
                while (begun := time.perf_counter()) < end:
                    self._post(http, turn)
                    turn += len(keys)
                    time.sleep(max(0.0, pause - (time.perf_counter() - begun)))

        threads = [
            threading.Thread(target=client, args=(key, number)) for number, key in enumerate(keys)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _ask(self, key: str, runs: int, number: int, go: threading.Event) -> list[float]:
        with self._client(key) as http:
            if runs > 1:
                for turn in range(WARM_UP):
                    self._post(http, number + turn)
                go.wait()
            seconds = []
            for turn in range(runs):
                begun = time.perf_counter()
                self._post(http, 7 * number + turn)
                seconds.append(time.perf_counter() - begun)
        return seconds

    def _client(self, key: str) -> httpx.Client:
        headers = _header(key)
        return httpx.Client(base_url=self._url, headers=headers, trust_env=False, timeout=_TIMEOUT)

    def _post(self, http: httpx.Client, turn: int) -> None:
        body = self._bodies[turn % len(self._bodies)]
        http.post(self._path, json=body).raise_for_status()


class _Quiet:
    """Shows what `running` does by one line each."""

    def __init__(self, tell: Tell) -> None:
        self.doing = tell

    def ready(self, parties: Parties, found: Found) -> None:
        """Nobody reads it."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Nobody reads it."""


def _half_load(
    both: Running, target: _Target, keys: Sequence[str], full: Latency, seconds: float
) -> list[float]:
    """Return the prover's resident MiB every second, at half of the rate of full load."""
    if not seconds:
        return []
    samples: list[float] = []
    done = threading.Event()

    def sample() -> None:
        statm = Path(f"/proc/{both.prover.pid}/statm")
        while not done.wait(_SAMPLE_SECONDS):
            samples.append(int(statm.read_text().split()[1]) * _PAGE / 2**20)

    sampler = threading.Thread(target=sample)
    sampler.start()
    target.ask_paced(keys, full.per_second / 2, seconds)
    done.set()
    sampler.join()
    return samples


def _options(folder: Path, url: str, clients: int, metrics: int) -> Options:
    folder.mkdir()
    found = chosen(chroma_collections(url), [NAME])
    (collection,) = found.served
    chroma = {"url": url, "collections": {collection.tenant: NAME}}
    # A retry would get the stored answer: that is not what is measured.
    overrides = {
        "window": {"retry_seconds": 0, "queries_per_account": 1_000_000},
        "limits": {"workers": 32},
        "operation": {"metrics_port": metrics},
    }
    return Options(
        folder=folder,
        found=found,
        backend={"kind": "chroma", "chroma": chroma},
        overrides=overrides,
        accounts=clients,
    )


def _keys(parties: Parties) -> list[str]:
    return [*parties.keys.values(), *parties.more_keys]


def _header(key: str) -> dict[str, str]:
    return {"x-chroma-token": key} if key else {}


def _identifier(url: str, headers: Mapping[str, str]) -> str:
    answer = httpx.get(f"{url}{BASE}/{NAME}", headers=headers, trust_env=False, timeout=_TIMEOUT)
    return str(answer.raise_for_status().json()["id"])


def _near(topics: npt.NDArray[np.float64], count: int, generator: np.random.Generator) -> Vectors:
    """Return directions around topics, float32[count, d]."""
    chosen_topics = topics[generator.integers(len(topics), size=count)]
    spread = generator.normal(size=chosen_topics.shape)
    return (chosen_topics + 0.7 * spread).astype(np.float32)


def _fill(url: str, rows: Vectors) -> None:
    with httpx.Client(base_url=url, trust_env=False, timeout=_TIMEOUT) as client:
        settings = {"name": NAME, "configuration": {"hnsw": {"space": "cosine"}}}
        made = client.post(BASE, json=settings).raise_for_status().json()
        for at in range(0, len(rows), BATCH):
            part = rows[at : at + BATCH]
            names = range(at, at + len(part))
            body = {
                "ids": [f"d{number:07d}" for number in names],
                "embeddings": [base64.b64encode(row.tobytes()).decode() for row in part],
                "documents": [f"The text of document {number}, " * 8 for number in names],
                "metadatas": [{"year": 2000 + number % 20} for number in names],
            }
            client.post(f"{BASE}/{made['id']}/add", json=body).raise_for_status()


@contextmanager
def _chroma(folder: Path) -> Iterator[str]:
    """Run Chroma's own server, and yield its URL."""
    beside = Path(sys.executable).with_name("chroma")
    command = str(beside) if beside.exists() else shutil.which("chroma")
    if command is None:
        raise UnsupportedError("no Chroma server", expected="pip install chromadb")
    port = free_port()
    settings = folder / "chroma.yaml"
    settings.write_text(
        f'listen_address: "127.0.0.1"\nport: {port}\npersist_path: "{folder / "chroma"}"\n'
    )
    with ServiceProcess(
        "chroma",
        [command, "run", str(settings)],
        url=f"http://127.0.0.1:{port}",
        log=folder / "chroma.log",
    ) as process:
        process.wait_ready(120, "/api/v2/heartbeat")
        yield process.url
