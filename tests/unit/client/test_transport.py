"""Calls: retries only where harmless, one deadline, problem documents become precise errors."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from ragaudit.client import transport as module
from ragaudit.client.blocking import run
from ragaudit.client.errors import (
    BudgetExhausted,
    InvalidReply,
    ProviderRefusal,
    ServiceUnreachable,
)
from ragaudit.client.transport import Service
from ragaudit.encoding.errors import MalformedError, RefusedError

Handler = Callable[[httpx.Request], httpx.Response]


def service(handler: Handler, **options: Any) -> Service:
    return Service("http://provider/", transport=httpx.MockTransport(handler), **options)


def get(handler: Handler) -> Any:
    return run(service(handler).get("/v1/x"))


def test_json_round_trip() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        assert request.method == "POST"
        assert request.url.path == "/v1/x"
        assert request.headers["content-type"] == "application/json"
        return httpx.Response(200, content=request.content)

    sent = service(handler).post("/v1/x", {"q": "é"}, repeatable=False)
    assert run(sent) == {"q": "é"}


def test_problem_documents_keep_their_parts() -> None:
    problem = {"title": "Conflict", "status": 409, "detail": "the window is closed"}
    with pytest.raises(ProviderRefusal, match="the window is closed") as caught:
        get(lambda _: httpx.Response(409, json=problem, headers={"Retry-After": "17"}))
    assert caught.value.status == 409
    assert caught.value.problem == problem
    assert caught.value.retry_after == 17
    assert isinstance(caught.value, RefusedError)
    assert not isinstance(caught.value, BudgetExhausted)


def test_an_exhausted_budget_carries_the_signed_refusal() -> None:
    problem = {"title": "Budget", "refusal": {"reason": "budget", "signature": "ab"}}
    with pytest.raises(BudgetExhausted) as caught:
        get(lambda _: httpx.Response(429, json=problem))
    assert caught.value.refusal == {"reason": "budget", "signature": "ab"}


@pytest.mark.parametrize("response", [httpx.Response(500, text="oops"), httpx.Response(302)])
def test_other_statuses_are_invalid_replies(response: httpx.Response) -> None:
    with pytest.raises(InvalidReply):
        get(lambda _: response)


@pytest.mark.parametrize("content", [b"<html>", b"[" * 200_000, b"\xff"])
def test_replies_that_are_no_json_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidReply, match="not JSON"):
        get(lambda _: httpx.Response(200, content=content))
    with pytest.raises(InvalidReply, match="without a problem document"):
        get(lambda _: httpx.Response(400, content=content))


def test_text_is_utf_8() -> None:
    with pytest.raises(InvalidReply, match="no text"):
        run(service(lambda _: httpx.Response(200, content=b"\xff")).get_text("/v1/x"))


def test_endless_replies_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REPLY_BYTES", 10)
    with pytest.raises(InvalidReply, match="too long"):
        get(lambda _: httpx.Response(200, content=b"x" * 11))


def test_nothing_compressed_is_asked_for_or_taken() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == "identity"
        return httpx.Response(200, headers={"Content-Encoding": "br"}, content=b"")

    with pytest.raises(InvalidReply, match="compressed"):
        get(handler)


@pytest.mark.parametrize(
    ("error", "repeatable", "calls"),
    [
        (httpx.ReadTimeout, True, module.ATTEMPTS),
        (httpx.ReadTimeout, False, 1),  # it may have been taken in
        (httpx.ConnectError, False, module.ATTEMPTS),  # nothing was sent
    ],
)
def test_retries(error: type[Exception], repeatable: bool, calls: int) -> None:
    seen = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.path)
        raise error("no")

    with pytest.raises(ServiceUnreachable, match="no reply") as caught:
        run(service(handler).post("/v1/x", {}, repeatable=repeatable))
    assert len(seen) == calls
    assert caught.value.sent == (error is httpx.ReadTimeout)


@pytest.mark.parametrize(("status", "repeatable"), [(503, True), (429, True), (429, False)])
def test_a_busy_service_is_asked_again(status: int, repeatable: bool) -> None:
    replies = [httpx.Response(status, json={}), httpx.Response(200, json={"ok": True})]
    answer = service(lambda _: replies.pop(0)).post("/v1/x", {}, repeatable=repeatable)
    assert run(answer) == {"ok": True}


def test_a_service_that_wants_to_be_left_alone_longer_than_there_is_time_is() -> None:
    calls = []

    def handler(request: httpx.Request) -> httpx.Response:
        calls.append(request.url.path)
        return httpx.Response(503, json={"title": "Busy"}, headers={"Retry-After": "3600"})

    with pytest.raises(ProviderRefusal) as caught:
        get(handler)
    assert caught.value.retry_after == 3600
    assert len(calls) == 1


@pytest.mark.parametrize("value", ["", "soon", "-1", "1e3", "9" * 9, "٣"])
def test_other_retry_times_are_not_read(value: str) -> None:
    headers = {"Retry-After": value.encode()}
    assert module.retry_after(httpx.Response(429, headers=headers)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["", "provider", "ftp://provider", "http://", "://x"])
def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    with pytest.raises(MalformedError, match="not a URL"):
        Service(url)


@pytest.mark.parametrize("key", ["schlüssel", "two\nlines", "\x00"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(MalformedError) as caught:
        Service("http://provider", api_key=key)
    assert key not in str(caught.value)
