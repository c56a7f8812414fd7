"""Quantisation, scores, selection and sketches: exact integers, by definition and by vectors."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ragaudit.circuits import quantise, selection, sketch
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import SQUARED_NORM, B

VECTORS = Path(__file__).parents[2] / "vectors"
reals = st.floats(allow_nan=False, allow_infinity=False)
vectors = hnp.arrays(np.float64, st.integers(1, 40), elements=reals)
WIDE = 4095
int8_rows = hnp.arrays(np.int8, st.tuples(st.integers(1, 12), st.just(9)))


def unit_rows(count: int, dimension: int, seed: int = 0) -> npt.NDArray[np.int8]:
    rng = np.random.default_rng(seed)
    return quantise.quantise_rows(rng.normal(size=(count, dimension)))


def squared(row: npt.NDArray[Any]) -> int:
    return int(np.square(row.astype(np.int64)).sum())


def differing(a: bytes, b: bytes) -> int:
    return (int.from_bytes(a) ^ int.from_bytes(b)).bit_count()


def exactly(vector: npt.NDArray[np.float64]) -> list[int]:
    """Spec 2.1 by trial: the largest of all scales at which something steps that still fits."""
    sizes = [abs(Fraction(float(x))) for x in vector]

    def rounded(scale: Fraction) -> list[int]:
        return [max(0, -((1 - 2 * scale * size) // 2)) for size in sizes]  # ceil(v - 1/2)

    scales = {Fraction(2 * k + 1, 2) / size for size in sizes if size for k in range(B + 1)}
    fitting = [s for s in scales if sum(x * x for x in rounded(s)) <= SQUARED_NORM]
    signed = zip(rounded(max(fitting)), vector, strict=True)
    return [int(np.sign(x)) * size for size, x in signed]


@given(vectors)
def test_quantised_norms_stay_within_the_bound(vector: npt.NDArray[np.float64]) -> None:
    if not np.any(vector):
        return
    found = quantise.quantise(vector)
    assert found.dtype == np.int8
    assert 0 < squared(found) <= SQUARED_NORM
    assert np.all((found == 0) | (np.sign(found) == np.sign(vector)))


@settings(max_examples=60)
@given(
    st.one_of(
        hnp.arrays(np.float64, st.integers(1, 8), elements=reals),
        hnp.arrays(np.float64, st.integers(1, 8), elements=st.integers(-9, 9)),
        hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(-1, 1, width=32)),
    )
)
def test_quantised_entries_are_rounded_at_the_largest_scale(
    vector: npt.NDArray[np.float64],
) -> None:
    if np.any(vector):
        assert quantise.quantise(vector).tolist() == exactly(vector)


def test_bracketing_and_exact_arithmetic_agree() -> None:
    rng = np.random.default_rng(3)
    for dimension in (2, 30, 384, 1536):
        rows = np.abs(rng.normal(size=(4, dimension)))
        for bound in (B, WIDE):
            expected = [quantise._exactly(row, bound) for row in rows]
            assert np.abs(quantise.quantise_rows(rows, bound)).tolist() == expected


def test_one_vector_takes_a_way_of_its_own_to_what_rows_give() -> None:
    rng = np.random.default_rng(5)
    sure = 0
    for dimension in (1, 2, 8, 64, 384):
        floats = rng.normal(size=(40, dimension)).astype(np.float32)
        # Small integers: many entries are equal, and step together.
        for matrix in (floats, rng.integers(1, 6, size=(40, dimension)).astype(np.float64)):
            for bound in (B, WIDE):
                rows = quantise.quantise_rows(matrix, bound)
                assert all(
                    np.array_equal(quantise.quantise(row, bound), expected)
                    for row, expected in zip(matrix, rows, strict=True)
                )
                sizes = np.abs(matrix) / 8
                sure += sum(quantise._one_by_bracketing(x, bound) is not None for x in sizes)
    assert sure > 0.9 * 5 * 2 * 2 * 40


def test_few_rows_of_real_embeddings_need_exact_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Float entries, and entries of an index that was quantised before: both are bracketed."""
    asked = []
    exact = quantise._exactly

    def counted(row: npt.NDArray[np.float64], bound: int) -> list[int]:
        asked.append(row)
        return exact(row, bound)

    monkeypatch.setattr(quantise, "_exactly", counted)
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(400, 256)).astype(np.float32)
    quantise.quantise_rows(rows)
    quantise.quantise_rows(np.rint(40 * rows / np.max(np.abs(rows))))
    quantise.quantise_rows(rows, WIDE)
    assert len(asked) <= 4


