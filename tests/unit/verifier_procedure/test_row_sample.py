"""Which rows of an index are sampled: spec 9.11."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_taken import peak
from ragaudit.ledger.messages.policy_terms import RowTerms, StratumTerms
from ragaudit.privacy.sample import (
    MOST_SAMPLED,
    bad_records,
    draw_rows,
    largest_sample,
    miss_probability,
    row_sample_size,
)

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "rows.json").read_text()
)
SEED = bytes.fromhex(VECTORS["seed"])


def rule(beta: str, eta: str, minimum: int = 0) -> RowTerms:
    return RowTerms(beta, StratumTerms(eta, minimum))


TERMS = rule(**VECTORS["terms"])
decimals = st.integers(1, 500).map(lambda n: f"0.{n:03d}".rstrip("0"))


def test_the_sample_is_the_one_of_the_specification() -> None:
    for each in VECTORS["samples"]:
        (drawn,) = draw_rows({VECTORS["tenant"]: each["rows"]}, rule=TERMS, seed=SEED)
        assert drawn.stratum.id == f"rows:{VECTORS['tenant']}"
        assert list(drawn.sample) == each["sample"]


@given(rows=st.integers(0, 3000), beta=decimals, eta=decimals, minimum=st.integers(0, 50))
def test_a_sample_is_large_enough_and_never_larger_than_the_bound(
    rows: int, beta: str, eta: str, minimum: int
) -> None:
    terms = rule(beta, eta, minimum)
    size, bad = row_sample_size(rows, terms), bad_records(rows, Fraction(beta))
    assert min(rows, minimum) <= size <= rows
    if rows:
        assert miss_probability(rows, bad, size) <= Fraction(eta)
    # A beta of one half at most takes no index of two rows or more whole for its size alone.
    assert size <= max(largest_sample(terms), min(rows, 1))


@given(rows=st.integers(0, 200), seed=st.binary(min_size=32, max_size=32))
def test_positions_rise_and_are_of_the_index(rows: int, seed: bytes) -> None:
    drawn = draw_rows({"acme": rows, "beta": 7}, rule=TERMS, seed=seed)
    assert [each.stratum.id for each in drawn] == ["rows:acme", "rows:beta"]
    sample = list(drawn[0].sample)
    assert sample == sorted(set(sample))
    assert set(sample) <= set(range(rows))
    assert len(sample) == row_sample_size(rows, TERMS)


def test_tenants_and_seeds_have_samples_of_their_own() -> None:
    one, other = draw_rows({"acme": 1000, "beta": 1000}, rule=TERMS, seed=SEED)
    (third,) = draw_rows({"acme": 1000}, rule=TERMS, seed=bytes(32))
    assert len({one.sample, other.sample, third.sample}) == 3


@pytest.mark.parametrize(
    ("terms", "most"),
    [
        (rule("0.2", "0.05", 10), 14),
        (rule("0.001", "0.02", 0), 3911),
        (rule("0.5", "0.5", MOST_SAMPLED + 1), MOST_SAMPLED + 1),
    ],
)
def test_how_many_rows_a_sample_has_follows_from_the_policy(terms: RowTerms, most: int) -> None:
    assert largest_sample(terms) == most


def test_of_a_large_index_only_the_sample_is_held() -> None:
    rows = 100_000  # a list of as many positions takes 36 bytes each
    taken = peak(lambda: draw_rows({"acme": rows}, rule=TERMS, seed=SEED), enough=8 * rows)
    assert taken < 8 * rows
