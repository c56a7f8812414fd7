"""Run every check on what the provider sends; keep what fails as evidence."""

import json
import time
from collections.abc import Sequence
from typing import Any

from ragaudit.client.errors import AnswerRejected
from ragaudit.client.group import CoreOperations
from ragaudit.client.session import Session
from ragaudit.client.window import Window
from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.promises import Promise
from ragaudit.ledger.receipt_check import (
    Embed,
    StepResult,
    check_inclusion,
    check_promise,
    check_receipt_file,
)
from ragaudit.ledger.receipts import ReceiptFile
from ragaudit.ledger.requests import Request

__all__ = ["Checker"]

_PLAIN = -1  # in the name of an evidence file: no counter was expected


class Checker:
    """The checks of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._operations = CoreOperations()

    def promise(self, value: Any, request: Request) -> Promise:
        """Return the promise if it is the one asked for; AnswerRejected otherwise."""
        session, counter = self._session, request.counter
        try:
            promise = Promise.from_json(value)
            check_promise(
                promise, request, session.window.view, self._operations,
                account=session.ready().view(counter), embed=self._embed(),
            )  # fmt: skip
            _check_time(promise, session.window)
        except RagauditError as error:
            raise self._rejected(counter, value, error) from error
        return promise

    def reply(self, value: Any, request: Request) -> ReceiptFile:
        """Return the receipt file of an answer to ``request``; not checked any further yet."""
        try:
            file = ReceiptFile.from_json(value)
            if file.request != request:
                raise AnswerRejected("an answer to another request", where="request")
        except RagauditError as error:
            raise self._rejected(request.counter, value, error) from error
        return file

    def receipt(self, file: ReceiptFile, promise: Promise | None) -> list[StepResult]:
        """Run all steps of docs/spec 5.9; step 0 says whether the window is pinned."""
        session, counter = self._session, file.request.counter
        anchor = None if session.chain is None else session.chain.anchor
        try:
            steps = check_receipt_file(
                file, session.window.view, self._operations, anchor=anchor, promise=promise,
                embed=self._embed(), account=session.ready().view(counter), now=_now(),
            )  # fmt: skip
        except RagauditError as error:
            raise self._rejected(counter, file.to_json(), error) from error
        return [_pinning(session.window), *steps]

    def completed(self, file: ReceiptFile, earlier: Sequence[StepResult]) -> list[StepResult]:
        """The steps of a receipt that differs from a checked one by its inclusion proof only."""
        try:
            step = check_inclusion(file.public, self._session.window.view)
        except RagauditError as error:
            raise self._rejected(file.request.counter, file.to_json(), error) from error
        return [step if each.number == step.number else each for each in earlier]

    def _rejected(self, counter: int | None, evidence: Any, error: RagauditError) -> AnswerRejected:
        """Keep what was received and say what is wrong with it."""
        path = None
        if self._session.state is not None:
            data = json.dumps(evidence, ensure_ascii=False).encode("utf-8", "surrogatepass")
            number = _PLAIN if counter is None else counter
            path = self._session.state.keep_rejected(number, data)
        return AnswerRejected(
            error.what, where=error.where, expected=error.expected, evidence=path, received=evidence
        )

    def _embed(self) -> Embed | None:
        if (embedder := self._session.embedder) is None:
            return None
        from ragaudit.embedders.quantised import embed_quantised  # noqa: PLC0415 - an extra

        def embed(texts: Sequence[str]) -> Sequence[Sequence[int]]:
            rows: Sequence[Sequence[int]] = embed_quantised(embedder, texts).tolist()
            return rows

        return embed


def _pinning(window: Window) -> StepResult:
    if window.pinned:
        return StepResult(0, "window", "done")
    return StepResult(0, "window", "not done", "neither verifier key nor policy is pinned")


def _check_time(promise: Promise, window: Window) -> None:
    """A promise is of now, or was pending: its time lies in its life before now, give or take."""
    policy, now, made = window.view.policy, _now(), promise.record.time
    skew = 1000 * policy.clock_skew_seconds
    if not now - 1000 * policy.promise_life_seconds - skew <= made <= now + skew:
        raise AnswerRejected(f"time {made}", where="promise", expected=f"about {now}")


def _now() -> int:
    return time.time_ns() // 1_000_000
