"""Chroma as a backend, on its own server: what is read, in which order, and what cannot be told."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any

import chroma_server
import httpx
import numpy as np
import pytest
from ragaudit.circuits import metrics
from ragaudit.prover.backend_settings import ChromaSettings
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.backends.opening import check_metric
from ragaudit.prover.errors import BackendUnavailable, MalformedDocument

pytestmark = pytest.mark.slow

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"


@pytest.fixture(scope="module")
def server() -> Iterator[chroma_server.ChromaServer]:
    with chroma_server.ChromaServer() as server:
        yield server


class Collection:
    """A collection as an application fills it."""

    def __init__(
        self, server: chroma_server.ChromaServer, name: str, space: str = "cosine"
    ) -> None:
        self.http = httpx.Client(base_url=server.url, trust_env=False, timeout=120)
        self.name = name
        self.http.request("DELETE", f"{BASE}/{name}")
        made = self._post(BASE, {"name": name, "configuration": {"hnsw": {"space": space}}})
        self.place = f"{BASE}/{made['id']}"

    def _post(self, path: str, body: Any) -> Any:
        answer = self.http.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def add(self, ids: Sequence[str], vectors: Any, **more: Any) -> None:
        rows = np.asarray(vectors, dtype=np.float32).tolist()
        self._post(f"{self.place}/add", {"ids": list(ids), "embeddings": rows, **more})

    def delete(self, *ids: str) -> None:
        self._post(f"{self.place}/delete", {"ids": list(ids)})

    def nearest(self, vector: Any, count: int) -> list[str]:
        body = {"query_embeddings": [list(vector)], "n_results": count, "include": []}
        ids: list[str] = self._post(f"{self.place}/query", body)["ids"][0]
        return ids

    def close(self) -> None:
        self.http.close()


@pytest.fixture
def backend(server: chroma_server.ChromaServer) -> Iterator[ChromaStore]:
    with closing(
        ChromaStore(ChromaSettings(url=server.url, collections={"acme": "documents"}))
    ) as store:
        yield store


@pytest.fixture
def collection(server: chroma_server.ChromaServer) -> Iterator[Collection]:
    with closing(Collection(server, "documents")) as made:
        yield made


def test_all_documents_are_read_as_returned(backend: ChromaStore, collection: Collection) -> None:
    """More than a page of ids, in an order that is not theirs; half without text or metadata."""
    rng = np.random.default_rng(1)
    ids = [f"d{(n * 7919) % 2500:04}" for n in range(2500)]
    vectors = rng.normal(size=(2500, 24)).astype(np.float32)
    for at in range(0, 2500, 500):
        part = slice(at, at + 500)
        collection.add(
            ids[part],
            vectors[part],
            documents=[f"text of {name}" if n % 2 else None for n, name in enumerate(ids[part])],
            metadatas=[{"n": n, "x": n / 8, "b": True} if n % 2 else None for n in range(500)],
        )
    assert (backend.count("acme"), backend.dimension(), backend.metric("acme")) == (
        2500,
        24,
        "cosine",
    )
    documents = [document for page in backend.pages("acme", 400) for document in page]
    assert [document.id for document in documents] == sorted(ids)
    where = {name: n for n, name in enumerate(ids)}
    for document in documents[:200]:
        n = where[document.id] % 500
        assert document.content == (f"text of {document.id}" if n % 2 else "")
        expected = {"b": True, "n": n, "x": n / 8} if n % 2 else None
        assert (json.loads(document.attributes) if document.attributes else None) == expected
        assert document.vector is not None
        # As returned: a cosine collection may differ from what was inserted in the last bits.
        assert np.allclose(document.vector, vectors[where[document.id]], rtol=0, atol=1e-5)
    asked = ["d0007", "none", "d0003", "d2499"]
    found = backend.fetch("acme", asked)
    assert [document and document.id for document in found] == ["d0007", None, "d0003", "d2499"]


@pytest.mark.parametrize(
    ("space", "metric"), [("cosine", "cosine"), ("ip", "inner-product"), ("l2", "l2")]
)
def test_integers_rank_as_the_store_does(
    server: chroma_server.ChromaServer, space: str, metric: str
) -> None:
    """Of 400 neighbors one may differ: by rounding, or as Chroma's search is approximate."""
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(300, 32)).astype(np.float32)
    if space == "l2":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    made = Collection(server, f"metric-{space}", space)
    ids = [f"r{n:03}" for n in range(300)]
    made.add(ids, vectors)
    settings = ChromaSettings(url=server.url, collections={"acme": made.name})
    store = ChromaStore(settings)
    check_metric(store, metric)
    rows = np.array([document.vector for page in store.pages("acme", 300) for document in page])
    largest = float(np.linalg.norm(rows, axis=1).max())
    norm = Decimal(str(round(largest + 0.01, 2))) if space == "ip" else None
    integers = metrics.scaled(rows, metric, norm, norm_bound=4095).astype(np.int64)
    same = 0
    for drawn in rng.normal(size=(40, 32)):
        query = drawn / np.linalg.norm(drawn)
        exact = integers @ np.rint(query * 4095).astype(np.int64)
        best = np.argsort(-exact, kind="stable")[:10].tolist()
        same += len({ids[row] for row in best} & set(made.nearest(query.tolist(), 10)))
    assert same >= 399
    made.close()
    store.close()


