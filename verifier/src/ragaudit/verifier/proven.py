"""Statements with their arguments, as an engine checks them, and how it says no."""

from collections.abc import Callable, Mapping, Sequence

from ragaudit.circuits.budgets import ChargeStatement
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding.errors import RejectedError

__all__ = [
    "ArgumentRejected",
    "ChargesRejected",
    "ProvenCharges",
    "ProvenSelection",
    "SelectionsRejected",
    "check_each",
]


class ArgumentRejected(RejectedError):
    """An index or selection argument does not establish its statement."""


class SelectionsRejected(ArgumentRejected):
    """Some of several selection arguments were rejected; ``failed`` are their positions."""

    def __init__(self, failed: Sequence[int]) -> None:
        super().__init__(f"{len(failed)} selection arguments rejected")
        self.failed = tuple(failed)


class ChargesRejected(ArgumentRejected):
    """Some of several charge arguments were rejected; ``reasons`` has why, by position."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = dict(reasons)


ProvenSelection = tuple[SelectionStatement, bytes]
"""A selection statement with its argument."""

ProvenCharges = tuple[ChargeStatement, bytes]
"""What is stated of a group of charge entries, with its argument."""


def check_each(
    proven: Sequence[ProvenCharges], check: Callable[[ChargeStatement, bytes], None]
) -> None:
    """Check groups of charge entries one by one; ChargesRejected.

    Args:
        check: raises ArgumentRejected.
    """
    reasons: dict[int, str] = {}
    for position, (statement, proof) in enumerate(proven):
        try:
            check(statement, proof)
        except ArgumentRejected as error:
            reasons[position] = str(error)
    if reasons:
        raise ChargesRejected(reasons)
