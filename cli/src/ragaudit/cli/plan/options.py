"""What the commands of `ragaudit plan` share: numbers as typed, errors as they are said."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation

import typer
from ragaudit.encoding.commands import exit_code
from ragaudit.encoding.errors import InvalidArgumentError, RagauditError, UnsupportedError
from ragaudit.encoding.problems import problem_name
from ragaudit.encoding.text import MAX_PLACES

__all__ = ["OPTIONS", "decimal_text", "failing", "in_words_of_options"]

OPTIONS = frozenset({
    "epsilon", "delta", "queries", "coalition", "delta_policy", "relation", "rows_per_document",
    "slots", "windows", "sigma", "index", "questions", "tenant", "top_k", "trials", "recall",
    "seed", "plots", "asked", "supporting", "voters", "vocabulary", "tokens", "uses",
})  # fmt: skip
"""Names in `where` that are options of the commands."""


def decimal_text(text: str, name: str = "") -> str:
    """Return a number such as ``1e-6`` in the plain form of policies, ``0.000001``.

    Args:
        text: as typed.
        name: of the option, where nothing else adds it.

    Raises:
        InvalidArgumentError: no finite number >= 0, or more than 12 places or 9 digits before them.
    """
    expected = f"a number as 0.25 or 1e-6, below 10^9, of at most {MAX_PLACES} places"
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise InvalidArgumentError(
            f"{text!r} is no number", where=name, expected=expected
        ) from None
    # 10^9 is more than any policy has: a typing error is named here and not far below.
    if not value.is_finite() or value < 0 or (value and value.adjusted() >= 9):
        raise InvalidArgumentError(f"{text!r} is out of range", where=name, expected=expected)
    if value and value.normalize().as_tuple().exponent < -MAX_PLACES:  # type: ignore[operator]
        raise InvalidArgumentError(f"{text!r} has too many places", where=name, expected=expected)
    return f"{value.normalize():f}" if value else "0"


def in_words_of_options(error: RagauditError) -> RagauditError:
    """Return the same error with ``--delta-policy`` for ``delta_policy``.

    Args:
        error: whose ``where`` begins with a name of OPTIONS, or any other.
    """
    head, comma, rest = error.where.partition(",")
    if head not in OPTIONS:
        return error
    where = f"--{head.replace('_', '-')}{comma}{rest}"
    return type(error)(error.what, where=where, expected=error.expected)


@contextmanager
def failing(as_json: bool) -> Iterator[None]:
    """Turn an error into one message and an exit status, without a traceback.

    Args:
        as_json: the message is a JSON object on standard output.
    """
    try:
        try:
            yield
        except ModuleNotFoundError as error:
            raise UnsupportedError(
                f"this needs the module {error.name}",
                expected="ragaudit-cli with its extras `plan` and `plots`",
            ) from error
    except RagauditError as error:
        reworded = in_words_of_options(error)
        if as_json:
            document = {"problem": problem_name(type(error)), "detail": str(reworded)}
            sys.stdout.write(json.dumps(document) + "\n")
        else:
            typer.echo(f"error: {reworded}", err=True)
        raise typer.Exit(exit_code(error)) from None
