"""Answering: receipts that check, refusals, bad requests; against the real verifier."""

import asyncio
from functools import partial
from typing import Any

import httpx
import numpy as np
import pytest
from ragaudit import core
from ragaudit.encoding.errors import Conflict, InternalError
from ragaudit.encoding.text import b64_decode
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.promises import Refusal
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.store.states import State
from ragaudit.prover.verifier.client import SizeConflict
from ragaudit.prover.window.registrations import find


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
        patch.setattr("ragaudit.prover.answering.query.insert_record", full)
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
