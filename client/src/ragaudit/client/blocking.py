"""Ask an audited service and check every receipt, for callers that block.

    with Client("https://rag.example", key, verifier_url="https://regulator.example",
                verifier_key=pinned, state_dir="state") as client:
        result = client.search("how do I open a file?", top_k=3)

With a state directory the account is *anchored*: each query is first promised by the provider,
then made unforeseeable by a nonce of the client's own chain, so that the noise cannot be redrawn.
Without one it is *plain*, and the audit says less about its queries.

A blocking call is the asynchronous one, awaited on an event loop in a daemon thread that all
callers of a process share: there is one implementation of the protocol, and a deadline cancels it
wherever it waits. A socket timeout alone could not: it bounds each read, and a peer that sends a
byte a second never exceeds it.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack

from ragaudit.client.asking import Asked
from ragaudit.client.asynchronous import AsyncClient, ClientOptions
from ragaudit.client.pool import AsyncPool
from ragaudit.client.results import AsyncReceipt, GeneratedResult, Receipt, SearchResult
from ragaudit.client.transport import Service
from ragaudit.client.window import Window

__all__ = ["Client", "Pool", "call", "run"]

T = TypeVar("T")
P = ParamSpec("P")
A = TypeVar("A", bound=AsyncClient | AsyncPool)


class _Background:
    """Starts the thread at the first call."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        # Two threads may make the first call at once.
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="ragaudit-client", daemon=True
                ).start()
            return self._loop


_background = _Background()
# A forked child has no such thread, and starts its own at its first call.
os.register_at_fork(after_in_child=_background.__init__)  # type: ignore[misc]


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine, run to its end on the loop of all blocking clients.

    Args:
        coroutine: started now; cancelled if the caller is interrupted.

    Raises:
        BaseException: whatever the coroutine raises.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, _background.loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # an interrupt of the caller; no effect on what is done already
        raise


def call(
    url: str,
    work: Callable[[Service], Awaitable[T]],
    api_key: str | None = None,
    timeout_seconds: float = 30.0,
) -> T:
    """Return what one piece of work with a service returns; its connection is closed after it.

    Args:
        url: of the service, or a prefix of published files.
        work: awaited on the loop of all blocking clients.
        api_key, timeout_seconds: as of `Service`.

    Raises:
        ProviderRefusal, ServiceUnreachable, InvalidReply: as `Service.request`.
    """

    async def called() -> T:
        async with Service(url, api_key=api_key, timeout_seconds=timeout_seconds) as service:
            return await work(service)

    return run(called())


class _Blocking(Generic[A]):
    """What waits for an asynchronous object.

    Attributes:
        asynchronous: the object that does the work, on the event loop of all blocking clients.
    """

    def __init__(self, asynchronous: A) -> None:
        self.asynchronous = asynchronous

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End the reveals in progress, close the connections and release the state directories."""
        run(self.asynchronous.aclose())


def _waits(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[_Blocking[A], P], T]:
    """Return a method that waits for an asynchronous one of the same arguments and docstring."""

    @wraps(method)
    def waits(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(method(self.asynchronous, *args, **kwargs))

    return waits


class Client(_Blocking[AsyncClient]):
    """One account in one window, for callers that block; safe to use from several threads.

    Their calls form a queue. Every method returns and raises what `AsyncClient`'s of the same name
    does.

    Attributes:
        anchored: whether the client holds a nonce chain.
        window: the window, its countersignature checked; fetched once.
    """

    def __init__(self, base_url: str, api_key: str, **options: Unpack[ClientOptions]) -> None:
        """Take the arguments of `AsyncClient`; nothing is sent before the first call."""
        super().__init__(AsyncClient(base_url, api_key, **options))

    def __repr__(self) -> str:
        return repr(self.asynchronous).removeprefix("Async")

    @property
    def anchored(self) -> bool:
        """Return whether the client holds a nonce chain."""
        return self.asynchronous.anchored

    @property
    def window(self) -> Window:
        """Return the window, its countersignature checked; fetched once."""
        return run(self.asynchronous.window())

    def search(
        self,
        query: Asked,
        top_k: int = 5,
        *,
        filter: str = "",  # noqa: A002 - the request's member
    ) -> SearchResult[Receipt]:
        """Return the answer to one question, after its checks and those of its receipt.

        Args:
            query: 1 to 8,192 bytes of UTF-8; or a vector, where the policy takes vectors.
            top_k: K, at most the policy's K_max.
            filter: its canonical text, where the policy has a grammar; empty for none.

        Raises:
            MalformedError: not a query; the other errors are those of `AsyncClient.search`.
        """
        return _blocking_result(run(self.asynchronous.search(query, top_k, filter=filter)))

    def resume(self) -> SearchResult[Receipt] | GeneratedResult | None:
        """Return the answer to a query whose promise was kept before a crash; None without one."""
        result = run(self.asynchronous.resume())
        return _blocking_result(result) if isinstance(result, SearchResult) else result

    account = _waits(AsyncClient.account)
    register = _waits(AsyncClient.register)
    ask = _waits(AsyncClient.ask)
    complete = _waits(AsyncClient.complete)
    claim = _waits(AsyncClient.claim)
    receipts = _waits(AsyncClient.receipts)
    submit = _waits(AsyncClient.submit)
    submit_refusal = _waits(AsyncClient.submit_refusal)
    show_registration = _waits(AsyncClient.show_registration)
    dispute = _waits(AsyncClient.dispute)
    settle = _waits(AsyncClient.settle)


class Pool(_Blocking[AsyncPool]):
    """An `AsyncPool` for callers that block, from any number of threads."""

    def __init__(self, clients: Iterable[Client]) -> None:
        """Take clients of different accounts; the pool closes them.

        Args:
            clients: as for `AsyncPool`.
        """
        super().__init__(AsyncPool(client.asynchronous for client in clients))

    def search(self, query: str, top_k: int = 5) -> SearchResult[Receipt]:
        """Return the answer to one question, asked through a free account.

        Args:
            query: 1 to 8,192 bytes of UTF-8.
            top_k: K, at most the policy's K_max.

        Raises:
            BudgetExhausted, StateConflict, RagauditError: as `AsyncPool.search`.
        """
        return _blocking_result(run(self.asynchronous.search(query, top_k)))

    register = _waits(AsyncPool.register)
    ask = _waits(AsyncPool.ask)
    claim = _waits(AsyncPool.claim)
    submit = _waits(AsyncPool.submit)


def _blocking_result(result: SearchResult[AsyncReceipt]) -> SearchResult[Receipt]:
    """Return the same result, with a receipt whose completion blocks."""
    # Completed on the loop of all blocking clients: a connection belongs to its loop.
    receipt = result.receipt.blocking(run)
    return SearchResult(result.documents, receipt, result.remaining, result.missed, result.withheld)
