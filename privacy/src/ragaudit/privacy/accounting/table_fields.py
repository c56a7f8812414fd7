"""Reading and writing the numbers of an epsilon table (docs/spec/07-coalition.md §7.4).

Readers take a JSON object and the name of its member. They accept more than the one form of a
number: `EpsilonTable.from_json` writes what it has read and compares. All raise MalformedError,
naming the member.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, overload

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import FIXED_SIZE, NeighboringRelation
from ragaudit.encoding.text import ceil_decimal, floor_decimal, parse_decimal
from ragaudit.privacy.guarantees import ApproximateDp
from ragaudit.privacy.numbers import count, exact

__all__ = [
    "CROSS_CHECK_PLACES",
    "PLACES",
    "epsilon_text",
    "exact_text",
    "gamma_of",
    "gamma_text",
    "guarantee_of",
    "member",
    "number",
    "optional",
    "policy_decimal",
    "relation_of",
    "text",
    "truth",
    "up",
]

PLACES: Final = 6
# The cross-check is binary floating point; fewer places are the same on every machine.
CROSS_CHECK_PLACES: Final = 2

# At most four digits: a longer exponent would ask for a number of any size.
_POWER: Final = re.compile(r"2\^-(0|[1-9][0-9]{0,3})", re.ASCII)


def exact_text(value: Fraction) -> str:
    """Return a rational, whose denominator divides 10^12, without trailing zeros.

    Args:
        value: >= 0, of at most 12 places.
    """
    return floor_decimal(value, 12).rstrip("0").rstrip(".")


def member(value: object, name: str) -> Any:
    """Return a member of a JSON object.

    Args:
        value: of any kind; nothing is known of it yet.

    Raises:
        MalformedError: no object, or without that member.
    """
    if not isinstance(value, Mapping) or name not in value:
        raise MalformedError("no such member", where=name, expected="an epsilon table of 7.4")
    return value[name]


def text(value: object, name: str) -> str:
    """Return the member ``name`` of a JSON object, which is text."""
    content = member(value, name)
    if not isinstance(content, str):
        raise MalformedError("wrong type", where=name, expected="a decimal, as text")
    return content


def policy_decimal(value: object, name: str) -> str:
    """Return the member ``name``, a policy's decimal, as it stands there."""
    decimal_text = text(value, name)
    # Checked and given back as it stands: the same number in other digits is another policy.
    parse_decimal(decimal_text)
    return decimal_text


def relation_of(value: object) -> NeighboringRelation:
    """Return the member `relation`, one that a policy can name."""
    relation = NeighboringRelation.of(member(value, "relation"))
    if relation not in FIXED_SIZE:
        raise MalformedError(
            f"no policy is under {relation}", where="relation", expected=" or ".join(FIXED_SIZE)
        )
    return relation


def number(value: object, name: str, least: int = 0) -> int:
    """Return the member ``name``, a whole number of at least ``least``."""
    return count(member(value, name), name, least=least)


def truth(value: object, name: str) -> bool:
    """Return the member ``name``, true or false."""
    # Not by its truth: 1 and "no" are true in Python.
    flag = member(value, name)
    if not isinstance(flag, bool):
        raise MalformedError("wrong type", where=name, expected="true or false")
    return flag


def optional(value: object, name: str) -> Fraction | None:
    """Return the member ``name``, a number >= 0 as text, or null."""
    return None if member(value, name) is None else exact(text(value, name), name, least=0)


def guarantee_of(
    value: object, name: str, delta: str, relation: NeighboringRelation
) -> ApproximateDp | None:
    """Return the epsilon of the member ``name``, or null, at this delta and relation.

    Args:
        name: of the member that states epsilon.
        delta: a policy's decimal.
    """
    if member(value, name) is None:
        return None
    return ApproximateDp.of(text(value, name), delta, relation)


def epsilon_text(guarantee: ApproximateDp | None, places: int = PLACES) -> str | None:
    """Return an epsilon with so many places, rounded up; None for None."""
    return None if guarantee is None else ceil_decimal(guarantee.epsilon, places)


@overload
def up(value: Fraction) -> str: ...
@overload
def up(value: Fraction | None) -> str | None: ...
def up(value: Fraction | None) -> str | None:
    """Return a number with 6 places, rounded up; None for None."""
    return None if value is None else ceil_decimal(value, PLACES)


def gamma_text(gamma: Fraction) -> str:
    """Return the distance of a sampler as ``2^-k``, or else as a fraction.

    Args:
        gamma: total-variation distance of one noise sample, in [0, 1).
    """
    exponent = gamma.denominator.bit_length() - 1
    # A power of two is exact in six characters, its decimal in a hundred.
    if gamma.numerator == 1 and gamma.denominator == 1 << exponent:
        return f"2^-{exponent}"
    return str(gamma)


def gamma_of(gamma: str) -> Fraction:
    """Return the distance, in [0, 1), from the text of :func:`gamma_text`.

    Args:
        gamma: ``2^-k``, or a fraction.
    """
    power = _POWER.fullmatch(gamma)
    distance = Fraction(1, 1 << int(power[1])) if power else exact(gamma, "gamma")
    return exact(distance, "gamma", least=0, below=1)
