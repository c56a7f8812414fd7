"""The ports of parties that share one process: disk, network, clock and randomness.

Every commit, every write and synchronisation of a fence, and every message is a *point*; where
several answers share a transaction, each of them is one, and each that leaves. The plan of a
simulated window says at which of them what goes wrong. Nothing here runs by itself: a message
is delivered in the thread that sends it, and whoever has a thread do something waits for it.
"""

import asyncio
import os
import random
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from unittest.mock import patch

import httpx
from ragaudit import core
from ragaudit.circuits.statements import IndexStatement
from ragaudit.lab.attacks.forging import index_prover
from ragaudit.ledger.log import durable, fence
from ragaudit.prover import service
from ragaudit.prover.randomness import OsRandomness, SeededRandomness
from ragaudit.prover.sequencer import Pace, Sequencer
from ragaudit.verifier import reference
from sqlalchemy import Engine
from starlette.types import ASGIApp

COMMIT, WRITE, SYNC, CALL = "commit", "write", "sync", "call"
MEMBER, LEAVE = "member", "leave"
P = ParamSpec("P")
T = TypeVar("T")
KINDS = {
    COMMIT: ("die", "die after", "full", "unknown"),
    WRITE: ("die", "die after", "full"),
    SYNC: ("die", "die after", "fail"),
    CALL: ("lost", "no answer", "twice", "late", "die", "die after"),
    MEMBER: ("fails", "refused"),
    LEAVE: ("die",),
}
"""What can go wrong at a point, by its kind.

die, die after: the party's process ends before it, or after it, and before anybody knows.
full: the disk has no room, or answers with an error, and nothing is written.
unknown: the commit is given up, and the database has it nevertheless.
fail: a synchronisation fails once; the disk has any part of what was written.
lost, no answer, twice, late: of a message.
fails, refused: what one answer changes, in a transaction of several, fails for a reason of its own,
or has a statement that the database refuses.
"""


class Died(BaseException):
    """A process ended here; nothing of it goes on."""


@dataclass
class Party:
    """A process that can end.

    Attributes:
        alive: False from the moment in which it ends.
        mortal: whether its end is a fault that can be drawn.
    """

    name: str
    folder: Path
    alive: bool = False
    mortal: bool = True

    def demand(self) -> None:
        """Raise unless it is alive: what is still on the stack does nothing any more."""
        if not self.alive:
            raise Died(self.name)


@dataclass
class Faults:
    """What goes wrong next.

    Attributes:
        due: pairs of a number of points and a choice: at that point from now on, one of its kinds.
        happened: what did go wrong, in order.
        seen: how many points were passed since `arm`.
    """

    due: dict[int, int] = field(default_factory=dict)
    happened: list[str] = field(default_factory=list)
    seen: int = 0

    def arm(self, due: Sequence[tuple[int, int]]) -> None:
        """Let faults come at points from now on, instead of those that did not come."""
        self.due, self.seen = dict(due), 0

    def at(self, point: str, party: Party) -> tuple[str, int]:
        """Pass a point; return what goes wrong ("" for nothing) and the choice behind it."""
        party.demand()
        choice = self.due.pop(self.seen, None)
        self.seen += 1
        if choice is None:
            return "", 0
        kinds = [each for each in KINDS[point] if party.mortal or "die" not in each]
        kind = kinds[choice % len(kinds)]
        self.happened.append(f"{party.name}: {point}: {kind}")
        return kind, choice // len(kinds)


