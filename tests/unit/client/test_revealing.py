"""What becomes of a nonce that was revealed: a checked answer, or a claim; or it stays here."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from ragaudit.client import asking
from ragaudit.client.asynchronous import AsyncClient
from ragaudit.client.blocking import Client
from ragaudit.client.errors import (
    AnswerRejected,
    CannotClaim,
    PromiseUnanswered,
    ServiceUnreachable,
    StateConflict,
)
from ragaudit.ledger.messages import promises
from ragaudit.ledger.messages.promises import Promise

API_KEY = "secret-api-key"
Open = Callable[..., Client]


class Clock:
    """The clock of all three, which a test moves."""

    ahead = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead


@pytest.fixture
def clock(provider: Any, verifier: Any) -> Clock:
    made = Clock()
    provider.clock = verifier.clock = made
    return made


def claims_of(verifier: Any) -> list[Any]:
    return [body for call, body in verifier.received if call == "claims"]


def on(call_name: str, answer: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    return lambda call, reply: answer(reply) if call == call_name else reply


def honest(_call: str, reply: Any) -> Any:
    return reply


# Every outcome but a checked answer is claimed


def replied(status: int = 200, **reply: Any) -> Callable[[Any], httpx.Response]:
    return lambda _reply: httpx.Response(status, **reply)


def false_answer(reply: Any) -> Any:
    reply = json.loads(json.dumps(reply))
    reply["answer"]["documents"].pop()
    return reply


def reformatted(reply: Any) -> Any:
    return httpx.Response(200, text=json.dumps(reply, indent=2))


garbage = replied(text="<html>all is well</html>")
closed = replied(409, json={"title": "Closed"})
OUTCOMES = {
    "garbage": garbage,
    "an_empty_object": lambda _reply: {},
    "nested_without_end": replied(content=b"[" * 200_000),
    "not_found": replied(404, text="not here"),
    "moved": replied(301, headers={"Location": "http://elsewhere"}),
    "compressed": replied(headers={"Content-Encoding": "x"}, content=b""),
    "closed": closed,
    "false_answer": false_answer,
    "reformatted": reformatted,
}


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_whatever_a_reveal_ends_in_is_claimed(
    opened: Open, provider: Any, verifier: Any, outcome: Any
) -> None:
    client = opened()
    client.register()
    provider.interfere = on("reveal", outcome)
    ends = (AnswerRejected, PromiseUnanswered)
    with pytest.raises(ends, match="the verifier has the claim") as caught:
        client.search("what is it?")
    assert caught.value.claimed  # type: ignore[attr-defined]
    (claim,) = claims_of(verifier)
    assert Promise.from_json(claim["promise"]) == provider.pending[0].promise
    assert bytes.fromhex(claim["nonce"]) == provider.pending[0].nonce
    provider.interfere = honest
    result = client.resume()
    assert result is not None and result.receipt.counter == 0
    assert client.resume() is None
    assert len(claims_of(verifier)) == 1


def test_a_promise_that_is_too_long_to_claim_is_not_revealed(
    opened: Open, provider: Any, verifier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promises, "MAX_CLAIM_BYTES", 500)
    client = opened()
    client.register()
    with pytest.raises(CannotClaim, match="not revealed: a claim of"):
        client.search("what is it?")
    assert provider.pending[0].nonce is None
    assert claims_of(verifier) == []


def test_the_answer_to_an_earlier_query_is_claimed(
    opened: Open, provider: Any, verifier: Any
) -> None:
    client = opened()
    client.search("question 0")
    old = provider.pending[0].reply
    provider.interfere = on("reveal", lambda _: old)
    with pytest.raises(AnswerRejected, match="another request"):
        client.search("question 1")
    assert len(claims_of(verifier)) == 1


def test_an_error_that_nobody_foresaw_is_claimed_too(
    opened: Open, verifier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = opened()
    client.register()

    def fail(*_: Any) -> Any:
        raise IndexError

    monkeypatch.setattr("ragaudit.client.checks.Checker.answer", fail)
    with pytest.raises(IndexError):
        client.search("what is it?")
    assert len(claims_of(verifier)) == 1


def test_a_claim_that_could_not_be_made_is_made_by_hand(
    opened: Open, provider: Any, verifier: Any
) -> None:
    client = opened()
    client.register()
    provider.interfere = on("reveal", garbage)
    verifier.refuses = True
    with pytest.raises(AnswerRejected, match="did not take the claim") as caught:
        client.search("what is it?")
    assert not caught.value.claimed
    verifier.refuses = False
    client.close()
    again = opened()
    assert again.claim()
    assert again.claim()  # known: the verifier is not asked again
    assert len(claims_of(verifier)) == 1


def test_there_is_nothing_to_claim_after_an_answer(opened: Open, verifier: Any) -> None:
    client = opened()
    client.search("what is it?")
    assert not client.claim()
    assert claims_of(verifier) == []


def test_a_plain_account_claims_nothing(opened: Open) -> None:
    with pytest.raises(StateConflict, match="plain"):
        opened(anchored=False).claim()


# The whole of a reveal has one deadline


@pytest.fixture
def dripping() -> Iterator[str]:
    """A server that sends one byte of a header every tenth of a second, and 30 in all."""
    ending = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            for _ in range(30):
                if ending.wait(0.1):
                    return
                self.wfile.write(b"H")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    ending.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_reply_that_drips_in_is_cut_and_claimed(
    opened: Open, provider: Any, verifier: Any, dripping: str
) -> None:
    """Each byte comes within any read timeout; only a deadline of the whole ends this."""
    slow = httpx.AsyncHTTPTransport()

    async def route(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/reveal"):
            return provider.handle(request)
        return await slow.handle_async_request(httpx.Request("POST", dripping, content=b"x"))

    client = opened(timeout_seconds=0.5, transport=httpx.MockTransport(route))
    client.register()
    with pytest.raises(PromiseUnanswered, match=r"no whole reply within 0\.5 s"):
        client.search("what is it?")
    assert len(claims_of(verifier)) == 1


# The nonce stays here


def test_nothing_is_revealed_without_a_verifier(opened: Open, provider: Any) -> None:
    with pytest.raises(StateConflict, match="hands claims to the verifier"):
        opened(verifier_url=None).search("what is it?")
    assert "promise" not in provider.calls


def test_nothing_is_revealed_while_the_verifier_is_away(
    opened: Open, provider: Any, verifier: Any
) -> None:
    verifier.refuses_all = True
    with pytest.raises(ServiceUnreachable):
        opened().search("what is it?")
    assert "promise" not in provider.calls


def test_nothing_is_revealed_under_a_clock_that_the_verifier_does_not_share(
    opened: Open, provider: Any, verifier: Any
) -> None:
    verifier.ahead = 6000
    with pytest.raises(StateConflict, match=r"clock is -6\.0 s off"):
        opened().search("what is it?")
    assert "promise" not in provider.calls


@pytest.mark.parametrize("seconds", [994, 995])
def test_nothing_is_revealed_at_the_end_of_the_window(
    opened: Open, provider: Any, verifier: Any, clock: Clock, seconds: int
) -> None:
    """The window ends in 1000 s, 5 s of which are kept for claims."""
    client = opened(clock=clock)
    client.search("question 0")
    clock.ahead = 1000 * seconds
    with pytest.raises(CannotClaim, match="no time to claim"):
        client.search("question 1")
    assert provider.calls.count("reveal") == 1
    assert provider.pending[1].nonce is None
    assert claims_of(verifier) == []


@pytest.mark.parametrize("seconds", [-90, -6, 6, 60])
def test_a_fresh_promise_was_made_now(
    opened: Open, provider: Any, clock: Clock, seconds: int
) -> None:
    """A promise with a date of the provider's choice would expire when the provider likes."""
    client = opened(clock=clock)
    client.search("question 0")
    provider.clock = lambda: clock() + 1000 * seconds
    with pytest.raises(AnswerRejected, match=r"promise, time: made at") as caught:
        client.search("question 1")
    assert caught.value.evidence is not None
    assert provider.calls.count("reveal") == 1


