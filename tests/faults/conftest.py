"""Fixtures of the tests with processes that are killed, cut off or set back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from databases import on_each_engine
from finished_windows import finished
from generation_channel import model, model_url
from prover_process import Setting
from scenario import make_scenario, scenario

__all__ = ["finished", "make_scenario", "model", "model_url", "on_each_engine", "scenario"]


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    """A prover as a process, with a verifier in this one."""
    made = Setting(tmp_path)
    yield made
    made.stop()
