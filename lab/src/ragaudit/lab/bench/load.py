"""Load on running services: how long each answer took, where its time went, what memory it took.

At a rate that does not wait for answers an arrival has its instant whether or not the one before it
was answered; its time counts from that instant, so that a service that falls behind is not spared
(no coordinated omission). Where the time of an answer goes is what the prover's own metrics tell.
"""

import contextlib
import http.client
import itertools
import json
import math
import random
import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
from ragaudit.cli.processes import ServiceFailed
from ragaudit.lab.bench.harness import peak_memory_mib, reset_peak

_TIMEOUT = 120.0
_POLL_SECONDS = 0.05
_COMPLETE_SECONDS = 120.0


@dataclass(frozen=True)
class Latency:
    """Seconds of what was asked for.

    Attributes:
        p50, p99, highest: of all.
    """

    p50: float
    p99: float
    highest: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Latency":
        """Return the figures.

        Args:
            seconds: of each, two at least.
        """
        cuts = statistics.quantiles(seconds, n=100, method="inclusive")
        return cls(statistics.median(seconds), cuts[98], max(seconds))


@dataclass
class Answered:
    """What came of a load.

    Attributes:
        seconds: of each answer, from the instant at which it was due to be asked.
        entries: (index in the log, instant of the answer) of each that has one.
        wall: seconds from the first arrival to the last answer.
    """

    seconds: list[float] = field(default_factory=list, repr=False)
    entries: list[tuple[int, float]] = field(default_factory=list, repr=False)
    wall: float = 0.0

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return len(self.seconds) / self.wall


class Asker:
    """One client with a connection of its own, which stays open."""

    def __init__(
        self,
        url: str,
        path: str,
        bodies: Sequence[bytes] = (),
        key: str = "",
        header: str = "Authorization",
    ) -> None:
        """Connect at the first question.

        Args:
            url: of the service.
            path: what is asked for.
            bodies: of the requests, one after the other, in turns; none are posted if empty.
            key: of the account.
            header: that carries it; another one than Authorization carries it alone.
        """
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT)
        self._path = path
        self._bodies = itertools.cycle(bodies) if bodies else None
        shown = f"Bearer {key}" if header == "Authorization" else key
        self._headers = {header: shown, "Content-Type": "application/json"}

    def get(self) -> bytes:
        """Return what is at the path.

        Raises:
            ServiceFailed: any other status than 200.
        """
        return self._send("GET", None)

    def ask(self) -> int | None:
        """Ask the next question; return the index of its entry in the log, if it has one.

        Raises:
            ServiceFailed: any other status than 200.
        """
        if self._bodies is None:
            self.get()
            return None
        public = self.reply().get("public")
        return None if public is None else int(public["index"])

    def reply(self) -> dict[str, Any]:
        """Ask the next question, of which there is one; return the reply.

        Raises:
            ServiceFailed: any other status than 200.
        """
        assert self._bodies is not None
        return dict(json.loads(self._send("POST", next(self._bodies))))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _send(self, method: str, body: bytes | None) -> bytes:
        headers = self._headers if body is not None else {}
        self._connection.request(method, self._path, body=body, headers=headers)
        reply = self._connection.getresponse()
        content = reply.read()
        if reply.status != 200:
            raise ServiceFailed(f"HTTP {reply.status}: {content[:300]!r}", where=self._path)
        return content


def ask_openly(askers: Sequence[Asker], rate: float, seconds: float) -> Answered:
    """Ask at random instants (a Poisson process, the same in each run).

    Args:
        askers: that ask in turn; an arrival waits while all of them wait.
        rate: arrivals a second.
        seconds: how long.
    """
    draw = random.Random(1).expovariate  # noqa: S311 - instants of arrivals, nothing secret
    count = max(2, round(rate * seconds))
    instants = list(itertools.accumulate(draw(rate) for _ in range(count)))
    return _ask(askers, iter(instants))


