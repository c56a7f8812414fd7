"""Every check of the two arguments has a Rust test that fails without it.

The Rust workspace is copied, one fault of rust_mutants.toml is put into the copy, and the Rust
tests must fail; the unchanged copy must pass.
"""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WORKSPACE = Path("circuits/rust")
VECTORS = Path("tests/vectors")
MUTANTS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "rust_mutants.toml").read_text(encoding="utf-8")
)["mutant"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(shutil.which("cargo") is None, reason="needs a Rust toolchain"),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the workspace whose tests pass."""
    root = tmp_path_factory.mktemp("mutants")
    shutil.copytree(
        ROOT / WORKSPACE, root / WORKSPACE, ignore=shutil.ignore_patterns("target", "*.so")
    )
    shutil.copytree(ROOT / VECTORS, root / VECTORS)
    failed, output = run_tests(root)
    assert failed == set(), output
    assert "test result: ok" in output, output
    yield root
    shutil.rmtree(root)


def run_tests(root: Path) -> tuple[set[str], str]:
    """Run the Rust tests of the copy: the names of those that failed, and the output."""
    result = subprocess.run(
        [
            *("cargo", "test", "--locked", "--no-fail-fast", "--tests"),
            *("--package", "ragaudit-arguments", "--package", "ragaudit-adversary"),
        ],
        cwd=root / WORKSPACE,
        env=environment(root),
        capture_output=True,
        text=True,
        check=False,
    )
    output = result.stdout + result.stderr
    # A mutant that does not compile would be "caught" without any test.
    assert "could not compile" not in output, output
    failed = {
        name.rpartition("::")[2] for name in re.findall(r"^test (\S+) \.\.\. FAILED$", output, re.M)
    }
    assert (result.returncode == 0) == (failed == set()), output
    return failed, output


def environment(root: Path) -> dict[str, str]:
    """The caller's environment with a build folder that all mutants share."""
    return {
        **os.environ,
        "CARGO_TARGET_DIR": str(root / "target"),
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_TERM_COLOR": "never",
    }


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_mutant_is_caught(copy: Path, mutant: dict[str, Any]) -> None:
    originals: dict[Path, str] = {}
    for file, pattern, replacement in mutant["edits"]:
        path = copy / WORKSPACE / file
        text = path.read_text(encoding="utf-8")
        originals.setdefault(path, text)
        assert text.count(pattern) == 1, f"{file}: {pattern!r} occurs {text.count(pattern)} times"
        path.write_text(text.replace(pattern, replacement), encoding="utf-8")
    try:
        failed, _ = run_tests(copy)
    finally:
        for path, text in originals.items():
            path.write_text(text, encoding="utf-8")
    assert mutant["caught_by"] in failed
