"""Ask: one life for both channels, documents and generated answers (docs/spec 5.8 to 5.10, 11).

A plain account's question is answered at once. An anchored account's is promised first, then its
nonce is revealed. Either answer is checked, kept, and completed later by its inclusion proofs.

Whoever has the nonce knows the noise. A provider that could take it and then stay silent would
have looked at the noise first, so (docs/spec/08-services.md, 8.10):

- nothing is revealed unless time is left in which the verifier still takes a claim;
- one deadline covers the whole of a reveal, a reply that drips in byte by byte too;
- every outcome but an answer that passes its checks becomes a claim;
- a reveal that has begun runs to its end, even if its caller goes away.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ragaudit.client.checks import Checker
from ragaudit.client.errors import (
    AnswerRejected,
    CannotClaim,
    PromiseUnanswered,
    ProviderRefusal,
    ServiceUnreachable,
    StateConflict,
)
from ragaudit.client.results import Answered, AnyRequest, channel_of
from ragaudit.client.session import POLL_SECONDS, Session
from ragaudit.client.state import PendingPromise, StateDirectory
from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    RagauditError,
    RefusedError,
    UnavailableError,
)
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.chains import NONCE_BYTES, NonceChain
from ragaudit.ledger.messages.missing import VoidedCharge
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Claim, Promise
from ragaudit.ledger.messages.receipts import GenerationRequest
from ragaudit.ledger.messages.requests import MAX_QUERY_BYTES, Request, float32_bytes

__all__ = ["Asked", "Asking", "check_asked", "seconds_to_reveal"]

Asked = str | Sequence[float]
"""A text, or the application's own vector of d numbers."""
CLAIM_SECONDS = 10.0
"""Kept free for a claim at the end of a promise's life, at most a third of that life. At the end
of the window the policy's margin is kept free."""
LEAST_SECONDS = 1.0
"""Less than this for an answer is no attempt."""
_TOO_EARLY = 425  # RFC 8470; here: no cosigned checkpoint covers the entry yet
_VOIDED = "urn:ragaudit:problem:charge-voided"


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


