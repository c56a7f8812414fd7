"""An empty log, on SQLite unless a module has another `url`, and its checkpoints."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ledger_logs import COSIGNERS, KEY
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.store import LogStore


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


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
