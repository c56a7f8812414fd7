"""Guarantees: relation is explicit, conversions are sound, bad input names its field; sentences.

Claims are those of docs/notes/accounting.md.
"""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import NeighboringRelation as LibraryRelation
from dp_accounting.pld import privacy_loss_distribution
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError, RefusedError
from ragaudit.encoding.relations import FIXED_SIZE, NeighboringRelation
from ragaudit.privacy.accounting import risk
from ragaudit.privacy.guarantees import (
    EMPTY_ADVANTAGE,
    WEAK_ADVANTAGE,
    ApproximateDp,
    GaussianDp,
    Strength,
    TotalVariation,
    ZeroConcentratedDp,
    guarantee_sentence,
    membership_sentence,
    strength,
)
from ragaudit.privacy.numbers import exact
from scipy import stats

ORACLE = json.loads((Path(__file__).parents[2] / "vectors" / "dp_oracle.json").read_bytes())
ENTRIES: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in ORACLE["entries"]}
REPLACE, ADD_REMOVE, NULL = (
    NeighboringRelation.REPLACE, NeighboringRelation.ADD_REMOVE, NeighboringRelation.NULL_REPLACE,
)  # fmt: skip
DELTA = Fraction(1, 10**6)

fractions = st.fractions(min_value=0, max_value=30, max_denominator=10**6)
probabilities = st.fractions(min_value=0, max_value=1, max_denominator=10**9)
relations = st.sampled_from(NeighboringRelation)


# --- the oracle ---

COMPUTED: dict[str, Callable[[dict[str, Any]], Fraction]] = {
    "auc.gdp": lambda i: Fraction(risk.auc(Decimal(repr(i["mu"])))),
    "gdp.compose": lambda i: (
        GaussianDp.compose([GaussianDp.of(mu, ADD_REMOVE) for mu in i["mus"]]).mu
    ),
    "gdp.delta": lambda i: (
        GaussianDp.of(i["mu"], ADD_REMOVE).at_epsilon(exact(i["eps"], "eps")).delta
    ),
    "tv.compose": lambda i: (
        TotalVariation.compose([TotalVariation.of(i["tv"], REPLACE)] * i["T"]).value
    ),
    "tv.ed": lambda i: ApproximateDp.of(i["eps"], i["delta"], REPLACE).total_variation().value,
    "tv.gdp": lambda i: GaussianDp.of(i["mu"], REPLACE).total_variation().value,
    # Two records: randomised response attains the largest total variation of (epsilon, 0)-DP.
    "tv.grr.2": lambda i: ApproximateDp.of(i["eps"], 0, REPLACE).total_variation().value,
}
OF_MECHANISMS = {"tv.laplace.1": "lab.risk", "tv.ss": "lab.risk"}


def in_scope() -> list[tuple[str, str]]:
    return [
        (name, key)
        for name in ENTRIES
        for key in COMPUTED
        if name == key or name.startswith(f"{key}.")
    ]


@for_each(("name", "key"), in_scope())
def test_oracle(name: str, key: str) -> None:
    entry = ENTRIES[name]
    found = float(COMPUTED[key](entry["inputs"]))
    assert found == pytest.approx(entry["expected"], abs=entry["atol"], rel=0)


def test_every_entry_about_guarantees_is_planned() -> None:
    about = {name for name in ENTRIES if name.split(".")[0] in ("adj", "gdp", "tv")}
    about |= {name for name in ENTRIES if name.startswith("auc.gdp.")}
    assert about == {name for name, _ in in_scope()} | set(OF_MECHANISMS)
    assert {key for _, key in in_scope()} == set(COMPUTED)


@pytest.mark.parametrize("name", ["bad.delta_above_1", "bad.eps_nan", "bad.eps_negative"])
def test_oracle_refusals(name: str) -> None:
    i = ENTRIES[name]["inputs"]
    with pytest.raises(MalformedError) as caught:
        ApproximateDp.of(float(i["eps"]), i["delta"], REPLACE)
    assert caught.value.where == ("delta" if "delta" in name else "epsilon")


# --- input ---

BAD: list[tuple[Any, str]] = [
    (math.nan, "not finite"),
    (math.inf, "not finite"),
    (Decimal("NaN"), "not finite"),
    (Decimal("-Infinity"), "not finite"),
    (True, "not a number: type bool"),
    ("one", "not a number"),
    (None, "not a number: type NoneType"),
    (-1, "out of range"),
    (Decimal("1e-20000"), "number too long"),
]