@given(hnp.arrays(np.float64, st.integers(2, 20), elements=st.floats(-100, 100)), st.randoms())
def test_order_and_signs_of_entries_only_move_along(
    vector: npt.NDArray[np.float64], random: Any
) -> None:
    if not np.any(vector):
        return
    order = list(range(len(vector)))
    random.shuffle(order)
    signs = np.array([random.choice((-1, 1)) for _ in order])
    expected = quantise.quantise(vector)[order] * signs
    assert np.array_equal(quantise.quantise(vector[order] * signs), expected)


@pytest.mark.parametrize("power", [-1074, -600, 0, 600, 1021])
def test_scale_does_not_matter(power: int) -> None:
    expected = quantise.quantise(np.array([3.0, 4.0]))
    assert expected.tolist() == [76, 101]
    assert quantise.quantise(np.ldexp([3.0, 4.0], power)).tolist() == [76, 101]


@pytest.mark.parametrize(("dimension", "slope"), [(384, 0.997), (1536, 0.992), (3072, 0.984)])
def test_scores_keep_their_slope(dimension: int, slope: float) -> None:
    """300 rows: the mean's standard error is below .0001 at each dimension."""
    rows = np.random.default_rng(5).normal(size=(300, dimension))
    along = np.einsum("ij,ij->i", quantise.quantise_rows(rows), rows)
    along /= B * np.linalg.norm(rows, axis=1)
    assert abs(float(np.mean(along**2)) - slope) < 0.001


def quantised_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((VECTORS / "quantise.json").read_bytes())["cases"]
    return cases


@pytest.mark.parametrize("case", quantised_cases(), ids=lambda case: case["name"])
def test_quantise_known_answers(case: dict[str, Any]) -> None:
    vector = [float.fromhex(entry) for entry in case["vector"]]
    assert quantise.quantise(vector).tolist() == case["integers"]
    assert quantise.quantise(vector, WIDE).tolist() == case["wide_integers"]


@pytest.mark.parametrize("axis", [0, 5])
@pytest.mark.parametrize("value", [1.0, -2.5, 5e-324, 1.7e308])
def test_one_hot_vectors_reach_the_bound(axis: int, value: float) -> None:
    vector = np.zeros(6)
    vector[axis] = value
    found = quantise.quantise(vector)
    assert found[axis] == np.sign(value) * B and np.count_nonzero(found) == 1


