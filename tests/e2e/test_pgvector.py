"""pgvector as a backend, on a real PostgreSQL: snapshots, order, types, limits, words."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pgvector_server
import postgresql_server
import psycopg
import pytest
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.prover.backend_settings import PgvectorSettings
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.opening import check_metric
from ragaudit.prover.backends.pgvector import PgvectorStore
from ragaudit.prover.errors import BackendUnavailable, MalformedDocument

pytestmark = pytest.mark.slow

DATABASE = "stores"


@pytest.fixture(scope="module")
def server() -> Iterator[postgresql_server.Server]:
    with pgvector_server.running() as server:
        yield server


@pytest.fixture
def database(server: postgresql_server.Server) -> postgresql_server.Server:
    """An empty database with the extension."""
    server.create(DATABASE)
    server.execute("CREATE EXTENSION vector", DATABASE)
    return server


class Stores:
    """Opens stores of a test, and closes them whatever it finds."""

    def __init__(self, server: postgresql_server.Server, folder: Path) -> None:
        self._server, self._folder = server, folder
        self.opened: list[PgvectorStore] = []

    def __call__(self, user: str = "ragaudit", **members: Any) -> PgvectorStore:
        self.opened.append(PgvectorStore(settings(self._server, self._folder, user, **members)))
        return self.opened[-1]


@pytest.fixture
def stores(database: postgresql_server.Server, tmp_path: Path) -> Iterator[Stores]:
    made = Stores(database, tmp_path)
    yield made
    for store in made.opened:
        store.close()


def run(server: postgresql_server.Server, statement: str) -> str:
    return server.execute(statement, DATABASE)


def settings(
    server: postgresql_server.Server, folder: Path, user: str = "ragaudit", **members: Any
) -> PgvectorSettings:
    file = folder / "dsn"
    file.write_text(f"host={server.root} dbname={DATABASE} user={user} password=s3cret\n")
    file.chmod(0o600)
    members.setdefault("tables", {"acme": {"table": "items"}})
    return PgvectorSettings.model_validate({"dsn_file": file, **members})


def read(store: PgvectorStore, tenant: str = "acme", rows: int = 2) -> list[Document]:
    return [document for page in store.pages(tenant, rows) for document in page]


PLAIN = """
    CREATE TABLE items (id text PRIMARY KEY, content text, embedding vector(3));
    INSERT INTO items VALUES ('b', 'bee', '[1,2,3]'), ('a', NULL, '[0.1,0.2,0.3]'),
        ('Z', 'zed', '[0,0,1e-30]'), ('é', 'accent', '[4,5,6]');
