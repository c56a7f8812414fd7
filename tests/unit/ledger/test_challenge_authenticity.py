"""A challenge counts only if the policy's verifier made all of it, for this window, in time."""

import json
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.errors import ChainRejected
from ragaudit.ledger.messages.chains import activation_anchor, activation_preimage
from ragaudit.ledger.messages.challenge import Challenge, ReceiptsList
from ragaudit.ledger.messages.countersignature import Activation
from ragaudit.ledger.messages.policy import Policy

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
    return ReceiptsList.issue(key, **{**members, **changes})


def challenge(key: PrivateKey = KEY, **changes: Any) -> Challenge:
    members = {
        "window": POLICY.window,
        "final_root": bytes(32),
        "final_size": 9,
        "preimage": SEED,
        "receipts_list": listed(),
        "strata": (),
        "deadline": LAST + 1,
    }
    return Challenge.issue(key, **{**members, **changes})


def test_a_challenge_is_authenticated_whole() -> None:
    challenge().authenticate(POLICY, anchor=ANCHOR)


@pytest.mark.parametrize(
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
    Activation.issue(KEY, a=1, **members).authenticate(POLICY, anchor=ANCHOR, number=1)
    with pytest.raises(RejectedError, match="another activation"):
        Activation.issue(KEY, a=2, **members).authenticate(POLICY, anchor=ANCHOR, number=1)
