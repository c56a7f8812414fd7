"""docs/spec/03-noise.md: parameters, tables, certified distance, reference sampler."""

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import noise_certificate as certify
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from ragaudit.circuits import noise
from ragaudit.circuits.noise import NoiseParameters, Table
from ragaudit.encoding.errors import MalformedError, RefusedError, RejectedError

VECTORS = Path(__file__).parents[2] / "vectors"
KNOWN = json.loads((VECTORS / "noise.json").read_bytes())
SMALLEST = NoiseParameters.for_units(Fraction(16), "smallest")
LARGEST = NoiseParameters.for_units(Fraction(2**40), "largest")


def parameters_of(case: dict[str, Any]) -> NoiseParameters:
    return NoiseParameters.for_units(Fraction(case["sigma_units"]), case["name"])


@pytest.mark.parametrize("case", KNOWN["tables"], ids=lambda c: c["name"])
def test_known_tables_and_samples(case: dict[str, Any]) -> None:
    parameters = parameters_of(case)
    assert parameters.levels == case["levels"]
    assert parameters.factor == case["factor"]
    assert parameters.base_variance == Fraction(case["base_variance"])
    assert parameters.half_width == case["half_width"]
    table = noise.table(parameters)
    assert hashlib.sha256(table.thresholds).hexdigest() == case["thresholds_sha256"]
    assert table.values()[parameters.half_width] == int(case["middle_threshold"])
    if "thresholds" in case:
        assert table.thresholds.hex() == case["thresholds"]
    drawn = noise.sample_noise(table, bytes.fromhex(case["key"]), 1000)
    assert drawn[:32].tolist() == case["first_samples"]
    assert hashlib.sha256(drawn.astype("<i8").tobytes()).hexdigest() == case["samples_1000_sha256"]


@pytest.mark.parametrize("case", KNOWN["tables"], ids=lambda c: c["name"])
def test_distance_is_certified(case: dict[str, Any]) -> None:
    """Spec 3.5: below 2^-112 per look-up and per convolution, below 2^-109 in all."""
    table = noise.table(parameters_of(case))
    assert certify.table_distance(table) < Fraction(1, 2**112)
    for level in range(1, table.parameters.levels + 1):
        assert certify.convolution_distance(table.parameters, level) < Fraction(1, 2**112)
    assert certify.certify(table) < Fraction(1, 2**109) < certify.GAMMA


def test_distance_of_a_small_table_against_plain_floating_point() -> None:
    """The same sum at 150 digits; the certified value is above it by the bounded tail only."""
    table = noise.table(SMALLEST)
    mp.dps = 150
    p = [mp.exp(-mpf(v * v) / 512) for v in range(1500)]
    z = p[0] + 2 * mp.fsum(p[1:])
    w = SMALLEST.half_width
    edges = [0, *table.values(), 2**128]
    inside = mp.fsum(
        abs(mpf(edges[i + 1] - edges[i]) / 2**128 - p[abs(i - w)] / z) for i in range(2 * w + 1)
    )
    exact = (inside + 2 * mp.fsum(p[w + 1 :]) / z) / 2
    found = certify.table_distance(table)
    assert exact <= mpf(found.numerator) / found.denominator <= exact * mpf("1.02")


def convolved_law(variances: list[float], factor: int, reach: int) -> np.ndarray[Any, Any]:
    """Law of sum_j factor^j x_j with x_j discrete Gaussian of the given variances, on -reach..."""
    law = np.zeros(2 * reach + 1)
    law[reach] = 1.0
    for level, variance in enumerate(variances):
        v = np.arange(-40, 41)
        p = np.exp(-(v**2) / (2 * variance))
        spread = np.zeros_like(law)
        for value, mass in zip(v, p / p.sum(), strict=True):
            move = value * factor**level
            if abs(move) <= reach:
                spread += mass * np.roll(law, move)
        law = spread
    return law


