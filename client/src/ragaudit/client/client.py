"""Ask an audited service and check every receipt.

    with Client("https://rag.example", key, verifier_key=pinned, state_dir="state") as client:
        result = client.search("how do I open a file?", top_k=3)

With a state directory the account is *anchored*: each query is first promised by the provider,
then made unforeseeable by a nonce of the client's own chain, so that the noise cannot be redrawn.
Without one it is *plain*, and the audit says less about its queries.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import httpx
from ragaudit.client.checker import Checker
from ragaudit.client.errors import (
    AnswerRejected,
    PromiseUnanswered,
    ProviderRefusal,
    ServiceUnreachable,
    StateConflict,
)
from ragaudit.client.registration import AccountState
from ragaudit.client.results import Receipt, SearchResult
from ragaudit.client.session import POLL_SECONDS, Session
from ragaudit.client.state import PendingPromise, StateDirectory
from ragaudit.client.transport import Service
from ragaudit.client.verifier import Submission, VerifierService
from ragaudit.client.window import Pins, Window
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.chains import NonceChain
from ragaudit.ledger.promises import Promise
from ragaudit.ledger.receipts import ReceiptFile
from ragaudit.ledger.requests import MAX_QUERY_BYTES, Request
from ragaudit.ledger.tlog_proof import TlogProof

if TYPE_CHECKING:
    from ragaudit.embedders.base import Embedder

__all__ = ["Client"]

_TOO_EARLY = 425


class Client:
    """One account in one window. Not shared between threads."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        window: str | None = None,
        verifier_url: str | None = None,
        verifier_key: str | None = None,
        policy_digest: str | None = None,
        embedder: "Embedder | None" = None,
        state_dir: str | Path | None = None,
        timeout_seconds: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        verifier_transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Nothing is sent before the first call.

        Args:
            base_url: of the provider's prover service.
            api_key: the account's.
            window: its name; None for the only one that is being served.
            verifier_url: where claims, receipts and disputes go.
            verifier_key: pin, the verifier's key (`keys.verifier`) in hexadecimal.
            policy_digest: pin, the digest of the policy in hexadecimal.
            embedder: with it, embeddings are recomputed (check 9); it must be the committed one.
            state_dir: with it, the account is anchored; keep it, and never restore it.
            timeout_seconds: of one request.
            transport, verifier_transport: httpx transports, for tests and proxies.
        """
        headers = {"Authorization": f"Bearer {api_key}"}
        provider = Service(
            base_url, headers=headers, timeout_seconds=timeout_seconds, transport=transport
        )
        pins = Pins(
            None if verifier_key is None else PublicKey.from_raw(hex_decode(verifier_key, 32)),
            None if policy_digest is None else hex_decode(policy_digest, 32),
        )
        state_root = None if state_dir is None else Path(state_dir)
        self._session = Session(
            provider, pins, window=window, embedder=embedder, state_root=state_root
        )
        self._checker = Checker(self._session)
        self._verifier = None
        if verifier_url is not None:
            self._verifier = VerifierService(
                Service(verifier_url, timeout_seconds=timeout_seconds, transport=verifier_transport)
            )
        self._last: int | None = None  # counter of a plain account's last record

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
        return f"Client({self._session.provider.base_url!r}, anchored={self.anchored})"

    def close(self) -> None:
        """Close the connections and release the state directory."""
        self._session.close()
        if self._verifier is not None:
            self._verifier.close()

    @property
    def anchored(self) -> bool:
        """Whether the client holds a nonce chain."""
        return self._session.anchored

    @property
    def window(self) -> Window:
        """The window, its countersignature checked; fetched once."""
        return self._session.window

    def account(self) -> AccountState:
        """Return what the provider says of the account now."""
        return self._session.account()

    def register(self) -> AccountState:
        """Register the account in the window, once; later calls return the same.

        An anchored account's chain is made here: its seed is durable before its anchor is sent.

        Raises:
            StateConflict: registered before with another chain, or as the other kind.
            AnswerRejected: the provider's registration says something else.
        """
        return self._session.register()

    def search(self, query: str, top_k: int = 5) -> SearchResult:
        """Ask one question; the answer and its receipt are checked before they are returned.

        Args:
            query: 1 to 8,192 bytes of UTF-8.
            top_k: K, at most the policy's K_max.

        Raises:
            MalformedError: not a query.
            BudgetExhausted, ProviderRefusal: the provider declines.
            ServiceUnreachable: no reply; a plain query may have been logged.
            PromiseUnanswered: an anchored query was revealed and not answered.
            AnswerRejected: a promise, an answer or a receipt is false; evidence is kept.
            StateConflict: the state directory does not fit the account.
        """
        _check_query(query, top_k)
        self._session.ready()
        largest = self.window.view.policy.top_k_max
        if top_k > largest:
            raise MalformedError(f"K = {top_k}", where="top_k", expected=f"1..{largest}")
        state, chain = self._session.state, self._session.chain
        if state is None or chain is None:
            return self._search_plain(Request(query, top_k))
        self.resume()
        return self._search_anchored(state, chain, query, top_k)

    def resume(self) -> SearchResult | None:
        """Finish a query whose promise was kept before a crash, or return None.

        The nonce is revealed again with the same counter: the provider must give the answer
        that it promised, and nothing else.
        """
        self._session.ready()
        state, chain = self._session.state, self._session.chain
        if state is None or chain is None or (pending := state.pending()) is None:
            return None
        return self._reveal(state, chain, pending, Promise.from_json(pending.promise))

    def receipts(self) -> list[ReceiptFile]:
        """Return the receipts that an anchored client keeps in its state directory."""
        self._session.ready()
        if (state := self._session.state) is None:
            return []
        return [ReceiptFile.parse(path.read_bytes()) for path in state.receipts().values()]

    def submit(self, receipts: Sequence[Receipt | ReceiptFile]) -> Submission:
        """Give the verifier the public halves; nothing of the private ones leaves the client."""
        files = [each.file if isinstance(each, Receipt) else each for each in receipts]
        halves = [each.public.to_json() for each in files]
        return self._required_verifier().submit(self.window.name, halves)

    def submit_refusal(self, refusal: Mapping[str, Any]) -> None:
        """Give the verifier a signed refusal of the provider."""
        self._required_verifier().refuse(self.window.name, [refusal])

    def dispute(self, receipt: Receipt | ReceiptFile | Mapping[str, Any]) -> None:
        """Show the verifier a whole receipt, private half included.

        The verifier checks it as this client does; it will not open that record's noise key.
        """
        file: Any = receipt.file if isinstance(receipt, Receipt) else receipt
        value = file.to_json() if isinstance(file, ReceiptFile) else file
        self._required_verifier().dispute(self.window.name, value)

    def _search_plain(self, request: Request) -> SearchResult:
        body = {"query": request.query, "top_k": request.top_k, "filter": request.filter}
        reply = self._session.provider.post(self._session.path("query"), body, repeatable=False)
        file = self._checker.reply(reply, request)
        receipt = self._receipt(file, None)
        missed = 0 if self._last is None else receipt.counter - self._last - 1
        if missed < 0:
            raise AnswerRejected(f"counter {receipt.counter} again", expected=f"above {self._last}")
        self._last = receipt.counter
        return SearchResult(file.answer.documents, receipt, self._remaining(receipt), missed)

    def _search_anchored(
        self, state: StateDirectory, chain: NonceChain, query: str, top_k: int
    ) -> SearchResult:
        counter = state.next_counter()
        request = Request(query, top_k, counter)
        body = {"query": query, "top_k": top_k, "filter": "", "counter": counter}
        value = self._session.provider.post(self._session.path("promise"), body, repeatable=True)
        promise = self._checker.promise(value, request)
        pending = PendingPromise(counter, request.to_json(), promise.to_json())
        state.keep_promise(pending)
        return self._reveal(state, chain, pending, promise)

    def _reveal(
        self, state: StateDirectory, chain: NonceChain, pending: PendingPromise, promise: Promise
    ) -> SearchResult:
        """Reveal the nonce of a promise that is durable, and take the answer."""
        nonce = chain.nonce(pending.counter)
        body = {"counter": pending.counter, "nonce": nonce.hex()}
        path = self._session.path("reveal")
        try:
            reply = self._session.provider.post(path, body, repeatable=True)
        except (ServiceUnreachable, ProviderRefusal) as error:
            raise self._unanswered(pending, nonce, error) from error
        file = self._checker.reply(reply, promise.request)
        receipt = self._receipt(file, promise)
        receipt.path = state.keep_answer(pending.counter, file.to_json())
        return SearchResult(file.answer.documents, receipt, self._remaining(receipt))

    def _remaining(self, receipt: Receipt) -> int:
        return self.window.view.policy.queries_per_account - receipt.counter - 1

    def _unanswered(
        self, pending: PendingPromise, nonce: bytes, error: RagauditError
    ) -> PromiseUnanswered:
        """Hand the claim to the verifier and say what became of it."""
        told = "no verifier is known to this client"
        claimed = False
        if self._verifier is not None:
            try:
                self._verifier.claim(self.window.name, pending.promise, nonce)
                claimed, told = True, "the verifier has the claim"
            except RagauditError as refused:
                told = f"the verifier did not take the claim: {refused}"
        return PromiseUnanswered(
            f"a revealed promise was not answered ({error}); {told}",
            claimed=claimed,
            where=f"counter {pending.counter}",
        )

    def _receipt(self, file: ReceiptFile, promise: Promise | None) -> Receipt:
        """The receipt, all checks run."""
        checks = self._checker.receipt(file, promise)
        return Receipt(
            file, checks, None, lambda receipt, seconds: self._complete(receipt, promise, seconds)
        )

    def _complete(self, receipt: Receipt, promise: Promise | None, seconds: float) -> None:
        if receipt.completed:
            return
        proof = self._await_proof(receipt, promise, seconds)
        old = receipt.file
        file = ReceiptFile(old.request, old.answer, old.public.with_proof(proof), old.private)
        receipt.checks = self._checker.completed(file, receipt.checks)
        receipt.file = file
        if self._session.state is not None and receipt.path is not None:
            self._session.state.replace_receipt(receipt.counter, file.to_json())

    def _await_proof(self, receipt: Receipt, promise: Promise | None, seconds: float) -> TlogProof:
        path = self._session.path(f"receipts/{receipt.index}/proof")
        deadline = time.monotonic() + seconds
        while True:
            try:
                return TlogProof.parse(self._session.provider.get_text(path).encode())
            except ProviderRefusal as error:
                if error.status != _TOO_EARLY:
                    raise
                self._checker.receipt(receipt.file, promise)  # an overdue proof is a rejection
                if time.monotonic() > deadline:
                    raise ServiceUnreachable("no inclusion proof yet", where=path) from error
            time.sleep(POLL_SECONDS)

    def _required_verifier(self) -> VerifierService:
        if self._verifier is None:
            raise StateConflict("this client knows no verifier", expected="verifier_url=")
        return self._verifier


def _check_query(query: str, top_k: int) -> None:
    try:
        length = len(query.encode())
    except UnicodeEncodeError as error:
        raise MalformedError("text has lone surrogates", where="query") from error
    if not 1 <= length <= MAX_QUERY_BYTES:
        raise MalformedError(f"{length} bytes", where="query", expected=f"1..{MAX_QUERY_BYTES}")
    if type(top_k) is not int or top_k < 1:
        raise MalformedError(f"{top_k!r}", where="top_k", expected="1 or more")
