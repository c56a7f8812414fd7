"""Secrets are secret settings, and stand in no representation."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args

import pytest
import ragaudit
from pydantic import BaseModel, ValidationError, create_model
from pydantic.fields import FieldInfo
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.receipts import PublicReceipt
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


MEMBERS = ("client", "embedders", "encoding", "ledger", "prover", "serving", "verifier")

# Secret by their name, wherever they stand.
SHOWN_SECRET = re.compile(
    r"(\w+_)?salts?(_\w+)?|(\w+_)?blindings?|(\w+_)?secret|(\w+_)?seed|(noise|pseudonym|slot)_key"
    r"|query|embedding|vector|squares|content|sketch|nonce|chain|(\w+_)?token|password"
)

# Named like a secret, and none.
SHOWN = {
    ("Record", "nonce"): "of a logged record; its promise has none",
    ("Estimator", "seed"): "the policy's, public",
    ("Policy", "experiment_seed"): "public, and such a window proves nothing",
    ("Statement", "query"): "the reference verifier's: what a proof is about, in no service",
    ("SetUp", "operator_token"): "a path",
    ("Stages", "query"): "a class",
    ("Probe", "vector"): "of a manifest, which is public",
    ("BeaconTerms", "chain"): "a public chain of rounds",
    ("Generated", "nonce"): "of a logged entry, as a record's",
    ("TokenVoting", "epsilon_token"): "the policy's, public",
}


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(ragaudit.__path__, "ragaudit."):
        if found.name.split(".")[1] in MEMBERS and not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def secret_fields() -> dict[tuple[str, str], bool]:
    """Every field of a dataclass with a secret's name, and whether a repr shows it."""
    found = {}
    for module in modules():
        for value in vars(module).values():
            if isinstance(value, type) and dataclasses.is_dataclass(value):
                for each in dataclasses.fields(value):
                    if SHOWN_SECRET.fullmatch(each.name) and value.__module__ == module.__name__:
                        found[value.__name__, each.name] = each.repr
    return found


def test_no_repr_of_a_dataclass_shows_a_secret() -> None:
    found = secret_fields()
    assert {name for name, shown in found.items() if shown} == set(SHOWN)
    # The test sees what it is about.
    for known in (("Entry", "salt"), ("ServedRow", "blinding"), ("Window", "noise_seed")):
        assert found[known] is False


def test_private_keys_show_nothing() -> None:
    key = PrivateKey.from_seed(b"\x5a" * 32)
    assert "ZZZZ" not in repr(key) and "5a5a" not in repr(key)


def test_a_receipt_does_not_show_the_salt_of_its_leaf() -> None:
    receipt = PublicReceipt(
        origin="p/ragaudit/w",
        index=1,
        salt=b"the salt of the leaf, 32 bytes..",
        body=b"body",
        issued=1,
        answer_digest=bytes(32),
    ).signed(PrivateKey.generate())
    assert "the salt" not in repr(receipt) and "the salt" not in str(receipt)
