"""`ragaudit up --pgvector`: tables are found and served, and the ranking is PostgreSQL's own."""

import json
from collections.abc import Iterator
from typing import Any

import pgvector_server
import postgresql_server
import pytest
from chroma_program import DIMENSION, ids, query, run, vectors
from ragaudit.cli.up.pgvector_tables import pgvector_tables
from ragaudit.cli.up.store import of_pgvector
from ragaudit.encoding.errors import MalformedError, UnavailableError
from up_process import UpProcess

pytestmark = pytest.mark.slow
ROWS = 60
SCHEMA = f"""
    CREATE EXTENSION vector;
    CREATE TABLE documents (
        key text PRIMARY KEY, title text, content text, meta jsonb, embedding vector({DIMENSION})
    );
    CREATE INDEX ON documents USING hnsw (embedding vector_cosine_ops);
    CREATE TABLE nameless (first text, second text, embedding vector({DIMENSION}));
    CREATE TABLE empty (id int PRIMARY KEY, body text, embedding vector({DIMENSION}));
    CREATE TABLE plain (id int PRIMARY KEY, body text);
"""


def literal(vector: Any) -> str:
    return "'[" + ",".join(map(repr, vector.tolist())) + "]'"


@pytest.fixture(scope="module")
def server() -> Iterator[postgresql_server.Server]:
    with pgvector_server.running() as made:
        made.create("rag")
        made.execute(SCHEMA, "rag")
        rows = [
            f"('d{n}', 'title', 'text {n}', '{{\"year\": {2000 + n % 3}}}', {literal(each)})"
            for n, each in enumerate(vectors(ROWS, 1))
        ]
        made.execute("INSERT INTO documents VALUES " + ", ".join(rows), "rag")
        yield made


@pytest.fixture
def dsn(server: postgresql_server.Server) -> str:
    return f"host={server.root} user=ragaudit dbname=rag"


def test_columns_are_told_by_their_types_and_names(dsn: str) -> None:
    found = {each.collection.name: each for each in pgvector_tables(dsn)}
    assert set(found) == {"documents", "nameless", "empty"}
    documents = found["documents"]
    assert documents.columns == {
        "schema": "public", "table": "documents", "id": "key", "content": "content",
        "vector": "embedding", "metric": "cosine", "attributes": "meta",
    }  # fmt: skip
    assert (documents.collection.rows, documents.collection.dimension) == (ROWS, DIMENSION)
    assert found["nameless"].reason == "no primary key of one column"
    source = of_pgvector(dsn, [])
    assert [each.name for each in source.found.served] == ["documents"]
    assert dict(source.found.left_out)["empty"].startswith("0 rows")
    with pytest.raises(MalformedError, match="nameless: no primary key"):
        of_pgvector(dsn, ["nameless"])


def test_a_password_is_in_no_error() -> None:
    with pytest.raises(UnavailableError) as caught:
        pgvector_tables("host=127.0.0.1 port=1 password=secret connect_timeout=2")
    assert "secret" not in str(caught.value)


def test_up_answers_as_postgresql_ranks(server: postgresql_server.Server, dsn: str) -> None:
    asked = vectors(4, 7)
    with UpProcess("--pgvector", dsn, "--port", "0", "--column", "year=integer", "--json") as up:
        url = up.until(r"Point your application at\s+(\S+)")[1]
        key = up.until(r"^  key\s+(\S+)")[1]
        up.until("Ctrl-C")
        answers = run(url, key, [query("documents", each, 5) for each in asked])
        for vector, answer in zip(asked, answers, strict=True):
            ranked = server.execute(
                "SET enable_indexscan = off; SELECT key FROM documents"
                f" ORDER BY embedding <=> {literal(vector)} LIMIT 5",
                "rag",
            )
            assert ids(answer) == ranked.splitlines()
        assert up.stop() == 0, up.text
    assert json.loads(up.lines[-1])["claims"]["integrity"]["result"] == "PASS"


def test_shadow_mode_needs_a_store_behind_http(dsn: str) -> None:
    with UpProcess("--pgvector", dsn, "--shadow", "--json") as up:
        assert up.wait() == 2
    assert "--chroma" in json.loads(up.lines[-1])["detail"]
