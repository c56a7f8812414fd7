"""Reveal the nonce of a promise, and claim whenever that ends in anything but a checked answer.

Whoever has the nonce knows the noise. A provider that could take it and then stay silent would
have looked at the noise first, so (docs/spec/08-services.md, 8.10):

- nothing is revealed unless time is left in which the verifier still takes a claim;
- one deadline covers the whole of a reveal, a reply that drips in byte by byte too;
- every outcome but an answer that passes its checks becomes a claim;
- a reveal that has begun runs to its end, even if its caller goes away.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ragaudit.client.channels import AnyRequest, channel_of
from ragaudit.client.checks import Checker
from ragaudit.client.errors import (
    AnswerRejected,
    CannotClaim,
    PromiseUnanswered,
    ProviderRefusal,
    ServiceUnreachable,
    StateConflict,
)
from ragaudit.client.results import CheckedAnswer, CheckedReceipt, checked
from ragaudit.client.session import Session
from ragaudit.client.state import PendingPromise, StateDirectory
from ragaudit.encoding.errors import RagauditError, RefusedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.chains import NONCE_BYTES, NonceChain
from ragaudit.ledger.messages.missing import VoidedCharge
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Claim, Promise

__all__ = ["Revealing", "request_body", "seconds_left", "seconds_to_reveal"]

CLAIM_SECONDS = 10.0
"""Kept free for a claim at the end of a promise's life, at most a third of that life. At the end
of the window the policy's margin is kept free."""

Answered = CheckedReceipt | CheckedAnswer
_VOIDED = "urn:ragaudit:problem:charge-voided"
LEAST_SECONDS = 1.0
"""Less than this for an answer is no attempt."""


