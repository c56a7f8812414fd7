"""`ragaudit plan generation`: what a budget of private answers buys, and what cannot work."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

from ragaudit.privacy.accounting.keyword_sets import calibrated, channel_loss
from ragaudit.privacy.mechanisms.feasibility import (
    StreamPlan,
    best,
    even_votes,
    keyword_chance,
    keyword_gap,
    stream_plan,
)
from ragaudit.privacy.mechanisms.samplers import LARGEST_EXPONENT
from ragaudit.privacy.numbers import count

__all__ = [
    "FORMAT",
    "GenerationPlan",
    "Terms",
    "document",
    "lines",
    "make",
    "sentences",
]

FORMAT = "ragaudit/v1/plan-generation"
MOST_USES = 64
COUNTING = Fraction(1, 5)
"""Of eps_q, for the counts of MURAG-ADA."""
_MILLIONTH = Decimal("0.000001")
GOOD, POOR = 0.9, 0.5
"""Chances of a right answer from which on, and below which, a sentence says so."""


@dataclass(frozen=True)
class Terms:
    """What is planned for.

    Attributes:
        epsilon: of a row, over all accounts and questions, for null-replace.
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


@dataclass(frozen=True)
class GenerationPlan:
    """The whole output.

    Attributes:
        terms: that were asked for.
        naive: every question paid by every document.
        murag: by uses of a document, rising.
        advised: the one of them with most right answers.
        adaptive: MURAG-ADA with as many uses, a fifth of eps_q for its counts; the best case, in
            which reading stops where it should.
        votes: agreeing voters with which a token is drawn half of the time, under `advised`.
        keywords: DP-KSA, with the uses of which most keywords are released.
    """

    terms: Terms
    naive: StreamPlan
    murag: tuple[StreamPlan, ...]
    advised: StreamPlan
    adaptive: StreamPlan
    votes: int
    keywords: KeywordPlan

    @property
    def given(self) -> StreamPlan | None:
        """The plan with the uses that were given, None where none were."""
        return next((each for each in self.murag if each.uses == self.terms.uses), None)


def make(terms: Terms) -> GenerationPlan:
    """Return the plan.

    Args:
        terms: what is planned for.

    Raises:
        MalformedError: a value out of its range; ``where`` names it.
    """

    def plan(uses: int | None, counting: Fraction = Fraction(0)) -> StreamPlan:
        return stream_plan(
            terms.epsilon, uses, questions=terms.questions, asked=terms.asked,
            supporting=terms.supporting, voters=terms.voters, vocabulary=terms.vocabulary,
            tokens=terms.tokens, counting=counting,
        )  # fmt: skip

    # More uses than a document is asked for only make every answer worse.
    numbers = {*range(1, min(terms.asked, MOST_USES) + 1)}
    if terms.uses is not None:
        numbers.add(count(terms.uses, "uses", most=2**16))
    murag = tuple(plan(uses) for uses in sorted(numbers))
    advised = best(murag)
    uses = advised.uses or 1
    votes = min(terms.supporting, terms.voters)
    return GenerationPlan(
        terms,
        plan(None),
        murag,
        advised,
        plan(uses, COUNTING),
        even_votes(terms.vocabulary, advised.epsilon_token),
        _keywords(terms, murag, votes),
    )


def _keywords(terms: Terms, murag: Sequence[StreamPlan], votes: int) -> KeywordPlan:
    def chance(stream: StreamPlan) -> float:
        return keyword_chance(votes, terms.epsilon, terms.delta, stream.uses or 1)

    chances = [chance(each) for each in murag]
    at = max(range(len(murag)), key=lambda place: murag[place].served * chances[place])
    uses, half = murag[at].uses or 1, terms.delta / 2
    found = calibrated(terms.epsilon, half, uses)
    # As short as a policy writes it, and never to the cost of a document.
    rounded = max(_MILLIONTH, found.epsilon_choice.quantize(_MILLIONTH, ROUND_FLOOR))
    choice = min(Fraction(rounded), Fraction(4 * LARGEST_EXPONENT, terms.voters))
    sigma = Fraction(found.sigma.quantize(_MILLIONTH, ROUND_CEILING))
    test = half / uses
    return KeywordPlan(
        uses,
        choice,
        sigma,
        test,
        half,
        channel_loss(choice, sigma, uses, half),
        half + uses * test,
        murag[at].served,
        keyword_gap(terms.epsilon, terms.delta, uses),
        chances[at],
    )


