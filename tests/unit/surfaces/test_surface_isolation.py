"""A key of one tenant never gets a row of another, and never changes one: ten thousand attempts
over every surface.

Attempts are drawn from a seed: the collection, ids, filters and end users of the other tenant, in
its own spelling and in variants of case and Unicode, alone and among honest members of a batch.
Writes reach a real Chroma server that has the collections of both.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import chroma_server
import httpx
import pytest
from fastapi.testclient import TestClient
from ragaudit.prover.backend_settings import ChromaSettings
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.surfaces.chroma import collection_id
from ragaudit.prover.surfaces.queries import Forwarded
from surface_app import COLLECTIONS, DIMENSION, KEYS, MemoryPort, surface_app

ATTEMPTS = 10_000
SEED = 20_261_123
DATABASE = "/api/v2/tenants/default_tenant/databases/default_database"
# Of the same look, or the same under some folding or normal form.
VARIANTS: tuple[Callable[[str], str], ...] = (
    str,
    str.upper,
    str.title,
    lambda name: name.replace("a", "\u0430"),
    lambda name: name.replace("a", "a\u0301"),
    lambda name: "".join(chr(ord(each) + 0xFEE0) if each.isalpha() else each for each in name),
    lambda name: f" {name}",
    lambda name: f"{name}\u200b",
    lambda name: f"{name}%00",
    lambda name: f"{name}/",
    lambda name: f"../{name}",
    lambda name: f"x%2F..%2F{name}",
    lambda name: name.replace("a", "%61"),
)  # fmt: skip


class StorePort(MemoryPort):
    """Answers from memory; writes go to the collections of a Chroma server."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=60)
        collections = {tenant: name for name, tenant in COLLECTIONS.items()}
        self._places = {tenant: self._filled(tenant) for tenant in collections}
        self._store = ChromaStore(ChromaSettings(url=url, collections=collections))
        self.taken: dict[str, int] = {}

    def forward(self, tenant: str, operation: str, body: bytes) -> Forwarded:
        super().forward(tenant, operation, body)
        answer = self._store.forward_write(tenant, operation, body)
        kind = f"{operation} where" if "where" in json.loads(body) else operation
        self.taken[kind] = self.taken.get(kind, 0) + (answer.status < 300)
        return Forwarded(answer.status, answer.body)

    def stored(self, tenant: str) -> Any:
        """All that the store has of a tenant."""
        body = {"include": ["documents", "metadatas", "embeddings"]}
        return self._http.post(f"{self._places[tenant]}/get", json=body).raise_for_status().json()

    def close(self) -> None:
        self._http.close()
        self._store.close()

    def _filled(self, tenant: str) -> str:
        [name] = [name for name, of in COLLECTIONS.items() if of == tenant]
        base, made = f"{DATABASE}/collections", {"name": name}
        place = f"{base}/{self._http.post(base, json=made).raise_for_status().json()['id']}"
        rows = self.rows[tenant]
        body = {
            "ids": [row.id for row in rows],
            "embeddings": [row.vector for row in rows],
            "documents": [row.content for row in rows],
            "metadatas": [dict(row.metadata) for row in rows],
        }
        self._http.post(f"{place}/add", json=body).raise_for_status()
        return place


@pytest.fixture(scope="module")
def store() -> Iterator[StorePort]:
    with chroma_server.ChromaServer() as server:
        made = StorePort(server.url)
        yield made
        made.close()


@pytest.fixture(scope="module")
def store_api(store: StorePort) -> Iterator[TestClient]:
    delegation = {"accounts": ["ada"], "register_tenants": ["acme", "globex"]}
    with TestClient(surface_app(store, delegation=delegation)) as client:
        yield client


