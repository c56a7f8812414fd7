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
byte a second never exceeds it. The functions are calls of commands, one connection each.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, TypeVar, Unpack

from ragaudit.client import disputing
from ragaudit.client.asking import Asked
from ragaudit.client.asynchronous import AsyncClient, ClientOptions
from ragaudit.client.results import (
    COMPLETION_SECONDS,
    AnyReceipt,
    AsyncReceipt,
    CheckedAnswer,
    Receipt,
    SearchResult,
    WordsResult,
)
from ragaudit.client.transport import Service
from ragaudit.client.verifier import SignsFor, VerifierService
from ragaudit.client.window import AccountState, Window
from ragaudit.ledger.messages.bodies import Submission
from ragaudit.ledger.messages.receipts import ReceiptFile

__all__ = ["Client", "blocking_result", "proof", "run", "settle", "submit", "tell", "window"]

T = TypeVar("T")


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


class Client:
    """One account in one window, for callers that block; safe to use from several threads.

    Their calls form a queue. Every method returns and raises what `AsyncClient`'s of the same name
    does.

    Attributes:
        anchored: whether the client holds a nonce chain.
        window: the window, its countersignature checked; fetched once.
        asynchronous: the client that does the work, on the event loop of all blocking clients.
    """

    def __init__(self, base_url: str, api_key: str, **options: Unpack[ClientOptions]) -> None:
        """Take the arguments of `AsyncClient`; nothing is sent before the first call."""
        self._client = AsyncClient(base_url, api_key, **options)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._client).removeprefix("Async")

    def close(self) -> None:
        """End the reveals in progress, close the connections and release the state directory."""
        run(self._client.aclose())

    @property
    def asynchronous(self) -> AsyncClient:
        """Return the client that does the work, on the event loop of all blocking clients."""
        return self._client

    @property
    def anchored(self) -> bool:
        """Return whether the client holds a nonce chain."""
        return self._client.anchored

    @property
    def window(self) -> Window:
        """Return the window, its countersignature checked; fetched once."""
        return run(self._client.window())

    def account(self) -> AccountState:
        """Return the account as the provider shows it now."""
        return run(self._client.account())

    def register(self) -> AccountState:
        """Register the account in the window, once, and return it; later calls return the same."""
        return run(self._client.register())

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
        return blocking_result(run(self._client.search(query, top_k, filter=filter)))

    def ask(
        self,
        question: str,
        *,
        filter: str = "",  # noqa: A002 - the request's member
    ) -> WordsResult:
        """Return the answer in words to one question, after its checks and those of its receipt.

        Args:
            question: 1 to 8,192 bytes of UTF-8.
            filter: its canonical text, where the policy has a grammar; empty for none.

        Raises:
            MalformedError: not a question; the other errors are those of `AsyncClient.ask`.
        """
        return run(self._client.ask(question, filter=filter))

    def complete(self, receipt: CheckedAnswer, timeout_seconds: float = COMPLETION_SECONDS) -> None:
        """Fetch and check the inclusion proofs of an answer in words, and add them to its receipt.

        Args:
            receipt: of this account; it is changed in place.
            timeout_seconds: how long to wait for each of them.
        """
        run(self._client.complete(receipt, timeout_seconds))

    def resume(self) -> SearchResult[Receipt] | WordsResult | None:
        """Return the answer to a query whose promise was kept before a crash; None without one."""
        result = run(self._client.resume())
        return blocking_result(result) if isinstance(result, SearchResult) else result

    def claim(self) -> bool:
        """Give the verifier a revealed, unanswered promise; return whether there is one."""
        return run(self._client.claim())

    def receipts(self) -> list[ReceiptFile]:
        """Return the receipts in the state directory, by counter; none without one."""
        return run(self._client.receipts())

    def submit(self, receipts: Sequence[AnyReceipt]) -> Submission:
        """Give the verifier the public halves of receipts; return how many it accepted and knew.

        The private halves stay in the client.

        Args:
            receipts: as for `AsyncClient.submit`.
        """
        return run(self._client.submit(receipts))

    def submit_refusal(self, refusal: Mapping[str, Any]) -> None:
        """Give the verifier a signed refusal of the provider, JSON.

        Args:
            refusal: as in `BudgetExhausted.refusal`.
        """
        run(self._client.submit_refusal(refusal))

    def dispute(self, receipt: AnyReceipt | Mapping[str, Any]) -> None:
        """Dispute an answer before the sampling instant; the verifier learns a digest only.

        Args:
            receipt: also a file that was rejected, as JSON (`AnswerRejected.received`).
        """
        run(self._client.dispute(receipt))

    def settle(
        self,
        receipt: AnyReceipt | Mapping[str, Any],
        arbiter_url: str | None = None,
    ) -> Mapping[str, Any]:
        """Show a disputed receipt to the verifier, or a sampled one to the arbiter, after the draw.

        Args:
            receipt: the one that was disputed.
            arbiter_url: of the policy's arbiter; without it nobody judges a sampled record.

        Returns:
            ``sampled``, and ``step`` of the check that fails (0: none, None: nobody has judged it).
        """
        return run(self._client.settle(receipt, arbiter_url))

    def show_registration(self) -> None:
        """Tell the verifier that this registration, with its nonce chain, is the account's own."""
        run(self._client.show_registration())


