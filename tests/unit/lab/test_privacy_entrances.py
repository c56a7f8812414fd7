"""Whatever is passed where, a public function answers or refuses by the argument's name."""

import importlib
import inspect
import math
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from accounting_entrances import ACCOUNTING
from entrances import Entrance
from for_each import for_each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.lab.risk.continuous import ExactGuessWarning
from risk_entrances import RISK

ENTRANCES = [*ACCOUNTING, *RISK]
MODULES = [
    "privacy.guarantees",
    "privacy.accounting.events",
    "privacy.accounting.accountants",
    "privacy.accounting.gaussian",
    "privacy.accounting.renyi",
    "privacy.accounting.risk",
    "privacy.accounting.collusion",
    "privacy.accounting.generation",
    "privacy.sample",
    "privacy.accounting.report",
    "lab.bridges",
    "privacy.coalition",
    "lab.risk.general_bounds",
    "lab.risk.calibration",
    "lab.risk.estimation",
    "lab.risk.continuous",
    "lab.risk.optimal_attack",
    "lab.risk.known_mechanisms",
    "lab.risk.mechanisms",
    "lab.risk.one_dimensional",
    "lab.risk.threat",
    "lab.risk.trade_off",
    "lab.risk.translation",
]

# What only carries results is no entrance.
RESULTS = [
    "CollusionBound",
    "RenyiClosedForm",
    "Calibration",
    "RenyiBound",
    "CertifiedLowerBound",
    "ClaimCheck",
    "ModelBasedEstimate",
    "BestBound",
    "Crossing",
    "AdvantageEstimate",
    "Knapsack",
    "Evidence",
    "SuccessBound",
    "Assumptions",
    "Bound",
    "NormalizedAdvantage",
    "Guesses",
    "Translation",
    "Nearness",
    "AttackRates",
    "NumericalAdvantage",
]
# Nor is what the caller writes (protocols).
OTHERS = [
    "Accountant",
    "NoFiniteBound",
    "ExactGuessWarning",
    "Method",
    "Knowledge",
    "KnownMechanism",
    "AdditiveNoise",
    "Attacked",
    "TradeOff",
    "Strength",
    "check_scores",
    "canonne_inner",  # of numbers that the conversions have read
    "loss_distribution",  # slow; attack_rates hands it its events
    "largest",
    "guess_options",
    "best_gains",
    "record_gains",
    "times_expm1",
    # The draw and the estimate are of records that a log holds, not of a caller's numbers.
    "DrawnStratum",
    "Estimate",
    "Link",
    "LoggedRecord",
    "Record",
    "SamplingRule",
    "Stratum",
    "StratumRule",
    "draw",
    "draw_sample",
    "estimate",
    "link_accounts",
    "order",
    "sampling_seed",
    "strata",
    "stratum_size",
    "tenant_stratum_id",
    "Columns",
    "Direction",
    "RowRule",
    "charge_stratum_id",
    "draw_charges",
    "draw_rows",
    "estimate_direction",
    "join_links",
    "largest_sample",
    "parts_of",
    "read_records",
    "row_sample_size",
    "row_stratum_id",
    "strongest",
    # Quadrature inside of an optimum, of functions that were made there.
    "Envelope",
    "GuessGrid",
    "Integral",
    "integrate",
    "upper_envelope",
    # Steps between numbers that were read, and costs that a verdict states.
    "ChannelEpsilon",
    "ClosedForm",
    "KeywordChannelEpsilon",
    "Loss",
    "agrees",
    "class_sigma",
    "closed_form",
    "composed",
    "composed_epsilon",
    "library_epsilon",
    "per_query",
    "read_channel",
    "well_formed",
]