class Attacker:
    """Draws requests of one account for the rows of the other tenant."""

    def __init__(self, draw: random.Random, key: str) -> None:
        self.draw = draw
        self.key = key
        self.own = next(name for name, tenant in COLLECTIONS.items() if tenant == self.tenant)
        self.other = next(name for name, tenant in COLLECTIONS.items() if tenant != self.tenant)

    @property
    def tenant(self) -> str:
        return KEYS[self.key].tenant

    @property
    def victim(self) -> str:
        return COLLECTIONS[self.other]

    def collection(self) -> str:
        if self.draw.random() < 0.3:
            return self.own
        return self.draw.choice(VARIANTS)(self.other)

    def identifier(self) -> str:
        name = self.collection()
        if self.draw.random() < 0.2:
            return name
        found = str(collection_id(name))
        return found.upper() if self.draw.random() < 0.2 else found

    def row(self) -> str:
        return self.draw.choice(VARIANTS)(f"{self.victim}-{self.draw.randrange(30)}")

    def vector(self) -> list[float]:
        return [self.draw.gauss(0, 1) for _ in range(DIMENSION)]

    def headers(self) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self.key}",
            "x-chroma-token": self.key,
            "api-key": self.key,
            "Accept": "application/json, text/event-stream",
        }
        if self.draw.random() < 0.1:
            users = ("bob", "ada", "globex+bob", f"{self.victim}+x", "BOB")
            headers["Ragaudit-User"] = self.draw.choice(users)
        if self.draw.random() < 0.1:
            headers["Idempotency-Key"] = "shared"
        return headers

    def call(self) -> tuple[str, str, Any]:
        """Method, path and body of one attempt."""
        return self.draw.choice(
            (self.openai, self.dify, self.query, self.get, self.points, self.batch, self.search,
             self.fetch, self.read, self.write, self.delete)
        )()  # fmt: skip

    def openai(self) -> tuple[str, str, Any]:
        filters = [{"type": "eq", "key": "s", "value": self.victim}, None]
        prefix = self.draw.choice(["", "/v1"])
        body = {"query": self.draw.choice(["x", ["x", self.row()]]), "max_num_results": 20,
                "filters": self.draw.choice(filters)}  # fmt: skip
        return "POST", f"{prefix}/vector_stores/{self.collection()}/search", body

    def dify(self) -> tuple[str, str, Any]:
        setting = {"top_k": 20, "score_threshold": 0.0}
        body = {"knowledge_id": self.collection(), "query": "x", "retrieval_setting": setting}
        return "POST", "/retrieval", body

    def query(self) -> tuple[str, str, Any]:
        where = self.draw.choice([None, {"s": self.victim}, {"$or": [{"n": 1}, {"n": {"$ne": 1}}]}])
        body = {"query_embeddings": [self.vector() for _ in range(3)], "n_results": 20,
                "where": where}  # fmt: skip
        return "POST", f"{DATABASE}/collections/{self.identifier()}/query", body

    def get(self) -> tuple[str, str, Any]:
        body = {"ids": [self.row() for _ in range(5)], "include": ["documents", "metadatas"]}
        return "POST", f"{DATABASE}/collections/{self.identifier()}/get", body

    def write(self) -> tuple[str, str, Any]:
        ids = list({self.row() for _ in range(3)})
        # The attacker's own words: what it writes it may read.
        body: dict[str, Any] = {
            "ids": ids,
            "embeddings": [self.vector() for _ in ids],
            "documents": ["written"] * len(ids),
            "metadatas": [{"s": self.victim}] * len(ids),
        }
        if self.draw.random() < 0.1:
            body[self.draw.choice(["tenant", "collection_id", "collection_name"])] = self.other
        operation = self.draw.choice(["add", "upsert", "update"])
        return "POST", f"{DATABASE}/collections/{self.identifier()}/{operation}", body

    def delete(self) -> tuple[str, str, Any]:
        wheres: list[dict[str, Any]] = [
            {"s": self.victim}, {"n": {"$gte": 0}}, {"$or": [{"n": 1}, {"n": {"$ne": 1}}]},
        ]  # fmt: skip
        ids, where = [self.row() for _ in range(3)], self.draw.choice(wheres)
        body = self.draw.choice([{"ids": ids}, {"where": where}, {"ids": ids, "where": where}])
        return "POST", f"{DATABASE}/collections/{self.identifier()}/delete", body

    def points(self) -> tuple[str, str, Any]:
        path = f"/collections/{self.collection()}/points"
        if self.draw.random() < 0.5:
            return "GET", f"{path}/{self.row()}", None
        return "POST", path, {"ids": [self.row() for _ in range(5)], "with_vector": True}

    def batch(self) -> tuple[str, str, Any]:
        searches: list[dict[str, Any]] = [
            {"query": self.vector(), "limit": 20, "with_payload": True} for _ in range(3)
        ]
        if self.draw.random() < 0.5:
            searches[1]["lookup_from"] = {"collection": self.other}
        if self.draw.random() < 0.5:
            searches[2]["filter"] = {"must_not": [{"key": "metadata.n", "range": {"lt": 0}}]}
        return (
            "POST",
            f"/collections/{self.collection()}/points/query/batch",
            {"searches": searches},
        )

    def search(self) -> tuple[str, str, Any]:
        return self.tool("search", {"query": self.row()})

    def fetch(self) -> tuple[str, str, Any]:
        return self.tool("fetch", {"id": self.row()})

    def read(self) -> tuple[str, str, Any]:
        path = self.draw.choice(
            [
                f"/collections/{self.collection()}",
                f"/v1/vector_stores/{self.collection()}",
                f"{DATABASE}/collections/{self.collection()}",
                f"{DATABASE}/collections/by-id/{self.identifier()}",
                f"{DATABASE}/collections",
                f"{DATABASE.replace('default_tenant', self.victim)}/collections",
                "/collections",
            ]
        )
        return "GET", path, None

    def tool(self, name: str, arguments: dict[str, str]) -> tuple[str, str, Any]:
        params = {"name": name, "arguments": arguments}
        return "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def attempted(api: TestClient, attacker: Attacker) -> tuple[int, str]:
    method, path, body = attacker.call()
    answer = api.request(method, path, json=body, headers=attacker.headers())
    return answer.status_code, answer.text


