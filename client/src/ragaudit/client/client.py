"""Ask an audited service and check every receipt.

    with Client("https://rag.example", key, verifier_url="https://regulator.example",
                verifier_key=pinned, state_dir="state") as client:
        result = client.search("how do I open a file?", top_k=3)

With a state directory the account is *anchored*: each query is first promised by the provider,
then made unforeseeable by a nonce of the client's own chain, so that the noise cannot be redrawn.
Without one it is *plain*, and the audit says less about its queries.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Unpack

from ragaudit.client import background
from ragaudit.client.asynchronous import AsyncClient, ClientOptions
from ragaudit.client.registration import AccountState
from ragaudit.client.results import AsyncReceipt, CheckedReceipt, Receipt, SearchResult
from ragaudit.client.verifier import Submission
from ragaudit.client.window import Window
from ragaudit.ledger.messages.receipts import ReceiptFile

__all__ = ["Client", "blocking_result"]


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
        background.run(self._client.aclose())

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
        return background.run(self._client.window())

    def account(self) -> AccountState:
        """Return the account as the provider shows it now."""
        return background.run(self._client.account())

    def register(self) -> AccountState:
        """Register the account in the window, once, and return it; later calls return the same."""
        return background.run(self._client.register())

    def search(self, query: str, top_k: int = 5) -> SearchResult[Receipt]:
        """Return the answer to one question, after its checks and those of its receipt.

        Args:
            query: 1 to 8,192 bytes of UTF-8.
            top_k: K, at most the policy's K_max.

        Raises:
            MalformedError: not a query; the other errors are those of `AsyncClient.search`.
        """
        return blocking_result(background.run(self._client.search(query, top_k)))

    def resume(self) -> SearchResult[Receipt] | None:
        """Return the answer to a query whose promise was kept before a crash; None without one."""
        result = background.run(self._client.resume())
        return None if result is None else blocking_result(result)

    def claim(self) -> bool:
        """Give the verifier a revealed, unanswered promise; return whether there is one."""
        return background.run(self._client.claim())

    def receipts(self) -> list[ReceiptFile]:
        """Return the receipts in the state directory, by counter; none without one."""
        return background.run(self._client.receipts())

    def submit(self, receipts: Sequence[CheckedReceipt | ReceiptFile]) -> Submission:
        """Give the verifier the public halves of receipts; return how many it accepted and knew.

        The private halves stay in the client.
        """
        return background.run(self._client.submit(receipts))

    def submit_refusal(self, refusal: Mapping[str, Any]) -> None:
        """Give the verifier a signed refusal of the provider, JSON."""
        background.run(self._client.submit_refusal(refusal))

    def dispute(self, receipt: CheckedReceipt | ReceiptFile | Mapping[str, Any]) -> None:
        """Dispute an answer before the sampling instant; the verifier learns a digest only."""
        background.run(self._client.dispute(receipt))

    def settle(
        self,
        receipt: CheckedReceipt | ReceiptFile | Mapping[str, Any],
        arbiter_url: str | None = None,
    ) -> Mapping[str, Any]:
        """Show a disputed receipt to the verifier, or a sampled one to the arbiter, after the draw.

        Returns:
            ``sampled``, and ``step`` of the check that fails (0: none, None: nobody has judged it).
        """
        return background.run(self._client.settle(receipt, arbiter_url))

    def show_registration(self) -> None:
        """Tell the verifier that this registration, with its nonce chain, is the account's own."""
        background.run(self._client.show_registration())


def blocking_result(result: SearchResult[AsyncReceipt]) -> SearchResult[Receipt]:
    """Return the same result, with a receipt whose completion blocks."""
    receipt = result.receipt.blocking(background.run)
    return SearchResult(result.documents, receipt, result.remaining, result.missed)
