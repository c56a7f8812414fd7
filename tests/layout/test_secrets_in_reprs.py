"""No repr shows a secret: leaf salts, blindings, seeds, keys of the noise, texts of accounts.

A repr reaches tracebacks, logs and debuggers. A leaf's salt, for one, lets whoever has it test a
guessed body against the public log.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType

import ragaudit
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.receipts import PublicReceipt

MEMBERS = ("client", "embedders", "encoding", "ledger", "prover", "serving", "verifier")

# Secret by their name, wherever they stand.
SECRET = re.compile(
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
                    if SECRET.fullmatch(each.name) and value.__module__ == module.__name__:
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
