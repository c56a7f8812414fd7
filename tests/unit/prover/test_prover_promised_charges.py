"""Anchored accounts in the generation channel: charged, promised, and answered after the nonce."""

from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from generation_channel import (
    QUESTION,
    ask,
    count,
    open_channel,
)
from ragaudit.client.checks import CoreOperations
from ragaudit.ledger.messages.entries import Charge, Generated, Opening, Record, Void
from ragaudit.ledger.messages.missing import VoidedCharge
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import WindowView, check_file
from ragaudit.ledger.messages.receipts import GeneratedFile
from ragaudit.prover.store import tables
from ragaudit.prover.window.records import entries
from ragaudit.serving.generators import GeneratorUnavailable, NextTokens
from scenario import ProverScenario
from whole_windows import finish

pytestmark = ON_EACH_ENGINE


def promise_of(scenario: ProverScenario, counter: int, query: str = QUESTION) -> Promise:
    answer = ask(scenario, "bob", query, counter=counter)
    assert answer.status_code == 200, answer.text
    return Promise.parse(answer.content)


def reveal(scenario: ProverScenario, counter: int, nonce: bytes | None = None) -> Any:
    nonce = scenario.chains["bob"].nonce(counter) if nonce is None else nonce
    body = {"counter": counter, "nonce": nonce.hex()}
    return scenario.post("/v1/windows/w1/ask/reveal", "bob", body)


def claim(scenario: ProverScenario, promise: Promise) -> None:
    scenario.service.driver.step("w1")  # hands the registrations over
    nonce = scenario.chains["bob"].nonce(promise.promised.counter)
    body = {"promise": promise.to_json(), "nonce": nonce.hex()}
    taken = scenario.verifier.post("/v1/windows/w1/claims", json=body)
    assert taken.status_code == 200, taken.text


def logged(scenario: ProverScenario, *kinds: Any) -> list[Any]:
    with scenario.service.store.read() as connection:
        found = list(entries(connection, "w1"))
    by_kind = {kind.KIND: kind for kind in kinds}
    return [by_kind[each.kind].parse(each.body) for each in found if each.kind in by_kind]


def test_the_charge_is_logged_before_the_promise_and_the_nonce_with_the_answer(
    channel: ProverScenario,
) -> None:
    open_channel(channel)
    promise = promise_of(channel, 0)
    # The promise is the entry as it stands in the log already.
    assert logged(channel, Charge, Generated) == [promise.promised]
    answer = reveal(channel, 0)
    assert answer.status_code == 200, answer.text
    file = GeneratedFile.parse(answer.content)
    assert file.public.query == promise.promised
    assert file.public.answered.nonce == channel.chains["bob"].nonce(0)
    assert file.public.issued == promise.promised.time + 2000
    window = channel.api.get("/v1/windows/w1").json()
    steps = check_file(
        file,
        WindowView(
            channel.policy(),
            Opening.parse(bytes.fromhex(window["opening"]["body"])),
            [each["covered_size"] for each in window["activations"]],
        ),
        CoreOperations(),
        anchor=channel.chains["bob"].anchor,
        promise=promise,
    )
    done = [each.name for each in steps if each.status == "done"]
    assert done == ["signature", "answer digest", "openings", "nonce"]


def test_a_retry_is_the_promise_bit_for_bit_and_the_answer_too(channel: ProverScenario) -> None:
    open_channel(channel)
    first = ask(channel, "bob", counter=0)
    assert ask(channel, "bob", counter=0).content == first.content
    channel.restart()
    assert ask(channel, "bob", counter=0).content == first.content
    answer = reveal(channel, 0)
    assert reveal(channel, 0).content == answer.content
    channel.restart()
    assert reveal(channel, 0).content == answer.content
    assert count(channel, tables.charge) == count(channel, tables.generated) == 1


def test_nothing_else_is_promised_while_a_charge_waits(channel: ProverScenario) -> None:
    open_channel(channel)
    promise = promise_of(channel, 0)
    for answer in (
        ask(channel, "bob", f"{QUESTION} 2", counter=0),
        ask(channel, "bob", f"{QUESTION} 2", counter=1),
        channel.post("/v1/windows/w1/promise", "bob", {"query": "x", "top_k": 2, "counter": 1}),
    ):
        assert answer.status_code == 409, answer.text
        assert answer.json()["promise"] == promise.to_json()
    assert reveal(channel, 0).status_code == 200
    charge = promise_of(channel, 1, f"{QUESTION} 2").promised
    assert isinstance(charge, Charge)
    assert charge.number == 1
    assert count(channel, tables.charge) == 2


def test_a_promised_query_holds_its_counter(channel: ProverScenario) -> None:
    open_channel(channel)
    body = {"query": "x", "top_k": 2, "counter": 0}
    promised = channel.post("/v1/windows/w1/promise", "bob", body)
    assert promised.status_code == 200, promised.text
    refused = ask(channel, "bob", counter=0)
    assert refused.json()["promise"] == promised.json()
    nonce = channel.chains["bob"].nonce(0).hex()
    answer = channel.post("/v1/windows/w1/reveal", "bob", {"counter": 0, "nonce": nonce})
    assert answer.status_code == 200
    # One counter over both kinds.
    promise_of(channel, 1)
    assert reveal(channel, 1).status_code == 200
    assert [one.counter for one in logged(channel, Record, Charge)] == [0, 1]


