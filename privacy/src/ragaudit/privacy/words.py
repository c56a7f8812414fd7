"""Sentences on guarantees, to quote in reports, plans and ``ragaudit risk translate``.

Standard library only, so that a report is written without numerical packages.
"""

from enum import StrEnum
from fractions import Fraction
from typing import Final

from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.text import ceil_decimal
from ragaudit.privacy.numbers import Number, count, exact

__all__ = [
    "EMPTY_ADVANTAGE",
    "WEAK_ADVANTAGE",
    "Strength",
    "guarantee_sentence",
    "membership_sentence",
    "strength",
]

EMPTY_ADVANTAGE: Final = Fraction(1, 2)
"""From this membership advantage on a promise is empty.

An attacker who has to say whether a document is there, with even odds, may then be right three
times in four: half of the way from guessing to certainty.
"""

WEAK_ADVANTAGE: Final = Fraction(1, 10)
"""A promise is weak from this membership advantage on: right 55 times in 100."""

_CHOICE: Final = {
    NeighboringRelation.ADD_REMOVE: "whether it is in the collection or not",
    NeighboringRelation.NULL_REPLACE: (
        "whether it is in the collection or an empty one in its place"
    ),
    NeighboringRelation.REPLACE: "whether it or another given {unit} is in the collection",
}


class Strength(StrEnum):
    """How much a promise excludes, by its membership advantage."""

    MEANINGFUL = "meaningful"
    WEAK = "weak"
    EMPTY = "empty"


def strength(advantage: Number) -> Strength:
    """Return the strength of a guarantee.

    Args:
        advantage: membership advantage, true less false positive rate of the best test, in [0, 1];
            1 if there is no finite guarantee.

    Raises:
        InvalidArgumentError: not a number in [0, 1].
    """
    value = _advantage(advantage)
    # The worse grade has the border: in doubt the promise is the weaker one.
    if value >= EMPTY_ADVANTAGE:
        return Strength.EMPTY
    return Strength.WEAK if value >= WEAK_ADVANTAGE else Strength.MEANINGFUL


def membership_sentence(
    advantage: Number,
    relation: str,
    *,
    seen: str = "every answer",
    unit: str = "document",
) -> str:
    """Return one sentence on how well anybody can tell whether something is in the collection.

    Args:
        advantage: as for :func:`strength`; shown rounded up.
        relation: neighbouring relation under which it holds; decides what is told apart.
        seen: what the attacker sees, to stand after "who sees".
        unit: what is protected, in the singular.

    Raises:
        InvalidArgumentError: no advantage, or no relation.
    """
    # Rounded up, against the provider: a smaller number would promise more.
    points = ceil_decimal(100 * _advantage(advantage), 2)
    return (
        f"An attacker who sees {seen} and knows a {unit} word for word, and has to tell "
        f"{_choice(relation, unit)}, raises true alarms at a rate at most {points} percentage "
        "points above the rate of false alarms (0: no better than guessing; 100: certainty)."
    )


def guarantee_sentence(
    advantage: Number,
    relation: str,
    *,
    accounts: int,
    unit: str = "document",
) -> str:
    """Return what a window's guarantee means, in one sentence with its strength.

    Args:
        advantage: of the coalition of ``accounts`` accounts, as for :func:`strength`.
        relation, unit: as for :func:`membership_sentence`.
        accounts: accounts that may pool their answers, at least 1.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    pooled = "one account" if count(accounts, "accounts") == 1 else f"{accounts} accounts together"
    # With even odds the best test is right with probability (1 + advantage)/2.
    right = ceil_decimal(50 * (1 + _advantage(advantage)), 1)
    return (
        f"Anybody who sees every answer of {pooled}, knows a {unit} word for word and has to tell "
        f"{_choice(relation, unit)}, both equally likely, is right at most {right} times in 100 "
        f"(50: guessing; 100: certainty): the guarantee is {strength(advantage)}."
    )


def _choice(relation: str, unit: str) -> str:
    return _CHOICE[NeighboringRelation.of(relation)].format(unit=unit)


def _advantage(value: Number) -> Fraction:
    return exact(value, "advantage", least=0, most=1)