@for_each(("value", "what"), BAD)
@for_each(
    ("build", "field"),
    [
        (lambda value: ApproximateDp.of(value, 0, REPLACE), "epsilon"),
        (lambda value: ApproximateDp.of(0, value, REPLACE), "delta"),
        (lambda value: GaussianDp.of(value, REPLACE), "mu"),
        (lambda value: ZeroConcentratedDp.of(value, REPLACE), "rho"),
        (lambda value: TotalVariation.of(value, REPLACE), "value"),
    ],
)
def test_bad_numbers_are_refused_by_name(
    build: Callable[[Any], object], field: str, value: Any, what: str
) -> None:
    with pytest.raises(MalformedError, match=what) as caught:
        build(value)
    assert caught.value.where == field


def test_every_kind_of_number_is_read_exactly() -> None:
    for half in (0.5, "0.5", "1/2", "5e-1", Decimal("0.5"), Fraction(1, 2), np.float64(0.5)):
        assert ApproximateDp(half, half, REPLACE) == ApproximateDp.of("0.5", 0.5, REPLACE)  # type: ignore[arg-type]
        assert GaussianDp.of(1, REPLACE).at_delta(half).delta == Fraction(1, 2)
        assert GaussianDp.of(1, REPLACE).at_epsilon(half).epsilon == Fraction(1, 2)
    assert GaussianDp.of(np.int64(3), REPLACE).mu == 3  # type: ignore[arg-type]
    assert ApproximateDp.of(0.1, 0, REPLACE).epsilon == Fraction(0.1) != Fraction("0.1")


@for_each(
    ("guarantee", "words"),
    [
        (ApproximateDp.of("14.66451", 1e-6, REPLACE), "(14.665, 1e-6)-DP, replace"),
        (ApproximateDp.of(0, 0, NULL), "(0, 0)-DP, null-replace"),
        (ApproximateDp.of(0.1, "0.00012345678", REPLACE), "(0.1, 0.00012346)-DP, replace"),
        (GaussianDp.of(1234567, NeighboringRelation.ADD_REMOVE), "1.2346e6-GDP, add-remove"),
        (ZeroConcentratedDp.of(2, NULL), "2-zCDP, null-replace"),
        (TotalVariation.of("1/3", REPLACE), "total variation 0.33334, replace"),
    ],
)
def test_a_guarantee_in_words_is_rounded_up_and_names_its_relation(
    guarantee: object, words: str
) -> None:
    assert str(guarantee) == words


@pytest.mark.parametrize("delta", [0, 1])
def test_delta_must_be_inside(delta: int) -> None:
    for guarantee in (GaussianDp.of(1, REPLACE), ZeroConcentratedDp.of(1, REPLACE)):
        with pytest.raises(MalformedError) as caught:
            guarantee.at_delta(Fraction(delta))
        assert caught.value.where == "delta"


@pytest.mark.parametrize("relation", ["replaced", "", None, 1, ["replace"]])
def test_a_relation_is_one_of_three(relation: Any) -> None:
    with pytest.raises(MalformedError) as caught:
        GaussianDp(Fraction(1), relation)
    assert caught.value.where == "relation"
    if not isinstance(relation, str):
        assert "type" in caught.value.what


def test_a_relation_may_be_given_by_its_word() -> None:
    for relation in NeighboringRelation:
        assert GaussianDp.of(1, relation.value) == GaussianDp.of(1, relation)  # type: ignore[arg-type]
        assert type(GaussianDp.of(1, relation.value).relation) is NeighboringRelation  # type: ignore[arg-type]


def test_words_are_those_of_the_policy() -> None:
    assert set(FIXED_SIZE) == {REPLACE, NULL}


# --- conversions of relation ---


def test_claim_14_two_steps_of_each_kind() -> None:
    approximate = ApproximateDp.of(Fraction(3, 10), DELTA, ADD_REMOVE).under(REPLACE)
    assert approximate.epsilon == Fraction(6, 10)
    assert float(approximate.delta) == pytest.approx(1e-6 * (1 + math.exp(0.3)), rel=1e-14)
    assert GaussianDp.of(Fraction(1, 3), NULL).under(REPLACE) == GaussianDp.of(
        Fraction(2, 3), REPLACE
    )
    assert ZeroConcentratedDp.of(1, NULL).under(REPLACE) == ZeroConcentratedDp.of(4, REPLACE)
    assert TotalVariation.of(Fraction(3, 10), NULL).under(REPLACE).value == Fraction(3, 5)
    assert TotalVariation.of(Fraction(7, 10), ADD_REMOVE).under(REPLACE).value == 1


@settings(max_examples=25, deadline=None)
@given(mu=fractions)
def test_claim_14_kinds_are_converted_alike(mu: Fraction) -> None:
    """Gaussian DP brought under replace and then seen as zCDP, or the other way about: 2 mu²."""
    source = GaussianDp(mu, ADD_REMOVE)
    assert source.under(REPLACE).zero_concentrated() == source.zero_concentrated().under(REPLACE)


