"""The libraries that applications use, as they come: only address and key are the sidecar's."""

import asyncio
import gc
import json
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import chroma_server
import pytest
from surface_app import MemoryPort, serving, surface_app

# Chroma's client leaves its connections to the collector of garbage.
LEAVES = "ignore::pytest.PytestUnraisableExceptionWarning"
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings(LEAVES)]
VECTOR = [0.5, 0.25, -1.0, 0.0]


@pytest.fixture(scope="module")
def port() -> MemoryPort:
    return MemoryPort()


@pytest.fixture(scope="module")
def address(port: MemoryPort) -> Iterator[int]:
    with serving(surface_app(port)) as number:
        yield number
    gc.collect()


# --- Chroma -----------------------------------------------------------------------------------


def chroma_client(number: int, key: str = "key-acme") -> Any:
    chromadb = pytest.importorskip("chromadb", reason="chromadb is missing")
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    headers = {"x-chroma-token": key}
    return chromadb.HttpClient(host="127.0.0.1", port=number, headers=headers, settings=settings)


def chroma_program(client: Any) -> dict[str, Any]:
    """What an application does: the same against the store and against the sidecar."""
    collection = client.get_or_create_collection("handbook", embedding_function=None)
    nearest = collection.query(query_embeddings=[VECTOR, [1, 0, 0, 0]], n_results=4)
    filtered = collection.query(
        query_embeddings=[VECTOR],
        n_results=3,
        where={"$and": [{"n": {"$gte": 10}}, {"s": {"$ne": "x"}}]},
        include=["metadatas", "embeddings"],
    )
    again = client.get_collection("handbook", embedding_function=None)
    shown = again.get(ids=nearest["ids"][0], include=["documents", "metadatas"])
    return {
        "name": collection.name,
        "collections": [each.name for each in client.list_collections()],
        "count": collection.count(),
        "ids": nearest["ids"] + filtered["ids"],
        "documents": nearest["documents"],
        "metadatas": nearest["metadatas"],
        "filtered": filtered["documents"],
        "get": dict(zip(shown["ids"], shown["documents"], strict=True)),
        "distances": nearest["distances"],
        "dimension": len(filtered["embeddings"][0][0]),
    }


def test_a_program_of_chroma_does_not_see_the_difference(port: MemoryPort, address: int) -> None:
    with chroma_server.ChromaServer() as server:
        rows = port.rows["acme"]
        with chroma_client(server.port) as store:
            collection = store.create_collection(
                "handbook", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )
            collection.add(
                ids=[row.id for row in rows],
                embeddings=[list(row.vector) for row in rows],
                documents=[row.content for row in rows],
                metadatas=[dict(row.metadata) for row in rows],
            )
            real = chroma_program(store)
    with chroma_client(address) as client:
        ours = chroma_program(client)
    for name in real.keys() - {"distances"}:
        assert ours[name] == real[name], name
    for mine, theirs in zip(ours["distances"], real["distances"], strict=True):
        assert mine == pytest.approx(theirs, abs=1e-6)


def test_writes_of_chromas_client_pass_through(port: MemoryPort, address: int) -> None:
    before = len(port.written)
    with chroma_client(address) as client:
        collection = client.get_collection("handbook", embedding_function=None)
        collection.add(ids=["new"], embeddings=[VECTOR], documents=["text"])
        collection.upsert(ids=["new"], embeddings=[VECTOR], metadatas=[{"n": 1}])
        collection.update(ids=["new"], documents=["other"], embeddings=[VECTOR])
        collection.delete(ids=["new"])
        collection.delete(where={"source": "a.pdf"})
    operations = ["add", "upsert", "update", "delete", "delete"]
    assert [name for _, name, _ in port.written[before:]] == operations
    assert all(tenant == "acme" for tenant, _, _ in port.written)


def test_what_chromas_client_is_refused(port: MemoryPort, address: int) -> None:
    with chroma_client(address) as client:
        collection = client.get_collection("handbook", embedding_function=None)
        asked = len(port.asked)
        refused: list[Callable[[], Any]] = [
            lambda: collection.query(
                query_embeddings=[VECTOR], n_results=2, where_document={"$contains": "salary"}
            ),
            lambda: collection.query(query_embeddings=[VECTOR], n_results=2, ids=["acme-1"]),
            lambda: collection.query(query_embeddings=[VECTOR], n_results=2, where={"secret": 1}),
            lambda: collection.query(query_embeddings=[VECTOR], n_results=21),
            collection.get,
            lambda: collection.get(where={"n": 1}),
            lambda: collection.get(where_document={"$contains": "salary"}),
            collection.peek,
            lambda: collection.delete(where_document={"$contains": "salary"}),
            lambda: collection.modify(name="other"),
            lambda: collection.fork("other"),
            lambda: client.delete_collection("handbook"),
            lambda: client.create_collection("other", embedding_function=None),
            lambda: client.get_collection("manual", embedding_function=None),
            client.reset,
        ]
        for call in refused:
            with pytest.raises(Exception) as caught:
                call()
            assert "Traceback" not in str(caught.value) and str(caught.value)
        assert len(port.asked) == asked


