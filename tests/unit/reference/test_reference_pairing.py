"""BLS signatures in the reference verifier: public rounds, py_ecc's hashing, what is no point."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from ragaudit.ledger.messages.beacon import QUICKNET, py_ecc_engine
from ragaudit.verifier.reference import MalformedProof, ProofRejected, pairing, verify_round
from reference_vectors import FOLDER

ROUNDS: Any = json.loads((FOLDER / "drand.json").read_text())["rounds"]

# The libraries of py_ecc warn when they are loaded.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def message(number: int) -> bytes:
    return sha256(number.to_bytes(8, "big")).digest()


@pytest.mark.parametrize("vector", ROUNDS, ids=lambda each: str(each["round"]))
def test_public_rounds_verify(vector: Any) -> None:
    signature = bytes.fromhex(vector["signature"])
    verify_round(QUICKNET.public_key, message(vector["round"]), signature)


def test_another_round_or_key_does_not_verify() -> None:
    signature = bytes.fromhex(ROUNDS[0]["signature"])
    with pytest.raises(ProofRejected, match="does not verify"):
        verify_round(QUICKNET.public_key, message(ROUNDS[0]["round"] + 1), signature)
    (x1, x0), (y1, y0) = (pairing.GENERATOR[0][::-1], pairing.GENERATOR[1][::-1])
    larger = (y1 or y0) > pairing.P // 2
    generator = (x1 | 1 << 383 | larger << 381).to_bytes(48, "big") + x0.to_bytes(48, "big")
    assert pairing.decode_g2(generator) == pairing.GENERATOR
    with pytest.raises(ProofRejected, match="does not verify"):
        verify_round(generator, message(ROUNDS[0]["round"]), signature)


def test_both_signs_of_a_point_are_read() -> None:
    x, y = pairing.hash_to_g1(b"a point")
    for point in ((x, y), (x, pairing.P - y)):
        assert pairing.decode_g1(pairing.encode_g1(point)) == point


def test_hashing_is_that_of_py_ecc() -> None:
    py_ecc_engine()  # loads py_ecc, and keeps the limit of recursion that it raises for everybody
    from py_ecc.bls.hash_to_curve import hash_to_G1
    from py_ecc.optimized_bls12_381 import normalize

    for text in (b"", b"abc", bytes(32), b"q" * 200):
        x, y = normalize(hash_to_G1(text, pairing.DST, sha256))
        assert pairing.hash_to_g1(text) == (int(x), int(y))


def test_what_is_no_point_is_malformed() -> None:
    signature = bytes.fromhex(ROUNDS[0]["signature"])
    # 4 is a square: (0, 2) is on the curve, and not in the subgroup.
    outside = bytes([0x80]) + bytes(47)
    for bad in (
        b"",
        signature[:-1],
        bytes([signature[0] & 0x7F]) + signature[1:],
        bytes([0xC0]) + bytes(47),
        bytes([0x9F]) + b"\xff" * 47,
        outside,
        bytes([0x80]) + bytes(46) + b"\x01",
    ):
        with pytest.raises(MalformedProof):
            verify_round(QUICKNET.public_key, message(123), bad)
    key = QUICKNET.public_key
    for bad in (key[:-1], key[:48] + b"\xff" * 48, bytes([0xC0]) + bytes(95), key[:-1] + b"\0"):
        with pytest.raises(MalformedProof):
            verify_round(bad, message(123), signature)
