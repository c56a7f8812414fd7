"""The generation channel: rows pay before anything is generated, once, and answers are kept."""

import asyncio
import gc
import re
from typing import Any

import numpy as np
import pytest
from committing_together import until
from databases import ON_EACH_ENGINE_SLOWLY
from generation_channel import (
    QUESTION,
    ask,
    count,
    file_of,
    open_channel,
)
from ragaudit import core
from ragaudit.circuits.budgets import BudgetStatement
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.entries import Accounts, Charge, Close, Void
from ragaudit.ledger.messages.receipts import GeneratedFile, GenerationRequest
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.prover.answering import generation as settling
from ragaudit.prover.answering.charging import coins_of
from ragaudit.prover.errors import BackendUnavailable
from ragaudit.prover.store import tables
from ragaudit.prover.window.charges import charge_at, charged_rows, unanswered
from ragaudit.prover.window.records import entries
from ragaudit.serving.generators import GeneratorUnavailable, NextTokens
from scenario import ProverScenario

pytestmark = ON_EACH_ENGINE_SLOWLY


def test_an_answer_with_its_receipt(real_channel: ProverScenario) -> None:
    channel = real_channel
    open_channel(channel)
    file = file_of(ask(channel))
    assert "mirazo" in file.answer.text.replace(" ", "")
    assert file.answer.private <= 4
    file.public.verify(channel.policy().keys.provider)
    file.verify_openings()
    charge, answer = file.public.query, file.public.answered
    assert (charge.number, charge.counter, charge.threshold) == (0, 0, 0)
    assert (answer.charge, answer.nonce) == (file.public.charge.index, None)
    # It leaves at a fixed time after the charge.
    assert file.public.issued == charge.time + 2000
    again = channel.api.get(
        f"/v1/receipts/w1.{file.public.charge.index}", headers=channel.headers("ada")
    )
    assert again.content == file.encode()
    other = channel.api.get(
        f"/v1/receipts/w1.{file.public.charge.index}", headers=channel.headers("cyd")
    )
    assert other.status_code == 404


def test_charges_are_what_the_arguments_say(channel: ProverScenario) -> None:
    open_channel(channel)
    files = [file_of(ask(channel, query=f"{QUESTION} {n}")) for n in range(3)]
    live = channel.service.open_windows.get("w1")
    index = live.index_of("one", 1)
    with channel.service.store.read() as connection:
        rows = [each for _, each in charged_rows(connection, "w1", "one", 0)]
        stored = [charge_at(connection, "w1", file.public.charge.index) for file in files]
    uses = np.zeros(index.count, dtype=np.int64)
    for file, charged, each in zip(files, rows, stored, strict=True):
        assert each is not None
        embedding = np.array(file.private.openings.embedding, dtype=np.int16)
        scores = channel.service.mechanism.scores(index, embedding)
        expected = np.flatnonzero((scores > 0) & (uses < 2))
        assert charged.tolist() == expected.tolist()
        uses[charged] += 1
        body = file.public.query
        assert body.charge == core.commit_selection(charged.tolist(), each.blinding)
    assert uses.max() == 2  # M, and no more: the third question found fewer rows
    points = b"".join(file.public.query.charge or b"" for file in files)
    statement = BudgetStatement.of(
        policy_digest=live.policy_digest,
        window="w1",
        tenant="one",
        version=1,
        index_root=index.root,
        log_root=bytes(32),
        rows=index.count,
        uses=2,
        charges=points,
    )
    blindings = np.frombuffer(
        b"".join(each.blinding for each in stored if each is not None), dtype=np.uint8
    ).reshape(-1, 32)
    proof = core.prove_budget(statement, [each.tolist() for each in rows], blindings)
    core.verify_budget(statement, proof)


def test_one_counter_counts_both_channels(channel: ProverScenario) -> None:
    open_channel(channel)
    assert channel.ask().status_code == 200
    assert file_of(ask(channel)).public.query.counter == 1
    assert channel.ask(query="train").status_code == 200
    for n in range(3):
        file_of(ask(channel, query=f"another {n} ?"))
    refused = ask(channel, query="one more ?")
    assert refused.status_code == 429, refused.text
    assert refused.json()["refusal"]["reason"] == "budget"
    with channel.service.store.read() as connection:
        kinds = [each.kind for each in entries(connection, "w1")]
    assert kinds.count("charge") == kinds.count("answer") == 4
    assert kinds.count("record") == 2


