"""Ask: one way through both channels, for documents and for generated answers.

A plain account's question is answered at once. An anchored account's is promised first, then its
nonce is revealed (`revealing`). Either answer is checked, kept, and completed later by its
inclusion proofs (docs/spec 5.8 to 5.10 and chapter 11).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ragaudit.client.channels import AnyRequest, channel_of
from ragaudit.client.checks import Checker
from ragaudit.client.errors import ProviderRefusal, ServiceUnreachable
from ragaudit.client.results import CheckedAnswer, CheckedReceipt, checked
from ragaudit.client.revealing import Revealing, request_body
from ragaudit.client.session import POLL_SECONDS, Session
from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    RefusedError,
    UnavailableError,
)
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.receipts import GenerationRequest
from ragaudit.ledger.messages.requests import MAX_QUERY_BYTES, Request, float32_bytes

__all__ = ["Asked", "Asking", "check_asked"]

Asked = str | Sequence[float]
"""A text, or the application's own vector of d numbers."""
_TOO_EARLY = 425  # RFC 8470; here: no cosigned checkpoint covers the entry yet


def check_asked(asked: Asked, top_k: int) -> None:
    """Check what needs no policy, before anything is sent.

    Args:
        asked: 1 to 8,192 bytes of UTF-8, or numbers.
        top_k: K.

    Raises:
        MalformedError: not a query.
    """
    if isinstance(asked, str):
        try:
            length = len(asked.encode())
        except UnicodeEncodeError as error:
            raise MalformedError("text has lone surrogates", where="query") from error
        if not 1 <= length <= MAX_QUERY_BYTES:
            raise MalformedError(f"{length} bytes", where="query", expected=f"1..{MAX_QUERY_BYTES}")
    # Not isinstance: True would ask for one row.
    if type(top_k) is not int or top_k < 1:
        raise MalformedError(f"{top_k!r}", where="top_k", expected="1 or more")


