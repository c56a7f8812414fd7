"""The compiled integers of a vector are those of the reference, whatever the vector is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ragaudit import core
from ragaudit.circuits import quantise

VECTORS = Path(__file__).parents[2] / "vectors"
BOUNDS = (127, 4095)
reals = st.floats(allow_nan=False, allow_infinity=False)
# Of a few sizes only, so that many step together, or nearly so.
close = st.sampled_from([1.0, np.nextafter(1.0, 2), 1 / 3, 1 / 5, 0.6, -1 / 3, 1e-4, 5e-324, 0.0])


def agree(vector: npt.NDArray[Any]) -> None:
    for bound in BOUNDS:
        found = core.quantise(vector, bound)
        assert found.dtype == np.int16
        assert np.array_equal(found, quantise.quantise(vector, bound)), vector.tolist()


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=reals | close))
@settings(max_examples=300)
def test_any_vector_has_the_same_integers(vector: npt.NDArray[np.float64]) -> None:
    if np.any(vector):
        agree(vector)


def test_vectors_of_models_have_the_same_integers() -> None:
    random = np.random.default_rng(8)
    for dimension in (1, 2, 3, 64, 256, 384, 1024, 4096):
        for scale in (1.0, 1e-40, 1e37):
            vector = (scale * random.normal(size=dimension)).astype(np.float32)
            agree(vector.astype(np.float64))
        # Entries of an index that was quantised before: many are equal.
        agree(random.integers(1, 6, dimension).astype(np.float64))
        agree(np.exp(20 * random.normal(size=dimension)))
    agree(np.ldexp(random.normal(size=300), random.integers(-1074, 1000, 300)))


def test_entries_that_step_at_nearly_one_scale() -> None:
    """k + 1/2 over the k-th entry is one scale for all, up to the last bits of the entries."""
    random = np.random.default_rng(9)
    for dimension in (5, 30, 300):
        odd = 2 * random.integers(0, 40, dimension) + 1.0
        agree(odd)
        for _ in range(20):
            agree(np.nextafter(odd, odd + random.integers(-1, 2, dimension)))


def test_known_answers() -> None:
    for case in json.loads((VECTORS / "quantise.json").read_bytes())["cases"]:
        vector = np.array([float.fromhex(entry) for entry in case["vector"]])
        assert core.quantise(vector, 127).tolist() == case["integers"], case["name"]
        assert core.quantise(vector, 4095).tolist() == case["wide_integers"], case["name"]


@pytest.mark.parametrize(
    ("vector", "bound", "message"),
    [
        (np.zeros(3), 127, "zero"), (np.array([1.0, np.nan]), 127, "NaN"),
        (np.array([-np.inf]), 127, "infinity"), (np.empty(0), 127, "zero"),
        (np.ones(4097), 127, "4097 entries"), (np.ones((1, 2)), 127, "dimensions"),
        (np.ones(2, np.float32), 127, "dtype"), ([1.0], 127, "NumPy"),
        (np.ones(4)[::2], 127, "contiguous"), (np.ones(2), 1 << 15, "norm_bound"),
        (np.ones(2), 0, "norm at most 0"),
        (np.ones(2), -1, "norm_bound"),
    ],
)  # fmt: skip
def test_vectors_without_integers_are_refused(vector: Any, bound: int, message: str) -> None:
    with pytest.raises(core.MalformedInput, match=message):
        core.quantise(vector, bound)
