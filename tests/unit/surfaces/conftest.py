"""The application of all surfaces before a store in memory."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from surface_app import MemoryPort, surface_app


@pytest.fixture
def port() -> MemoryPort:
    return MemoryPort()


@pytest.fixture
def api(port: MemoryPort) -> Iterator[TestClient]:
    with TestClient(surface_app(port)) as client:
        yield client
