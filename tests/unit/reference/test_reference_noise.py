"""The reference noise sampler: parameters, tables against high precision, edges, statistics."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.verifier.reference import InvalidNoiseRequest, noise, sample_noise
from ragaudit.verifier.reference.chacha20 import key_stream

KEY = bytes(range(32))
SIGMAS = ["0.001", "0.0317", "0.04", "0.25", "1", "10", "50", "1000000"]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_parameters_follow_the_rule(sigma: str) -> None:
    """Spec 3.1, restated: L least with K_L <= 256, K_L largest with the smoothing condition."""
    sampler = noise.build_sampler(sigma)
    units = Fraction(sigma) * 127**2
    if units <= 512:
        assert (sampler.levels, sampler.factor) == (0, 1)
        variance = units**2
    else:

        def smooth(factor: int, levels: int) -> bool:
            geometric = sum(factor ** (2 * j) for j in range(levels + 1))
            return units**2 >= 4 * (1 + factor**2) * geometric

        assert 1 <= sampler.factor <= 256
        assert sampler.levels >= 1
        assert smooth(sampler.factor, sampler.levels)
        assert not smooth(sampler.factor + 1, sampler.levels)
        assert sampler.levels == 1 or smooth(257, sampler.levels - 1)
        variance = units**2 / sum(sampler.factor ** (2 * j) for j in range(sampler.levels + 1))
    w = sampler.half_width
    assert w**2 >= 169 * variance > (w - 1) ** 2
    assert len(sampler.thresholds) == 2 * w


@pytest.mark.parametrize("sigma", ["0.001", "0.004", "0.25", "10"])
def test_thresholds_are_the_floors_of_the_exact_values(sigma: str) -> None:
    sampler = noise.build_sampler(sigma)
    w = sampler.half_width
    units = Fraction(sigma) * 127**2
    variance = units**2 / sum(sampler.factor ** (2 * j) for j in range(sampler.levels + 1))
    with mpmath.workdps(120):
        exponent = -mpmath.mpf(variance.denominator) / (2 * mpmath.mpf(variance.numerator))
        weights = [mpmath.exp(exponent * v * v) for v in range(-w, w + 1)]
        total, partial = mpmath.fsum(weights), mpmath.mpf(0)
        for threshold, weight in zip(sampler.thresholds, weights, strict=False):
            partial += weight
            assert threshold == int(mpmath.floor(partial / total * 2**128))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_thresholds_rise_and_mirror(sigma: str) -> None:
    thresholds = noise.build_sampler(sigma).thresholds
    assert all(low <= high for low, high in pairwise(thresholds))
    assert thresholds[-1] < 2**128
    # P[x <= v] + P[x <= -v - 1] = 1, and no threshold is an integer before rounding.
    assert all(
        a + b in {2**128 - 1, 2**128} for a, b in zip(thresholds, reversed(thresholds), strict=True)
    )


def test_look_up_at_the_thresholds() -> None:
    sampler = noise.build_sampler("0.001")
    w = sampler.half_width

    def look_up(word: int) -> int:
        return noise._sample(sampler, word.to_bytes(16, "little"))

    middle = sampler.thresholds[w]  # T_0
    assert (look_up(middle - 1), look_up(middle)) == (0, 1)
    first = next(v for v, threshold in enumerate(sampler.thresholds) if threshold > 0)
    assert look_up(0) == first - w
    assert look_up(2**128 - 1) == w - next(
        v for v, threshold in enumerate(reversed(sampler.thresholds)) if threshold < 2**128 - 1
    )


@pytest.mark.parametrize("sigma", ["0.01", "1", "10"])
def test_each_position_uses_its_own_bytes(sigma: str) -> None:
    sampler = noise.build_sampler(sigma)
    size = 16 * (sampler.levels + 1)
    values = sample_noise(sigma, KEY, 20)
    stream = key_stream(KEY, 20 * size)
    for i, value in enumerate(values):
        words = [
            int.from_bytes(stream[size * i + 16 * j : size * i + 16 * (j + 1)], "little")
            for j in range(sampler.levels + 1)
        ]
        look_ups = [
            sum(threshold <= word for threshold in sampler.thresholds) - sampler.half_width
            for word in words
        ]
        assert value == sum(x * sampler.factor**j for j, x in enumerate(look_ups))


@settings(max_examples=20, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.integers(0, 40), st.integers(0, 40))
def test_a_prefix_does_not_depend_on_the_length(key: bytes, short: int, more: int) -> None:
    assert sample_noise("0.01", key, short + more)[:short] == sample_noise("0.01", key, short)


@pytest.mark.parametrize(
    "sigma",
    ["", "1.", ".5", "01", "1e3", "+1", "-1", " 1", "1\n", "1.1234567890123", "1234567890", "١"],
)
def test_sigma_of_another_form_is_refused(sigma: str) -> None:
    with pytest.raises(InvalidNoiseRequest, match="decimal"):
        sample_noise(sigma, KEY, 1)


@pytest.mark.parametrize("sigma", ["0", "0.0", "0.00099", "68174084", "999999999"])
def test_sigma_out_of_range_is_refused(sigma: str) -> None:
    with pytest.raises(InvalidNoiseRequest, match="2\\^40"):
        sample_noise(sigma, KEY, 1)


@pytest.mark.parametrize(
    ("key", "count"), [(KEY[1:], 1), (KEY + b"\0", 1), (KEY, -1), (KEY, 2**35)]
)
def test_key_and_count_are_checked(key: bytes, count: int) -> None:
    with pytest.raises(InvalidNoiseRequest):
        sample_noise("1", key, count)


def test_no_rows_need_no_noise() -> None:
    assert sample_noise("1", KEY, 0) == []


@pytest.mark.parametrize("sigma", ["0.01", "10"])
def test_mean_and_variance(sigma: str) -> None:
    """n = 4000 fixed samples. The mean is within 6 standard errors (chance 2e-9 each for a right
    sampler); the sample variance has relative standard error sqrt(2/n) = 2.2 %, limit 6 of these.
    """
    n = 4000
    units = float(sigma) * 127**2
    values = sample_noise(sigma, KEY, n)
    assert abs(sum(values) / n) < 6 * units / n**0.5
    assert abs(sum(v * v for v in values) / n / units**2 - 1) < 6 * (2 / n) ** 0.5
