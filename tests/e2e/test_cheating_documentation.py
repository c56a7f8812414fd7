"""The examples of docs/researcher.md run as they stand, one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from procedure_cases import use_cached_table
from ragaudit.lab.attacks import CATALOGUE, find

CHAPTER = Path(__file__).parents[2] / "docs" / "researcher.md"


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    use_cached_table()
    examples = re.findall(r"```python\n(.*?)```", CHAPTER.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 8
    names: dict[str, Any] = {"__name__": "example"}
    for example in examples:
        exec(compile(example, str(CHAPTER), "exec"), names)
    output = capsys.readouterr().out
    assert "SELECTION service is caught by ('selection',)" in output
    assert f"{len(CATALOGUE)} cheats" in output
    assert "another K:" in output
    assert "2 accounts for epsilon 8" in output
    assert "rho = 1.0000 (replace), 8 queries" in output


def test_the_commands_of_the_chapter_exist() -> None:
    text = CHAPTER.read_text(encoding="utf-8")
    for path in re.findall(r"(?:tests|docs|lab)/[\w/.-]+", text):
        assert (CHAPTER.parents[1] / path.rstrip(".")).exists(), path
    assert find("half-the-sigma") in CATALOGUE