def ask_without_pause(
    askers: Sequence[Asker],
    count: int,
    notify: Callable[[int], None] = lambda _: None,
    until: float = math.inf,
) -> Answered:
    """Ask as fast as answers come: each asker's next question follows its answer.

    Args:
        askers: that ask at once.
        count: of all questions, fewer where the time does not suffice.
        notify: called with the number of answers so far.
        until: when no further question begins, as of `time.time`.
    """
    instants = itertools.repeat(0.0, count)
    return _ask(askers, itertools.takewhile(lambda _: time.time() < until, instants), notify)


def _ask(
    askers: Sequence[Asker],
    instants: Iterator[float],
    notify: Callable[[int], None] = lambda _: None,
) -> Answered:
    """Ask at instants, in seconds from now; 0 stands for the moment at which one is free."""
    found, lock = Answered(), threading.Lock()
    failures: list[BaseException] = []
    begun = time.perf_counter()

    def work(asker: Asker) -> None:
        try:
            while not failures:
                with lock:
                    instant = next(instants, None)
                if instant is None:
                    return
                due = begun + instant if instant else time.perf_counter()
                time.sleep(max(0.0, due - time.perf_counter()))
                index = asker.ask()
                now = time.perf_counter()
                with lock:
                    found.seconds.append(now - due)
                    notify(len(found.seconds))
                    if index is not None:
                        found.entries.append((index, now))
        except (ServiceFailed, OSError, http.client.HTTPException) as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(asker,)) for asker in askers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.wall = time.perf_counter() - begun
    if failures:
        raise failures[0]
    return found


