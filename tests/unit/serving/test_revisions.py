"""Tables are made or upgraded to those of today, on each engine and by command; none goes back."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from ragaudit.encoding.errors import InternalError, RefusedError, UnsupportedError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.database import open_engine, take_database, write_transaction
from ragaudit.prover.command.cli import app as prover_app
from ragaudit.prover.store import database as prover_database
from ragaudit.prover.store.database import Store
from ragaudit.serving.revisions import Schema, Upgrade
from ragaudit.verifier.command.cli import app as verifier_app
from ragaudit.verifier.service import database as verifier_database
from ragaudit.verifier.service.tables import clock
from ragaudit.verifier.settings import load
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    Text,
    delete,
    inspect,
    select,
    text,
    update,
)
from typer.testing import CliRunner

# A migration as a later release may bring one: a table that SQLite copies, and a new one.
NEXT_MIGRATION = """
import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "{revision}"
down_revision = "{before}"


def upgrade() -> None:
    op.add_column("{table}", sa.Column("more", sa.Text()))
    op.execute("UPDATE {table} SET more = 'of before'")
    with op.batch_alter_table("{table}") as batch:
        batch.alter_column("more", existing_type=sa.Text(), nullable=False)
    op.create_table("other", sa.Column("id", sa.Integer(), primary_key=True))


def downgrade() -> None:
    raise no_way_back()
"""
NEXT = "9000"


@dataclass(frozen=True)
class Party:
    """A service, its commands, and a row of the table that its next release changes."""

    name: str
    module: Any
    app: typer.Typer
    init: tuple[str, ...]
    table: str
    row: dict[str, object]

    @property
    def schema(self) -> Schema:
        schema: Schema = self.module.SCHEMA
        return schema

    def next_release(self, folder: Path) -> Schema:
        """The schema of a release that has one migration more."""
        schema = self.schema
        scripts = Path(shutil.copytree(schema._scripts, folder / "next"))
        script = NEXT_MIGRATION.format(revision=NEXT, before=schema.head, table=self.table)
        (scripts / f"revision_{NEXT}.py").write_text(script)
        whole = MetaData()
        for metadata in schema.metadata:
            for table in metadata.tables.values():
                table.to_metadata(whole)
        whole.tables[self.table].append_column(Column("more", Text, nullable=False))
        Table("other", whole, Column("id", Integer, primary_key=True))
        names = {"table": schema.revision.name, "command": schema._command}
        return Schema(whole, scripts=scripts, **names)

    def made(self, folder: Path) -> Path:
        """Run the command that makes settings and database; the settings' path."""
        run(self.app, "init", *self.init, folder / self.name)
        return folder / self.name / f"{self.name}.yaml"


PARTIES = {
    each.name: each
    for each in (
        Party(
            "prover", prover_database, prover_app,
            ("--provider", "example.org", "--folder"),
            "prover_stale", {"tenant": "kitchen", "marks": 3},
        ),
        Party(
            "verifier", verifier_database, verifier_app,
            ("--name", "regulator.example/cosigner", "--directory"),
            "provider", {"name": "p.example", "key": bytes(32), "added": 1},
        ),
    )
}  # fmt: skip


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
def stored(engine: Engine, party: Party) -> Engine:
    """A database of this release with a row."""
    with write_transaction(engine) as connection:
        party.schema.create(connection)
        connection.execute(changed(connection, party).insert(), [party.row])
    return engine


def changed(connection: Connection, party: Party) -> Table:
    """The table that the next release changes, as it is."""
    return Table(party.table, MetaData(), autoload_with=connection)


def shape(connection: Connection) -> dict[str, Any]:
    """All that a database says of its tables; the order of columns does not count."""
    inspector = inspect(connection)
    return {
        name: (
            {each["name"]: (str(each["type"]), each["nullable"], each["default"])
             for each in inspector.get_columns(name)},
            inspector.get_pk_constraint(name)["constrained_columns"],
            {frozenset(each["column_names"]) for each in inspector.get_unique_constraints(name)},
            {(each["name"], tuple(each["column_names"]), bool(each["unique"]))
             for each in inspector.get_indexes(name)},
            {(tuple(each["constrained_columns"]), each["referred_table"],
              tuple(each["referred_columns"]), tuple(each["options"].items()))
             for each in inspector.get_foreign_keys(name)},
            {each["sqltext"] for each in inspector.get_check_constraints(name)},
        )
        for name in inspector.get_table_names()
    }  # fmt: skip


