"""docker-compose.yml: of the specified form, confined, and in step with images and services."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from image_files import ROOT, Context, read_dockerfile
from ragaudit.prover.settings import load_settings
from ragaudit.verifier import keys as verifier_keys
from ragaudit.verifier import settings as verifier_settings

COMPOSE = ROOT / "docker-compose.yml"
SCHEMA = ROOT / "deployment/prover.schema.json"
SERVICES = ("prover", "verifier")
SET_UP = ("prover-init", "verifier-init")
STORES = {"chroma": "chroma", "postgres": "pgvector"}  # service: profile
USER = "10001:10001"


def _check(path: Path) -> subprocess.CompletedProcess[str]:
    arguments = ["--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return document


def test_compose_file_meets_the_specification() -> None:
    checked = _check(COMPOSE)
    assert checked.returncode == 0, checked.stdout


def test_the_schema_refuses_an_unknown_member(tmp_path: Path) -> None:
    path = tmp_path / "docker-compose.yml"
    path.write_text(COMPOSE.read_text(encoding="utf-8").replace("read_only:", "readonly:"))
    assert _check(path).returncode == 1


def test_services_are_the_expected_ones(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {*SERVICES, *SET_UP, *STORES}
    assert all(compose["services"][name]["profiles"] == [STORES[name]] for name in STORES)
    assert all(compose["services"][name]["profiles"] == ["init"] for name in SET_UP)
    assert all("profiles" not in compose["services"][name] for name in SERVICES)


@pytest.mark.parametrize("name", [*SERVICES, *SET_UP])
def test_every_container_is_confined(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    assert service["user"] == USER
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert service["pull_policy"] == "build"
    forbidden = {
        "privileged", "cap_add", "devices", "pid", "ipc", "userns_mode", "extra_hosts",
        "env_file", "volumes_from", "sysctls",
    }  # fmt: skip
    assert not forbidden & set(service)
    assert service.get("network_mode", "none") == "none"
    for mounted in service["tmpfs"]:
        assert {"size=64m", "noexec", "nosuid", "nodev"} <= set(mounted.split(":")[1].split(","))


@pytest.mark.parametrize("name", STORES)
def test_stores_are_confined_and_only_the_prover_reaches_them(
    compose: dict[str, Any], name: str
) -> None:
    service = compose["services"][name]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert re.fullmatch(r"[a-z]+/[a-z]+:\d+\.\d+\.\d+(-pg\d+)?", service["image"])
    assert service["networks"] == ["stores"] and "ports" not in service
    there = [
        each for each, made in compose["services"].items() if "stores" in made.get("networks", [])
    ]
    assert sorted(there) == ["chroma", "postgres", "prover"]
    (volume,) = service["volumes"]
    assert volume.partition(":")[0] in compose["volumes"]
    needed = compose["services"]["prover"]["depends_on"][name]
    assert needed["required"] is False


def test_the_password_of_the_database_is_a_file(compose: dict[str, Any]) -> None:
    service = compose["services"]["postgres"]
    (secret,) = service["secrets"]
    environment = service["environment"]
    assert environment["POSTGRES_PASSWORD_FILE"] == f"/run/secrets/{secret['target']}"
    assert not [name for name in environment if "PASSWORD" in name and not name.endswith("_FILE")]


@pytest.mark.parametrize(
    ("kind", "service", "port"), [("chroma", "chroma", 8000), ("pgvector", "postgres", 5432)]
)
def test_settings_in_front_of_a_store(
    compose: dict[str, Any], kind: str, service: str, port: int
) -> None:
    """They differ from the first look's in the store and the window, and name what is mounted."""
    path = ROOT / f"deployment/prover-{kind}.yaml"
    jsonschema.validate(yaml.safe_load(path.read_text()), json.loads(SCHEMA.read_text()))
    settings, plain = load_settings(path), load_settings(ROOT / "deployment/prover.yaml")
    assert settings.backend.kind == kind and service in compose["services"]
    for section in ("provider", "store", "keys", "verifier"):
        assert getattr(settings, section) == getattr(plain, section)
    assert settings.window.privacy == "none" and settings.window.query_kinds == ("vector",)
    if settings.backend.chroma is not None:
        assert settings.backend.chroma.url == f"http://{service}:{port}"
    if settings.backend.pgvector is not None:
        assert settings.backend.pgvector.dsn_file.name in _secrets(compose, "prover")
    assert f"PROVER_SETTINGS=./deployment/prover-{kind}.yaml" in COMPOSE.read_text()


