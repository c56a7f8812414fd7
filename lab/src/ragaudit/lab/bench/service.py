"""Both services over HTTP: under a load that does not wait, and one answer after the other."""

import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from math import isqrt
from pathlib import Path
from typing import Any

import typer
from ragaudit.cli.processes import ServiceProcess, free_port
from ragaudit.embedders import registry
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.bench import one_row
from ragaudit.lab.bench.harness import (
    Measurement,
    duration,
    processor_seconds,
    show_json,
    summarise,
)
from ragaudit.lab.bench.harness import measure as measured
from ragaudit.lab.bench.load import (
    Answered,
    Asker,
    Clock,
    Growth,
    Latency,
    MemoryWatch,
    Receipts,
    Spent,
    ask_openly,
    ask_without_pause,
)
from ragaudit.lab.bench.services import (
    WINDOW,
    BothServices,
    WindowSizes,
    both_services,
    exact_search,
)
from ragaudit.lab.bench.workload import Task
from ragaudit.lab.demo.plan import COALITION_MAX, measure_pace
from rich.table import Table

SEARCH = "embed the query, NumPy exact search"
_MARGIN = 60  # seconds of the window beyond what is asked
_WARM_UP_SECONDS = 2.0
_QUERIES_OF_SIGMA = 100  # for which sigma was chosen
_FIRST = 3  # answers that warm up, one after the other
_CLIENTS = (1, 8)
_CORE_BUSY = 0.85  # of a core: with more, an interpreter has no time left for a burst
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Load:
    """What is asked.

    Attributes:
        rows: N.
        top_k: K.
        rate: queries a second.
        seconds: how long.
        accounts: that ask, each one query at a time.
        minutes: of half of that rate, for the memory.
        provers: processes.
    """

    rows: int
    top_k: int
    rate: float
    seconds: float
    accounts: int
    minutes: float
    provers: int


@dataclass(frozen=True)
class ServiceRun:
    """What was measured.

    Attributes:
        store: "sqlite" or "postgresql".
        search: seconds of embedding a question and NumPy's exact search, the median.
        idle: of requests that do nothing, at the same rate.
        answers: durable and signed, at the rate.
        receipts: from the answer until it is provable under a cosigned checkpoint.
        per_second, most_per_second: answers at the rate, and of all accounts without a pause.
        cores: by process, how many cores it kept busy at the rate; ``machine`` is all processes.
        spent: where the time of the first prover's answers went at the rate.
        memory: by process, resident MiB once a second, at half the rate.
    """

    load: Load
    store: str
    search: float
    idle: Latency
    answers: Latency
    receipts: Latency
    per_second: float
    most_per_second: float
    cores: dict[str, float]
    spent: Spent
    growth: dict[str, Growth | None]
    memory: dict[str, list[float]] = field(repr=False, default_factory=dict)

    @property
    def ratio(self) -> float:
        """p50 of answers over that of requests that do nothing."""
        return self.answers.p50 / self.idle.p50

    @property
    def ratio_tail(self) -> float:
        """p99 of answers over that of requests that do nothing."""
        return self.answers.p99 / self.idle.p99

    @property
    def bound(self) -> str:
        """What bounds the rate of answers, as far as the figures tell."""
        available = os.cpu_count() or 1
        prover = max(busy for name, busy in self.cores.items() if name.startswith("prover"))
        if self.cores["machine"] > _CORE_BUSY * available:
            return f"the machine: {self.cores['machine']:.2f} of {available} cores are busy"
        if prover > _CORE_BUSY:
            return f"one interpreter: a prover's process keeps {prover:.2f} cores busy"
        busiest = max(self.spent.phases, key=lambda name: self.spent.phases[name])
        return f"nothing is full at this rate; most of an answer's time is its phase {busiest!r}"

    def to_json(self) -> dict[str, Any]:
        """Return all figures."""
        growth = {
            name: None if each is None else {**asdict(each), "flat": each.flat}
            for name, each in self.growth.items()
        }
        return {
            **asdict(self),
            "growth": growth,
            "ratio": self.ratio,
            "ratio_tail": self.ratio_tail,
            "bound": self.bound,
        }


