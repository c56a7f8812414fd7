"""Signed requests: their headers are read as they are written, and as nothing else."""

from hashlib import sha256
from typing import Any

import pytest
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.messages.signed import SignedRequest

KEY = PrivateKey.from_seed(b"k" * 32)
SIGNED = SignedRequest.issue(
    KEY, provider="acme", method="PUT", target="/v1/windows/w?a=b", body=b"body", time=7
)


def read(headers: dict[str, list[str]]) -> SignedRequest:
    return SignedRequest.parse(lambda name: headers.get(name, []))


def listed(**changes: list[str]) -> dict[str, list[str]]:
    """The headers, some changed: ``Content_Digest`` stands for ``Content-Digest``."""
    given = {name: [text] for name, text in SIGNED.encode().items()}
    return {**given, **{name.replace("_", "-"): each for name, each in changes.items()}}


def test_round_trip() -> None:
    found = read(listed())
    assert found == SIGNED and found.digest == sha256(b"body").digest()
    found.verify(KEY.public, method="PUT", target="/v1/windows/w?a=b")
    for method, target in (("POST", "/v1/windows/w?a=b"), ("PUT", "/v1/windows/w")):
        with pytest.raises(SignatureRejected):
            found.verify(KEY.public, method=method, target=target)


def test_no_digest_is_that_of_no_body() -> None:
    assert read(listed(Content_Digest=[])).digest == sha256(b"").digest()


@pytest.mark.parametrize("name", ["Ragaudit_Provider", "Ragaudit_Time", "Ragaudit_Signature"])
@pytest.mark.parametrize("values", [[], ["1", "1"]])
def test_each_header_stands_once(name: str, values: list[str]) -> None:
    with pytest.raises(MalformedError, match="values"):
        read(listed(**{name: values}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Ragaudit_Time", "01"),
        ("Ragaudit_Time", "-1"),
        ("Ragaudit_Time", "1" * 17),
        ("Ragaudit_Signature", "AA=="),
        ("Ragaudit_Signature", "?"),
        ("Content_Digest", "sha-512=:AA==:"),
        ("Content_Digest", "sha-256=:" + "A" * 44 + ":"),
        ("Content_Digest", SIGNED.encode()["Content-Digest"] + ", other=:AA==:"),
    ],
)
def test_headers_of_another_form(name: str, value: Any) -> None:
    with pytest.raises(MalformedError) as caught:
        read(listed(**{name: [value]}))
    assert caught.value.where == name.replace("_", "-").lower()
