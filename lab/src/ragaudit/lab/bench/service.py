"""Both services under a load that does not wait: answers, receipts, memory, what bounds them."""

import itertools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ragaudit.cli.corpus import candidates
from ragaudit.embedders import registry
from ragaudit.lab.bench.machine import processor_seconds
from ragaudit.lab.bench.measure import Measurement
from ragaudit.lab.bench.measure import measure as measured
from ragaudit.lab.bench.memory_of import Growth, MemoryWatch
from ragaudit.lab.bench.open_load import (
    Answered,
    Asker,
    Latency,
    Receipts,
    ask_openly,
    ask_without_pause,
)
from ragaudit.lab.bench.running import (
    WINDOW,
    BothServices,
    WindowSizes,
    both_services,
    passages,
)
from ragaudit.lab.bench.sidecar_phases import Clock, Spent

__all__ = ["Load", "ServiceRun", "measure"]

_MARGIN = 60  # seconds of the window beyond what is asked
_WARM_UP_SECONDS = 2.0
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
        search = _search(load)
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


def _search(load: Load) -> Measurement:
    """Embed the question and search exactly, in this process."""
    embedder = registry.load()
    texts = passages(load.rows)
    vectors = embedder.embed([each.text for each in texts])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    turn = itertools.cycle(candidates(texts))

    def search() -> Any:
        similarity = vectors @ embedder.embed([next(turn)])[0]
        return np.argpartition(similarity, -load.top_k)[-load.top_k :]

    return measured("embed the query, NumPy exact search", search, runs=50)


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
