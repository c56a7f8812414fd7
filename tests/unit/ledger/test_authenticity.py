"""Challenges and requests count only if who may make them made all of it, in time."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.errors import ChainRejected
from ragaudit.ledger.messages.chains import activation_anchor, activation_preimage
from ragaudit.ledger.messages.challenge import Activation, Challenge, ReceiptsList
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.signed import SignedRequest

FROZEN = Path(__file__).parents[2] / "frozen" / "0.1.0" / "policy.json"
KEY, OTHER = (PrivateKey.from_seed(bytes([n]) * 32) for n in (1, 2))
SEED = b"c" * 32


def policy() -> Policy:
    value = json.loads(FROZEN.read_text(encoding="utf-8"))
    keys = {**value["keys"], "verifier": KEY.public.raw.hex()}
    return Policy.from_json({**value, "keys": keys})


POLICY = policy()
ANCHOR = activation_anchor(POLICY.window, SEED, POLICY.activations)
LAST = 1000 * POLICY.sampling_instant - 1


def listed(key: PrivateKey = KEY, **changes: Any) -> ReceiptsList:
    members = {"window": POLICY.window, "digest": bytes(32), "count": 0, "time": LAST}
    return ReceiptsList(**{**members, **changes}).signed(key)


def challenge(key: PrivateKey = KEY, **changes: Any) -> Challenge:
    members = {
        "window": POLICY.window, "final_root": bytes(32), "final_size": 9, "preimage": SEED,
        "receipts_list": listed(), "strata": (), "deadline": LAST + 1,
    }  # fmt: skip
    return Challenge(**{**members, **changes}).signed(key)


def test_a_challenge_is_authenticated_whole() -> None:
    challenge().authenticate(POLICY, anchor=ANCHOR)


@for_each(
    ("false", "error"),
    [
        (challenge(window="w9"), RejectedError),
        (challenge(OTHER), SignatureRejected),
        (challenge(preimage=bytes(32)), ChainRejected),
        (challenge(receipts_list=listed(OTHER)), SignatureRejected),
        (challenge(receipts_list=listed(window="w9")), RejectedError),
        (challenge(receipts_list=listed(time=LAST + 1)), RejectedError),
    ],
)
def test_a_false_challenge(false: Challenge, error: type[Exception]) -> None:
    with pytest.raises(error):
        false.authenticate(POLICY, anchor=ANCHOR)


def test_an_activation_is_the_one_that_was_asked_for() -> None:
    preimage = activation_preimage(POLICY.window, SEED, POLICY.activations, 1)
    members: dict[str, Any] = {
        "window": POLICY.window,
        "preimage": preimage,
        "covered_size": 1,
        "time": 7,
    }
    Activation(a=1, **members).signed(KEY).authenticate(POLICY, anchor=ANCHOR, number=1)
    with pytest.raises(RejectedError, match="another activation"):
        Activation(a=2, **members).signed(KEY).authenticate(POLICY, anchor=ANCHOR, number=1)


PROVIDER = PrivateKey.from_seed(b"k" * 32)
SIGNED = SignedRequest.issue(
    PROVIDER, provider="acme", method="PUT", target="/v1/windows/w?a=b", body=b"body", time=7
)


def read(headers: dict[str, list[str]]) -> SignedRequest:
    return SignedRequest.parse(lambda name: headers.get(name, []))


def shown(**changes: list[str]) -> dict[str, list[str]]:
    """The headers, some changed: ``Content_Digest`` stands for ``Content-Digest``."""
    given = {name: [text] for name, text in SIGNED.encode().items()}
    return {**given, **{name.replace("_", "-"): each for name, each in changes.items()}}


def test_round_trip() -> None:
    found = read(shown())
    assert found == SIGNED and found.digest == sha256(b"body").digest()
    found.verify(PROVIDER.public, method="PUT", target="/v1/windows/w?a=b")
    for method, target in (("POST", "/v1/windows/w?a=b"), ("PUT", "/v1/windows/w")):
        with pytest.raises(SignatureRejected):
            found.verify(PROVIDER.public, method=method, target=target)


def test_no_digest_is_that_of_no_body() -> None:
    assert read(shown(Content_Digest=[])).digest == sha256(b"").digest()


@for_each("name", ["Ragaudit_Provider", "Ragaudit_Time", "Ragaudit_Signature"])
@for_each("values", [[], ["1", "1"]])
def test_each_header_stands_once(name: str, values: list[str]) -> None:
    with pytest.raises(MalformedError, match="values"):
        read(shown(**{name: values}))


@for_each(
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
        read(shown(**{name: [value]}))
    assert caught.value.where == name.replace("_", "-").lower()
