"""What an application may ask of the generation channel, whichever surface it speaks to.

A question holds its account's turn and a thread while it is charged. While it is generated it holds
neither, but one of the few threads that ask the model; and while its answer waits, nothing.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

import anyio.to_thread
from ragaudit.ledger.messages.generated import GeneratedFile, GenerationRequest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.prover.answering.stage import Context
from ragaudit.prover.errors import NoWindowOpen, QueryRefused
from ragaudit.prover.generation.channel import Channel
from ragaudit.prover.lifecycle.asking import LONGEST_LIFE, Asking
from ragaudit.prover.lifecycle.retention import check_kept
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.window.charges import StoredCharge, charge_at, find_charge
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.serving.exchange import Receipt, note, step_aside

__all__ = ["Generating", "receipt_of"]


class Generating:
    """Questions to be answered in words, and their receipts. Safe to use from several threads."""

    def __init__(
        self,
        channel: Channel,
        context: Context,
        asking: Asking,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        """Collect the parts.

        Args:
            asking: says which window an account asks.
            pause: waits for so many seconds.
        """
        self._channel = channel
        self._context = context
        self._asking = asking
        self._pause = pause
        self._generating = ThreadPoolExecutor(channel.at_once, thread_name_prefix="generate")

    def close(self) -> None:
        """Wait for the answers that are being generated; what waits for its turn stays charged."""
        self._generating.shutdown(cancel_futures=True)

    async def generate(
        self, account: Account, request: GenerationRequest, *, window: str | None = None
    ) -> GeneratedFile:
        """Answer a plain account when the answer is due; it may be that of an earlier request.

        Args:
            account: authenticated.
            request: without a counter.
            window: by name; None for the one that is open now, in which the account is registered
                if it is not yet. The answer to the same question in a window that ended is given
                again.

        Raises:
            RagauditError: as `Channel.charge`, at once; as `Channel.answer`, when it is due.
        """
        found = await anyio.to_thread.run_sync(self._take, account, request, window)
        if isinstance(found, GeneratedFile):
            return await self._due(found)
        return await self._answer(*found)

    def promise(self, account: Account, request: GenerationRequest, *, window: str) -> Promise:
        """Charge an anchored account's question and promise it, durably; as `Channel.promise`.

        Args:
            account: authenticated.
            request: with the counter that the account expects.
            window: by name.
        """
        return self._channel.promise(self._asking.window(account, window), account, request)

    async def reveal(
        self, account: Account, counter: int, nonce: bytes, *, window: str
    ) -> GeneratedFile:
        """Answer an anchored account's promised question when the answer is due.

        Args:
            account: authenticated.
            counter: of the promise.
            nonce: the account's, 32 bytes.
            window: by name.

        Raises:
            RagauditError: as `Promising.reveal`, at once; as `Channel.answer`, when it is due.
        """
        live = self._asking.window(account, window)
        charge = await anyio.to_thread.run_sync(
            self._channel.promising.reveal, live, account, counter, nonce
        )
        return await self._answer(live, charge)

    async def _answer(self, live: OpenWindow, charge: StoredCharge) -> GeneratedFile:
        step_aside()
        # In the context of the request: its phases are counted, wherever they run.
        work = partial(copy_context().run, self._channel.answer, live, charge)
        try:
            file = await asyncio.get_running_loop().run_in_executor(self._generating, work)
        except Exception:
            await self._until(self._channel.due(live, charge))
            raise
        return await self._due(file)

    async def _due(self, file: GeneratedFile) -> GeneratedFile:
        await self._until(file.public.issued)
        note(receipt=Receipt(file.public.charged.window, file.public.charge.index))
        return file

    def _take(
        self, account: Account, request: GenerationRequest, window: str | None
    ) -> tuple[OpenWindow, StoredCharge] | GeneratedFile:
        """Return what was charged, or the answer to the same question in a window that ended."""
        try:
            live = self._asking.window(account, window)
        except (NoWindowOpen, QueryRefused):
            earlier = self._earlier(account, request, window, "")
            if earlier is None:
                raise
            return earlier
        if window is None:
            earlier = self._earlier(account, request, None, live.name)
            if earlier is not None:
                return earlier
            self._asking.register_in(live, account)
        return live, self._channel.charge(live, account, request)

    def _earlier(
        self, account: Account, request: GenerationRequest, window: str | None, own: str
    ) -> GeneratedFile | None:
        """The answer that a retry asks for again, of any window, or of one by name, but ``own``."""
        context, digest = self._context, hashlib.sha256(request.encode()).digest()
        since = context.clock() - LONGEST_LIFE
        for recent in context.windows.recent():
            if window not in (None, recent.name):
                continue
            with context.store.look() as connection:
                position = find_charge(connection, recent.name, account.id, digest, since)
            if position is None:
                continue
            # Of that one it is found under the account's lock, by who charges.
            if recent.name == own:
                return None
            with context.store.read() as connection:
                check_kept(connection, recent.name)
            return self._channel.stored(Policy.parse(recent.policy), recent.name, position)
        return None

    async def _until(self, instant: int) -> None:
        while (left := instant - self._context.clock()) > 0:
            await self._pause(left / 1000)

    def receipt(self, account: Account, receipt: str) -> GeneratedFile | None:
        """Return an account's receipt file again; None if the id is of no charge.

        Args:
            receipt: its id, see `receipt_of`.

        Raises:
            UnknownRecord: of another account, or not answered yet.
            NotFound: the window's answers were deleted.
        """
        window, _, index = receipt.rpartition(".")
        if not (index.isascii() and index.isdecimal() and len(index) < 16):
            return None
        with self._context.store.read() as connection:
            check_kept(connection, window)
            if charge_at(connection, window, int(index)) is None:
                return None
            policy = Policy.parse(self._context.windows.get(window, connection).policy)
        return self._channel.file(policy.origin, account, window, int(index))


def receipt_of(file: GeneratedFile) -> str:
    """Return the id of a receipt: `<window>.<place of the charge in the log>`."""
    return f"{file.public.charged.window}.{file.public.charge.index}"
