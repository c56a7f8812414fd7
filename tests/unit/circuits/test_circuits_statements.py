"""Statements of the arguments, candidates of a selection, and metrics."""

from decimal import Decimal
from math import comb
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.circuits import metrics, quantise, statements
from ragaudit.circuits.budgets import ChargeEntry, ChargeStatement
from ragaudit.circuits.selection import CandidateRule, candidate_rule, select
from ragaudit.circuits.statements import charge_bytes, read_charge
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import SQUARED_NORM

CONTEXT: dict[str, Any] = {
    "policy_digest": bytes([1]) * 32, "window": "w", "tenant": "t", "version": 1,
    "index_root": bytes([2]) * 32,
}  # fmt: skip
SELECTION: dict[str, Any] = CONTEXT | {
    "seed_root": bytes([3]) * 32,
    "activation_randomness": bytes([4]) * 32,
    "body": b"body",
}
RECORD = ("policy_digest", "window", "tenant", "version")
COMMITMENTS = bytes(range(96))
QUERY = np.arange(5, dtype=np.int16)
NOISE = np.arange(3, dtype=np.int64)


def index_statement(**context: Any) -> statements.IndexStatement:
    stated: dict[str, Any] = {"dimension": 5, "commitments": COMMITMENTS}
    return statements.IndexStatement.of(**(stated | context))


def selection_statement(
    selection_commitment: bytes | None = bytes(32), **context: Any
) -> statements.SelectionStatement:
    of_record = {name: context.pop(name) for name in RECORD}
    record: Any = SimpleNamespace(**of_record, top_k=2, selection_commitment=selection_commitment)
    return statements.SelectionStatement.of(
        record, **context, commitments=COMMITMENTS, query=QUERY, noise=NOISE
    )


def test_contexts_follow_the_registry() -> None:
    from hashlib import sha256

    from ragaudit.encoding.tagged import enc

    values = list(SELECTION.values())
    assert (
        selection_statement(**SELECTION).context
        == sha256(enc("ragaudit/v1/context/selection", *values)).digest()
    )
    assert (
        index_statement(**CONTEXT).context
        == sha256(enc("ragaudit/v1/context/index", *values[:5])).digest()
    )


@pytest.mark.parametrize("name", SELECTION)
def test_every_part_of_a_context_counts(name: str) -> None:
    other = {str: "x", int: 2, bytes: bytes(32)}[type(SELECTION[name])]
    changed = SELECTION | {name: other}
    assert selection_statement(**changed).context != selection_statement(**SELECTION).context
    if name in CONTEXT:
        again = index_statement(**(CONTEXT | {name: other}))
        assert again.context != index_statement(**CONTEXT).context
    if isinstance(SELECTION[name], bytes) and name != "body":
        with pytest.raises(MalformedError):
            selection_statement(**(SELECTION | {name: bytes(31)}))


def test_windows_without_noise_have_neither_seed_nor_randomness() -> None:
    """Absent is zero bytes (1.1), and binds: a statement with them is another one."""
    absent = SELECTION | {"seed_root": None, "activation_randomness": None}
    empty = SELECTION | {"seed_root": b"", "activation_randomness": b""}
    context = selection_statement(**absent).context
    assert context == selection_statement(**empty).context
    assert context != selection_statement(**SELECTION).context
    for name in ("seed_root", "activation_randomness"):
        assert context != selection_statement(**(absent | {name: SELECTION[name]})).context


def test_statements_take_what_the_policy_says() -> None:
    wide: dict[str, Any] = {"squared_norm": 4095**2}
    selection = selection_statement(**SELECTION, **wide, keeps_ties=True, allowed=(2, 0))
    assert (selection.squared_norm, selection.keeps_ties) == (4095**2, True)
    assert selection.allowed == (2, 0)
    assert index_statement(**CONTEXT, **wide).squared_norm == 4095**2


def test_statements_take_the_rest_as_it_is() -> None:
    index, selection = index_statement(**CONTEXT), selection_statement(**SELECTION)
    assert (index.rows, index.dimension, index.commitments) == (3, 5, COMMITMENTS)
    assert (selection.rows, selection.top_k, selection.allowed) == (3, 2, None)
    assert selection.query is QUERY and selection.noise is NOISE  # not copied
    assert selection.commitments is COMMITMENTS
    assert index.squared_norm == selection.squared_norm == SQUARED_NORM
    assert selection_statement(None, **SELECTION).selection_commitment == b""