"""


def test_documents_come_as_stored_and_rising_by_id(
    database: postgresql_server.Server, stores: Stores
) -> None:
    run(database, PLAIN)
    store = stores()
    store.check()
    assert (store.tenants(), store.count("acme"), store.dimension()) == (["acme"], 4, 3)
    assert [len(page) for page in store.pages("acme", 3)] == [3, 1]
    documents = read(store)
    assert [document.id for document in documents] == ["Z", "a", "b", "é"]
    assert [document.content for document in documents] == ["zed", "", "bee", "accent"]
    vector = documents[1].vector
    assert vector is not None and vector.dtype == np.float32
    assert vector.tolist() == np.array([0.1, 0.2, 0.3], dtype=np.float32).tolist()
    found = store.fetch("acme", ["é", "none", "b"])
    assert [document and document.content for document in found] == ["accent", None, "bee"]
    assert store.fetch("acme", []) == []


def test_tables_of_other_shapes_are_read_by_the_settings(
    database: postgresql_server.Server, stores: Stores
) -> None:
    """Names that need quotes, numbers as ids, halfvec, JSON and plain columns, a tenant column."""
    run(
        database,
        """CREATE SCHEMA "Odd; schema";
        CREATE TABLE "Odd; schema"."my ""docs"" here" (
            "Id" bigint PRIMARY KEY, body text, "a ""vector""; --" halfvec(2), meta jsonb,
            year int, score numeric, "owner's" uuid);
        INSERT INTO "Odd; schema"."my ""docs"" here" SELECT n, 'row ' || n, '[1,0.5]',
            '{"k": [1, 1.50, "x"], "year": "hidden"}', 2000 + n, 0.10,
            CASE WHEN n % 2 = 0 THEN '00000000-0000-0000-0000-000000000000'::uuid
            ELSE '00000000-0000-0000-0000-000000000001'::uuid END
            FROM generate_series(1, 12) n;""",
    )
    table = {
        "schema": "Odd; schema", "table": 'my "docs" here', "id": "Id", "content": "body",
        "vector": 'a "vector"; --', "attributes": "meta", "attribute_columns": ["year", "score"],
        "tenant_column": "owner's", "metric": "inner-product",
    }  # fmt: skip
    tables = {
        name: {**table, "tenant_value": f"00000000-0000-0000-0000-00000000000{value}"}
        for value, name in enumerate(("even", "odd"))
    }
    store = stores(tables=tables)
    even = read(store, "even", 4)
    # As text: 10 and 12 come before 2.
    assert [document.id for document in even] == ["10", "12", "2", "4", "6", "8"]
    assert even[2].attributes == '{"k":[1,1.5,"x"],"score":0.1,"year":2002}'
    assert all(document.vector is not None for document in even)
    # A number in another spelling, and a row of the other tenant, are not there.
    found = store.fetch("even", ["2", "02", "3"])
    assert [document and document.id for document in found] == ["2", None, None]
    assert store.count("odd") == 6
    check_metric(store, "inner-product")
    with pytest.raises(MalformedSettings, match="ranks by inner-product"):
        check_metric(store, "cosine")


def test_pages_are_one_snapshot(database: postgresql_server.Server, stores: Stores) -> None:
    run(database, PLAIN)
    store = stores()
    pages = store.pages("acme", 1)
    first = next(pages)
    run(database, "DELETE FROM items WHERE id = 'b'; UPDATE items SET content = 'changed'")
    run(database, "INSERT INTO items VALUES ('c', 'new', '[1,1,1]')")
    rest = [document for page in pages for document in page]
    assert [it.id for it in [*first, *rest]] == ["Z", "a", "b", "é"]
    assert [it.content for it in rest] == ["", "bee", "accent"]
    assert [it.id for it in read(store)] == ["Z", "a", "c", "é"]


def test_the_store_is_never_written(database: postgresql_server.Server, stores: Stores) -> None:
    run(database, PLAIN)
    run(
        database,
        """CREATE FUNCTION spoil() RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN DELETE FROM items; RETURN 'gone'; END $$;
        CREATE VIEW trap AS SELECT id, spoil() AS content, embedding FROM items;""",
    )
    store = stores(tables={"acme": {"table": "trap"}})
    with pytest.raises(BackendUnavailable, match=r"an error of the database \(25006\)"):
        read(store)
    assert run(database, "SELECT count(*) FROM items") == "4"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE items SET embedding = NULL WHERE id = 'b'", r"document b: no vector \(NULL\)"),
        ("ALTER TABLE items ALTER embedding TYPE vector; "
         "UPDATE items SET embedding = '[1]' WHERE id = 'é'", "document é: vector of another"),
        ("ALTER TABLE items ALTER embedding TYPE float8[] USING ARRAY[1, 'NaN'::float8]",
         "an error of the database"),
        ("UPDATE items SET content = repeat('x', 70000) WHERE id = 'Z'", "document Z: content too"),
        ("ALTER TABLE items DROP CONSTRAINT items_pkey; ALTER TABLE items ALTER id DROP NOT NULL; "
         "UPDATE items SET id = NULL WHERE id = 'a'", "a row has no id"),
        ("ALTER TABLE items DROP embedding; ALTER TABLE items ADD embedding date",
         "the vector column is not one of vectors"),
        ("ALTER TABLE items DROP embedding", "no such table or column"),
        ("DROP TABLE items", "no such table or column"),
        ("DROP EXTENSION vector CASCADE", "the database has no pgvector"),
    ],
)  # fmt: skip
def test_what_cannot_be_committed_is_refused_with_the_reason(
    database: postgresql_server.Server, stores: Stores, change: str, words: str
) -> None:
    run(database, PLAIN)
    run(database, change)
    store = stores()
    with pytest.raises((BackendUnavailable, MalformedDocument), match=words):
        read(store, rows=10)


def test_two_rows_of_one_id_are_nobodys(database: postgresql_server.Server, stores: Stores) -> None:
    run(database, PLAIN)
    run(database, "ALTER TABLE items DROP CONSTRAINT items_pkey")
    run(database, "INSERT INTO items VALUES ('b', 'another bee', '[1,2,3]')")
    store = stores()
    assert store.fetch("acme", ["b", "Z"])[0] is None


def test_attributes_must_be_an_object(database: postgresql_server.Server, stores: Stores) -> None:
    run(database, PLAIN)
    run(database, "ALTER TABLE items ADD meta jsonb DEFAULT '[1]'")
    tables = {"acme": {"table": "items", "attributes": "meta"}}
    store = stores(tables=tables)
    with pytest.raises(MalformedDocument, match="document Z: attributes are not a JSON object"):
        read(store)
    assert store.fetch("acme", ["Z"]) == [None]


def test_a_locked_table_is_not_waited_for(
    database: postgresql_server.Server, stores: Stores
) -> None:
    run(database, PLAIN)
    with psycopg.connect(host=str(database.root), dbname=DATABASE, user="ragaudit") as other:
        other.execute("LOCK TABLE items")
        store = stores(statement_timeout_seconds=0.2)
        with pytest.raises(BackendUnavailable, match="a statement took too long"):
            store.count("acme")
    # The same connection serves again.
    assert store.count("acme") == 4


def test_a_restarted_server_is_found_again_and_its_address_stays_here(
    database: postgresql_server.Server, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    run(database, PLAIN)
    store = stores()
    store.check()
    database.stop()
    try:
        with caplog.at_level(logging.DEBUG), pytest.raises(BackendUnavailable) as caught:
            store.fetch("acme", ["b"])
        assert "the database cannot be reached" in str(caught.value)
        shown = f"{caught.value!r} {caplog.text} {store!r} {vars(caught.value)}"
        assert "s3cret" not in shown and str(database.root) not in shown
    finally:
        database.start()
    assert store.fetch("acme", ["b"])[0] is not None


def test_a_user_who_may_not_read_is_told_so(
    database: postgresql_server.Server, stores: Stores
) -> None:
    run(database, PLAIN)
    run(database, "DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    store = stores(user="stranger")
    with pytest.raises(BackendUnavailable, match="its user may not read the table"):
        store.check()


def test_a_connection_string_that_is_none_is_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "dsn"
    file.write_text("postgresql://u:s3cret@[bad")
    file.chmod(0o600)
    tables = {"acme": {"table": "items"}}
    with pytest.raises(MalformedSettings, match="not a connection string") as caught:
        PgvectorStore(PgvectorSettings.model_validate({"dsn_file": file, "tables": tables}))
    assert "s3cret" not in str(caught.value)
