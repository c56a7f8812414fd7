"""One noise specification, several samplers: reference, circuits, core, and the shared vectors."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.circuits import noise as circuits
from ragaudit.verifier.reference import noise as reference

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "noise.json").read_text())
NAMED_BY_SIGMA = [t for t in VECTORS["tables"] if "=" not in t["name"]]
KEY = bytes(range(32))
sigmas = st.decimals("0.001", "2000", places=4).map(lambda d: f"{d:f}") | st.sampled_from(
    ["0.001", "0.25", "1", "10", "50", "0.0318", "0.0317", "30000000"]
)


def table_bytes(sigma: str) -> bytes:
    thresholds = reference.build_sampler(sigma).thresholds
    return b"".join(value.to_bytes(16, "little") for value in thresholds)


@pytest.mark.parametrize("vector", NAMED_BY_SIGMA, ids=lambda v: v["name"])
def test_shared_vectors(vector: dict[str, Any]) -> None:
    sigma = vector["name"]
    sampler = reference.build_sampler(sigma)
    assert (sampler.levels, sampler.factor) == (vector["levels"], vector["factor"])
    assert sampler.half_width == vector["half_width"]
    assert hashlib.sha256(table_bytes(sigma)).hexdigest() == vector["thresholds_sha256"]
    key = bytes.fromhex(vector["key"])
    samples = reference.sample_noise(sigma, key, 1000)
    assert samples[: len(vector["first_samples"])] == vector["first_samples"]
    encoded = b"".join(z.to_bytes(8, "little", signed=True) for z in samples)
    assert hashlib.sha256(encoded).hexdigest() == vector["samples_1000_sha256"]


def test_the_vectors_name_sigmas() -> None:
    assert len(NAMED_BY_SIGMA) >= 4


@settings(max_examples=25, deadline=None)
@given(sigmas, st.binary(min_size=32, max_size=32), st.integers(0, 60))
def test_reference_and_circuits_agree(sigma: str, key: bytes, count: int) -> None:
    parameters = circuits.NoiseParameters.for_sigma(sigma)
    sampler = reference.build_sampler(sigma)
    assert (parameters.levels, parameters.factor) == (sampler.levels, sampler.factor)
    assert parameters.sigma_units == Fraction(sigma) * 127**2
    table = circuits.table(parameters)
    assert bytes(table.thresholds) == table_bytes(sigma)
    assert list(circuits.sample_noise(table, key, count)) == reference.sample_noise(
        sigma, key, count
    )