class Disk:
    """What fences and small files are written with, instead of the module `os`.

    What was written and not synchronised is whole, torn or gone when the process ends.
    """

    def __init__(self, faults: Faults, parties: Sequence[Party]) -> None:
        self._faults = faults
        self._parties = parties
        self._opened: dict[int, Path] = {}
        self.unsynced: dict[Path, int] = {}  # files, and how long they were before

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def pwrite(self, file: int, data: bytes, offset: int) -> int:
        path, party = self._of(file)
        if party is None:
            return os.pwrite(file, data, offset)
        kind, _ = self._faults.at(WRITE, party)
        if kind == "full":
            raise OSError(28, "no space left on device")
        if kind == "die":
            self._die(party, 0)
        self.unsynced.setdefault(path, offset)
        written = os.pwrite(file, data, offset)
        if kind == "die after":
            self._die(party, _)
        return written

    def fsync(self, file: int) -> None:
        path, party = self._of(file)
        if party is None:
            return
        kind, choice = self._faults.at(SYNC, party)
        if kind == "fail":
            self._tear(path, choice)
            raise OSError(5, "input/output error")
        if kind == "die":
            self._die(party, choice)
        self.unsynced.pop(path, None)
        if kind == "die after":
            self._die(party, 0)

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        file = os.open(path, flags, mode)
        self._opened[file] = Path(path)
        return file

    def fdopen(self, file: int, *arguments: Any) -> Any:
        self._opened.pop(file, None)
        return os.fdopen(file, *arguments)

    def close(self, file: int) -> None:
        self._opened.pop(file, None)
        os.close(file)

    def close_all(self, party: Party) -> None:
        """Close what a process had open when it ended: its locks go with it."""
        for file, path in list(self._opened.items()):
            if path.is_relative_to(party.folder):
                self.close(file)

    def _of(self, file: int) -> tuple[Path, Party | None]:
        path = Path(f"/proc/self/fd/{file}").readlink()
        for party in self._parties:
            if path.is_relative_to(party.folder):
                return path, party
        return path, None

    def _die(self, party: Party, choice: int) -> None:
        for path in [each for each in self.unsynced if each.is_relative_to(party.folder)]:
            self._tear(path, choice)
        party.alive = False
        raise Died(party.name)

    def _tear(self, path: Path, choice: int) -> None:
        """Keep any part of what was not synchronised."""
        before = self.unsynced.pop(path, None)
        if before is not None and path.exists():
            size = path.stat().st_size
            os.truncate(path, before + choice % (max(size - before, 0) + 1))


def watch_commits(engine: Engine, faults: Faults, party: Party) -> None:
    """Make every commit of a database that changed something a point."""
    honest = engine.dialect.do_commit
    before: dict[int, int] = {}

    def do_commit(connection: Any) -> None:
        driver = (
            connection.driver_connection
            if hasattr(connection, "driver_connection")
            else (connection)
        )
        changes = driver.total_changes
        changed, before[id(driver)] = changes != before.get(id(driver), 0), changes
        if not changed:
            honest(connection)
            return
        try:
            kind, _ = faults.at(COMMIT, party)
            if kind == "die":
                party.alive = False
                raise Died(party.name)
        except Died:
            # Its lock goes with the process, however long something here refers to a cursor.
            driver.rollback()
            raise
        if kind == "full":
            raise sqlite3.OperationalError("database or disk is full")
        honest(connection)
        if kind == "die after":
            party.alive = False
            raise Died(party.name)
        if kind == "unknown":
            raise sqlite3.OperationalError("disk I/O error")

    engine.dialect.do_commit = do_commit  # type: ignore[assignment, method-assign]


@dataclass
class Time:
    """The true time, which only the plan moves, and a millisecond for each reading of a clock."""

    now: int

    def steady(self) -> int:
        """Milliseconds of a clock that nobody sets."""
        return self.now


@dataclass
class Wall:
    """A party's clock: the true time and an offset, both in milliseconds."""

    time: Time
    offset: int = 0

    def __call__(self) -> int:
        self.time.now += 1
        return self.time.now + self.offset


