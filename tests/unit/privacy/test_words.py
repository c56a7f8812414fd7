"""What a guarantee is worth, in words."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.guarantees import (
    EMPTY_ADVANTAGE,
    WEAK_ADVANTAGE,
    Strength,
    guarantee_sentence,
    membership_sentence,
    strength,
)

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
