"""OpenAI-compatible endpoints: what is asked, what is believed, what an auditor replays."""

import json
import logging
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from ragaudit.embedders import endpoint, registry
from ragaudit.embedders.base import EmbedderUnavailable, checked_embeddings
from ragaudit.embedders.endpoint import EndpointEmbedder, EndpointOptions
from ragaudit.embedders.registry import EmbedderOptions
from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.ledger.messages.manifests import EmbedderManifest

ADDRESS = "http://embed.internal.example/v1"
D = 8


def vector(text: str, model: str = "m") -> list[float]:
    seed = sum((n + 1) * byte for n, byte in enumerate((model + text).encode()))
    return [float(x) for x in np.random.default_rng(seed).normal(size=D)]


class Service:
    """Answers each text with a vector of its own, in reverse order."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.instead: Callable[[dict[str, Any]], httpx.Response | None] = lambda body: None
        self.shift = 0.0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        body = json.loads(request.content)
        instead = self.instead(body)
        if instead is not None:
            return instead
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": [x + self.shift for x in vector(text, body["model"])],
            }
            for index, text in enumerate(body["input"])
        ]
        return httpx.Response(200, json={"object": "list", "data": data[::-1], "usage": {}})

    @property
    def texts(self) -> list[str]:
        return [text for request in self.requests for text in json.loads(request.content)["input"]]


def options(service: Service, **changes: Any) -> EndpointOptions:
    members: dict[str, Any] = {"url": ADDRESS, "model": "m", "dimension": D}
    return EndpointOptions(**{**members, "transport": httpx.MockTransport(service), **changes})


def test_each_text_is_sent_once_and_gets_its_own_vector() -> None:
    service = Service()
    embedder = EndpointEmbedder(
        options(service, batch=3, key="s3cret", prompt_template="q: {text}")
    )
    texts = [f"text {{0}} {n}" for n in range(8)]
    found = embedder.embed(texts)
    expected = np.array([vector("q: " + text) for text in texts], dtype=np.float32)
    assert np.array_equal(found, expected)
    assert service.texts == ["q: " + text for text in texts]
    assert len(service.requests) == 3
    assert str(service.requests[0].url) == f"{ADDRESS}/embeddings"
    assert service.requests[0].headers["authorization"] == "Bearer s3cret"
    body = json.loads(service.requests[0].content)
    assert body.keys() == {"model", "input", "encoding_format"}
    assert "s3cret" not in repr(embedder) + repr(options(service, key="s3cret"))


def test_a_length_is_asked_for_where_the_settings_say_so() -> None:
    service = Service()
    EndpointEmbedder(options(service, send_dimension=True)).embed(["x"])
    assert json.loads(service.requests[0].content)["dimensions"] == D


def answer(data: Any) -> httpx.Response:
    return httpx.Response(200, json={"data": data})


GOOD = [1.0] * D


@pytest.mark.parametrize(
    "bad",
    [
        httpx.Response(500, text="secret text"), httpx.Response(401), httpx.Response(429),
        httpx.Response(302, headers={"location": "http://a"}), httpx.Response(200, text="<"),
        httpx.Response(200, json=[]), httpx.Response(200, json={"data": {}}), answer([]),
        answer([{"index": 0, "embedding": GOOD}] * 2), answer([{"index": 1, "embedding": GOOD}]),
        answer([{"index": -1, "embedding": GOOD}]), answer([{"index": 0, "embedding": "AAAA"}]),
        answer([{"embedding": GOOD}]), answer([{"index": 0, "embedding": GOOD[1:]}]),
        answer([{"index": 0, "embedding": [None, *GOOD[1:]]}]),
        answer([{"index": 0, "embedding": [[1.0]] * D}]),
        httpx.Response(200, headers={"content-encoding": "br"}, content=b"x"),
        httpx.Response(200, text="[" * 100_000),
    ],
)  # fmt: skip
def test_odd_answers_are_unavailable_and_name_no_address(
    bad: httpx.Response, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service()
    service.instead = lambda body: bad
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises((EmbedderUnavailable, MalformedError)) as caught,
    ):
        EndpointEmbedder(options(service)).embed(["what nobody may read"])
    assert "embed.internal" not in str(caught.value)
    assert "nobody may read" not in str(caught.value) + caplog.text
    assert "secret text" not in str(caught.value) + caplog.text


def test_an_unreachable_service_is_unavailable() -> None:
    def refuse(body: dict[str, Any]) -> httpx.Response:
        raise httpx.ConnectError("refused")

    service = Service()
    service.instead = refuse
    with pytest.raises(EmbedderUnavailable, match="the embedding service cannot be reached"):
        EndpointEmbedder(options(service)).embed(["x"])


def test_an_endless_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MAX_ANSWER_BYTES", 10)
    with pytest.raises(EmbedderUnavailable, match="too long"):
        EndpointEmbedder(options(Service())).embed(["x"])


def test_a_text_without_embedding_is_named() -> None:
    service = Service()
    service.instead = lambda body: answer([{"index": 0, "embedding": [0.0] * D}])
    with pytest.raises(MalformedError, match="text 0: null embedding"):
        EndpointEmbedder(options(service)).embed(["x"])


def test_embeddings_without_integers_are_named_however_long_the_others_are() -> None:
    """The squares of the first overflow, those of the second vanish."""
    good = np.array([[3e38, 3e38], [1e-45, 0], [1, -1]], dtype=np.float32)
    assert checked_embeddings(good, 3, 2) is good
    for odd, message in ((np.nan, "NaN or infinity"), (-np.inf, "NaN or inf"), (0, "null")):
        for row in range(3):
            bad = good.copy()
            bad[row] = [0, odd]
            with pytest.raises(MalformedError, match=f"text {row}: .*{message}"):
                checked_embeddings(bad, 3, 2)


def test_the_manifest_commits_to_model_and_probes() -> None:
    service = Service()
    embedder = EndpointEmbedder(options(service))
    manifest = embedder.manifest()
    assert EmbedderManifest.parse(manifest.encode()) == manifest
    assert manifest.kind == "endpoint" and manifest.schema["model"] == "m"
    assert tuple(probe.text for probe in manifest.probes) == endpoint.PROBES
    asked = len(service.requests)
    assert embedder.manifest() is manifest and len(service.requests) == asked
    # The address may move; the model may not.
    assert EndpointEmbedder(options(service, url="http://b")).manifest() == manifest
    assert EndpointEmbedder(options(service, model="n")).manifest().digest() != manifest.digest()


def test_an_auditor_replays_the_probes_with_an_endpoint_of_its_own() -> None:
    committed = EndpointEmbedder(options(Service())).manifest()
    service = Service()
    service.shift = 1e-4
    mine = options(service, url="http://mine", model="", dimension=1, prompt_template="no: {text}")
    embedder = endpoint.replayed(committed, mine, tolerance=64)
    assert service.texts == list(endpoint.PROBES)
    assert embedder.manifest().digest() == committed.digest()
    assert embedder.embed(["again"]).shape == (1, D)


def test_an_exchanged_model_is_found_by_its_probes() -> None:
    committed = EndpointEmbedder(options(Service())).manifest()
    service = Service()
    service.shift = 0.2
    with pytest.raises(RejectedError, match="probe 0: the service gives another embedding"):
        endpoint.replayed(committed, options(service), tolerance=64)
    service.instead = lambda body: answer(
        [{"index": n, "embedding": [0.0] * D} for n in range(len(body["input"]))]
    )
    with pytest.raises(RejectedError, match="a probe has no embedding"):
        endpoint.replayed(committed, options(service), tolerance=64)


def test_what_cannot_be_replayed_says_why() -> None:
    committed = EndpointEmbedder(options(Service())).manifest()
    with pytest.raises(EmbedderUnavailable, match=r"no endpoint .*serves m"):
        endpoint.replayed(committed, None, tolerance=64)
    with pytest.raises(UnsupportedError, match="'none' is no endpoint"):
        endpoint.replayed(EmbedderManifest.of_none(D), options(Service()), tolerance=64)
    other = EndpointEmbedder(options(Service(), dimension=D + 1))
    with pytest.raises(RejectedError, match=f"embeddings of {D + 1} entries"):
        endpoint.check_probes(committed, other, tolerance=64)


def test_the_registry_knows_what_each_embedder_needs() -> None:
    found = registry.load(registry.ENDPOINT, EmbedderOptions(endpoint=options(Service())))
    assert found.name == registry.ENDPOINT == endpoint.NAME
    for name, words in (
        ("openai-compatible", "no endpoint is named"),
        ("sentence-transformers", "no model is named"),
        ("none", "nothing says how long vectors are"),
    ):
        assert name in registry.names()
        with pytest.raises(EmbedderUnavailable, match=words):
            registry.load(name)


def test_without_an_embedder_texts_are_refused_and_d_is_the_stores() -> None:
    asked: list[int] = []
    embedder = registry.load("none", EmbedderOptions(dimension=lambda: asked.append(1) or 384))  # type: ignore[func-returns-value]
    assert not asked
    assert embedder.dimension == embedder.manifest().dimension == 384 and len(asked) == 1
    assert embedder.manifest() == EmbedderManifest.of_none(384)
    with pytest.raises(MalformedError, match="no embedder is configured"):
        embedder.embed(["a text"])