@pytest.mark.parametrize("nonce", [bytes(32), "next"])
def test_a_nonce_off_the_chain_draws_nothing(channel: ProverScenario, nonce: Any) -> None:
    open_channel(channel)
    promise_of(channel, 0)
    wrong = channel.chains["bob"].nonce(1) if nonce == "next" else nonce
    assert reveal(channel, 0, wrong).status_code == 422
    assert count(channel, tables.generated) == 0
    assert reveal(channel, 0).status_code == 200


def test_refusals(channel: ProverScenario) -> None:
    open_channel(channel)
    plain = ask(channel, "bob")
    assert plain.status_code == 409
    assert plain.json()["type"].endswith(":account-anchored")
    assert ask(channel, "ada", counter=0).status_code == 409  # plain
    assert ask(channel, "bob", counter=1).status_code == 409  # not the next one
    assert reveal(channel, 0).status_code == 409  # nothing promised
    chat = channel.post(
        "/v1/chat/completions",
        "bob",
        {"model": "records", "messages": [{"role": "user", "content": QUESTION}]},
    )
    assert chat.status_code == 409
    assert "anchored" in chat.text
    assert count(channel, tables.charge) == 0


def test_an_expired_charge_is_voided_and_its_counter_used(channel: ProverScenario) -> None:
    open_channel(channel)
    promise = promise_of(channel, 0)
    channel.clock.now = promise.superseded_from(channel.policy())
    # Until it is proven the account would have nothing but the provider's word.
    for answer in (ask(channel, "bob", counter=0), reveal(channel, 0)):
        assert answer.status_code == 425, answer.text
        assert answer.headers["Retry-After"]
    channel.service.driver.checkpoint("w1")
    voided = ask(channel, "bob", counter=0)
    assert voided.status_code == 409
    assert voided.json()["type"].endswith(":charge-voided")
    assert reveal(channel, 0).json()["voided"] == voided.json()["voided"]
    shown = VoidedCharge.from_json(voided.json()["voided"])
    assert shown.charged == promise.promised
    shown.verify(channel.policy(), promise.promised.pseudonym, 0, channel.clock())
    promise_of(channel, 1)
    assert reveal(channel, 1).status_code == 200
    kinds = [type(one) for one in logged(channel, Charge, Generated, Void)]
    assert kinds == [Charge, Void, Charge, Generated]


def test_nothing_is_promised_at_a_time_before_what_ended_the_charge_before(
    channel: ProverScenario,
) -> None:
    open_channel(channel)
    promise_of(channel, 0)
    channel.clock.now += 40_000
    assert reveal(channel, 0).status_code == 200
    # Another process serves, and its clock is behind the one that answered.
    channel.clock.now -= 30_000
    expired = promise_of(channel, 1)
    channel.clock.now = expired.superseded_from(channel.policy()) + 40_000
    assert ask(channel, "bob", counter=1).status_code == 425
    channel.clock.now -= 30_000
    body = {"query": "x", "top_k": 2, "counter": 2}
    promised = channel.post("/v1/windows/w1/promise", "bob", body)
    first, answer, second, void = (one.time for one in logged(channel, Charge, Generated, Void))
    assert first < answer <= second < void <= Promise.parse(promised.content).promised.time


def fail(*_: Any) -> Any:
    raise GeneratorUnavailable("no model now")


def test_a_revealed_charge_is_never_voided(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_channel(channel)
    promise = promise_of(channel, 0)
    answering = NextTokens.next_tokens
    monkeypatch.setattr(NextTokens, "next_tokens", fail)
    assert reveal(channel, 0).status_code == 503
    channel.clock.now = promise.superseded_from(channel.policy())
    assert ask(channel, "bob", counter=0).content == promise.encode()
    # At the end it is answered as soon as it can be; until then the log stays open.
    with pytest.raises(GeneratorUnavailable):
        finish(channel)
    assert logged(channel, Generated, Void) == []
    monkeypatch.setattr(NextTokens, "next_tokens", answering)
    channel.service.driver.step("w1")
    (answer,) = logged(channel, Generated, Void)
    assert answer.nonce == channel.chains["bob"].nonce(0)


def test_what_nobody_revealed_is_voided_at_the_end(channel: ProverScenario) -> None:
    open_channel(channel)
    promise_of(channel, 0)
    finish(channel)
    assert [type(one) for one in logged(channel, Generated, Void)] == [Void]
    assert reveal(channel, 0).status_code == 409


def test_a_claimed_charge_is_answered_at_the_end(channel: ProverScenario) -> None:
    open_channel(channel)
    promise = promise_of(channel, 0)
    claim(channel, promise)
    # It was claimed: whether the prover got the nonce, nobody can tell.
    channel.clock.now = promise.superseded_from(channel.policy())
    assert ask(channel, "bob", counter=0).content == promise.encode()
    finish(channel)
    (answer,) = logged(channel, Generated, Void)
    assert answer.nonce == channel.chains["bob"].nonce(0)
