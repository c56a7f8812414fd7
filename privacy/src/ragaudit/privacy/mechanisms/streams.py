"""Many questions on one corpus, and what each document may still give: NAIVE, MURAG, MURAG-ADA.

NAIVE pays for every question out of one purse. Under MURAG every *document* has a purse, and pays
for the questions that it is relevant to, whoever asks: a coalition of any size learns what one
account may. The charge is made before anything is generated, and is a function of the document's
own score and of what was released before, never of which documents were the best. MURAG-ADA finds
the threshold of a question by noisy running sums over bins of scores.

Money is exact: an epsilon where every use is pure DP, and a Rényi divergence at one order, fixed
before the first question, where it is not (a Rényi filter for each document). The arithmetic is the
same: a document whose rest is below the price of a question is not asked.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError, RefusedError
from ragaudit.privacy.mechanisms.retrieval import Row, best_rows, top_slots
from ragaudit.privacy.mechanisms.samplers import Coins
from ragaudit.privacy.numbers import Number, count, exact


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


def bin_counts(scores: npt.NDArray[np.int64], edges: Sequence[int]) -> list[int]:
    """Return how many scores lie in each bin, the highest bin first.

    Args:
        scores: int64, of the documents that count.
        edges: lower edges of the bins, falling. Bins are half open, (edge, edge before it]; the
            first has no upper edge.
    """
    above = [0, *(int(np.count_nonzero(scores > edge)) for edge in edges)]
    return [there - before for before, there in pairwise(above)]


def running_sums(
    counts: Iterable[int], epsilon: Fraction, enough: int, coins: Coins
) -> tuple[Fraction, ...]:
    """Return the noisy running number of documents after each bin that is read (spec 11.6).

    A document lies in one bin, so each count has one draw, of scale ``1/epsilon``, and the sums are
    a function of these. Where reading stops follows from the sums alone.

    Args:
        counts: of the bins, the highest first; at least one.
        epsilon: of a count, for a document that is in it.
        enough: reading stops after the first sum above it.
        coins: of the question; one draw for each sum.
    """
    total, sums = Fraction(0), list[Fraction]()
    for size in counts:
        total += size + coins.laplace(1 / epsilon)
        sums.append(total)
        if total > enough:
            break
    return tuple(sums)


V_contra = TypeVar("V_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)
VoterKind = TypeVar("VoterKind")
AnswerKind = TypeVar("AnswerKind")


class Answerer(Protocol[V_contra, A_co]):
    """Answers one question from slots, privately for one changed slot: DP-RAG or DP-KSA."""

    @property
    def slots(self) -> int: ...

    def answer(
        self, question: str, slots: Sequence[str], voters: V_contra, coins: Coins
    ) -> A_co: ...


@dataclass(frozen=True, slots=True)
class Adaptive:
    """What MURAG-ADA released of the scores of one question.

    Attributes:
        sums: the noisy running number of live documents after each bin that was read.
        threshold: the lower edge of the last bin that was read.
    """

    sums: tuple[Fraction, ...]
    threshold: Fraction


@dataclass(frozen=True, slots=True)
class Outcome(Generic[AnswerKind]):
    """An answer, and what only the operator may know of it.

    Attributes:
        answer: is released.
        charged: ids of the documents that paid for it; private.
        used: ids of those that were in a slot; private.
        adaptive: released too, of MURAG-ADA only.
    """

    answer: AnswerKind
    charged: frozenset[int]
    used: frozenset[int]
    adaptive: Adaptive | None = None


class Naive(Generic[VoterKind, AnswerKind]):
    """One purse for all questions: each costs every document the same (Algorithm 4)."""

    def __init__(
        self, answerer: Answerer[VoterKind, AnswerKind], price: Fraction, questions: int | None
    ) -> None:
        """Start with no question asked.

        Args:
            answerer: of one question.
            price: of one question, above 0.
            questions: the most that are answered; None for no end, and no promise over all.
        """
        self._answerer = answerer
        self._price = exact(price, "price", above=0)
        self._most = None if questions is None else count(questions, "questions", least=0)
        self.asked = 0

    @property
    def spent(self) -> Fraction:
        """What all questions so far have cost."""
        return self.asked * self._price

    def ask(
        self, question: str, rows: Iterable[Row], voters: VoterKind, coins: Coins
    ) -> Outcome[AnswerKind]:
        """Answer a question from the best rows.

        Raises:
            BudgetExhausted: as many questions were answered as there may be.
        """
        if self._most is not None and self.asked >= self._most:
            raise BudgetExhausted(
                "all questions of this stream were asked",
                where="questions",
                expected=f"at most {self._most}",
            )
        self.asked += 1
        return _answered(self._answerer, question, list(rows), voters, coins, charged=())


@dataclass(frozen=True)
class Murag(Generic[VoterKind, AnswerKind]):
    """Algorithm 1 of the source paper, corrected (docs/notes/generation.md).

    For add-remove and null-replace the whole stream is (limit)-DP, for replace twice that, over any
    number of questions of any number of accounts, each chosen with all former answers in view.

    Attributes:
        answerer: of one question; its price is that of the budgets.
        budgets: of the corpus, kept from question to question.
        threshold: tau; a document is relevant above it. Public, or paid for.
    """

    answerer: Answerer[VoterKind, AnswerKind]
    budgets: DocumentBudgets
    threshold: Fraction

    def ask(
        self, question: str, rows: Iterable[Row], voters: VoterKind, coins: Coins
    ) -> Outcome[AnswerKind]:
        """Charge every live relevant document, then answer from the best of them.

        Args:
            question: as it was asked.
            rows: the whole corpus, with the scores of this question.
            voters: the language model.
            coins: of this question.
        """
        relevant = [row for row in rows if row.score > self.threshold and self.budgets.live(row.id)]
        # Charged whether it reaches a slot or not: which do depends on the other documents.
        self.budgets.charge({row.id for row in relevant}, self.budgets.price)
        return _answered(
            self.answerer, question, relevant, voters, coins, [row.id for row in relevant]
        )


@dataclass(frozen=True, slots=True)
class Bin:
    """Scores in (low, high], both public."""

    low: Fraction
    high: Fraction


@dataclass(frozen=True)
class MuragAda(Generic[VoterKind, AnswerKind]):
    """Algorithm 2 of the source paper, corrected: the threshold is found for each question.

    Attributes:
        answerer: of one question.
        budgets: of the corpus; their price is ``epsilon_threshold`` and the answerer's together.
        epsilon_threshold: what a document pays for being counted, above 0 and below the price.
        bins: disjoint, read from the highest scores down; below the last one nothing is read.
        enough: bins are read until the noisy number of live documents is above it.

    Raises:
        InvalidArgumentError: bins in another order or that overlap, or an epsilon out of its range.
    """

    answerer: Answerer[VoterKind, AnswerKind]
    budgets: DocumentBudgets
    epsilon_threshold: Fraction
    bins: tuple[Bin, ...]
    enough: int

    def __post_init__(self) -> None:
        exact(self.epsilon_threshold, "epsilon_threshold", above=0, below=self.budgets.price)
        count(self.enough, "enough", least=0)
        if not self.bins:
            raise InvalidArgumentError("no bin", where="bins", expected="at least one")
        top: Fraction | None = None
        for each in self.bins:
            # A score on a shared edge would be counted twice, by closed bins or overlapping ones.
            if not each.low < each.high or (top is not None and each.high > top):
                raise InvalidArgumentError(
                    f"bins that rise or overlap at ({each.low}, {each.high}]",
                    where="bins",
                    expected="disjoint, from the highest scores down",
                )
            top = each.low

    def ask(
        self, question: str, rows: Iterable[Row], voters: VoterKind, coins: Coins
    ) -> Outcome[AnswerKind]:
        """Read bins until there is enough, charge what was counted, and answer from the best.

        Args:
            question, rows, voters, coins: as for `Murag.ask`.
        """
        live = [row for row in rows if self.budgets.live(row.id)]
        found = [[row for row in live if each.low < row.score <= each.high] for each in self.bins]
        sums = running_sums(map(len, found), self.epsilon_threshold, self.enough, coins)
        counted = [row for bin_rows in found[: len(sums)] for row in bin_rows]
        threshold = self.bins[len(sums) - 1].low
        self.budgets.charge({row.id for row in counted}, self.epsilon_threshold)
        charged = {row.id for row in counted}
        self.budgets.charge(charged, self.budgets.price - self.epsilon_threshold)
        outcome = _answered(self.answerer, question, counted, voters, coins, charged)
        return Outcome(outcome.answer, outcome.charged, outcome.used, Adaptive(sums, threshold))


def _answered(
    answerer: Answerer[VoterKind, AnswerKind],
    question: str,
    rows: Sequence[Row],
    voters: VoterKind,
    coins: Coins,
    charged: Iterable[int],
) -> Outcome[AnswerKind]:
    best = best_rows(rows, answerer.slots)
    answer = answerer.answer(question, top_slots(best, answerer.slots), voters, coins)
    return Outcome(answer, frozenset(charged), frozenset(row.id for row in best))
