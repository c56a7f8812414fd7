"""Writes behind the prover's back to real stores: withdrawn at once, noticed, and taken up."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chroma_server
import httpx
import numpy as np
import numpy.typing as npt
import pgvector_server
import postgresql_server
import pytest
from exact_windows import EXACT, later
from prometheus_client import generate_latest
from ragaudit.embedders.base import NoEmbedder
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import float32_bytes
from ragaudit.prover.backend_settings import ChromaSettings, PgvectorSettings
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.backends.pgvector import PgvectorStore
from ragaudit.prover.errors import BackendUnavailable
from ragaudit.prover.store.states import State
from scenario import ProverScenario

pytestmark = pytest.mark.slow

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"
DATABASE = "watched"
ROWS, D = 30, 16
VECTORS = np.random.default_rng(5).normal(size=(ROWS, D)).astype(np.float32)
QUERY = np.random.default_rng(6).normal(size=D).astype(np.float32)


def opened(
    make_scenario: Callable[..., ProverScenario], store: ChromaStore | PgvectorStore
) -> ProverScenario:
    """An open window with versions over a store."""
    scenario = make_scenario(
        backend=lambda *_: store, embedder=lambda _: NoEmbedder(store.dimension)
    )
    window = {"query_kinds": ["vector"], "public_columns": {}, "filters": False, "versions": True}
    scenario.service.create_window("w1", {**EXACT, **window})
    scenario.drive(State.COUNTERSIGNED)
    scenario.register("ada")
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)
    return scenario


def ask(scenario: ProverScenario, vector: npt.NDArray[np.float32]) -> ReceiptFile:
    body = {"vector": b64_encode(float32_bytes(vector.tolist())), "top_k": 3}
    answer = scenario.post("/v1/windows/w1/query", "ada", body)
    assert answer.status_code == 200, answer.text
    return ReceiptFile.parse(answer.content)


def comparisons(scenario: ProverScenario) -> dict[str, int]:
    """How many comparisons ended how, as the metrics show it."""
    text = generate_latest(scenario.service.observer.metrics.registry).decode()
    found = [line for line in text.splitlines() if line.startswith("ragaudit_store_comparisons_t")]
    return {line.split('"')[1]: int(float(line.split()[-1])) for line in found}


def ids(file: ReceiptFile) -> list[str]:
    return [row.id for row in file.answer.documents]


def assert_noticed(scenario: ProverScenario, turn: Callable[[str], None]) -> None:
    """A turned vector is in no answer, the watcher sees it, and the next version has it."""
    service = scenario.service
    best, second, third = ids(ask(scenario, QUERY))
    service.watcher.step()
    assert comparisons(scenario) == {"same": 1}
    turn(best)
    answered = ask(scenario, QUERY * np.float32(2))
    assert ids(answered) == [second, third]
    assert [row.id for row in answered.private.withdrawn] == [best]
    service.watcher.step()
    service.watcher.step()
    assert comparisons(scenario) == {"same": 1, "changed": 1}
    scenario.clock.at(scenario.policy().start + 60)
    assert service.refresher.step("w1")
    later(scenario, 140)
    after = ask(scenario, QUERY)
    assert after.public.query.version == 2
    assert ids(after)[:2] == [second, third] and best not in ids(after)
    assert after.private.withdrawn == ()
    service.watcher.step()
    assert comparisons(scenario) == {"same": 2, "changed": 1}


def test_a_vector_that_changed_in_chroma(make_scenario: Callable[..., ProverScenario]) -> None:
    with (
        chroma_server.ChromaServer() as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http,
    ):
        body: dict[str, Any] = {"name": "docs", "configuration": {"hnsw": {"space": "cosine"}}}
        place = f"{BASE}/{http.post(BASE, json=body).json()['id']}"
        names = [f"d{n:02}" for n in range(ROWS)]
        body = {"ids": names, "documents": names, "embeddings": VECTORS.tolist()}
        assert http.post(f"{place}/add", json=body).is_success
        store = ChromaStore(ChromaSettings(url=server.url, collections={"one": "docs"}))

        def turn(name: str) -> None:
            turned = {"ids": [name], "embeddings": [(-VECTORS[int(name[1:])]).tolist()]}
            assert http.post(f"{place}/update", json=turned).is_success

        try:
            assert_noticed(opened(make_scenario, store), turn)
        finally:
            store.close()


@pytest.fixture
def database() -> Iterator[postgresql_server.Server]:
    """A server with a table of rows."""
    with pgvector_server.running() as server:
        server.create(DATABASE)
        server.execute("CREATE EXTENSION vector", DATABASE)
        values = ", ".join(f"('d{n:02}', 'row', '{row.tolist()}')" for n, row in enumerate(VECTORS))
        server.execute(
            f"CREATE TABLE items (id text PRIMARY KEY, content text, embedding vector({D})); "
            f"INSERT INTO items VALUES {values}; CREATE VIEW shown AS SELECT * FROM items; "
            "CREATE ROLE nobody LOGIN",
            DATABASE,
        )
        yield server


def table(
    server: postgresql_server.Server, folder: Path, name: str = "items", user: str = "ragaudit"
) -> PgvectorStore:
    dsn = folder / "dsn"
    dsn.write_text(f"host={server.root} dbname={DATABASE} user={user}\n")
    dsn.chmod(0o600)
    tables = {"one": {"table": name}}
    return PgvectorStore(PgvectorSettings.model_validate({"dsn_file": dsn, "tables": tables}))


@pytest.mark.parametrize("relation", ["items", "shown"])
def test_a_vector_that_changed_in_postgresql(
    database: postgresql_server.Server,
    make_scenario: Callable[..., ProverScenario],
    tmp_path: Path,
    relation: str,
) -> None:
    store = table(database, tmp_path, relation)

    def turn(name: str) -> None:
        turned = (-VECTORS[int(name[1:])]).tolist()
        database.execute(f"UPDATE items SET embedding = '{turned}' WHERE id = '{name}'", DATABASE)

    try:
        assert_noticed(opened(make_scenario, store), turn)
    finally:
        store.close()


@pytest.mark.parametrize("relation", ["items", "shown"])
def test_a_mark_changes_with_every_write(
    database: postgresql_server.Server, tmp_path: Path, relation: str
) -> None:
    store = table(database, tmp_path, relation)
    try:
        marks = [store.mark("one")]
        assert store.mark("one") == marks[0]
        for statement in (
            "UPDATE items SET content = 'another' WHERE id = 'd03'",
            f"UPDATE items SET embedding = '{[1.0] * D}' WHERE id = 'd04'",
            "DELETE FROM items WHERE id = 'd05'",
            "UPDATE items SET id = 'd05' WHERE id = 'd06'",
            f"INSERT INTO items VALUES ('d06', NULL, '{[1.0] * D}')",
        ):
            database.execute(statement, DATABASE)
            marks.append(store.mark("one"))
        assert len(set(marks)) == len(marks)
        database.execute("VACUUM FREEZE items", DATABASE)
        assert store.mark("one") == marks[-1]
    finally:
        store.close()


def test_no_mark_without_the_right_to_read(
    database: postgresql_server.Server, tmp_path: Path
) -> None:
    store = table(database, tmp_path, user="nobody")
    try:
        with pytest.raises(BackendUnavailable, match="its user may not read the table"):
            store.mark("one")
    finally:
        store.close()