def check(attacker: Attacker, status: int, text: str) -> None:
    # Every text of a row says whose it is.
    assert f"{attacker.victim} text" not in text
    assert status < 500, text


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_attempt_reaches_another_tenants_row(store_api: TestClient, store: StorePort) -> None:
    draw = random.Random(SEED)
    attackers = [Attacker(draw, key) for key in KEYS]
    # Its rows were served to the victim: what is kept for one account is not another's.
    for attacker in attackers:
        own = {"query": "x", "max_num_results": 20}
        headers = {"Authorization": f"Bearer {attacker.key}"}
        assert store_api.post(f"/v1/vector_stores/{attacker.own}/search", json=own, headers=headers)
    kept = {tenant: store.stored(tenant) for tenant in COLLECTIONS.values()}
    answered = 0
    for _ in range(ATTEMPTS):
        attacker = draw.choice(attackers)
        before = len(store.written)
        status, text = attempted(store_api, attacker)
        check(attacker, status, text)
        answered += f"{attacker.tenant} text" in text
        if len(store.written) > before:
            check_stored(store, attacker, kept)
    # The attempts were not all refused for some other reason.
    assert answered > ATTEMPTS / 20
    kinds = {"add", "upsert", "update", "delete", "delete where"}
    assert store.taken.keys() == kinds and min(store.taken.values()) > ATTEMPTS / 500
    for account, rows in store.served.items():
        known = {**{each.id: each for each in KEYS.values()}, **store.users}
        assert all(name.startswith(f"{known[account].tenant}-") for name in rows)


def check_stored(port: StorePort, attacker: Attacker, kept: dict[str, Any]) -> None:
    """Check that the victim's rows are as they were; note the attacker's own as they are now."""
    assert port.stored(attacker.victim) == kept[attacker.victim]
    kept[attacker.tenant] = port.stored(attacker.tenant)


@pytest.mark.slow
def test_the_check_sees_a_write_that_goes_to_another_tenant(store: StorePort) -> None:
    attacker = Attacker(random.Random(SEED), "key-acme")
    kept = {tenant: store.stored(tenant) for tenant in COLLECTIONS.values()}
    check_stored(store, attacker, kept)
    change = {"ids": ["new"], "embeddings": [[1.0] * DIMENSION]}
    assert store.forward(attacker.victim, "add", json.dumps(change).encode()).status < 300
    with pytest.raises(AssertionError):
        check_stored(store, attacker, kept)


def test_the_check_sees_a_row_that_is_not_the_attackers() -> None:
    """With the other tenant's rows put in the place of its own, an attempt succeeds."""
    port = MemoryPort()
    port.rows["acme"] = port.rows["globex"]
    with TestClient(surface_app(port)) as api:
        attacker = Attacker(random.Random(SEED), "key-acme")
        with pytest.raises(AssertionError):
            for _ in range(200):
                check(attacker, *attempted(api, attacker))


# All that a real server or client knows and nobody served on purpose is refused.

# What somebody looked at and serves: docs/surfaces.md says how much of it.
CHROMA_SERVED = {
    "GET /api/v2/auth/identity",
    "GET /api/v2/healthcheck",
    "GET /api/v2/heartbeat",
    "GET /api/v2/pre-flight-checks",
    "GET /api/v2/tenants/{}",
    "GET /api/v2/tenants/{}/databases/{}",
    "GET /api/v2/tenants/{}/databases/{}/collections",
    "GET /api/v2/tenants/{}/databases/{}/collections/by-id/{}",
    "GET /api/v2/tenants/{}/databases/{}/collections/{}",
    "GET /api/v2/tenants/{}/databases/{}/collections/{}/count",
    "GET /api/v2/tenants/{}/databases/{}/collections_count",
    "GET /api/v2/version",
    "POST /api/v2/tenants/{}/databases/{}/collections",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/add",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/delete",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/get",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/query",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/update",
    "POST /api/v2/tenants/{}/databases/{}/collections/{}/upsert",
}
QDRANT_SERVED = {
    "GET /",
    "GET /collections",
    "GET /collections/{}",
    "GET /collections/{}/exists",
    "GET /collections/{}/points/{}",
    "POST /collections/{}/points",
    "POST /collections/{}/points/count",
    "POST /collections/{}/points/query",
    "POST /collections/{}/points/query/batch",
}
# Of the service itself, not of Qdrant; they say nothing of any collection.
OWN = {"GET /healthz", "GET /readyz", "GET /livez", "GET /metrics"}
METHODS = ("get", "post", "put", "patch", "delete")
EVERYTHING: dict[str, Any] = {
    "ids": ["acme-1"], "where": {}, "include": ["documents", "embeddings"], "limit": 1000,
    "searches": [], "points": [], "name": "handbook", "new_name": "x",
}  # fmt: skip


