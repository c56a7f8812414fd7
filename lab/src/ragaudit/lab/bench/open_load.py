"""Queries at a rate that does not wait for answers, and how long each took.

An arrival has its instant whether or not the one before it was answered; its time counts from
that instant, so that a service that falls behind is not spared (no coordinated omission).
"""

import contextlib
import http.client
import itertools
import json
import math
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ragaudit.cli.processes import ServiceFailed

__all__ = ["Answered", "Asker", "Latency", "Receipts", "ask_openly", "ask_without_pause"]

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

    def __init__(self, url: str, path: str, bodies: Sequence[bytes] = (), key: str = "") -> None:
        """Connect at the first question.

        Args:
            url: of the service.
            path: what is asked for.
            bodies: of the requests, one after the other, in turns; none are posted if empty.
            key: of the account.
        """
        self._host = urlsplit(url).netloc
        self._connection = http.client.HTTPConnection(self._host, timeout=_TIMEOUT)
        self._path = path
        self._bodies = itertools.cycle(bodies) if bodies else None
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def get(self) -> bytes:
        """Return what is at the path.

        Raises:
            ServiceFailed: any other status than 200.
        """
        return self._send("GET", None)

    def ask(self) -> int | None:
        """Ask the next question; return the index of its entry, if it was one.

        Raises:
            ServiceFailed: any other status than 200.
        """
        if self._bodies is None:
            self.get()
            return None
        return int(json.loads(self._send("POST", next(self._bodies)))["public"]["index"])

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