def sentences(plan: GenerationPlan) -> list[str]:
    """Return what the numbers mean, the worst first."""
    terms, advised = plan.terms, plan.advised
    found = []
    if terms.supporting * 2 <= terms.voters:
        found.append(
            f"A vote cannot succeed: {terms.supporting} supporting documents are not more than "
            f"half of {terms.voters} voters, and the rest votes as the public model. Take fewer "
            f"voters, at most {max(1, 2 * terms.supporting - 1)}."
        )
    elif plan.votes > min(terms.supporting, terms.voters):
        found.append(
            f"A vote cannot succeed: at epsilon {_number(advised.epsilon_token)} per token and "
            f"{terms.vocabulary} tokens, {plan.votes} voters must agree for the right token to be "
            f"drawn half of the time, and at most {min(terms.supporting, terms.voters)} do."
        )
    elif advised.chance < POOR:
        found.append(
            f"Most answers would be wrong: at best {advised.chance:.2f} of those that find their "
            "documents alive are right."
        )
    if terms.asked > (advised.uses or 0):
        found.append(
            f"Budgets drain: a document is asked for {terms.asked} times and pays "
            f"{advised.uses}; {terms.questions - advised.served} of {terms.questions} questions "
            "find their documents spent. Where stored answers are reused, a question that is "
            "asked again costs nothing."
        )
    if terms.supporting > terms.voters:
        found.append(
            f"{terms.supporting - terms.voters} of {terms.supporting} supporting documents pay "
            "without being read: every document above the threshold is charged, and "
            f"{terms.voters} are read."
        )
    if advised.chance >= GOOD:
        found.append(
            f"Choose M = {advised.uses} and eps_q = {_number(advised.epsilon_question)}: at best "
            f"{advised.right:.1f} of {terms.questions} questions are answered rightly."
        )
    elif not found or advised.chance >= POOR:
        found.append(
            f"The best choice is M = {advised.uses} and eps_q = "
            f"{_number(advised.epsilon_question)}: at best {advised.right:.1f} of "
            f"{terms.questions} questions are answered rightly."
        )
    if (given := plan.given) is not None and given is not advised:
        found.append(
            f"With M = {given.uses} eps_q is {_number(given.epsilon_question)}: at best "
            f"{given.right:.1f} of {terms.questions} questions are answered rightly."
        )
    found.append(
        "Under MURAG-ADA a question finds its own threshold: with a fifth of eps_q for the counts, "
        f"the n-th sum has a noise of {_count_noise(plan):.1f} times sqrt(n) documents."
    )
    if plan.keywords.chance < POOR:
        found.append(
            f"DP-KSA would stay silent: {plan.keywords.gap:.1f} voters must agree for a keyword to "
            "be released half of the time."
        )
    return found


def _count_noise(plan: GenerationPlan) -> float:
    """Return the standard deviation of the first sum, in documents."""
    ratio = math.exp(-float(plan.adaptive.epsilon_question * COUNTING))
    return math.sqrt(2 * ratio) / (1 - ratio)


