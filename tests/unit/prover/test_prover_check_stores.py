"""`ragaudit prover check` in front of Chroma's own server: each mistake of a set-up, in words."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chroma_server
import httpx
import pytest
import yaml
from ragaudit.prover.command.cli import app
from ragaudit.prover.command.set_up import set_up
from typer.testing import CliRunner

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"
VECTOR_WINDOW = {"privacy": "none", "query_kinds": ["vector"]}


@pytest.fixture(scope="module")
def chroma() -> Iterator[chroma_server.ChromaServer]:
    with chroma_server.ChromaServer() as server:
        for name, space, dimension in (
            ("docs", "cosine", 8),
            ("far", "l2", 8),
            ("wide", "cosine", 9),
        ):
            fill(server.url, name, space, dimension)
        yield server


def fill(url: str, name: str, space: str, dimension: int) -> None:
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        body = {"name": name, "configuration": {"hnsw": {"space": space}}}
        made = client.post(BASE, json=body).raise_for_status().json()
        rows = [[float(n == at) + 0.25 for n in range(dimension)] for at in range(dimension)]
        documents = {
            "ids": [f"d{n}" for n in range(len(rows))],
            "documents": [f"text {n}" for n in range(len(rows))],
            "embeddings": rows,
        }
        client.post(f"{BASE}/{made['id']}/add", json=documents).raise_for_status()


@pytest.fixture
def prover(tmp_path: Path) -> Path:
    made = set_up(tmp_path / "prover", provider="example.org", verifier="http://127.0.0.1:1")
    return made.settings


def check(settings: Path, url: str, collections: dict[str, str], **window: Any) -> Any:
    """What the command finds with Chroma in the settings."""
    document = yaml.safe_load(settings.read_text())
    document["backend"] = {"kind": "chroma", "chroma": {"url": url, "collections": collections}}
    document["window"] = window or VECTOR_WINDOW
    # Vectors that applications send are of the store's own model, whichever that is.
    if document["window"].get("query_kinds") == ["vector"]:
        document["embedder"] = {"name": "none"}
    settings.write_text(yaml.safe_dump(document))
    done = CliRunner().invoke(app, ["check", "--settings", str(settings), "--json"])
    assert done.exit_code == 1, done.output  # the verifier is not there, at least
    return json.loads(done.stdout)


def test_a_good_set_up_is_good(prover: Path, chroma: chroma_server.ChromaServer) -> None:
    found = check(prover, chroma.url, {"shop": "docs"})
    for name in ("backend", "documents", "dimension", "metric", "store", "permissions"):
        assert found[name] == "good", name


def test_a_store_that_is_away_is_told(prover: Path) -> None:
    found = check(prover, "http://127.0.0.1:1", {"shop": "docs"})
    assert found["store"] == "good"
    for name in ("backend", "documents", "dimension", "metric"):
        assert "vector store" in found[name]["what"], name


def test_a_missing_collection_is_told(prover: Path, chroma: chroma_server.ChromaServer) -> None:
    found = check(prover, chroma.url, {"shop": "docs", "bank": "nope"})["backend"]
    assert "does not show the collection" in found["what"] and found["where"] == "tenant bank"
    assert found["expected"] == "a collection of this name, and a token that may read it"


def test_another_metric_is_told(prover: Path, chroma: chroma_server.ChromaServer) -> None:
    found = check(prover, chroma.url, {"shop": "far"})
    assert found["metric"]["where"] == "window.metric" and found["backend"] == "good"
    assert found["metric"]["what"] == "the store of tenant shop ranks by l2"


def test_vectors_of_several_lengths_are_told(
    prover: Path, chroma: chroma_server.ChromaServer
) -> None:
    found = check(prover, chroma.url, {"shop": "docs", "bank": "wide"})["dimension"]
    assert found["what"] and found["where"]


def test_an_embedder_of_another_length_is_told(
    prover: Path, chroma: chroma_server.ChromaServer
) -> None:
    found = check(prover, chroma.url, {"shop": "docs"}, privacy="none")["dimension"]
    assert found["what"] == "the embedder gives vectors of 256 entries"
    assert found["expected"].startswith("8, as the store has")


def test_too_few_rows_are_told(prover: Path, chroma: chroma_server.ChromaServer) -> None:
    found = check(prover, chroma.url, {"shop": "docs"}, **VECTOR_WINDOW, top_k_max=8)["documents"]
    assert found["what"] == "8 documents" and found["expected"] == "more than top_k_max = 8"