def test_rows_equal_single_vectors_in_any_layout() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(50, 256)).astype(np.float32)
    expected = np.stack([quantise.quantise(row) for row in matrix])
    assert np.array_equal(quantise.quantise_rows(matrix), expected)
    assert np.array_equal(quantise.quantise_rows(np.asfortranarray(matrix)), expected)
    assert np.array_equal(quantise.quantise_rows(matrix.astype(np.float64)), expected)


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        ([0.0, 0.0], "zero"), ([1.0, float("nan")], "NaN"),
        ([1.0, float("inf")], "NaN or infinity"), ([-float("inf"), 1.0], "infinity"), ([], "shape"),
        ([[1.0]], "shape"), (1.0, "shape"), ([1j], "type"), (["1"], "type"), ([True], "type"),
        ([None], "type"), ([0.0] * 4096 + [1.0], "shape"),
    ],
)  # fmt: skip
def test_vectors_that_are_refused(vector: Any, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        quantise.quantise(vector)


def test_the_longest_vector_of_equal_entries_keeps_them() -> None:
    """Entries of 2 would have the squared norm 16384."""
    assert quantise.quantise(np.ones(4096)).tolist() == [1] * 4096


@pytest.mark.parametrize("bound", [0, 126, 128, 4094, 32767])
def test_another_bound_is_refused(bound: int) -> None:
    with pytest.raises(MalformedError, match=f"norm bound {bound}"):
        quantise.quantise([1.0], bound)


@given(vectors)
def test_wide_integers_stay_within_their_bound(vector: npt.NDArray[np.float64]) -> None:
    if np.any(vector):
        found = quantise.quantise(vector, WIDE)
        assert found.dtype == np.int16 == quantise.row_type(WIDE)
        assert 0 < squared(found) <= WIDE**2
        assert np.all((found == 0) | (np.sign(found) == np.sign(vector)))


def test_the_bad_row_is_named() -> None:
    with pytest.raises(MalformedError, match="row 2"):
        quantise.quantise_rows([[1.0], [2.0], [0.0]])


def test_distance() -> None:
    a, b = np.array([127, 0], dtype=np.int8), np.array([-127, 1], dtype=np.int8)
    assert quantise.distance(a, b) == 254**2 + 1
    with pytest.raises(MalformedError):
        quantise.distance(a, b[:1])


@given(int8_rows, hnp.arrays(np.int16, 9, elements=st.integers(-127, 127)))
def test_scores_are_exact(rows: npt.NDArray[np.int8], query: npt.NDArray[np.int16]) -> None:
    found = selection.scores(rows, query)
    assert found.dtype == np.int64
    assert found.tolist() == [
        sum(int(x) * int(e) for x, e in zip(r, query, strict=True)) for r in rows
    ]


def test_scores_are_exact_at_full_size() -> None:
    rows = unit_rows(9000, 256)
    query = rows[17].astype(np.int16)
    expected = rows.astype(np.int64) @ query.astype(np.int64)
    found = selection.scores(rows, query)
    assert np.array_equal(found, expected)
    assert found[17] == squared(rows[17])
    assert int(np.max(np.abs(found))) <= SQUARED_NORM


def test_scores_are_exact_for_rows_without_a_norm_bound() -> None:
    """Cheating providers score such rows too; -128 · 127 in every one of 1000 places."""
    rows = np.full((3, 1000), -128, dtype=np.int8)
    query = np.full(1000, 4, dtype=np.int16)
    assert selection.scores(rows, query).tolist() == [-128 * 4 * 1000] * 3


def test_scores_of_wide_rows_are_exact() -> None:
    """Beyond any norm bound too: 2^15 · 2^15 · 4096 = 2^42."""
    rng = np.random.default_rng(5)
    rows = rng.integers(-4095, 4096, (5000, 300)).astype(np.int16)
    query = rng.integers(-4095, 4096, 300).astype(np.int16)
    expected = rows.astype(np.int64) @ query.astype(np.int64)
    assert np.array_equal(selection.scores(rows, query), expected)
    rows = np.full((2, 4096), -(2**15), dtype=np.int16)
    assert selection.scores(rows, rows[0]).tolist() == [2**42] * 2


def test_scores_refuse_what_they_cannot_do_exactly() -> None:
    rows = np.ones((2, 5), dtype=np.int8)
    with pytest.raises(MalformedError, match="too large"):
        selection.scores(rows, np.full(5, 32767, dtype=np.int16))
    with pytest.raises(MalformedError, match="too large"):
        selection.scores(rows, np.full(5, -32768, dtype=np.int16))
    rows = rows[:, :4].copy()
    for bad_rows, bad_query in (
        (rows.astype(np.int32), np.ones(4, dtype=np.int16)),
        (rows.astype(np.int16), np.ones(5, dtype=np.int16)),
        (rows[0], np.ones(4, dtype=np.int16)),
        (rows, np.ones(4, dtype=np.int64)),
        (rows, np.ones(5, dtype=np.int16)),
    ):
        with pytest.raises(MalformedError):
            selection.scores(bad_rows, bad_query)  # type: ignore[arg-type]


def selected_by_definition(y: list[int], k: int, allowed: list[int]) -> tuple[int, ...]:
    if len(allowed) <= k:
        return tuple(sorted(allowed))
    boundary = sorted((y[i] for i in allowed), reverse=True)[k]
    return tuple(sorted(i for i in allowed if y[i] > boundary))


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=20), st.integers(1, 22), st.data())
def test_selection_is_the_definition(y: list[int], k: int, data: st.DataObject) -> None:
    noised = np.array(y, dtype=np.int64)
    everything = list(range(len(y)))
    assert selection.select(noised, k) == selected_by_definition(y, k, everything)
    allowed = data.draw(st.lists(st.sampled_from(everything), unique=True))
    found = selection.select(noised, k, allowed)
    assert found == selected_by_definition(y, k, allowed)
    assert len(found) <= k