def measure(load: Load, postgresql: str | None, tell: Tell) -> ServiceRun:
    """Run the services and measure them.

    Args:
        load: what is asked.
        postgresql: as of `both_services`.
        tell: is told what is being done.

    Raises:
        MalformedError, ServiceFailed: as of `both_services`; or a query was not answered.
    """
    asked = load.rate * (2 * load.seconds + 30 * load.minutes + 4 * _WARM_UP_SECONDS) + 1000
    sizes = WindowSizes(
        load.rows, load.top_k, load.accounts,
        queries=round(2 * asked / load.accounts) + 10,
        seconds=round(4 * load.seconds + 60 * load.minutes) + _MARGIN,
    )  # fmt: skip
    with both_services(sizes, postgresql=postgresql, provers=load.provers, tell=tell) as both:
        tell("the search alone")
        search = measured(SEARCH, exact_search(load.rows, load.top_k), runs=50)
        idle = _ask(both.idle_askers(), load.rate, load.seconds / 2)
        askers = both.askers()
        ask_openly(askers, load.rate, _WARM_UP_SECONDS)
        tell(f"{load.rate:g} queries a second")
        receipts, clock = Receipts(both.provers[0], WINDOW), Clock(both.metrics, "account")
        try:
            before = _processor(both)
            answered = ask_openly(askers, load.rate, load.seconds)
            after, spent = _processor(both), clock.spent()
            completed = receipts.completed(answered)
        finally:
            receipts.close()
        tell("as many as are answered")
        most = ask_without_pause(askers, max(load.accounts, round(load.rate * load.seconds / 2)))
        tell("half the rate, for the memory")
        with MemoryWatch(both.processes) as memory:
            if load.minutes:
                ask_openly(askers, load.rate / 2, 60 * load.minutes)
        for each in askers:
            each.close()
        return ServiceRun(
            load=load,
            store="sqlite" if postgresql is None else "postgresql",
            search=search.median,
            idle=Latency.of(idle.seconds),
            answers=Latency.of(answered.seconds),
            receipts=Latency.of(completed),
            per_second=answered.per_second,
            most_per_second=most.per_second,
            cores={name: (after[name] - before[name]) / answered.wall for name in before},
            spent=spent,
            growth={name: memory.growth(name) for name in both.processes},
            memory=memory.resident,
        )


def _ask(askers: Sequence[Asker], rate: float, seconds: float) -> Answered:
    try:
        return ask_openly(askers, rate, seconds)
    finally:
        for each in askers:
            each.close()


def _processor(both: BothServices) -> dict[str, float]:
    """User and system seconds so far of each process, and of the machine."""
    found = {name: processor_seconds(pid) or 0.0 for name, pid in both.processes.items()}
    # user, nice, system, idle, iowait, irq, softirq: all but the two in which nothing runs.
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:8]
    except OSError:
        return {**found, "machine": time.process_time()}
    busy = sum(int(each) for number, each in enumerate(fields) if number not in (3, 4))
    return {**found, "machine": busy / os.sysconf("SC_CLK_TCK")}


def show(run: ServiceRun, as_json: bool) -> None:
    """Print a run: tables, or one JSON object with the machine.

    Args:
        as_json: whether a program reads it.
    """
    if as_json:
        show_json(run=run.to_json())
        return
    load = run.load
    console = Console()
    title = f"service: N = {load.rows:,}, {load.rate:g} queries a second, {run.store}"
    table = Table("", "p50", "p99", "highest", title=title, title_justify="left", show_edge=False)
    table.add_row(SEARCH, duration(run.search), "", "")
    for name, latency in (
        ("a request that does nothing", run.idle),
        ("answer, durable and signed", run.answers),
        ("from the answer to the receipt's proof", run.receipts),
    ):
        table.add_row(name, *map(duration, (latency.p50, latency.p99, latency.highest)))
    table.add_row("answer over the request", f"{run.ratio:.2f} x", f"{run.ratio_tail:.2f} x", "")
    console.print(table)
    typer.echo(f"answers a second: {run.per_second:.1f}; without a pause {run.most_per_second:.1f}")
    busy = ", ".join(f"{name} {cores:.2f}" for name, cores in run.cores.items())
    typer.echo(f"cores kept busy: {busy}")
    phases = ", ".join(f"{name} {duration(each)}" for name, each in run.spent.phases.items())
    typer.echo(f"an answer in the first prover: {phases}, the rest {duration(run.spent.rest)}")
    typer.echo(
        f"one transaction with its fence: {duration(run.spent.durable)}, "
        f"{run.spent.answers:.1f} answers in it"
    )
    typer.echo(f"what bounds it: {run.bound}")
    for name, growth in run.growth.items():
        if growth is not None:
            line = f"{growth.last:.1f} MiB, {growth.per_minute:+.2f} MiB a minute"
            typer.echo(f"memory of the {name}: {line}: {'flat' if growth.flat else 'not flat'}")


