"""A policy's beacon: its rounds follow from the instants, and everything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.encoding.signing import SignatureRejected
from ragaudit.lab.scenario.third_parties import CHAIN, OTHER, BeaconWindow
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.messages.beacon import QUICKNET, BeaconChain, BeaconRound
from ragaudit.ledger.messages.chains import activation_anchor
from ragaudit.ledger.messages.challenge import Activation
from ragaudit.ledger.messages.policy import Policy

WINDOW = BeaconWindow()
POLICY = WINDOW.policy.to_json()


def test_rounds_follow_from_instants_chain_and_delay() -> None:
    policy = Policy.from_json(POLICY)
    assert policy.beacon is not None
    chain, delay = policy.beacon.chain, policy.beacon.delay_seconds
    for a, instant in enumerate(policy.activation_instants, start=1):
        number = policy.round_of(a)
        assert number is not None
        assert number == POLICY["activation_rounds"][a - 1]
        # The first that is due at t_a + delta or later.
        assert chain.time(number) >= instant + delay > chain.time(number - 1)
        assert policy.release_instant(a) == chain.time(number)
    assert policy.beacon.to_json() == POLICY["beacon"]


def test_without_a_beacon_values_are_released_at_their_instants() -> None:
    plain = {**POLICY, "beacon": {"kind": "none"}, "activation_rounds": [None] * 3}
    policy = Policy.from_json(plain)
    assert policy.beacon is None
    assert policy.round_of(1) is None
    assert policy.release_instant(2) == policy.activation_instants[1]


ROUNDS = POLICY["activation_rounds"]
BEACON = POLICY["beacon"]


@for_each(
    "change",
    [
        {"activation_rounds": [ROUNDS[0], ROUNDS[1], ROUNDS[2] + 1]},
        {"activation_rounds": [ROUNDS[0] - 1, *ROUNDS[1:]]},
        {"activation_rounds": ROUNDS[:2]},
        {"activation_rounds": [None] * 3},
        {"beacon": {"kind": "none"}},
        {"beacon": {**BEACON, "delay_seconds": BEACON["delay_seconds"] + 3}},
        {"beacon": {**BEACON, "genesis": POLICY["start"] + 1}},
        {"beacon": {**BEACON, "hash": "00" * 32}},
        {"beacon": {**BEACON, "public_key": OTHER.chain.public_key.hex()}},
        {"beacon": {**BEACON, "name": "quicknet"}},
    ],
)
def test_what_names_other_rounds_is_no_policy(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedPolicy):
        Policy.from_json({**POLICY, **change})


@pytest.mark.parametrize(
    "beacon", [{"kind": "dice"}, {**BEACON, "scheme": "pedersen-bls-chained"}, [], None]
)
def test_beacons_of_another_kind_are_unsupported(beacon: Any) -> None:
    with pytest.raises(UnsupportedError):
        Policy.from_json({**POLICY, "beacon": beacon})


def test_a_chain_is_read_as_drand_shows_it() -> None:
    assert BeaconChain.parse(json.dumps(CHAIN.info()).encode()) == CHAIN.chain
    changes: tuple[dict[str, Any], ...] = (
        {"hash": QUICKNET.hash.hex()},
        {"period": 30},
        {"metadata": {}},
        {"public_key": "c0" + "00" * 95},
    )
    for change in changes:
        with pytest.raises(MalformedError):
            BeaconChain.parse(json.dumps({**CHAIN.info(), **change}).encode())
    with pytest.raises(MalformedError, match="too long"):
        BeaconChain.parse(b" " * 5000)


def activation(round: BeaconRound | None, time: int) -> Activation:  # noqa: A002
    return Activation(window=WINDOW.window, a=1, preimage=WINDOW.preimage(1),
        covered_size=3, time=time, round=round,
    ).signed(WINDOW.verifier_key)  # fmt: skip


DUE = 1000 * Policy.from_json(POLICY).release_instant(1)


@pytest.mark.parametrize(
    ("round", "time", "reason"),
    [
        (None, DUE, "no round of the beacon"),
        (CHAIN.round(ROUNDS[0] + 1), DUE, "of the beacon"),
        (OTHER.round(ROUNDS[0]), DUE, "does not verify"),
        (CHAIN.round(ROUNDS[0]), DUE - 1, "before its round was due"),
    ],
)
def test_an_activation_needs_its_round(
    round: BeaconRound | None,  # noqa: A002
    time: int,
    reason: str,
) -> None:
    anchor = activation_anchor(WINDOW.window, WINDOW.chain_seed, 3)
    with pytest.raises(RejectedError, match=reason):
        activation(round, time).authenticate(WINDOW.policy, anchor=anchor, number=1)
    honest = activation(CHAIN.round(ROUNDS[0]), DUE)
    honest.authenticate(WINDOW.policy, anchor=anchor, number=1)
    assert honest.randomness() == WINDOW.randomness(1)


def test_a_round_is_signed_and_so_is_that_there_is_none() -> None:
    shown = CHAIN.round(ROUNDS[0])
    plain, mixed = activation(None, DUE).to_json(), activation(shown, DUE).to_json()
    with pytest.raises(MalformedError):
        Activation.from_json({name: value for name, value in plain.items() if name != "round"})
    for value in ({**plain, "round": shown.to_json()}, {**mixed, "round": None}):
        with pytest.raises(SignatureRejected):
            Activation.from_json(value).verify(WINDOW.policy.keys.verifier)