def test_the_same_question_is_not_charged_again(channel: ProverScenario) -> None:
    open_channel(channel)
    first = file_of(ask(channel))
    assert file_of(ask(channel)) == first
    assert count(channel, tables.charge) == 1
    channel.clock.now += 61_000  # beyond retry_seconds
    assert file_of(ask(channel)).public.charge.index != first.public.charge.index


def test_reused_answers_last_the_window(channel: ProverScenario) -> None:
    open_channel(channel, reuse=True)
    first = file_of(ask(channel))
    channel.clock.now += 61_000
    assert file_of(ask(channel)) == first
    assert count(channel, tables.charge) == 1


@pytest.mark.parametrize("fault", [GeneratorUnavailable("dead"), BackendUnavailable("dead")])
def test_a_charge_without_an_answer_is_charged_once_and_answered_later(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    open_channel(channel)

    def dead(*_: object) -> Any:
        raise fault

    with monkeypatch.context() as patched:
        if isinstance(fault, GeneratorUnavailable):
            patched.setattr(NextTokens, "next_tokens", dead)
        else:
            patched.setattr(channel.service.backend, "fetch", dead)
        before = channel.clock.now
        failed = ask(channel)
        # A failure leaves when an answer would: how long it took may tell of rows.
        assert channel.clock.now >= before + 2000
    assert failed.status_code == 503, failed.text
    assert failed.headers["content-type"] == "application/problem+json"
    assert (count(channel, tables.charge), count(channel, tables.generated)) == (1, 0)
    file = file_of(ask(channel))
    assert (count(channel, tables.charge), count(channel, tables.generated)) == (1, 1)
    # At a whole multiple of the delay.
    assert (file.public.issued - file.public.query.time) % 2000 == 0


def test_who_asks_again_after_a_crash_draws_nothing_anew(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coins follow from keys: what is generated twice is the same."""
    open_channel(channel)
    drawn: list[bytes] = []

    def keyed(*arguments: Any, **given: Any) -> KeyedCoins:
        coins = coins_of(*arguments, **given)
        drawn.append(coins._key)
        return coins

    monkeypatch.setattr("ragaudit.prover.answering.generation.coins_of", keyed)

    def dead(*_: object, **__: object) -> Any:
        raise GeneratorUnavailable("dead")

    with monkeypatch.context() as patched:
        patched.setattr("ragaudit.prover.answering.generation.put_answer", dead)
        assert ask(channel).status_code == 503
    file_of(ask(channel))
    assert len(drawn) == 2
    assert drawn[0] == drawn[1]


def test_a_charge_without_an_answer_is_voided_at_the_close_and_stays_charged(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_channel(channel)
    answered = file_of(ask(channel))

    def dead(*_: object) -> Any:
        raise GeneratorUnavailable("dead")

    monkeypatch.setattr(NextTokens, "next_tokens", dead)
    assert ask(channel, query="another ?").status_code == 503
    live = channel.service.open_windows.get("w1")
    channel.close()
    assert channel.service.driver._closing.finish_log(live)
    with channel.service.store.read() as connection:
        logged = list(entries(connection, "w1"))
        assert unanswered(connection, "w1") == []
        assert len(list(charged_rows(connection, "w1", "one", 0))) == 2
    assert [each.kind for each in logged[-3:]] == [Void.KIND, Accounts.KIND, Close.KIND]
    void = Void.parse(logged[-3].body)
    assert void.charge == [each.index for each in logged if each.kind == Charge.KIND][1]
    # Once only, and nobody is answered after it.
    channel.service.driver._closing._generation.settle(live)
    assert ask(channel, query="another ?").status_code == 409
    with channel.service.store.read() as connection:
        assert len(list(entries(connection, "w1"))) == len(logged)
    shown = f"/v1/receipts/w1.{void.charge}"
    assert channel.api.get(shown, headers=channel.headers("ada")).status_code == 404
    again = f"/v1/receipts/w1.{answered.public.charge.index}"
    assert channel.api.get(again, headers=channel.headers("ada")).content == answered.encode()


def test_an_answer_follows_an_entry_whose_process_had_a_faster_clock(
    channel: ProverScenario,
) -> None:
    open_channel(channel)
    service, request = channel.service, GenerationRequest(QUESTION)
    live = service.open_windows.get("w1")
    charge = service.generating._generation.charge(live, channel.account("ada"), request)
    later = charge.body.time + 10_000
    with live.committing(service.store) as transaction:
        transaction.advance_time("ada", later)
    assert file_of(ask(channel)).public.answered.time == later


def form(value: Any) -> Any:
    """Members, lengths of lists and of hex; not what numbers and texts say."""
    if isinstance(value, dict):
        return {name: form(member) for name, member in value.items()}
    if isinstance(value, list):
        return [form(member) for member in value]
    is_hex = isinstance(value, str) and re.fullmatch("([0-9a-f]{2})+", value)
    return len(value) if is_hex else type(value).__name__


def test_exhausted_rows_are_no_error(channel: ProverScenario) -> None:
    """Nor does anything that an account sees say so: the model answers with nothing to read."""
    open_channel(channel, uses=1)
    replies = [ask(channel), ask(channel, query="symptom of bazeli ?")]
    first, second = (file_of(each) for each in replies)
    for file in (first, second):
        assert file.public.issued - file.public.query.time == 2000
    # Of all rows or of none: headers, and both halves of a receipt, are as long and of one form.
    headers, files = zip(*((sorted(each.headers), each.json()) for each in replies), strict=True)
    assert headers[0] == headers[1]
    for half in ("public", "private"):
        assert form(files[0][half]) == form(files[1][half])
    assert first.public.query.charge != second.public.query.charge
    with channel.service.store.read() as connection:
        stored = charge_at(connection, "w1", second.public.charge.index)
        paid = charge_at(connection, "w1", first.public.charge.index)
    assert stored is not None and paid is not None
    assert stored.rows.size == 0 < paid.rows.size


@pytest.mark.parametrize("member", ["tokens", "group", "uses", "voters"])
def test_a_channel_of_nothing_is_refused_by_name(channel: ProverScenario, member: str) -> None:
    with pytest.raises(MalformedError, match=rf"generation\.{member}"):
        open_channel(channel, **{member: 0})
    assert channel.service.windows.all() == []


def test_naive_charges_no_rows_and_counts_questions(channel: ProverScenario) -> None:
    open_channel(channel, mechanism="naive", threshold=None, uses=2, differing_votes=None)
    body = file_of(ask(channel)).public.query
    assert (body.threshold, body.charge) == (None, None)
    file_of(ask(channel, query="symptom of bazeli ?"))
    spent = ask(channel, query="more ?")
    assert spent.status_code == 409, spent.text
    assert "all questions" in spent.text
    assert count(channel, tables.charge) == 2


def test_questions_at_once_are_charged_one_after_the_other(channel: ProverScenario) -> None:
    open_channel(channel, uses=3)
    generating, ada = channel.service.generating, channel.account("ada")

    async def questions() -> list[GeneratedFile]:
        asked = [GenerationRequest(f"question {n} ?") for n in range(5)]
        return await asyncio.gather(*[generating.generate(ada, each) for each in asked])

    numbers = [file.public.query.number for file in asyncio.run(questions())]
    assert sorted(numbers) == list(range(5))
    with channel.service.store.read() as connection:
        logged = [
            Charge.parse(each.body).number
            for each in entries(connection, "w1")
            if each.kind == Charge.KIND
        ]
        uses = np.bincount(
            np.concatenate([rows for _, rows in charged_rows(connection, "w1", "one", 0)])
        )
    assert logged == list(range(5))
    assert uses.max() <= 3


def test_a_window_that_ended_leaves_no_counts_of_its_rows(channel: ProverScenario) -> None:
    open_channel(channel)
    file_of(ask(channel))
    service = channel.service
    known = service.driver._closing._generation.charging._counts._known
    assert [live.name for live in known] == ["w1"]
    service.open_windows.forget("w1")
    # A thread of the service may be at work on the window just now.
    until(lambda: gc.collect() >= 0 and not known)


def test_charges_without_an_answer_are_in_memory_one_at_a_time(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_channel(channel)

    def dead(*_: object) -> Any:
        raise GeneratorUnavailable("dead")

    monkeypatch.setattr(NextTokens, "next_tokens", dead)
    for number in range(3):
        assert ask(channel, query=f"question {number} ?").status_code == 503
    live = channel.service.open_windows.get("w1")
    channel.close()
    steps = list[str]()
    for name in ("charge_at", "put_void"):
        honest = getattr(settling, name)

        def noted(*given: Any, name: str = name, honest: Any = honest) -> Any:
            steps.append(name)
            return honest(*given)

        monkeypatch.setattr(settling, name, noted)
    assert channel.service.driver._closing.finish_log(live)
    assert steps == 3 * ["charge_at", "put_void"]
