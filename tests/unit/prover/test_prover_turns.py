"""Callers are served in turn, whatever one of them sends."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.security.utils import get_authorization_scheme_param
from ragaudit.prover.errors import TooManyRequests
from ragaudit.prover.http import turns
from ragaudit.prover.http.turns import FairTurns, Turns
from ragaudit.prover.settings import LimitSettings, SurfaceSettings
from ragaudit.prover.store.accounts import Caller
from ragaudit.prover.surfaces.mount import Surfaces
from starlette.datastructures import Headers


def limits(**changes: Any) -> LimitSettings:
    return LimitSettings(**{"workers": 2, "waiting": 4, "wait_seconds": 5, **changes})


class Desk:
    """Requests that are served when the test says so."""

    def __init__(self, **changes: Any) -> None:
        self.turns = Turns(limits(**changes))
        self.served: list[str] = []
        self.finish: dict[str, asyncio.Event] = {}
        self.tasks: list[asyncio.Task[None]] = []

    def ask(self, name: str) -> "asyncio.Task[None]":
        self.finish[name] = asyncio.Event()

        async def serve() -> None:
            async with self.turns.turn(name.rstrip("0123456789")):
                self.served.append(name)
                await self.finish[name].wait()

        self.tasks.append(asyncio.ensure_future(serve()))
        return self.tasks[-1]

    async def end(self, name: str) -> None:
        self.finish[name].set()
        await settle()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def run(play: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_caller_has_one_request_in_work_and_others_pass_it() -> None:
    async def play() -> None:
        desk = Desk()
        for name in ("a1", "a2", "a3", "b1"):
            desk.ask(name)
        await settle()
        assert desk.served == ["a1", "b1"]
        await desk.end("b1")
        assert desk.served == ["a1", "b1"]
        await desk.end("a1")
        assert desk.served == ["a1", "b1", "a2"]

    run(play)


def test_callers_take_turns() -> None:
    async def play() -> None:
        desk = Desk(workers=1)
        for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
            desk.ask(name)
        order = ["a1", "b1", "c1", "a2", "b2", "a3"]
        await settle()
        for at, name in enumerate(order):
            assert desk.served == order[: at + 1]
            await desk.end(name)

    run(play)


def test_a_full_queue_refuses_its_caller_only() -> None:
    async def play() -> None:
        desk = Desk(waiting=2)
        for number in range(4):
            desk.ask(f"a{number}")
        await settle()
        assert isinstance(desk.tasks[3].exception(), TooManyRequests)
        desk.ask("b1")
        await settle()
        assert desk.served == ["a0", "b1"]

    run(play)


def test_what_waits_too_long_is_refused_and_takes_no_turn() -> None:
    async def play() -> None:
        desk = Desk(wait_seconds=0.02)
        desk.ask("a1")
        late = desk.ask("a2")
        with pytest.raises(TooManyRequests):
            await late
        await desk.end("a1")
        desk.ask("a3")
        await settle()
        assert desk.served == ["a1", "a3"]

    run(play)


def test_clients_that_leave_give_their_turn_back() -> None:
    async def play() -> None:
        desk = Desk(workers=1)
        desk.ask("a1")
        leaving = [desk.ask("b1"), desk.ask("b2")]
        desk.ask("c1")
        await settle()
        leaving[0].cancel()
        await settle()
        # b2 leaves at the moment in which its turn comes.
        desk.finish["a1"].set()
        await asyncio.sleep(0)
        leaving[1].cancel()
        await settle()
        await settle()
        assert "c1" in desk.served
        await desk.end("c1")
        desk.ask("a4")
        await settle()
        assert desk.served[-1] == "a4"

    run(play)


class Keys:
    """Two tokens that accounts have."""

    async def caller(self, token: str) -> Caller | None:
        return {name: Caller("account", name) for name in ("ada", "bea")}.get(token)


async def call(
    app: FairTurns, token: str | None, peer: str = "192.0.2.1", *, user: str = ""
) -> tuple[int, Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [] if token is None else [(b"authorization", b"Bearer " + token.encode())]
    if user:
        headers.append((b"ragaudit-user", user.encode()))
    scope = {"type": "http", "path": "/v1/windows", "headers": headers, "client": (peer, 1)}
    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"])


def test_rates_are_counted_by_account_and_by_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PENALTY_SECONDS", 0.0)
    # A window that does not end while the test runs.
    monkeypatch.setattr(turns, "parse", lambda text: _parse(text.replace("second", "hour")))
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def play() -> None:
        gate = FairTurns(app, limits(account_per_second=2, peer_per_second=3), Keys())  # type: ignore[arg-type]
        assert [(await call(gate, "ada"))[0] for _ in range(3)] == [200, 200, 429]
        assert (await call(gate, "bea"))[0] == 200
        # Unknown keys count for their peer, together with requests without any.
        first = [(await call(gate, token))[0] for token in (None, "wrong", None, "guess")]
        assert first == [200, 200, 200, 429]
        status, headers = await call(gate, None)
        assert status == 429 and headers[b"retry-after"] == b"1"
        assert (await call(gate, None, "192.0.2.2"))[0] == 200
        same = [(await call(gate, None, f"2001:db8::{n}"))[0] for n in range(4)]
        assert same == [200, 200, 200, 429]
        assert (await call(gate, None, "2001:db8:0:1::1"))[0] == 200

    run(play)


_parse = turns.parse  # type: ignore[attr-defined]


def test_health_needs_no_turn() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def play() -> None:
        gate = FairTurns(app, limits(peer_per_second=1), Keys())  # type: ignore[arg-type]
        sent = SimpleNamespace(count=0)

        async def send(message: Any) -> None:
            sent.count += message["status"] == 200

        for _ in range(5):
            await gate({"type": "http", "path": "/healthz", "headers": []}, None, send)  # type: ignore[arg-type]
        assert sent.count == 5

    run(play)


def test_end_users_of_one_key_wait_in_queues_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "PENALTY_SECONDS", 0.0)
    monkeypatch.setattr(turns, "parse", lambda text: _parse(text.replace("second", "hour")))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def queue(caller: Caller, headers: Any) -> Caller:
        user = headers.get("ragaudit-user")
        return caller._replace(user=user) if caller.name == "ada" and user else caller

    async def play() -> None:
        given = limits(account_per_second=2, peer_per_second=3)
        gate = FairTurns(app, given, Keys(), queue=queue)  # type: ignore[arg-type]
        for user in ("grace", "hedy"):
            found = [(await call(gate, "ada", user=user))[0] for _ in range(3)]
            assert found == [200, 200, 429]
        # A key that may not name anybody makes no queues by names.
        found = [(await call(gate, "bea", user=str(n)))[0] for n in range(3)]
        assert found == [200, 200, 429]
        # Nor does a key that nobody has.
        found = [(await call(gate, "guess", user=str(n)))[0] for n in range(4)]
        assert found == [200, 200, 200, 429]

    run(play)


def test_the_key_that_is_authenticated_is_the_one_that_counts() -> None:
    """Two keys in one request: whose turn and rate it takes is whose account it is charged to."""
    enabled = ("openai", "chroma", "qdrant", "mcp", "dify")
    surfaces = Surfaces(SurfaceSettings(enabled=enabled), None, None)  # type: ignore[arg-type]
    ada, bea, eve = (
        (b"authorization", b"Bearer ada"),
        (b"x-chroma-token", b"bea"),
        (b"api-key", b"eve"),
    )
    chroma, qdrant = "/api/v2/heartbeat", "/collections/handbook"
    for path, headers, key in (
        (chroma, (ada, bea, eve), "bea"),
        (chroma, (ada, eve), "ada"),
        (chroma, (eve,), None),
        (qdrant, (bea, ada, eve), "eve"),
        (qdrant, (bea, ada), "ada"),
        ("/v1/windows/w1/query", (eve, bea, ada), "ada"),
        ("/v1/windows/w1/query", (eve, bea), None),
        ("/v1/vector_stores/handbook/search", (bea, ada), "ada"),
        ("/mcp", (bea, ada), "ada"),
        ("/retrieval", (eve, ada), "ada"),
        ("/v1/windows", ((b"authorization", b"Basic ada"),), None),
        ("/v1/windows", ((b"authorization", b"bearer  ada "),), "ada"),
        ("/v1/windows", ((b"authorization", b"Bearer "),), None),
        ("/v1/windows", (ada, (b"authorization", b"Bearer bea")), "ada"),
    ):
        found = surfaces.key(path, Headers(raw=list(headers)))
        assert found == key, (path, headers, found)
        if path.startswith("/v1/windows"):  # as the prover's own paths read it
            given = Headers(raw=list(headers)).get("authorization")
            scheme, token = get_authorization_scheme_param(given)
            assert (token or None if scheme.lower() == "bearer" else None) == key
