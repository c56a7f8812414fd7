"""A window as the provider shows it: read as it is written, and believed as far as it is signed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.errors import ChainRejected, MalformedRecord
from ragaudit.ledger.messages.chains import activation_anchor, activation_preimage
from ragaudit.ledger.messages.challenge import Activation, Countersignature, opening_digest
from ragaudit.ledger.messages.entries import Opening, TenantOpening
from ragaudit.ledger.messages.manifests import EmbedderManifest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown import ShownOpening, ShownWindow, WindowList

FROZEN = json.loads(
    (Path(__file__).parents[2] / "frozen" / "0.1.0" / "window.json").read_text(encoding="utf-8")
)
KEY = PrivateKey.from_seed(b"k" * 32)
OTHER = PrivateKey.from_seed(b"o" * 32)
SALT = b"s" * 32
SEED = b"c" * 32


def policy_of(**changes: Any) -> Policy:
    keys = {**FROZEN["policy"]["keys"], "verifier": KEY.public.raw.hex()}
    return Policy.from_json({**FROZEN["policy"], "keys": keys, **changes})


POLICY = policy_of()
EMBEDDER = EmbedderManifest("toy", 256, "{text}", {}, {})
COUNT = POLICY.activations
TENANTS = tuple(TenantOpening(name, 1, bytes(32), bytes(32)) for name in POLICY.tenants)
OPENING = Opening(POLICY.digest, EMBEDDER.digest(), bytes(32), TENANTS)


def countersigned(body: bytes, key: PrivateKey = KEY, **changes: Any) -> Countersignature:
    members = {
        "window": POLICY.window, "policy_digest": POLICY.digest,
        "opening_digest": opening_digest(SALT, body), "terms_digest": bytes(32),
        "activation_anchor": activation_anchor(POLICY.window, SEED, COUNT), "time": 7,
    }  # fmt: skip
    return Countersignature(**{**members, **changes}).signed(key)


def activation(a: int, key: PrivateKey = KEY, **changes: Any) -> Activation:
    preimage = activation_preimage(POLICY.window, SEED, COUNT, a)
    members = {"window": POLICY.window, "a": a, "preimage": preimage, "covered_size": a, "time": 7}
    return Activation(**{**members, **changes}).signed(key)


WINDOW = ShownWindow(
    window=POLICY.window,
    state="open",
    policy=POLICY,
    policy_digest=POLICY.digest,
    countersignature=countersigned(OPENING.encode()),
    opening=ShownOpening(SALT, OPENING.encode()),
    embedder=EMBEDDER,
    activations=(activation(1), activation(2)),
    epochs=() if POLICY.epochs else None,
)
DRAFT = replace(WINDOW, state="draft", countersignature=None, opening=None, activations=())


def opened(opening: Opening) -> ShownWindow:
    """The window with another opening, which the verifier has countersigned."""
    body = opening.encode()
    shown, signed = ShownOpening(SALT, body), countersigned(body)
    return replace(WINDOW, opening=shown, countersignature=signed)


def test_the_frozen_window() -> None:
    shown = ShownWindow.from_json(FROZEN)
    assert shown.to_json() == FROZEN
    signed, opening = shown.authenticate()
    assert signed.policy_digest == opening.policy_digest == shown.policy.digest


@pytest.mark.parametrize("window", [WINDOW, DRAFT])
def test_round_trip(window: ShownWindow) -> None:
    assert ShownWindow.from_json(window.to_json()) == window
    assert WindowList.from_json(WindowList((window, DRAFT)).to_json()).windows == (window, DRAFT)


def test_what_is_shown_is_authenticated() -> None:
    assert WINDOW.countersigned() == (WINDOW.countersignature, OPENING)
    assert WINDOW.authenticate() == (WINDOW.countersignature, OPENING)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"windows": []},
    ],
)
def test_lists_of_another_form(value: Any) -> None:
    with pytest.raises(MalformedError):
        WindowList.from_json(value)


@for_each(
    ("window", "error", "where"),
    [
        (DRAFT, RejectedError, "not countersigned"),
        (replace(WINDOW, opening=None), RejectedError, "not countersigned"),
        (replace(WINDOW, countersignature=None), RejectedError, "not countersigned"),
        (replace(WINDOW, window="w2"), RejectedError, "window"),
        (replace(WINDOW, policy_digest=bytes(32)), RejectedError, "policy_digest"),
        (replace(WINDOW, policy=policy_of(slots=9)), RejectedError, "policy_digest"),
        (replace(WINDOW, opening=ShownOpening(SALT, b"body")), MalformedRecord, "fields"),
        (
            replace(WINDOW, opening=ShownOpening(bytes(32), OPENING.encode())),
            RejectedError,
            "another opening",
        ),
        (opened(replace(OPENING, policy_digest=bytes(32))), RejectedError, "opening: policy"),
        # Noise under a policy with noise comes from keys that the opening commits to.
        (opened(replace(OPENING, seed_root=b"")), RagauditError, "seed"),
        # A document secret where no owner checks: whatever it is for, nobody looks at it.
        (
            opened(
                replace(
                    OPENING,
                    tenants=tuple(replace(each, id_commitment=bytes(32)) for each in TENANTS),
                )
            ),
            MalformedRecord,
            "id commitments",
        ),
        *(
            (
                replace(WINDOW, countersignature=countersigned(OPENING.encode(), **changes)),
                kind,
                where,
            )
            for changes, kind, where in (
                ({"window": "w2"}, RejectedError, "another window"),
                ({"policy_digest": bytes(32)}, RejectedError, "another policy"),
                ({"opening_digest": bytes(32)}, RejectedError, "another opening"),
                ({"key": OTHER}, SignatureRejected, "signature"),
            )
        ),
    ],
)
def test_another_window_than_was_countersigned(
    window: ShownWindow, error: type[RagauditError], where: str
) -> None:
    check: Callable[[], object]
    for check in (window.countersigned, window.authenticate):
        with pytest.raises(error, match=where):
            check()


@for_each(
    ("window", "error"),
    [
        (replace(WINDOW, embedder=replace(EMBEDDER, name="other")), RejectedError),
        (replace(WINDOW, activations=(activation(2),)), RejectedError),
        (replace(WINDOW, activations=(activation(1, window="w2"),)), RejectedError),
        (replace(WINDOW, activations=(activation(1, key=OTHER),)), SignatureRejected),
        (replace(WINDOW, activations=(activation(1, preimage=SEED),)), ChainRejected),
        (replace(WINDOW, activations=(activation(1),) * (COUNT + 1)), RejectedError),
    ],
)
def test_what_the_countersignature_names_otherwise(
    window: ShownWindow, error: type[RagauditError]
) -> None:
    window.countersigned()
    with pytest.raises(error):
        window.authenticate()
