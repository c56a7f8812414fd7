"""The client: asks, checks, anchors, claims. `Client` is the same for callers that block.

One account in one window. Calls of an account form one queue, because a chain of nonces has one
next value; `pool` asks through several accounts at once.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, Unpack

from ragaudit.client.asking import Asked, Asking, check_asked
from ragaudit.client.results import (
    COMPLETION_SECONDS,
    Answered,
    AnyReceipt,
    AsyncReceipt,
    CheckedAnswer,
    CheckedReceipt,
    GeneratedResult,
    SearchResult,
    file_json,
    public_parts,
)
from ragaudit.client.session import ClientOptions, Session
from ragaudit.client.verifier import Arbiter
from ragaudit.client.window import AccountState, Window
from ragaudit.ledger.messages.bodies import Submission
from ragaudit.ledger.messages.receipts import GeneratedKeywords, ReceiptFile

__all__ = ["AsyncClient", "ClientOptions"]

Result = SearchResult[AsyncReceipt]


class AsyncClient:
    """One account in one window, for asyncio: on one event loop, from any number of tasks."""

    def __init__(self, base_url: str, api_key: str, **options: Unpack[ClientOptions]) -> None:
        """Nothing is sent before the first call.

        Args:
            base_url: of the provider's prover service.
            api_key: the account's.
            options: see `ClientOptions`.

        Raises:
            MalformedError: not an address, a key, a digest or a demand.
        """
        self._session = Session(base_url, api_key, options)
        self._asking = Asking(self._session)
        # Two queries at once would ask for the same value of the chain.
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self._session.provider.base_url!r}, anchored={self.anchored})"

    async def aclose(self) -> None:
        """End the reveals in progress, close the connections and release the state directory."""
        async with self._queued() as session:
            await session.aclose()

    @property
    def anchored(self) -> bool:
        """Return whether the client holds a nonce chain."""
        return self._session.anchored

    async def window(self) -> Window:
        """Return the window, its countersignature checked; fetched once."""
        return await self._session.opened()

    async def account(self) -> AccountState:
        """Return the account as the provider shows it now."""
        return await self._session.account()

    async def pseudonym(self) -> bytes:
        """Return the account's pseudonym, 32 bytes; the provider is asked if it is not known."""
        account = self._session.known
        return (await self.account() if account is None else account).pseudonym

    async def register(self) -> AccountState:
        """Register the account in the window, once, and return it; later calls return the same.

        An anchored account's chain is made here: its seed is durable before its anchor is sent.

        Raises:
            StateConflict: registered before with another chain, or as the other kind.
            AnswerRejected: the provider's registration says something else.
        """
        async with self._queued() as session:
            return await session.register()

    async def search(
        self,
        query: Asked,
        top_k: int = 5,
        *,
        filter: str = "",  # noqa: A002 - the request's member
    ) -> Result:
        """Return the answer to one question, after its checks and those of its receipt.

        Args:
            query: 1 to 8,192 bytes of UTF-8; or a vector, where the policy takes vectors.
            top_k: K, at most the policy's K_max.
            filter: its canonical text, where the policy has a grammar; empty for none.

        Raises:
            MalformedError, UnsupportedError: not a query of this window.
            BudgetExhausted, ProviderRefusal: the provider declines.
            ServiceUnreachable: no reply; a plain query may have been logged.
            CannotClaim: an anchored query was promised too late to be revealed.
            PromiseUnanswered: an anchored query was revealed and not answered.
            AnswerRejected: a promise, an answer or a receipt is false; evidence is kept.
            StateConflict: the state directory does not fit the account.
            LessThanDemanded: the window or the answer gives less than the options demand.
        """
        check_asked(query, top_k)
        async with self._queued():
            result = self._result(*await self._asking.search(query, top_k, filter))
        self._session.demands.check_answer(result)
        return result

    async def ask(
        self,
        question: str,
        *,
        filter: str = "",  # noqa: A002 - the request's member
    ) -> GeneratedResult:
        """Return the generated answer to one question, after its checks and those of its receipt.

        Of an anchored account it is charged and promised, then revealed, as a query is.

        Args:
            question: 1 to 8,192 bytes of UTF-8.
            filter: its canonical text, where the policy has a grammar; empty for none.

        Raises:
            UnsupportedError: the window has no generation channel.
            RagauditError: as `search`.
        """
        check_asked(question, 1)
        async with self._queued():
            return self._generated_result(*await self._asking.generate(question, filter))

    async def resume(self) -> Result | GeneratedResult | None:
        """Return the answer to a query whose promise was kept before a crash; None without one.

        The nonce is revealed again with the same counter: the provider must give the answer
        that it promised, and nothing else.

        Raises:
            PromiseUnanswered, AnswerRejected, ServiceUnreachable, StateConflict: as `search`.
        """
        async with self._queued():
            receipt = await self._asking.resume()
        if isinstance(receipt, CheckedAnswer):
            return self._generated_result(receipt)
        return None if receipt is None else self._result(receipt)

    async def claim(self) -> bool:
        """Give the verifier the promise that was revealed and not answered.

        `search` and `resume` do this by themselves whenever a reveal ends in anything but a checked
        answer. This method is for claims that they could not make: the verifier was away, the
        process was killed.

        Returns:
            Whether there is such a promise.

        Raises:
            ProviderRefusal: the verifier does not take it (expired, or the window has ended).
            ServiceUnreachable: the verifier does not answer.
        """
        async with self._queued():
            return await self._asking.claim()

    async def complete(
        self, receipt: Answered, timeout_seconds: float = COMPLETION_SECONDS
    ) -> None:
        """Fetch the inclusion proof of a receipt, check it and add it to the receipt.

        Args:
            receipt: of this account; it is changed in place.
            timeout_seconds: how long to wait for the proof.

        Raises:
            AnswerRejected, ServiceUnreachable: as `Receipt.complete`.
        """
        await self._asking.complete(receipt, timeout_seconds)

    async def receipts(self) -> list[ReceiptFile]:
        """Return the receipts in the state directory, by counter; none without one."""
        async with self._queued() as session:
            await session.ready()
        if (state := session.state) is None:
            return []
        return [ReceiptFile.parse(path.read_bytes()) for path in state.receipts().values()]

    async def submit(self, receipts: Sequence[AnyReceipt]) -> Submission:
        """Give the verifier the public parts of receipts; the private parts stay in the client.

        An account with a state directory signs for its own: the verifier keeps these before those
        that anybody else, the provider too, submits of this account.

        Args:
            receipts: of the window, of generated answers too.

        Returns:
            How many were new to the verifier, and how many it knew.

        Raises:
            StateConflict: the client knows no verifier.
        """
        async with self._queued() as session:
            verifier, origin = session.known_verifier(), (await session.opened()).origin
            return await verifier.submit(origin, public_parts(receipts), await session.signer())

    async def submit_refusal(self, refusal: Mapping[str, Any]) -> None:
        """Give the verifier a signed refusal of the provider; the account signs as in `submit`.

        Args:
            refusal: JSON, as in `BudgetExhausted.refusal`.

        Raises:
            MalformedRecord: not a refusal.
        """
        async with self._queued() as session:
            verifier, origin = session.known_verifier(), (await session.opened()).origin
            await verifier.refuse(origin, refusal, await session.signer())

    async def show_registration(self) -> None:
        """Tell the verifier that this registration, with its nonce chain, is the account's own.

        `submit` does it, too.

        Raises:
            StateConflict: the account has no state directory, or the client knows no verifier.
        """
        async with self._queued() as session:
            verifier, holder = session.known_verifier(), await session.holder()
            await verifier.show_registration(session.window.origin, holder)

    async def dispute(self, receipt: AnyReceipt | Mapping[str, Any]) -> None:
        """Dispute an answer before the sampling instant; the verifier learns a digest only.

        Args:
            receipt: also a file that was rejected, as JSON (`AnswerRejected.received`).

        Raises:
            StateConflict: the account has no dispute key, which it keeps in its state directory.
        """
        async with self._queued() as session:
            verifier, holder = session.known_verifier(), await session.holder()
            await verifier.dispute(session.window.origin, file_json(receipt), holder)

    async def settle(
        self,
        receipt: AnyReceipt | Mapping[str, Any],
        arbiter_url: str | None = None,
    ) -> Mapping[str, Any]:
        """Show a disputed receipt to the verifier, or a sampled one to the arbiter, after the draw.

        Args:
            receipt: the one that was disputed.
            arbiter_url: of the arbiter that the policy names; the verifier gets its finding.

        Returns:
            ``sampled``, whether the record was drawn, so that the verifier must not see the
            receipt; ``step`` of the receipt check that fails, 0 if none does, None if nobody has
            judged it.

        Raises:
            InvalidReply: no finding of the policy's arbiter about this receipt.
        """
        session, value = self._session, file_json(receipt)
        verifier, window = session.known_verifier(), await session.opened()
        if arbiter_url is None:
            return await verifier.settle(window.origin, value)
        async with session.other_service(arbiter_url) as judge:
            return await verifier.settle(window.origin, value, Arbiter(judge, window))

    @asynccontextmanager
    async def _queued(self) -> AsyncIterator[Session]:
        """Do one thing of this account at a time, in the order of the calls."""
        async with self._turn:
            await self._asking.ended()  # of a caller that went away
            yield self._session

    def _result(self, receipt: Answered, missed: int = 0) -> Result:
        assert isinstance(receipt, CheckedReceipt)  # of a request for documents
        completed = AsyncReceipt(receipt.file, receipt.checks, receipt.path, self.complete)
        documents, left = receipt.file.answer.documents, self._left(receipt.counter)
        return SearchResult(documents, completed, left, missed, receipt.withdrawn)

    def _generated_result(self, receipt: Answered, missed: int = 0) -> GeneratedResult:
        assert isinstance(receipt, CheckedAnswer)  # of a request for a generated answer
        answer, left = receipt.file.answer, self._left(receipt.counter)
        if isinstance(answer, GeneratedKeywords):
            return GeneratedResult(answer.text, 0, receipt, left, missed, answer.keywords)
        return GeneratedResult(answer.text, answer.private, receipt, left, missed)

    def _left(self, counter: int) -> int:
        # A repeated answer has an earlier counter than the last.
        last = max(counter, self._session.last_counter or 0)
        return self._session.window.view.policy.queries_per_account - last - 1