def shape_of_models(engine: Engine, schema: Schema) -> dict[str, Any]:
    """That of a new database, made in the empty one and taken back."""
    with engine.connect() as connection, connection.begin() as transaction:
        schema.create(connection)
        found = shape(connection)
        transaction.rollback()
    return found


def test_the_migrations_lead_to_what_the_models_say(engine: Engine, schema: Schema) -> None:
    expected = shape_of_models(engine, schema)
    with write_transaction(engine) as connection:
        assert inspect(connection).get_table_names() == []
        schema.step(connection, None)
        assert shape(connection) == expected
        assert schema.found(connection) == schema.head
    tables = [name for metadata in schema.metadata for name in metadata.tables]
    assert sorted(expected) == sorted([*tables, schema.revision.name])


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE {} ADD COLUMN more INTEGER",
        "CREATE TABLE other (name TEXT)",
        "CREATE UNIQUE INDEX other ON {} ({})",
    ],
)
def test_a_missing_migration_shows(
    engine: Engine, schema: Schema, party: Party, change: str
) -> None:
    with write_transaction(engine) as connection:
        schema.create(connection)
        before = shape(connection)
        connection.execute(text(change.format(party.table, list(party.row)[-1])))
        assert shape(connection) != before


def test_a_new_database_is_of_the_newest_revision(engine: Engine, schema: Schema) -> None:
    with write_transaction(engine) as connection:
        assert schema.found(connection) is None
        schema.create(connection)
        schema.demand(connection)
        schema.create(connection)  # again: nothing to do
        assert schema.upgrade(connection) == Upgrade(schema.head, schema.head)


def test_a_database_is_upgraded_with_its_rows(stored: Engine, party: Party, tmp_path: Path) -> None:
    later = party.next_release(tmp_path)
    assert later.revisions == (*party.schema.revisions, NEXT)
    with write_transaction(stored) as connection:
        assert later.upgrade(connection) == Upgrade(party.schema.head, NEXT)
    with write_transaction(stored) as connection:
        later.demand(connection)
        (row,) = connection.execute(select(changed(connection, party))).mappings()
        assert dict(row) == {**party.row, "more": "of before"}
        upgraded = shape(connection)
        with pytest.raises(UnsupportedError, match=f"{NEXT}, which this software does not know"):
            party.schema.demand(connection)
    everything = MetaData()
    everything.reflect(stored)
    everything.drop_all(stored)
    assert upgraded == shape_of_models(stored, later)


def test_an_older_revision_is_refused_with_the_command(
    stored: Engine, party: Party, tmp_path: Path
) -> None:
    later, before = party.next_release(tmp_path), party.schema.head
    with write_transaction(stored) as connection:
        with pytest.raises(UnsupportedError, match=f"of revision {before}, older") as caught:
            later.demand(connection)
        assert caught.value.expected == f"a back-up, then: ragaudit {party.name} migrate"
        with pytest.raises(UnsupportedError):
            later.create(connection)
        assert later.found(connection) == before


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


def test_no_way_leads_back(schema: Schema) -> None:
    for name in schema.revisions:
        module = schema._directory.get_revision(name).module
        with pytest.raises(RefusedError, match="not downgraded: the older tables have no place"):
            module.downgrade()


def test_an_upgrade_that_fails_leaves_the_database_as_it_was(
    stored: Engine, party: Party, tmp_path: Path
) -> None:
    later = party.next_release(tmp_path)
    script = later._scripts / f"revision_{NEXT}.py"
    failing = "    raise OSError('the machine stops here')\n\n\ndef downgrade"
    script.write_text(script.read_text().replace("def downgrade", failing))
    with write_transaction(stored) as connection:
        before = shape(connection)
    with pytest.raises(OSError, match="stops"), write_transaction(stored) as connection:
        later.upgrade(connection)
    with write_transaction(stored) as connection:
        assert shape(connection) == before
        assert later.found(connection) == party.schema.head
        (row,) = connection.execute(select(changed(connection, party))).mappings()
        assert dict(row) == party.row