class Asking:
    """What one account asks, one question at a time."""

    def __init__(self, session: Session, checker: Checker, revealing: Revealing) -> None:
        self._session = session
        self._checker = checker
        self._revealing = revealing

    async def search(self, asked: Asked, top_k: int, wanted: str) -> tuple[CheckedReceipt, int]:
        """Return the checked receipt of documents, and how many queries this client did not see.

        Args:
            asked: checked; a vector is rounded to 32 bits, and these are what is asked.
            top_k: K.
            wanted: the filter's canonical text; empty for none.

        Raises:
            MalformedError, UnsupportedError: the window takes no such request.
            RagauditError: as `AsyncClient.search`.
        """
        await self._session.ready()
        policy = self._session.window.view.policy
        if top_k > policy.top_k_max:
            raise MalformedError(f"K = {top_k}", where="top_k", expected=f"1..{policy.top_k_max}")
        try:
            question = asked if isinstance(asked, str) else float32_bytes([float(x) for x in asked])
        except (TypeError, ValueError, OverflowError) as error:
            raise MalformedError("not numbers of 32 bits", where="vector") from error
        request = Request.of(policy, question, top_k, filter=wanted, counter=None)
        receipt, missed = await self._ask(request)
        assert isinstance(receipt, CheckedReceipt)  # of a request for documents
        return receipt, missed

    async def generate(self, question: str, wanted: str) -> tuple[CheckedAnswer, int]:
        """Return the checked receipt of a generated answer; otherwise as `search`.

        Args:
            question: checked.
            wanted: the filter's canonical text; empty for none.
        """
        await self._session.ready()
        request = GenerationRequest(question, wanted)
        request.check_policy(self._session.window.view.policy)
        receipt, missed = await self._ask(request)
        assert isinstance(receipt, CheckedAnswer)  # of a request for a generated answer
        return receipt, missed

    async def resume(self) -> CheckedReceipt | CheckedAnswer | None:
        """Return the answer to what was promised before a crash, as `Revealing.resume`."""
        await self._session.ready()
        return await self._revealing.resume() if self._session.anchored else None

    async def claim(self) -> bool:
        """Claim what was revealed and not answered, as `Revealing.claim`."""
        await self._session.register()
        return await self._revealing.claim()

    async def _ask(self, request: AnyRequest) -> tuple[CheckedReceipt | CheckedAnswer, int]:
        if not self._session.anchored:
            return await self._plain(request)
        # A promise from before a crash has the chain's next value; nothing else may take it.
        await self._revealing.resume()
        promise = await self._revealing.promised(request)
        return await self._revealing.reveal(promise), 0

    async def _plain(self, request: AnyRequest) -> tuple[CheckedReceipt | CheckedAnswer, int]:
        session, channel = self._session, channel_of(request)
        path, request_time = session.path(channel.asks), session.clock()
        # Never repeated: the first may be logged already, and a second would use up another query.
        data = await session.provider.request("POST", path, request_body(request), repeatable=False)
        file = await asyncio.to_thread(self._checker.answer, data, request)
        entry, missed = file.public.query, 0
        await session.follow(entry)
        receipt = checked(file, await asyncio.to_thread(self._checker.receipt, file, None))
        # A question that was asked before may get the answer, and the time, of then (8.6).
        had = await session.had(file)
        if had or (channel.reuses and session.asked_before(entry.counter)):
            await session.timed(partial(self._checker.repeated_time, file, request_time))
        else:
            await session.timed(partial(self._checker.plain_time, file, request_time))
            missed = session.plain_counter(entry.counter)
        if had:
            receipt.path = session.kept_at(file)  # where it may have its proofs already
            return receipt, missed
        receipt.path = await session.keep(file)
        return receipt, missed

    async def complete(self, receipt: CheckedReceipt | CheckedAnswer, seconds: float) -> None:
        """Fetch the inclusion proofs of a receipt, check them and add them to the receipt.

        Args:
            receipt: of this account; it is changed in place.
            seconds: how long to wait for each proof.

        Raises:
            AnswerRejected: a proof is false, or withheld: the merge delay is over, and the verifier
                has cosigned a checkpoint that covers the entry.
            ServiceUnreachable: no proof in time.
        """
        # A proof never changes what it proves: one is enough.
        if receipt.completed:
            return
        public = receipt.file.public
        proofs = [await self._proof(receipt, index, seconds) for _, index, _ in public.leaves]
        proven: Any = public.with_proofs(*proofs)
        file = replace(receipt.file, public=proven)
        receipt.checks = await asyncio.to_thread(self._checker.completed, file, receipt.checks)
        receipt.file = file
        if receipt.path is not None:
            await self._session.keep(file)

    async def _proof(
        self, receipt: CheckedReceipt | CheckedAnswer, index: int, seconds: float
    ) -> TlogProof:
        """Return the inclusion proof of an entry of a receipt, not checked yet."""
        path = self._session.path(f"receipts/{index}/proof")
        # The loop's clock, which nobody sets: a wait must not end early or never.
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            try:
                text = await self._session.provider.get_text(path)
                return TlogProof.parse(text.encode())
            except ProviderRefusal as error:
                if error.status != _TOO_EARLY:
                    raise
                # Before that the provider may wait for its next checkpoint, as it promised.
                if self._checker.overdue(receipt.file):
                    await self._check_withheld(receipt, index)
                if loop.time() > deadline:
                    raise ServiceUnreachable("no inclusion proof yet", where=path) from error
            await asyncio.sleep(POLL_SECONDS)

    async def _check_withheld(self, receipt: CheckedReceipt | CheckedAnswer, index: int) -> None:
        """Check that the verifier has not cosigned what the provider gives no proof of."""
        # Without a verifier nobody can tell a provider that waits from one that withholds.
        if (verifier := self._session.verifier) is None:
            return
        try:
            size = await verifier.cosigned_size(self._session.window.view.policy.keys.log)
        except (RefusedError, UnavailableError, InternalError):
            return  # no evidence: the provider may be waiting for a verifier that is away
        if size > index:
            error = ReceiptRejected(
                "no inclusion proof after the merge delay",
                where=f"index {index}",
                expected=f"one under the cosigned checkpoint of {size} entries",
            )
            raise self._checker.rejected(receipt.counter, receipt.file.to_json(), error)
