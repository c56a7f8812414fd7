"""Questions answered by keywords: charged first, asked once for each voter, kept and reused."""

from fractions import Fraction
from typing import Any

import openai
import pytest
from databases import ON_EACH_ENGINE
from generation_channel import QUESTION, ask, count, file_of, open_channel
from keyword_channel import KEYWORD_CHANNEL, KEYWORDS
from ragaudit.ledger.messages.entries import Void
from ragaudit.ledger.messages.receipts import GeneratedKeywords
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa
from ragaudit.prover.answering.charging import coins_of
from ragaudit.prover.store import tables
from ragaudit.prover.window.charges import charge_at, made_of
from ragaudit.prover.window.records import entries
from ragaudit.serving.generators import (
    GeneratorBusy,
    GeneratorSlow,
    GeneratorUnavailable,
    OddGenerator,
    WholeAnswers,
)
from scenario import ProverScenario

pytestmark = ON_EACH_ENGINE


def open_keywords(scenario: ProverScenario, **changes: Any) -> None:
    open_channel(scenario, **{**KEYWORD_CHANNEL, "differing_votes": 0, **changes})


@pytest.fixture
def channel(keyword_channel: ProverScenario, monkeypatch: pytest.MonkeyPatch) -> ProverScenario:
    """Without the model's seconds: six voters of eight say two words, and two say another."""

    def responses(_: WholeAnswers, question: str, documents: Any) -> list[str]:
        return ["Mirazo, daily" if n < 6 else "kolupe" for n, _ in enumerate(documents)]

    def final(_: WholeAnswers, question: str, keywords: Any) -> str:
        return f"{question} {' and '.join(keywords)}"

    monkeypatch.setattr(WholeAnswers, "responses", responses)
    monkeypatch.setattr(WholeAnswers, "final", final)
    return keyword_channel


def test_an_answer_of_the_copying_model_with_its_receipt(keyword_channel: ProverScenario) -> None:
    channel = keyword_channel
    open_keywords(channel)
    client = openai.OpenAI(
        api_key=channel.keys["ada"],
        base_url="http://testserver/v1",
        http_client=channel.api,
        max_retries=0,
    )
    raw = client.chat.completions.with_raw_response.create(
        model="records", messages=[{"role": "user", "content": QUESTION}]
    )
    said, receipt = raw.parse(), raw.headers["ragaudit-receipt"]
    file = file_of(channel.api.get(f"/v1/receipts/{receipt}", headers=channel.headers("ada")))
    file.public.verify(channel.policy().keys.provider)
    file.verify_openings()
    answer = file.answer
    assert isinstance(answer, GeneratedKeywords)
    assert answer.keywords is not None
    assert said.choices[0].message.content == answer.text
    assert said.choices[0].finish_reason == "stop"
    assert said.usage is not None and said.usage.total_tokens == 0
    # The model writes it from the keywords, and from nothing else.
    model = channel.service.generator
    assert model is not None
    assert answer.text == model.whole_answers(6).final(QUESTION, answer.keywords)
    assert file.public.issued == file.public.query.time + 2000


def test_votes_and_coins_give_the_answer(channel: ProverScenario) -> None:
    """What is stored for the replay is what was voted; the coins begin with the permutation."""
    open_keywords(channel)
    file = file_of(ask(channel))
    assert file.answer == GeneratedKeywords(f"{QUESTION} daily and mirazo", ("daily", "mirazo"))
    place = file.public.charge.index
    with channel.service.store.read() as connection:
        charge, made = charge_at(connection, "w1", place), made_of(connection, "w1", place)
    assert charge is not None and made is not None
    assert made.votes == ("Mirazo, daily",) * 6 + ("kolupe",) * 2
    # Of twelve records every second one has to do with the question; two voters read nothing.
    assert len(made.used) == 6
    live, used, votes = channel.service.open_windows.get("w1"), made.used, made.votes

    class Said:
        def responses(self, question: str, documents: Any) -> tuple[str, ...]:
            assert sorted(documents) == ["", "", *sorted(row.content or "" for row in used)]
            return tuple(str(vote) for vote in votes)

        def final(self, question: str, keywords: Any) -> str:
            return " ".join(keywords)

    choice, sigma, delta_test = (
        Fraction(KEYWORDS[name]) for name in ("epsilon_choice", "sigma", "delta_test")
    )
    mechanism = DpKsa(choice, sigma, delta_test, slots=8, sizes=(1, 2, 3))
    slots = [*(row.content or "" for row in made.used), "", ""]
    found = mechanism.answer(QUESTION, slots, Said(), coins_of(live, charge.body))
    assert found.keywords == ("daily", "mirazo")