def test_the_revisions_that_a_service_knows_are_those_of_the_migrations(schema: Schema) -> None:
    walked = [script.revision for script in schema._directory.walk_revisions()]
    assert list(schema.revisions) == walked[::-1]


def test_two_heads_are_a_fault_of_ours(schema: Schema, tmp_path: Path) -> None:
    for name, before in (("a", None), ("b", "a"), ("c", "a")):
        (tmp_path / f"revision_{name}.py").write_text(
            f"revision = {name!r}\ndown_revision = {before!r}\n"
        )
    other = Schema(*schema.metadata, table="r", scripts=tmp_path, command="x")
    with pytest.raises(InternalError, match="not one line"):
        other._directory  # noqa: B018 - a property


def run(app: typer.Typer, *arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def run_json(app: typer.Typer, *arguments: object) -> Any:
    # The log of `serve` above goes on in this process, before the document.
    return json.loads(run(app, *arguments, "--json").splitlines()[-1])


def test_the_command_upgrades_what_a_start_refuses(
    party: Party, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, head = party.made(tmp_path), party.schema.head
    with monkeypatch.context() as later:
        later.setattr(party.module, "SCHEMA", party.next_release(tmp_path))
        said = run(party.app, "serve", "--settings", settings, code=2)
        assert f"a back-up, then: ragaudit {party.name} migrate" in said
        done = run_json(party.app, "migrate", "--settings", settings)
        assert done == {"before": head, "after": NEXT}
        done = run_json(party.app, "migrate", "--settings", settings)
        assert done == {"before": NEXT, "after": NEXT}
    # With the release of before: nothing goes back.
    for command in ("serve", "migrate"):
        said = run(party.app, command, "--settings", settings, code=2)
        assert f"{NEXT}, which this software does not know" in said


def test_a_prover_that_is_served_is_not_upgraded(tmp_path: Path) -> None:
    settings = PARTIES["prover"].made(tmp_path)
    with closing(Store.open(f"sqlite:///{settings.parent}/prover.db")) as store:
        lock = take_database(store.engine)
        said = run(prover_app, "migrate", "--settings", settings, code=4)
        assert "another process serves this database" in said
        lock.release()
    run(prover_app, "migrate", "--settings", settings)


def test_a_verifier_that_is_served_is_not_upgraded(tmp_path: Path) -> None:
    settings = PARTIES["verifier"].made(tmp_path)
    with closing(load(settings).fence_place.open()):
        said = run(verifier_app, "migrate", "--settings", settings, code=4)
        assert "another process holds the fence" in said
    run(verifier_app, "migrate", "--settings", settings)


def test_an_upgrade_makes_no_fence(tmp_path: Path) -> None:
    """One that is missing is refused at the start: the upgrade must not make it look complete."""
    settings = PARTIES["verifier"].made(tmp_path)
    loaded = load(settings)
    engine = open_engine(loaded.database_url)
    with write_transaction(engine) as connection:
        connection.execute(update(clock).values(writes=1))  # it has attested
    engine.dispose()
    loaded.fence_path.unlink(missing_ok=True)
    run(verifier_app, "migrate", "--settings", settings)
    assert not loaded.fence_path.exists()
    said = run(verifier_app, "serve", "--settings", settings, code=4)
    assert "the fence is missing" in said


def test_a_database_elsewhere_gets_its_tables_by_the_same_command(
    party: Party, tmp_path: Path, empty_database: str
) -> None:
    path = party.made(tmp_path)
    said = path.read_text().replace("sqlite:///prover.db", empty_database)
    path.write_text(said if party.name == "prover" else f"{said}\ndatabase: {empty_database}\n")
    said = run(party.app, "serve", "--settings", path, code=3)
    assert "no tables" in said and f"ragaudit {party.name} migrate" in said
    assert "no tables" in run(party.app, "migrate", "--settings", path)
    assert "no tables" not in run(party.app, "migrate", "--settings", path)
