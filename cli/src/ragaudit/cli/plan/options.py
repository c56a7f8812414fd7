"""Numbers as people type them, and errors in the words of the options."""

from decimal import Decimal, InvalidOperation

from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.text import MAX_PLACES

__all__ = ["OPTIONS", "decimal_text", "in_words_of_options"]

OPTIONS = frozenset({
    "epsilon", "delta", "queries", "coalition", "delta_policy", "relation", "rows_per_document",
    "slots", "windows", "sigma", "index", "questions", "tenant", "top_k", "trials", "recall",
    "seed", "plots",
})  # fmt: skip
"""Names in `where` that are options of the command."""


def decimal_text(text: str, name: str) -> str:
    """Return a number such as ``1e-6`` in the plain form of policies, ``0.000001``.

    Args:
        text: as typed.
        name: of the option, for the error.

    Raises:
        MalformedError: no finite number >= 0, or more than 12 places or 9 digits before them.
    """
    expected = f"a number as 0.25 or 1e-6, below 10^9, of at most {MAX_PLACES} places"
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise MalformedError(f"{text!r} is no number", where=name, expected=expected) from None
    if not value.is_finite() or value < 0 or (value and value.adjusted() >= 9):
        raise MalformedError(f"{text!r} is out of range", where=name, expected=expected)
    if value and value.normalize().as_tuple().exponent < -MAX_PLACES:  # type: ignore[operator]
        raise MalformedError(f"{text!r} has too many places", where=name, expected=expected)
    return f"{value.normalize():f}" if value else "0"


def in_words_of_options(error: RagauditError) -> RagauditError:
    """Return the same error with ``--delta-policy`` for ``delta_policy``."""
    head, comma, rest = error.where.partition(",")
    if head not in OPTIONS:
        return error
    where = f"--{head.replace('_', '-')}{comma}{rest}"
    return type(error)(error.what, where=where, expected=error.expected)
