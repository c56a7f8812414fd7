"""The commands and the program of docs/operations.md, as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ragaudit.prover.settings import Settings

CHAPTER = Path(__file__).parents[3] / "docs/operations.md"


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", CHAPTER.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "manual.md").write_text(
        "# Returns\nSend it back.\n# Hours\nNine to five.\n# Price\nIt is free.\n"
    )
    rows = [f'{{"id": "q{n}", "text": "answer number {n}"}}' for n in range(4)]
    (tmp_path / "faq.jsonl").write_text("\n".join(rows))
    return tmp_path


def run(arguments: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        arguments,
        cwd=folder,
        env={**os.environ, "PATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_the_chapters_commands_and_program_run(corpus: Path) -> None:
    output = run(["sh", "-e", "-c", block("sh")], corpus)
    assert "provider_key: " in output and '"name": "ada"' in output
    assert run([sys.executable, "-c", block("python")], corpus).strip() == "alive ready"


def test_every_setting_is_in_the_chapter() -> None:
    text = CHAPTER.read_text()

    def names(model: Any) -> list[str]:
        found: list[Any] = []
        for name, member in model.model_fields.items():
            inner = member.annotation
            found += names(inner) if hasattr(inner, "model_fields") else [name]
        return found

    missing = [name for name in names(Settings) if re.search(rf"`[a-z.]*{name}`", text) is None]
    assert missing == []
