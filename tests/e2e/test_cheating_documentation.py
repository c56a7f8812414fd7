"""The examples of docs/researcher.md run as they stand, and the programs that it names."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from procedure_cases import use_cached_table
from ragaudit.lab.attacks import CATALOGUE, find

ROOT = Path(__file__).parents[2]
CHAPTER = ROOT / "docs" / "researcher.md"
EXAMPLES = ROOT / "examples"


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    use_cached_table()
    (example,) = re.findall(r"```python\n(.*?)```", CHAPTER.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(CHAPTER), "exec"), {"__name__": "example"})
    output = capsys.readouterr().out
    assert "SELECTION service is caught by ('selection',)" in output
    assert f"{len(CATALOGUE)} cheats" in output


def test_the_programs_run(capsys: pytest.CaptureFixture[str]) -> None:
    use_cached_table()
    for name in (
        "new_cheat", "another_accountant", "hide_from_estimate", "two_arguments",
        "account_privacy", "other_libraries",
    ):  # fmt: skip
        assert f"`examples/{name}.py`" in CHAPTER.read_text(encoding="utf-8")
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    output = capsys.readouterr().out
    assert "caught: True by ('selection',)" in output
    assert "without the check: PASS" in output
    assert "rho = 1.0000 (replace), 8 queries" in output
    assert "accounts that ask nothing else; estimated: " in output
    assert "another K:" in output
    assert "2 accounts for epsilon 8" in output
    assert "advantage at most " in output and "for two documents" in output


def test_the_commands_of_the_chapter_exist() -> None:
    text = CHAPTER.read_text(encoding="utf-8")
    for path in re.findall(r"(?:tests|docs|lab|examples)/[\w/.-]+", text):
        assert (ROOT / path.rstrip(".")).exists(), path
    assert find("half-the-sigma") in CATALOGUE