def test_a_date_that_this_clock_alone_finds_wrong_is_no_lie(
    opened: Open, provider: Any, verifier: Any, clock: Clock
) -> None:
    client = opened(clock=clock)
    client.search("question 0")
    provider.clock = lambda: clock() + 60_000
    verifier.ahead = 60_000
    with pytest.raises(StateConflict, match="clock"):
        client.search("question 1")


def test_a_promise_of_before_a_crash_is_waited_for(
    opened: Open, provider: Any, clock: Clock
) -> None:
    """The provider gives the pending promise again; only a client that remembers knows better."""
    first = opened(clock=clock)
    first.search("question 0")
    with pytest.raises(AnswerRejected):
        provider.interfere = on("promise", lambda reply: {**reply, "signature": "00" * 64})
        first.search("question 1")
    first.close()
    provider.interfere = honest
    clock.ahead = 30_000
    with pytest.raises(StateConflict, match=r"is pending.*next at") as caught:
        opened(clock=clock).search("question 1")
    made = provider.pending[1].promise.promised.time
    end = made + 60_000 + 2 * 5_000  # life and twice the skew; it is superseded after them
    assert end < 1000 * caught.value.next_instant <= end + 1000  # type: ignore[operator]
    assert provider.calls.count("reveal") == 1


def test_a_nonce_that_never_left_needs_no_claim(
    opened: Open, provider: Any, verifier: Any, clock: Clock
) -> None:
    def unreachable(_reply: Any) -> Any:
        raise httpx.ConnectError("nobody listens")

    client = opened(clock=clock)
    client.search("question 0")
    # The provider behind the broken line has seen nothing.
    before = replace(provider.pending[0])
    provider.interfere = on("reveal", unreachable)
    provider._reveal = lambda _body: None
    with pytest.raises(ServiceUnreachable) as caught:
        client.search("question 1")
    assert not isinstance(caught.value, PromiseUnanswered)
    assert claims_of(verifier) == []
    assert not client.claim()
    assert before.nonce is not None
    assert provider.pending[1].nonce is None
    # When that promise has expired, the provider may make another, and the account goes on.
    del provider._reveal
    provider.interfere = honest
    clock.ahead = 61_000
    del provider.pending[1]
    assert client.search("another question").receipt.counter == 1


