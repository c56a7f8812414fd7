"""Answering: receipts that check, refusals, bad requests; against the real verifier."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.security.utils import get_authorization_scheme_param
from ragaudit import core
from ragaudit.encoding.errors import Conflict, InternalError
from ragaudit.encoding.text import b64_decode
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.promises import Refusal
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.errors import TooManyRequests
from ragaudit.prover.http import turns
from ragaudit.prover.http.turns import FairTurns, Gate, Turns
from ragaudit.prover.settings import LimitSettings, SurfaceSettings
from ragaudit.prover.store.accounts import Caller
from ragaudit.prover.store.states import State
from ragaudit.prover.surfaces.chroma import collection_id
from ragaudit.prover.surfaces.mount import Surfaces
from ragaudit.prover.verifier.client import SizeConflict
from ragaudit.prover.window.registrations import find
from scenario import ProverScenario
from starlette.datastructures import Headers
from surface_window import CHROMA, VECTOR, WINDOW, logged, start


def counter_of(scenario: Any, account: str) -> int:
    with scenario.service.store.read() as connection:
        registered = find(connection, "w1", account)
    assert registered is not None
    return registered.counter


def record_of(value: Any) -> Record:
    return Record.parse(bytes.fromhex(value["public"]["body"]))


def log_size(scenario: Any) -> int:
    return scenario.service.open_windows.get("w1").log.entries.head().size


def test_a_plain_answer_and_its_receipt(scenario: Any) -> None:
    scenario.open()
    answer = scenario.ask(query="rye bread", top_k=3)
    assert answer.status_code == 200, answer.text
    value = answer.json()
    record = record_of(value)
    assert (record.tenant, record.top_k, record.counter, record.nonce) == ("one", 3, 0, None)
    file = ReceiptFile.parse(answer.content)  # as it came: a file that every command takes
    assert file.request == Request("rye bread", 3)
    file.verify_answer_digest()
    file.public.verify(scenario.policy().keys.provider)
    positions = [each["position"] for each in value["answer"]["documents"]]
    assert positions == sorted(positions) == value["private"]["selected"]
    ids = {each["id"] for each in value["answer"]["documents"]}
    assert ids == {f"one-{position}" for position in positions}


def test_the_proof_completes_the_receipt(scenario: Any) -> None:
    scenario.open()
    public = scenario.ask().json()["public"]
    url = f"/v1/windows/w1/receipts/{public['index']}/proof"
    early = scenario.api.get(url)
    assert early.status_code == 425 and early.headers["Retry-After"]
    scenario.service.driver.checkpoint("w1")
    proof = scenario.api.get(url)
    assert proof.status_code == 200 and proof.text.startswith("c2sp.org/tlog-proof@v1\n")


def test_the_selection_is_noise_then_select_of_the_committed_rows(scenario: Any) -> None:
    scenario.open()
    value = scenario.ask(top_k=2).json()
    live = scenario.service.open_windows.get("w1")
    index = live.indexes["one"]
    private = value["private"]
    record = record_of(value)
    noise = scenario.service.mechanism.draw_noise(live, index, record, None)
    embedding = np.frombuffer(b64_decode(private["embedding"]), "<i2").astype(np.int64)
    exact = index.vectors.astype(np.int64) @ embedding
    boundary = np.sort(exact + noise)[-3]
    assert private["selected"] == np.flatnonzero(exact + noise > boundary).tolist()
    blinding = bytes.fromhex(private["selection_blinding"])
    assert core.commit_selection(private["selected"], blinding) == record.selection_commitment
    assert len(set(noise.tolist())) > 1 and len(noise) == index.count


def test_every_answer_has_its_own_noise(scenario: Any) -> None:
    scenario.open()
    live = scenario.service.open_windows.get("w1")
    seen = set()
    for _ in range(3):
        record = record_of(scenario.ask(query="the same query").json())
        noise = scenario.service.mechanism.draw_noise(live, live.indexes["one"], record, None)
        seen.add(noise.tobytes())
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"query": "", "top_k": 2}, "query"),
        ({"query": "x" * 8193, "top_k": 2}, "query"),
        ({"query": "é" * 4097, "top_k": 2}, "query"),
        ({"query": "   ", "top_k": 2}, "text 0"),
        ({"query": "bread", "top_k": 0}, "top_k"),
        ({"query": "bread", "top_k": 5}, "top_k"),
        ({"query": "bread", "top_k": 10**9}, "top_k"),
        ({"query": "bread", "top_k": 2.5}, "body"),  # no fractions in our JSON at all
        ({"query": "bread", "top_k": "2"}, "top_k"),
        ({"query": "bread", "top_k": True}, "top_k"),
        ({"query": "bread", "top_k": 2, "filter": "year > 2000"}, "filter"),
        ({"query": 7, "top_k": 2}, "query"),
        ({"query": "bread"}, "top_k"),
        ({"query": "bread", "top_k": 2, "more": 1}, "more"),
        ([], "body"),
    ],
)
def test_bad_queries_cost_nothing(open_scenario: Any, body: Any, where: str) -> None:
    scenario = open_scenario
    size = log_size(scenario)
    answer = scenario.post("/v1/windows/w1/query", "ada", body)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert where in answer.json()["where"]
    assert (counter_of(scenario, "ada"), log_size(scenario)) == (0, size)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b'{"query": "\xff", "top_k": 2}', 400),
        (b'{"query": "\\ud800", "top_k": 2}', 400),
        (b'{"query": "bread", "top_k": 2', 400),
        (b"", 400),
        (b'{"query": "' + b"x" * 70_000 + b'", "top_k": 2}', 413),
        (b'{"query": "bread", "top_k": NaN}', 400),
    ],
)
def test_bad_bytes(open_scenario: Any, content: bytes, status: int) -> None:
    scenario = open_scenario
    headers = {**scenario.headers("ada"), "Content-Type": "application/json"}
    answer = scenario.api.post("/v1/windows/w1/query", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["type"].startswith("urn:ragaudit:problem:")
    assert "Traceback" not in answer.text and counter_of(scenario, "ada") == 0


def test_the_budget_ends_with_a_signed_refusal(scenario: Any) -> None:
    scenario.open()
    for _ in range(6):
        assert scenario.ask().status_code == 200
    refused = scenario.ask()
    assert refused.status_code == 429
    left = 1000 * scenario.policy().end - refused.json()["refusal"]["time"]
    assert int(refused.headers["Retry-After"]) == -(-left // 1000)  # the next window, then
    refusal = Refusal.from_json(refused.json()["refusal"])
    refusal.verify(scenario.policy().keys.provider)
    refusal.verify_budget(6)
    assert (refusal.reason, refusal.counter) == ("budget", 6)


def test_outside_the_window_refusals_are_signed(scenario: Any) -> None:
    scenario.create()
    for state in (State.DRAFT, State.COMMITTED):
        scenario.drive(state)
        refused = scenario.ask()
        assert refused.status_code == 409, refused.text
        Refusal.from_json(refused.json()["refusal"])
    scenario.drive(State.COUNTERSIGNED)
    assert scenario.ask().status_code == 409  # not registered
    scenario.register("ada")
    early = scenario.ask()
    assert (early.status_code, early.json()["refusal"]["reason"]) == (409, "closed")
    left = 1000 * scenario.policy().start - early.json()["refusal"]["time"]
    assert int(early.headers["Retry-After"]) == -(-left // 1000)
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)
    assert scenario.ask().status_code == 200
    scenario.clock.at(scenario.policy().end)
    late = scenario.ask()
    assert (late.status_code, late.json()["refusal"]["reason"]) == (409, "closed")
    assert "Retry-After" not in late.headers  # waiting does not help
    assert late.json()["refusal"]["counter"] == 1


def test_stopped_by_the_operator(scenario: Any) -> None:
    scenario.open()
    close = partial(scenario.api.post, "/v1/operator/windows/w1/close", headers=scenario.operator)
    assert close().status_code == 200
    assert scenario.ask().json()["refusal"]["reason"] == "closed"
    scenario.service.driver.step("w1")
    assert scenario.state() is State.CLOSED
    assert close().status_code == 409


def test_a_late_registration_waits_for_its_activation(scenario: Any) -> None:
    scenario.create()
    scenario.drive(State.COUNTERSIGNED)
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)
    scenario.register("ada")
    waiting = scenario.ask()
    assert (waiting.status_code, waiting.json()["refusal"]["reason"]) == (503, "unavailable")
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().activation_instants[1])
    scenario.service.driver.step("w1")
    answer = scenario.ask()
    assert answer.status_code == 200
    record = record_of(answer.json())
    assert record.activation == 2 and record.time >= 1000 * scenario.policy().activation_instants[1]


def test_kinds_of_accounts_do_not_mix(open_scenario: Any) -> None:
    scenario = open_scenario
    assert scenario.ask("bob").status_code == 409
    assert scenario.promise(0, account="ada").status_code == 409
    assert counter_of(scenario, "bob") == 0


def test_registration(scenario: Any) -> None:
    scenario.create()
    assert scenario.post("/v1/windows/w1/registration", "ada", {}).status_code == 409
    scenario.drive(State.COUNTERSIGNED)
    anchor = "ab" * 32

    def register(anchor: object) -> Any:
        return scenario.post("/v1/windows/w1/registration", "ada", {"anchor": anchor})

    first, again = register(anchor), register(anchor)
    assert first.status_code == 201 and first.json()["slot"] == 0
    assert again.status_code == 200
    assert again.json()["registration"]["index"] == first.json()["registration"]["index"] == 1
    assert {register(other).status_code for other in (None, "cd" * 32)} == {409}
    assert {register(bad).status_code for bad in ("AB" * 32, "ab" * 31, 7)} == {400}
    scenario.service.driver.checkpoint("w1")
    shown = scenario.api.get("/v1/windows/w1/account", headers=scenario.headers("ada")).json()
    assert shown["registration"]["proof"].startswith("c2sp.org/tlog-proof")
    assert (shown["anchor"], shown["counter"], shown["remaining"]) == (anchor, 0, 6)


def test_slots_run_out(scenario: Any) -> None:
    scenario.create(slots=2)
    scenario.drive(State.COUNTERSIGNED)
    scenario.register("ada")
    scenario.register("bob")
    answer = scenario.post("/v1/windows/w1/registration", "cyd", {"anchor": None})
    assert answer.status_code == 409 and "slot" in answer.json()["detail"]


def test_keys_and_windows_that_nobody_knows(open_scenario: Any) -> None:
    scenario = open_scenario
    body = {"query": "x", "top_k": 1}
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
        answer = scenario.api.post("/v1/windows/w1/query", json=body, headers=headers)
        assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
    assert scenario.ask(name="none").status_code == 404
    assert scenario.api.get("/v1/windows/none").status_code == 404
    assert scenario.api.get("/v1/windows/W1").status_code == 400
    assert scenario.api.get("/v1/windows/w1/receipts/99/proof").status_code == 404
    assert scenario.api.get("/v1/windows/w1/log/tile/0/999").status_code == 404
    assert scenario.api.get("/v1/windows/w1/log/nonsense").status_code == 400
    assert scenario.api.get("/nowhere").status_code == 404
    assert scenario.api.put("/v1/windows").status_code == 405


def test_a_database_that_fails_answers_nothing(
    scenario: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario.open()
    size = log_size(scenario)

    def full(*_args: object, **_kwargs: object) -> None:
        raise StoreUnavailable("the database failed: database or disk is full", where="ledger")

    with monkeypatch.context() as patch:
        patch.setattr("ragaudit.prover.window.log_transaction.LogTransaction.flush", full)
        answer = scenario.ask()
    assert answer.status_code == 503 and "disk is full" in answer.json()["detail"]
    assert (counter_of(scenario, "ada"), log_size(scenario)) == (0, size)
    assert scenario.ask().status_code == 200


def test_a_fence_that_fails_answers_nothing_and_recovers(
    scenario: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario.open()

    def full(*_args: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ragaudit.ledger.log.fence.os.pwrite", full)
        patch.setattr("ragaudit.ledger.log.fence.os.fsync", full)
        answers = [scenario.ask(), scenario.ask()]  # opening it anew needs room, too
    assert [each.status_code for each in answers] == [503, 503]
    # The entry was durable: its counter is consumed, and its noise is never used again.
    assert counter_of(scenario, "ada") == 1
    assert record_of(scenario.ask().json()).counter == 1


def test_documents_that_changed_are_not_served(
    scenario: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario.open()
    size = log_size(scenario)
    honest = scenario.service.backend.fetch

    def changed(tenant: str, ids: list[str]) -> Any:
        return [type(each)(each.id, each.content + "!") for each in honest(tenant, ids)]

    with monkeypatch.context() as patch:
        patch.setattr(scenario.service.backend, "fetch", changed)
        answer = scenario.ask()
    # Neither as it was committed nor as it is now: they are named as withheld.
    assert answer.status_code == 200 and log_size(scenario) == size + 1
    private = answer.json()["private"]
    assert private["rows"] == [] and len(private["withdrawn"]) == len(private["selected"])


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_embeddings_that_are_none(make_scenario: Any, value: float) -> None:
    class Broken(Mechanism):
        def embed(self, query: str) -> Any:
            return np.full(16, value, dtype=np.float32)

    scenario = make_scenario(mechanism=Broken)
    scenario.open()
    answer = scenario.ask()
    assert answer.status_code == 400 and counter_of(scenario, "ada") == 0


def test_unknown_failures_show_nothing(scenario: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario.open()
    secret = "the text of the query"

    def broken(*_args: object) -> None:
        raise ValueError(secret)

    monkeypatch.setattr(scenario.service.mechanism, "draw_noise", broken)
    answer = scenario.ask(query=secret)
    assert answer.status_code == 500
    assert secret not in answer.text and "ValueError" not in answer.text


def test_queries_of_one_account_at_the_same_time(scenario: Any) -> None:
    scenario.open()

    async def at_once() -> list[httpx.Response]:
        transport = httpx.ASGITransport(scenario.api.app)
        body = {"query": "bread", "top_k": 2, "filter": ""}
        async with httpx.AsyncClient(transport=transport, base_url="http://prover") as client:
            url, headers = "/v1/windows/w1/query", scenario.headers("ada")
            asked = (client.post(url, json=body, headers=headers) for _ in range(8))
            return await asyncio.gather(*asked)

    answers = asyncio.run(at_once())
    assert sorted(each.status_code for each in answers) == [200] * 6 + [429] * 2
    bodies = [each.json()["public"]["body"] for each in answers if each.status_code == 200]
    records = [Record.parse(bytes.fromhex(body)) for body in bodies]
    assert [each.counter for each in sorted(records, key=lambda each: each.time)] == list(range(6))


def test_the_cosigner_may_remember_less_than_we_think(scenario: Any) -> None:
    scenario.open()
    scenario.ask()
    live = scenario.service.open_windows.get("w1")
    honest, sizes = scenario.service.verifier.add_checkpoint, []

    def forgetful(request: Any, read: Any) -> Any:
        sizes.append(request.old_size)
        return SizeConflict(4) if len(sizes) == 1 else honest(request, read)

    scenario.service.verifier.add_checkpoint = forgetful
    scenario.service.driver.checkpoint("w1")
    assert sizes == [4, 4] and live.log.checkpoints.covering(4) is not None


def test_the_api_describes_itself(open_scenario: Any) -> None:
    described = open_scenario.api.get("/openapi.json").json()
    assert described["paths"]["/v1/windows/{window}/query"]["post"]["operationId"] == "query"
    assert "4XX" in described["paths"]["/v1/windows/{window}/query"]["post"]["responses"]


def test_a_stage_is_logged_once(scenario: Any) -> None:
    """The noise of a counter is for one record: going on twice from one stage logs one."""
    scenario.open()
    live, size = scenario.service.open_windows.get("w1"), log_size(scenario)
    admitted = scenario.service.retrieval.admit(live, scenario.account("ada"), anchored=False)
    described = admitted.describe(Request("bread", 2, None, ""))
    one, other = described.select(), described.select()
    one.log()
    for again in (one, other, admitted.describe(Request("violin", 2, None, "")).select()):
        with pytest.raises(Conflict, match="counter moved"):
            again.log()
    assert (counter_of(scenario, "ada"), log_size(scenario)) == (1, size + 1)


def test_an_anchored_query_is_not_selected_before_its_nonce(scenario: Any) -> None:
    scenario.open()
    live = scenario.service.open_windows.get("w1")
    admitted = scenario.service.retrieval.admit(live, scenario.account("bob"), anchored=True)
    described = admitted.describe(Request("bread", 2, 0, ""))
    with pytest.raises(InternalError, match="anchored"):
        described.select()


# The calls of a query are read as every other call: who, path, body; and are documented so.

CALLS = ("query", "promise", "reveal")
JSON = {"Content-Type": "application/json"}


def send(
    scenario: Any, content: bytes, *, call: str = "query", window: str = "w1", **headers: str
) -> Any:
    path = f"/v1/windows/{window}/{call}"
    return scenario.api.post(path, content=content, headers={**JSON, **headers})


@pytest.mark.parametrize("call", CALLS)
def test_who_calls_is_asked_first(open_scenario: Any, call: str) -> None:
    for headers in ({}, {"Authorization": "Basic x"}, {"Authorization": "Bearer nobody"}):
        answer = send(open_scenario, b"not JSON", call=call, window="NO", **headers)
        assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"", "body"),
        (b"[]", "body"),
        (b"not JSON", "body"),
        (b'{"counter": 1, "counter": 1}', "body"),
        (b'{"counter": 1.5}', "body"),
        (b'{"counter": "1"}', "body."),
        (b'{"more": 1}', "body."),
    ],
)
def test_bodies_that_are_none(open_scenario: Any, call: str, content: bytes, where: str) -> None:
    answer = send(open_scenario, content, call=call, **open_scenario.headers("ada"))
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:ragaudit:problem:malformed-request"
    assert answer.json()["where"].startswith(where)


def test_what_is_not_said_to_be_json_is_not_read_as_such(open_scenario: Any) -> None:
    content = b'{"query": "bread", "top_k": 2, "filter": ""}'
    plain = {"Content-Type": "text/plain"}
    answer = send(open_scenario, content, **open_scenario.headers("ada"), **plain)
    assert answer.status_code == 400


def test_the_path_is_checked_before_the_body(open_scenario: Any) -> None:
    answer = send(open_scenario, b"not JSON", window="NO", **open_scenario.headers("ada"))
    assert answer.status_code == 400 and answer.json()["where"] == "path.window"


def test_the_calls_are_documented(open_scenario: Any) -> None:
    paths = open_scenario.api.get("/openapi.json").json()["paths"]
    for call in CALLS:
        shown = paths[f"/v1/windows/{{window}}/{call}"]["post"]
        assert shown["security"] == [{"account": []}]
        assert shown["requestBody"]["required"] is True


# Batches on the surfaces: all of their queries are charged, or none is.

FOUR = {**WINDOW, "queries_per_account": 4}


def vectors(count: int, first: int = 0) -> list[list[float]]:
    """As many different questions."""
    return [[float(number + 1), *VECTOR[1:]] for number in range(first, first + count)]


def ask(scenario: ProverScenario, queries: list[list[float]], **headers: str) -> Any:
    body = {"query_embeddings": queries, "n_results": 2, "include": ["distances"]}
    path = f"{CHROMA}/{collection_id('handbook')}/query"
    return scenario.api.post(path, json=body, headers={**scenario.headers("ada"), **headers})


def remaining(scenario: ProverScenario) -> int:
    answer = scenario.api.get("/v1/windows/w1/account", headers=scenario.headers("ada"))
    return int(answer.json()["remaining"])


def test_a_batch_beyond_the_budget_is_refused_whole(scenario: ProverScenario) -> None:
    start(scenario, FOUR)
    assert ask(scenario, vectors(2)).status_code == 200
    before = logged(scenario)
    answer = ask(scenario, vectors(3, first=10))
    assert answer.status_code == 429, answer.text
    assert "a batch of 3 queries" in answer.text and "at most 2" in answer.text
    assert (logged(scenario), remaining(scenario)) == (before, 2)
    # What is left is there for a batch that fits, and only then is the budget used up.
    assert ask(scenario, vectors(2, first=10)).status_code == 200
    assert remaining(scenario) == 0
    assert ask(scenario, vectors(2, first=20)).status_code == 429


def test_other_surfaces_refuse_it_in_their_shape(scenario: ProverScenario) -> None:
    start(scenario, FOUR)
    before = logged(scenario)
    texts = [f"question {number}" for number in range(5)]
    openai = scenario.post("/v1/vector_stores/handbook/search", "ada", {"query": texts})
    assert openai.status_code == 429 and "a batch of 5" in openai.json()["error"]["message"]
    searches = [{"query": vector, "limit": 2} for vector in vectors(5)]
    path = "/collections/handbook/points/query/batch"
    qdrant = scenario.post(path, "ada", {"searches": searches})
    assert qdrant.status_code == 429 and "a batch of 5" in qdrant.json()["status"]["error"]
    assert (logged(scenario), remaining(scenario)) == (before, 4)


def test_what_was_answered_before_needs_no_room(scenario: ProverScenario) -> None:
    """A retry of a batch, also with new questions beside old ones, and one question twice."""
    start(scenario, FOUR)
    first = ask(scenario, vectors(3))
    assert ask(scenario, vectors(3)).content == first.content
    assert remaining(scenario) == 1
    twice = vectors(1, first=30)
    assert ask(scenario, [*vectors(3), *twice, *twice]).status_code == 200
    assert remaining(scenario) == 0
    assert ask(scenario, vectors(3)).content == first.content


def test_the_same_question_twice_counts_twice_where_there_are_no_retries(
    scenario: ProverScenario,
) -> None:
    start(scenario, {**FOUR, "retry_seconds": 0})
    assert ask(scenario, vectors(1)).status_code == 200
    before = logged(scenario)
    assert ask(scenario, [*vectors(1), *vectors(1), *vectors(2)]).status_code == 429
    assert logged(scenario) == before
    keyed = ask(scenario, vectors(3), **{"Idempotency-Key": "one batch"})
    assert keyed.status_code == 200 and remaining(scenario) == 0
    again = ask(scenario, vectors(3), **{"Idempotency-Key": "one batch"})
    assert again.content == keyed.content


def test_batches_at_once_do_not_share_what_is_left(scenario: ProverScenario) -> None:
    """Two of three queries each, four are left: one is answered whole, the other not at all."""
    start(scenario, FOUR)
    before, codes = logged(scenario), []

    def run(first: int) -> None:
        codes.append(ask(scenario, vectors(3, first=first)).status_code)

    threads = [threading.Thread(target=run, args=(10 * number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [200, 429]
    assert (logged(scenario) - before, remaining(scenario)) == (3, 1)


def test_no_refusal_is_signed_of_a_budget_that_is_not_used_up(scenario: ProverScenario) -> None:
    """Check 14 would hold it against the provider."""
    start(scenario, FOUR)
    answer = ask(scenario, vectors(5))
    assert answer.status_code == 429 and "refusal" not in answer.json()


@pytest.mark.parametrize("count", [1, 4])
def test_a_batch_that_fits_exactly_is_answered(scenario: ProverScenario, count: int) -> None:
    start(scenario, FOUR)
    assert ask(scenario, vectors(count)).status_code == 200
    assert remaining(scenario) == 4 - count


# Callers are served in turn, whatever one of them sends.


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
        gate = FairTurns(app, Gate(limits(account_per_second=2, peer_per_second=3)), Keys())  # type: ignore[arg-type]
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
        gate = FairTurns(app, Gate(limits(peer_per_second=1)), Keys())  # type: ignore[arg-type]
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
        gate = FairTurns(app, Gate(given), Keys(), queue=queue)  # type: ignore[arg-type]
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
