"""What a provider wants to promise, checked once."""

from dataclasses import dataclass
from fractions import Fraction

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import FIXED_SIZE, NeighboringRelation
from ragaudit.encoding.text import parse_decimal
from ragaudit.privacy.accounting.events import MAX_GROUP, MAX_QUERIES

__all__ = ["Targets"]


@dataclass(frozen=True)
class Targets:
    """The terms of a window, before sigma is known (docs/spec/07-coalition.md).

    Attributes:
        epsilon: decimal > 0, promised to one account for all its queries; None if sigma is
            given instead.
        delta: decimal in (0, 1), of that promise.
        queries: r >= 1, queries of one account in a window.
        coalition: k_max >= 1, accounts that may pool their answers.
        delta_policy: decimal in (0, 1), at which the epsilon of a coalition is stated.
        relation: "replace" or "null-replace".
        rows_per_document: g, 1 to 1000; 1 means that the protected unit is the row.
        slots: accounts of the tenant that can register, at least ``coalition``.
        windows: windows of the same terms on the same documents, >= 1.

    Raises:
        MalformedError: a value out of its range; ``where`` is the attribute's name.
    """

    epsilon: str | None
    delta: str
    queries: int
    coalition: int
    delta_policy: str
    relation: str = NeighboringRelation.REPLACE.value
    rows_per_document: int = 1
    slots: int = 64
    windows: int = 1

    @property
    def protected_unit(self) -> str:
        """Return what neighbours differ in one of: "row" or "document"."""
        return "row" if self.rows_per_document == 1 else "document"

    def __post_init__(self) -> None:
        if self.epsilon is not None and parsed(self.epsilon, "epsilon") <= 0:
            raise MalformedError("epsilon is 0", where="epsilon", expected="above 0")
        for name in ("delta", "delta_policy"):
            if not 0 < parsed(getattr(self, name), name) < 1:
                raise MalformedError("not a probability", where=name, expected="between 0 and 1")
        for name, most in (
            ("queries", MAX_QUERIES),
            ("coalition", MAX_QUERIES),
            ("rows_per_document", MAX_GROUP),
            ("slots", MAX_QUERIES),
            ("windows", MAX_QUERIES),
        ):
            _check_count(getattr(self, name), name, most)
        if self.relation not in FIXED_SIZE:
            raise MalformedError(
                f"unknown relation {self.relation!r}",
                where="relation",
                expected="replace or null-replace",
            )
        if self.slots < self.coalition:
            raise MalformedError(
                f"{self.slots} slots", where="slots", expected=f"at least {self.coalition} accounts"
            )
        if self.queries * self.slots * self.windows > MAX_QUERIES:
            raise MalformedError(
                "too many queries of all accounts in all windows",
                where="queries",
                expected=f"queries · slots · windows up to {MAX_QUERIES}",
            )


def parsed(text: str, name: str) -> Fraction:
    """Return the value of a decimal string.

    Raises:
        MalformedError: not a decimal; ``where`` is ``name``.
    """
    try:
        return parse_decimal(text)
    except MalformedError as error:
        raise MalformedError(error.what, where=name, expected=error.expected) from None


def _check_count(value: object, name: str, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise MalformedError(
            f"{name} is {value!r}", where=name, expected=f"a whole number, 1 to {most}"
        )
