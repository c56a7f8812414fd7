"""Exact scores of all rows (docs/spec/02-integers.md §2.3); the whole path beside a slow one."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ragaudit import core
from ragaudit.circuits import noise, selection

SHAPES = st.tuples(st.integers(0, 40), st.integers(1, 70))
TABLES = [
    noise.table(noise.NoiseParameters.for_sigma(sigma)) for sigma in ("0.001", "0.01", "0.25", "2")
]


def by_definition(rows: npt.NDArray[np.int8], query: npt.NDArray[np.int16]) -> list[int]:
    return [sum(int(x) * int(e) for x, e in zip(row, query, strict=True)) for row in rows]


@settings(max_examples=80, deadline=None)
@given(st.data(), SHAPES)
def test_scores_are_inner_products(data: st.DataObject, shape: tuple[int, int]) -> None:
    rows = data.draw(hnp.arrays(np.int8, shape))
    query = data.draw(hnp.arrays(np.int16, shape[1], elements=st.integers(-8191, 8191)))
    found = core.Scorer(rows).scores(query)
    assert found.dtype == np.int64
    assert found.tolist() == by_definition(rows, query)


@pytest.mark.parametrize("count", [2730, 2731, 5000])
def test_rows_of_several_tasks(count: int) -> None:
    """2^20 entries or fewer are one task: 2730 rows of 384."""
    random = np.random.default_rng(count)
    rows = random.integers(-128, 128, (count, 384), dtype=np.int8)
    query = random.integers(-127, 128, 384, dtype=np.int16)
    expected = rows.astype(np.int64) @ query.astype(np.int64)
    assert np.array_equal(core.Scorer(rows).scores(query), expected)


def test_a_scorer_keeps_its_own_rows() -> None:
    rows = np.ones((3, 2), dtype=np.int8)
    scorer = core.Scorer(rows)
    rows[:] = 0
    assert scorer.scores(np.array([1, 2], dtype=np.int16)).tolist() == [3, 3, 3]


def test_the_largest_query() -> None:
    rows = np.array([[-128] * 512, [127] * 512], dtype=np.int8)
    query = np.full(512, -(2**15), dtype=np.int16)
    with pytest.raises(core.MalformedInput, match="too large for exact scores"):
        core.Scorer(rows).scores(query)
    query[0] += 1
    assert core.Scorer(rows).scores(query).tolist() == by_definition(rows, query)


@pytest.mark.parametrize(
    ("rows", "query", "match"),
    [
        (np.zeros((2, 3)), np.zeros(3, dtype=np.int16), "vectors: dtype float64"),
        (np.zeros(3, dtype=np.int8), np.zeros(3, dtype=np.int16), "vectors: 1 dimensions"),
        (np.zeros((3, 2), dtype=np.int8).T, np.zeros(3, dtype=np.int16), "vectors: not C-contig"),
        (np.zeros((2, 3), dtype=np.int8), np.zeros(3, dtype=np.int8), "query: dtype int8"),
        (np.zeros((2, 3), dtype=np.int8), np.zeros(6, dtype=np.int16), "query: 6 entries"),
        (np.zeros((2, 0), dtype=np.int8), np.zeros(0, dtype=np.int16), "rows: 0 entries"),
    ],
)
def test_malformed_inputs_are_refused(rows: Any, query: Any, match: str) -> None:
    with pytest.raises(core.MalformedInput, match=match):
        core.Scorer(rows).scores(query)


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    table=st.sampled_from(TABLES),
    key=st.binary(min_size=32, max_size=32),
    top_k=st.integers(1, 6),
)
def test_noise_then_select_is_the_slow_path(
    data: st.DataObject, table: noise.Table, key: bytes, top_k: int
) -> None:
    """Few values, so that many scores are tied, with little noise and with much."""
    rows = data.draw(hnp.arrays(np.int8, SHAPES, elements=st.integers(-1, 1)))
    query = data.draw(hnp.arrays(np.int16, rows.shape[1], elements=st.integers(-2, 2)))
    parameters = table.parameters
    drawn = core.sample_noise(
        table.thresholds, parameters.factor, parameters.levels, key, len(rows)
    )
    slow = by_definition(rows, query) + noise.sample_noise(table, key, len(rows))
    fast = core.Scorer(rows).scores(query) + drawn
    ranked = sorted(slow.tolist(), reverse=True)
    expected = [at for at, value in enumerate(slow) if len(slow) <= top_k or value > ranked[top_k]]
    assert selection.select(fast, top_k) == tuple(expected)
