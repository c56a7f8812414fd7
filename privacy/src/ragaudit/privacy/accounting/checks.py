"""Arguments of accounting functions: in range, or refused by the field's name."""

from decimal import Decimal
from fractions import Fraction

from ragaudit.encoding.decimals import parse_decimal
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError

__all__ = [
    "check_count",
    "check_decimal",
    "check_exact",
    "check_inside",
    "check_positive",
    "check_slack",
    "read_decimal",
]


def read_decimal(text: str, where: str) -> Fraction:
    """Return the exact value of a policy's decimal, or refuse it by the field's name."""
    try:
        return parse_decimal(text)
    except MalformedError as error:
        raise InvalidArgumentError(error.what, where=where, expected=error.expected) from None


def check_exact(value: Fraction, where: str) -> None:
    """Refuse what is no exact number: an integer or a fraction; a bool or a float is none."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise InvalidArgumentError(f"not exact: {value!r}", where=where, expected="a Fraction")


def check_count(value: int, where: str, least: int = 1, most: int | None = None) -> None:
    """Refuse what is no whole number from ``least`` to ``most``; a bool is none."""
    expected = f"at least {least}" if most is None else f"{least} to {most}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgumentError(f"not a count: {value!r}", where=where, expected=expected)
    if value < least or (most is not None and value > most):
        raise InvalidArgumentError("value out of range", where=where, expected=expected)


def check_inside(value: Fraction, where: str) -> None:
    """Refuse what is no fraction strictly between 0 and 1."""
    if not isinstance(value, Fraction) or not 0 < value < 1:
        raise InvalidArgumentError(
            "value out of range", where=where, expected="a Fraction between 0 and 1"
        )


def check_positive(value: Fraction, where: str) -> None:
    """Refuse what is no fraction above 0."""
    if not isinstance(value, Fraction) or value <= 0:
        raise InvalidArgumentError("value out of range", where=where, expected="a Fraction above 0")


def check_slack(value: Fraction) -> None:
    """Refuse a distance of samplers that is no fraction of at least 0."""
    if not isinstance(value, Fraction) or value < 0:
        raise InvalidArgumentError("value out of range", where="slack", expected="a Fraction >= 0")


def check_decimal(
    value: Decimal,
    where: str,
    *,
    above: Decimal | None = None,
    least: Decimal | None = None,
    most: Decimal | None = None,
) -> None:
    """Refuse what is no finite decimal, or not ``> above``, ``>= least`` and ``<= most``."""
    if not isinstance(value, Decimal) or not value.is_finite():
        raise InvalidArgumentError(f"not a finite decimal: {value!r}", where=where)
    bounds = (
        (above is None or value > above, f"above {above}"),
        (least is None or value >= least, f"at least {least}"),
        (most is None or value <= most, f"at most {most}"),
    )
    for holds, expected in bounds:
        if not holds:
            raise InvalidArgumentError("value out of range", where=where, expected=expected)