def test_a_group_may_have_one_entry_more_than_a_field_holds() -> None:
    entry = ChargeEntry(bytes(32), QUERY, 7, (0, 2), bytes(32), bytes([9]) * 32)
    for count in (0, 1, 2**15, 2**16):
        statement = ChargeStatement(3, COMMITMENTS, (entry,) * count, SQUARED_NORM)
        found = read_charge(charge_bytes(statement), COMMITMENTS)
        assert (found.uses, len(found.entries), found.squared_norm) == (3, count, SQUARED_NORM)
        for each in found.entries[:1] + found.entries[-1:]:
            assert np.array_equal(each.query, entry.query)
            assert (each.context, each.threshold, each.charge) == (bytes(32), 7, entry.charge)
            assert list(each.allowed or ()) == [0, 2]


Integers = npt.NDArray[np.int64]


def by_candidates(rule: CandidateRule, exact: Integers, noise: Integers, top_k: int) -> object:
    """The selection with scores of the candidates only; None if the draw does not fit."""
    found = rule.candidates(noise)
    if found is None:
        return None
    rows, values = found
    assert len(rows) == len(values) == rule.count
    chosen = select(exact[rows] + values, top_k)
    return tuple(rows[list(chosen)].tolist())


@given(
    seed=st.integers(0, 2**32),
    spread=st.sampled_from([SQUARED_NORM // 4, SQUARED_NORM, 5 * SQUARED_NORM]),
    top_k=st.integers(1, 4),
    extreme=st.booleans(),
)
def test_no_other_row_can_be_selected(seed: int, spread: int, top_k: int, extreme: bool) -> None:
    """For any noise and any scores; levels and sizes that often just fit, and ties."""
    random = np.random.default_rng(seed)
    noise = np.rint(random.normal(scale=spread, size=60) / 500).astype(np.int64) * 500
    exact = random.integers(-SQUARED_NORM, SQUARED_NORM + 1, 60)
    if extreme:
        exact = np.where(exact > 0, SQUARED_NORM, -SQUARED_NORM)
    level = int(np.sort(noise)[-1 - random.integers(0, 12)])
    rule = CandidateRule(level, int(random.integers(5, 60)), 4)
    found = by_candidates(rule, exact, noise, top_k)
    if found is not None:
        assert found == select(exact + noise, top_k)


def test_a_row_at_the_level_may_matter() -> None:
    """The bound is sharp: a row one unit above the level that is left out can be selected."""
    noise = np.array([0, 0, 1 - 2 * SQUARED_NORM, -9 * SQUARED_NORM])
    exact = np.array([-SQUARED_NORM, -SQUARED_NORM, SQUARED_NORM, 0])
    assert select(exact + noise, 1) == (2,)
    assert by_candidates(CandidateRule(0, 3, 1), exact, noise, 1) == (2,)
    assert CandidateRule(0, 2, 1).candidates(noise) is None


@pytest.mark.parametrize(
    ("sigma", "rows"), [("10", 1500), ("2", 10_000), ("10", 10_000), ("1", 100_000)]
)
def test_the_work_is_the_same_for_every_draw(sigma: str, rows: int) -> None:
    """2,000 draws fit (each misses with probability below 2^-60), and all score ``count`` rows."""
    units = float(sigma) * SQUARED_NORM
    rule = candidate_rule(units, rows, 5)
    assert rule is not None and 4 * rule.count < rows
    random = np.random.default_rng(1)
    for _ in range(2_000 * 1500 // rows + 1):
        found = rule.candidates(np.rint(random.normal(scale=units, size=rows)).astype(np.int64))
        assert found is not None and len(found[0]) == rule.count


def test_a_draw_that_does_not_fit_is_rare() -> None:
    """Exactly, from binomial tails over the continuous law: below 2^-60 together."""
    from mpmath import mp, mpf, ncdf

    rows, top_k, sigma = 1500, 5, 10 * SQUARED_NORM
    rule = candidate_rule(float(sigma), rows, top_k)
    assert rule is not None
    with mp.workprec(200):
        reaching = ncdf(-mpf(rule.high) / sigma)
        above = ncdf(-mpf(rule.high - 2 * SQUARED_NORM) / sigma)

        def tail(p: object, counts: range) -> object:
            return sum(comb(rows, k) * p**k * (1 - p) ** (rows - k) for k in counts)  # type: ignore[operator]

        few = tail(reaching, range(top_k + 1))
        many = tail(above, range(rule.count + 1, rows + 1))
        assert few + many < mpf(2) ** -60  # type: ignore[operator]


def test_small_noise_scores_everything() -> None:
    assert candidate_rule(0.5 * SQUARED_NORM, 100_000, 5) is None
    assert candidate_rule(10.0 * SQUARED_NORM, 5, 5) is None
    assert candidate_rule(10.0 * SQUARED_NORM, 20, 5) is None


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
