"""A window without noise over pgvector: two tenants in one table, SQL writes, and a verdict."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pgvector_server
import postgresql_server
import pytest
from exact_windows import EXACT, later, shown
from ragaudit.circuits.quantise import quantise
from ragaudit.embedders.base import NoEmbedder
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import float32_bytes
from ragaudit.prover.backend_settings import PgvectorSettings
from ragaudit.prover.backends.pgvector import PgvectorStore
from ragaudit.prover.store.states import State
from scenario import ProverScenario
from whole_windows import checked, refreshed, verdict

pytestmark = pytest.mark.slow

DATABASE = "shelves"
ROWS, D = 40, 16


@pytest.fixture
def database() -> Iterator[postgresql_server.Server]:
    """A server of its own with a table of two tenants, each with 40 rows."""
    with pgvector_server.running() as server:
        server.create(DATABASE)
        server.execute("CREATE EXTENSION vector", DATABASE)
        server.execute(
            f"CREATE TABLE items (id text PRIMARY KEY, owner text, content text, year int, "
            f"embedding vector({D}))",
            DATABASE,
        )
        rows = np.random.default_rng(3).normal(size=(2 * ROWS, D)).astype(np.float32)
        values = ", ".join(
            f"('{owner}-{n}', '{owner}', 'row {n} of {owner}', {2020 + n % 3}, '{vector.tolist()}')"
            for at, owner in enumerate(("one", "two"))
            for n, vector in enumerate(rows[ROWS * at : ROWS * at + ROWS])
        )
        server.execute(f"INSERT INTO items VALUES {values}", DATABASE)
        yield server


@pytest.fixture
def over_pgvector(
    database: postgresql_server.Server,
    make_scenario: Callable[..., ProverScenario],
    tmp_path: Path,
) -> Iterator[ProverScenario]:
    """An open window over the table."""
    dsn = tmp_path / "dsn"
    dsn.write_text(f"host={database.root} dbname={DATABASE} user=ragaudit\n")
    dsn.chmod(0o600)
    tables = {
        tenant: {
            "table": "items", "tenant_column": "owner", "tenant_value": tenant,
            "attribute_columns": ["year"], "metric": "cosine",
        }
        for tenant in ("one", "two")
    }  # fmt: skip
    store = PgvectorStore(PgvectorSettings.model_validate({"dsn_file": dsn, "tables": tables}))
    scenario = make_scenario(
        backend=lambda *_: store, embedder=lambda _: NoEmbedder(store.dimension)
    )
    window = {"query_kinds": ["vector"], "public_columns": {"year": "integer"}, "versions": True}
    scenario.service.create_window("w1", {**EXACT, **window})
    scenario.drive(State.COUNTERSIGNED)
    for account in ("ada", "cyd"):
        scenario.register(account)
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)
    yield scenario
    store.close()


def ask(
    scenario: ProverScenario, vector: npt.NDArray[np.float32], account: str = "ada", **more: Any
) -> ReceiptFile:
    body = {"vector": b64_encode(float32_bytes(vector.tolist())), "top_k": 3, **more}
    answer = scenario.post("/v1/windows/w1/query", account, body)
    assert answer.status_code == 200, answer.text
    return ReceiptFile.parse(answer.content)


def exact(scenario: ProverScenario, query: npt.NDArray[np.float32], version: int) -> list[Any]:
    """Positions and scores of the best three rows, over the committed integers."""
    index = scenario.service.open_windows.get("w1").index_of("one", version)
    scores = index.vectors.astype(np.int64) @ quantise(query, 4095).astype(np.int64)
    best = np.argsort(-scores, kind="stable")[:3].tolist()
    return [(at, int(scores[at])) for at in best]


def test_a_window_over_pgvector_is_exact_and_passes(
    over_pgvector: ProverScenario, database: postgresql_server.Server
) -> None:
    scenario = over_pgvector
    query, other = np.random.default_rng(9).normal(size=(2, D)).astype(np.float32)
    files = [ask(scenario, query), ask(scenario, other)]
    for vector, file in zip((query, other), files, strict=True):
        assert shown(file) == exact(scenario, vector, 1)
        # The store's own ranking of the same vector, by its floats.
        ranked = database.execute(
            "SELECT string_agg(id, ',') FROM (SELECT id FROM items WHERE owner = 'one' "
            f"ORDER BY embedding <=> '{vector.tolist()}' LIMIT 3) AS best",
            DATABASE,
        )
        assert [row.id for row in file.answer.documents] == ranked.split(",")
    files.append(ask(scenario, query, filter='{"key":"year","op":"eq","value":2021}'))
    assert [json.loads(row.columns) for row in files[-1].answer.documents] == [{"year": 2021}] * 3
    theirs = ask(scenario, query, "cyd")
    assert {row.id.partition("-")[0] for row in theirs.answer.documents} == {"two"}
    # Nobody tells the prover of a write by SQL: until the command, what changed is left out.
    first, second, third = files[0].answer.documents
    database.execute(
        f"DELETE FROM items WHERE id = '{first.id}'; "
        f"UPDATE items SET content = 'another text' WHERE id = '{second.id}'; "
        f"INSERT INTO items VALUES ('one-new', 'one', 'a new row', 2024, '{query.tolist()}')",
        DATABASE,
    )
    # Another length: the same request would be a retry.
    files.append(ask(scenario, query * np.float32(2)))
    assert [row.id for row in files[-1].answer.documents] == [third.id]
    assert {row.id for row in files[-1].private.withdrawn} == {first.id, second.id}
    assert refreshed(scenario)["version"] == 2
    later(scenario, 140)
    files.append(ask(scenario, query))
    assert files[-1].public.query.version == 2
    assert shown(files[-1]) == exact(scenario, query, 2)
    assert [row.id for row in files[-1].answer.documents] == ["one-new", second.id, third.id]
    assert files[-1].answer.documents[1].content == "another text"
    scenario.service.driver.checkpoint("w1")
    checked(scenario, files)
    predicate = verdict(scenario)
    assert predicate["result"] == "PASS", predicate["checks"]
    assert predicate["claims"]["integrity"]["result"] == "PASS"
    assert predicate["claims"]["privacy"]["result"] == "NOT CLAIMED"
    assert predicate["counts"]["records"] == len(files) + 1
