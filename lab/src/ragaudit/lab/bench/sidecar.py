"""The prover in front of a real Chroma: what an answer costs over the bare store.

One run: Chroma's own server with N random rows, `ragaudit up`'s prover and verifier before it, and
the same HTTP requests to either. Each of the many clients has an account of its own, as an account
is answered one query at a time.
"""

import base64
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
import typer
from ragaudit.cli.processes import ServiceProcess, free_port
from ragaudit.cli.up.run import Options, Parties, Running, running
from ragaudit.cli.up.store import BASE, Found, chosen, chroma_collections
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.bench import load
from ragaudit.lab.bench.harness import show_json
from ragaudit.lab.bench.load import (
    PHASES,
    Answered,
    Asker,
    Clock,
    MemoryWatch,
    Spent,
    ask_openly,
    ask_without_pause,
)
from rich.table import Table

NAME = "bench"
BATCH = 500
TOPICS = 64
WARM_UP = 10
_HEADER = "x-chroma-token"
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
    def of(cls, answered: Answered) -> "Latency":
        """Return the figures of a run of two answers at least."""
        found = load.Latency.of(answered.seconds)
        return cls(found.p50, found.p99, answered.per_second)


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
            tell(f"N = {rows}: the bare store")
            alone, busy = (
                _Target(url, [""] * count, questions, top_k).ask(runs) for count in (1, clients)
            )
            begun = time.perf_counter()
            metrics = free_port()
            options = _options(folder / "up", url, clients, metrics)
            with running(options, _Quiet(tell)) as both:
                keys = [*both.parties.keys.values(), *both.parties.more_keys]
                prover = both.parties.prover_url
                one = _Target(prover, keys[:1], questions, top_k)
                with _closing(one.askers()) as (asker,):
                    asker.ask()
                first = time.perf_counter() - begun
                tell(f"N = {rows}: the prover in front of it")
                clock = Clock(metrics)
                answered, spent = one.ask(runs), clock.spent()
                many = _Target(prover, keys, questions, top_k)
                pressed, spent_busy = many.ask(runs), clock.spent()
                memory = _half_load(both, many, pressed, 60 * minutes)
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


@dataclass(frozen=True)
class _Target:
    """One address, asked the same questions by a client for each key."""

    url: str
    keys: Sequence[str]
    questions: Vectors
    top_k: int

    def askers(self) -> list[Asker]:
        """Return a client for each key; each begins at another question."""
        path = f"{BASE}/{_identifier(self.url, self.keys[0])}/query"
        wanted = {"n_results": self.top_k, "include": ["metadatas", "documents", "distances"]}
        bodies = [
            json.dumps({"query_embeddings": [question.tolist()], **wanted}).encode()
            for question in self.questions
        ]
        turns = [7 * number % len(bodies) for number in range(len(self.keys))]
        return [
            Asker(self.url, path, bodies[at:] + bodies[:at], key, _HEADER)
            for key, at in zip(self.keys, turns, strict=True)
        ]

    def ask(self, runs: int) -> Latency:
        """Ask with all clients at once, each ``runs`` times; some answers before do not count."""
        with _closing(self.askers()) as askers:
            ask_without_pause(askers, WARM_UP * len(askers))
            return Latency.of(ask_without_pause(askers, runs * len(askers)))


@contextmanager
def _closing(askers: list[Asker]) -> Iterator[list[Asker]]:
    try:
        yield askers
    finally:
        for each in askers:
            each.close()


class _Quiet:
    """Shows what `running` does by one line each."""

    def __init__(self, tell: Tell) -> None:
        self.doing = tell

    def ready(self, parties: Parties, found: Found) -> None:
        """Nobody reads it."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Nobody reads it."""


def _half_load(both: Running, target: _Target, full: Latency, seconds: float) -> list[float]:
    """Return the prover's resident MiB every second, at half of the rate of full load."""
    if not seconds:
        return []
    with _closing(target.askers()) as askers, MemoryWatch({"prover": both.prover.pid}) as memory:
        ask_openly(askers, full.per_second / 2, seconds)
    return memory.resident["prover"]


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


def _identifier(url: str, key: str) -> str:
    answer = httpx.get(
        f"{url}{BASE}/{NAME}", headers={_HEADER: key}, trust_env=False, timeout=_TIMEOUT
    )
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


def show(found: Sequence[SidecarRun], as_json: bool) -> None:
    """Print the runs: a table, or one JSON object with the machine.

    Args:
        found: one for each number of rows.
        as_json: whether a program reads it.
    """
    if as_json:
        show_json(runs=[run.to_json() for run in found])
        return
    table = Table("", *(f"N = {run.rows:,}" for run in found), show_edge=False)
    for name, figure in _FIGURES.items():
        table.add_row(name, *(figure(run) for run in found))
    Console().print(table)
    _show_spent(found)
    clients = found[0].clients
    typer.echo(f"Each once, on this machine: one client, then {clients} with an account each.")


def _show_spent(found: Sequence[SidecarRun]) -> None:
    """Print where the time of the prover's answers went."""
    columns = [(run, spent) for run in found for spent in (run.spent, run.spent_busy)]
    heads = [
        f"N = {run.rows:,}\n{1 if spent is run.spent else run.clients} at once"
        for run, spent in columns
    ]
    table = Table("in the prover, means", *heads, show_edge=False)
    for name in PHASES:
        if any(name in spent.phases for _, spent in columns):
            table.add_row(name, *(_ms(spent.phases.get(name, 0.0)) for _, spent in columns))
    for name, figure in _SPENT.items():
        table.add_row(name, *(figure(spent) for _, spent in columns))
    Console().print(table)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"


def _rate(latency: Latency) -> str:
    return f"{latency.per_second:.0f}"


def _memory(run: SidecarRun) -> str:
    growth = run.growth
    if growth is None:
        return "not measured"
    return f"{run.memory[-1]:.0f} MiB, {growth:+.1f} in {len(run.memory) / 60:.1f} min"


_SPENT: Mapping[str, Callable[[Spent], str]] = {
    "rest: HTTP, JSON, threads": lambda spent: _ms(spent.rest),
    "one transaction and fence": lambda spent: _ms(spent.durable),
    "answers in a transaction": lambda spent: f"{spent.answers:.1f}",
}
_FIGURES: Mapping[str, Callable[[SidecarRun], str]] = {
    "store, one client: p50": lambda run: _ms(run.store.p50),
    "prover, one client: p50": lambda run: _ms(run.sidecar.p50),
    "  over the store": lambda run: f"{run.ratio:.2f} x",
    "store, many clients: p99": lambda run: _ms(run.store_busy.p99),
    "prover, many clients: p99": lambda run: _ms(run.sidecar_busy.p99),
    "  over the store ": lambda run: f"{run.ratio_busy:.2f} x",
    "store, answers a second": lambda run: _rate(run.store_busy),
    "prover, answers a second": lambda run: _rate(run.sidecar_busy),
    "set up to first receipt": lambda run: f"{run.first_receipt:.1f} s",
    "prover's memory at half load": _memory,
}
