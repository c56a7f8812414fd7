"""The published schemas of the settings: up to date, met by what we write, and strict."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ragaudit.prover.command.set_up import set_up
from ragaudit.prover.settings import Settings as ProverSettings
from ragaudit.serving.settings import FileSettings
from ragaudit.verifier.cosigner.settings import Settings as CosignerSettings
from ragaudit.verifier.settings import Settings as VerifierSettings

DEPLOYMENT = Path(__file__).resolve().parents[2] / "deployment"
SERVICES: dict[str, type[FileSettings]] = {
    "prover": ProverSettings,
    "verifier": VerifierSettings,
    "cosigner": CosignerSettings,
}


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def published(service: str) -> Any:
    return json.loads((DEPLOYMENT / f"{service}.schema.json").read_text(encoding="utf-8"))


def test_what_is_published_is_what_the_service_reads(service: str) -> None:
    text = (DEPLOYMENT / f"{service}.schema.json").read_text(encoding="utf-8")
    told = f"run: ragaudit {service} settings-schema > deployment/{service}.schema.json"
    assert text == SERVICES[service].schema_text() + "\n", told
    jsonschema.Draft202012Validator.check_schema(published(service))


def test_every_setting_says_what_it_means(service: str) -> None:
    schema = published(service)
    members = [
        (name, member)
        for section in (schema, *schema["$defs"].values())
        for name, member in section.get("properties", {}).items()
    ]
    assert len(members) > 10
    assert [name for name, member in members if not member.get("description")] == []


def test_samples_meet_the_schema(service: str) -> None:
    text = (DEPLOYMENT / f"{service}.yaml").read_text(encoding="utf-8")
    assert f"$schema={service}.schema.json" in text.splitlines()[0]
    jsonschema.validate(yaml.safe_load(text), published(service))


def test_what_init_writes_meets_the_schema(tmp_path: Path) -> None:
    made = set_up(tmp_path / "prover", provider="example.org", verifier="http://127.0.0.1:1")
    jsonschema.validate(yaml.safe_load(made.settings.read_text()), published("prover"))


@pytest.mark.parametrize(
    "text",
    [
        "{}", "provider: Not A Name", "provider: a\nsurprise: 1",
        "provider: a\nserver: {port: 70000}", "provider: a\nwindow: {sigma: 2.5}",
        "provider: a\noperation: {log_format: xml}",
    ],
)  # fmt: skip
def test_the_schema_refuses_what_the_service_refuses(text: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text), published("prover"))


def test_a_whole_number_is_a_decimal() -> None:
    document = yaml.safe_load("provider: a\nwindow: {sigma: 2, epsilon_acc: '2.5'}")
    jsonschema.validate(document, published("prover"))