def template(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def routes(api: TestClient, start: str) -> set[str]:
    """What our own description serves under a prefix."""
    paths = api.get("/openapi.json").json()["paths"]
    return {
        f"{method.upper()} {template(path)}"
        for path, methods in paths.items()
        for method in methods
        if path.startswith(start)
    }


def test_what_is_served_of_qdrant_is_what_was_looked_at(api: TestClient) -> None:
    assert routes(api, "/collections") | {"GET /"} == QDRANT_SERVED


def qdrant_calls() -> set[str]:
    """Every call of the client, by its own sources."""
    pytest.importorskip("qdrant_client", reason="qdrant-client is missing")
    found = set()
    for file in resources.files("qdrant_client.http.api").iterdir():
        if file.name.endswith(".py"):
            text = file.read_text(encoding="utf-8")
            for method, path in re.findall(r'method="(\w+)",\s+url="([^"]+)"', text):
                found.add(f"{method} {path}")
    assert len(found) > 60
    return found


def test_every_other_call_of_qdrants_client_is_refused(api: TestClient, port: MemoryPort) -> None:
    calls = qdrant_calls()
    templates = {f"{call.split()[0]} {template(call.split()[1])}" for call in calls}
    assert templates >= QDRANT_SERVED - {"GET /"}
    refused = 0
    for call in calls:
        method, path = call.split()
        if f"{method} {template(path)}" in QDRANT_SERVED | OWN:
            continue
        target = re.sub(r"\{\w+\}", "1", path.replace("{collection_name}", "handbook"))
        body = None if method == "GET" else EVERYTHING
        answer = api.request(method, target, json=body, headers={"api-key": "key-acme"})
        assert answer.status_code == 403, call
        assert set(answer.json()) == {"status", "time"}, call
        refused += 1
    assert refused > 50 and not port.asked and not port.written


def test_any_method_of_any_path_under_a_surface_is_refused(
    api: TestClient, port: MemoryPort
) -> None:
    paths = (
        "/api/v2", "/api/v2/", "/api/v1/collections", "/api/v2/new", "/api/v2/reset",
        "/collections/handbook/points/new/x", "/collections/handbook/", "/aliases", "/telemetry",
        "/vector_stores", "/v1/vector_stores/handbook/files", "/v1/vector_stores/handbook/search/",
        "/vector_stores/handbook/file_batches", "/v1/vector_stores/handbook/files/1/content",
        "/retrieval/", "/retrieval/x",
    )  # fmt: skip
    headers = {"api-key": "key-acme", "Authorization": "Bearer key-acme"}
    for path in paths:
        for method in (*METHODS, "head", "options"):
            answer = api.request(method, path, headers=headers)
            assert answer.status_code == 403, (method, path)
    assert not port.asked


@pytest.mark.slow
def test_every_route_of_a_real_chroma_server_is_served_on_purpose_or_refused(
    api: TestClient, port: MemoryPort
) -> None:
    with chroma_server.ChromaServer() as server:
        real = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    known = {
        f"{method.upper()} {template(path)}"
        for path, methods in real.items()
        for method in methods
        if method in METHODS
    }
    assert len(known) > 30
    ours = routes(api, "/api/v")
    assert ours == CHROMA_SERVED
    # One of ours that no server has any more would be one that nobody tests.
    assert known >= ours
    for call in sorted(known - CHROMA_SERVED):
        method, path = call.split()
        target = path
        for value in ("default_tenant", "default_database", str(collection_id("handbook")), "x"):
            target = target.replace("{}", value, 1)
        body = None if method == "GET" else EVERYTHING
        answer = api.request(method, target, json=body, headers={"x-chroma-token": "key-acme"})
        assert answer.status_code == 403, call
        assert set(answer.json()) == {"error", "message"}, call
    assert not port.asked and not port.written
