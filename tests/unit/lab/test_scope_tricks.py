"""What a store could trick a scope test with, into an accusation or into silence."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import scope_runs
from ragaudit.lab.attacks.scope import exchange, judging
from ragaudit.lab.attacks.scope.exchange import Answer, HttpClient, Request, Secrets
from ragaudit.lab.attacks.scope.probes import NO_TAG, Canary, draw_canaries
from ragaudit.lab.attacks.scope.report import Report
from ragaudit.lab.attacks.scope.running import Options, run
from starlette.applications import Starlette
from starlette.requests import Request as Asked
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from surface_app import NAMES, serving

CANARIES = draw_canaries(["globex"], 24)
PLANTED = [one.id for one in CANARIES if one.planted]


def kinds(request: Request, answer: Answer, said: tuple[str, ...] = ()) -> set[str]:
    return {leak.kind for leak in judging.leaks(request, answer, CANARIES, said)}


# --- what counts as a leak ---

REQUEST = Request("acme", "POST", "/get", '{"limit": 1}')


def test_headers_and_other_spellings_give_away_as_much() -> None:
    canary = CANARIES[0]
    assert kinds(REQUEST, Answer("302", "", headers=f"location: /blobs/{canary.id}")) == {"id"}
    assert kinds(REQUEST, Answer("200", canary.marker.upper())) == {"content"}
    assert kinds(REQUEST, Answer("200", canary.id.replace("-", "").upper())) == {"id"}
    # But whoever sent it in other letters is told nothing.
    asked = Request("acme", "GET", f"/points/{canary.id.upper()}")
    assert kinds(asked, Answer("404", f"no point {canary.id}")) == set()


def test_the_beginning_and_the_end_of_a_text_have_the_marker() -> None:
    text = CANARIES[0].text
    for part in (text[:60], text[-60:]):
        assert kinds(REQUEST, Answer("200", part)) == {"content"}


def test_a_vector_that_was_sent_may_come_back() -> None:
    """As of a row that the attacker has written beside the victim's, to see whether it may."""
    canary = CANARIES[0]
    written = exchange.json_request("acme", "/upsert", {"embeddings": [canary.vector]})
    echo = Answer("200", written.body)
    assert kinds(written, echo) == set() and kinds(REQUEST, echo) == {"vector"}
    said = judging.said_by(written, CANARIES)
    assert kinds(REQUEST, echo, tuple(said)) == set()


@pytest.mark.parametrize(
    "told",
    [
        # The number of the request is another one each time.
        lambda value, there, n: Answer("404", f"request {n}: {'forbidden' if there else 'absent'}"),
        lambda value, there, n: Answer("404", "{}", headers=f"x-cache: {'hit' if there else ''}"),
    ],
)
def test_texts_and_headers_tell_what_exists(told: Callable[[str, bool, int], Answer]) -> None:
    answers = {
        one.id: [told(one.id, one.planted, 20 * number + place) for number in range(2)]
        for place, one in enumerate(CANARIES)
    }
    found = judging.separation(answers, PLANTED)
    assert found is not None and found.p_value < 1e-4


# --- what is carried ---