def seconds_left(promise: Promise, policy: Policy, now: int) -> float:
    """Return the seconds in which an answer may come and still leave time for a claim.

    Args:
        promise: its time starts its life.
        policy: length of that life, and the end of the window.
        now: Unix milliseconds.
    """
    life = 1000 * policy.promise_life_seconds
    claiming = min(round(1000 * CLAIM_SECONDS), life // 3)
    return (min(promise.promised.time + life - claiming, policy.last_promise) - now) / 1000


def seconds_to_reveal(promise: Promise, policy: Policy, now: int) -> float:
    """Return `seconds_left`, after checking that a claim would be taken.

    Args:
        promise, policy, now: as in `seconds_left`.

    Raises:
        CannotClaim: not enough for an attempt, or the verifier takes no claim as long.
    """
    try:
        # Any nonce gives the same length: a claim that is too long is found before one has left.
        Claim(promise, bytes(NONCE_BYTES)).encode()
    except RefusedError as error:
        raise CannotClaim(
            f"not revealed: {error.what}", where="query", expected=error.expected
        ) from error
    if (seconds := seconds_left(promise, policy, now)) >= LEAST_SECONDS:
        return seconds
    raise CannotClaim(
        f"not revealed: a promise of {rfc3339(promise.promised.time)} leaves no time to claim",
        where=f"counter {promise.promised.counter}",
        expected="a later query, or the next window",
    )


def request_body(request: AnyRequest) -> dict[str, Any]:
    """Return the body that asks a request (spec 8.6).

    Its kind shows in its members, and a plain account names no counter.
    """
    members = request.to_json()
    members.pop("kind", None)
    if request.counter is None:
        del members["counter"]
    return members


class Revealing:
    """The promises of one session, one at a time."""

    def __init__(self, session: Session, checker: Checker) -> None:
        self._session = session
        self._checker = checker
        self._seconds = session.timeout_seconds
        self._task: asyncio.Task[Answered] | None = None
        self._asked: tuple[int, int] = (-1, 0)
        self._reached: int | None = None

    async def ended(self) -> None:
        """Wait until each revealed promise is answered or claimed."""
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task})

    async def promised(self, asked: AnyRequest) -> Promise:
        """Return the checked promise of a request for the next counter.

        Args:
            asked: the request without its counter.

        Raises:
            AnswerRejected, StateConflict: as `Checker.promise`; the first also of a voided charge
                that is not shown to be one.
            BudgetExhausted, ProviderRefusal, ServiceUnreachable: there is none.
        """
        state, _ = self._anchored()
        session = self._session
        request, request_time, first = self.asking(asked)
        place, body = session.path(channel_of(asked).promises), request_body(request)
        try:
            value = await session.provider.post(place, body, repeatable=True)
        except ProviderRefusal as error:
            if error.problem.get("type") != _VOIDED:
                raise
            # Charged for a promise that never arrived, or that came too late to be revealed.
            counter = request.counter or 0
            await session.timed(partial(self._check_voided, error.problem, counter))
            await asyncio.to_thread(state.skip, counter)
            request, request_time, first = self.asking(asked)
            value = await session.provider.post(place, request_body(request), repeatable=True)
        if (entry := self._checker.promised(value)) is not None:
            await session.follow(entry)
        return await session.timed(
            lambda: self._checker.promise(value, request, request_time, first=first)
        )

    def _check_voided(self, problem: Mapping[str, Any], counter: int) -> None:
        """Check that the charge of a counter has no answer and can get none (docs/spec 8.10).

        Args:
            problem: the document that says so.
            counter: of the query.

        Raises:
            AnswerRejected: it does not show that; the evidence is kept.
        """
        session = self._session
        account, policy = session.registered.pseudonym, session.window.view.policy
        try:
            shown = VoidedCharge.from_json(problem.get("voided"))
            shown.verify(policy, account, counter, session.clock())
        except RagauditError as error:
            raise self._checker.rejected(counter, dict(problem), error) from error

    def asking(self, asked: AnyRequest) -> tuple[AnyRequest, int, bool]:
        """Return the next request, and what is known of its counter.

        Args:
            asked: the request without its counter.

        Returns:
            The request; the Unix milliseconds at which its counter was first asked for; whether
            nobody can have asked for it before: this process got the answer before it, or began
            the chain.
        """
        state, _ = self._anchored()
        counter = state.next_counter()
        # The first asking counts: a promise made for an earlier attempt is not made too early.
        if self._asked[0] != counter:
            self._asked = (counter, self._session.clock())
        # Only then is an older promise a false one (docs/spec/08-services.md §8.10, 3).
        first = counter == self._reached or (counter == 0 and self._session.began_chain)
        return replace(asked, counter=counter), self._asked[1], first

    async def reveal(self, promise: Promise) -> Answered:
        """Keep a checked promise, reveal its nonce, and return the checked answer.

        Args:
            promise: checked, for the next counter.

        Raises:
            CannotClaim: too late to claim if it were not answered; nothing was revealed.
            AnswerRejected, PromiseUnanswered: no answer that counts; claimed if that was possible.
            ServiceUnreachable: nothing was sent.
        """
        state, _ = self._anchored()
        session, counter = self._session, promise.promised.counter
        seconds = seconds_to_reveal(promise, session.window.view.policy, session.clock())
        # Durable before it is sent: after a crash the same query is finished, never another.
        pending = PendingPromise(counter, promise.request.to_json(), promise.to_json())
        await asyncio.to_thread(state.keep_promise, pending)
        return await self._begin(pending, promise, min(seconds, self._seconds), fresh=True)

    async def resume(self) -> Answered | None:
        """Reveal the kept promise again and return the checked answer; None if there is none.

        A promise whose nonce never left is dropped if too little time is left to reveal it.

        Raises:
            AnswerRejected, PromiseUnanswered, ServiceUnreachable: as `reveal`.
        """
        state, _ = self._anchored()
        if (pending := state.pending()) is None:
            return None
        promise = Promise.from_json(pending.promise)
        # The nonce is out: the query is ended whatever time is left, by an answer or a claim.
        if pending.sent:
            return await self._begin(pending, promise, self._seconds, fresh=False)
        if (seconds := self._left(promise)) < LEAST_SECONDS:
            self._reached = None  # the next promise of this counter may be this one still
            await asyncio.to_thread(state.drop_promise)
            return None
        pending = replace(pending, sent=True)
        await asyncio.to_thread(state.keep_promise, pending)
        return await self._begin(pending, promise, min(seconds, self._seconds), fresh=True)

    async def claim(self) -> bool:
        """Give the verifier the revealed, unanswered promise; return whether there is one."""
        state, _ = self._anchored()
        pending = state.pending()
        # A nonce that never left has shown nobody any noise: there is nothing to claim.
        if pending is None or not pending.sent:
            return False
        await self._hand_in(pending)
        return True

    def _anchored(self) -> tuple[StateDirectory, NonceChain]:
        state, chain = self._session.state, self._session.chain
        if state is None or chain is None:
            raise StateConflict("a plain account promises nothing", expected="state_dir=")
        return state, chain

    def _left(self, promise: Promise) -> float:
        return seconds_left(promise, self._session.window.view.policy, self._session.clock())

    async def _begin(
        self, pending: PendingPromise, promise: Promise, seconds: float, *, fresh: bool
    ) -> Answered:
        """Reveal in a task of its own, which a cancelled caller does not stop."""
        # Cancelled half-way, the nonce would be out and nobody would claim.
        self._task = asyncio.create_task(self._revealed(pending, promise, seconds, fresh))
        self._task.add_done_callback(_look)
        return await asyncio.shield(self._task)

    async def _revealed(
        self, pending: PendingPromise, promise: Promise, seconds: float, fresh: bool
    ) -> Answered:
        """Reveal and take the answer.

        Args:
            seconds: for the whole call.
            fresh: whether the nonce has certainly not left before.
        """
        state, chain = self._anchored()
        body = {"counter": pending.counter, "nonce": chain.nonce(pending.counter).hex()}
        channel = channel_of(promise.request)
        path = self._session.path(channel.reveals)
        try:
            data = await self._session.provider.request("POST", path, body, seconds=seconds)
            file = await asyncio.to_thread(self._checker.answer, data, promise.request)
            checks = await asyncio.to_thread(self._checker.receipt, file, promise)
        except ServiceUnreachable as error:
            # The nonce cannot have left, now or earlier: there is nothing to claim.
            if fresh and not error.sent:
                await asyncio.to_thread(state.keep_promise, replace(pending, sent=False))
                raise
            raise await self._unanswered(pending, error) from error
        except AnswerRejected as error:
            error.claimed, outcome = await self._try_claim(pending)
            error.what = f"{error.what}; {outcome}"
            raise
        except RagauditError as error:
            raise await self._unanswered(pending, error) from error
        # A fault of this software must not spare the provider the claim.
        except Exception:
            await self._try_claim(pending)
            raise
        keep = partial(state.keep_answer, folder=channel.folder)
        path_of_file = await asyncio.to_thread(keep, pending.counter, file.encode())
        self._reached = pending.counter + 1
        return checked(file, checks, path_of_file)

    async def _unanswered(self, pending: PendingPromise, error: RagauditError) -> PromiseUnanswered:
        claimed, outcome = await self._try_claim(pending)
        return PromiseUnanswered(
            f"a revealed promise was not answered ({error}); {outcome}",
            claimed=claimed,
            where=f"counter {pending.counter}",
        )

    async def _try_claim(self, pending: PendingPromise) -> tuple[bool, str]:
        """Claim; return whether the verifier has it, and words for the error message."""
        try:
            await self._hand_in(pending)
        # The caller gets the error of the reveal; that no claim was made stands beside it.
        except RagauditError as refused:
            return False, f"the verifier did not take the claim: {refused}"
        return True, "the verifier has the claim"

    async def _hand_in(self, pending: PendingPromise) -> None:
        """Claim, unless the verifier has the claim already."""
        state, chain = self._anchored()
        # The verifier would take it again; the state file saves the call.
        if pending.claimed:
            return
        verifier, origin = self._session.known_verifier(), self._session.window.origin
        claim = Claim(Promise.from_json(pending.promise), chain.nonce(pending.counter))
        entry = await asyncio.to_thread(state.registration)
        await verifier.claim(origin, claim, entry)
        await asyncio.to_thread(state.keep_promise, replace(pending, claimed=True))


def _look(task: asyncio.Task[Answered]) -> None:
    """Retrieve the task's error: without a caller left to take it, asyncio would warn of it."""
    if not task.cancelled():
        task.exception()
