"""Fixtures of the laboratory's tests."""

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def _little_garbage(request: pytest.FixtureRequest) -> None:
    """A benchmark looks for garbage before each measurement: not among all that a run has made."""
    if request.path.name.startswith("test_bench"):
        gc.collect()
        gc.freeze()
