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
from ragaudit.core import _core
from ragaudit.core._arrays import ENTRIES, array_bytes

SHAPES = st.tuples(st.integers(0, 40), st.integers(1, 70))
TABLES = [
    noise.table(noise.NoiseParameters.for_sigma(sigma)) for sigma in ("0.001", "0.01", "0.25", "2")
]


def by_definition(rows: npt.NDArray[np.int8], query: npt.NDArray[np.int16]) -> list[int]:
    return [sum(int(x) * int(e) for x, e in zip(row, query, strict=True)) for row in rows]


INSTRUCTIONS = st.sampled_from(["fastest", "narrower", "portable"])


def scorer(rows: Any, instructions: str) -> core.Scorer:
    """A scorer that does with older instructions than this processor may have."""
    made = core.Scorer(rows)
    data = array_bytes(rows, "rows", ENTRIES, 2)
    made._rows = _core.ScoredRows(data, rows.itemsize, rows.shape[1], instructions)
    return made


def drawn(data: st.DataObject, shape: tuple[int, int], asked: int, *, wide: bool) -> Any:
    """Draw rows and queries, of few or many values, as long as their types allow."""
    reach = int(4095 / shape[1] ** 0.5) if wide else 127
    reach = data.draw(st.sampled_from([1, 2, reach]))
    entries = st.integers(-reach, reach)
    rows = data.draw(hnp.arrays(np.int16 if wide else np.int8, shape, elements=entries))
    return rows, data.draw(hnp.arrays(np.int16, (asked, shape[1]), elements=entries))


def check(
    rows: Any, queries: Any, top_k: list[int], filters: list[set[int] | None], found: list[Any]
) -> None:
    exact = queries.astype(np.int64) @ rows.astype(np.int64).T
    assert [each.tolist() for each in found] == [
        list(selection.select(scores, most, None if f is None else sorted(f), keep_ties=True))
        for scores, most, f in zip(exact, top_k, filters, strict=True)
    ]


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
@given(st.data(), SHAPES, st.integers(0, 9), st.booleans(), INSTRUCTIONS)
def test_many_scores_are_those_of_each(
    data: st.DataObject, shape: tuple[int, int], asked: int, wide: bool, instructions: str
) -> None:
    rows, queries = drawn(data, shape, asked, wide=wide)
    found = scorer(rows, instructions).scores_many(queries)
    assert found.dtype == np.int64 and found.shape == (asked, shape[0])
    assert np.array_equal(found, queries.astype(np.int64) @ rows.astype(np.int64).T)


@settings(max_examples=150, deadline=None)
@given(st.data(), SHAPES, st.integers(0, 5), st.booleans(), INSTRUCTIONS)
def test_exact_selections_are_those_of_all_scores(
    data: st.DataObject, shape: tuple[int, int], asked: int, wide: bool, instructions: str
) -> None:
    rows, queries = drawn(data, shape, asked, wide=wide)
    count = shape[0]
    top_k = data.draw(st.lists(st.integers(1, count + 2), min_size=asked, max_size=asked))
    filters = data.draw(
        st.lists(st.none() | st.sets(st.integers(0, count - 1)) if count else st.none(),
                 min_size=asked, max_size=asked)
    )  # fmt: skip
    allowed = [None if f is None else np.array(sorted(f), dtype=np.int64) for f in filters]
    found = scorer(rows, instructions).select_exactly(queries, top_k, allowed)
    check(rows, queries, top_k, filters, found)