def test_chromas_client_says_that_the_key_is_nobodys(address: int) -> None:
    with pytest.raises(Exception, match="unknown API key"), chroma_client(address, "nobody"):
        pass


# --- Qdrant -----------------------------------------------------------------------------------


def qdrant(number: int) -> Any:
    qdrant_client = pytest.importorskip("qdrant_client", reason="qdrant-client is missing")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Api key is used with an insecure")
        client = qdrant_client.QdrantClient(url=f"http://127.0.0.1:{number}", api_key="key-acme")
    for thread in threading.enumerate():
        # It asks for the version in a thread that nothing waits for: the server may be gone.
        if "_check_compatibility" in thread.name:
            thread.join(30)
    return client


def qdrant_program(client: Any) -> dict[str, Any]:
    """What an application does: the same against the store and against the sidecar."""
    models = pytest.importorskip("qdrant_client.models")
    condition = models.Filter(
        must=[models.FieldCondition(key="metadata.n", range=models.Range(gte=10))],
        must_not=[models.FieldCondition(key="metadata.s", match=models.MatchValue(value="x"))],
    )
    nearest = client.query_points("handbook", query=VECTOR, limit=4, with_payload=True).points
    filtered = client.query_points(
        "handbook", query=VECTOR, limit=3, query_filter=condition, with_vectors=True
    ).points
    requests = [
        models.QueryRequest(query=[1.0, 0.0, 0.0, 0.0], limit=2, with_payload=True),
        models.QueryRequest(query=VECTOR, limit=1),
    ]
    batch = client.query_batch_points("handbook", requests)
    kept = client.retrieve("handbook", [nearest[0].id, nearest[1].id])
    info = client.get_collection("handbook")
    return {
        "exists": client.collection_exists("handbook"),
        "collections": [each.name for each in client.get_collections().collections],
        "size": (info.config.params.vectors.size, info.config.params.vectors.distance),
        "points": info.points_count,
        "count": client.count("handbook").count,
        "nearest": [(point.id, point.payload) for point in nearest],
        "filtered": [point.id for point in filtered],
        "dimension": len(filtered[0].vector),
        "batch": [[(point.id, point.payload) for point in one.points] for one in batch],
        "kept": {point.id: point.payload for point in kept},
        "scores": [point.score for point in nearest],
    }


def test_a_program_of_qdrant_does_not_see_the_difference(port: MemoryPort, address: int) -> None:
    qdrant_client = pytest.importorskip("qdrant_client", reason="qdrant-client is missing")
    models = qdrant_client.models
    rows = port.rows["acme"]
    names = [str(number) for number in range(len(rows))]
    with serving(surface_app(numbered := MemoryPort())) as number:
        # Its points have numbers for ids.
        numbered.rows["acme"] = [
            type(row)(name, row.content, row.metadata, row.vector)
            for name, row in zip(names, rows, strict=True)
        ]
        local = qdrant_client.QdrantClient(":memory:")
        local.create_collection(
            "handbook",
            vectors_config=models.VectorParams(size=4, distance=models.Distance.COSINE),
        )
        local.upsert(
            "handbook",
            [
                models.PointStruct(
                    id=int(name),
                    vector=list(row.vector),
                    payload={"page_content": row.content, "metadata": dict(row.metadata)},
                )
                for name, row in zip(names, rows, strict=True)
            ],
        )
        with closing(local), closing(qdrant(number)) as client:
            real, ours = qdrant_program(local), qdrant_program(client)
    for name in real.keys() - {"scores"}:
        assert ours[name] == real[name], name
    assert ours["scores"] == pytest.approx(real["scores"], abs=1e-5)