class Wire(httpx.BaseTransport):
    """The network before a party: whoever sends a message waits for its answer, or for nothing.

    Attributes:
        app: of the process that listens; None while none does.
        late: messages that are still under way.
        told: called with every answer that left, and the request.
    """

    def __init__(self, listens: Party, faults: Faults) -> None:
        self.listens = listens
        self.app: ASGIApp | None = None
        self.late: list[httpx.Request] = []
        self.told: Callable[[httpx.Request, httpx.Response], None] = lambda _request, _answer: None
        self._faults = faults
        self._loop: asyncio.AbstractEventLoop | None = None

    def listen(self, app: ASGIApp | None) -> None:
        """Lead to a new process, or to none."""
        if self._loop is not None:
            self._loop.close()
        self.app, self._loop = app, None if app is None else asyncio.new_event_loop()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """As a party sends: its own end may come with it."""
        return self.send(request, None)

    def send(self, request: httpx.Request, sender: Party | None) -> httpx.Response:
        """Deliver a message.

        Args:
            sender: that may end around it; None for one that does not.

        Raises:
            httpx.TransportError: there is no answer.
            Died: the sender ended.
        """
        request.read()
        kind, _ = self._faults.at(CALL, sender) if sender is not None else ("", 0)
        if kind == "die":
            assert sender is not None
            sender.alive = False
            raise Died(sender.name)
        if kind == "lost":
            raise httpx.ConnectError("lost", request=request)
        if kind == "late":
            self.late.append(request)
            raise httpx.ReadTimeout("late", request=request)
        answer = self.deliver(request)
        if kind == "twice":
            answer = self.deliver(request)
        if kind == "die after":
            assert sender is not None
            sender.alive = False
            raise Died(sender.name)
        if kind == "no answer":
            raise httpx.ReadTimeout("no answer", request=request)
        return answer

    def send_together(
        self, requests: Sequence[httpx.Request], sender: Party
    ) -> list[httpx.Response | None]:
        """Deliver messages that arrive at the same moment, in this order.

        Args:
            sender: that does not end.

        Returns:
            The answer to each, None where there is none.
        """
        kinds = [self._faults.at(CALL, sender)[0] for _ in requests]
        arriving = list[int]()
        for number, (request, kind) in enumerate(zip(requests, kinds, strict=True)):
            request.read()
            if kind == "late":
                self.late.append(request)
            arriving += [number] * {"lost": 0, "late": 0, "twice": 2}.get(kind, 1)
        answers: list[httpx.Response | None] = [None] * len(requests)
        left = self._deliver([requests[number] for number in arriving])
        for number, answer in zip(arriving, left, strict=True):
            if isinstance(answer, httpx.Response) and kinds[number] != "no answer":
                answers[number] = answer
        return answers

    def deliver(self, request: httpx.Request) -> httpx.Response:
        """Let the process that listens answer; TransportError if it does not."""
        (answer,) = self._deliver([request])
        if isinstance(answer, httpx.TransportError):
            raise answer
        return answer

    def _deliver(
        self, requests: Sequence[httpx.Request]
    ) -> Sequence[httpx.Response | httpx.TransportError]:
        if self.app is None or self._loop is None or not self.listens.alive:
            return [httpx.ConnectError("refused", request=request) for request in requests]
        return self._loop.run_until_complete(self._all(self.app, requests))

    async def _all(
        self, app: ASGIApp, requests: Sequence[httpx.Request]
    ) -> Sequence[httpx.Response | httpx.TransportError]:
        several = len(requests) > 1
        return await asyncio.gather(*(self._one(app, each, several) for each in requests))

    async def _one(
        self, app: ASGIApp, request: httpx.Request, several: bool
    ) -> httpx.Response | httpx.TransportError:
        closed = httpx.ReadError("closed", request=request)
        try:
            answer = await _answer(app, request)
        except BaseException:
            if self.listens.alive:
                raise
            return closed
        if self.listens.alive and several and self._faults.at(LEAVE, self.listens)[0]:
            self.listens.alive = False
        if not self.listens.alive:
            return closed
        self.told(request, answer)
        return answer

    def arrive(self) -> None:
        """Deliver what is under way, the last first; nobody waits for the answers."""
        late, self.late = self.late[::-1], []
        for request in late:
            with suppress(httpx.TransportError):
                self.deliver(request)


async def _answer(app: ASGIApp, request: httpx.Request) -> httpx.Response:
    # An exception of the application is a 500 to its caller, as over a network.
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    content = bytes(request.content)
    again = httpx.Request(request.method, request.url, headers=request.headers, content=content)
    response = await transport.handle_async_request(again)
    body = await response.aread()
    return httpx.Response(response.status_code, headers=response.headers, content=body)