def test_a_nonce_that_may_have_left_is_not_taken_back(
    opened: Open, provider: Any, verifier: Any, clock: Clock
) -> None:
    client = opened(clock=clock)
    client.search("question 0")
    provider.interfere = on("reveal", closed)
    with pytest.raises(PromiseUnanswered):
        client.search("question 1")
    clock.ahead = 300_000
    with pytest.raises(PromiseUnanswered):
        client.search("question 2")
    assert provider.calls.count("promise") == 2
    assert len(claims_of(verifier)) == 1


# Callers that go away


def test_a_cancelled_caller_does_not_stop_what_was_revealed(
    options: Any, provider: Any, verifier: Any
) -> None:
    async def story() -> None:
        revealing_now, going_on = asyncio.Event(), asyncio.Event()

        async def route(request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/reveal"):
                revealing_now.set()
                await going_on.wait()
            response: httpx.Response = provider.handle(request)
            return response

        client = AsyncClient(
            "http://provider", API_KEY, **options(transport=httpx.MockTransport(route))
        )
        asking = asyncio.create_task(client.search("question 0"))
        await revealing_now.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        waiting = asyncio.create_task(client.search("question 1"))
        await asyncio.sleep(0)
        going_on.set()
        assert (await waiting).receipt.counter == 1
        queries = [each.request.query for each in await client.receipts()]
        assert queries == ["question 0", "question 1"]
        await client.aclose()

    asyncio.run(story())
    assert claims_of(verifier) == []
    assert provider.calls.count("reveal") == 2


def test_least_time_is_within_any_life() -> None:
    assert asking.LEAST_SECONDS < asking.CLAIM_SECONDS