@pytest.mark.parametrize("instructions", ["fastest", "narrower", "portable"])
@pytest.mark.parametrize("kind", ["spread", "near", "equal", "few values", "longest"])
def test_exact_selections_of_many_rows(kind: str, instructions: str) -> None:
    """So many that few are scored; of a kind in which that is enough, and of others."""
    random = np.random.default_rng(7)
    count, dimension = 12_000, 40
    rows = random.integers(-647, 648, (count, dimension)).astype(np.int16)
    match kind:
        case "near":
            rows = (rows[0] // 2 + rows // 20).astype(np.int16)
        case "equal":
            rows[:] = rows[0]
        case "few values":
            rows = np.sign(rows // 400).astype(np.int16)
        case "longest":
            rows[:] = 0
            rows[np.arange(count), random.integers(0, dimension, count)] = 4095
    queries = np.concatenate([rows[:2], random.integers(-647, 648, (3, dimension))])
    queries = queries.astype(np.int16)
    top_k = [1, 5, 5, 40, 300]
    filters = [None, None, set(range(0, count, 7)), set(range(50)), set(range(count // 2, count))]
    allowed = [None if f is None else np.array(sorted(f), dtype=np.int64) for f in filters]
    found = scorer(rows, instructions).select_exactly(queries, top_k, allowed)
    check(rows, queries, top_k, filters, found)


@pytest.mark.parametrize(
    ("queries", "top_k", "allowed", "match"),
    [
        (np.zeros(2, dtype=np.int16), [1], None, "queries: 1 dimensions"),
        (np.zeros((1, 3), dtype=np.int16), [1], None, "query: 3 entries, expected 2"),
        (np.zeros((2, 1), dtype=np.int16), [1], None, "query: 1 entries, expected 2"),
        (np.zeros((1, 2), dtype=np.int16), [0], None, "top_k: 0"),
        (np.zeros((1, 2), dtype=np.int16), [-1], None, "top_k"),
        (np.zeros((2, 2), dtype=np.int16), [1], None, "one for each of 2 queries"),
        (np.zeros((1, 2), dtype=np.int16), [1], [], "one for each of 1 queries"),
        (np.zeros((1, 2), dtype=np.int16), [1], [np.array([1, 1])], "rising positions below 3"),
        (np.zeros((1, 2), dtype=np.int16), [1], [np.array([0, 3])], "rising positions below 3"),
        (np.zeros((1, 2), dtype=np.int16), [1], [np.array([-1])], "rising positions below 3"),
        (np.zeros((1, 2), dtype=np.int16), [1], [np.array([1.0])], "allowed: dtype float64"),
        (np.full((1, 2), 4095, dtype=np.int16), [1], None, "too large for exact scores"),
    ],
)
def test_malformed_selections_are_refused(
    queries: Any, top_k: Any, allowed: Any, match: str
) -> None:
    scorer = core.Scorer(np.zeros((3, 2), dtype=np.int16))
    with pytest.raises(core.MalformedInput, match=match):
        scorer.select_exactly(queries, top_k, allowed)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.tuples(st.integers(1, 40), st.integers(1, 70)), st.integers(0, 4))
def test_scores_of_some_rows_are_those_among_all(
    data: st.DataObject, shape: tuple[int, int], more: int
) -> None:
    rows = data.draw(hnp.arrays(np.int8, (shape[0], shape[1] + more)))
    query = data.draw(hnp.arrays(np.int16, shape[1], elements=st.integers(-8191, 8191)))
    positions = data.draw(hnp.arrays(np.int64, st.integers(0, 9),
                                     elements=st.integers(0, shape[0] - 1)))  # fmt: skip
    expected = [by_definition(rows[:, : shape[1]], query)[at] for at in positions]
    assert core.scores_of(rows, positions, query).tolist() == expected


@pytest.mark.parametrize(
    ("positions", "query", "match"),
    [
        (np.array([3]), np.zeros(2, dtype=np.int16), "positions: expected each below 3"),
        (np.array([-1]), np.zeros(2, dtype=np.int16), "positions: expected each below 3"),
        (np.array([0.0]), np.zeros(2, dtype=np.int16), "positions: dtype float64"),
        (np.array([0]), np.zeros(5, dtype=np.int16), "query: 5 entries, expected 1 to 4"),
        (np.array([0]), np.zeros(2, dtype=np.int8), "query: dtype int8"),
    ],
)
def test_malformed_rows_to_score_are_refused(positions: Any, query: Any, match: str) -> None:
    with pytest.raises(core.MalformedInput, match=match):
        core.scores_of(np.zeros((3, 4), dtype=np.int8), positions, query)


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
