"""The reference verifier stands alone: standard library, relative imports, no compiled code."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
import ragaudit.verifier.reference as reference

SOURCES = sorted(Path(str(reference.__file__)).parent.rglob("*"))
MODULES = [path for path in SOURCES if path.suffix == ".py"]

LOADED = """
import json, sys
import ragaudit.verifier.reference
own = sorted(name for name in sys.modules if name.split(".")[0] == "ragaudit")
foreign = sorted(
    name for name, module in sys.modules.items()
    if "site-packages" in str(getattr(module, "__file__", None) or "")
    or name.split(".")[0] in {"numpy", "cryptography"}
)
print(json.dumps([own, foreign]))
"""


def test_a_fresh_interpreter_loads_nothing_else() -> None:
    command = [sys.executable, "-c", LOADED]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    own, foreign = json.loads(result.stdout)
    expected = {"ragaudit", "ragaudit.verifier"}
    assert {name for name in own if not name.startswith(reference.__name__)} == expected
    # Editable installs put finder modules of their own into site-packages.
    assert [name for name in foreign if not name.startswith(("__editable__", "_virtualenv"))] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_imports_are_relative_or_of_the_standard_library(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level <= 1
            if node.level == 0:
                assert str(node.module).split(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.Import):
            for name in node.names:
                assert name.name.split(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.Name):
            assert node.id not in {"__import__", "eval", "exec"}


def test_the_package_holds_source_only() -> None:
    kept = [path for path in SOURCES if path.is_file() and path.parent.name != "__pycache__"]
    assert kept == MODULES
