"""Rows as dataclasses, and what both services say of their databases."""

import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest
from ragaudit.encoding.errors import InternalError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.database import (
    Rows,
    make_private,
    open_engine,
    read_transaction,
    refused_statements,
    write_transaction,
)
from sqlalchemy import Column, Engine, Integer, LargeBinary, MetaData, Table, Text

metadata = MetaData()
table = Table(
    "thing",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("color", Text, nullable=False),
    Column("data", LargeBinary),
)


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Thing:
    number: int
    color: Color
    data: bytes | None


THINGS = Rows(Thing, table)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = open_engine(f"sqlite:///{tmp_path}/things.db")
    with write_transaction(made) as connection:
        metadata.create_all(connection)
    return made


def test_a_row_comes_back_as_it_was_inserted(engine: Engine) -> None:
    things = [Thing(1, Color.RED, b"\0\xff"), Thing(2, Color.BLUE, None)]
    with write_transaction(engine) as connection:
        for thing in things:
            THINGS.insert(connection, thing, owner="me")
        THINGS.insert(connection, Thing(1, Color.BLUE, None), owner="you")
    mine = table.c.owner == "me"
    with read_transaction(engine) as connection:
        assert THINGS.all(connection, THINGS.select(mine).order_by(table.c.number)) == things
        found = THINGS.find(connection, mine, table.c.number == 2)
        assert THINGS.find(connection, table.c.number == 3) is None
    assert found == things[1]
    assert found is not None and found.color is Color.BLUE


def test_a_value_that_the_enumeration_does_not_have_is_no_row() -> None:
    with pytest.raises(ValueError, match="green"):
        THINGS.of((1, "green", None))


def test_a_refused_statement_is_a_fault_of_ours_without_its_values(engine: Engine) -> None:
    row = Thing(1, Color.RED, b"secret")
    with (
        pytest.raises(InternalError, match="SQLITE_CONSTRAINT_PRIMARYKEY") as caught,
        refused_statements(),
        write_transaction(engine) as connection,
    ):
        THINGS.insert(connection, row, owner="me")
        THINGS.insert(connection, row, owner="me")
    assert "secret" not in str(caught.value) and "INSERT" not in str(caught.value)


def test_a_database_is_its_owners_only(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    make_private(open_engine(f"sqlite:///{file}"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)  # as a copy may have it
    make_private(open_engine(f"sqlite:///{file}"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(StoreUnavailable, match="cannot write"):
        make_private(open_engine(f"sqlite:///{tmp_path}/none/new.db"))
