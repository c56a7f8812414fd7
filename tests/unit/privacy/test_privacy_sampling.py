"""Sample sizes (docs/notes/accounting.md claim 13)."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy import sample as sampling
from ragaudit.privacy.sample import (
    bad_records,
    detection,
    miss_probability,
    sample_size,
    sample_size_unbounded,
)

shares = st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=10**6)
levels = st.fractions(Fraction(1, 10**6), Fraction(1, 2), max_denominator=10**8)


@given(st.integers(0, 60), st.data())
def test_miss_probability_by_binomials(population: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, population))
    sample = data.draw(st.integers(0, population))
    expected = Fraction(math.comb(population - bad, sample), math.comb(population, sample))
    assert miss_probability(population, bad, sample) == expected


@given(st.integers(1, 300), shares, levels)
def test_claim_13_least_sample(population: int, beta: Fraction, eta: Fraction) -> None:
    bad = bad_records(population, beta)
    assert bad == math.ceil(beta * population) >= 1
    s = sample_size(population, beta, eta)
    assert 0 < s <= population
    assert miss_probability(population, bad, s) <= eta
    assert miss_probability(population, bad, s - 1) > eta
    assert s <= sample_size_unbounded(beta, eta)


@given(shares, levels)
@settings(max_examples=50)
def test_claim_13_least_sample_with_replacement(beta: Fraction, eta: Fraction) -> None:
    s = sample_size_unbounded(beta, eta)
    assert (1 - beta) ** s <= eta
    assert (1 - beta) ** (s - 1) > eta


@pytest.mark.parametrize(
    ("population", "beta", "eta", "expected"),
    [
        (0, "0.01", "0.05", 0),
        (1, "0.01", "0.05", 1),
        (10, "0.01", "0.05", 10),  # one bad record of ten: 1 - s/10 <= 0.05
        (100, "0.01", "0.05", 95),
        (2, "0.999", "0.5", 1),
    ],
)
def test_small_strata(population: int, beta: str, eta: str, expected: int) -> None:
    assert sample_size(population, Fraction(beta), Fraction(eta)) == expected


def test_equality_counts_as_reached() -> None:
    assert sample_size(4, Fraction(1, 4), Fraction(1, 4)) == 3
    assert sample_size_unbounded(Fraction(1, 2), Fraction(1, 2**20)) == 20
    assert sample_size_unbounded(Fraction(1, 3), Fraction(4, 9)) == 2
    assert sample_size_unbounded(Fraction(1, 3), Fraction(4, 9) - Fraction(1, 2**400)) == 3


def test_ties_beyond_the_intervals_are_settled_exactly() -> None:
    eta = miss_probability(10_000, 100, 700)
    assert sampling._missed_at_most(10_000, 100, 700, eta)
    assert not sampling._missed_at_most(10_000, 100, 700, eta - Fraction(1, 2**600))


@given(shares, st.integers(0, 3000))
@settings(max_examples=50)
def test_detection_is_a_close_lower_bound(beta: Fraction, s: int) -> None:
    exact = 1 - (1 - beta) ** s
    assert exact - Fraction(1, 2**200) <= detection(beta, s) <= exact


@pytest.mark.parametrize("beta", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(3, 2)])
def test_beta_range(beta: Fraction) -> None:
    for call in (
        lambda: sample_size(10, beta, Fraction(1, 2)),
        lambda: sample_size_unbounded(beta, Fraction(1, 2)),
        lambda: bad_records(10, beta),
        lambda: detection(beta, 3),
        lambda: sample_size(10, Fraction(1, 2), beta),
        lambda: sample_size_unbounded(Fraction(1, 2), beta),
    ):
        with pytest.raises(MalformedError):
            call()


def test_count_ranges() -> None:
    half = Fraction(1, 2)
    with pytest.raises(MalformedError):
        sample_size(-1, half, half)
    with pytest.raises(MalformedError):
        detection(half, -1)
    for bad, sample in ((-1, 1), (1, -1), (11, 1), (1, 11)):
        with pytest.raises(MalformedError):
            miss_probability(10, bad, sample)
