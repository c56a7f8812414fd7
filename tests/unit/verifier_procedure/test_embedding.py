"""The embedder that a verifier has of its own: a service that it asks for the committed probes."""

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from integrity_scene import policy_value
from ragaudit.embedders import endpoint, registry
from ragaudit.embedders.base import EmbedderUnavailable
from ragaudit.embedders.endpoint import EndpointEmbedder, EndpointOptions
from ragaudit.encoding import canonical_json
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.ledger.messages.items import EMBEDDER, POLICY
from ragaudit.ledger.messages.manifests import EmbedderManifest
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.models import CommittedEmbedder, committed_embedder
from ragaudit.verifier.procedure import Status, run
from ragaudit.verifier.settings import EmbedderSettings, EndpointSettings, load
from raw_server import dripping

D = 8


class Service:
    """Answers each text of a known model with a vector of its own."""

    def __init__(self) -> None:
        self.asked = 0
        self.exchanged = False

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        body = json.loads(request.content)
        data = []
        for index, text in enumerate(body["input"]):
            seed = sum((n + 1) * byte for n, byte in enumerate((body["model"] + text).encode()))
            made = np.random.default_rng(seed + self.exchanged).normal(size=D)
            data.append({"index": index, "embedding": made.tolist()})
        return httpx.Response(200, json={"data": data})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service behind every address."""
    service = Service()

    def options(**members: Any) -> EndpointOptions:
        return EndpointOptions(**{**members, "transport": httpx.MockTransport(service)})

    # Imported before the options are exchanged, as its types are.
    importlib.import_module("ragaudit.embedders.endpoint")
    monkeypatch.setattr(endpoint, "EndpointOptions", options)
    return service


def committed(service: Service) -> EmbedderManifest:
    transport = httpx.MockTransport(service)
    options = EndpointOptions("http://provider.example/v1", "m", D, transport=transport)
    return EndpointEmbedder(options).manifest()


def evidence(manifest: EmbedderManifest) -> Evidence:
    policy = canonical_json.dumps(policy_value(embedder_tolerance=64))
    return Evidence.of({EMBEDDER: manifest.encode(), POLICY: policy})


OWN = EmbedderSettings(
    endpoint=EndpointSettings(url="http://auditor.example/v1", models=("other", "m"))
)


def test_a_service_of_the_verifiers_own_is_asked_for_the_probes(service: Service) -> None:
    manifest = committed(service)
    before = service.asked
    found = committed_embedder(evidence(manifest), OWN)
    assert found is not None
    assert service.asked == before + 1
    assert found.digest == manifest.digest()
    assert found.embed("a question", 4095).dtype == np.int16


def test_an_exchanged_model_is_not_the_committed_embedder(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = committed(service)
    service.exchanged = True
    assert committed_embedder(evidence(manifest), OWN) is None
    assert "another embedding than the committed one" in caplog.text


def test_a_model_that_the_verifier_does_not_name_is_not_asked(service: Service) -> None:
    manifest = committed(service)
    before = service.asked
    tuned = replace(manifest, schema={**manifest.schema, "model": "of the provider's making"})
    assert committed_embedder(evidence(tuned), OWN) is None
    assert committed_embedder(evidence(manifest)) is None
    assert service.asked == before


def test_a_service_that_sends_its_head_byte_by_byte_has_an_end() -> None:
    manifest = committed(Service())
    with dripping() as (url, asked):
        own = EndpointSettings(url=url, models=("m",), timeout_seconds=0.05)
        assert committed_embedder(evidence(manifest), EmbedderSettings(endpoint=own)) is None
        assert asked.is_set()


def test_authorities_must_be_certificates(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "ca.pem").write_text("none")
    own = EndpointSettings(url="https://a.example", models=("m",), ca_file=tmp_path / "ca.pem")
    found = committed_embedder(evidence(committed(Service())), EmbedderSettings(endpoint=own))
    assert found is None and "no certificates" in caplog.text


def test_files_cannot_stand_for_a_service(service: Service) -> None:
    """The name of an embedder with a kind of another: neither files nor probes bind it."""
    listed = EmbedderManifest(registry.ENDPOINT, D, "{text}", {"model": "m"}, {"a": "0" * 64})
    assert committed_embedder(evidence(listed), OWN) is None
    assert service.asked == 0


def test_a_window_without_an_embedder_needs_none(caplog: pytest.LogCaptureFixture) -> None:
    assert committed_embedder(evidence(EmbedderManifest.of_none(D)), OWN) is None
    assert not caplog.records


def test_settings_of_a_verifier_name_its_service(tmp_path: Path) -> None:
    path = tmp_path / "verifier.yaml"
    path.write_text(
        "name: regulator.example/cosigner\ndata: data\nsecrets: secrets\nembedder:\n"
        "  folder: models/mini\n  endpoint:\n    url: https://embed.example/v1\n"
        "    models: [text-embedding-3-small]\n    key_file: secrets/embedding-key\n"
    )
    found = load(path).embedder
    assert found.folder == tmp_path / "models/mini"
    assert found.endpoint is not None
    assert found.endpoint.key_file == tmp_path / "secrets/embedding-key"


def test_a_service_that_does_not_answer_accuses_nobody() -> None:
    window = IntegrityWindow()
    toy = window.embedder
    assert toy is not None

    class Gone:
        digest = toy.digest

        def embed(self, text: str, norm_bound: int = 127) -> Any:
            raise EmbedderUnavailable("the embedding service cannot be reached")

        def embed_row(self, text: str, **terms: Any) -> Any:
            return self.embed(text)

    gone: CommittedEmbedder = Gone()
    arguments: dict[str, Any] = {"engine": engine("core"), "pins": window.pins}
    outcome = run(Evidence.of(window.items()), embedder=gone, **arguments)
    assert outcome.check("embedding").status is Status.NOT_ESTABLISHED
    assert "no embedder at hand compared the text" in outcome.check("embedding").reason
    assert outcome.failed == ()
