"""Every check on what a provider sends: of receipts of both channels, promises, times.

None of it waits for anything but the disk, where a `Checker` keeps what fails as evidence.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from ragaudit import core
from ragaudit.circuits.vector_operations import VectorOperations
from ragaudit.client.errors import AnswerRejected, StateConflict
from ragaudit.client.results import AnyRequest, channel_of
from ragaudit.client.session import Session
from ragaudit.client.transport import json_value
from ragaudit.client.window import Window
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages import receipt_check
from ragaudit.ledger.messages.entries import QueryEntry
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import (
    AccountView,
    Embed,
    StepResult,
    WindowView,
    check_inclusion,
    check_promise,
    check_quorum,
)
from ragaudit.ledger.messages.receipts import AnyFile, GeneratedFile, PublicPart
from ragaudit.ledger.messages.ties import TiesStatement

if TYPE_CHECKING:
    from ragaudit.embedders.base import Embedder

__all__ = [
    "Checker",
    "CoreOperations",
    "Facts",
    "check_completed",
    "check_file",
    "check_pin",
    "embedding",
    "pending",
]

_PLAIN = -1  # in the name of an evidence file: no counter was expected
SCALAR_BYTES = 32
POINT_BYTES = 32


class CoreOperations(VectorOperations):
    """`ragaudit.ledger.messages.receipt_check.GroupOperations` over `ragaudit.core`."""

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to one completed row (docs/spec/04-arguments.md §4.1.5).

        Args:
            row: d + 4 integers of 16 bits.
            blinding: a canonical scalar, 32 bytes.

        Raises:
            MalformedError: an entry out of range, or a blinding that is no canonical scalar.
        """
        [made] = self.commit_rows([row], [blinding])
        return made

    def commit_rows(
        self, rows: Sequence[Sequence[int]], blindings: Sequence[bytes]
    ) -> Sequence[bytes]:
        """Return the commitments to completed rows, 32 bytes each, as `commit_row`.

        Args:
            rows: at least one, each of d + 4 integers of 16 bits.
            blindings: canonical scalars, 32 bytes each, as many as rows.

        Raises:
            MalformedError: as `commit_row`.
        """
        entries = np.array(rows)
        # In 16 bits 40000 would wrap to -25536, and the core commit to another row.
        if entries.dtype.kind != "i" or entries.min() < -(2**15) or entries.max() >= 2**15:
            raise MalformedError("row entry out of range", expected="integers of 16 bits")
        if any(len(blinding) != SCALAR_BYTES for blinding in blindings):
            raise MalformedError("blinding of a wrong length", expected=f"{SCALAR_BYTES} bytes")
        scalars = np.frombuffer(b"".join(blindings), dtype=np.uint8).reshape(-1, SCALAR_BYTES)
        try:
            made = bytes(core.commit_rows(entries.astype(np.int16), scalars))
        except core.CoreError as error:
            raise MalformedError(str(error), where="row commitment") from error
        return [made[at : at + POINT_BYTES] for at in range(0, len(made), POINT_BYTES)]

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return the commitment to a set of positions (docs/spec/04-arguments.md §4.1.5).

        Args:
            positions: distinct rows of the corpus, from 0.
            blinding: a canonical scalar, 32 bytes.

        Raises:
            MalformedError: positions out of range or repeated, or not a canonical scalar.
        """
        try:
            return bytes(core.commit_selection(list(positions), blinding))
        except core.CoreError as error:
            raise MalformedError(str(error), where="selection commitment") from error

    def verify_ties(self, statement: TiesStatement, proof: bytes) -> None:
        """Check a ties opening: the answer holds the first rows of T (docs/spec 4.6.10).

        Args:
            statement: T, scores and commitments have been checked before.
            proof: as the provider sent it.

        Raises:
            ReceiptRejected: it does not establish the statement.
        """
        try:
            core.verify_ties(statement, proof)
        except core.CoreError as error:
            raise ReceiptRejected(str(error), where="ties opening") from error


@dataclass(frozen=True)
class Facts:
    """What a check has beside receipt and window; a step without what it needs is "not done".

    Attributes:
        account: what an entry of the account must say; unknown parts are not compared.
        anchor: of the account's nonce chain.
        promise: the one that the entry keeps.
        embed: repeats quantised embeddings by the committed embedder.
    """

    account: AccountView = field(default_factory=AccountView)
    anchor: bytes | None = None
    promise: Promise | None = None
    embed: Embed | None = field(default=None, repr=False)


def check_file(file: AnyFile, window: Window, facts: Facts) -> list[StepResult]:
    """Return the outcome of each check of docs/spec 5.9 or 11.10, after that of `check_pin`.

    Args:
        file: the receipt, both parts.
        window: that it names.
        facts: what is known beside it.

    Raises:
        RejectedError: the first step that fails.
    """
    steps = receipt_check.check_file(
        file, window.view, CoreOperations(), anchor=facts.anchor, promise=facts.promise,
        embed=facts.embed, account=facts.account,
    )  # fmt: skip
    return [check_pin(window), *steps, *check_quorum(file.public, window.view.policy)]


def check_pin(window: Window) -> StepResult:
    """Return step 0: whether the window is the one that the account agreed to.

    It is told, not demanded: an account may have chosen to go unpinned.

    Args:
        window: authenticated with or without pins.
    """
    if window.pinned:
        return StepResult(0, "window", "done")
    return StepResult(0, "window", "not done", "neither verifier key nor policy is pinned")


def check_completed(public: PublicPart, view: WindowView) -> list[StepResult]:
    """Return the outcomes that change when a checked receipt gets its inclusion proofs.

    The others hold as before: a proof of inclusion says nothing of the answer.

    Args:
        public: half of the receipt, with the proofs.
        view: of the window.

    Raises:
        StepRejected: a proof is false.
    """
    return [check_inclusion(public, view), *check_quorum(public, view.policy)]


class Checker:
    """The checks of one session; they run in a thread beside the event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._operations = CoreOperations()

    def promise(
        self,
        value: Any,
        request: AnyRequest,
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

    def promised(self, value: Any) -> QueryEntry | None:
        """Return the entry that a reply promises, not checked; None if it promises none.

        Args:
            value: the provider's reply, JSON; `promise` says what is wrong with it.
        """
        try:
            return Promise.from_json(value).promised
        except RagauditError:
            return None

    def answer(self, data: bytes, request: AnyRequest) -> AnyFile:
        """Return the receipt file of a reply to ``request``, parsed and not yet checked.

        Args:
            data: the body of the reply.
            request: the one that was sent, counter included.

        Raises:
            AnswerRejected: not a receipt file, or one of another request; the evidence is kept.
        """
        try:
            file = channel_of(request).file.parse(data)
            # Otherwise a provider could answer an easier question, rightly signed.
            if file.request != request:
                raise AnswerRejected("an answer to another request", where="request")
        except RagauditError as error:
            raise self.rejected(request.counter, _shown(data), error) from error
        return file

    def receipt(self, file: AnyFile, promise: Promise | None) -> list[StepResult]:
        """Return the outcomes of `check_file`.

        Args:
            file: the receipt, both parts.
            promise: that its entry keeps; None for a plain account.

        Raises:
            AnswerRejected: a check fails; the evidence is kept.
        """
        session, counter = self._session, file.request.counter
        anchor = None if session.chain is None else session.chain.anchor
        facts = Facts(session.registered.view(counter), anchor, promise, self._embed())
        try:
            return check_file(file, session.window, facts)
        except RagauditError as error:
            raise self.rejected(counter, file.to_json(), error) from error

    def completed(self, file: AnyFile, earlier: Sequence[StepResult]) -> list[StepResult]:
        """Return the outcomes for a receipt that has got its inclusion proofs since it was checked.

        Args:
            file: the receipt with its proofs.
            earlier: the outcomes without them.

        Raises:
            AnswerRejected: a proof is false; the evidence is kept.
        """
        try:
            steps = check_completed(file.public, self._session.window.view)
        except RagauditError as error:
            raise self.rejected(file.request.counter, file.to_json(), error) from error
        known = {each.number: each for each in steps}
        return [known.get(outcome.number, outcome) for outcome in earlier]

    def plain_time(self, file: AnyFile, request_time: int) -> None:
        """Check the time of a plain answer against this machine's clock (docs/spec 5.9).

        Args:
            file: the receipt.
            request_time: Unix milliseconds at which the query was sent.

        Raises:
            AnswerRejected: it is not between asking and receiving, within the policy's skew.
        """
        policy, now = self._session.window.view.policy, self._session.clock()
        skew, time = 1000 * policy.clock_skew_seconds, file.public.query.time
        if not request_time - skew <= time <= now + skew:
            error = _another_time("answer", time, request_time, now)
            raise self.rejected(None, file.to_json(), error) from error

    def repeated_time(self, file: AnyFile, request_time: int) -> None:
        """Check that an answer of before may still be given again (docs/spec 8.6, 11.9).

        Args:
            file: the receipt.
            request_time: Unix milliseconds at which the query was sent.

        Raises:
            AnswerRejected: its receipt is older than that: what the index holds by now was asked
                for, and not answered.
        """
        policy, issued = self._session.window.view.policy, file.public.issued
        if isinstance(file, GeneratedFile) and policy.generation and policy.generation.reuse:
            return
        life = 1000 * (policy.retrieval.retry_seconds + policy.clock_skew_seconds)
        if issued < request_time - life:
            error = _another_time("answer", issued, request_time - life, self._session.clock())
            raise self.rejected(None, file.to_json(), error) from error

    def overdue(self, file: AnyFile) -> bool:
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


def _another_time(where: str, time: int, request_time: int, now: int) -> AnswerRejected:
    return AnswerRejected(
        f"made at {rfc3339(time)}",
        where=f"{where}, time",
        expected=f"from {rfc3339(request_time)} to {rfc3339(now)}, give or take the policy's skew",
    )


def _shown(data: bytes) -> Any:
    """Return what was received: its JSON value, or its text if it is not JSON."""
    try:
        return json_value(data)
    except ValueError:
        return data.decode("utf-8", "replace")
