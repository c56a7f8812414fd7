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
    """One account in one window, for callers that block. Safe to use from several threads:
    their calls form a queue. Every method raises what `AsyncClient`'s of the same name does."""

    def __init__(self, base_url: str, api_key: str, **options: Unpack[ClientOptions]) -> None:
        """As `AsyncClient`; nothing is sent before the first call."""
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
        """Wait for what was revealed, close the connections, release the state directory."""
        background.run(self._client.aclose())

    @property
    def asynchronous(self) -> AsyncClient:
        """The client that does the work, on the event loop of all blocking clients."""
        return self._client

    @property
    def anchored(self) -> bool:
        """Whether the client holds a nonce chain."""
        return self._client.anchored

    @property
    def window(self) -> Window:
        """The window, its countersignature checked; fetched once."""
        return background.run(self._client.window())

    def account(self) -> AccountState:
        """Return what the provider says of the account now."""
        return background.run(self._client.account())

    def register(self) -> AccountState:
        """Register the account in the window, once; later calls return the same."""
        return background.run(self._client.register())

    def search(self, query: str, top_k: int = 5) -> SearchResult[Receipt]:
        """Ask one question; the answer and its receipt are checked before they are returned."""
        return blocking_result(background.run(self._client.search(query, top_k)))

    def resume(self) -> SearchResult[Receipt] | None:
        """Finish a query whose promise was kept before a crash, or return None."""
        result = background.run(self._client.resume())
        return None if result is None else blocking_result(result)

    def claim(self) -> bool:
        """Hand the verifier what was revealed and not answered; whether there is such a promise."""
        return background.run(self._client.claim())

    def receipts(self) -> list[ReceiptFile]:
        """Return the receipts that the state directory keeps; none without one."""
        return background.run(self._client.receipts())

    def submit(self, receipts: Sequence[CheckedReceipt | ReceiptFile]) -> Submission:
        """Give the verifier the public halves; nothing of the private ones leaves the client."""
        return background.run(self._client.submit(receipts))

    def submit_refusal(self, refusal: Mapping[str, Any]) -> None:
        """Give the verifier a signed refusal of the provider."""
        background.run(self._client.submit_refusal(refusal))

    def dispute(self, receipt: CheckedReceipt | ReceiptFile | Mapping[str, Any]) -> None:
        """Dispute an answer before the sampling instant; the verifier learns a digest only."""
        background.run(self._client.dispute(receipt))

    def settle(
        self,
        receipt: CheckedReceipt | ReceiptFile | Mapping[str, Any],
        arbiter_url: str | None = None,
    ) -> Mapping[str, Any]:
        """After the draw: show the verifier a disputed receipt, or the arbiter a sampled one."""
        return background.run(self._client.settle(receipt, arbiter_url))

    def show_registration(self) -> None:
        """Tell the verifier that this registration, with its nonce chain, is the account's own."""
        background.run(self._client.show_registration())


def blocking_result(result: SearchResult[AsyncReceipt]) -> SearchResult[Receipt]:
    """Return the same result, with a receipt whose completion blocks."""
    receipt = result.receipt.blocking(background.run)
    return SearchResult(result.documents, receipt, result.remaining, result.missed)
