"""The client's distribution, built and installed as a tenant's developer does it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from image_files import ROOT, chapter_commands, network_environment

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]


def run(command: Sequence[str | Path], environment: Mapping[str, str], folder: Path) -> str:
    done = subprocess.run(
        [str(each) for each in command],
        env=dict(environment),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare environment with the client's wheels and locked requirements; its programs."""
    folder = tmp_path_factory.mktemp("client")
    uv = shutil.which("uv", path=f"{ROOT / '.bootstrap/bin'}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        pytest.fail("uv is not there: make setup brings it")
    tools = f"{Path(uv).parent}{os.pathsep}{os.environ['PATH']}"
    # Most modules are never loaded here: Python compiles those that are.
    network = network_environment() | {"PIP_NO_COMPILE": "1"}
    environment = network | {"PATH": tools, "HOME": os.environ.get("HOME", str(folder))}
    run([ROOT / "deployment/build-wheels.sh", "client", folder / "wheels"], environment, ROOT)
    run([sys.executable, "-m", "venv", folder / "venv"], environment, folder)
    python = folder / "venv/bin/python"
    run([ROOT / "deployment/install.sh", python, folder / "wheels"], environment, folder)
    return folder / "venv/bin"


def test_it_brings_the_commands_of_its_chapter(installed: Path) -> None:
    commands = chapter_commands(ROOT / "docs/tenant-developer.md")
    assert ("receipt", "check") in commands
    environment = {"PATH": str(installed)}
    for words in commands:
        shown = run([installed / "ragaudit", *words, "--help"], environment, installed)
        assert "Usage: " in shown


def test_it_brings_no_service_and_says_what_is_missing(installed: Path) -> None:
    options = "--epsilon 8 --delta 1e-6 --queries 50 --coalition 5 --delta-policy 1e-5"
    command = [str(installed / "ragaudit"), "plan", *options.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "ragaudit-cli with its extras `plan` and `plots`" in done.stderr
    assert "Traceback" not in done.stderr
    listed = run([installed / "ragaudit", "--help"], {}, installed)
    assert (
        "receipt" in listed
        and " demo " not in listed
        and "prover" not in listed.replace("provider", "")
    )