def test_what_qdrants_client_is_refused(port: MemoryPort, address: int) -> None:
    qdrant_client = pytest.importorskip("qdrant_client", reason="qdrant-client is missing")
    models = qdrant_client.models
    client = qdrant(address)
    asked, name = len(port.asked), "handbook"
    one = models.Filter(
        must=[models.FieldCondition(key="metadata.n", match=models.MatchValue(value=1))]
    )
    point = models.PointStruct(id=1, vector=VECTOR)
    prefetch = models.Prefetch(query=VECTOR)
    refused: list[Callable[[], Any]] = [
        lambda: client.scroll(name),
        lambda: client.count(name, count_filter=one),
        lambda: client.facet(name, key="metadata.s"),
        lambda: client.query_points(name, query=1),
        lambda: client.query_points(name),
        lambda: client.query_points(
            name, prefetch=prefetch, query=models.FusionQuery(fusion=models.Fusion.RRF)
        ),
        lambda: client.query_points(
            name, query=models.RecommendQuery(recommend=models.RecommendInput(positive=[1]))
        ),
        lambda: client.query_points(name, query=VECTOR, offset=1),
        lambda: client.query_points(name, query=VECTOR, score_threshold=1.5),
        lambda: client.query_points_groups(name, group_by="metadata.s", query=VECTOR),
        lambda: client.search_matrix_pairs(name),
        lambda: client.upsert(name, [point]),
        lambda: client.delete(name, [1]),
        lambda: client.delete_collection(name),
        lambda: client.create_snapshot(name),
        lambda: client.get_collection("manual"),
    ]
    for call in refused:
        with pytest.raises(qdrant_client.http.exceptions.UnexpectedResponse) as caught:
            call()
        assert "error" in json.loads(caught.value.content)["status"]
    assert client.collection_exists("manual") is False
    client.close()
    assert len(port.asked) == asked


# --- OpenAI -----------------------------------------------------------------------------------


def openai_client(address: int, key: str = "key-acme") -> Any:
    openai = pytest.importorskip("openai", reason="openai is missing")
    return openai.OpenAI(base_url=f"http://127.0.0.1:{address}/v1", api_key=key)


def test_a_program_of_openai(port: MemoryPort, address: int) -> None:
    with openai_client(address) as client:
        page = client.vector_stores.search(
            vector_store_id="handbook",
            query=["bread", "butter"],
            max_num_results=3,
            filters={"type": "eq", "key": "s", "value": "x"},
            ranking_options={"ranker": "auto", "score_threshold": 0.0},
            rewrite_query=False,
        )
        rows = list(page)
        raw = client.vector_stores.with_raw_response.search(
            vector_store_id="handbook", query="bread"
        )
        store = client.vector_stores.retrieve("handbook")
    assert rows[0].content[0].text.startswith("acme text")
    assert rows[0].attributes["s"] == "x" and len(page.model_extra["ragaudit_receipts"]) == 2
    assert raw.headers["Ragaudit-Receipt"].startswith("w1.")
    assert store.file_counts.total == 30


def test_what_openais_client_is_refused(port: MemoryPort, address: int) -> None:
    openai = pytest.importorskip("openai", reason="openai is missing")
    asked = len(port.asked)
    with openai_client(address) as client:
        stores = client.vector_stores
        for call, kind in (
            (lambda: stores.search("handbook", query="x", rewrite_query=True), 403),
            (lambda: stores.search("handbook", query="x", max_num_results=50), 400),
            (lambda: stores.search("manual", query="x"), 404),
            (lambda: stores.retrieve("manual"), 404),
            (stores.list, 403),
            (lambda: stores.files.list("handbook"), 403),
            (lambda: stores.delete("handbook"), 403),
            (lambda: stores.create(name="x"), 403),
        ):
            with pytest.raises(openai.APIStatusError) as caught:
                call()
            assert caught.value.status_code == kind
            assert caught.value.body["message"]
    with openai_client(address, "nobody") as client, pytest.raises(openai.AuthenticationError):
        client.vector_stores.search("handbook", query="x")
    assert len(port.asked) == asked


# --- MCP --------------------------------------------------------------------------------------


def test_a_program_of_mcp(port: MemoryPort, address: int) -> None:
    asyncio.run(_mcp_program(address))


async def _mcp_program(address: int) -> None:
    mcp = pytest.importorskip("mcp")
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers={"Authorization": "Bearer key-acme"}) as http,
        streamable_http_client(f"http://127.0.0.1:{address}/mcp", http_client=http) as streams,
        mcp.ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        tools = await session.list_tools()
        assert [tool.name for tool in tools.tools] == ["search", "fetch"]
        found = await session.call_tool("search", {"query": "bread"})
        assert found.meta["ragaudit_receipts"]
        results = found.structured_content["results"]
        assert set(results[0]) == {"id", "title", "url"}
        assert json.loads(found.content[0].text) == found.structured_content
        fetched = await session.call_tool("fetch", {"id": results[0]["id"]})
        assert fetched.structured_content["text"].startswith("acme text")
        refused = await session.call_tool("fetch", {"id": "globex-1"})
        assert refused.is_error
