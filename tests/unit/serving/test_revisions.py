"""Databases of the first release become those of this one, on each engine; none goes back."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from migrations import copy_rows, differences, load_dump
from ragaudit.encoding.errors import InternalError, RefusedError, UnsupportedError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.database import open_engine, write_transaction
from ragaudit.prover.store.schema import SCHEMA as PROVER
from ragaudit.serving.revisions import Schema, Upgrade
from ragaudit.verifier.service.schema import SCHEMA as VERIFIER
from sqlalchemy import Connection, Engine, MetaData, delete, inspect, text, update

DUMPS = Path(__file__).parents[2] / "vectors/databases/0.1.0"
FIRST = "0001"


@dataclass(frozen=True)
class Party:
    """A service, and where its first release wrote the version of its tables."""

    schema: Schema
    dump: Path
    version: str


PARTIES = {
    "prover": Party(PROVER, DUMPS / "prover.sql.gz", "UPDATE prover_schema SET version = 1"),
    "verifier": Party(VERIFIER, DUMPS / "verifier.sql.gz", "UPDATE clock SET schema = 1"),
}


@pytest.fixture(params=PARTIES)
def party(request: pytest.FixtureRequest) -> Party:
    return PARTIES[request.param]


@pytest.fixture
def schema(party: Party) -> Schema:
    return party.schema


@pytest.fixture
def engine(empty_database: str) -> Iterator[Engine]:
    engine = open_engine(empty_database)
    yield engine
    engine.dispose()


@pytest.fixture
def first_release(engine: Engine, party: Party, tmp_path: Path) -> Engine:
    """A database that the first release's own code made in an audited window (see README.md)."""
    if engine.name == "sqlite":
        load_dump(party.dump, tmp_path / "store.db")
        return engine
    # On the other engine: the tables of that release, and the same rows.
    load_dump(party.dump, tmp_path / "dump.db")
    with write_transaction(engine) as connection:
        party.schema.step(connection, None, FIRST)
        party.schema.revision.drop(connection)
        assert copy_rows(f"sqlite:///{tmp_path}/dump.db", connection) > 50
    return engine


