"""Every check of the two arguments has a Rust test that fails without it.

The Rust workspace is copied, one fault of rust_mutants.toml is put into the copy, and the Rust
test named there must fail; the unchanged copy must pass.
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
    pytest.mark.nightly,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(shutil.which("cargo") is None, reason="needs a Rust toolchain"),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the workspace."""
    root = tmp_path_factory.mktemp("mutants")
    shutil.copytree(
        ROOT / WORKSPACE, root / WORKSPACE, ignore=shutil.ignore_patterns("target", "*.so")
    )
    shutil.copytree(ROOT / VECTORS, root / VECTORS)
    yield root
    shutil.rmtree(root)


def cargo_test(root: Path, *arguments: str) -> tuple[set[str], set[str], str]:
    """Run Rust tests of the copy: the names that passed, the names that failed, the output."""
    result = subprocess.run(
        ["cargo", "test", "--locked", *arguments],
        cwd=root / WORKSPACE,
        # All mutants share a build folder.
        env={
            **os.environ,
            "CARGO_TARGET_DIR": str(root / "target"),
            "CARGO_PROFILE_DEV_DEBUG": "0",
            "CARGO_TERM_COLOR": "never",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    output = result.stdout + result.stderr
    passed, failed = (
        {
            name
            for name, seen in re.findall(r"^test (\S+) \.\.\. (\w+)$", output, re.M)
            if seen == word
        }
        for word in ("ok", "FAILED")
    )
    # A mutant that does not compile, or a test that does not exist, would catch nothing.
    assert (result.returncode == 0) == (not failed), output
    return passed, failed, output


def test_the_unchanged_copy_passes(copy: Path) -> None:
    packages = ["--package", "ragaudit-arguments", "--package", "ragaudit-adversary"]
    passed, failed, output = cargo_test(copy, "--no-fail-fast", "--tests", *packages)
    assert not failed, output
    assert {mutant["caught_by"][2] for mutant in MUTANTS} <= passed


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_mutant_is_caught(copy: Path, mutant: dict[str, Any]) -> None:
    originals: dict[Path, str] = {}
    for file, pattern, replacement in mutant["edits"]:
        path = copy / WORKSPACE / file
        text = path.read_text(encoding="utf-8")
        originals.setdefault(path, text)
        assert text.count(pattern) == 1, f"{file}: {pattern!r} occurs {text.count(pattern)} times"
        path.write_text(text.replace(pattern, replacement), encoding="utf-8")
    package, target, test = mutant["caught_by"]
    tests = ["--lib"] if target == "lib" else ["--test", target]
    try:
        passed, failed, output = cargo_test(
            copy, "--package", package, *tests, "--", "--exact", test
        )
    finally:
        for path, text in originals.items():
            path.write_text(text, encoding="utf-8")
    assert (passed, failed) == (set(), {test}), output
