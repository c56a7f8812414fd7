"""Questions that are answered in words: asked, checked, kept (docs/spec/11-generation.md)."""

import asyncio
from functools import partial

from ragaudit.client.asking import request_body, words_request
from ragaudit.client.checker import Checker
from ragaudit.client.proofs import await_proof
from ragaudit.client.results import CheckedAnswer, WordsResult
from ragaudit.client.revealing import Revealing
from ragaudit.client.session import Session
from ragaudit.ledger.messages.generated import GenerationRequest
from ragaudit.ledger.messages.generated_answers import GeneratedKeywords

__all__ = ["Words"]


class Words:
    """What one account asks the generation channel, one question at a time."""

    def __init__(self, session: Session, checker: Checker, revealing: Revealing) -> None:
        self._session = session
        self._checker = checker
        self._revealing = revealing

    async def ask(self, question: str, wanted: str) -> WordsResult:
        """Return the checked answer to a question; an anchored account has no promise pending.

        Args:
            question: checked.
            wanted: the filter's canonical text; empty for none.

        Raises:
            RagauditError: as `AsyncClient.ask`.
        """
        request = words_request(self._session.window.view.policy, question, wanted)
        if not self._session.anchored:
            return await self._plain(request)
        promise = await self._revealing.promised("ask", request)
        checked = await self._revealing.reveal(promise)
        assert isinstance(checked, CheckedAnswer)  # of a promised charge
        return self.result(checked)

    async def _plain(self, request: GenerationRequest) -> WordsResult:
        session, request_time = self._session, self._session.clock()
        # Never repeated by itself: without retries in the policy it would be charged twice.
        data = await session.provider.request(
            "POST", session.path("ask"), request_body(request), repeatable=False
        )
        file = await asyncio.to_thread(self._checker.words, data, request)
        checks = await asyncio.to_thread(self._checker.words_receipt, file, None)
        counter, path, missed = file.public.charged.counter, None, 0
        # One that was asked before has the answer, and the time, of then.
        if session.last_counter is None or counter > session.last_counter:
            await session.timed(lambda: self._checker.plain_time(file, request_time))
            missed = session.plain_counter(counter)
        if session.state is not None:
            keep = partial(session.state.keep_receipt, words=True)
            path = await asyncio.to_thread(keep, counter, file.encode())
        return self.result(CheckedAnswer(file, checks, path), missed)

    def result(self, checked: CheckedAnswer, missed: int = 0) -> WordsResult:
        """Return what the caller gets of a checked answer.

        Args:
            missed: queries that the client did not see, of a plain account.
        """
        queries, answer = self._session.window.view.policy.queries_per_account, checked.file.answer
        left = queries - checked.counter - 1
        if isinstance(answer, GeneratedKeywords):
            private, keywords = 0, answer.keywords
        else:
            private, keywords = answer.private, None
        return WordsResult(answer.text, private, checked, left, missed, keywords)

    async def complete(self, receipt: CheckedAnswer, seconds: float) -> None:
        """Fetch the inclusion proofs of both entries, check them and add them to the receipt.

        Args:
            receipt: of this account; it is changed in place.
            seconds: how long to wait for each.

        Raises:
            AnswerRejected, ServiceUnreachable: as `AsyncClient.complete`.
        """
        if receipt.completed:
            return
        public = receipt.file.public
        proofs = [
            await await_proof(self._session, self._checker, receipt, entry.index, seconds)
            for entry in (public.charge, public.answer)
        ]
        file = receipt.file.with_proofs(*proofs)
        receipt.checks = await asyncio.to_thread(
            self._checker.words_completed, file, receipt.checks
        )
        receipt.file = file
        if self._session.state is not None and receipt.path is not None:
            keep = partial(self._session.state.keep_receipt, words=True)
            await asyncio.to_thread(keep, receipt.counter, file.encode())
