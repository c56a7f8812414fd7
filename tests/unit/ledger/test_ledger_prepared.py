"""Statements on the driver's cursor: the same rows and the same errors as through SQLAlchemy."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from ragaudit.encoding.errors import InternalError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.database import open_engine, read_transaction, write_transaction
from ragaudit.ledger.log.prepared import Prepared
from sqlalchemy import (
    Boolean,
    Column,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

TABLE = Table(
    "things",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", Text),
    Column("data", LargeBinary),
    Column("good", Boolean),
)
INSERT = Prepared(insert(TABLE))
SELECT = select(TABLE.c.good, TABLE.c.data, TABLE.c.name, TABLE.c.id)
FROM = Prepared(SELECT.where(TABLE.c.id >= bindparam("least")).order_by(TABLE.c.id))
COUNT_UP = Prepared(
    update(TABLE).where(TABLE.c.id == bindparam("of")).values(id=TABLE.c.id + bindparam("more"))
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = open_engine(f"sqlite:///{tmp_path / 'things.db'}")
    with write_transaction(made) as connection:
        TABLE.metadata.create_all(connection)
        INSERT.change(connection, id=1, name="one", data=b"\x00\xff", good=True)
        INSERT.change(connection, id=2, name=None, data=None, good=False)
    yield made
    made.dispose()


def test_rows_are_those_of_sqlalchemy(engine: Engine) -> None:
    with read_transaction(engine) as connection:
        expected = [tuple(row) for row in connection.execute(SELECT.order_by(TABLE.c.id))]
        assert FROM.rows(connection, least=0) == expected
        assert expected == [(True, b"\x00\xff", "one", 1), (False, None, None, 2)]
        assert type(FROM.rows(connection, least=0)[0][0]) is bool
        assert FROM.row(connection, least=2) == expected[1]
        assert FROM.row(connection, least=3) is None
        with pytest.raises(InternalError, match="more than one row"):
            FROM.row(connection, least=0)


def test_changes_are_counted_and_belong_to_the_transaction(engine: Engine) -> None:
    with pytest.raises(KeyboardInterrupt), write_transaction(engine) as connection:
        assert COUNT_UP.change(connection, of=2, more=5) == 1
        assert COUNT_UP.change(connection, of=2, more=5) == 0
        raise KeyboardInterrupt
    with read_transaction(engine) as connection:
        assert [row[3] for row in FROM.rows(connection, least=0)] == [1, 2]


def test_errors_are_those_of_sqlalchemy_without_parameters(engine: Engine) -> None:
    with pytest.raises(IntegrityError) as caught, write_transaction(engine) as connection:
        INSERT.change(connection, id=1, name="a secret", data=b"", good=True)
    assert "secret" not in str(caught.value)
    with write_transaction(engine) as connection:
        TABLE.drop(connection)
    with pytest.raises(StoreUnavailable), read_transaction(engine) as connection:
        FROM.rows(connection, least=0)


def test_errors_of_later_rows_are_those_of_sqlalchemy_too(engine: Engine) -> None:
    """SQLite looks for rows only when they are fetched, and may fail at any of them."""
    first_row_fits = Prepared(
        text("SELECT abs(value) FROM (SELECT 1 AS value UNION ALL SELECT -9223372036854775807 - 1)")
    )
    with pytest.raises(StoreUnavailable, match="overflow"), read_transaction(engine) as connection:
        first_row_fits.rows(connection)
