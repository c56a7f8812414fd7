"""Ask through several accounts: each has its own budget, nonce chain and queue.

Every account that asks adds its queries to what a coalition of accounts may learn; the policy's
k_max says against how many of them the window's guarantee holds.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Self, TypeVar

from ragaudit.client.asynchronous import AsyncClient
from ragaudit.client.errors import BudgetExhausted, StateConflict
from ragaudit.client.results import (
    AnyReceipt,
    AsyncReceipt,
    GeneratedResult,
    SearchResult,
    public_parts,
)
from ragaudit.ledger.messages.bodies import Submission

__all__ = ["AsyncPool"]

T = TypeVar("T")
A = TypeVar("A", SearchResult[AsyncReceipt], GeneratedResult)


class AsyncPool:
    """Accounts of one window; each query goes to the one that has waited longest.

    An account whose budget is used up is not asked again. After any other error, which the caller
    gets, the account keeps its place.
    """

    def __init__(self, clients: Iterable[AsyncClient]) -> None:
        """Take clients of different accounts; the pool closes them.

        Args:
            clients: of one window, each of another account.
        """
        self._clients = tuple(clients)
        self._idle = deque(self._clients)
        self._useful = len(self._clients)
        self._exhausted: BudgetExhausted | None = None
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every client."""
        await self._each(lambda client: client.aclose())

    async def register(self) -> None:
        """Register every account, as `AsyncClient.register`."""
        await self._each(lambda client: client.register())

    async def search(self, query: str, top_k: int = 5) -> SearchResult[AsyncReceipt]:
        """Return the answer to one question, asked through a free account; wait for one if need be.

        Args:
            query: 1 to 8,192 bytes of UTF-8.
            top_k: K, at most the policy's K_max.

        Raises:
            BudgetExhausted: every account has used its queries.
            StateConflict: the pool has no account.
            RagauditError: any other error of `AsyncClient.search`.
        """
        return await self._first(lambda client: client.search(query, top_k))

    async def ask(self, question: str) -> GeneratedResult:
        """Return the generated answer to one question, asked through a free account.

        Args:
            question: 1 to 8,192 bytes of UTF-8.

        Raises:
            RagauditError: as `search`, and `AsyncClient.ask`.
        """
        return await self._first(lambda client: client.ask(question))

    async def _first(self, asking: Callable[[AsyncClient], Awaitable[A]]) -> A:
        """Ask through the account that has waited longest and has queries left."""
        while True:
            client = await self._take()
            spent = False
            try:
                result = await asking(client)
                # The answer says so already: the account need not be asked again to be refused.
                spent = result.remaining == 0
                return result
            except BudgetExhausted as error:
                self._exhausted, spent = error, True
            finally:
                # A cancelled caller must not take the account out of the pool.
                await asyncio.shield(self._give(client, spent))

    async def claim(self) -> int:
        """Give the verifier the promises, of all accounts, that were revealed and not answered.

        Returns:
            How many accounts had one.
        """
        return sum(await self._each(lambda client: client.claim()))

    async def submit(self, receipts: Sequence[AnyReceipt]) -> Submission:
        """Give the verifier the public parts of receipts; each account signs for its own.

        Receipts of other accounts go with the first account's.

        Args:
            receipts: of the window, from any account.

        Returns:
            How many were new to the verifier, and how many it knew.

        Raises:
            StateConflict: the pool has no account; other errors as `AsyncClient.submit`.
        """
        if not self._clients:
            raise StateConflict("a pool without accounts")
        pseudonyms = [await client.pseudonym() for client in self._clients]
        shares: list[list[AnyReceipt]] = [[] for _ in self._clients]
        for receipt, half in zip(receipts, public_parts(receipts), strict=True):
            whose = half.pseudonym
            shares[pseudonyms.index(whose) if whose in pseudonyms else 0].append(receipt)
        replies = [
            await client.submit(share) for client, share in zip(self._clients, shares, strict=True)
        ]
        return Submission.total(replies)

    async def _take(self) -> AsyncClient:
        async with self._changed:
            await self._changed.wait_for(lambda: self._idle or not self._useful)
            if not self._useful:
                raise self._exhausted or StateConflict("no account with queries left")
            # From the other end one account would ask until its budget is gone.
            return self._idle.popleft()

    async def _give(self, client: AsyncClient, spent: bool) -> None:
        async with self._changed:
            if spent:
                self._useful -= 1
            else:
                self._idle.append(client)
            # All of them: where the last budget ended, every caller that waits gets the error.
            self._changed.notify_all()

    async def _each(self, action: Callable[[AsyncClient], Awaitable[T]]) -> list[T]:
        """Do it with every client; the first error is raised when all have ended."""
        # With all outcomes: the first error must not leave other clients open.
        outcomes = await asyncio.gather(
            *(action(client) for client in self._clients), return_exceptions=True
        )
        results: list[T] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            results.append(outcome)
        return results
