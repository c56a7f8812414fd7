"""`make wheels`, and where they are installed, without a compiler, the demonstration people see.

Its verdicts are reproduced where neither the prover nor the compiled core is installed.
"""

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
from typing import Any

import pytest
from image_files import ROOT, building, network_environment
from ragaudit.lab.demo.services import command
from ragaudit.prover.store.database import SCHEMA as PROVER
from ragaudit.verifier.service.database import SCHEMA as VERIFIER

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

TOOLS = ("cargo", "rustc", "maturin", "uv", "make", "cc", "gcc")
REGULATOR = ("encoding", "circuits", "ledger", "privacy", "serving", "cli", "verifier")
ABSENT = ("ragaudit.core", "ragaudit.prover", "ragaudit.client", "ragaudit.embedders", "wordllama")


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
    with building(Path(cargo).parent, Path(sys.executable).parent) as environment:
        run(["make", "wheels", f"DIST={built}"], environment, ROOT)
    wheels = sorted(built.glob("*.whl"))
    yield Installed(wheels, _environment(folder / "everybody", wheels))
    shutil.rmtree(folder)  # hundreds of megabytes


@pytest.fixture(scope="module")
def demo(installed: Installed) -> dict[str, Any]:
    """The JSON that `ragaudit demo --json` prints."""
    report: dict[str, Any] = json.loads(
        installed.run("ragaudit", "demo", "--json", "--keep", "kept")
    )
    return report


@pytest.fixture(scope="module")
def regulator(installed: Installed) -> Path:
    """Python of an environment with the verifier and what it needs, nothing else of ours."""
    names = {f"ragaudit_{each}" for each in REGULATOR}
    wheels = [each for each in installed.wheels if each.name.split("-")[0] in names]
    assert len(wheels) == len(names)
    return _environment(installed.programs.parents[1].with_name("regulator"), wheels) / "python"


def _environment(folder: Path, wheels: list[Path]) -> Path:
    """The programs of a new environment with wheels of ours and the locked versions of others'."""
    folder.mkdir()
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
    # Most modules are never loaded here: Python compiles those that are.
    pip = ["-m", "pip", "install", "--quiet", "--no-compile", "--only-binary", ":all:"]
    run(
        [str(programs / "python"), *pip, "--constraint", str(constraints), *map(str, wheels)],
        network_environment() | {"PATH": str(programs), "HOME": str(folder)},
        folder,
    )
    return programs


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


def test_the_command_tells_of_the_demonstration(installed: Installed) -> None:
    assert "Usage: " in installed.run("ragaudit", "demo", "--help")


def test_all_windows_pass(demo: dict[str, Any]) -> None:
    results = {name: each["result"] for name, each in demo["verdicts"].items()}
    assert results == {"demo-b": "PASS", "demo-a": "PASS", "demo-exact": "PASS"}
    modes = {name: each["audit"]["mode"] for name, each in demo["policies"].items()}
    assert modes == {"demo-b": "B", "demo-a": "A", "demo-exact": "A"}
    assert demo["complaints"] == []


def test_the_window_without_noise_claims_integrity_and_nothing_else(demo: dict[str, Any]) -> None:
    exact = demo["verdicts"]["demo-exact"]
    results = {name: each["result"] for name, each in exact["claims"].items()}
    assert results == {"integrity": "PASS", "privacy": "NOT CLAIMED"}
    assert exact["epsilon"] == {} and "claims" not in demo["verdicts"]["demo-a"]
    assert exact["counts"]["records"] == sum(
        each["answered"] for each in demo["accounts"] if each["window"] == "demo-exact"
    )
    report = Path(demo["evidence"]) / "demo-exact" / "report.txt"
    first = report.read_text(encoding="utf-8").splitlines()[0]
    assert exact["claims"]["privacy"]["statement"] in first


def test_enough_happened(demo: dict[str, Any]) -> None:
    main = [each for each in demo["accounts"] if each["window"] == "demo-b"]
    assert len(main) >= 12
    # On a busy machine the demo leaves questions out and says so; none that it asked is lost.
    answered, left_out = (sum(each[name] for each in main) for name in ("answered", "unasked"))
    assert answered + left_out >= 300
    assert answered >= 100
    assert sum(each["resumed"] for each in main) == 1
    assert sum(each["disputed"] for each in main) == 1
    counts = demo["verdicts"]["demo-b"]["counts"]
    # Half of the accounts have a chain; those that submit their receipts show that it is theirs.
    assert counts["anchored"] + counts["anchored_unshown"] == len(main) // 2
    assert counts["anchored"] == counts["accounts"] - counts["plain"] > 0
    assert counts["records"] == answered
    # The two ask the same questions, of which few may be left.
    assert left_out or demo["verdicts"]["demo-b"]["coalition"]["estimated"] == 2


def test_the_price_is_shown_and_marked(demo: dict[str, Any]) -> None:
    sigmas = {each["sigma"]: each for each in demo["utility"]}
    chosen = sigmas[demo["policies"]["demo-b"]["sigma"]]
    assert float(chosen["epsilon_acc"]) <= 10.001
    recalls = [float(each["recall"]) for each in demo["utility"]]
    assert recalls[0] > 0.5 > recalls[-1]
    text = json.dumps(demo["verdicts"])
    assert "recall" not in text


@pytest.mark.parametrize("window", ["demo-b", "demo-a", "demo-exact"])
def test_the_verdicts_stand_with_the_compiled_core(demo: dict[str, Any], window: str) -> None:
    words = command("verifier", "recheck", *_bundle(demo, window), "--engine", "core")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the verdict stands" in done.stdout


@pytest.mark.parametrize("window", ["demo-b", "demo-a", "demo-exact"])
def test_the_verdicts_stand_for_a_regulator_without_our_prover_or_core(
    demo: dict[str, Any], regulator: Path, window: str
) -> None:
    for name in ABSENT:
        found = subprocess.run(
            [regulator, "-c", f"import {name}"], capture_output=True, check=False
        )
        assert found.returncode != 0, name
    program = "from ragaudit.verifier.command.cli import app; app(prog_name='ragaudit verifier')"
    options = ("--engine", "reference", "--records", "3")
    words = [str(regulator), "-c", program, "recheck", *_bundle(demo, window), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stdout + done.stderr
    assert done.stdout.startswith("nothing differs, but not everything was repeated: ")
    assert " and 3 of " in done.stdout


def _bundle(demo: dict[str, Any], window: str) -> list[str]:
    """Path of the bundle and the pinned key, from the command line that the demo prints."""
    (line,) = [each for each in demo["recheck"] if f"/{window}/" in each]
    return line.split()[3:]
