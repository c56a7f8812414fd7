"""`make wheels`, and what its wheels are in an environment without a compiler: the whole audit."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from image_files import ROOT, build_environment, network_environment
from ragaudit.prover.store.schema import SCHEMA as PROVER
from ragaudit.verifier.service.schema import SCHEMA as VERIFIER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

TOOLS = ("cargo", "rustc", "maturin", "uv", "make", "cc", "gcc")


@dataclass(frozen=True)
class Installed:
    """An environment that holds what pip made of the wheels."""

    wheels: list[Path]
    programs: Path

    @property
    def environment(self) -> dict[str, str]:
        """Nothing on PATH but the environment's own programs."""
        return {"PATH": str(self.programs), "HOME": str(self.programs.parent)}

    def run(self, name: str, *words: str) -> str:
        folder = self.programs.parent
        return run([str(self.programs / name), *words], self.environment, folder)


def run(command: list[str], environment: Mapping[str, str], folder: Path) -> str:
    done = subprocess.run(
        command, env=dict(environment), cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def members() -> set[str]:
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]
    return {
        tomllib.loads((ROOT / each / "pyproject.toml").read_text())["project"]["name"]
        for each in workspace["members"]
    }


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("wheels")
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.fail("cargo is not on PATH: the core's wheel cannot be built (see README.md)")
    built = folder / "dist"
    environment = build_environment(Path(cargo).parent, Path(sys.executable).parent)
    run(["make", "wheels", f"DIST={built}"], environment, ROOT)
    wheels = sorted(built.glob("*.whl"))
    run([sys.executable, "-m", "venv", str(folder / "venv")], os.environ, folder)
    programs = folder / "venv" / "bin"
    # The newest versions of today are for `make audit` to judge, not for this test.
    constraints = folder / "constraints.txt"
    constraints.write_text(
        "\n".join(
            sorted(
                f"{each.name}=={each.version}"
                for each in importlib.metadata.distributions()
                if not each.name.startswith("ragaudit")
            )
        )
    )
    pip = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    run(
        [str(programs / "python"), *pip, "--constraint", str(constraints), *map(str, wheels)],
        network_environment() | {"PATH": str(programs), "HOME": str(folder)},
        folder,
    )
    yield Installed(wheels, programs)
    shutil.rmtree(folder)  # hundreds of megabytes


def test_there_is_a_wheel_of_every_member(installed: Installed) -> None:
    names = [path.name.split("-")[0].replace("_", "-") for path in installed.wheels]
    assert sorted(names) == sorted(members())


def test_the_core_is_for_every_later_python_and_the_rest_for_every_machine(
    installed: Installed,
) -> None:
    for path in installed.wheels:
        _, _, python, abi, platform = path.stem.split("-")
        if path.name.startswith("ragaudit_core-"):
            assert (python, abi) == ("cp311", "abi3")
            assert not platform.startswith(("any", "linux_")), "no index takes this platform"
        else:
            assert (python, abi, platform) == ("py3", "none", "any")


def test_no_wheel_names_a_place_of_the_machine_that_built_it(installed: Installed) -> None:
    for path in installed.wheels:
        archive = zipfile.ZipFile(path)
        (metadata,) = [each for each in archive.namelist() if each.endswith("/METADATA")]
        needs = [
            line
            for line in archive.read(metadata).decode().splitlines()
            if line.startswith("Requires-Dist:")
        ]
        assert not [line for line in needs if "file:" in line or " @ " in line], path.name


def test_the_migrations_are_in_the_wheels(installed: Installed) -> None:
    """Found and run where no source tree is: `init` asks them for the newest revision."""
    folder = installed.programs.parent
    installed.run("ragaudit", "prover", "init", "--provider", "p.example", "--folder", "p")
    done = installed.run("ragaudit", "prover", "migrate", "--settings", "p/prover.yaml", "--json")
    assert json.loads(done)["after"] == PROVER.head
    where = ("--directory", str(folder / "v"))
    installed.run("ragaudit", "verifier", "init", "--name", "v.example/cosigner", *where)
    settings = ("--settings", str(folder / "v/verifier.yaml"))
    done = installed.run("ragaudit", "verifier", "migrate", *settings, "--json")
    assert json.loads(done)["after"] == VERIFIER.head


def test_the_environment_is_whole_and_has_no_compiler(installed: Installed) -> None:
    installed.run("python", "-m", "pip", "check")
    for tool in TOOLS:
        assert shutil.which(tool, path=installed.environment["PATH"]) is None, tool


def test_the_demonstration_runs_from_it(installed: Installed) -> None:
    assert "Usage: " in installed.run("ragaudit", "demo", "--help")
    report = json.loads(installed.run("ragaudit", "demo", "--json"))
    results = {name: each["result"] for name, each in report["verdicts"].items()}
    assert len(results) >= 2 and set(results.values()) == {"PASS"}