class InOrder(Sequencer):
    """A sequencer that depends on no clock: the event loop waits for its thread.

    What questions have done aside is done one after the other. In which order, and whether others
    are served before, is drawn from the seed.
    """

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self._worker = ThreadPoolExecutor(1)  # a question may ask a party that has its own loop
        self._pool = self._calls = _Calls(self._steps.put)

    def close(self) -> None:
        """End the thread."""
        self._worker.shutdown()

    def _hand_over(self) -> None:
        for each in self._asked:
            self._steps.put(each)
        self._asked = []
        self._advance()

    def _advance(self) -> None:
        # Answers leave in between, as they do while the thread goes on.
        if not self._steps.qsize():
            self._calls.wait_no_longer()
        if self._steps.qsize():
            self._worker.submit(self._turn).result()
            asyncio.get_running_loop().call_soon(self._advance)


class _Calls(ThreadPoolExecutor):
    """A pool without threads: its calls are steps of a sequencer, in an order that is drawn."""

    def __init__(self, step: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self._step = step
        self._waiting: list[Callable[[], None]] = []
        self._later = 0  # how many of them others do not wait for

    def submit(
        self, call: Callable[P, T], /, *arguments: P.args, **options: P.kwargs
    ) -> "Future[T]":
        """Have a call made, by one of the next steps or after what others wait for."""
        made = Future[T]()
        self._waiting.append(partial(_make, partial(call, *arguments, **options), made))
        if secrets.randbelow(8):
            self._step(self._make_one)
        else:
            self._later += 1
        return made

    def wait_no_longer(self) -> None:
        """Make steps of those that nobody waited for."""
        for _ in range(self._later):
            self._step(self._make_one)
        self._later = 0

    def _make_one(self) -> None:
        self._waiting.pop(secrets.randbelow(len(self._waiting)))()


def _make(call: Callable[[], T], made: "Future[T]") -> None:
    try:
        made.set_result(call())
    except BaseException as error:
        made.set_exception(error)


@contextmanager
def in_order() -> Iterator[None]:
    """Have provers answer with sequencers that depend on no clock."""
    with patch.object(service, "Sequencer", InOrder), patch.object(Pace, "long", True):
        yield


class Sender(httpx.BaseTransport):
    """The network behind a party that sends: it may end with every message."""

    def __init__(self, wire: Wire, party: Party) -> None:
        self._wire, self._party = wire, party

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._wire.send(request, self._party)


@contextmanager
def seeded(chance: random.Random) -> Iterator[None]:
    """Have parties draw from a seed; only the coins of proofs of selections stay the core's.

    The index argument, whose digest is in the log, is proven by the small prover in plain Python:
    the compiled core draws from the operating system whatever it is handed.
    """

    def token_bytes(count: int | None = None) -> bytes:
        return chance.randbytes(count or 32)

    def token_hex(count: int | None = None) -> str:
        return token_bytes(count).hex()

    def token_urlsafe(count: int | None = None) -> str:
        return token_hex(count)

    def scalars(_self: object, count: int, *purpose: Any) -> Any:
        return SeededRandomness(token_hex()).scalars(count, *purpose)

    def prove_index(statement: IndexStatement, rows: Any, blindings: Any, **_: Any) -> bytes:
        secret = [int.from_bytes(each.tobytes(), "little") for each in blindings]
        return index_prover.prove_index(reference, statement.context, rows.tolist(), secret)[1]

    with (
        patch.object(core, "prove_index", prove_index),
        patch.object(OsRandomness, "scalars", scalars),
        patch.object(secrets, "randbelow", chance.randrange),
        patch.object(secrets, "token_bytes", token_bytes),
        patch.object(secrets, "token_hex", token_hex),
        patch.object(secrets, "token_urlsafe", token_urlsafe),
    ):
        yield


@contextmanager
def written_to(disk: Disk) -> Iterator[None]:
    """Have fences and small durable files written to a disk of the simulation."""
    with patch.object(fence, "os", disk), patch.object(durable, "os", disk):
        yield
