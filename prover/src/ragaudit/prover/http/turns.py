"""Who is served next: every caller in turn, whatever one of them sends (docs/operations.md).

Requests wait in one queue for each caller: an account, known by the API key that the path's
interface takes, or its end user where the key names one; an owner of a tenant's documents
likewise; for everybody else, the address of the
peer. Workers take from the queues in
turn, one request of a caller at a time: an account's queries run one after the other anyway. What
would wait too long, or exceeds the caller's rate, is answered with 429 and ``Retry-After`` before
it costs anything.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from ipaddress import ip_network

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from ragaudit.prover.errors import TooManyRequests
from ragaudit.prover.settings import LimitSettings
from ragaudit.prover.store.accounts import Caller, CallersKeys
from ragaudit.prover.surfaces.caller import bearer
from ragaudit.serving.bodies import Respond
from ragaudit.serving.exchange import current
from ragaudit.serving.problems import response
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

ReadKey = Callable[[str, Headers], str | None]
Queue = Callable[[Caller, Headers], Awaitable[Caller]]
# Answered without a turn: it touches nothing.
_FREE = "/healthz"
# A caller that is over its limits gets its answer this late, so that asking again at once costs
# it more than it costs us.
PENALTY_SECONDS = 1.0
MANY_CALLERS = 1024


class Turns:
    """Queues of callers, served in turn, each one request at a time. For one event loop."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._queues: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._busy: set[Hashable] = set()

    @asynccontextmanager
    async def turn(self, caller: Hashable) -> AsyncIterator[Callable[[], None]]:
        """Wait for the caller's turn, and hold a worker; yield what ends both before the block.

        Args:
            caller: names its queue; equal to no other caller.

        Raises:
            TooManyRequests: too many of its requests wait already, or it waited too long.
        """
        if self._queues or caller in self._busy or len(self._busy) >= self._limits.workers:
            await self._wait(caller)
        else:
            self._busy.add(caller)
        held = True

        def leave() -> None:
            nonlocal held
            if held:
                held = False
                self._leave(caller)

        try:
            yield leave
        finally:
            leave()

    async def _wait(self, caller: Hashable) -> None:
        queue = self._queues.setdefault(caller, deque())
        if len(queue) >= self._limits.waiting:
            raise TooManyRequests("too many requests wait", expected="one at a time")
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(ready)
        self._next()
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                await ready
        except (TimeoutError, asyncio.CancelledError) as error:
            if not ready.cancelled():  # it got its turn at the same moment
                self._leave(caller)
            elif ready in queue:
                queue.remove(ready)
                self._next()
            if isinstance(error, TimeoutError):
                raise TooManyRequests("the service is busy", expected="later") from None
            raise

    def _leave(self, caller: Hashable) -> None:
        self._busy.remove(caller)
        if caller in self._queues:
            self._queues[caller] = self._queues.pop(caller)  # behind all others
        self._next()

    def _next(self) -> None:
        """Give free workers to the callers that have waited for their turn longest."""
        for caller, queue in list(self._queues.items()):
            while queue and queue[0].cancelled():  # cut off just now
                queue.popleft()
            if queue and (caller in self._busy or len(self._busy) >= self._limits.workers):
                continue
            del self._queues[caller]
            if queue:
                queue.popleft().set_result(None)
                self._busy.add(caller)
            if queue:
                self._queues[caller] = queue


async def known_caller(keys: CallersKeys, key: ReadKey, scope: Scope) -> Caller | None:
    """Return the account, owner or operator whose key a request carries, None if it is nobody's.

    Args:
        keys: tells whose key a token is.
        key: reads the API key that is authenticated on a path from the headers.
        scope: of the request.
    """
    found = key(scope["path"], Headers(scope=scope))
    return None if found is None else await keys.caller(found)


class Gate:
    """What every caller has to pass: its rate, and its turn. For one event loop."""

    def __init__(self, limits: LimitSettings) -> None:
        self._turns = Turns(limits)
        self._rates = FixedWindowRateLimiter(_Counts())
        self._account_rate = parse(f"{limits.account_per_second}/second")
        self._peer_rate = parse(f"{limits.peer_per_second}/second")

    def turn(self, caller: Caller) -> AbstractAsyncContextManager[Callable[[], None]]:
        """Count a request of a caller, and wait for its turn, see `Turns.turn`.

        Raises:
            TooManyRequests: more than its rate, or as `Turns.turn`.
        """
        # A token that nobody has counts for its address: guessing must not make queues of its own.
        rate = self._peer_rate if caller.kind == "peer" else self._account_rate
        # The library joins what it is given: one text, which says where each name ends.
        if not self._rates.hit(rate, repr(caller)):
            raise TooManyRequests("too many requests a second", expected=str(rate))
        return self._turns.turn(caller)


class FairTurns:
    """ASGI middleware: admits requests in turns.

    Args:
        gate: that every request passes, but signs of life.
        keys: tells whose key a token is. It decides who waits where, not who may.
        respond: makes the answer to a refused request, of the error and the path.
        key: reads the API key that is authenticated on a path from the headers.
        queue: returns whose queue an account's request waits in, from the account and the headers;
            None where an account has one queue.
    """

    def __init__(
        self,
        app: ASGIApp,
        gate: Gate,
        keys: CallersKeys,
        respond: Respond = response,
        key: ReadKey = lambda _path, headers: bearer(headers),
        queue: Queue | None = None,
    ) -> None:
        self._app = app
        self._key = key
        self._queue = queue
        self._respond = respond
        self._keys = keys
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == _FREE:
            await self._app(scope, receive, send)
            return
        caller = await self._known(scope) or Caller("peer", _network(scope))
        try:
            async with self._gate.turn(caller) as leave:
                if (exchange := current()) is not None:
                    exchange.leave_turn = leave
                await self._app(scope, receive, send)
        except TooManyRequests as error:
            await asyncio.sleep(PENALTY_SECONDS)
            await self._respond(error, scope["path"])(scope, receive, send)

    async def _known(self, scope: Scope) -> Caller | None:
        known = await known_caller(self._keys, self._key, scope)
        if self._queue is None or known is None or known.kind != "account":
            return known
        return await self._queue(known, Headers(scope=scope))


class _Counts(MemoryStorage):
    """The library's counts, without the thread that it starts for nearly every request to forget
    old ones: they are forgotten when there are many. For one event loop."""

    _forgot = 0.0

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Count ``key`` and return its count, which begins anew after ``expiry`` seconds.

        Args:
            key: which the library makes of limit and caller.
            expiry: seconds for which a count lasts.
        """
        now = time.time()
        if len(self.storage) >= MANY_CALLERS and now > self._forgot + expiry:
            self._forgot = now
            for caller in list(self.storage):
                self.get(caller)
        if self.get(key) == 0:
            self.expirations[key] = now + expiry
        self.storage[key] += amount
        return self.storage[key]


def _network(scope: Scope) -> str:
    """Return the peer's address; of IPv6 the /64, which one customer has."""
    peer = scope["client"][0] if scope["client"] else ""
    return str(ip_network(f"{peer}/64", strict=False)) if ":" in peer else str(peer)