def answer_http(task: Task) -> list[Measurement]:
    """Measure answering one plain query over HTTP.

    The entry is durable and the signed receipt included; then its completion by a cosigned
    checkpoint; beside embedding the query and NumPy's exact search. Then what the prover's process
    spends on an answer while clients ask without a pause.

    Args:
        task: its dimension must be the embedder's; its rows are passages of Python's documentation.

    Raises:
        UnsupportedError: another dimension than the embedder's.
        ServiceFailed: a service did not start, or the window did not open.
    """
    sizes, runs = task.work.sizes, task.runs
    embedder = registry.load()
    if sizes.dimension != embedder.dimension:
        raise UnsupportedError(
            f"d = {sizes.dimension}",
            where="--dim",
            expected=f"{embedder.dimension}, the embedder's",
        )
    baseline = task.measure(SEARCH, exact_search(sizes.rows, sizes.top_k))
    task.stage("window over HTTP")
    window = WindowSizes(
        sizes.rows, sizes.top_k, accounts=1 + sum(_CLIENTS), queries=2 * runs + _FIRST,
        seconds=round(measure_pace() * (60 + 2 * runs)),
    )  # fmt: skip
    # With less noise so many answers together have no finite epsilon; it takes as long to draw.
    enough = isqrt(COALITION_MAX * window.queries // _QUERIES_OF_SIGMA) + 1
    noise = {"sigma": str(enough * Decimal(sizes.sigma)), "epsilon_acc": None}
    with both_services(window, overrides=noise) as both:
        alone, *others = both.askers()
        answered, completed = _one_by_one(both, alone, runs)
        turns, prover = iter(others), both.running[-1]
        busy = [
            _beside_one_row(_keep_busy(prover, list(itertools.islice(turns, each)), runs), each)
            for each in _CLIENTS
        ]
    return [
        baseline,
        summarise("answer over HTTP, durable, signed", answered).beside(baseline),
        summarise("until its cosigned proof", completed),
        *(each for of_clients in busy for each in of_clients),
    ]


def _one_by_one(both: BothServices, asker: Asker, runs: int) -> tuple[list[float], list[float]]:
    """Ask one query after the other, each proven before the next; a few first ones do not count.

    Returns:
        Seconds of each answer, and seconds from each answer to its cosigned proof.
    """
    answered, completed = [], []
    for _ in range(runs + _FIRST):
        begun = time.perf_counter()
        index = asker.ask()
        answered.append(time.perf_counter() - begun)
        assert index is not None  # every question has an entry
        both.await_proof(index)
        completed.append(time.perf_counter() - begun - answered[-1])
    asker.close()
    return answered[_FIRST:], completed[_FIRST:]


def _keep_busy(process: ServiceProcess, askers: Sequence[Asker], runs: int) -> Measurement | None:
    """Measure user and system time of a process while clients ask it without a pause.

    Of the prover, checkpoints are in it. None where the system does not tell a process's time.
    """
    clients = len(askers)
    begun = processor_seconds(process.pid)
    if begun is None:
        return None
    ask_without_pause(askers, clients * runs)
    spent = (processor_seconds(process.pid) or begun) - begun
    for each in askers:
        each.close()
    plural = "client asks" if clients == 1 else "clients ask"
    name = f"user and system time of the {process.name}, {clients} {plural} without a pause"
    return replace(summarise(name, [spent]), warmed_up=True, records=clients * runs)


def _beside_one_row(answers: Measurement | None, clients: int) -> list[Measurement]:
    """Return what the prover spends beside what a FastAPI route spends that commits one row."""
    if answers is None:
        return []
    with tempfile.TemporaryDirectory(prefix="ragaudit-bench-") as folder:
        port, place = free_port(), Path(folder)
        command = [sys.executable, "-m", one_row.__name__, str(port), str(place / "rows.sqlite")]
        url = f"http://127.0.0.1:{port}"
        with ServiceProcess("FastAPI route", command, log=place / "log", url=url) as process:
            process.wait_ready(path=one_row.READY)
            body = json.dumps({"query": "?", "top_k": 5, "filter": "", "kind": "text"}).encode()
            askers = [Asker(url, one_row.ROUTE, [body]) for _ in range(clients)]
            alone = _keep_busy(process, askers, answers.records // clients)
    if alone is None:
        return [answers]
    named = replace(alone, name=f"{alone.name}, a committed row each")
    return [named, answers.beside(named)]
