"""Commands and programs of a chapter of docs, run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def blocks(text: str, language: str, word: str = "") -> list[str]:
    """Return the blocks of a language in their order, of those only that contain a word."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for block in found if word in block]


def run_program(arguments: list[str], folder: Path, **environment: str) -> str:
    """Run a program in a folder, with the commands of this environment, and return its output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        arguments, cwd=folder, env={**os.environ, "PATH": path, **environment}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def shell(script: str, folder: Path, **environment: str) -> str:
    return run_program(["sh", "-e", "-c", script], folder, **environment)
