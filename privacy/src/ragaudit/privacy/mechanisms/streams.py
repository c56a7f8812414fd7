"""Many questions on one corpus: NAIVE, MURAG and MURAG-ADA.

NAIVE pays for every question out of one purse. Under MURAG every *document* has a purse, and pays
for the questions that it is relevant to, whoever asks: a coalition of any size learns what one
account may. The charge is made before anything is generated, and is a function of the document's
own score and of what was released before, never of which documents were the best.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.mechanisms.bins import running_sums
from ragaudit.privacy.mechanisms.budgets import BudgetExhausted, DocumentBudgets
from ragaudit.privacy.mechanisms.coins import Coins
from ragaudit.privacy.mechanisms.retrieval import Row, best_rows, top_slots
from ragaudit.privacy.numbers import count, exact

__all__ = ["Adaptive", "Answerer", "Bin", "Murag", "MuragAda", "Naive", "Outcome"]

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
