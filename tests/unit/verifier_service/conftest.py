"""Fixtures of the verifier service's tests."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


def _load_harness() -> ModuleType:
    # Tests are imported without packages (--import-mode=importlib): name the helper ourselves.
    name = "verifier_service_harness"
    if name not in sys.modules:
        path = Path(__file__).with_name("harness.py")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


harness = _load_harness()


@pytest.fixture
def auditor():
    return harness.RecordingAuditor()


@pytest.fixture
def desk(tmp_path: Path, auditor) -> Iterator[object]:
    with harness.Desk(tmp_path, auditor).running() as running:
        yield running
