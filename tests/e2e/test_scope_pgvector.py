"""`ragaudit attack scope` against PostgreSQL: row-level security holds, what weakens it shows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pgvector_server
import postgresql_server
import pytest
import scope_runs
from ragaudit.lab.attacks.scope.probes import Tested

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


# As far as possible one hole each, beside the policy that holds.
WEAKER = {
    "row-security": (
        "ALTER TABLE docs FORCE ROW LEVEL SECURITY", "ALTER TABLE docs OWNER TO acme",
    ),
    "relations": (VIEW,),
    "statistics": (
        """CREATE FUNCTION sampled() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
           BEGIN ANALYZE docs; RETURN NULL; END $$""",
        "CREATE TRIGGER sampled AFTER INSERT ON docs EXECUTE FUNCTION sampled()",
        "GRANT SELECT ON pg_statistic TO acme",
    ),
}  # fmt: skip
OPEN = {
    "content": {"select-all", "filter", "filter-sql", "nearest", "get-ids", "error-texts",
                "returning", "own-objects"},
    "integrity": {"write-tenant", "write-id", "delete"},
    "existence": {"existence-by-id", "count"},
}  # fmt: skip
"""What is found without any policy, by kind."""
TOLD_BY_OTHERS = {"session-setting", "unique-violation", "explain", "whole-table", "set-role"}
"""What has a hole in a test of its own."""


@pytest.fixture(scope="module")
def server() -> Iterator[postgresql_server.Server]:
    with pgvector_server.running() as server:
        for role in ("acme", "globex"):
            server.execute(f"CREATE ROLE {role} LOGIN")
        yield server


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
    for kind, names in OPEN.items():
        assert names <= probes(found, kind), kind
    assert "select-all" in probes(found, "vector")
    assert probes(found, "integrity") == OPEN["integrity"]


def test_every_probe_has_a_hole(tmp_path: Path) -> None:
    asking = scope_runs.adapter(tmp_path, "pgvector")
    sides = ("acme", "globex")
    tried: list[Tested] = [*asking.probes(*sides), *asking.oracles(*sides)]
    tried += [*asking.writes(*sides), *asking.censuses(*sides)]
    assert {one.name for one in tried} == TOLD_BY_OTHERS.union(*OPEN.values(), WEAKER)


@pytest.mark.parametrize("probe", WEAKER)
def test_what_weakens_row_level_security_is_found_by_its_probe(
    probe: str, server: postgresql_server.Server, tmp_path: Path
) -> None:
    def only(path: Path, *more: str) -> dict[str, Any]:
        return scope_runs.scope(path, *more, "--only", probe)

    found = report(server, tmp_path, SECURITY, *WEAKER[probe], run=only)
    assert (probe, "content") in scope_runs.found(found)


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
