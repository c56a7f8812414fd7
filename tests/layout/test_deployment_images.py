"""The Dockerfiles, the build context and the pins, as written; what they do is run elsewhere."""

import re
import tomllib
from pathlib import Path

import pytest
from image_files import ROOT, Context, Dockerfile, read_dockerfile
from ragaudit.prover.settings import ServerSettings
from ragaudit.verifier.settings import Listen

SERVICES = ("prover", "verifier")
SECTIONS = {"prover": "SERVER", "verifier": "LISTEN"}
PINNED_IMAGE = re.compile(r"[a-z]+:\d+\.\d+\.\d+(-[a-z]+)+(@sha256:[0-9a-f]{64})?")


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def dockerfile(service: str) -> Dockerfile:
    return read_dockerfile(ROOT / service / "Dockerfile")


def test_base_images_are_exact_versions(dockerfile: Dockerfile) -> None:
    assert {"PYTHON_IMAGE", "BUILD_IMAGE", "RUST_IMAGE"} == set(dockerfile.arguments)
    assert all(PINNED_IMAGE.fullmatch(image) for image in dockerfile.arguments.values())
    used = [stage.image for stage in dockerfile.stages]
    assert used == ["${RUST_IMAGE}", "${BUILD_IMAGE}", "${PYTHON_IMAGE}"]


def test_wheels_are_built_by_the_python_that_runs_them(dockerfile: Dockerfile) -> None:
    run, build = (dockerfile.arguments[name] for name in ("PYTHON_IMAGE", "BUILD_IMAGE"))
    assert run.replace("-slim", "") == build


def test_last_stage_takes_nothing_but_wheels(dockerfile: Dockerfile) -> None:
    last = dockerfile.last
    assert last.all("COPY") == []
    assert last.mounts == [
        {"type": "bind", "from": "wheels", "source": "/wheels", "target": "/wheels"},
        {"type": "bind", "source": "deployment/install.sh", "target": "/install.sh"},
    ]
    programs = [command[0] for command in last.commands]
    assert programs == ["groupadd", "useradd", "install", "python", "/install.sh"]


def test_image_runs_as_an_ordinary_user(dockerfile: Dockerfile) -> None:
    last = dockerfile.last
    assert last.one("USER") == "10001:10001"
    names = [name for name, _ in last.instructions]
    assert "RUN" not in names[names.index("USER") :]
    (made,) = [command for command in last.commands if command[0] == "useradd"]
    assert made[1:5] == ["--uid", "10001", "--gid", "10001"]
    assert "/usr/sbin/nologin" in made
    (folders,) = [command for command in last.commands if command[0] == "install"]
    assert folders[folders.index("--mode") + 1] == "0700"
    assert folders[folders.index("0700") + 1 :] == re.findall(r'"([^"]+)"', last.one("VOLUME"))


def test_image_listens_where_it_says(service: str, dockerfile: Dockerfile) -> None:
    last = dockerfile.last
    prefix = f"RAGAUDIT_{service.upper()}__{SECTIONS[service]}__"
    assert last.environment[prefix + "PORT"] == last.one("EXPOSE")
    assert last.environment[prefix + "HOST"] == "0.0.0.0"
    default = ServerSettings().port if service == "prover" else Listen().port
    assert last.one("EXPOSE") == str(default)
    assert f"os.environ['{prefix}PORT']" in last.health_command[-1]


def test_build_context_is_an_allow_list() -> None:
    context = Context(ROOT / ".dockerignore")
    for path in (
        ".git/config", ".env", ".venv/bin/python", ".bootstrap/bin/uv",
        "var/prover/keys/provider.key", "tests/conftest.py", "docs/glossary.md",
        "docker-compose.yml", "deployment/prover.yaml",
        "circuits/rust/target/release/lib_core.so", "verifier/src/ragaudit/__pycache__/a.pyc",
        "circuits/rust/python/ragaudit/core/_core.abi3.so", "lab/src/ragaudit/lab/attacks/cheat.py",
        "client/src/ragaudit/client/blocking.py", "prover/.pytest_cache/x",
    ):  # fmt: skip
        assert not context.lets_in(path), path
    for path in (
        "uv.lock", "circuits/rust/Cargo.lock", "circuits/rust/bindings/src/lib.rs",
        "verifier/LICENSE", "deployment/install.sh", "lab/pyproject.toml",
        "verifier/src/ragaudit/verifier/report/templates/report.html.j2",
    ):  # fmt: skip
        assert context.lets_in(path), path


def test_one_version_of_uv_builds_everything() -> None:
    tools = (ROOT / "deployment/build-requirements.txt").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (pinned,) = re.findall(r"^uv==(\S+)", tools, re.MULTILINE)
    assert re.findall(r"^UV_VERSION = (\S+)$", makefile, re.MULTILINE) == [pinned]


def test_every_build_backend_is_pinned_with_hashes() -> None:
    tools = (ROOT / "deployment/build-requirements.txt").read_text(encoding="utf-8")
    entries = [block for block in re.split(r"\n(?=\w)", tools) if "==" in block.splitlines()[0]]
    pinned = {entry.split("==")[0] for entry in entries}
    assert all("--hash=sha256:" in entry for entry in entries)
    for member in _members():
        system = tomllib.loads((member / "pyproject.toml").read_text())["build-system"]
        assert {re.split(r"[<>=]", each)[0] for each in system["requires"]} <= pinned, member


def test_every_member_carries_the_licence() -> None:
    licence = (ROOT / "LICENSE").read_bytes()
    for member in _members():
        assert (member / "LICENSE").read_bytes() == licence, member
        project = tomllib.loads((member / "pyproject.toml").read_text())["project"]
        assert project["license-files"] == ["LICENSE"], member


def _members() -> list[Path]:
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]
    return [ROOT / name for name in workspace["members"]]
