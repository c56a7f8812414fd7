"""What each document may still give, whoever asks, in exact money.

Money is an epsilon where every use is pure DP, and a Rényi divergence at one order, fixed before
the first question, where it is not (a Rényi filter for each document). The arithmetic is the same:
a document whose rest is below the price of a question is not asked.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from fractions import Fraction

from ragaudit.encoding.errors import RefusedError
from ragaudit.privacy.numbers import Number, exact

__all__ = ["BudgetExhausted", "DocumentBudgets"]


class BudgetExhausted(RefusedError):
    """A document, or a stream of questions, has not what this would cost."""


@dataclass(frozen=True, slots=True)
class _Money:
    limit: Fraction
    price: Fraction


class DocumentBudgets:
    """The budgets of all documents of one corpus: all start with the same."""

    def __init__(self, limit: Number, price: Number) -> None:
        """Give every document its budget.

        Args:
            limit: of a document, >= 0; ``M`` times the price for ``M`` uses.
            price: of one question, above 0; the unit of the limit.

        Raises:
            InvalidArgumentError: a value out of its range.
        """
        self._money = _Money(exact(limit, "limit", least=0), exact(price, "price", above=0))
        # Of those only that paid: a document that comes later starts with a full budget, and one
        # that is deleted and comes back under its id has what it had.
        self._paid: dict[Hashable, Fraction] = {}

    @property
    def limit(self) -> Fraction:
        """Of a document, over all questions."""
        return self._money.limit

    @property
    def price(self) -> Fraction:
        """Of one question, for a document that is charged."""
        return self._money.price

    def left(self, document: Hashable) -> Fraction:
        """Return what a document still has."""
        return self._money.limit - self._paid.get(document, Fraction(0))

    def live(self, document: Hashable) -> bool:
        """Return whether a document can pay for one more question, whole."""
        return self.left(document) >= self._money.price

    def charge(self, documents: Collection[Hashable], amount: Number) -> None:
        """Take an amount of each, or of none.

        Args:
            documents: without repetition.
            amount: above 0, at most the price.

        Raises:
            BudgetExhausted: one of them has not so much.
            InvalidArgumentError: another amount.
        """
        taken = exact(amount, "amount", above=0, most=self._money.price)
        for document in documents:
            if self.left(document) < taken:
                raise BudgetExhausted(
                    "a document's budget does not hold this charge",
                    where="budget",
                    expected="live documents only",
                )
        for document in documents:
            self._paid[document] = self._paid.get(document, Fraction(0)) + taken

    def paid(self) -> dict[Hashable, Fraction]:
        """Return what each document that was charged has paid. For the operator only."""
        return dict(self._paid)
