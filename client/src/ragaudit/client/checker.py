"""Run every check on what the provider sends; keep what fails as evidence."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ragaudit.client.core_operations import CoreOperations
from ragaudit.client.errors import AnswerRejected, StateConflict
from ragaudit.client.session import Session
from ragaudit.client.transport import json_value
from ragaudit.client.window import Window
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.generated import GeneratedFile, GenerationRequest
from ragaudit.ledger.messages.generated_check import (
    check_generated_file,
    check_generated_inclusion,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import (
    Embed,
    StepResult,
    check_inclusion,
    check_promise,
    check_quorum,
    check_receipt_file,
)
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Request

if TYPE_CHECKING:
    from ragaudit.embedders.base import Embedder

__all__ = ["Checker", "embedding", "pending"]

F = TypeVar("F", ReceiptFile, GeneratedFile)


_PLAIN = -1  # in the name of an evidence file: no counter was expected


class Checker:
    """The checks of one session.

    They run in a thread beside the event loop; none of them waits for anything but the disk.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._operations = CoreOperations()

    def promise(
        self,
        value: Any,
        request: Request | GenerationRequest,
        request_time: int,
        *,
        first: bool,
    ) -> Promise:
        """Return the promise if it is the one that was asked for.

        Args:
            value: the provider's reply, JSON.
            request: the request that the promise must answer.
            request_time: Unix milliseconds at which it was first asked for, as far as is known.
            first: whether nobody can have asked for this counter before ``request_time``.

        Raises:
            AnswerRejected: it is false, or was made at another time than it was asked for.
            StateConflict: it was made before ``request_time``, perhaps for a request before a
                crash; the error names the instant at which the promise expires.
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
            promise_time = promise.promised.time
            # An old promise is false only where nobody can have asked for the counter before.
            if promise_time > now + skew or (first and promise_time < request_time - skew):
                raise _another_time("promise", promise_time, request_time, now)
        except RagauditError as error:
            raise self.rejected(counter, value, error) from error
        if promise_time < request_time - skew:
            raise pending(promise, policy)
        return promise

    def promised(self, value: Any) -> Record | None:
        """Return the record that a reply promises, not checked; None if it promises none.

        Args:
            value: the provider's reply, JSON; `promise` says what is wrong with it.
        """
        try:
            return Promise.from_json(value).record
        except RagauditError:
            return None

    def answer(self, data: bytes, request: Request) -> ReceiptFile:
        """Return the receipt file of a reply to ``request``, parsed and not yet checked.

        Args:
            data: the body of the reply.
            request: the one that was sent, counter included.

        Raises:
            AnswerRejected: not a receipt file, or one of another request; the evidence is kept.
        """
        return self._parsed(ReceiptFile, data, request)

    def words(self, data: bytes, request: GenerationRequest) -> GeneratedFile:
        """Return the file of an answer in words, parsed and not yet checked; raises as `answer`.

        Args:
            data: the body of the reply.
            request: the one that was sent, counter included.
        """
        return self._parsed(GeneratedFile, data, request)

    def _parsed(self, kind: type[F], data: bytes, request: Request | GenerationRequest) -> F:
        try:
            file = kind.parse(data)
            # Otherwise a provider could answer an easier question, rightly signed.
            if file.request != request:
                raise AnswerRejected("an answer to another request", where="request")
        except RagauditError as error:
            raise self.rejected(request.counter, _shown(data), error) from error
        return file

    def words_receipt(self, file: GeneratedFile, promise: Promise | None) -> list[StepResult]:
        """Return the outcome of each check of docs/spec 11.10, and of the window's pin as step 0.

        Args:
            file: the answer in words with its receipt.
            promise: of the charge; None for a plain account.

        Raises:
            AnswerRejected: a check fails; the evidence is kept.
        """
        session, counter = self._session, file.request.counter
        anchor = None if session.chain is None else session.chain.anchor
        try:
            steps = check_generated_file(
                file, session.window.view, self._operations, anchor=anchor, promise=promise,
                embed=self._embed(), account=session.registered.view(counter),
            )  # fmt: skip
        except RagauditError as error:
            raise self.rejected(counter, file.to_json(), error) from error
        return [_pinning(session.window), *steps, *self._quorum(file)]

    def words_completed(
        self, file: GeneratedFile, earlier: Sequence[StepResult]
    ) -> list[StepResult]:
        """Return the outcomes for an answer whose receipt has got its inclusion proofs.

        Args:
            file: with the proofs.
            earlier: the outcomes without them; they stay, but for that of the inclusion.

        Raises:
            AnswerRejected: a proof is false; the evidence is kept.
        """
        try:
            step = check_generated_inclusion(file.public, self._session.window.view)
        except RagauditError as error:
            raise self.rejected(file.request.counter, file.to_json(), error) from error
        known = {each.number: each for each in (step, *self._quorum(file))}
        return [known.get(each.number, each) for each in earlier]

    def receipt(self, file: ReceiptFile, promise: Promise | None) -> list[StepResult]:
        """Return the outcome of each check of docs/spec 5.9, and of the window's pin as step 0.

        Args:
            file: the receipt, both halves.
            promise: the promise that the record keeps; None for a plain query.

        Raises:
            AnswerRejected: a check fails; the evidence is kept.
        """
        session, counter = self._session, file.request.counter
        anchor = None if session.chain is None else session.chain.anchor
        try:
            steps = check_receipt_file(
                file, session.window.view, self._operations, anchor=anchor, promise=promise,
                embed=self._embed(), account=session.registered.view(counter),
            )  # fmt: skip
        except RagauditError as error:
            raise self.rejected(counter, file.to_json(), error) from error
        # Step 0 is told, not demanded: an account may have chosen to go unpinned.
        return [_pinning(session.window), *steps, *self._quorum(file)]

    def completed(self, file: ReceiptFile, earlier: Sequence[StepResult]) -> list[StepResult]:
        """Return the outcomes for a receipt that has got its inclusion proof since it was checked.

        Args:
            file: the receipt with its proof.
            earlier: the outcomes without it; they stay, but for that of the inclusion.

        Raises:
            AnswerRejected: the proof is false; the evidence is kept.
        """
        try:
            step = check_inclusion(file.public, self._session.window.view)
        except RagauditError as error:
            raise self.rejected(file.request.counter, file.to_json(), error) from error
        # The others hold as before: a proof of inclusion says nothing of the answer.
        known = {each.number: each for each in (step, *self._quorum(file))}
        return [known.get(outcome.number, outcome) for outcome in earlier]

    def _quorum(self, file: ReceiptFile | GeneratedFile) -> list[StepResult]:
        """Return step 11, if there is one; AnswerRejected if it fails."""
        try:
            return check_quorum(file.public, self._session.window.view.policy)
        except RagauditError as error:
            raise self.rejected(file.request.counter, file.to_json(), error) from error

    def plain_time(self, file: ReceiptFile | GeneratedFile, request_time: int) -> None:
        """Check the time of a plain answer against this machine's clock (docs/spec 5.9).

        Args:
            file: the receipt.
            request_time: Unix milliseconds at which the query was sent.

        Raises:
            AnswerRejected: it is not between asking and receiving, within the policy's skew.
        """
        policy, now = self._session.window.view.policy, self._session.clock()
        skew, time = 1000 * policy.clock_skew_seconds, _time(file)
        if not request_time - skew <= time <= now + skew:
            error = _another_time("answer", time, request_time, now)
            raise self.rejected(None, file.to_json(), error) from error

    def overdue(self, file: ReceiptFile | GeneratedFile) -> bool:
        """Return whether the merge delay is over, within which the inclusion proof is due.

        Args:
            file: a receipt without a proof; its time of issue is the provider's signed one.
        """
        policy = self._session.window.view.policy
        return self._session.clock() > file.public.issued + 1000 * policy.merge_delay_seconds

    def rejected(self, counter: int | None, evidence: Any, error: RagauditError) -> AnswerRejected:
        """Return the error to raise, after keeping what was received as evidence.

        Args:
            counter: that was expected; None for a plain query.
            evidence: JSON, or text where the reply is no JSON.
            error: what is wrong with it.
        """
        path = None
        if self._session.state is not None:
            # Lone surrogates too: evidence is kept as it came, or its digest is another one.
            data = json.dumps(evidence, ensure_ascii=False).encode("utf-8", "surrogatepass")
            number = _PLAIN if counter is None else counter
            path = self._session.state.keep_rejected(number, data)
        return AnswerRejected(
            error.what, where=error.where, expected=error.expected, evidence=path, received=evidence
        )

    def _embed(self) -> Embed | None:
        if (embedder := self._session.embedder) is None:
            return None
        return embedding(embedder, self._session.window.view.policy)


def embedding(embedder: "Embedder", policy: Policy) -> Embed:
    """Return what repeats quantised embeddings of texts for a receipt check.

    Args:
        embedder: the committed one.
        policy: of the window, for the norm of integer vectors.
    """
    from ragaudit.embedders.base import embed_quantised  # noqa: PLC0415 - an extra

    def embed(texts: Sequence[str]) -> Sequence[Sequence[int]]:
        rows: Sequence[Sequence[int]] = embed_quantised(embedder, texts, policy.norm_bound).tolist()
        return rows

    return embed


def pending(promise: Promise, policy: Policy) -> StateConflict:
    """Return the error for a promise that is older than the request; it names when it expires.

    Args:
        promise: of an earlier request for the same counter.
        policy: says for how long a promise binds.
    """
    expires = -(-promise.superseded_from(policy) // 1000)
    return StateConflict(
        f"a promise of {rfc3339(promise.promised.time)} is pending",
        where=f"counter {promise.promised.counter}",
        expected="a fresh one, when that one has expired",
        next_instant=expires,
    )


def _pinning(window: Window) -> StepResult:
    if window.pinned:
        return StepResult(0, "window", "done")
    return StepResult(0, "window", "not done", "neither verifier key nor policy is pinned")


def _another_time(where: str, time: int, request_time: int, now: int) -> AnswerRejected:
    return AnswerRejected(
        f"made at {rfc3339(time)}",
        where=f"{where}, time",
        expected=f"from {rfc3339(request_time)} to {rfc3339(now)}, give or take the policy's skew",
    )


def _time(file: ReceiptFile | GeneratedFile) -> int:
    if isinstance(file, GeneratedFile):
        return file.public.charged.time
    return file.public.record.time


def _shown(data: bytes) -> Any:
    """Return what was received: its JSON value, or its text if it is not JSON."""
    try:
        return json_value(data)
    except ValueError:
        return data.decode("utf-8", "replace")