def test_the_keywords_may_be_the_answer(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> str:
        raise AssertionError("the model was asked for a final text")

    monkeypatch.setattr(WholeAnswers, "final", never)
    open_keywords(channel, keywords={**KEYWORDS, "final": "keywords", "stop_words": ["daily"]})
    assert file_of(ask(channel)).answer == GeneratedKeywords("mirazo", ("mirazo",))


def test_a_failed_test_releases_nothing(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WholeAnswers, "responses", lambda *given: ["a", "b", "c", "d"] * 2)
    open_keywords(channel)
    assert file_of(ask(channel)).answer == GeneratedKeywords(f"{QUESTION} ", None)


def test_an_answer_that_is_too_long_counts_as_none(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "mirazo " * 2400
    monkeypatch.setattr(WholeAnswers, "responses", lambda *given: [long] * 7 + ["kolupe"])
    open_keywords(channel)
    file = file_of(ask(channel))
    assert file.answer == GeneratedKeywords(f"{QUESTION} ", None)
    with channel.service.store.read() as connection:
        made = made_of(connection, "w1", file.public.charge.index)
    assert made is not None and made.votes == ("",) * 7 + ("kolupe",)


def test_without_replay_no_votes_are_kept(channel: ProverScenario) -> None:
    open_keywords(channel, differing_votes=None)
    file = file_of(ask(channel))
    with channel.service.store.read() as connection:
        assert made_of(connection, "w1", file.public.charge.index) is None


def test_stored_answers_are_reused(channel: ProverScenario) -> None:
    open_keywords(channel, reuse=True)
    first = file_of(ask(channel))
    channel.clock.now += 61_000
    assert file_of(ask(channel)) == first
    assert count(channel, tables.charge) == 1


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ("responses", GeneratorBusy("busy")),
        ("final", GeneratorUnavailable("dead")),
        ("final", GeneratorSlow("slow")),
        ("final", OddGenerator("?")),
    ],
)
def test_a_model_that_fails_leaves_a_charge_that_is_answered_later(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch, step: str, fault: Exception
) -> None:
    open_keywords(channel)

    def dead(*_: object) -> Any:
        raise fault

    with monkeypatch.context() as patched:
        patched.setattr(WholeAnswers, step, dead)
        before = channel.clock.now
        failed = ask(channel)
        assert channel.clock.now >= before + 2000
    assert failed.status_code == 503, failed.text
    assert failed.headers["content-type"] == "application/problem+json"
    assert (count(channel, tables.charge), count(channel, tables.generated)) == (1, 0)
    answer = file_of(ask(channel)).answer
    assert isinstance(answer, GeneratedKeywords) and answer.keywords == ("daily", "mirazo")
    assert (count(channel, tables.charge), count(channel, tables.generated)) == (1, 1)


def test_who_asks_again_after_a_crash_draws_nothing_anew(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_keywords(channel)
    drawn: list[bytes] = []

    def keyed(*arguments: Any, **given: Any) -> Any:
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


def test_a_charge_without_an_answer_is_voided_at_the_close(
    channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_keywords(channel)

    def dead(*_: object) -> Any:
        raise GeneratorUnavailable("dead")

    monkeypatch.setattr(WholeAnswers, "responses", dead)
    assert ask(channel).status_code == 503
    live = channel.service.open_windows.get("w1")
    channel.close()
    assert channel.service.driver._closing.finish_log(live)
    with channel.service.store.read() as connection:
        assert [each.kind for each in entries(connection, "w1")].count(Void.KIND) == 1