def test_writes_pass_through_and_show_in_the_next_read(
    backend: ChromaStore, collection: Collection
) -> None:
    collection.add(["a", "b"], [[1, 0], [0, 1]], documents=["x", "y"])
    added = backend.forward_write("acme", "add", b'{"ids":["c"],"embeddings":[[0.5,0.5]]}')
    assert added.status == 201
    changed = backend.forward_write("acme", "update", b'{"ids":["a"],"documents":["changed"]}')
    assert changed.status == 200
    assert backend.forward_write("acme", "delete", b'{"ids":["b"]}').status == 200
    upserted = backend.forward_write("acme", "upsert", b'{"ids":["d"],"embeddings":[[1,1]]}')
    assert upserted.status == 200
    documents = [document for page in backend.pages("acme", 10) for document in page]
    assert [(it.id, it.content) for it in documents] == [("a", "changed"), ("c", ""), ("d", "")]
    refused = backend.forward_write("acme", "add", b'{"ids":["e"],"embeddings":[[1,1,1]]}')
    assert refused.status == 400
    assert json.loads(refused.body)["error"] == "InvalidArgumentError"
    assert backend.forward_write("acme", "add", b'{"ids"').status in {400, 422}


def test_a_write_between_two_pages_refuses_the_read(
    backend: ChromaStore, collection: Collection
) -> None:
    collection.add(["a", "b", "c"], [[1, 0], [0, 1], [1, 1]])
    with pytest.raises(BackendUnavailable, match="changed while it was read"):
        for page in backend.pages("acme", 1):
            if page[0].id == "a":
                collection.delete("c")
    with pytest.raises(BackendUnavailable, match="changed while it was read"):
        for page in backend.pages("acme", 2):
            collection.add([f"{page[0].id}-2"], [[1, 1]])


def test_a_collection_made_anew_is_the_tenants_again(
    server: chroma_server.ChromaServer, backend: ChromaStore, collection: Collection
) -> None:
    collection.add(["a", "b"], [[1, 0], [0, 1]], documents=["old", "old"])
    assert backend.count("acme") == 2
    again = Collection(server, collection.name)
    with pytest.raises(MalformedDocument, match="no vectors"):
        backend.dimension()
    again.add(["a"], [[1, 0]], documents=["new"])
    assert [it and it.content for it in backend.fetch("acme", ["a", "b"])] == ["new", None]
    again.close()


def test_a_stopped_server_is_unavailable_and_found_again(
    server: chroma_server.ChromaServer, collection: Collection
) -> None:
    collection.add(["a"], [[1, 0]])
    port = server.port
    store = ChromaStore(ChromaSettings(url=server.url, collections={"acme": collection.name}))
    store.check()
    server.stop()
    try:
        with pytest.raises(BackendUnavailable) as caught:
            store.fetch("acme", ["a"])
        assert str(port) not in str(caught.value)
    finally:
        server.start()
        store.close()
    moved = ChromaStore(ChromaSettings(url=server.url, collections={"acme": collection.name}))
    assert moved.fetch("acme", ["a"])[0] is not None
    moved.close()
