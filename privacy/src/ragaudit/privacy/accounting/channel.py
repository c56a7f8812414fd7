"""What the generation channel of a window costs, for any number of accounts (spec 11.6, 10.10).

Every document has a budget of M uses, whoever asks. So no number of accounts enters, and no
estimate of who acts together.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self

from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.encoding.text import ceil_decimal
from ragaudit.privacy.numbers import count, exact

__all__ = ["ChannelEpsilon"]

_PLACES: Final = 40  # of numbers as small as 2^-100
_TEXTS: Final = ("epsilon_question", "replace_one_null", "replace_one", "rounding", "distance")


@dataclass(frozen=True, slots=True)
class ChannelEpsilon:
    """Pure differential privacy of all answers of a window's generation channel together.

    Attributes:
        mechanism: "murag" or "murag-ada", or "naive", where every row pays for every question.
        uses: M, how often a row may pay.
        question: eps_q, of one question for a row that is charged.
        group: g, rows of one document at most.
        draws: coins of all answers of the window, at most.
        private: private tokens of one answer, at most.
    """

    mechanism: str
    uses: int
    question: Fraction
    group: int
    draws: int
    private: int

    def __post_init__(self) -> None:
        if self.mechanism not in ("murag", "murag-ada", "naive"):
            raise InvalidArgumentError(
                "not a mechanism", where="mechanism", expected="murag, murag-ada or naive"
            )
        count(self.uses, "uses")
        exact(self.question, "question", above=0)
        count(self.group, "group")
        count(self.draws, "draws", least=0)
        count(self.private, "private", least=0)

    @property
    def replace_one_null(self) -> Fraction:
        """g M eps_q: one document changed to or from null rows, or added, or removed."""
        return self.group * self.uses * self.question

    @property
    def replace_one(self) -> Fraction:
        """2 g M eps_q: the document that goes and the one that comes have budgets of their own.

        Under NAIVE no row has one, and a question sees both as one changed row: g M eps_q.
        """
        return (1 if self.mechanism == "naive" else 2) * self.replace_one_null

    @property
    def rounding(self) -> Fraction:
        """What rounding the weights of choices adds to `replace_one_null` at most (spec 11.2)."""
        return self.group * self.uses * self.private * Fraction(1, 2**61)

    @property
    def distance(self) -> Fraction:
        """Total variation between the coins and their exact laws, of all answers, at most."""
        return self.draws * Fraction(1, 2**100)

    def over(self, windows: int) -> Fraction:
        """Return `replace_one_null` of so many windows with the same documents: budgets renew.

        Args:
            windows: >= 1.
        """
        return count(windows, "windows") * self.replace_one_null

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a verdict states them: exact fractions, tiny ones rounded up."""
        return {
            "mechanism": self.mechanism,
            "uses": self.uses,
            "epsilon_question": str(Fraction(self.question)),
            "group_size": self.group,
            "replace_one_null": str(self.replace_one_null),
            "replace_one": str(self.replace_one),
            "draws": self.draws,
            "private_tokens": self.private,
            "rounding": ceil_decimal(self.rounding, _PLACES),
            "distance": ceil_decimal(self.distance, _PLACES),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the numbers of a JSON object, the strict inverse of `to_json`; MalformedError."""
        match value:
            case {
                "mechanism": str(mechanism),
                "uses": int(uses),
                "epsilon_question": str(question),
                "group_size": int(group),
                "draws": int(draws),
                "private_tokens": int(private),
            }:
                try:
                    found = cls(mechanism, uses, Fraction(question), group, draws, private)
                except (ValueError, ZeroDivisionError, InvalidArgumentError) as error:
                    raise MalformedError("not a channel's epsilon", where="generation") from error
                if found.to_json() == value:
                    return found
        raise MalformedError("not a channel's epsilon", where="generation")
