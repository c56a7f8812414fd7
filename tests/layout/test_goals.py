"""tools/goals.py counts what it says it counts."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE = '''"""A docstring
of two lines."""

# a comment
NUMBERS = (
    1,

    2,
)
TEXT = """
two lines"""


def one(it: int) -> int:
    """Return it."""
    return it


class Two:
    """A class."""

    def more(self) -> None:
        print(1)  # a comment

        print(2)
'''


@pytest.fixture
def goals() -> ModuleType:
    spec = importlib.util.spec_from_file_location("goals", ROOT / "tools" / "goals.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lines_of_code_and_functions_of_one_line(goals: ModuleType, tmp_path: Path) -> None:
    assert goals.code_lines(MODULE) == 12
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    assert goals.one_liners([path]) == 0.5


def test_the_repository_is_measured(goals: ModuleType) -> None:
    assert ROOT / "tools/goals.py" in goals.tracked("tools/", "*.py")
    assert goals.importers()["ragaudit.encoding.errors"] > 100


def test_the_files_of_a_question_are_those_that_answer_it(goals: ModuleType) -> None:
    files = {path.relative_to(ROOT).as_posix() for path in goals.question_files()}
    assert "prover/src/ragaudit/prover/answering/answering.py" in files
    assert "ledger/src/ragaudit/ledger/log/fence.py" in files
    assert not any("/lab/" in each or each.startswith("lab/") for each in files)


def test_files_are_counted_that_name_a_whole_word(goals: ModuleType, tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text('dify = 1\noption = "--shadow"\n')
    second.write_text("modify = 2\n")
    assert goals.naming([first, second]) == [0, 1, 0, 0, 1]
