"""Rounds of drand's quicknet: the public ones verify, by two libraries; nothing else does."""

import hashlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.ledger.messages import beacon
from ragaudit.ledger.messages.beacon import (
    QUICKNET,
    BeaconChain,
    BeaconRound,
    Engine,
    arkworks_engine,
    fastest,
    py_ecc_engine,
)

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "drand.json").read_text("utf-8"))
ROUNDS = VECTORS["rounds"]
ENGINES: dict[str, Callable[[], Engine]] = {"arkworks": arkworks_engine, "py_ecc": py_ecc_engine}
FIRST = BeaconRound(ROUNDS[0]["round"], bytes.fromhex(ROUNDS[0]["signature"]))

# py_ecc takes half a second for a pairing, and its libraries warn when they are loaded.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]()


@pytest.mark.parametrize("vector", ROUNDS, ids=lambda each: str(each["round"]))
def test_public_rounds_verify(vector: Any, engine: Engine) -> None:
    found = BeaconRound.parse(json.dumps(vector).encode())
    randomness = found.verify(QUICKNET, vector["round"], engine=engine)
    assert randomness.hex() == vector["randomness"]
    assert BeaconRound.parse(found.encode()) == found


def test_the_chain_is_the_one_that_drand_names() -> None:
    assert QUICKNET.hash.hex() == VECTORS["chain_hash"]
    assert QUICKNET.time(1) == 1_692_803_367
    assert [QUICKNET.first_from(QUICKNET.time(n) + k) for n in (1, 2, 9) for k in (-2, 0, 1)] == [
        1, 1, 2, 2, 2, 3, 9, 9, 10,
    ]  # fmt: skip
    assert QUICKNET.first_from(0) == 1


def test_a_true_signature_of_another_round_is_rejected(engine: Engine) -> None:
    with pytest.raises(RejectedError, match="round 123 of the beacon"):
        FIRST.verify(QUICKNET, 124, engine=engine)
    with pytest.raises(RejectedError, match="does not verify"):
        BeaconRound(124, FIRST.signature).verify(QUICKNET, 124, engine=engine)


def test_another_point_of_the_group_is_rejected(engine: Engine) -> None:
    mirrored = bytes([FIRST.signature[0] ^ 0x20]) + FIRST.signature[1:]  # the negative
    other = bytes.fromhex(ROUNDS[1]["signature"])
    for signature in (mirrored, other):
        with pytest.raises(RejectedError, match="does not verify"):
            BeaconRound(123, signature).verify(QUICKNET, 123, engine=engine)


def _flipped(bit: int) -> bytes:
    data = bytearray(FIRST.signature)
    data[bit // 8] ^= 0x80 >> (bit % 8)
    return bytes(data)


@for_each("bit", [3, 40, 200, 383])
def test_a_flipped_bit_is_rejected(bit: int, engine: Engine) -> None:
    with pytest.raises(RejectedError):
        BeaconRound(123, _flipped(bit)).verify(QUICKNET, 123, engine=engine)


def test_a_point_outside_the_subgroup_is_rejected(engine: Engine) -> None:
    # x = 0, y = 2: on the curve y^2 = x^3 + 4, of order 3.
    outside = bytes([0x80]) + bytes(47)
    with pytest.raises(RejectedError, match="no point of the group"):
        BeaconRound(123, outside).verify(QUICKNET, 123, engine=engine)


def test_another_chains_key_is_rejected(engine: Engine) -> None:
    # The generator of G2 as a key: its secret is 1, and everybody could sign.
    generator = bytes.fromhex(
        "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049"
        "334cf11213945d57e5ac7d055d042b7e024aa2b2f08f0a91260805272dc51051"
        "c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
    )
    chain = BeaconChain.of(generator, 3, QUICKNET.genesis, QUICKNET.group_hash, "mine")
    assert chain.hash != QUICKNET.hash
    with pytest.raises(RejectedError, match="does not verify"):
        FIRST.verify(chain, 123, engine=engine)


@for_each(
    "signature",
    [
        b"",
        FIRST.signature[:-1],
        FIRST.signature + b"\0",
        bytes(48),
        bytes([FIRST.signature[0] & 0x7F]) + FIRST.signature[1:],  # not compressed
        bytes([0xC0]) + bytes(47),  # the identity, which verifies nothing and everything
        b"\xff" * 48,
        (beacon._P + (4 << 381)).to_bytes(48, "big"),  # x = p, a second encoding of x = 0
    ],
)
def test_other_bytes_are_no_signature(signature: bytes) -> None:
    with pytest.raises(MalformedError, match="not a signature"):
        BeaconRound(123, signature)


def test_other_answers_are_refused() -> None:
    other = {**ANSWER, "randomness": hashlib.sha256(b"").hexdigest()}
    for data in (json.dumps(other).encode(), b" " * 5000):
        with pytest.raises(MalformedError, match=r"another randomness|too long"):
            BeaconRound.parse(data)


@pytest.mark.parametrize("number", [0, -1, 2**53])
def test_other_numbers_are_no_round(number: int) -> None:
    with pytest.raises(MalformedError, match="not a round"):
        BeaconRound(number, FIRST.signature)


ANSWER = {"round": 123, "signature": FIRST.signature.hex(), "randomness": FIRST.randomness.hex()}


def test_without_a_library_it_says_which_one_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules, "py_arkworks_bls12381", "py_ecc", "py_ecc.bls.g2_primitives"]:
        if name.split(".")[0] in {"py_arkworks_bls12381", "py_ecc"}:
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnsupportedError, match=r"ragaudit-ledger\[beacon\]"):
        FIRST.verify(QUICKNET, 123)


def test_the_fastest_library_that_is_there_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FIRST.verify(QUICKNET, 123) == FIRST.randomness
    monkeypatch.setitem(sys.modules, "py_arkworks_bls12381", None)
    assert fastest().__qualname__.startswith("py_ecc_engine")


def test_loading_an_engine_leaves_the_limit_of_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a raised limit deeply nested JSON is a crash of the process, not a refusal."""
    for name in [name for name in sys.modules if name.split(".")[0] == "py_ecc"]:
        monkeypatch.delitem(sys.modules, name)
    before = sys.getrecursionlimit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        py_ecc_engine()
    assert sys.getrecursionlimit() == before