@pytest.mark.parametrize(("variance", "factor"), [(1, 2), (1, 3), (2, 3), (2, 4)])
def test_convolution_bound_covers_the_exact_distance(variance: int, factor: int) -> None:
    """Far below the rule for K the distance is visible: the bound is above it, and close."""
    units = Fraction(variance * (1 + factor**2))
    parameters = NoiseParameters("x", units, 1, factor, Fraction(variance), 40)
    reach = 600
    found = convolved_law([variance, variance], factor, reach)
    v = np.arange(-reach, reach + 1)
    wanted = np.exp(-(v**2) / (2.0 * variance * (1 + factor**2)))
    distance = float(np.sum(np.abs(found - wanted / wanted.sum())) / 2)
    bound = float(certify.convolution_distance(parameters, 1))
    assert 1e-9 < distance < bound < 40 * distance


def test_convolution_bound_of_a_policy() -> None:
    """The formula of the specification at 60 digits, for sigma 10 (two levels)."""
    parameters = NoiseParameters.for_sigma("10")
    s2 = mpf(parameters.base_variance.numerator) / parameters.base_variance.denominator
    k2 = mpf(parameters.factor**2)
    with mp.workdps(60):
        for level in (1, 2):
            previous = s2 * sum(k2**i for i in range(level))
            t2 = s2 * k2 * previous / (s2 + k2 * previous)
            epsilon = 2 * mp.fsum(mp.exp(-2 * mp.pi**2 * j * j * t2 / k2) for j in range(1, 5))
            exact = epsilon / (1 - epsilon)
            found = certify.convolution_distance(parameters, level)
            assert exact <= mpf(found.numerator) / found.denominator <= exact * mpf("1.1")
    together = certify.certified_distance(noise.table(parameters))
    assert together == 3 * certify.table_distance(noise.table(parameters)) + sum(
        certify.convolution_distance(parameters, level) for level in (1, 2)
    )