@pytest.mark.parametrize("name", SERVICES)
def test_services_restart_and_are_watched(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    assert service["restart"] == "unless-stopped"
    assert "disable" not in service["healthcheck"] and "test" not in service["healthcheck"]
    assert read_dockerfile(ROOT / name / "Dockerfile").last.health_command


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_loopback_only(compose: dict[str, Any], name: str) -> None:
    port = read_dockerfile(ROOT / name / "Dockerfile").last.one("EXPOSE")
    assert compose["services"][name]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert all("ports" not in compose["services"][each] for each in SET_UP)


def test_networks_lead_nowhere(compose: dict[str, Any]) -> None:
    networks = compose["networks"]
    assert networks["audit"] == {"internal": True}
    for name in SERVICES:
        found = [each for each in compose["services"][name]["networks"] if each != "stores"]
        assert found == ["audit", f"{name}-front"]
        options = networks[f"{name}-front"]["driver_opts"]
        assert options["com.docker.network.bridge.enable_ip_masquerade"] == "false"
        assert options["com.docker.network.bridge.host_binding_ipv4"] == "127.0.0.1"
    assert networks["stores"] == {"internal": True}
    assert set(networks) == {"audit", "stores", "prover-front", "verifier-front"}


@pytest.mark.parametrize("name", SERVICES)
def test_state_is_on_named_volumes_of_one_service(compose: dict[str, Any], name: str) -> None:
    mounted = dict(each.split(":") for each in compose["services"][name]["volumes"])
    assert set(mounted) <= set(compose["volumes"])
    assert all(volume.startswith(f"{name}-") for volume in mounted)
    image = yaml.safe_load(read_dockerfile(ROOT / name / "Dockerfile").last.one("VOLUME"))
    assert sorted(mounted.values()) == sorted(image)


def _default(text: str) -> str:
    """What `${NAME:-default}` means while NAME is not set."""
    found = re.fullmatch(r"\$\{[A-Z_]+:-(.+)\}", text)
    return text if found is None else found[1]


def _secrets(compose: dict[str, Any], name: str) -> dict[str, str]:
    """Name in /run/secrets to file on the host."""
    return {
        each["target"]: _default(compose["secrets"][each["source"]]["file"])
        for each in compose["services"][name].get("secrets", [])
    }


def test_secrets_are_files_that_reach_neither_repository_nor_image(compose: dict[str, Any]) -> None:
    context = Context(ROOT / ".dockerignore")
    for secret in compose["secrets"].values():
        assert set(secret) == {"file"}
        path = _default(secret["file"]).removeprefix("./")
        if path == "/dev/null":  # there is none, unless somebody names a file
            continue
        assert path.startswith("var/") and not context.lets_in(path)
        ignored = subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT, check=False)
        assert ignored.returncode == 0, path
    used = [
        s["source"]
        for name in (*SERVICES, "postgres")
        for s in compose["services"][name]["secrets"]
    ]
    assert sorted(used) == sorted(compose["secrets"])  # each is one service's alone


def test_no_secret_is_in_the_environment(compose: dict[str, Any]) -> None:
    for name in (*SERVICES, *SET_UP):
        environment = compose["services"][name].get("environment", {})
        assert set(environment) <= {"RAGAUDIT_PROVER__STORE__URL", "RAGAUDIT_VERIFIER__DATA"}


def test_the_provers_settings_name_what_is_mounted(compose: dict[str, Any]) -> None:
    settings = load_settings(_settings_file(compose, "prover"))
    keys = settings.keys
    files = {keys.provider_file, keys.operator_digest_file}
    given = _secrets(compose, "prover")
    assert given.pop("store.dsn") == "/dev/null"
    assert files == {Path("/run/secrets") / target for target in given}
    assert settings.store.url == "sqlite:////var/lib/ragaudit/prover.db"
    assert settings.store.fence_folder == Path("/var/lib/fences")
    (port,) = compose["services"]["verifier"]["ports"]
    assert settings.verifier.url == f"http://verifier:{port.rsplit(':', 1)[1]}"


def test_the_verifiers_settings_name_what_is_mounted(compose: dict[str, Any]) -> None:
    settings = verifier_settings.load(_settings_file(compose, "verifier"))
    assert settings.secrets == Path("/run/secrets")
    assert settings.data == Path("/var/lib/ragaudit")
    # A backup of the data, restored, would bring the fence along.
    mounted = dict(each.split(":") for each in compose["services"]["verifier"]["volumes"])
    assert mounted["verifier-fences"] == str(settings.fence_path.parent)
    expected = {
        verifier_keys.COSIGNER, verifier_keys.VERIFIER, verifier_keys.VERDICT,
        verifier_keys.ACTIVATION, verifier_keys.TOKEN_DIGEST,
    }  # fmt: skip
    assert set(_secrets(compose, "verifier")) == expected


def _settings_file(compose: dict[str, Any], name: str) -> Path:
    """The settings on the host, which must be mounted where the image's command looks."""
    (mounted,) = compose["services"][name]["configs"]
    assert mounted["target"] == read_dockerfile(ROOT / name / "Dockerfile").last.command[-1]
    return ROOT / _default(compose["configs"][mounted["source"]]["file"])


@pytest.mark.slow
def test_set_up_writes_the_files_that_are_mounted(
    compose: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The init services' commands, run here, leave every secret where the services expect it."""
    for name, folder in (("prover", "var/prover"), ("verifier", "var/verifier")):
        service = compose["services"][f"{name}-init"]
        assert f"./{folder}:/init" in service["volumes"]
        made = tmp_path / folder
        made.mkdir(parents=True)
        database = f"sqlite:///{tmp_path}/{name}.db"
        for variable in service.get("environment", {}):
            monkeypatch.setenv(variable, database)
        command = [str(made) if word == "/init" else word for word in service["command"]]
        subprocess.run(
            [sys.executable, "-m", "ragaudit.cli", *command[1:]], check=True, capture_output=True
        )
        for path in set(_secrets(compose, name).values()) - {"/dev/null"}:
            assert (tmp_path / path).stat().st_mode & 0o777 == 0o600, path
    assert (tmp_path / "prover.db").exists()


def test_names_agree_between_set_up_and_settings(compose: dict[str, Any]) -> None:
    provider = load_settings(ROOT / "deployment/prover.yaml").provider
    assert provider in compose["services"]["prover-init"]["command"]
    cosigner = verifier_settings.load(ROOT / "deployment/verifier.yaml").name
    assert cosigner in compose["services"]["verifier-init"]["command"]