def lines(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b"x" * 1000


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    async def there(request: Asked) -> Response:
        return PlainTextResponse(f"{request.method} with {request.headers['authorization']}")

    async def drip(_: Asked) -> Response:
        async def drops() -> "Iterator[bytes]":  # type: ignore[misc]
            import asyncio

            for _ in range(200):
                await asyncio.sleep(0.02)
                yield b"x"

        return StreamingResponse(drops())

    def to(url: str, status: int) -> Callable[[Asked], Response]:
        return lambda _: RedirectResponse(url, status)

    everywhere = ["GET", "POST"]
    app = Starlette(
        routes=[
            Route("/there", there, methods=everywhere),
            Route("/same", to("/there", 307), methods=everywhere),
            Route("/other", to("there", 303), methods=everywhere),
            Route("/away", to("http://127.0.0.1:9/there", 302), methods=everywhere),
            Route("/round", to("/about", 302), methods=everywhere),
            Route("/about", to("/round", 302), methods=everywhere),
            Route("/long", lambda _: StreamingResponse(lines(5)), methods=everywhere),
            Route("/drip", drip, methods=everywhere),
        ]
    )
    with serving(app, lifespan="off") as port:
        yield f"http://127.0.0.1:{port}"


def sent(server: str, path: str, timeout: float = 10) -> Answer:
    client = HttpClient(server, "authorization", "Bearer ", Secrets({"acme": "k"}), timeout)
    try:
        return client.send(Request("acme", "POST", path, "{}"))
    finally:
        client.close()


def test_redirections_within_the_server_are_followed(server: str) -> None:
    same, other = sent(server, "/same"), sent(server, "/other")
    assert (same.status, same.text) == ("200", "POST with Bearer k")
    assert (other.status, other.text) == ("200", "GET with Bearer k")
    assert "location: /there" in same.headers and same.judged


@pytest.mark.parametrize("path", ["/away", "/round"])
def test_no_key_goes_elsewhere_and_what_is_there_was_not_judged(server: str, path: str) -> None:
    answer = sent(server, path)
    assert answer.unjudged == "302 to another address"


def test_what_is_not_read_to_its_end_was_not_judged(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sent(server, "/long").judged
    monkeypatch.setattr(exchange, "MAX_ANSWER", 3000)
    cut = sent(server, "/long")
    assert len(cut.text) == 3000 and cut.unjudged == "an answer that is too long"
    monkeypatch.setattr(exchange, "_WHOLE", 1)
    assert sent(server, "/drip", 0.5).unjudged == "no answer"


# --- what a run says ---


class Scripted:
    """A client that answers lawful questions, and everything else as it is told."""

    def __init__(
        self, canaries: dict[str, list[Canary]], odd: Callable[["Scripted", Request], Answer]
    ) -> None:
        self.canaries, self.odd, self.count = canaries, odd, 0

    def send(self, request: Request) -> Answer:
        self.count += 1
        own = f"tenant {request.by}," in request.body
        if request.path.endswith(f"/{NAMES[request.by]}/search") and own and self.open(request):
            found = " ".join(one.text for one in self.canaries[request.by])
            return Answer("200", found, etag=f'"{request.by}"')
        return self.odd(self, request)

    def open(self, request: Request) -> bool:
        """Whether the key is still answered."""
        return self.odd is not locked_out or self.count < 100 or request.by != "acme"

    def close(self) -> None:
        pass


def locked_out(client: Scripted, _: Request) -> Answer:
    """After a hundred requests, 403 to whatever this key asks."""
    return Answer("404" if client.count < 100 else "403", "{}")


def run_of(
    folder: Path, odd: Callable[[Scripted, Request], Answer], *only: str, writes: bool = False
) -> Report:
    options = Options(rounds=2, only=frozenset(only), writes=writes)
    plan, client = scope_runs.openai_plan(folder, lambda found: Scripted(found, odd), options)
    report = run(plan)
    assert client.count <= plan.requests
    return report


def test_a_store_that_knows_nothing_of_others_is_clean(tmp_path: Path) -> None:
    report = run_of(tmp_path, lambda _client, _request: Answer("404", "{}"))
    assert report.result == "CLEAN"


def test_a_key_that_is_locked_out_is_told_of_no_hole(tmp_path: Path) -> None:
    report = run_of(tmp_path, locked_out)
    assert report.result == "INCOMPLETE"
    locked = [one for one in report.tried if one.result == "NOT JUDGED"]
    assert {one.attacker for one in locked} == {"acme"} and len(locked) > 5
    assert "a lawful question is not answered afterwards (403)" in locked[-1].unjudged


@pytest.mark.parametrize("status", ["503", "302"])
def test_a_store_that_is_not_there_is_not_clean(status: str, tmp_path: Path) -> None:
    report = run_of(tmp_path, lambda _client, _request: Answer(status, ""), "files")
    assert report.result == "INCOMPLETE" and report.findings == []


@pytest.mark.parametrize(("to_any", "result"), [(True, "CLEAN"), (False, "LEAK")])
def test_304_to_any_tag_tells_nothing(to_any: bool, result: str, tmp_path: Path) -> None:
    def odd(_client: Scripted, request: Request) -> Answer:
        tag = request.headers.get("if-none-match", "")
        return Answer("304" if tag and (to_any or tag != NO_TAG) else "404", "{}")

    assert run_of(tmp_path, odd, "conditional").result == result


def test_only_what_the_victim_has_made_is_taken_away(tmp_path: Path) -> None:
    """A store that gives an id of something else, or none, is asked for no deletion."""
    asked: list[Request] = []

    def odd(_client: Scripted, request: Request) -> Answer:
        asked.append(request)
        made = request.method == "POST" and request.path in ("/v1/vector_stores", "/v1/files")
        return Answer("200", next(answers)) if made else Answer("200", '{"name": "default"}')

    for said in ('{"id": "default"}', "{}"):
        answers = iter([said] * 4)
        report = run_of(tmp_path, odd, "whole-store", "whole-file", writes=True)
        assert {one.result for one in report.tried} == {"SKIPPED"}
    assert asked and not any(one.method == "DELETE" for one in asked)
    assert not any(one.path.endswith("/") for one in asked)