@pytest.mark.parametrize("parameters", [SMALLEST, NoiseParameters.for_sigma("10")])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("step", [2**40, 2**100, -(2**100)])
def test_a_perturbed_table_fails(parameters: NoiseParameters, place: str, step: int) -> None:
    values = noise.table(parameters).values()
    at = {"first": 0, "middle": len(values) // 2, "last": len(values) - 1}[place]
    values[at] += step
    with pytest.raises((MalformedError, RejectedError)):
        certify.certify(
            Table(parameters, b"".join((v % 2**128).to_bytes(16, "little") for v in values))
        )


@pytest.mark.parametrize("sigma", ["0.25", "2", "50"])
def test_a_table_for_another_sigma_fails(sigma: str) -> None:
    parameters = NoiseParameters.for_sigma(sigma)
    wrong = Fraction(parameters.sigma_units * (1 + Fraction(1, 10**9)))
    forged = noise.table(NoiseParameters.for_units(wrong, "wrong")).thresholds
    with pytest.raises(RejectedError, match="too far"):
        certify.certify(Table(parameters, forged[: 32 * parameters.half_width]))


def test_the_claim_can_be_tightened_until_it_fails() -> None:
    table = noise.table(SMALLEST)
    found = certify.certified_distance(table)
    assert certify.certify(table, found) == found
    with pytest.raises(certify.DistanceRejected):
        certify.certify(table, found * Fraction(999, 1000))


def test_malformed_tables() -> None:
    good = noise.table(SMALLEST).thresholds
    for bad in (good[:-1], good + bytes(16), b""):
        with pytest.raises(MalformedError, match="length"):
            Table(SMALLEST, bad)
    swapped = good[-16:] + good[16:-16] + good[:16]
    with pytest.raises(MalformedError, match="decreases"):
        Table(SMALLEST, swapped)


@given(st.fractions(16, 2**40, max_denominator=10**12))
@settings(max_examples=200)
def test_parameters_satisfy_the_specification(units: Fraction) -> None:
    p = NoiseParameters.for_units(units, "x")
    geometric = sum(Fraction(p.factor) ** (2 * i) for i in range(p.levels + 1))
    assert p.base_variance * geometric == units**2
    assert p.half_width**2 >= 169 * p.base_variance > (p.half_width - 1) ** 2
    assert (p.levels == 0) == (units <= 512)
    if p.levels:
        k = p.factor
        assert 1 <= k <= 256
        assert p.base_variance >= 4 * (1 + k * k)
        up = k + 1
        assert units**2 < 4 * (1 + up**2) * sum(up ** (2 * i) for i in range(p.levels + 1))
    largest = p.half_width * sum(p.factor**i for i in range(p.levels + 1))
    assert p.levels <= 4 and largest < 2**46
    # 12 standard deviations at least are kept, whatever the path of the convolution.
    assert largest >= 12 * units


@pytest.mark.parametrize("sigma", ["0", "0.000992001984", "68169857.261827", "999999999"])
def test_sigma_out_of_range(sigma: str) -> None:
    with pytest.raises(MalformedError, match="out of range"):
        NoiseParameters.for_sigma(sigma)


@pytest.mark.parametrize(
    "sigma", ["", "-1", "1e3", "01", "1.", ".5", " 1", "1\n", "0.0000000000001"]
)
def test_sigma_is_a_strict_decimal(sigma: str) -> None:
    with pytest.raises(MalformedError, match="not a decimal"):
        NoiseParameters.for_sigma(sigma)


def test_edges_of_the_range_are_accepted() -> None:
    assert NoiseParameters.for_sigma("0.000992001985").levels == 0
    assert NoiseParameters.for_sigma("68169857.261826").levels == LARGEST.levels == 4


def test_noise_key() -> None:
    case = dict(KNOWN["noise_key"])
    key, plain, k = case.pop("key"), case.pop("key_with_empty_nonce"), bytes.fromhex(case.pop("k"))
    for name in ("pseudonym", "activation_randomness", "nonce"):
        case[name] = bytes.fromhex(case[name])
    assert noise.noise_key(k, **case).hex() == key
    assert noise.noise_key(k, **(case | {"nonce": b""})).hex() == plain
    seen = {key, plain}
    for name, value in case.items():
        other = {str: "other", int: 9, bytes: bytes(32)}[type(value)]
        seen.add(noise.noise_key(k, **(case | {name: other})).hex())
        if isinstance(value, bytes):
            with pytest.raises(MalformedError):
                noise.noise_key(k, **(case | {name: bytes(31)}))
    assert len(seen) == 2 + len(case)
    with pytest.raises(MalformedError):
        noise.noise_key(k[:31], **case)


def test_key_stream_is_rfc_8439() -> None:
    assert KNOWN["chacha20_zero_key"].startswith("76b8e0ada0f13d90405d6ae55386bd28")


def test_samples_do_not_depend_on_the_count() -> None:
    table = noise.table(NoiseParameters.for_sigma("2"))
    long = noise.sample_noise(table, bytes(32), 300)
    assert np.array_equal(noise.sample_noise(table, bytes(32), 123), long[:123])
    assert noise.sample_noise(table, bytes(32), 0).shape == (0,)
    assert not np.array_equal(noise.sample_noise(table, bytes([1]) * 32, 300), long)


def test_sampler_refusals() -> None:
    table = noise.table(SMALLEST)
    with pytest.raises(MalformedError, match="key"):
        noise.sample_noise(table, bytes(31), 1)
    with pytest.raises(MalformedError, match="negative"):
        noise.sample_noise(table, bytes(32), -1)
    with pytest.raises(RefusedError, match="key stream"):
        noise.sample_noise(table, bytes(32), 2**34 + 1)


@given(st.fractions(0, 2000, max_denominator=10**9), st.sampled_from([64, 200, 384]))
def test_exp_is_enclosed(value: Fraction, bits: int) -> None:
    found = noise.exp_negative(value, bits)
    mp.dps = 300
    exact = mp.exp(-mpf(value.numerator) / value.denominator) * mpf(2) ** bits
    assert found.low <= exact <= found.high
    assert found.high - found.low < 2**24  # wide only by the squarings


def test_weights_are_enclosed() -> None:
    parameters = NoiseParameters.for_sigma("0.25")
    found = noise.weights(parameters, 256, 800)
    mp.dps = 120
    for v in (0, 1, 2, 100, 799):
        exact = (
            mp.exp(
                -mpf(v * v)
                / (2 * mpf(parameters.base_variance.numerator))
                * parameters.base_variance.denominator
            )
            * mpf(2) ** 256
        )
        assert found[v].low <= exact <= found[v].high
        assert found[v].high - found[v].low < 2**40


def test_representation_of_a_table_is_short() -> None:
    assert len(repr(noise.table(SMALLEST))) < 400
