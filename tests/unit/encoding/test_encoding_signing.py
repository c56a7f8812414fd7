"""docs/spec/01-encoding.md §3."""

import json
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import PrivateKey, PublicKey, SignatureRejected, sign, verify

KNOWN = json.loads((Path(__file__).parents[2] / "vectors" / "encoding.json").read_bytes())
KEY = PrivateKey.from_seed(bytes(range(32)))
ORDER = 2**252 + 27742317777372353535851937790883648493


def test_rfc8032() -> None:
    case = KNOWN["signatures"][0]
    key = PrivateKey.from_seed(bytes.fromhex(case["seed"]))
    assert key.public.raw.hex() == case["public"]
    assert key.sign_raw(b"").hex() == case["signature"]
    key.public.verify_raw(bytes.fromhex(case["signature"]), b"")


def test_known_framed_signature() -> None:
    case: dict[str, Any] = KNOWN["signatures"][1]
    key = PrivateKey.from_seed(bytes.fromhex(case["seed"]))
    assert sign(key, case["what"], b"body", 5).hex() == case["signature"]


@given(st.binary(max_size=30), st.integers(-(2**63), 2**63 - 1))
def test_round_trip(data: bytes, number: int) -> None:
    verify(KEY.public, sign(KEY, "promise", data, number), "promise", data, number)


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("promises", (b"a", b"b")),
        ("promise", (b"ab", b"")),
        ("promise", (b"a",)),
        ("promise", (b"a", b"b", b"")),
        ("promise", (b"b", b"a")),
    ],
)
def test_other_name_or_fields_are_rejected(what: str, fields: tuple[bytes, ...]) -> None:
    signature = sign(KEY, "promise", b"a", b"b")
    verify(KEY.public, signature, "promise", b"a", b"b")
    with pytest.raises(SignatureRejected, match=what):
        verify(KEY.public, signature, what, *fields)


def test_every_flipped_bit_is_rejected() -> None:
    signature = sign(KEY, "x", b"m")
    for bit in range(512):
        broken = bytearray(signature)
        broken[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SignatureRejected):
            verify(KEY.public, bytes(broken), "x", b"m")


def test_s_is_below_the_group_order() -> None:
    """A second signature S + L of the same message must not verify (malleability)."""
    signature = sign(KEY, "x", b"m")
    raised = (int.from_bytes(signature[32:], "little") + ORDER).to_bytes(32, "little")
    with pytest.raises(SignatureRejected):
        verify(KEY.public, signature[:32] + raised, "x", b"m")


@pytest.mark.parametrize("length", [0, 63, 65, 128])
def test_signature_length(length: int) -> None:
    with pytest.raises(SignatureRejected, match="length"):
        verify(KEY.public, bytes(length), "x", b"m")


def test_another_key_is_rejected() -> None:
    with pytest.raises(RejectedError):
        verify(PrivateKey.generate().public, sign(KEY, "x"), "x")


@for_each("raw", KNOWN["refused_public_keys"])
def test_keys_of_small_order_are_refused(raw: str) -> None:
    with pytest.raises(MalformedError, match=r"small order|not canonical"):
        PublicKey.from_raw(bytes.fromhex(raw))


@pytest.mark.parametrize("y", [2**255 - 19, 2**255 - 1, 2**255 - 19 + 9])
def test_non_canonical_keys_are_refused(y: int) -> None:
    with pytest.raises(MalformedError, match="not canonical"):
        PublicKey.from_raw(y.to_bytes(32, "little"))


@pytest.mark.parametrize("length", [0, 31, 33])
def test_key_lengths(length: int) -> None:
    with pytest.raises(MalformedError):
        PublicKey.from_raw(bytes(length))
    with pytest.raises(MalformedError):
        PrivateKey.from_seed(bytes(length))


def test_a_key_that_is_no_point_verifies_nothing() -> None:
    key = PublicKey.from_raw((2).to_bytes(32, "little"))
    with pytest.raises(SignatureRejected):
        verify(key, bytes(64), "x")


def test_representation_hides_the_seed() -> None:
    seed = bytes(range(100, 132))
    key = PrivateKey.from_seed(seed)
    shown = f"{key!r} {key}"
    assert key.seed() == seed
    assert seed.hex() not in shown and repr(seed) not in shown and "_seed" not in shown