@for_each("source", NeighboringRelation)
@for_each("target", NeighboringRelation)
def test_claim_14_what_does_not_follow_is_refused(
    source: NeighboringRelation, target: NeighboringRelation
) -> None:
    for guarantee in (
        ApproximateDp.of(1, DELTA, source),
        GaussianDp.of(1, source),
        ZeroConcentratedDp.of(1, source),
        TotalVariation.of(Fraction(1, 3), source),
    ):
        if source == target:
            assert guarantee.under(target) == guarantee
        elif target == REPLACE:
            assert guarantee.under(target).relation == target
        else:
            with pytest.raises(RefusedError, match="does not follow"):
                guarantee.under(target)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
def test_claim_14_agrees_with_privacy_loss_distributions(mu: float, eps: float) -> None:
    """Two steps of shift mu are one of shift 2 mu: dp-accounting's replace-one distribution."""
    library = privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu,
        value_discretization_interval=mu / 2000,
        neighboring_relation=LibraryRelation.REPLACE_ONE,
    )
    exactly = float(library.get_delta_for_epsilon(eps))
    one = GaussianDp.of(mu, ADD_REMOVE)
    by_gaussian = one.under(REPLACE).at_epsilon(exact(eps, "eps"))
    assert float(by_gaussian.delta) == pytest.approx(exactly, rel=5e-3, abs=1e-12)
    by_approximate = one.at_epsilon(exact(eps / 2, "eps")).under(REPLACE)
    assert by_approximate.epsilon == by_gaussian.epsilon
    assert by_approximate.delta >= by_gaussian.delta
    by_variation = one.total_variation().under(REPLACE).value
    assert by_variation >= one.under(REPLACE).total_variation().value
    assert float(one.under(REPLACE).total_variation().value) == pytest.approx(
        2 * stats.norm.cdf(mu) - 1, rel=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(epsilon=fractions, delta=probabilities)
def test_claim_14_conversion_is_never_smaller(epsilon: Fraction, delta: Fraction) -> None:
    before = ApproximateDp(epsilon, delta, ADD_REMOVE)
    after = before.under(REPLACE)
    assert after.epsilon == 2 * epsilon
    assert delta <= after.delta <= 1


# --- conversions of kind ---


@settings(max_examples=40, deadline=None)
@given(epsilon=fractions, delta=probabilities)
def test_claim_15_total_variation_of_approximate_dp(epsilon: Fraction, delta: Fraction) -> None:
    found = float(ApproximateDp(epsilon, delta, REPLACE).total_variation().value)
    at = float(epsilon)
    expected = math.tanh(at / 2) + 2 * float(delta) / (1 + math.exp(at))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-19)


@settings(max_examples=25, deadline=None)
@given(mu=fractions, epsilon=fractions)
def test_claim_15_gaussian_curve_is_consistent(mu: Fraction, epsilon: Fraction) -> None:
    """Delta at epsilon, then epsilon at that delta, returns to where it began."""
    guarantee = GaussianDp(mu, REPLACE)
    at = guarantee.at_epsilon(epsilon)
    # Delta is raised by 1e-50 of itself.
    assert at.delta <= guarantee.total_variation().value * (1 + Fraction(2, 10**50))
    if Fraction(1, 10**300) < at.delta < 1:
        assert guarantee.at_delta(at.delta).epsilon <= epsilon + Fraction(1, 10**15)


@pytest.mark.parametrize("mu", ["1e-6", "0.01", "1", "20", "500"])
def test_claim_15_zero_concentrated_is_above_the_exact_curve(mu: str) -> None:
    guarantee = GaussianDp.of(Decimal(mu), REPLACE)
    by_rho = guarantee.zero_concentrated().at_delta(DELTA)
    exactly = guarantee.at_delta(DELTA)
    assert exactly.epsilon <= by_rho.epsilon
    assert by_rho.epsilon <= 2 * exactly.epsilon + Fraction(1, 1000)


def test_claim_15_delta_at_zero_is_total_variation() -> None:
    for mu in ("1e-12", "0.3", "7"):
        guarantee = GaussianDp.of(Decimal(mu), REPLACE)
        at = guarantee.at_epsilon(Fraction(0))
        assert float(at.delta) == pytest.approx(float(guarantee.total_variation().value), rel=1e-9)
        assert at.total_variation().value == at.delta
        assert TotalVariation(at.delta, REPLACE).approximate() == at


