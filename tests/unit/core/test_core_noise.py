"""The noise sampler (docs/spec/03-noise.md) against its definition."""

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit import core
from ragaudit.circuits.noise import NoiseParameters, sample_noise, table

VECTORS = json.loads(
    (Path(__file__).parents[2] / "vectors" / "noise.json").read_text(encoding="utf-8")
)


def table_bytes(thresholds: list[int]) -> bytes:
    return b"".join(threshold.to_bytes(16, "little") for threshold in thresholds)


def definition(
    thresholds: list[int], factor: int, levels: int, key: bytes, count: int
) -> list[int]:
    """§3.4, word for word."""
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    stream = cipher.update(bytes(16 * (levels + 1) * count))
    words = [int.from_bytes(stream[i : i + 16], "little") for i in range(0, len(stream), 16)]
    looked_up = [sum(t <= u for t in thresholds) - len(thresholds) // 2 for u in words]
    return [
        sum(looked_up[(levels + 1) * i + j] * factor**j for j in range(levels + 1))
        for i in range(count)
    ]


@settings(max_examples=60, deadline=None)
@given(
    thresholds=st.lists(st.integers(0, 2**128 - 1), min_size=1, max_size=6).map(
        lambda half: sorted(half + [2**128 - 1 - t for t in half])
    ),
    factor=st.integers(1, 300),
    levels=st.integers(0, 4),
    key=st.binary(min_size=32, max_size=32),
    count=st.integers(0, 40),
)
def test_samples_follow_the_definition(
    thresholds: list[int], factor: int, levels: int, key: bytes, count: int
) -> None:
    samples = core.sample_noise(table_bytes(thresholds), factor, levels, key, count)
    assert samples.dtype == np.int64
    assert samples.tolist() == definition(thresholds, factor, levels, key, count)


@pytest.mark.parametrize("case", VECTORS["tables"], ids=lambda case: case["name"])
def test_known_answers(case: dict[str, Any]) -> None:
    units = Fraction(case["sigma_units"])
    noise_table = table(NoiseParameters.for_units(units, case["name"]))
    assert hashlib.sha256(noise_table.thresholds).hexdigest() == case["thresholds_sha256"]
    key = bytes.fromhex(case["key"])
    samples = core.sample_noise(noise_table.thresholds, case["factor"], case["levels"], key, 1000)
    assert samples[:32].tolist() == case["first_samples"]
    digest = hashlib.sha256(samples.astype("<i8").tobytes()).hexdigest()
    assert digest == case["samples_1000_sha256"]


@pytest.mark.parametrize("count", [511, 512, 513, 4096, 4097, 9000])
def test_chunks_of_the_key_stream_join(count: int) -> None:
    """Positions are computed in pieces of 512, in parallel beyond 4096; the pieces must meet."""
    thresholds = [2**126, 2**127]
    samples = core.sample_noise(table_bytes(thresholds), 3, 1, bytes(32), count)
    assert samples.tolist() == definition(thresholds, 3, 1, bytes(32), count)


@settings(max_examples=60, deadline=None)
@given(
    key=st.binary(min_size=32, max_size=32),
    offsets=st.lists(st.tuples(st.integers(0, 39), st.integers(-2, 2)), min_size=1, max_size=60),
    spread=st.integers(0, 127),
)
def test_thresholds_at_and_beside_the_words(
    key: bytes, offsets: list[tuple[int, int]], spread: int
) -> None:
    """Words hit thresholds, which crowd in one bucket or lie in many."""
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    stream = cipher.update(bytes(16 * 40))
    words = [int.from_bytes(stream[i : i + 16], "little") for i in range(0, len(stream), 16)]
    chosen = [words[at] + offset * 2**spread for at, offset in offsets]
    clipped = [min(max(each, 0), 2**128 - 1) for each in chosen]
    thresholds = sorted(clipped + [0] * (len(clipped) % 2))
    samples = core.sample_noise(table_bytes(thresholds), 1, 0, key, 40)
    assert samples.tolist() == definition(thresholds, 1, 0, key, 40)


@pytest.mark.parametrize("sigma", ["0.001", "0.0317", "0.0318", "2", "50", "30000", "68000000"])
def test_specified_tables_beside_the_slow_sampler(sigma: str) -> None:
    """From a table of few values to the widest ones, and every number of levels."""
    noise_table = table(NoiseParameters.for_sigma(sigma))
    parameters = noise_table.parameters
    key = hashlib.sha256(sigma.encode()).digest()
    samples = core.sample_noise(
        noise_table.thresholds, parameters.factor, parameters.levels, key, 5000
    )
    assert np.array_equal(samples, sample_noise(noise_table, key, 5000))


def test_samples_may_be_changed() -> None:
    samples = core.sample_noise(table_bytes([2**126, 2**127]), 1, 0, bytes(32), 5)
    expected = samples + 1
    samples += 1
    assert np.array_equal(samples, expected)


def test_many_tables_in_turn() -> None:
    """More than are kept."""
    for width in [*range(1, 20), *range(1, 20)]:
        thresholds = sorted([2**127 - v for v in range(width)] + [2**127 + v for v in range(width)])
        samples = core.sample_noise(table_bytes(thresholds), 2, 1, bytes(32), 10)
        assert samples.tolist() == definition(thresholds, 2, 1, bytes(32), 10)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((b"", 1, 0, bytes(32), 1), "thresholds: 0 bytes"),
        ((bytes(48), 1, 0, bytes(32), 1), "thresholds: 48 bytes"),
        ((bytes(16 * (2**20 + 2)), 1, 0, bytes(32), 1), "thresholds: 1048578, expected at most"),
        ((table_bytes([2, 1]), 1, 0, bytes(32), 1), "not in rising order"),
        ((table_bytes([1, 2]), 0, 1, bytes(32), 1), "factor"),
        ((table_bytes([1, 2]), 2**40, 2, bytes(32), 1), "factor: a sample would not fit"),
        ((table_bytes([1, 2]), 2, 9, bytes(32), 1), "levels: 9"),
        ((table_bytes([1, 2]), 2, 1, bytes(31), 1), "key: 31 bytes"),
        ((table_bytes([1, 2]), 2, 1, bytes(32), -1), "count: -1"),
        ((table_bytes([1, 2]), 2, 1, bytes(32), 2**33 + 1), "more than 2\\^38 bytes"),
    ],
)
def test_malformed_inputs_are_refused(arguments: Any, match: str) -> None:
    with pytest.raises(core.MalformedInput, match=match):
        core.sample_noise(*arguments)