def _seconds_left(promise: Promise, policy: Policy, now: int) -> float:
    """Return the seconds in which an answer may come and still leave time for a claim."""
    life = 1000 * policy.promise_life_seconds
    claiming = min(round(1000 * CLAIM_SECONDS), life // 3)
    return (min(promise.promised.time + life - claiming, policy.last_promise) - now) / 1000


def seconds_to_reveal(promise: Promise, policy: Policy, now: int) -> float:
    """Return the seconds in which an answer may come and still leave time for a claim.

    Args:
        promise: its time starts its life.
        policy: length of that life, and the end of the window.
        now: Unix milliseconds.

    Raises:
        CannotClaim: not enough for an attempt, or the verifier takes no claim as long.
    """
    try:
        # Any nonce gives the same length: a claim that is too long is found before one has left.
        Claim(promise, bytes(NONCE_BYTES)).encode_within(policy.slots)
    except RefusedError as error:
        raise CannotClaim(
            f"not revealed: {error.what}", where="query", expected=error.expected
        ) from error
    if (seconds := _seconds_left(promise, policy, now)) >= LEAST_SECONDS:
        return seconds
    raise CannotClaim(
        f"not revealed: a promise of {rfc3339(promise.promised.time)} leaves no time to claim",
        where=f"counter {promise.promised.counter}",
        expected="a later query, or the next window",
    )


def _body(request: AnyRequest) -> dict[str, Any]:
    """Return the body that asks a request (spec 8.6).

    Its kind shows in its members, and a plain account names no counter.
    """
    members = request.to_json()
    members.pop("kind", None)
    if request.counter is None:
        del members["counter"]
    return members


class Asking:
    """What one account asks and is promised, one question at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._checker = Checker(session)
        self._task: asyncio.Task[Answered] | None = None
        self._asked: tuple[int, int] = (-1, 0)
        self._reached: int | None = None

    async def ended(self) -> None:
        """Wait until each revealed promise is answered or claimed."""
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task})

    async def search(self, asked: Asked, top_k: int, wanted: str) -> tuple[Answered, int]:
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
        return await self._ask(Request.of(policy, question, top_k, filter=wanted, counter=None))

    async def generate(self, question: str, wanted: str) -> tuple[Answered, int]:
        """Return the checked receipt of a generated answer; otherwise as `search`.

        Args:
            question: checked.
            wanted: the filter's canonical text; empty for none.
        """
        await self._session.ready()
        request = GenerationRequest(question, wanted)
        request.check_policy(self._session.window.view.policy)
        return await self._ask(request)

    async def _ask(self, request: AnyRequest) -> tuple[Answered, int]:
        if not self._session.anchored:
            return await self._plain(request)
        # A promise from before a crash has the chain's next value; nothing else may take it.
        await self._resume()
        return await self._reveal(await self._promised(request)), 0

    async def _plain(self, request: AnyRequest) -> tuple[Answered, int]:
        session, channel = self._session, channel_of(request)
        path, request_time = session.path(channel.asks), session.clock()
        # Never repeated: the first may be logged already, and a second would use up another query.
        data = await session.provider.request("POST", path, _body(request), repeatable=False)
        file = await asyncio.to_thread(self._checker.answer, data, request)
        entry, missed = file.public.query, 0
        await session.follow(entry)
        checks = await asyncio.to_thread(self._checker.receipt, file, None)
        # A question that was asked before may get the answer, and the time, of then (8.6).
        had = await session.had(file)
        if had or (channel.reuses and session.asked_before(entry.counter)):
            await session.timed(partial(self._checker.repeated_time, file, request_time))
        else:
            await session.timed(partial(self._checker.plain_time, file, request_time))
            missed = session.plain_counter(entry.counter)
        # Where it is kept already it may have its proofs.
        kept = session.kept_at(file) if had else await session.keep(file)
        return channel.checked(file, checks, kept), missed

    async def _promised(self, asked: AnyRequest) -> Promise:
        """Return the checked promise of a request for the next counter.

        Args:
            asked: the request without its counter.

        Raises:
            AnswerRejected, StateConflict: as `Checker.promise`; the first also of a voided charge
                that is not shown to be one.
            BudgetExhausted, ProviderRefusal, ServiceUnreachable: there is none.
        """
        session, (state, _) = self._session, self._anchored()
        request, request_time, first = self._next(asked)
        place = session.path(channel_of(asked).promises)
        try:
            value = await session.provider.post(place, _body(request), repeatable=True)
        except ProviderRefusal as error:
            if error.problem.get("type") != _VOIDED:
                raise
            # Charged for a promise that never arrived, or that came too late to be revealed.
            counter = request.counter or 0
            await session.timed(partial(self._check_voided, error.problem, counter))
            await asyncio.to_thread(state.skip, counter)
            request, request_time, first = self._next(asked)
            value = await session.provider.post(place, _body(request), repeatable=True)
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

    def _next(self, asked: AnyRequest) -> tuple[AnyRequest, int, bool]:
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

    async def _reveal(self, promise: Promise) -> Answered:
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
        return await self._begin(pending, promise, seconds, fresh=True)

    async def resume(self) -> Answered | None:
        """Reveal the kept promise again and return the checked answer; None if there is none.

        A promise whose nonce never left is dropped if too little time is left to reveal it.

        Raises:
            AnswerRejected, PromiseUnanswered, ServiceUnreachable: no answer that counts.
        """
        await self._session.ready()
        return await self._resume() if self._session.anchored else None

    async def _resume(self) -> Answered | None:
        state, _ = self._anchored()
        if (pending := state.pending()) is None:
            return None
        promise, session = Promise.from_json(pending.promise), self._session
        # The nonce is out: the query is ended whatever time is left, by an answer or a claim.
        if pending.sent:
            return await self._begin(pending, promise, session.timeout_seconds, fresh=False)
        seconds = _seconds_left(promise, session.window.view.policy, session.clock())
        if seconds < LEAST_SECONDS:
            self._reached = None  # the next promise of this counter may be this one still
            await asyncio.to_thread(state.drop_promise)
            return None
        pending = replace(pending, sent=True)
        await asyncio.to_thread(state.keep_promise, pending)
        return await self._begin(pending, promise, seconds, fresh=True)

    async def claim(self) -> bool:
        """Give the verifier the revealed, unanswered promise; return whether there is one."""
        await self._session.register()
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
            seconds: for the whole call, if that is less than what any call may take.
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
        kept = await asyncio.to_thread(keep, pending.counter, file.encode())
        self._reached = pending.counter + 1
        return channel.checked(file, checks, kept)

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

    async def complete(self, receipt: Answered, seconds: float) -> None:
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

    async def _proof(self, receipt: Answered, index: int, seconds: float) -> TlogProof:
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

    async def _check_withheld(self, receipt: Answered, index: int) -> None:
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


def _look(task: asyncio.Task[Answered]) -> None:
    """Retrieve the task's error: without a caller left to take it, asyncio would warn of it."""
    if not task.cancelled():
        task.exception()
