"""The scripts beside the vectors, as modules; two of them import each other."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

VECTORS = Path(__file__).parents[1] / "vectors"
sys.path.insert(0, str(VECTORS))


def script(name: str) -> ModuleType:
    return importlib.import_module(name)
