"""The specification's tables of members are those of the classes (tools/member_tables.py)."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
WITH_TABLES = ("05-records", "06-ledger", "08-services")


@pytest.fixture
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables", ROOT / "tools" / "member_tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("chapter", WITH_TABLES)
def test_tables_are_those_of_the_classes(tables: ModuleType, chapter: str) -> None:
    text = (ROOT / "docs" / "spec" / f"{chapter}.md").read_text("utf-8")
    assert tables.TABLE.search(text)
    assert tables.written(text) == text, "run `python tools/member_tables.py`"


def test_no_other_chapter_has_one_that_is_not_compared(tables: ModuleType) -> None:
    found = {
        path.stem for path in tables.SPEC.glob("*.md") if tables.TABLE.search(path.read_text())
    }
    assert found == set(WITH_TABLES)