def stored(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table."""
    whole = MetaData()
    whole.reflect(connection)
    return {
        table.name: sorted(
            (dict(row) for row in connection.execute(table.select()).mappings()), key=repr
        )
        for table in whole.sorted_tables
    }


def test_the_migrations_lead_to_what_the_models_say(engine: Engine, schema: Schema) -> None:
    with write_transaction(engine) as connection:
        schema.step(connection, None, schema.head)
        assert differences(connection, schema) == []
        assert schema.found(connection) == schema.head


def test_a_new_database_is_of_the_newest_revision(engine: Engine, schema: Schema) -> None:
    with write_transaction(engine) as connection:
        assert schema.found(connection) is None
        schema.create(connection)
        assert differences(connection, schema) == []
        schema.demand(connection)
        schema.create(connection)  # again: nothing to do
        assert schema.upgrade(connection) == Upgrade(schema.head, schema.head)


def test_a_missing_migration_shows(engine: Engine, schema: Schema) -> None:
    """The comparison of the two tests above can fail: by a column, a table, a key."""
    with write_transaction(engine) as connection:
        schema.create(connection)
        name = "prover_tenant" if schema is PROVER else "provider"
        connection.execute(text(f"ALTER TABLE {name} ADD COLUMN more INTEGER"))
        connection.execute(text("CREATE TABLE other (name TEXT)"))
        found = [each[0] for each in differences(connection, schema)]
        assert sorted(found) == ["remove_column", "remove_table"]


def test_a_database_of_the_first_release_is_upgraded(first_release: Engine, schema: Schema) -> None:
    with write_transaction(first_release) as connection:
        before = stored(connection)
        assert schema.upgrade(connection) == Upgrade(FIRST, schema.head)
    with write_transaction(first_release) as connection:
        schema.demand(connection)
        assert differences(connection, schema) == []
        after = stored(connection)
        gone = {"prover_schema"}
        assert before.keys() - after.keys() <= gone
        for name, rows in before.items():
            if name not in gone:
                kept = after[name][0].keys() & rows[0].keys() if rows else set()
                assert [{k: row[k] for k in kept} for row in after[name]] == [
                    {k: row[k] for k in kept} for row in rows
                ], name
        assert sum(len(rows) for rows in before.values()) > 50


def test_the_first_revision_is_what_that_release_made(party: Party, tmp_path: Path) -> None:
    """The script against the tables of the dump, which the release's own code made."""
    load_dump(party.dump, tmp_path / "dump.db")
    made, scripted = (open_engine(f"sqlite:///{tmp_path}/{name}.db") for name in ("dump", "script"))
    with write_transaction(scripted) as connection:
        party.schema.step(connection, None, FIRST)
        party.schema.revision.drop(connection)
        expected = _shape(connection)
    with write_transaction(made) as connection:
        assert _shape(connection) == expected
    made.dispose()
    scripted.dispose()


def _shape(connection: Connection) -> dict[str, Any]:
    inspector = inspect(connection)
    return {
        name: (
            {each["name"]: (str(each["type"]), each["nullable"], each["default"])
             for each in inspector.get_columns(name)},
            set(inspector.get_pk_constraint(name)["constrained_columns"]),
            {frozenset(each["column_names"]) for each in inspector.get_unique_constraints(name)},
            {(each["name"], tuple(each["column_names"])) for each in inspector.get_indexes(name)},
            {(tuple(each["constrained_columns"]), each["referred_table"])
             for each in inspector.get_foreign_keys(name)},
        )
        for name in inspector.get_table_names()
    }  # fmt: skip


def test_an_older_revision_is_refused_with_the_command(
    first_release: Engine, schema: Schema
) -> None:
    with write_transaction(first_release) as connection:
        with pytest.raises(UnsupportedError, match="of revision 0001, older") as caught:
            schema.demand(connection)
        assert caught.value.expected is not None
        assert caught.value.expected.startswith("a back-up, then: ragaudit ")
        with pytest.raises(UnsupportedError):
            schema.create(connection)
        assert schema.found(connection) == FIRST


def test_a_revision_that_is_not_known_is_refused(engine: Engine, schema: Schema) -> None:
    with write_transaction(engine) as connection:
        schema.create(connection)
        connection.execute(update(schema.revision).values(version_num="4711"))
        for call in (schema.demand, schema.upgrade, schema.create):
            with pytest.raises(UnsupportedError, match="4711, which this software does not know"):
                call(connection)
        connection.execute(delete(schema.revision))
        with pytest.raises(StoreUnavailable, match="does not say its revision"):
            schema.demand(connection)


def test_a_database_without_tables_is_refused_with_the_command(
    engine: Engine, schema: Schema
) -> None:
    with write_transaction(engine) as connection:
        with pytest.raises(StoreUnavailable, match="no tables") as caught:
            schema.demand(connection)
        assert "migrate" in str(caught.value.expected)
        assert schema.upgrade(connection) == Upgrade(None, schema.head)
        schema.demand(connection)


def test_a_database_from_before_the_first_release_is_refused(
    first_release: Engine, party: Party
) -> None:
    with write_transaction(first_release) as connection:
        connection.execute(text(party.version))
        for call in (party.schema.demand, party.schema.upgrade):
            with pytest.raises(UnsupportedError, match="of version 1, from before"):
                call(connection)


def test_no_way_leads_back(schema: Schema) -> None:
    for name in schema.revisions:
        module = schema._directory.get_revision(name).module
        with pytest.raises(RefusedError, match="not downgraded: the older tables have no place"):
            module.downgrade()


def test_an_upgrade_that_fails_leaves_the_database_as_it_was(
    first_release: Engine, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    with write_transaction(first_release) as connection:
        before = stored(connection)
    last = schema._directory.get_revision(schema.head).module

    def fail() -> None:
        raise OSError("the machine stops here")

    monkeypatch.setattr(last, "upgrade", fail)
    with pytest.raises(OSError, match="stops"), write_transaction(first_release) as connection:
        schema.upgrade(connection)
    with write_transaction(first_release) as connection:
        assert stored(connection) == before
        assert schema.found(connection) == FIRST


def test_the_revisions_that_a_service_knows_are_those_of_the_migrations(schema: Schema) -> None:
    walked = [script.revision for script in schema._directory.walk_revisions()]
    assert list(schema.revisions) == walked[::-1]


def test_two_heads_are_a_fault_of_ours(schema: Schema, tmp_path: Path) -> None:
    for name, before in (("a", None), ("b", "a"), ("c", "a")):
        (tmp_path / f"revision_{name}.py").write_text(
            f"revision = {name!r}\ndown_revision = {before!r}\n"
        )
    other = Schema(
        *schema.metadata, table="r", scripts=tmp_path, command="x", unmarked=lambda _: None
    )
    with pytest.raises(InternalError, match="not one line"):
        other._directory  # noqa: B018 - a property
