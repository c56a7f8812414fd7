"""Calls: retries only where harmless, problem documents become precise errors."""

import time
from collections.abc import Callable

import httpx
import pytest
from ragaudit.client import transport as module
from ragaudit.client.errors import (
    BudgetExhausted,
    InvalidReply,
    ProviderRefusal,
    ServiceUnreachable,
)
from ragaudit.client.transport import Service
from ragaudit.encoding.errors import RefusedError


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


def service(handler: Callable[[httpx.Request], httpx.Response]) -> Service:
    return Service("http://provider/", transport=httpx.MockTransport(handler))


def test_json_round_trip() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        assert request.method == "POST"
        assert request.url.path == "/v1/x"
        assert request.headers["content-type"] == "application/json"
        return httpx.Response(200, content=request.content)

    assert service(handler).post("/v1/x", {"q": "é"}, repeatable=False) == {"q": "é"}


def test_problem_documents_keep_their_parts() -> None:
    problem = {"title": "Conflict", "status": 409, "detail": "the window is closed"}
    with pytest.raises(ProviderRefusal, match="the window is closed") as caught:
        service(lambda _: httpx.Response(409, json=problem)).get("/v1/x")
    assert caught.value.status == 409
    assert caught.value.problem == problem
    assert isinstance(caught.value, RefusedError)
    assert not isinstance(caught.value, BudgetExhausted)


def test_an_exhausted_budget_carries_the_signed_refusal() -> None:
    problem = {"title": "Budget", "refusal": {"reason": "budget", "signature": "ab"}}
    with pytest.raises(BudgetExhausted) as caught:
        service(lambda _: httpx.Response(429, json=problem)).get("/v1/x")
    assert caught.value.refusal == {"reason": "budget", "signature": "ab"}


@pytest.mark.parametrize("response", [httpx.Response(500, text="oops"), httpx.Response(302)])
def test_other_statuses_are_invalid_replies(response: httpx.Response) -> None:
    with pytest.raises(InvalidReply):
        service(lambda _: response).get("/v1/x")


def test_replies_that_are_no_json_are_refused() -> None:
    with pytest.raises(InvalidReply, match="not JSON"):
        service(lambda _: httpx.Response(200, text="<html>")).get("/v1/x")


def test_endless_replies_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REPLY_BYTES", 10)
    with pytest.raises(InvalidReply, match="too long"):
        service(lambda _: httpx.Response(200, content=b"x" * 11)).get("/v1/x")


@pytest.mark.parametrize(("repeatable", "calls"), [(True, module.ATTEMPTS), (False, 1)])
def test_retries(repeatable: bool, calls: int) -> None:
    seen = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.path)
        raise httpx.ConnectError("refused")

    with pytest.raises(ServiceUnreachable, match="no reply"):
        service(handler).post("/v1/x", {}, repeatable=repeatable)
    assert len(seen) == calls


def test_a_busy_service_is_asked_again() -> None:
    replies = [httpx.Response(503, json={}), httpx.Response(200, json={"ok": True})]
    assert service(lambda _: replies.pop(0)).get("/v1/x") == {"ok": True}