def document(plan: GenerationPlan) -> dict[str, Any]:
    """Return the plan as a JSON value: epsilons as exact fractions, chances as numbers."""
    terms, ksa = plan.terms, plan.keywords
    return {
        "format": FORMAT,
        "terms": {
            "epsilon": str(terms.epsilon), "delta": str(terms.delta), "relation": "null-replace",
            "protected_unit": "row", "questions": terms.questions, "asked": terms.asked,
            "supporting": terms.supporting, "voters": terms.voters,
            "vocabulary": terms.vocabulary, "tokens": terms.tokens, "uses": terms.uses,
        },
        "epsilon_replace": str(2 * terms.epsilon),
        "naive": _stream(plan.naive),
        "murag": [_stream(each) for each in plan.murag],
        "advised": plan.advised.uses,
        "murag_ada": {
            **_stream(plan.adaptive),
            "epsilon_count": str(plan.adaptive.epsilon_question * COUNTING),
            "count_noise": round(_count_noise(plan), 6),
        },
        "votes_for_half": plan.votes,
        "dp_ksa": {
            "uses": ksa.uses, "epsilon_choice": str(ksa.epsilon_choice), "sigma": str(ksa.sigma),
            "delta_test": str(ksa.delta_test), "delta_conversion": str(ksa.delta_conversion),
            "epsilon": str(ksa.epsilon), "delta": str(ksa.delta), "served": ksa.served,
            "gap_for_half": round(ksa.gap, 6), "chance": round(ksa.chance, 6),
            "right": round(ksa.right, 6),
        },
        "sentences": sentences(plan),
    }  # fmt: skip


def _stream(plan: StreamPlan) -> dict[str, Any]:
    return {
        "uses": plan.uses,
        "epsilon_question": str(plan.epsilon_question),
        "epsilon_token": str(plan.epsilon_token),
        "served": plan.served,
        "chance": round(plan.chance, 6),
        "right": round(plan.right, 6),
    }


def lines(plan: GenerationPlan) -> list[str]:
    """Return the plan as text: a promise, a table, and what the numbers mean."""
    header = ["", "eps_q", "eps/token", "served", "chance", "right"]
    shown = [("NAIVE", plan.naive)]
    shown += [(f"MURAG, M = {each.uses}", each) for each in _shown(plan)]
    shown += [(f"MURAG-ADA, M = {plan.adaptive.uses}", plan.adaptive)]
    rows = [header]
    for name, each in shown:
        rows.append([
            name, _number(each.epsilon_question), _number(each.epsilon_token), str(each.served),
            f"{each.chance:.3f}", f"{each.right:.1f}",
        ])  # fmt: skip
    widths = [max(len(row[at]) for row in rows) for at in range(len(header))]
    table = [
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    epsilon = _number(plan.terms.epsilon)
    promise = (
        f"epsilon {epsilon} of a row for null-replace, {_number(2 * plan.terms.epsilon)} for "
        "replace, for any number of accounts"
    )
    words = plan.keywords
    ksa = (
        f"DP-KSA instead, at M = {words.uses}: a keyword that {words.gap:.1f} voters name is "
        f"released half of the time; with these documents {words.chance:.3f} of the time, "
        f"{words.right:.1f} of {plan.terms.questions} questions in all. Of the policy: "
        f"epsilon_choice {words.epsilon_choice}, sigma {words.sigma}, delta_test "
        f"{words.delta_test}, delta_conversion {words.delta_conversion}, which cost epsilon "
        f"{_number(words.epsilon)} and delta {_number(words.delta)} for null-replace"
    )
    votes = (
        f"at the advised epsilon per token, {plan.votes} agreeing voters draw their token half of "
        "the time"
    )
    return [promise, "", *table, "", votes, ksa, "", *sentences(plan)]


def _shown(plan: GenerationPlan) -> Sequence[StreamPlan]:
    """Return the plans around the advised one, the one that was asked for, and the ends."""
    at = plan.murag.index(plan.advised)
    near = {0, len(plan.murag) - 1, *range(max(0, at - 2), min(len(plan.murag), at + 3))}
    if plan.given is not None:
        near.add(plan.murag.index(plan.given))
    return [plan.murag[each] for each in sorted(near)]


def _number(value: Fraction) -> str:
    return f"{float(value):.4g}"