@for_each("value", ["0", "1e-9999", "1e-30", "1e-6", "1e4", "1e15"])
def test_extreme_parameters_stay_finite(value: str) -> None:
    number = Decimal(value)
    loss = ApproximateDp.of(number, DELTA, ADD_REMOVE)
    assert 0 <= loss.total_variation().value <= 1
    assert loss.under(REPLACE).delta <= 1
    gauss = GaussianDp.of(number, ADD_REMOVE)
    assert 0 <= gauss.total_variation().value <= 1
    assert 0 <= gauss.at_epsilon(Fraction(1, 3)).delta <= 1
    assert ZeroConcentratedDp.of(number, REPLACE).at_delta(DELTA).epsilon >= 0
    assert gauss.at_delta(DELTA).epsilon >= 0


@pytest.mark.parametrize("value", ["1.1e15", "1e300"])
def test_parameters_beyond_the_arithmetic_are_refused(value: str) -> None:
    number = Decimal(value)
    for build, field in (
        (lambda: ApproximateDp.of(number * 10**16, 0, REPLACE), "epsilon"),
        (lambda: GaussianDp.of(number, REPLACE), "mu"),
        (lambda: ZeroConcentratedDp.of(number * number, REPLACE), "rho"),
        (lambda: GaussianDp.of(1, REPLACE).at_epsilon(Fraction(number * 10**16)), "epsilon"),
    ):
        with pytest.raises(MalformedError) as caught:
            build()
        assert caught.value.where == field


# --- composition ---


@settings(max_examples=30, deadline=None)
@given(parts=st.lists(probabilities, min_size=3, max_size=3), relation=relations)
def test_claim_16_composition_is_associative(
    parts: list[Fraction], relation: NeighboringRelation
) -> None:
    for build in (
        lambda value: ApproximateDp(value, value / 10, relation),
        lambda value: GaussianDp(value, relation),
        lambda value: ZeroConcentratedDp(value, relation),
        lambda value: TotalVariation(value, relation),
    ):
        a, b, c = (build(part) for part in parts)
        kind: Any = type(a)
        left = kind.compose([kind.compose([a, b]), c])
        right = kind.compose([a, kind.compose([b, c])])
        together = kind.compose([a, b, c])
        assert left.relation == relation
        if isinstance(a, GaussianDp):
            for one in (left, right):
                assert float(one.mu) == pytest.approx(float(together.mu), rel=1e-14)
        else:
            assert left == right == together


def test_guarantees_of_different_relations_do_not_compose() -> None:
    with pytest.raises(MalformedError, match="different relation"):
        GaussianDp.compose([GaussianDp.of(1, REPLACE), GaussianDp.of(1, ADD_REMOVE)])
    with pytest.raises(MalformedError, match="nothing to compose"):
        TotalVariation.compose([])


TINY = Fraction(1, 10**30)


@for_each(
    ("advantage", "expected"),
    [
        (0, Strength.MEANINGFUL),
        (WEAK_ADVANTAGE - TINY, Strength.MEANINGFUL),
        (WEAK_ADVANTAGE, Strength.WEAK),
        (EMPTY_ADVANTAGE - TINY, Strength.WEAK),
        (EMPTY_ADVANTAGE, Strength.EMPTY),
        (Decimal("0.9"), Strength.EMPTY),
        (1, Strength.EMPTY),
    ],
)
def test_strength_changes_at_its_limits(advantage: Any, expected: Any) -> None:
    assert strength(advantage) is expected


def test_the_sentence_of_a_guarantee_names_who_what_and_how_often_rounded_up() -> None:
    found = guarantee_sentence(Fraction(1, 3), "null-replace", accounts=5)
    assert found == (
        "Anybody who sees every answer of 5 accounts together, knows a document word for word and "
        "has to tell whether it is in the collection or an empty one in its place, both equally "
        "likely, is right at most 66.7 times in 100 (50: guessing; 100: certainty): the guarantee "
        "is weak."
    )
    assert "of one account," in guarantee_sentence(0, "replace", accounts=1)
    assert "whether it or another given row" in guarantee_sentence(
        0, "replace", accounts=1, unit="row"
    )


def test_the_sentence_on_membership_rounds_up() -> None:
    found = membership_sentence(Fraction(1, 3), "add-remove", seen="the log")
    assert "who sees the log and knows a document" in found
    assert "at most 33.34 percentage points above" in found


@for_each(
    ("where", "call"),
    [
        ("advantage", lambda: strength(Fraction(-1, 10))),
        ("advantage", lambda: strength(2)),
        ("advantage", lambda: strength(None)),  # type: ignore[arg-type]
        ("relation", lambda: membership_sentence(0, "somehow")),
        ("relation", lambda: membership_sentence(0, None)),  # type: ignore[arg-type]
        ("accounts", lambda: guarantee_sentence(0, "replace", accounts=0)),
        ("accounts", lambda: guarantee_sentence(0, "replace", accounts=True)),
    ],
)
def test_bad_values_are_refused_by_name(where: Any, call: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert caught.value.where == where