@pytest.mark.parametrize(
    ("y", "k", "expected"),
    [
        ([5, 5, 5, 5], 2, ()),
        ([9, 5, 5, 1], 2, (0,)),
        ([9, 5, 5, 1], 1, (0,)),
        ([9, 5, 5, 1], 3, (0, 1, 2)),
        ([9, 5, 5, 1], 4, (0, 1, 2, 3)),
        ([-(2**62), 2**62, 0], 1, (1,)),
    ],
)
def test_ties_at_the_boundary_are_dropped(y: list[int], k: int, expected: tuple[int, ...]) -> None:
    assert selection.select(np.array(y, dtype=np.int64), k) == expected


def test_no_position_allowed_selects_nothing() -> None:
    assert selection.select(np.arange(4), 2, []) == ()


@pytest.mark.parametrize(
    "call",
    [
        lambda: selection.select(np.arange(4), 0),
        lambda: selection.select(np.arange(4), 1, [0, 0]),
        lambda: selection.select(np.arange(4), 1, [4]),
        lambda: selection.select(np.arange(4), 1, [-1]),
        lambda: selection.select(np.arange(4).astype(np.int32), 1),
        lambda: selection.select(np.zeros((2, 2), dtype=np.int64), 1),
    ],
)
def test_selection_refusals(call: Callable[[], object]) -> None:
    with pytest.raises(MalformedError):
        call()


@given(
    hnp.arrays(np.int16, st.integers(1, 40), elements=st.integers(-127, 127)),
    st.binary(min_size=32, max_size=32),
)
@settings(max_examples=25)
def test_sketch_by_definition(query: npt.NDArray[np.int16], seed: bytes) -> None:
    from hashlib import shake_256

    from ragaudit.encoding.tagged import enc

    d = len(query)
    found = sketch.sketch(query, seed, 64)
    for k in range(64):
        octets = shake_256(enc("ragaudit/v1/sketch", seed, k)).digest((d + 7) // 8)
        product = sum(
            int(e) if octets[j >> 3] >> (j & 7) & 1 else -int(e) for j, e in enumerate(query)
        )
        assert (found[k >> 3] >> (k & 7) & 1) == (product >= 0)


def test_sketches_of_many_are_those_of_each() -> None:
    queries = np.random.default_rng(6).integers(-4095, 4096, size=(50, 33)).astype(np.int16)
    many = sketch.sketches(queries, bytes(32), 128)
    assert [row.tobytes() for row in many] == [sketch.sketch(q, bytes(32), 128) for q in queries]
    with pytest.raises(MalformedError, match="shape"):
        sketch.sketches(queries[0], bytes(32), 128)
    with pytest.raises(MalformedError, match="shape"):
        sketch.sketch(queries, bytes(32), 128)


def test_known_sketch() -> None:
    query = (np.arange(20) - 9).astype(np.int16)
    assert sketch.sketch(query, bytes(32), 64).hex() == KNOWN_SKETCH
    assert sketch.sketch(query, bytes(32), 128)[:8].hex() == KNOWN_SKETCH


KNOWN_SKETCH = "d1b4f39cf4c61e86"


def test_opposite_embeddings_differ_everywhere_but_in_zero_products() -> None:
    query = unit_rows(1, 255)[0].astype(np.int16)
    a, b = sketch.sketch(query, bytes(32), 512), sketch.sketch(-query, bytes(32), 512)
    assert differing(a, a) == 0
    assert differing(a, b) >= 490
    assert sketch.sketch(np.zeros(5, dtype=np.int16), bytes(32), 64) == b"\xff" * 8


@pytest.mark.parametrize(
    "call",
    [
        lambda q: sketch.sketch(q, bytes(32), 63),
        lambda q: sketch.sketch(q, bytes(32), 56),
        lambda q: sketch.sketch(q, bytes(32), 520),
        lambda q: sketch.sketch(q, bytes(31), 64),
        lambda q: sketch.sketch(q.astype(np.int64), bytes(32), 64),
        lambda q: sketch.sketch(q[:0], bytes(32), 64),
        lambda q: sketch.sketch(q.reshape(2, 2), bytes(32), 64),
    ],
)
def test_sketch_refusals(call: Callable[[Any], object]) -> None:
    with pytest.raises(MalformedError):
        call(np.ones(4, dtype=np.int16))
