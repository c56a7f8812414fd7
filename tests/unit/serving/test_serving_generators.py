"""A language model behind OpenAI's API: what is asked, what is believed, what its failures are."""

import itertools
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import httpx
import pytest
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa
from ragaudit.privacy.mechanisms.dp_rag import DpRag
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.serving import generators
from ragaudit.serving.generators import (
    Asking,
    GeneratorBusy,
    GeneratorNotDeterministic,
    GeneratorOptions,
    GeneratorSlow,
    GeneratorUnavailable,
    NextTokens,
    OddGenerator,
    Prompt,
    TokenOutsideVocabulary,
    Vocabulary,
    WholeAnswers,
)

ADDRESS = "http://generator.internal.example/v1"
VOCABULARY = Vocabulary(("</s>", " yes", " no", " perhaps"), 0)
PROMPT = Prompt("Read: {documents}\nAsked: {question}\n")
Body = dict[str, Any]


class Service:
    """Says " yes" where the prompt holds "good", " no" where it holds "bad", else " perhaps"."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.paths: list[str] = []
        self.headers: list[httpx.Headers] = []
        self.instead: Callable[[Body], httpx.Response | None] = lambda body: None
        self.lock = threading.Lock()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        with self.lock:
            self.bodies.append(body)
            self.paths.append(request.url.path)
            self.headers.append(request.headers)
        instead = self.instead(body)
        if instead is not None:
            return instead
        if request.url.path.endswith("/chat/completions"):
            text = self.token(body["messages"][0]["content"]).strip()
            return chat(text)
        return completion([self.token(prompt) for prompt in body["prompt"]])

    @staticmethod
    def token(prompt: str) -> str:
        return " yes" if "good" in prompt else " no" if "bad" in prompt else " perhaps"

    @property
    def prompts(self) -> list[str]:
        return [prompt for body in self.bodies for prompt in body["prompt"]]


def choice(place: int, text: str, **changes: Any) -> Body:
    logprobs = {"tokens": [text], "token_logprobs": [-0.1], "top_logprobs": [{text: -0.1, "x": -3}]}
    return {"index": place, "text": text, "finish_reason": "length", "logprobs": logprobs} | changes


def completion(texts: list[str], **changes: Any) -> httpx.Response:
    choices = [choice(index, text) for index, text in enumerate(texts)]
    return httpx.Response(200, json={"model": "m", "choices": choices[::-1]} | changes)


def chat(text: str) -> httpx.Response:
    choices = [{"index": 0, "message": {"role": "assistant", "content": text}}]
    return httpx.Response(200, json={"model": "m", "choices": choices})


@contextmanager
def asking(service: Service, **changes: Any) -> Iterator[Asking]:
    members: dict[str, Any] = {"url": ADDRESS, "model": "m", "timeout": 5.0, "deadline": 5.0}
    found = Asking(
        GeneratorOptions(**{**members, "transport": httpx.MockTransport(service), **changes})
    )
    try:
        yield found
    finally:
        found.close()


def next_tokens(
    service: Service, documents: list[tuple[str, ...]], answer: tuple[int, ...] = (), **changes: Any
) -> list[int | None]:
    with asking(service, **changes) as caller:
        return NextTokens(caller, VOCABULARY, PROMPT).next_tokens("why?", documents, answer)


def test_each_voter_gets_its_own_prompt_and_documents_come_in_batches() -> None:
    service = Service()
    documents = [(), ("good", ""), ("bad",), ("",), ("a {question}", "good")]
    found = next_tokens(service, documents, (1, 3), batch=3, key="s3cret", parallel=1)
    assert found == [3, 1, 2, 3, 1]
    assert [len(body["prompt"]) for body in service.bodies] == [1, 3, 1]
    assert service.prompts[0] == "Read: \nAsked: why?\n yes perhaps"
    assert service.prompts[1] == "Read: good\nAsked: why?\n yes perhaps"
    # What a document writes is not taken for a place of the template.
    assert service.prompts[4] == "Read: a {question}\ngood\nAsked: why?\n yes perhaps"
    body = {key: value for key, value in service.bodies[0].items() if key != "prompt"}
    assert body == {
        "model": "m", "max_tokens": 1, "temperature": 0, "seed": 0, "n": 1, "logprobs": 1,
    }  # fmt: skip
    assert set(service.paths) == {"/v1/completions"}
    assert service.headers[0]["authorization"] == "Bearer s3cret"


def test_a_voters_next_prompt_goes_on_with_its_last_one() -> None:
    """So that a service which keeps what it has read of a prompt reads one token more."""
    service = Service()
    documents = [(), ("good",), ("bad", "good")]
    for answer in ((), (1,), (1, 3)):
        next_tokens(service, documents, answer, batch=1, parallel=1)
    steps = [service.prompts[at : at + 3] for at in (0, 3, 6)]
    for before, after in itertools.pairwise(steps):
        for last, following in zip(before, after, strict=True):
            assert following.startswith(last) and following != last


def test_the_form_of_newer_servers_is_read_and_a_silent_end() -> None:
    service = Service()
    content = [{"token": " no", "logprob": -0.1, "top_logprobs": [{"token": "x", "logprob": -9}]}]
    newer = choice(0, " no", logprobs={"content": content})
    service.instead = lambda body: httpx.Response(200, json={"model": "m", "choices": [newer]})
    assert next_tokens(service, [()]) == [2]
    silent = choice(0, "", logprobs=None, finish_reason="stop")
    service.instead = lambda body: httpx.Response(200, json={"model": "m", "choices": [silent]})
    assert next_tokens(service, [()]) == [VOCABULARY.end]


def raising(kind: type[httpx.HTTPError]) -> Callable[[Body], httpx.Response]:
    def answer(body: Body) -> httpx.Response:
        raise kind("secret text")

    return answer


def answering(response: httpx.Response) -> Callable[[Body], httpx.Response]:
    return lambda body: response


def one(**changes: Any) -> Callable[[Body], httpx.Response]:
    body = {"model": "m", "choices": [choice(0, " yes", **changes)]}
    return answering(httpx.Response(200, json=body))


TOP = {"tokens": [" yes"], "token_logprobs": [-1.0], "top_logprobs": [{" yes": -1.0}]}
FAILURES: dict[str, tuple[Callable[[Body], httpx.Response], type[GeneratorUnavailable], str]] = {
    "dead": (raising(httpx.ConnectError), GeneratorUnavailable, "cannot be reached"),
    "broken": (answering(httpx.Response(500, text="secret text")), GeneratorUnavailable, "500"),
    "refusing": (answering(httpx.Response(401)), GeneratorUnavailable, "answered 401"),
    "elsewhere": (answering(httpx.Response(302)), GeneratorUnavailable, "answered 302"),
    "slow": (raising(httpx.ReadTimeout), GeneratorSlow, "did not answer in time"),
    "busy": (
        answering(httpx.Response(429, headers={"retry-after": "9"})), GeneratorBusy, "too much",
    ),
    "packed": (
        answering(httpx.Response(200, headers={"content-encoding": "br"}, content=b"x")),
        OddGenerator, "PackedAnswer",
    ),
    "no JSON": (answering(httpx.Response(200, text="[" * 100_000)), OddGenerator, "JSON"),
    "no choices": (answering(httpx.Response(200, json={"model": "m"})), OddGenerator, "choices"),
    "another model": (answering(completion([" yes"], model="n")), OddGenerator, "another model"),
    "two answers": (answering(completion([" yes", " no"])), OddGenerator, "one choice for each"),
    "another index": (one(index=1), OddGenerator, "one choice for each"),
    "an index of a list": (one(index=[]), OddGenerator, "one choice for each"),
    "a number beyond floats": (
        one(logprobs=TOP | {"token_logprobs": [-(10**400)]}), OddGenerator, "one token",
    ),
    "no logprobs": (one(logprobs=None), OddGenerator, "one token"),
    "two tokens": (one(logprobs=TOP | {"tokens": [" yes", " no"]}), OddGenerator, "one token"),
    "a chance above 1": (one(logprobs=TOP | {"token_logprobs": [1.0]}), OddGenerator, "one token"),
    "no number": (one(logprobs=TOP | {"token_logprobs": [None]}), OddGenerator, "one token"),
    "not greedy": (
        one(logprobs=TOP | {"top_logprobs": [{" yes": -1.0, " no": -0.5}]}),
        OddGenerator, "not its likeliest",
    ),
    "outside": (
        answering(completion([" tomorrow"])), TokenOutsideVocabulary, "vocabulary does not have",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_named_and_quote_nothing(name: str, caplog: pytest.LogCaptureFixture) -> None:
    instead, kind, message = FAILURES[name]
    service = Service()
    service.instead = instead
    with caplog.at_level(logging.WARNING), pytest.raises(GeneratorUnavailable) as caught:
        next_tokens(service, [()])
    assert type(caught.value) is kind
    assert message in str(caught.value)
    said = str(caught.value) + caplog.text
    assert "secret text" not in said and "why?" not in said and "tomorrow" not in said
    assert "generator.internal" not in str(caught.value)


@pytest.mark.parametrize("name", FAILURES)
def test_a_voter_that_fails_is_an_empty_vote(name: str) -> None:
    """Were it an error, a document could be felt by making its own voter fail."""
    instead, _, _ = FAILURES[name]
    service = Service()
    service.instead = lambda body: instead(body) if "bad" in "".join(body["prompt"]) else None
    documents: list[tuple[str, ...]] = [(), ("good",), ("bad",), ("good",)]
    found = next_tokens(service, documents, batch=3)
    assert found == [3, 1, None, 1]
    # Together, and then each alone.
    assert sorted(len(body["prompt"]) for body in service.bodies) == [1, 1, 1, 1, 3]


def test_a_busy_service_is_asked_again_while_there_is_time() -> None:
    service = Service()
    busy = httpx.Response(503, headers={"retry-after": "0"})
    service.instead = lambda body: busy if len(service.bodies) < 3 else None
    assert next_tokens(service, [()]) == [3]
    assert len(service.bodies) == 3


def test_what_is_not_there_by_the_deadline_is_not_waited_for() -> None:
    with pytest.raises(GeneratorSlow):
        next_tokens(Service(), [()], deadline=0.0)


def test_an_endless_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "MAX_ANSWER_BYTES", 10)
    with pytest.raises(OddGenerator, match="LongAnswer"):
        next_tokens(Service(), [()])


def test_one_answer_too_many_is_refused_not_queued() -> None:
    with (
        asking(Service(), questions=1, timeout=0.01) as caller,
        caller.step(),
        pytest.raises(GeneratorBusy) as caught,
        caller.step(),
    ):
        pass
    assert caught.value.retry_after == 1


def test_a_generator_that_answers_differently_is_found() -> None:
    service = Service()
    questions = ["is it good?", "is it bad?", "is it?"]
    with asking(service) as caller:
        assert NextTokens(caller, VOCABULARY, PROMPT).check(questions) == [1, 2, 3]
        # As servers do whose arithmetic depends on the size of a batch.
        service.instead = lambda body: (
            completion([" no"] * len(body["prompt"])) if len(body["prompt"]) > 1 else None
        )
        with pytest.raises(GeneratorNotDeterministic):
            NextTokens(caller, VOCABULARY, PROMPT).check(questions)
        service.instead = lambda body: None
        answers = WholeAnswers(caller, PROMPT, PROMPT, tokens=4)
        assert answers.check(questions) == ["yes", "no", "perhaps"]
        seen: list[str] = []

        def moody(body: Body) -> httpx.Response:
            seen.append(body["messages"][0]["content"])
            return chat(str(seen.count(seen[-1])))

        service.instead = moody
        with pytest.raises(GeneratorNotDeterministic):
            answers.check(questions)


def test_whole_answers_come_of_one_document_each_and_failures_are_empty() -> None:
    service = Service()

    def instead(body: Body) -> httpx.Response | None:
        content = body["messages"][0]["content"]
        return httpx.Response(400) if "huge" in content else None

    service.instead = instead
    keywords = Prompt("Words: {documents}\nAsked: {question}\n", between=", ")
    with asking(service) as caller:
        voters = WholeAnswers(caller, PROMPT, keywords, tokens=4)
        assert voters.responses("why?", ["good", "huge", "", "bad"]) == ["yes", "", "perhaps", "no"]
        assert voters.final("why?", ("bad", "worse")) == "no"
        assert service.bodies[-1]["messages"] == [
            {"role": "user", "content": "Words: bad, worse\nAsked: why?\n"}
        ]
        # A test that failed asks what a voter without a document asks, byte for byte.
        assert voters.final("why?", ()) == "perhaps"
        assert service.bodies[-1]["messages"][0]["content"] == "Read: \nAsked: why?\n"
        with pytest.raises(GeneratorUnavailable, match="answered 400"):
            voters.final("why?", ("huge",))
        service.instead = lambda body: chat("x" * 1000)
        with pytest.raises(OddGenerator, match="more than it was asked for"):
            voters.final("why?", ())
        service.instead = lambda body: httpx.Response(
            200, content=chat("half").content.replace(b"half", b"\\ud83d")
        )
        with pytest.raises(OddGenerator, match="no text"):
            voters.final("why?", ())
        service.instead = lambda body: completion(["yes"])
        with pytest.raises(OddGenerator, match="one message"):
            voters.final("why?", ())


def test_mechanisms_take_empty_votes_for_what_they_are() -> None:
    service = Service()
    rag = DpRag(Fraction(40), Fraction(20), 8, 1, len(VOCABULARY.tokens), VOCABULARY.end, 2)
    slots = ["good"] * 7 + ["bad"]
    with asking(service) as caller:
        voters = NextTokens(caller, VOCABULARY, PROMPT)
        first = rag.answer("why?", slots, voters, KeyedCoins(b"a" * 32))
        service.instead = lambda body: (
            httpx.Response(500) if "bad" in "".join(body["prompt"]) else None
        )
        again = rag.answer("why?", slots, voters, KeyedCoins(b"a" * 32))
        assert first.tokens == again.tokens == (1, 1)
        service.instead = lambda body: (
            httpx.Response(500) if "good" in "".join(body["prompt"]) else None
        )
        nobody = rag.answer("why?", ["good"] * 8, voters, KeyedCoins(b"a" * 32))
        assert len(nobody.tokens) == 2
        ksa = DpKsa(Fraction(9), Fraction(1, 10), Fraction(1, 100), 8, (1,))
        words = WholeAnswers(caller, PROMPT, PROMPT, tokens=4)
        service.instead = lambda body: None
        assert ksa.answer("why?", slots, words, KeyedCoins(b"a" * 32)).keywords == ("yes",)


def test_vocabularies_and_secrets() -> None:
    with pytest.raises(InvalidArgumentError, match="two tokens"):
        Vocabulary(("a", "a"), 0)
    with pytest.raises(InvalidArgumentError, match="no such token"):
        Vocabulary(("a",), 1)
    assert "s3cret" not in repr(GeneratorOptions(ADDRESS, "m", key="s3cret"))


def test_a_port_where_nobody_listens_is_a_dead_generator(unused_tcp_port_of: int) -> None:
    options = GeneratorOptions(f"http://127.0.0.1:{unused_tcp_port_of}/v1", "m", timeout=2.0)
    caller = Asking(options)
    try:
        with pytest.raises(GeneratorUnavailable, match="cannot be reached"):
            NextTokens(caller, VOCABULARY, PROMPT).next_tokens("why?", [()], ())
    finally:
        caller.close()


@pytest.fixture
def unused_tcp_port_of() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
