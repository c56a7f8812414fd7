"""``pip install .`` at the root of a clean clone installs every member."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from image_files import ROOT, building

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

COMMAND_SECONDS = 3000.0


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bare environment into which the root was installed from a copy of the tracked files."""
    folder = tmp_path_factory.mktemp("root")
    clone = folder / "clone"
    _copy_tracked_files(clone)
    _run(folder, sys.executable, "-m", "venv", str(folder / "venv"))
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.fail("cargo is not on PATH: the core cannot be built (see README.md)")
    # Most modules are never loaded here: Python compiles those that are.
    options = ["--quiet", "--no-compile", "--disable-pip-version-check"]
    install = ["-m", "pip", "install", *options, str(clone)]
    with building(Path(cargo).parent) as variables:
        _run(folder, str(folder / "venv/bin/python"), *install, environment=variables)
    shutil.rmtree(clone)  # what was installed needs no sources
    yield folder
    shutil.rmtree(folder)  # hundreds of megabytes


def _copy_tracked_files(clone: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)


def _run(folder: Path, *command: str, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False,
        env=None if environment is None else dict(environment),
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def test_every_member_is_installed_and_whole(environment: Path) -> None:
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]
    names = {
        tomllib.loads((ROOT / member / "pyproject.toml").read_text())["project"]["name"]
        for member in workspace["members"]
    }
    python = str(environment / "venv/bin/python")
    listed = _run(environment, python, "-m", "pip", "list", "--format=freeze")
    found = {line.split("==")[0].split(" @ ")[0] for line in listed.splitlines()}
    assert names | {"ragaudit"} <= found
    _run(environment, python, "-m", "pip", "check")


def test_the_command_offers_every_group(environment: Path) -> None:
    listed = _run(environment, str(environment / "venv/bin/ragaudit"), "--help")
    for group in ("bench", "demo", "prover", "receipt", "verifier"):
        assert f" {group} " in listed
    assert "not available" not in listed
