"""Vectors of a store as integer rows: the ranking of the store, or a refusal with the reason."""

from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pytest
from ragaudit.circuits import metrics, quantise
from ragaudit.encoding.errors import MalformedError


def drawn(rows: int = 200, dimension: int = 24) -> npt.NDArray[np.float32]:
    return np.random.default_rng(7).normal(size=(rows, dimension)).astype(np.float32)


@pytest.mark.parametrize("bound", [127, 4095])
def test_cosine_rows_are_the_quantised_vectors(bound: int) -> None:
    vectors = drawn()
    found = metrics.scaled(vectors, metrics.COSINE, norm_bound=bound)
    assert found.dtype == (np.int8 if bound == 127 else np.int16)
    for row, vector in zip(found[:20], vectors, strict=False):
        assert np.array_equal(row, quantise.quantise(vector, bound))
    assert int(np.square(found.astype(np.int64)).sum(axis=1).max()) <= bound * bound


@pytest.mark.parametrize("bound", [127, 4095])
def test_inner_products_keep_the_lengths_of_rows(bound: int) -> None:
    """Each integer is within a half of its real one, so scores are within half the query's L1."""
    vectors, query = drawn(), drawn(1)[0].astype(np.float64)
    largest = Decimal(10)
    assert np.linalg.norm(vectors, axis=1).max() < 10
    found = metrics.scaled(vectors, metrics.INNER_PRODUCT, largest, bound)
    exact = vectors.astype(np.float64) @ query * bound / 10
    assert np.abs(found @ query - exact).max() <= 0.5 * np.abs(query).sum() + 1e-9
    assert int(np.square(found.astype(np.int64)).sum(axis=1).max()) <= bound * bound


def test_a_row_of_the_largest_norm_is_not_lifted_above_the_bound() -> None:
    # 127 / sqrt(3) = 73.32 each: fits. 127/sqrt(2) = 89.80 rounds to 90, and 2 * 8100 > 16129.
    vectors = np.array([[1, 1, 0], [1, 1, 1], [2, 0, 0]], dtype=np.float64)
    vectors *= 2 / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = metrics.scaled(vectors, metrics.INNER_PRODUCT, Decimal(2))
    assert found.tolist() == [[89, 89, 0], [73, 73, 73], [127, 0, 0]]


def test_a_vector_far_below_the_largest_norm_has_no_score() -> None:
    found = metrics.scaled(np.array([[1e-6, 0.0], [1.0, 0.0]]), "inner-product", Decimal(1))
    assert found.tolist() == [[0, 0], [127, 0]]


def test_a_longer_vector_than_the_policy_says_is_refused() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 1.01]])
    with pytest.raises(MalformedError, match=r"row 1: vector of norm 1\.01 .*at most 1"):
        metrics.scaled(vectors, metrics.INNER_PRODUCT, Decimal(1))


def test_l2_is_served_on_the_unit_sphere_only() -> None:
    unit = drawn() / np.linalg.norm(drawn(), axis=1, keepdims=True)
    assert np.array_equal(
        metrics.scaled(unit, metrics.L2, norm_bound=4095),
        metrics.scaled(unit, metrics.COSINE, norm_bound=4095),
    )
    # What binary16 does to a normalised vector is no reason to refuse it.
    assert metrics.scaled(unit.astype(np.float16), metrics.L2).shape == unit.shape
    unit[3] *= 1.001
    with pytest.raises(MalformedError, match=r"row 3: vector of norm 1\.001 .*l2 ranks"):
        metrics.scaled(unit, metrics.L2)


@pytest.mark.parametrize("metric", metrics.METRICS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_none_are_refused_with_their_row(metric: str, value: float) -> None:
    vectors = np.eye(4)
    vectors[2, 1] = value
    largest = Decimal(1) if metric == metrics.INNER_PRODUCT else None
    with pytest.raises(MalformedError, match="row 2: NaN or infinity"):
        metrics.scaled(vectors, metric, largest)


def test_a_vector_without_direction_has_no_cosine() -> None:
    with pytest.raises(MalformedError, match="row 1: all entries are zero"):
        metrics.scaled(np.array([[1.0], [0.0]]), metrics.COSINE)


def test_a_metric_and_its_largest_norm_belong_together() -> None:
    vectors = np.eye(2)
    for metric, largest in (("cosine", Decimal(1)), ("l2", Decimal(1)), ("inner-product", None)):
        with pytest.raises(MalformedError, match="wrong largest norm"):
            metrics.scaled(vectors, metric, largest)
    for bad in ("0", "-1", "NaN", "Infinity"):
        with pytest.raises(MalformedError, match="not a norm"):
            metrics.scaled(vectors, "inner-product", Decimal(bad))
    with pytest.raises(MalformedError, match="unknown metric 'hamming'"):
        metrics.scaled(vectors, "hamming")