class Receipts:
    """Sees from when on receipts are complete: provable under a cosigned checkpoint.

    It asks for the published checkpoint, not for each proof: the service spends no more on being
    measured.
    """

    def __init__(self, url: str, window: str) -> None:
        """Look on from now on.

        Args:
            url: of the prover.
            window: whose log.
        """
        self._asker = Asker(url, f"/v1/windows/{window}/log/checkpoint")
        self._covered: list[tuple[int, float]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def completed(self, answered: Answered) -> list[float]:
        """Return the seconds from each answer to the completion of its receipt; stop looking.

        Args:
            answered: its entries are waited for.

        Raises:
            ServiceFailed: some are not complete in time.
        """
        last = max(index for index, _ in answered.entries)
        deadline = time.monotonic() + _COMPLETE_SECONDS
        while self._thread.is_alive() and self._size <= last and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        self.close()
        if self._size <= last:
            raise ServiceFailed("receipts are not complete in time", where=f"entry {last}")
        found, covered = [], iter(self._covered)
        size, seen = next(covered)
        for index, instant in sorted(answered.entries):
            while size <= index:
                size, seen = next(covered)
            found.append(max(0.0, seen - instant))
        return found

    def close(self) -> None:
        """Stop looking."""
        self._done.set()
        self._thread.join()
        self._asker.close()

    @property
    def _size(self) -> int:
        return self._covered[-1][0] if self._covered else 0

    def _watch(self) -> None:
        while not self._done.wait(_POLL_SECONDS):
            with contextlib.suppress(ServiceFailed):  # there is none yet
                size = int(self._asker.get().split(b"\n")[1])
                if size > self._size:
                    self._covered.append((size, time.perf_counter()))


_SAMPLE_SECONDS = 1.0
_FLAT_SHARE = 0.05
_LEAST = 10  # samples of a line that means something


@dataclass(frozen=True)
class Growth:
    """The least-squares line through a process's resident size.

    The first quarter of the samples is left out: caches fill there.

    Attributes:
        first, last: MiB, of the line at its ends.
        per_minute: MiB, its slope.
    """

    first: float
    last: float
    per_minute: float

    @classmethod
    def of(cls, seconds: Sequence[float], resident: Sequence[float]) -> "Growth | None":
        """Return the line; None of too few samples.

        Args:
            seconds: of each sample, rising.
            resident: MiB of each.
        """
        skipped = len(seconds) // 4
        if len(seconds) - skipped < _LEAST:
            return None
        at = np.array(seconds[skipped:])
        slope, offset = np.polyfit(at, np.array(resident[skipped:]), 1)
        return cls(float(offset + slope * at[0]), float(offset + slope * at[-1]), 60 * float(slope))

    @property
    def flat(self) -> bool:
        """Whether the line rises by less than 5 %."""
        return self.last - self.first < _FLAT_SHARE * self.first


class MemoryWatch:
    """Samples the resident size of processes every second; a context manager."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        """Watch nothing yet.

        Args:
            processes: ids by name.
        """
        self._processes = dict(processes)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.seconds: list[float] = []
        self.resident: dict[str, list[float]] = {name: [] for name in processes}

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def growth(self, name: str) -> Growth | None:
        """Return how the memory of a process grew.

        Args:
            name: one of those that are watched.
        """
        return Growth.of(self.seconds, self.resident[name])

    def _watch(self) -> None:
        number = 0
        while not self._done.wait(_SAMPLE_SECONDS):
            with contextlib.suppress(OSError):  # of a process that has just ended
                found = {name: _resident(pid) for name, pid in self._processes.items()}
                for name, size in found.items():
                    self.resident[name].append(size)
                number += 1
                self.seconds.append(number * _SAMPLE_SECONDS)


def reset_peaks(processes: Mapping[str, int]) -> None:
    """Make the present resident size of processes their peak, where the system allows it.

    Args:
        processes: ids by name.
    """
    for pid in processes.values():
        reset_peak(Path(f"/proc/{pid}/clear_refs"))


def peaks(processes: Mapping[str, int]) -> dict[str, float]:
    """Return the largest resident size of processes since `reset_peaks`, in MiB.

    Args:
        processes: ids by name; they run.
    """
    return {name: peak_memory_mib(Path(f"/proc/{pid}/status")) for name, pid in processes.items()}


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError


PHASES = ("admit", "embed", "noise", "score", "fetch", "commit", "sign")
_SAMPLE = re.compile(r"(ragaudit_[a-z_]+(?:\{[^}]*\})?) (\S+)")
_REQUEST = 'ragaudit_request_seconds_{}{{surface="{}"}}'
_PHASE = 'ragaudit_retrieval_seconds_sum{{phase="{}"}}'


@dataclass(frozen=True)
class Spent:
    """Mean seconds of an answer.

    Attributes:
        phases: of the retrieval, by name; those that took none are left out.
        rest: of the request beside them: HTTP, JSON, threads, and what watches it.
        durable: of a transaction with its fence; a phase ``commit`` waits for others before it.
        answers: that one transaction made durable.
    """

    phases: Mapping[str, float]
    rest: float
    durable: float
    answers: float

    @classmethod
    def between(
        cls, before: Mapping[str, float], after: Mapping[str, float], surface: str = "chroma"
    ) -> "Spent":
        """Return what was spent between two readings of the metrics.

        Args:
            before, after: values by name and labels; an answer and a transaction between them.
            surface: by which the answers were asked for.
        """

        def grown(name: str) -> float:
            return after.get(name, 0.0) - before.get(name, 0.0)

        requests = grown(_REQUEST.format("count", surface))
        whole = grown(_REQUEST.format("sum", surface)) / requests
        phases = {name: grown(_PHASE.format(name)) / requests for name in PHASES}
        commits = grown("ragaudit_commit_seconds_count")
        return cls(
            {name: seconds for name, seconds in phases.items() if seconds},
            whole - sum(phases.values()),
            grown("ragaudit_commit_seconds_sum") / commits,
            grown("ragaudit_commit_answers_sum") / commits,
        )


class Clock:
    """Reads the metrics of a prover, from one reading to the next."""

    def __init__(self, port: int, surface: str = "chroma") -> None:
        """Read for the first time.

        Args:
            port: of the metrics.
            surface: by which answers are asked for.
        """
        self._surface = surface
        self._url = f"http://127.0.0.1:{port}/metrics"
        self._last = self._read()

    def spent(self) -> Spent:
        """Return what was spent since the last call, or since the beginning."""
        before, self._last = self._last, self._read()
        return Spent.between(before, self._last, self._surface)

    def _read(self) -> dict[str, float]:
        text = httpx.get(self._url, trust_env=False).raise_for_status().text
        return values(text)


def values(text: str) -> dict[str, float]:
    """Return the values of our metrics by name and labels.

    Args:
        text: in the format of Prometheus.
    """
    found = (_SAMPLE.fullmatch(line) for line in text.splitlines())
    return {match[1]: float(match[2]) for match in found if match}
