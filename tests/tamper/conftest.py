"""Fixtures of the tampering tests."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from reference_mutants import Mutant
from remembered_proofs import remembered_proofs

__all__ = ["remembered_proofs"]


@pytest.fixture
def load(tmp_path: Path) -> Callable[[Mutant], ModuleType]:
    return lambda mutant: mutant.load(tmp_path)
