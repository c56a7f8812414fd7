"""Run every check on what the provider sends; keep what fails as evidence."""

import json
from collections.abc import Sequence
from typing import Any

from ragaudit.client.errors import AnswerRejected, StateConflict
from ragaudit.client.group import CoreOperations
from ragaudit.client.session import Session
from ragaudit.client.transport import json_value
from ragaudit.client.window import Window
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.times import rfc3339
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import (
    Embed,
    StepResult,
    check_inclusion,
    check_promise,
    check_receipt_file,
)
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request

__all__ = ["Checker", "pending"]

_PLAIN = -1  # in the name of an evidence file: no counter was expected


class Checker:
    """The checks of one session. None of them waits for anything but the disk."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._operations = CoreOperations()

    def promise(self, value: Any, request: Request, asked: int, *, first: bool) -> Promise:
        """Return the promise if it is the one asked for.

        Args:
            asked: Unix milliseconds at which it was first asked for, as far as is known.
            first: whether nobody can have asked for this counter before ``asked``.

        Raises:
            AnswerRejected: it is false, or made at another time than it was asked for.
            StateConflict: it was made before ``asked``, as one may be that was asked for before a
                crash; it names the instant at which it expires.
        """
        session, counter = self._session, request.counter
        policy, now = session.window.view.policy, session.clock()
        skew = 1000 * policy.clock_skew_seconds
        try:
            promise = Promise.from_json(value)
            check_promise(
                promise, request, session.window.view, self._operations,
                account=session.registered.view(counter), embed=self._embed(),
            )  # fmt: skip
            made = promise.record.time
            if made > now + skew or (first and made < asked - skew):
                raise _another_time("promise", made, asked, now)
        except RagauditError as error:
            raise self.rejected(counter, value, error) from error
        if made < asked - skew:
            raise pending(promise, policy)
        return promise

    def answer(self, data: bytes, request: Request) -> ReceiptFile:
        """Return the receipt file of a reply to ``request``; not checked any further yet."""
        try:
            file = ReceiptFile.parse(data)
            if file.request != request:
                raise AnswerRejected("an answer to another request", where="request")
        except RagauditError as error:
            raise self.rejected(request.counter, _shown(data), error) from error
        return file

    def receipt(self, file: ReceiptFile, promise: Promise | None) -> list[StepResult]:
        """Run all steps of docs/spec 5.9; step 0 says whether the window is pinned."""
        session, counter = self._session, file.request.counter
        anchor = None if session.chain is None else session.chain.anchor
        try:
            steps = check_receipt_file(
                file, session.window.view, self._operations, anchor=anchor, promise=promise,
                embed=self._embed(), account=session.registered.view(counter),
            )  # fmt: skip
        except RagauditError as error:
            raise self.rejected(counter, file.to_json(), error) from error
        return [_pinning(session.window), *steps]

    def completed(self, file: ReceiptFile, earlier: Sequence[StepResult]) -> list[StepResult]:
        """The steps of a receipt that differs from a checked one by its inclusion proof only."""
        try:
            step = check_inclusion(file.public, self._session.window.view)
        except RagauditError as error:
            raise self.rejected(file.request.counter, file.to_json(), error) from error
        return [step if each.number == step.number else each for each in earlier]

    def plain_time(self, file: ReceiptFile, asked: int) -> None:
        """Compare the time of a plain answer with this machine's clock (docs/spec 5.9).

        Raises:
            AnswerRejected: it is not between asking and receiving, within the policy's skew.
        """
        policy, now, made = self._session.window.view.policy, self._session.clock(), _time(file)
        skew = 1000 * policy.clock_skew_seconds
        if not asked - skew <= made <= now + skew:
            error = _another_time("answer", made, asked, now)
            raise self.rejected(None, file.to_json(), error) from error

    def overdue(self, file: ReceiptFile) -> bool:
        """Whether the merge delay is over, and with it the time for the inclusion proof."""
        policy = self._session.window.view.policy
        return self._session.clock() > file.public.issued + 1000 * policy.merge_delay_seconds

    def rejected(self, counter: int | None, evidence: Any, error: RagauditError) -> AnswerRejected:
        """Keep what was received, and say what is wrong with it."""
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


def pending(promise: Promise, policy: Policy) -> StateConflict:
    """What is to be said of a promise that is older than the asking; it names when it expires."""
    expires = -(-promise.superseded_from(policy) // 1000)
    return StateConflict(
        f"a promise of {rfc3339(promise.record.time)} is pending",
        where=f"counter {promise.record.counter}",
        expected="a fresh one, when that one has expired",
        next_instant=expires,
    )


def _pinning(window: Window) -> StepResult:
    if window.pinned:
        return StepResult(0, "window", "done")
    return StepResult(0, "window", "not done", "neither verifier key nor policy is pinned")


def _another_time(where: str, made: int, asked: int, now: int) -> AnswerRejected:
    return AnswerRejected(
        f"made at {rfc3339(made)}",
        where=f"{where}, time",
        expected=f"from {rfc3339(asked)} to {rfc3339(now)}, give or take the policy's skew",
    )


def _time(file: ReceiptFile) -> int:
    return file.public.record.time


def _shown(data: bytes) -> Any:
    """What was received: its JSON value, or its text where it is none."""
    try:
        return json_value(data)
    except ValueError:
        return data.decode("utf-8", "replace")
