"""`ragaudit attack scope` against PostgreSQL: row-level security holds, what weakens it shows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pgvector_server
import postgresql_server
import pytest
import scope_runs

pytestmark = pytest.mark.slow

DATABASE = "scope"
TABLE = f"""
    CREATE TABLE docs (id text, tenant text, content text, metadata jsonb,
                       embedding vector({scope_runs.DIMENSION}), PRIMARY KEY (tenant, id));
    GRANT SELECT, INSERT, UPDATE, DELETE ON docs TO acme, globex;
"""
SECURITY = """
    ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
    CREATE POLICY tenants ON docs USING (tenant = current_user::text COLLATE "default");
"""
# A name has the collation C, in which the index cannot search for a tenant, but for an id alone.
SEARCHED_BY_ID = """
    ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
    CREATE POLICY tenants ON docs USING (tenant = current_user);
"""
BY_SETTING = """
    ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
    CREATE POLICY tenants ON docs USING (tenant = current_setting('app.tenant', true));
    ALTER ROLE acme SET app.tenant = 'acme';
    ALTER ROLE globex SET app.tenant = 'globex';
"""
ONE_KEY = """
    ALTER TABLE docs DROP CONSTRAINT docs_pkey;
    ALTER TABLE docs ADD PRIMARY KEY (id);
"""
# The condition on the id is cheap and tells nothing by itself, so that it is asked first.
SLOW_TO_DENY = """
    CREATE FUNCTION owns(whose text) RETURNS boolean LANGUAGE plpgsql STABLE COST 100000 AS $$
    BEGIN
        IF whose = current_user::text THEN RETURN true; END IF;
        PERFORM pg_sleep(0.05);
        RETURN false;
    END $$;
    ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
    CREATE POLICY tenants ON docs USING (owns(tenant));
"""
VIEW = """
    CREATE VIEW all_docs AS SELECT * FROM docs;
    GRANT SELECT, INSERT, UPDATE, DELETE ON all_docs TO acme, globex;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[postgresql_server.Server]:
    programs = pgvector_server.programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL with pgvector: make setup")
    server = postgresql_server.Server(programs)
    try:
        server.start()
        for role in ("acme", "globex"):
            server.execute(f"CREATE ROLE {role} LOGIN")
        yield server
    finally:
        server.close()


def report(
    server: postgresql_server.Server, folder: Path, *statements: str, table: str = "docs",
    run: Callable[..., dict[str, Any]] = scope_runs.scope,
) -> dict[str, Any]:  # fmt: skip
    """Test a database in which these statements were run."""
    server.create(DATABASE)
    server.execute(
        "REVOKE globex FROM acme; ALTER ROLE acme RESET ALL; ALTER ROLE globex RESET ALL"
    )
    for statement in ("CREATE EXTENSION vector", TABLE, *statements):
        server.execute(statement, DATABASE)
    keys = {
        role: f"host={server.root} dbname={DATABASE} user={role} password=s3cret"
        for role in ("acme", "globex")
    }
    path = scope_runs.target(
        folder, "pgvector", "", keys, collections={"acme": table, "globex": table}
    )
    found = run(path, "--plant", "--writes", "--rounds", "2")
    assert "s3cret" not in str(found) and found["controlled"] == ["acme", "globex"]
    # What was planted is gone, and what probes wrote was never there.
    assert server.execute(f"SELECT count(*) FROM {table}", DATABASE) == "0"
    return found


def probes(found: dict[str, Any], kind: str) -> set[str]:
    return {name for name, what in scope_runs.found(found) if what == kind}


def test_row_level_security_is_clean(server: postgresql_server.Server, tmp_path: Path) -> None:
    found = report(server, tmp_path, SECURITY, run=scope_runs.scope)
    assert found["result"] == "CLEAN", found["findings"]
    assert {one["result"] for one in found["tried"]} == {"NOTHING"}


def test_a_policy_that_the_index_does_not_serve(
    server: postgresql_server.Server, tmp_path: Path
) -> None:
    """Where an index finds a row that the policy then hides, a plan counts it."""
    found = report(server, tmp_path, SEARCHED_BY_ID)
    assert scope_runs.found(found) <= {("explain", "existence")}


def test_without_it_all_is_found(server: postgresql_server.Server, tmp_path: Path) -> None:
    found = report(server, tmp_path)
    assert {"select-all", "filter", "filter-sql", "nearest", "get-ids", "error-texts", "returning",
            "own-objects"} <= probes(found, "content")  # fmt: skip
    assert "select-all" in probes(found, "vector")
    assert probes(found, "integrity") == {"write-tenant", "write-id", "delete"}
    assert "existence-by-id" in probes(found, "existence")


def test_a_setting_that_says_who_asks(server: postgresql_server.Server, tmp_path: Path) -> None:
    assert probes(report(server, tmp_path, BY_SETTING), "content") == {"session-setting"}


def test_a_key_over_all_tenants(server: postgresql_server.Server, tmp_path: Path) -> None:
    """Row-level security hides the row, and neither that its id is taken nor that a plan met it."""
    found = report(server, tmp_path, SECURITY, ONE_KEY)
    assert probes(found, "existence") == {"unique-violation", "explain"}
    assert probes(found, "content") == set()


def test_a_policy_that_takes_longer_to_deny(
    server: postgresql_server.Server, tmp_path: Path
) -> None:
    def timed(path: Path, *more: str) -> dict[str, Any]:
        return scope_runs.scope(path, *more, "--only", "existence-by-id")

    found = report(server, tmp_path, SLOW_TO_DENY, run=timed)
    assert scope_runs.found(found) == {("existence-by-id", "timing")}


def test_no_policy_is_asked_who_may_empty_a_table(
    server: postgresql_server.Server, tmp_path: Path
) -> None:
    """Whoever was granted ALL may: what is tried was taken back, and the rows were there to the
    end of the run."""
    found = report(server, tmp_path, SECURITY, "GRANT TRUNCATE ON docs TO acme")
    integrity = [one for one in found["findings"] if one["kind"] == "integrity"]
    assert {(one["probe"], one["attacker"]) for one in integrity} == {("whole-table", "acme")}
    assert "TRUNCATE" in integrity[0]["request"]["path"]
    assert not any(one["result"] == "NOT JUDGED" for one in found["tried"])


def test_a_view_of_the_owners(server: postgresql_server.Server, tmp_path: Path) -> None:
    found = report(server, tmp_path, SECURITY, VIEW, table="all_docs")
    assert "select-all" in probes(found, "content")


def test_a_role_that_may_become_another(server: postgresql_server.Server, tmp_path: Path) -> None:
    found = report(server, tmp_path, SECURITY, "GRANT globex TO acme WITH INHERIT FALSE, SET TRUE")
    content = [one for one in found["findings"] if one["kind"] == "content"]
    assert {(one["probe"], one["attacker"]) for one in content} == {("set-role", "acme")}