HUGE = 10**400
WRONG: list[Any] = [
    None, object(), "x", "", b"\0", [], {}, (), (None,), [object()], True, HUGE, -HUGE, 10**5000,
    Fraction(1, HUGE), -1, 0, math.nan, math.inf, -math.inf, 1e308, 5e-324, Decimal("NaN"),
    Decimal("sNaN"), Decimal("1e9999999"), "1e9999999", "nan", "9" * 5000, lambda: None, int,
    np.array([]), np.array("x"), np.array([math.nan]), np.zeros((2, 2, 2)), [[1.0], [1.0, 2.0]],
]  # fmt: skip
# Where an argument is what a field of another name is made of, the field is named.
FIELDS = {
    "epsilon_value": {"epsilon"}, "target": {"delta"}, "probabilities": {"prior"},
    "labels": {"auxiliary", "labels"}, "value": {"value", "epsilon"}, "event": {"event"},
    "confidence": {"confidence"},
}  # fmt: skip


def called(entrance: Entrance, **changed: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ExactGuessWarning)
        given = {**entrance.arguments, **changed}
        if isinstance(given.get("generator"), np.random.Generator):
            given["generator"] = np.random.default_rng(0)  # the same draws in every call
        return entrance.call(**given)


def told(result: object) -> str:
    """A result without the addresses of functions in it."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(result))


def public_names() -> set[str]:
    """Functions and classes of the modules that take arguments of a caller."""
    found = set()
    for module_name in MODULES:
        module = importlib.import_module(f"ragaudit.{module_name}")
        for name, each in vars(module).items():
            own = getattr(each, "__module__", None) == module.__name__
            if (
                own
                and not name.startswith("_")
                and (inspect.isfunction(each) or inspect.isclass(each))
            ):
                found.add(name)
    return found - {*RESULTS, *OTHERS}


def test_every_public_function_and_class_is_among_the_entrances() -> None:
    known = {each.call.__qualname__.partition(".")[0] for each in ENTRANCES}
    assert public_names() - known == set()


@for_each("entrance", ENTRANCES)
def test_the_right_arguments_are_taken(entrance: Entrance) -> None:
    called(entrance)


@for_each("entrance", ENTRANCES)
def test_wrong_objects_and_huge_numbers_are_answered_or_refused_by_name(entrance: Entrance) -> None:
    for name in entrance.arguments:
        for value in WRONG:
            if callable(value) and callable(entrance.arguments[name]):
                continue  # a caller's own function may fail as it likes
            try:
                called(entrance, **{name: value})
            except RagauditError as error:
                assert error.where, (name, value)
                assert len(str(error)) < 400


@for_each("entrance", ENTRANCES)
def test_another_type_is_called_a_type_and_names_the_argument(entrance: Entrance) -> None:
    for name in entrance.arguments:
        for value in (object(), int):
            if callable(value) and callable(entrance.arguments[name]):
                continue
            with pytest.raises(RagauditError) as caught:
                called(entrance, **{name: value})
            assert caught.value.where in FIELDS.get(name, {name})
            assert "type" in caught.value.what


@for_each("entrance", [each for each in ENTRANCES if each.numbers])
def test_every_kind_of_number_gives_the_same(entrance: Entrance) -> None:
    expected = called(entrance)
    for name in entrance.numbers:
        number = Fraction(entrance.arguments[name])
        kinds: list[Any] = [number, float(number), str(number), np.float64(float(number))]
        if Fraction(Decimal(number.numerator) / Decimal(number.denominator)) == number:
            kinds.append(Decimal(number.numerator) / Decimal(number.denominator))
        if number.denominator == 1:
            kinds.append(int(number))
        for kind in kinds:
            found = called(entrance, **{name: kind})
            assert told(found) == told(expected), (name, kind)
        with pytest.raises(MalformedError) as caught:
            called(entrance, **{name: True})
        assert "type bool" in caught.value.what


anything = st.one_of(
    st.integers(), st.floats(), st.text(max_size=20), st.fractions(), st.decimals(),
    st.lists(st.floats(), max_size=4), st.binary(max_size=8),
)  # fmt: skip


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_whatever_is_passed_nothing_but_our_errors_comes_out(data: st.DataObject) -> None:
    entrance = data.draw(st.sampled_from([each for each in ENTRANCES if each.arguments]))
    name = data.draw(st.sampled_from(sorted(entrance.arguments)))
    try:
        called(entrance, **{name: data.draw(anything)})
    except RagauditError as error:
        assert error.where
