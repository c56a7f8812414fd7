"""What the generation channel of a window costs, for any number of accounts (spec 11.6, 10.10).

Every document has a budget of M uses, whoever asks. So no number of accounts enters, and no
estimate of who acts together.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.encoding.text import ceil_decimal, parse_ratio
from ragaudit.privacy.accounting.keyword_sets import PLACES, channel_loss
from ragaudit.privacy.numbers import count, exact

__all__ = ["ChannelCosts", "ChannelEpsilon", "KeywordChannelEpsilon", "Loss", "read_channel"]

_PLACES: Final = 40  # of numbers as small as 2^-100


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
                    found = cls(mechanism, uses, parse_ratio(question), group, draws, private)
                except MalformedError as error:
                    raise MalformedError("not a channel's epsilon", where="generation") from error
                if found.to_json() == value:
                    return found
        raise MalformedError("not a channel's epsilon", where="generation")


class Loss(NamedTuple):
    """Of all answers of a window together.

    Attributes:
        epsilon: rounded up.
        delta: exact.
    """

    epsilon: Fraction
    delta: Fraction

    def to_json(self) -> dict[str, str]:
        """Return the numbers as a verdict states them."""
        return {"epsilon": ceil_decimal(self.epsilon, PLACES), "delta": str(self.delta)}


@dataclass(frozen=True)
class KeywordChannelEpsilon:
    """Approximate differential privacy of a channel that answers by DP-KSA under MURAG.

    A document is one row. Rényi divergences of its uses add up at one order, and are converted
    once; a replaced document is two, each with its own uses, and changes one slot of a question
    whichever of the two is relevant to it.

    Attributes:
        uses: M, how often a row may pay.
        epsilon_choice, sigma, delta_test: of one question, as of `DpKsa`.
        delta_conversion: of the conversion.
        draws: coins of all answers of the window, at most.
    """

    uses: int
    epsilon_choice: Fraction
    sigma: Fraction
    delta_test: Fraction
    delta_conversion: Fraction
    draws: int

    def __post_init__(self) -> None:
        count(self.uses, "uses")
        exact(self.epsilon_choice, "epsilon_choice", above=0)
        exact(self.sigma, "sigma", above=0)
        exact(self.delta_test, "delta_test", above=0, most=Fraction(1, 2))
        exact(self.delta_conversion, "delta_conversion", above=0, below=1)
        count(self.draws, "draws", least=0)

    @cached_property
    def replace_one_null(self) -> Loss:
        """One document changed to or from a null row, or added, or removed: M uses."""
        return self._of(self.uses)

    @cached_property
    def replace_one(self) -> Loss:
        """One document replaced by another: 2 M uses, composed before they are converted."""
        return self._of(2 * self.uses)

    @property
    def distance(self) -> Fraction:
        """Total variation between the coins and their exact laws, of all answers, at most."""
        return self.draws * Fraction(1, 2**100)

    def over(self, windows: int) -> Loss:
        """Return `replace_one_null` of so many windows with the same documents: budgets renew.

        Args:
            windows: >= 1.
        """
        epsilon, delta = self.replace_one_null
        return Loss(count(windows, "windows") * epsilon, windows * delta)

    def _of(self, uses: int) -> Loss:
        epsilon = channel_loss(self.epsilon_choice, self.sigma, uses, self.delta_conversion)
        return Loss(epsilon, self.delta_conversion + uses * self.delta_test)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a verdict states them: exact fractions, others rounded up."""
        return {
            "mechanism": "murag",
            "answerer": "dp-ksa",
            "uses": self.uses,
            "epsilon_choice": str(Fraction(self.epsilon_choice)),
            "sigma": str(Fraction(self.sigma)),
            "delta_test": str(Fraction(self.delta_test)),
            "delta_conversion": str(Fraction(self.delta_conversion)),
            "group_size": 1,
            "replace_one_null": self.replace_one_null.to_json(),
            "replace_one": self.replace_one.to_json(),
            "draws": self.draws,
            "distance": ceil_decimal(self.distance, _PLACES),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the numbers of a JSON object, the strict inverse of `to_json`; MalformedError."""
        match value:
            case {
                "uses": int(uses),
                "epsilon_choice": str(choice),
                "sigma": str(sigma),
                "delta_test": str(test),
                "delta_conversion": str(conversion),
                "draws": int(draws),
            }:
                try:
                    one, test_noise = parse_ratio(choice), parse_ratio(sigma)
                    deltas = parse_ratio(test), parse_ratio(conversion)
                    found = cls(uses, one, test_noise, *deltas, draws)
                    same = found.to_json() == value
                except MalformedError as error:
                    raise MalformedError("not a channel's epsilon", where="generation") from error
                if same:
                    return found
        raise MalformedError("not a channel's epsilon", where="generation")


ChannelCosts = ChannelEpsilon | KeywordChannelEpsilon


def read_channel(value: object) -> ChannelCosts:
    """Return what a channel costs, of either kind, as a verdict states it; MalformedError."""
    if isinstance(value, dict) and "answerer" in value:
        return KeywordChannelEpsilon.from_json(value)
    return ChannelEpsilon.from_json(value)
