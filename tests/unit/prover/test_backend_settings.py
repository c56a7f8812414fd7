"""Settings of backends and embedders: what means nothing, or isolates nobody, is refused."""

from pathlib import Path
from typing import Any

import pytest
from fake_chroma import FakeChroma
from pydantic import ValidationError
from ragaudit.embedders import registry
from ragaudit.embedders.base import NONE
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.prover.backend_settings import (
    BackendSettings,
    ChromaSettings,
    EmbedderSettings,
    absolute_backend,
    absolute_embedder,
)
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.backends.opening import check_dimensions, open_embedder
from ragaudit.prover.errors import MalformedDocument


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"kind": "pgvector"}, "section pgvector is missing"),
        ({"pgvector": {"dsn_file": "x", "tables": {"a": {"table": "t"}}}},
         "section pgvector is given, and the kind is store"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {}}}, "at least 1"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {
            "a": {"table": "t"}, "b": {"table": "t"}}}}, "two tenants share rows"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {
            "a": {"table": "t", "tenant_column": "c", "tenant_value": "1"},
            "b": {"table": "t", "tenant_column": "c", "tenant_value": "1"}}}}, "share rows"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {
            "a": {"table": "t", "tenant_column": "c", "tenant_value": "1"},
            "b": {"table": "t", "tenant_column": "d", "tenant_value": "2"}}}}, "share rows"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {
            "a": {"table": "t", "tenant_column": "c"}}}}, "a tenant column without its value"),
        ({"kind": "chroma", "chroma": {"url": "http://h", "collections": {"a": "doc", "b": "doc"}}},
         "two tenants have one collection"),
        ({"kind": "chroma", "chroma": {"url": "http://h?q=1", "collections": {"a": "doc"}}},
         "no password, query or fragment"),
        ({"kind": "chroma", "chroma": {"url": "http://h", "collections": {"a": "../x"}}},
         "pattern"),
        ({"kind": "pgvector", "pgvector": {"dsn_file": "x", "tables": {"a": {"table": "%s"}}}},
         "pattern"),
        ({"kind": "faiss"}, "'store', 'chroma' or 'pgvector'"),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_or_isolate_nobody(document: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        BackendSettings.model_validate(document)


def test_files_are_beside_the_settings() -> None:
    chroma = {"url": "http://h", "collections": {"a": "doc"}, "token_file": "t", "ca_file": "/c"}
    settings = BackendSettings.model_validate({"kind": "chroma", "chroma": chroma})
    found = absolute_backend(Path("/etc/ragaudit"), settings).chroma
    assert found is not None
    assert (found.token_file, found.ca_file) == (Path("/etc/ragaudit/t"), Path("/c"))
    table = {"dsn_file": "dsn", "tables": {"a": {"table": "t"}}}
    settings = BackendSettings.model_validate({"kind": "pgvector", "pgvector": table})
    pgvector = absolute_backend(Path("/etc/ragaudit"), settings).pgvector
    assert pgvector is not None and pgvector.dsn_file == Path("/etc/ragaudit/dsn")


ENDPOINT = {"url": "http://e/v1", "model": "m", "dimension": 2}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"name": "sentence-transformers"}, "folder is missing"),
        ({"name": "openai-compatible"}, "endpoint is missing"),
        ({"folder": "x"}, "folder is given, and the embedder is wordllama"),
        ({"name": "none", "endpoint": ENDPOINT}, "endpoint is given, and the embedder is none"),
        ({"name": "openai-compatible", "endpoint": {**ENDPOINT, "prompt_template": "x"}},
         "pattern"),
        ({"name": "openai-compatible", "endpoint": {**ENDPOINT, "dimension": 4000}}, "3072"),
        ({"name": "openai-compatible", "endpoint": {**ENDPOINT, "key": "s3cret"}}, "extra"),
    ],
)  # fmt: skip
def test_settings_of_another_embedder_are_refused(document: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        EmbedderSettings.model_validate(document)


def store(*vector: float) -> ChromaStore:
    server = FakeChroma({"a": ("x", None, list(vector))} if vector else {})
    settings = ChromaSettings(url="http://chroma.example", collections={"acme": "docs"})
    return ChromaStore(settings, server)


def test_without_an_embedder_the_stores_vectors_say_how_long_a_query_is() -> None:
    backend = store(1.0, 0.0)
    embedder = open_embedder(EmbedderSettings(name=NONE), backend)
    assert embedder.dimension == 2
    check_dimensions(backend, embedder)
    with pytest.raises(MalformedDocument, match="no vectors"):
        _ = open_embedder(EmbedderSettings(name=NONE), store()).dimension


def test_an_endpoint_is_opened_with_the_key_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret")
    (tmp_path / "key").chmod(0o600)
    settings = EmbedderSettings.model_validate(
        {"name": registry.ENDPOINT, "endpoint": {**ENDPOINT, "key_file": "key"}}
    )
    embedder = open_embedder(absolute_embedder(tmp_path, settings), store(1.0, 0.0))
    assert (embedder.name, embedder.dimension) == (registry.ENDPOINT, 2)
    with pytest.raises(MalformedSettings, match=r"vectors of 2 entries .*3, as the store has"):
        check_dimensions(store(1.0, 0.0, 0.0), embedder)


def test_an_unknown_embedder_is_refused_with_the_known_ones() -> None:
    with pytest.raises(MalformedSettings, match=r"unknown embedder 'bert' .*wordllama"):
        open_embedder(EmbedderSettings(name="bert"), store(1.0))
