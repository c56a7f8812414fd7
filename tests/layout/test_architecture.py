"""The architecture page: its picture is current, and what it names exists."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"


@pytest.fixture(scope="module")
def import_map() -> ModuleType:
    spec = importlib.util.spec_from_file_location("import_map", ROOT / "tools" / "import_map.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_that_of_the_imports(import_map: ModuleType) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert import_map.page(text) == text, "run python tools/import_map.py"


def test_implied_arrows_are_left_out(import_map: ModuleType) -> None:
    arrows = {"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset(), "d": frozenset()}
    assert import_map.reduced(arrows)["a"] == frozenset("b")
    assert import_map.picture(arrows) == "flowchart TD\n    a --> b\n    b --> c\n    d\n"


def test_every_module_that_is_named_exists() -> None:
    named = re.findall(r"`ragaudit\.([\w.]+)`", PAGE.read_text(encoding="utf-8"))
    assert named
    for name in named:
        assert importlib.util.find_spec(f"ragaudit.{name}") is not None, name


def test_every_chapter_and_folder_that_is_named_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (PAGE.parent / target).exists(), target


def test_it_stays_two_screens() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 120
