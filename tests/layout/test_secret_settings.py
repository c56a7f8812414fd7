"""No setting has to hold a secret: what may hold one has a form that names a file."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError, create_model
from pydantic.fields import FieldInfo
from ragaudit.prover.settings import Settings as ProverSettings
from ragaudit.verifier.settings import Settings as VerifierSettings

SECRET = re.compile(r"(^|_)(key|token|secret|password|passphrase|dsn|credentials?)($|_)")
ADDRESS = re.compile(r"(^|_)(url|uri|database|proxy|address)($|_)")
WITH_PASSWORD = "https://somebody:s3cret@host.example/path"

# Named like a secret, and none.
PUBLIC = {
    "arbiter_key": "a public key",
    "cosigner_key": "a public key",
    "verifier_key": "a public key",
    "verdict_key": "a public key",
    "token_header": "the name of a header",
    "content_key": "the name of a member",
    "metadata_key": "the name of a member",
    "tls_key": "a path",
}


def sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model and all that it holds, however deep."""
    yield model
    for field in model.model_fields.values():
        for kind in kinds(field.annotation):
            yield from sections(kind)


def kinds(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [kind for part in get_args(annotation) for kind in kinds(part)]


def takes(field: FieldInfo, value: str) -> bool:
    """Whether a member may have this value."""
    made: Any = create_model("Member", **{"member": (field.annotation, field)})  # type: ignore[call-overload]
    try:
        made.model_validate({field.alias or "member": value})
    except ValidationError:
        return False
    return True


def needing_a_file(model: type[BaseModel]) -> list[str]:
    """Members that could hold a secret in the settings themselves, and only there."""
    found = []
    for section in sections(model):
        for name, field in section.model_fields.items():
            if name.endswith("_file") or name in PUBLIC:
                continue
            secret = SECRET.search(name) is not None and takes(field, "s3cret")
            address = ADDRESS.search(name) is not None and takes(field, WITH_PASSWORD)
            if (secret or address) and f"{name}_file" not in section.model_fields:
                found.append(f"{section.__name__}.{name}")
    return found


@pytest.mark.parametrize("settings", [ProverSettings, VerifierSettings])
def test_every_secret_has_a_file(settings: type[BaseModel]) -> None:
    assert len(list(sections(settings))) > 4
    assert needing_a_file(settings) == []


class Endpoint(BaseModel):
    url: str
    key: str | None = None


class Careless(BaseModel):
    endpoint: Endpoint | None = None
    database: str
    database_file: str | None = None
    arbiter_key: str


def test_the_search_finds_them() -> None:
    assert needing_a_file(Careless) == ["Endpoint.url", "Endpoint.key"]
