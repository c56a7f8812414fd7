"""The group of the reference verifier against RFC 9496 and against the laws of a group."""

from __future__ import annotations

import random
from hashlib import sha512

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.verifier.reference import MalformedProof
from ragaudit.verifier.reference import ristretto as group
from ragaudit.verifier.reference.field import ORDER
from reference_vectors import read

GENERATOR = bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76")

RFC = read("rfc9496")
MULTIPLES, BAD_ENCODINGS, DERIVED = RFC["multiples"], RFC["refused"], RFC["derived"]
# Inputs that differ only modulo p or in the top bits.
COINCIDING, COINCIDING_OUTPUT = RFC["coinciding"]["inputs"], RFC["coinciding"]["output"]

elements = st.binary(min_size=64, max_size=64).map(group.from_uniform_bytes)
scalars = st.integers(0, ORDER - 1)


def times(scalar: int, point: group.Point) -> group.Point:
    return group.multiscalar([(scalar % ORDER, point)])


def test_constants_satisfy_their_definitions() -> None:
    p, d = group.P, group.D
    assert d * 121666 % p == -121665 % p
    assert pow(group.SQRT_M1, 2, p) == p - 1
    assert pow(group.SQRT_AD_MINUS_ONE, 2, p) == (-d - 1) % p
    assert pow(group.INVSQRT_A_MINUS_D, 2, p) * (-1 - d) % p == 1
    assert (1 - d * d) % p == group.ONE_MINUS_D_SQ
    assert (d - 1) ** 2 % p == group.D_MINUS_ONE_SQ


def test_multiples_of_the_generator() -> None:
    base, sum_ = group.decode(GENERATOR), group.IDENTITY
    for k, expected in enumerate(MULTIPLES):
        assert group.encode(sum_).hex() == expected
        assert group.encode(times(k, base)).hex() == expected
        assert group.encode(group.decode(bytes.fromhex(expected))).hex() == expected
        sum_ = group.add(sum_, base)


@pytest.mark.parametrize("reason", BAD_ENCODINGS)
def test_bad_encodings_are_refused(reason: str) -> None:
    for encoding in BAD_ENCODINGS[reason]:
        with pytest.raises(MalformedProof):
            group.decode(bytes.fromhex(encoding))


@pytest.mark.parametrize("encoding", MULTIPLES)
def test_every_other_spelling_of_an_element_is_refused(encoding: str) -> None:
    data = bytes.fromhex(encoding)
    s = int.from_bytes(data, "little")
    for other in (s + 2**255, group.P - s, group.P - s + 2**255, s + group.P):
        if other < 2**256 and other != s:
            with pytest.raises(MalformedProof):
                group.decode(other.to_bytes(32, "little"))


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_wrong_lengths_are_refused(size: int) -> None:
    with pytest.raises(MalformedProof):
        group.decode(bytes(size))


@pytest.mark.parametrize("text", DERIVED)
def test_one_way_map(text: str) -> None:
    point = group.from_uniform_bytes(sha512(text.encode()).digest())
    assert group.encode(point).hex() == DERIVED[text]


@pytest.mark.parametrize("data", COINCIDING)
def test_one_way_map_reduces_its_input(data: str) -> None:
    point = group.from_uniform_bytes(bytes.fromhex(data))
    assert group.encode(point).hex() == COINCIDING_OUTPUT


# RFC 9496 appendix A.4 in numbers: u, v, whether u/v is a square.
@pytest.mark.parametrize(
    ("u", "v", "square"),
    [(0, 0, True), (0, 1, True), (1, 0, False), (2, 1, False), (4, 1, True), (1, 4, True)],
)
def test_square_roots_of_ratios(u: int, v: int, square: bool) -> None:
    was_square, root = group.sqrt_ratio(u, v)
    assert was_square == square
    assert root % 2 == 0
    target = u if square else group.SQRT_M1 * u
    assert v == 0 or root * root * v % group.P == target % group.P
    assert v != 0 or root == 0


def test_the_order_of_the_group() -> None:
    base = group.decode(GENERATOR)
    assert group.is_identity(group.add(times(ORDER - 1, base), base))
    assert not group.is_identity(base)


@settings(deadline=None)
@given(elements)
def test_encoding_round_trip_and_one_encoding_per_element(point: group.Point) -> None:
    data = group.encode(point)
    again = group.decode(data)
    assert group.encode(again) == data
    assert group.is_identity(group.add(again, group.negate(point)))
    # Another representative of the element: the same point with other coordinates.
    x, y, z, t = point
    assert group.encode((5 * x, 5 * y, 5 * z, 5 * t)) == data


@settings(deadline=None)
@given(elements)
def test_torsion_does_not_change_an_element(point: group.Point) -> None:
    # Adding (0, -1), of order 2, and (i, 0), of order 4, stays in the coset.
    for torsion in ((0, group.P - 1, 1, 0), (group.SQRT_M1, 0, 1, 0)):
        moved = group.add(point, torsion)
        assert group.encode(moved) == group.encode(point)
        assert group.is_identity(group.add(moved, group.negate(point)))


@settings(max_examples=30, deadline=None)
@given(elements, elements, scalars, scalars)
def test_group_laws(p: group.Point, q: group.Point, a: int, b: int) -> None:
    encode, add = group.encode, group.add
    assert encode(add(p, q)) == encode(add(q, p))
    assert encode(group.multiscalar([(a, p), (b, p)])) == encode(times(a + b, p))
    combined = group.multiscalar([(a, p), (b, q)])
    assert encode(combined) == encode(add(times(a, p), times(b, q)))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40, 120])
def test_multiscalar_equals_the_sum_of_products(count: int) -> None:
    rng = random.Random(count)
    base = group.decode(GENERATOR)
    logs = [rng.randrange(ORDER) for _ in range(count)]
    points = [times(log, base) for log in logs]
    factors = [rng.choice([0, 1, ORDER - 1, rng.randrange(ORDER)]) for _ in range(count)]
    total = sum(a * b for a, b in zip(logs, factors, strict=True))
    result = group.multiscalar(zip(factors, points, strict=True))
    assert group.encode(result) == group.encode(times(total, base))
