"""What the Dockerfiles say, done without an engine: build, install, start, probe, stop.

The commands are read from the Dockerfiles; only the image's paths are replaced by folders of the
test. The build runs on what .dockerignore lets in, the installation without any program on PATH.
"""

import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from image_files import (
    ROOT,
    Context,
    Dockerfile,
    building,
    chapter_commands,
    network_environment,
    read_dockerfile,
)

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

SERVICES = ("prover", "verifier")
NO_IMAGE_HAS = {"risk": "ragaudit-lab", "receipt": "ragaudit-client"}  # group to distribution
MEMBERS = {"encoding", "core", "circuits", "ledger", "privacy", "embedders", "serving", "cli"}
COMMAND_SECONDS = 1800.0
READY_SECONDS = 180.0
STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Image:
    """One service built and installed: the folders that stand for the image's paths."""

    service: str
    dockerfile: Dockerfile
    wheels: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """ENV of the last stage; nothing on PATH but the environment's own programs."""
        values = {**self.dockerfile.last.environment, "TMPDIR": str(self.home)}
        return values | {"PATH": str(self.home / "venv" / "bin"), "HOME": str(self.home)}

    def program(self, name: str) -> str:
        return str(self.home / "venv" / "bin" / name)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build context, the same of all images: the core is compiled in it once."""
    folder = tmp_path_factory.mktemp("context") / "src"
    Context(ROOT / ".dockerignore").copy(ROOT, folder)
    return folder


@pytest.fixture(scope="module", params=SERVICES)
def image(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, source: Path
) -> Iterator[Image]:
    service = str(request.param)
    folder = tmp_path_factory.mktemp(service)
    dockerfile = read_dockerfile(ROOT / service / "Dockerfile")
    wheels = _build(dockerfile, folder, source)
    _install(dockerfile, folder, wheels)
    yield Image(service, dockerfile, wheels, folder)
    shutil.rmtree(folder)  # hundreds of megabytes


def _build(dockerfile: Dockerfile, folder: Path, source: Path) -> Path:
    """Run the stage ``wheels`` on the build context; return the folder of the wheels."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.fail("cargo is not on PATH: the wheels cannot be built (see README.md)")
    replaced = {"/opt/build": folder / "build", "/wheels": folder / "wheels"}
    with building(folder / "build" / "bin", Path(cargo).parent) as environment:
        for command in dockerfile.stage("wheels").commands:
            _run(_here(command, replaced), environment, source)
    return folder / "wheels"


def _install(dockerfile: Dockerfile, folder: Path, wheels: Path) -> None:
    """Run the last stage's commands, but for those that make its user and folders."""
    replaced = {
        "/opt/ragaudit": folder / "venv",
        "/wheels": wheels,
        "/install.sh": ROOT / "deployment" / "install.sh",
    }
    empty = folder / "empty"
    empty.mkdir()
    environment = network_environment() | {"PATH": str(empty), "HOME": str(folder)}
    for command in dockerfile.last.commands:
        if command[0] not in {"groupadd", "useradd", "install"}:
            _run(_here(command, replaced), environment, folder)


def _here(command: Sequence[str], replaced: Mapping[str, Path]) -> list[str]:
    """The command with the image's folders replaced, and this Python as the image's."""

    def replace(word: str) -> str:
        for old, new in replaced.items():
            if word == old or word.startswith(old + "/"):
                return str(new) + word.removeprefix(old)
        return word

    words = [replace(word) for word in command]
    return [sys.executable if words[0] == "python" else words[0], *words[1:]]