def blocking_result(result: SearchResult[AsyncReceipt]) -> SearchResult[Receipt]:
    """Return the same result, with a receipt whose completion blocks."""
    # Completed on the loop of all blocking clients: a connection belongs to its loop.
    receipt = result.receipt.blocking(run)
    return SearchResult(result.documents, receipt, result.remaining, result.missed, result.withheld)


def window(prover_url: str, name: str) -> Any:
    """Return a window as the provider shows it, JSON.

    Args:
        prover_url: of the prover service.
        name: of the window.

    Raises:
        ProviderRefusal, ServiceUnreachable, InvalidReply: as `Service.request`.
    """
    return _call(prover_url, lambda service: service.get(f"/v1/windows/{name}"))


def proof(prover_url: str, window_name: str, index: int) -> str:
    """Return the .tlog-proof of the record at log position ``index``.

    Args:
        prover_url: of the prover service.
        window_name: of the window.
        index: from 0.

    Raises:
        ProviderRefusal: there is none yet (status 425), or another refusal.
        ServiceUnreachable, InvalidReply: as `Service.request`.
    """
    path = f"/v1/windows/{window_name}/receipts/{index}/proof"
    return _call(prover_url, lambda service: service.get_text(path))


def window_chain(prover_url: str) -> Any:
    """Return the chain of a provider's windows, JSON; raises as `window`.

    Args:
        prover_url: of the prover service.
    """
    return _call(prover_url, lambda service: service.get("/v1/window-chain"))


def fetch(url: str, path: str) -> bytes:
    """Return the bytes at a path.

    Args:
        url: of a service, or a prefix of published files.
        path: below it, with a leading slash.

    Raises:
        ProviderRefusal, ServiceUnreachable, InvalidReply: as `Service.request`.
    """
    return _call(url, lambda service: service.request("GET", path))


def submit(
    verifier_url: str,
    origin: str,
    public_halves: Sequence[Mapping[str, Any]],
    signs: SignsFor | None = None,
) -> Submission:
    """Give the verifier public halves of receipts; return as `VerifierService.submit`.

    Args:
        verifier_url: of the verifier.
        origin, public_halves, signs: as for `VerifierService.submit`.
    """
    return _call(
        verifier_url, lambda service: VerifierService(service).submit(origin, public_halves, signs)
    )


def tell(verifier_url: str, origin: str, what: str, body: Mapping[str, Any]) -> None:
    """Give the verifier a signed document; as `VerifierService.tell`.

    Args:
        verifier_url: of the verifier.
        origin, what, body: as for `VerifierService.tell`.
    """
    _call(verifier_url, lambda service: VerifierService(service).tell(origin, what, body))


def settle(
    verifier_url: str,
    origin: str,
    receipt_file: Mapping[str, Any],
    arbiter: tuple[str, Window] | None = None,
) -> Any:
    """Show the verifier a disputed file, or the arbiter a file whose record was sampled.

    Args:
        verifier_url: of the verifier.
        origin: of the window's log.
        receipt_file: both halves, JSON.
        arbiter: its URL and the window that it judges by; None if there is none to ask.

    Returns:
        ``sampled`` and ``step``, as `disputing.settle`.
    """

    async def work(service: Service) -> Any:
        verifier = VerifierService(service)
        if arbiter is None:
            return await disputing.settle(origin, verifier, receipt_file)
        url, window = arbiter
        async with _opened(url) as judge:
            return await disputing.settle(
                origin, verifier, receipt_file, disputing.Arbiter(judge, window)
            )

    return _call(verifier_url, work)


def _call(url: str, work: Callable[[Service], Awaitable[T]]) -> T:
    """Call a service and close the connection; errors as `Service.request`."""

    async def called() -> T:
        async with _opened(url) as service:
            return await work(service)

    return run(called())


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Service]:
    # Without a key: these calls need none, and none may leak to another address.
    service = Service(url)
    try:
        yield service
    finally:
        await service.aclose()
