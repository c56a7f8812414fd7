"""What DP-KSA needs of a policy, and what it is good for: a part of `ragaudit plan generation`."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

from ragaudit.encoding.text import floor_ratio
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.messages.answerers import KeywordVoting
from ragaudit.privacy.accounting.keyword_sets import calibrated, channel_loss
from ragaudit.privacy.mechanisms.feasibility import StreamPlan, keyword_chance, keyword_gap
from ragaudit.privacy.mechanisms.samplers import LARGEST_EXPONENT

__all__ = ["KeywordPlan", "Terms", "keyword_document", "keyword_line", "keyword_plan", "number"]

_MILLIONTH = Decimal("0.000001")


@dataclass(frozen=True)
class Terms:
    """What is planned for.

    Attributes:
        epsilon: of a row, over all accounts and questions, for null-replace; 1/100..1000.
        delta: of DP-KSA.
        questions: of the window, of all accounts together.
        asked: questions that one document is relevant to.
        supporting: documents that hold the answer to a question.
        voters: m.
        vocabulary: tokens of the model.
        tokens: of an answer that the public model does not know.
        uses: M, if one is to be judged beside the advised one.
    """

    epsilon: Fraction
    delta: Fraction
    questions: int
    asked: int
    supporting: int
    voters: int
    vocabulary: int
    tokens: int
    uses: int | None = None


@dataclass(frozen=True)
class KeywordPlan:
    """DP-KSA under MURAG, with one number of uses: what a policy says, and what it is good for.

    Attributes:
        uses: M, of a document.
        epsilon_choice, sigma, delta_test, delta_conversion: as of the policy.
        epsilon, delta: of M uses, by the accountant that the verifier has; null-replace.
        served: questions that find their documents alive.
        gap: agreeing voters with which a keyword is released half of the time.
        chance: that the supporting documents' keyword is released, with no other word near it.
    """

    uses: int
    epsilon_choice: Fraction
    sigma: Fraction
    delta_test: Fraction
    delta_conversion: Fraction
    epsilon: Fraction
    delta: Fraction
    served: int
    gap: float
    chance: float

    @property
    def right(self) -> float:
        """Questions whose keyword is released."""
        return self.served * self.chance


def keyword_plan(terms: Terms, murag: Sequence[StreamPlan], votes: int) -> KeywordPlan:
    """Return the plan of DP-KSA.

    Args:
        terms: what is planned for.
        murag: the streams to choose among, by uses.
        votes: voters who name the right keyword.

    Raises:
        MalformedPolicy: no policy can have what it needs.
    """

    def chance(stream: StreamPlan) -> float:
        return keyword_chance(votes, terms.epsilon, terms.delta, stream.uses or 1)

    chances = [chance(each) for each in murag]
    at = max(range(len(murag)), key=lambda place: murag[place].served * chances[place])
    uses, half = murag[at].uses or 1, floor_ratio(terms.delta / 2)
    if not (test := floor_ratio(half / uses)):
        raise MalformedPolicy("too small for a policy", where="delta_test", expected="above 10^-11")
    found = calibrated(terms.epsilon, half, uses)
    # As short as a policy writes it, and never to the cost of a document.
    rounded = max(_MILLIONTH, found.epsilon_choice.quantize(_MILLIONTH, ROUND_FLOOR))
    most = floor_ratio(Fraction(4 * LARGEST_EXPONENT, terms.voters))
    # Whoever reads the policy decides what it can have.
    voting = KeywordVoting.read(
        {
            "kind": "dp-ksa", "epsilon_choice": str(min(Fraction(rounded), most)),
            "sigma": str(Fraction(found.sigma.quantize(_MILLIONTH, ROUND_CEILING))),
            "delta_test": str(test), "delta_conversion": str(half), "voters": terms.voters,
            "sizes": [1], "stop_words": [], "tokens": 1, "final": "keywords",
        },
        "dp-ksa",
    )  # fmt: skip
    return KeywordPlan(
        uses,
        voting.epsilon_choice,
        voting.sigma,
        test,
        half,
        channel_loss(voting.epsilon_choice, voting.sigma, uses, half),
        voting.delta(uses),
        murag[at].served,
        keyword_gap(terms.epsilon, terms.delta, uses),
        chances[at],
    )


def keyword_document(ksa: KeywordPlan) -> dict[str, Any]:
    """Return the plan as a JSON value: epsilons as exact fractions, chances as numbers."""
    return {
        "uses": ksa.uses, "epsilon_choice": str(ksa.epsilon_choice), "sigma": str(ksa.sigma),
        "delta_test": str(ksa.delta_test), "delta_conversion": str(ksa.delta_conversion),
        "epsilon": str(ksa.epsilon), "delta": str(ksa.delta), "served": ksa.served,
        "gap_for_half": round(ksa.gap, 6), "chance": round(ksa.chance, 6),
        "right": round(ksa.right, 6),
    }  # fmt: skip


def keyword_line(ksa: KeywordPlan, questions: int) -> str:
    """Return the plan as a line of text."""
    return (
        f"DP-KSA instead, at M = {ksa.uses}: a keyword that {ksa.gap:.1f} voters name is released "
        f"half of the time; with these documents {ksa.chance:.3f} of the time, {ksa.right:.1f} of "
        f"{questions} questions in all. Of the policy: epsilon_choice {ksa.epsilon_choice}, sigma "
        f"{ksa.sigma}, delta_test {ksa.delta_test}, delta_conversion {ksa.delta_conversion}, which "
        f"cost epsilon {number(ksa.epsilon)} and delta {number(ksa.delta)} for null-replace"
    )


def number(value: Fraction) -> str:
    """Return a fraction as a decimal of four digits."""
    return f"{float(value):.4g}"
