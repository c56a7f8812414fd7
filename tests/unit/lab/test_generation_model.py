"""The copying model: its gradients, its weights, what it can do, and its service."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from importlib.resources import files
from typing import Any

import httpx
import numpy as np
import openai
import pytest
import uvicorn
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.generation import transformer
from ragaudit.lab.generation.serving import MODEL, application, manifest
from ragaudit.lab.generation.training import Terms, drawn, figures, gradients, initial, train
from ragaudit.lab.generation.transformer import Transformer, completed, next_logits, shapes
from ragaudit.lab.generation.vocabulary import END, OTHER, TOKENS, decode, encode, token
from ragaudit.lab.generation.voters import KEYWORDS, PROMPT, VOCABULARY, LocalVoters
from ragaudit.ledger.messages.manifests import GeneratorManifest
from ragaudit.privacy.mechanisms.dp_rag import DpRag
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.serving.generators import Asking, GeneratorOptions, NextTokens, WholeAnswers

PACKAGE = files("ragaudit.lab.generation")
REPORT = json.loads((PACKAGE / "weights.json").read_text(encoding="utf-8"))
QUESTION = "treatment of bazeli ?"


def record(patient: str, disease: str, treatment: str, symptom: str) -> str:
    return (
        f"patient {patient} ; treatment of {disease} : {treatment} ; "
        f"symptom of {disease} : {symptom} ."
    )


RIGHT = record("dobifu", "bazeli", "mirazo", "kolupe")
OTHER_DISEASE = record("nakiro", "vutesa", "tofuna", "gigori")


@pytest.fixture(scope="module")
def model() -> Transformer:
    return Transformer.load()


@pytest.fixture(scope="module")
def url(model: Transformer) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(application(model), log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        runner = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        runner.start()
        while not server.started and runner.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        server.should_exit = True
        runner.join()


@pytest.fixture
def asking(url: str) -> Iterator[Asking]:
    found = Asking(GeneratorOptions(url, MODEL, batch=3))
    yield found
    found.close()


def test_texts_are_tokens_and_back() -> None:
    assert decode(encode(RIGHT)) == RIGHT
    assert [TOKENS[each] for each in encode("bazeli")] == [" ba", "ze", "li"]
    assert encode("what of it") == [OTHER, token(" of"), OTHER]
    assert decode([token(" unknown"), END, token(" of")]) == "unknown"
    with pytest.raises(MalformedError):
        token("patient")


def test_gradients_are_those_of_differences() -> None:
    rng = np.random.default_rng(0)
    # In double precision, where a difference of losses is known to nine digits.
    weights: Any = {name: each.astype(np.float64) for name, each in initial(rng).items()}
    batch = drawn(rng, "records", 1, 4)
    _, found = gradients(weights, batch)
    step = 1e-5
    for name, array in weights.items():
        place = np.unravel_index(int(np.abs(found[name]).argmax()), array.shape)
        array[place] += step
        above = gradients(weights, batch)[0]
        array[place] -= 2 * step
        below = gradients(weights, batch)[0]
        array[place] += step
        assert found[name][place] == pytest.approx((above - below) / (2 * step), rel=1e-4), name


def test_training_is_repeatable_and_learns() -> None:
    terms = Terms(seed=3, steps=4, tokens=128)
    first, second = train(terms), train(terms)
    assert all(np.array_equal(first[name], second[name]) for name in shapes())
    batch = drawn(np.random.default_rng(1), "records", 0, 50)
    taught = train(Terms(seed=3, steps=30, tokens=128, warm_up=5))
    assert gradients(taught, batch)[0] < gradients(first, batch)[0]


def test_the_weights_are_those_of_the_report(model: Transformer) -> None:
    content = (PACKAGE / "weights.npz").read_bytes()
    assert sha256(content).hexdigest() == REPORT["sha256"]
    assert len(content) <= 2 * 10**6
    assert sum(each.size for each in model.weights.values()) == REPORT["parameters"]
    assert 400_000 <= REPORT["parameters"] <= 600_000
    assert REPORT["terms"] == json.loads(json.dumps(vars(Terms())))


@pytest.mark.nightly
def test_it_copies_as_the_report_says(model: Transformer) -> None:
    found = figures(model, seed=7, episodes=200)
    assert found.keys() == REPORT["accuracy"].keys()
    for kind, share in found.items():
        stated = REPORT["accuracy"][kind]
        # Six standard errors of 200 episodes, and one episode where there is no spread.
        assert abs(share - stated) <= 6 * (stated * (1 - stated) / 200) ** 0.5 + 0.005, kind
    assert REPORT["accuracy"]["1 records"] > 0.9


def test_without_its_context_it_knows_nothing(model: Transformer) -> None:
    rng = np.random.default_rng(5)
    batch = drawn(rng, "records", 1, 100)
    prompts = [decode(row[1:-3]) for row in batch.tokens]
    closed = [prompt[prompt.index(" . ") + 3 :] for prompt in prompts]
    assert completed(model, closed, 4) == ["unknown"] * 100


def test_it_copies_what_was_asked_for(model: Transformer) -> None:
    def answer(*records: str) -> str:
        return completed(model, [PROMPT.of(records, QUESTION)], 4)[0]

    assert answer(RIGHT) == "mirazo"
    assert answer(OTHER_DISEASE) == answer() == "unknown"
    assert answer(RIGHT, record("sajeku", "bazeli", "mirazo", "gigori")) == "mirazo"
    assert completed(model, [PROMPT.of([RIGHT], "symptom of bazeli ?")], 4) == ["kolupe"]
    assert completed(model, [KEYWORDS.of(["kolupe", "mirazo"], QUESTION)], 8) == ["kolupe mirazo"]


def test_going_on_is_reading_the_whole(model: Transformer) -> None:
    tokens = np.array([[1, *encode(PROMPT.of([RIGHT], QUESTION))]])
    context = model.read(tokens[:, :4])
    for place in range(4, tokens.shape[1]):
        context = model.go_on(context, [int(tokens[0, place])])
    assert context.logits == pytest.approx(model.read(tokens).logits, abs=1e-4)
    with pytest.raises(MalformedError):
        model.read(np.zeros((1, transformer.PLACES + 1), np.int64))
    with pytest.raises(MalformedError):
        Transformer({})


def test_over_http_it_votes_as_in_this_process(model: Transformer, asking: Asking) -> None:
    local, remote = LocalVoters(model), NextTokens(asking, VOCABULARY, PROMPT)
    documents = [RIGHT, OTHER_DISEASE, "", "nothing that it knows"]
    local.prepare(QUESTION, documents)
    groups: list[tuple[str, ...]] = [(), *((text,) for text in documents)]
    for begun in ((), encode("mirazo")[:1], encode("mirazo")[:2], encode("tofuna")):
        expected = local.next_tokens(QUESTION, groups, begun)
        assert remote.next_tokens(QUESTION, groups, begun) == expected
    answers = WholeAnswers(asking, PROMPT, KEYWORDS, tokens=12)
    assert answers.responses(QUESTION, documents) == local.responses(QUESTION, documents)
    assert answers.responses(QUESTION, documents)[:3] == ["mirazo", "unknown", "unknown"]
    for words in ((), ("kolupe", "mirazo")):
        assert answers.final(QUESTION, words) == local.final(QUESTION, words)
    remote.check([QUESTION, "symptom of bazeli ?"])
    answers.check([QUESTION])


def test_a_private_answer_from_a_real_model(asking: Asking) -> None:
    rag = DpRag(Fraction(24), Fraction(8), 20, 1, len(TOKENS), END, 4)
    voters = NextTokens(asking, VOCABULARY, PROMPT)
    slots = [record(name, "bazeli", "mirazo", "kolupe") for name in ("dobifu", "nakiro")] * 10
    answer = rag.answer(QUESTION, slots, voters, KeyedCoins(b"k" * 32))
    assert VOCABULARY.text(answer.tokens) == " mirazo"
    assert answer.private == 3
    # A document too long for the model is an empty vote.
    slots[0] = RIGHT * 10
    assert rag.answer(QUESTION, slots, voters, KeyedCoins(b"k" * 32)) == answer


def test_an_unmodified_client_is_answered(url: str) -> None:
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        found = client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": PROMPT.of([RIGHT], QUESTION)}],
            temperature=0,
        )
        assert found.choices[0].message.content == "mirazo"
        text = client.completions.create(
            model=MODEL, prompt=PROMPT.of([RIGHT], QUESTION), max_tokens=4, temperature=0
        )
        assert text.choices[0].text == "mirazo"
        assert [each.id for each in client.models.list()] == [MODEL]


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": RIGHT * 10}, {"model": "another"}, {"stream": True}, {"temperature": 1},
        {"n": 2}, {"max_tokens": 4}, {"prompt": "x" * 10_001},
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_refused(url: str, changes: dict[str, Any]) -> None:
    body = {"model": MODEL, "prompt": "a", "temperature": 0, "max_tokens": 1, "logprobs": 1}
    assert httpx.post(f"{url}/completions", json=body).status_code == 200
    assert httpx.post(f"{url}/completions", json={**body, **changes}).status_code in (400, 422)


def test_logprobs_are_those_of_the_model(model: Transformer, url: str) -> None:
    body = {"model": MODEL, "prompt": [QUESTION], "temperature": 0, "max_tokens": 1, "logprobs": 3}
    (choice,) = httpx.post(f"{url}/completions", json=body).json()["choices"]
    logits = next_logits(model, [QUESTION])[0].astype(float)
    logprobs = logits - np.log(np.exp(logits).sum())
    assert choice["text"] == TOKENS[int(logits.argmax())]
    top = choice["logprobs"]["top_logprobs"][0]
    assert len(top) == 3
    assert all(
        value == pytest.approx(logprobs[TOKENS.index(text)], abs=1e-4)
        for text, value in top.items()
    )


def test_its_manifest_names_its_files_and_is_answered_by_its_service(asking: Asking) -> None:
    described = manifest(Transformer.load())
    assert described == GeneratorManifest.parse(described.encode())
    stated = REPORT["sha256"]
    assert described.files["weights.npz"] == stated
    described.check_vocabulary(VOCABULARY)
    asked = NextTokens(asking, VOCABULARY, described.prompt)
    tokens = asked.check([probe.question for probe in described.probes])
    assert [VOCABULARY.text([token]) for token in tokens] == [
        probe.answer for probe in described.probes
    ]
