"""The generation channel over HTTP: what waits holds nothing, and OpenAI's client is served."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from databases import ON_EACH_ENGINE
from generation_channel import (
    QUESTION,
    TERMS,
    ask,
    count,
    file_of,
    first_tokens,
    open_channel,
)
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.receipts import GeneratedAnswer
from ragaudit.prover.store import tables
from ragaudit.prover.store.states import State
from ragaudit.serving.generators import NextTokens
from scenario import ProverScenario

pytestmark = ON_EACH_ENGINE


def test_a_waiting_answer_holds_neither_a_turn_nor_a_thread(
    make_channel: Callable[..., ProverScenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker for all: while an answer waits, the same account's query is served."""
    monkeypatch.setenv("RAGAUDIT_PROVER__LIMITS__WORKERS", "1")
    monkeypatch.setattr(NextTokens, "next_tokens", first_tokens)

    async def both() -> list[httpx.Response]:
        waits, due = asyncio.Event(), asyncio.Event()

        async def pause(seconds: float) -> None:
            waits.set()
            await due.wait()
            scenario.clock.now += round(1000 * seconds)

        scenario = make_channel(pause)
        await asyncio.to_thread(open_channel, scenario)
        transport = httpx.ASGITransport(scenario.api.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://prover") as client:
            client.headers.update(scenario.headers("ada"))
            question = client.post("/v1/windows/w1/ask", json={"query": QUESTION})
            asked = asyncio.create_task(question)
            await waits.wait()
            query = {"query": "bread", "top_k": 2, "filter": ""}
            answered = await client.post("/v1/windows/w1/query", json=query)
            assert not asked.done()
            due.set()
            return [answered, await asked]

    answered, asked = asyncio.run(both())
    assert answered.status_code == 200, answered.text
    assert file_of(asked).public.query.counter == 0


def test_an_unmodified_client_of_openai(real_channel: ProverScenario) -> None:
    open_channel(real_channel)
    client = openai.OpenAI(
        api_key=real_channel.keys["ada"],
        base_url="http://testserver/v1",
        http_client=real_channel.api,
        max_retries=0,
    )
    raw = client.chat.completions.with_raw_response.create(
        model="records", messages=[{"role": "user", "content": QUESTION}]
    )
    answer = raw.parse()
    assert "mirazo" in (answer.choices[0].message.content or "").replace(" ", "")
    receipt = raw.headers["ragaudit-receipt"]
    assert answer.id == f"chatcmpl-{receipt}"
    whole = real_channel.api.get(f"/v1/receipts/{receipt}", headers=real_channel.headers("ada"))
    file = file_of(whole)
    file.verify_openings()
    assert file.answer.text == answer.choices[0].message.content
    assert answer.usage is not None
    assert isinstance(file.answer, GeneratedAnswer)
    assert answer.usage.completion_tokens == len(file.answer.tokens)
    with pytest.raises(openai.NotFoundError, match="no such collection"):
        client.chat.completions.create(
            model="other", messages=[{"role": "user", "content": QUESTION}]
        )
    with pytest.raises(openai.PermissionDeniedError, match="stream"):
        client.chat.completions.create(
            model="records", stream=True, messages=[{"role": "user", "content": QUESTION}]
        )
    with pytest.raises(openai.PermissionDeniedError, match="a conversation"):
        client.chat.completions.create(
            model="records",
            messages=[{"role": "system", "content": "x"}, {"role": "user", "content": QUESTION}],
        )
    with pytest.raises(openai.PermissionDeniedError, match="logprobs"):
        client.chat.completions.create(
            model="records", logprobs=True, messages=[{"role": "user", "content": QUESTION}]
        )
    assert count(real_channel, tables.charge) == 1


def test_settings_that_are_not_honoured_are_named_in_the_receipt(channel: ProverScenario) -> None:
    open_channel(channel)
    body = {"model": "records", "messages": [{"role": "user", "content": QUESTION}]}
    sent = {"temperature": 0.2, "max_tokens": 64, "top_p": 1, "seed": 7, "user": "u-1"}
    headers = channel.headers("ada")

    def asked(**more: Any) -> str:
        answer = channel.api.post("/v1/chat/completions", json={**body, **more}, headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.headers["ragaudit-receipt"])

    def shown(receipt: str) -> Any:
        found = channel.api.get(f"/v1/receipts/{receipt}", headers=headers)
        file = file_of(found)
        # The provider's signature is over them: they cannot be taken off, or put on.
        file.verify_answer_digest()
        for ignored in ((), ("temperature",), ("other", *file.request.ignored)):
            forged = replace(file, request=replace(file.request, ignored=tuple(sorted(ignored))))
            if forged != file:
                with pytest.raises(ReceiptRejected):
                    forged.verify_answer_digest()
        return json.loads(found.content)["request"].get("ignored")

    receipt = asked(**sent, n=1, stream=False)
    assert shown(receipt) == ["max_tokens", "seed", "temperature", "top_p", "user"]
    # A retry is the same question; their values are no part of it.
    assert asked(**{**sent, "temperature": 1.5}) == receipt and count(channel, tables.charge) == 1
    plain = asked()
    assert plain != receipt and shown(plain) is None
    assert shown(asked(max_completion_tokens=5)) == ["max_completion_tokens"]


def chat(scenario: ProverScenario, query: str = QUESTION) -> Any:
    body = {"model": "records", "messages": [{"role": "user", "content": query}]}
    return scenario.api.post("/v1/chat/completions", json=body, headers=scenario.headers("ada"))


def test_an_answer_that_was_lost_is_given_again_when_its_window_has_ended(
    channel: ProverScenario,
) -> None:
    open_channel(channel)
    end = channel.policy().end
    channel.clock.at(end - 20)
    first = chat(channel)
    assert first.status_code == 200, first.text
    asked = channel.clock.now
    shown = f"/v1/receipts/{first.headers['ragaudit-receipt']}"
    file = channel.api.get(shown, headers=channel.headers("ada"))

    channel.clock.at(end)
    assert chat(channel).json() == first.json()
    assert ask(channel).content == file.content
    # Of a finished window nothing is in memory, and its name is no window to ask.
    channel.service.windows.note("w1", state=State.ARCHIVED)
    channel.service.open_windows.forget("w1")
    assert chat(channel).json() == first.json()
    assert ask(channel).content == file.content
    # Nobody else's, no other question, and not for longer than the policy says.
    assert ask(channel, "cyd").status_code == 409
    assert chat(channel, "another ?").status_code == 503
    assert ask(channel, query="another ?").status_code == 409
    assert count(channel, tables.charge) == 1
    channel.clock.now = asked + 61_000
    assert chat(channel).status_code == 503
    assert ask(channel).status_code == 409


def test_a_lost_answer_is_given_again_when_the_next_window_is_open(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TERMS, "retry_seconds", 600)
    open_channel(channel)
    end = channel.policy().end
    channel.clock.at(end - 20)
    first = chat(channel)
    assert first.status_code == 200, first.text
    channel.clock.at(end)
    channel.drive(State.CLOSED)
    channel.open("w2", **TERMS)
    assert chat(channel).json() == first.json()
    assert count(channel, tables.charge) == 1
    other = chat(channel, "another ?")
    assert other.headers["ragaudit-receipt"].startswith("w2."), other.text
    assert chat(channel, "another ?").json() == other.json()
    assert count(channel, tables.charge) == 2


def test_refusals(channel: ProverScenario) -> None:
    open_channel(channel)
    assert ask(channel, "bob").status_code == 409  # anchored
    for body in ({"query": ""}, {"query": "x", "top_k": 2}, {"query": "x", "filter": "no"}, {}):
        answer = channel.post("/v1/windows/w1/ask", "ada", body)
        assert answer.status_code in (400, 422), answer.text
        assert answer.headers["content-type"] == "application/problem+json"
    assert channel.api.post("/v1/windows/w1/ask", json={"query": "x"}).status_code == 401
    assert channel.post("/v1/windows/w2/ask", "ada", {"query": "x"}).status_code == 404
    assert count(channel, tables.charge) == 0


def test_a_window_without_the_channel_says_so(channel: ProverScenario) -> None:
    channel.open()
    answer = ask(channel)
    assert answer.status_code in (400, 422, 501), answer.text
    assert "no generation channel" in answer.text
