"""An empty log, on each engine, and its checkpoints."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from databases import ledger_tables
from ledger_logs import COSIGNERS, KEY
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.store import LogStore
from sqlalchemy import Engine


@pytest.fixture
def url(engine_name: str, make_database: Callable[..., str]) -> str:
    return make_database(engine_name, ledger_tables)


@pytest.fixture
def reopened(url: str) -> Iterator[Callable[[], Engine]]:
    """A function that opens the database again, as another process does."""
    made: list[Engine] = []

    def reopen() -> Engine:
        made.append(open_engine(url))
        return made[-1]

    yield reopen
    for engine in made:
        engine.dispose()


@pytest.fixture
def engine(url: Any) -> Iterator[Any]:
    engine = open_engine(url)
    yield engine
    engine.dispose()


@pytest.fixture
def store(engine: Any) -> Any:
    return LogStore.create(engine, KEY.verifier_key)


@pytest.fixture
def checkpoints(store: Any) -> CheckpointStore:
    return CheckpointStore(store, COSIGNERS)
