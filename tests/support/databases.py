"""On which engines a test runs whose database comes from `engine_name` (tests/conftest.py)."""

from collections.abc import Callable
from contextlib import closing

import pytest
from ragaudit.ledger.log import schema as ledger_schema
from ragaudit.ledger.log.database import open_engine, write_transaction
from ragaudit.prover.store.database import Store
from ragaudit.verifier.service.database import create_tables

ON_SQLITE = pytest.mark.parametrize("engine_name", ["sqlite"])
"""For tests of its file, its pragmas and its locks."""


SERVER_AT_NIGHT = pytest.mark.parametrize(
    "engine_name", ["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)]
)
SERVER_SLOWLY = pytest.mark.parametrize(
    "engine_name", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
)

ON_EACH_ENGINE = [pytest.mark.usefixtures("on_each_engine"), SERVER_AT_NIGHT]
"""For modules of tests of whole services; on the server they are run at night."""

ON_EACH_ENGINE_SLOWLY = [pytest.mark.usefixtures("on_each_engine"), SERVER_SLOWLY]
"""For those with the most statements of their own; on the server they belong to the slow tests."""


def ledger_tables(url: str) -> None:
    """Make the ledger's tables."""
    engine = open_engine(url)
    with write_transaction(engine) as connection:
        ledger_schema.metadata.create_all(connection)
    engine.dispose()


def prover_tables(url: str) -> None:
    """Make the prover's tables."""
    with closing(Store.create(url)):
        pass


def verifier_tables(url: str) -> None:
    """Make the verifier's tables."""
    create_tables(url)


@pytest.fixture
def on_each_engine(
    engine_name: str, make_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every prover that the test sets up keeps its database on this engine."""
    if engine_name == "postgresql":
        url = make_database("postgresql", prover_tables)
        monkeypatch.setenv("RAGAUDIT_PROVER__STORE__URL", url)