def _run(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> str:
    done = subprocess.run(
        list(command), env=dict(environment), cwd=folder, capture_output=True, text=True,
        timeout=COMMAND_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _succeeds(image: Image, *words: str) -> str:
    return _run([image.program(words[0]), *words[1:]], image.environment, image.home)


def test_wheels_hold_packages_types_and_licence_only(image: Image) -> None:
    built = sorted(image.wheels.glob("*.whl"))
    assert {path.name.split("-")[0] for path in built} == {
        f"ragaudit_{member}" for member in MEMBERS | {image.service}
    }
    for path in built:
        member = path.name.split("-")[0].removeprefix("ragaudit_")
        names = zipfile.ZipFile(path).namelist()
        assert f"ragaudit/{member}/py.typed" in names
        assert "ragaudit/__init__.py" not in names
        information = f"{path.name.split('-')[0]}-0.1.0.dist-info/"
        assert f"{information}licenses/LICENSE" in names
        for name in names:
            # The client of HTTP that all members share comes with the encoding.
            own = ("encoding", "http") if member == "encoding" else (member,)
            assert name.startswith((*(f"ragaudit/{each}/" for each in own), information)), name
            suffixes = {".py", ".pyi", ".typed", ".j2", ".so"}
            assert name.startswith(information) or Path(name).suffix in suffixes, name
            assert not name.endswith((".key", ".pem", ".env")), name
            words = {word for part in Path(name).parts for word in re.split(r"[._]", part)}
            assert words.isdisjoint({"test", "tests", "conftest"}), name


def test_requirements_are_hashed_and_foreign(image: Image) -> None:
    lines = (image.wheels / "requirements.txt").read_text(encoding="utf-8").splitlines()
    names = [line for line in lines if line and not line.startswith(" ")]
    assert names and all("==" in name for name in names)
    assert not [name for name in names if name.startswith("ragaudit") or "file:" in name]
    assert sum("--hash=sha256:" in line for line in lines) >= len(names)


def test_installed_environment_is_whole(image: Image) -> None:
    _succeeds(image, "python", "-m", "pip", "check")


def test_image_holds_its_own_service_and_no_toolchain(image: Image) -> None:
    other = {"prover": "verifier", "verifier": "prover"}[image.service]
    script = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)"
    expected = {f"ragaudit.{member}" for member in MEMBERS | {image.service}}
    absent = {f"ragaudit.{other}", "ragaudit.lab", "ragaudit.client", "maturin", "uv"}
    for module in expected | absent:
        done = subprocess.run(
            [image.program("python"), "-c", script, module],
            env=image.environment, cwd=image.home, check=False,
        )  # fmt: skip
        assert (done.returncode == 0) == (module in expected), module
    programs = {path.name for path in (image.home / "venv" / "bin").iterdir()}
    assert not programs & {"cargo", "rustc", "maturin", "uv", "hatchling", "cc", "gcc"}


def test_help_shows_the_installed_group(image: Image) -> None:
    listed = _succeeds(image, "ragaudit", "--help")
    other = {"prover": "verifier", "verifier": "prover"}[image.service]
    assert f" {image.service} " in listed
    assert f" {other} " not in listed


def test_service_starts_answers_and_stops(image: Image) -> None:
    settings = _set_up(image)
    command = image.dockerfile.last.command
    assert command[-1] == f"/etc/ragaudit/{image.service}.yaml"
    port = _free_port()
    section = {"prover": "SERVER", "verifier": "LISTEN"}[image.service]
    prefix = f"RAGAUDIT_{image.service.upper()}__{section}__"
    environment = image.environment | {prefix + "HOST": "127.0.0.1", prefix + "PORT": str(port)}
    if image.service == "prover":  # of a verifier that it never asks here
        environment["RAGAUDIT_PROVER__VERIFIER__ALLOW_UNPINNED"] = "true"
    probe = [image.program("python"), *image.dockerfile.last.health_command[1:]]
    assert image.dockerfile.last.health_command[0] == "python"
    log = image.home / "service.log"
    with _running([image.program(command[0]), *command[1:-1], str(settings)], environment, log) as (
        process
    ):
        _await_probe(probe, environment, process, log)
        for path in ("healthz", "readyz"):
            answer = httpx.get(f"http://127.0.0.1:{port}/{path}", timeout=10, trust_env=False)
            assert answer.status_code == 200, answer.text
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0, log.read_text(encoding="utf-8")
    assert subprocess.run(probe, env=environment, check=False, capture_output=True).returncode != 0


def test_service_refuses_secrets_that_others_can_read(image: Image) -> None:
    settings = _set_up(image)
    name = {"prover": "keys/provider.key", "verifier": "secrets/verdict.key"}[image.service]
    secret = settings.parent / name
    content = secret.read_text(encoding="ascii").strip()
    secret.chmod(secret.stat().st_mode | stat.S_IROTH)
    command = image.dockerfile.last.command
    done = subprocess.run(
        [image.program(command[0]), *command[1:-1], str(settings)],
        env=image.environment, cwd=image.home, capture_output=True, text=True, check=False,
        timeout=READY_SECONDS,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert name.rsplit("/", 1)[1] in done.stderr
    assert "Traceback" not in done.stderr and content not in done.stderr + done.stdout


def test_service_brings_the_commands_of_its_chapter(image: Image) -> None:
    chapter = ROOT / "docs" / {"prover": "operations.md", "verifier": "regulator.md"}[image.service]
    commands = chapter_commands(chapter)
    assert (image.service, "serve") in commands
    text = chapter.read_text(encoding="utf-8")
    groups = _succeeds(image, "ragaudit", "--help")
    # What other parties type; a cosigner is installed with the verifier.
    others = {"prover": ("verifier", "cosigner"), "verifier": ("prover",)}[image.service]
    for words in (each for each in commands if each[0] not in others):
        if words[0] in NO_IMAGE_HAS:
            assert f"`{NO_IMAGE_HAS[words[0]]}`" in text
            assert f"\n  {words[0]} " not in groups
            continue
        assert "Usage: " in _succeeds(image, "ragaudit", *words, "--help")


@pytest.mark.parametrize("image", ["verifier"], indirect=True)
def test_verifier_works_without_compiled_code_of_ours(image: Image) -> None:
    """The extras away: what is left is whole, says so, and serves with the reference engine."""
    _succeeds(
        image, "python", "-m", "pip", "uninstall", "--yes", "--quiet",
        "ragaudit-core", "ragaudit-embedders", "wordllama",
    )  # fmt: skip
    _succeeds(image, "python", "-m", "pip", "check")
    assert "--engine" in _succeeds(image, "ragaudit", "verifier", "recheck", "--help")
    settings = _set_up(image)
    command = [*image.dockerfile.last.command[1:-1], str(settings), "--engine"]
    done = subprocess.run(
        [image.program("ragaudit"), *command, "core"],
        env=image.environment, cwd=image.home, capture_output=True, text=True, check=False,
        timeout=READY_SECONDS,
    )  # fmt: skip
    assert done.returncode == 2 and "ragaudit.core is not installed" in done.stderr
    port = _free_port()
    environment = image.environment | {
        "RAGAUDIT_VERIFIER__LISTEN__HOST": "127.0.0.1",
        "RAGAUDIT_VERIFIER__LISTEN__PORT": str(port),
    }
    probe = [image.program("python"), *image.dockerfile.last.health_command[1:]]
    log = image.home / "reference.log"
    with _running([image.program("ragaudit"), *command, "reference"], environment, log) as process:
        _await_probe(probe, environment, process, log)


def _set_up(image: Image) -> Path:
    """Run the service's ``init`` in a fresh folder; return the settings file."""
    folder = image.home / f"set-up-{time.monotonic_ns()}"
    if image.service == "verifier":
        folder.mkdir()
        words = ("--name", "regulator.example/cosigner", "--directory", str(folder))
    else:
        words = ("--provider", "provider.example", "--folder", str(folder))
    _succeeds(image, "ragaudit", image.service, "init", *words)
    return folder / f"{image.service}.yaml"


def _await_probe(
    probe: Sequence[str],
    environment: Mapping[str, str],
    process: subprocess.Popen[bytes],
    log: Path,
) -> None:
    """Return when the health check succeeds, as the engine would see it."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        done = subprocess.run(list(probe), env=dict(environment), check=False, capture_output=True)
        if done.returncode == 0:
            return
        time.sleep(0.5)
    raise AssertionError(f"not healthy after {READY_SECONDS} s\n{log.read_text(encoding='utf-8')}")


@contextmanager
def _running(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command), env=dict(environment), cwd=log.parent, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
