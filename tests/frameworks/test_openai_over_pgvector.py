"""examples/ask_openai.py before a table of PostgreSQL with pgvector, to a verdict."""

import json
from collections.abc import Iterator
from pathlib import Path

import framework_scene
import pgvector_server
import postgresql_server
import psycopg
import pytest
import wordnet
from framework_corpus import TENANTS, Corpus
from framework_scene import PYTHON, Scene
from psycopg import sql
from ragaudit.prover.backend_settings import PgvectorSettings
from ragaudit.prover.backends.pgvector import PgvectorStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not PYTHON.is_file(), reason=framework_scene.MISSING),
]
DATABASE = "shelves"


def filled(server: postgresql_server.Server, corpus: Corpus) -> str:
    """Make a table for each tenant of the corpus; return the connection string."""
    server.create(DATABASE)
    dsn = f"host={server.root} dbname={DATABASE} user=ragaudit"
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION vector")
        for tenant, name in TENANTS.items():
            vectors = corpus.vectors[tenant]
            table = sql.Identifier(name)
            cursor.execute(
                sql.SQL(
                    "CREATE TABLE {} (id uuid PRIMARY KEY, content text, meta jsonb, "
                    "embedding vector({}))"
                ).format(table, sql.Literal(vectors.shape[1]))
            )
            cursor.executemany(
                sql.SQL("INSERT INTO {} VALUES (%s, %s, %s, %s)").format(table),
                [
                    (row.id, row.text, json.dumps(row.metadata), str(vector.tolist()))
                    for row, vector in zip(corpus.rows[tenant], vectors, strict=True)
                ],
            )
    return dsn


@pytest.fixture
def over_pgvector(tmp_path: Path) -> Iterator[Scene]:
    programs = pgvector_server.programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL with pgvector: make setup")
    if not wordnet.installed():
        pytest.skip("WordNet is not installed: make setup-servers")
    server, corpus = postgresql_server.Server(programs), Corpus()
    try:
        server.start()
        dsn = tmp_path / "dsn"
        dsn.write_text(filled(server, corpus) + "\n")
        dsn.chmod(0o600)
        tables = {
            tenant: {"table": name, "attributes": "meta", "metric": "cosine"}
            for tenant, name in TENANTS.items()
        }
        settings = PgvectorSettings.model_validate({"dsn_file": dsn, "tables": tables})
        with framework_scene.scene(
            tmp_path,
            corpus,
            "",
            framework_scene.INTEGRITY,
            ["openai"],
            lambda: PgvectorStore(settings),
        ) as made:
            yield made
    finally:
        server.close()


def test_the_program_gets_the_exact_rows_and_receipts(over_pgvector: Scene) -> None:
    numbers = range(4)
    found = over_pgvector.ask("ask_openai", "openai", numbers)
    for number, ids in zip(numbers, found["nearest"], strict=True):
        assert ids == over_pgvector.exact(number, 10)
    for number, ids in zip(numbers, found["filtered"], strict=False):
        assert ids == over_pgvector.exact(number, 5, filtered=True)
    rows = {row.id: [row.text, row.metadata] for row in over_pgvector.corpus.rows["one"]}
    assert all(row == rows[identifier] for identifier, row in found["rows"].items())
    over_pgvector.scenario.service.driver.checkpoint("w1")
    assert len(over_pgvector.check_receipts("openai")) >= len(numbers)
    predicate = over_pgvector.verdict()
    assert predicate["result"] == "PASS", framework_scene.failed(predicate)
