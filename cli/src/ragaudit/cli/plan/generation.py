"""`ragaudit plan generation`: what a budget of private answers buys, and what cannot work."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

from ragaudit.encoding.text import floor_ratio
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.messages.generation_terms import MAX_TOKENS, KeywordVoting
from ragaudit.privacy.accounting.generation import calibrated, channel_loss
from ragaudit.privacy.mechanisms.feasibility import (
    StreamPlan,
    best,
    even_votes,
    keyword_chance,
    keyword_gap,
    stream_plan,
)
from ragaudit.privacy.mechanisms.samplers import LARGEST_EXPONENT, LARGEST_SCALE
from ragaudit.privacy.numbers import count, exact

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
    voting = KeywordVoting.from_json(
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


FORMAT = "ragaudit/v1/plan-generation"
MOST_USES = 64
LEAST_EPSILON = Fraction(1, 100)
"""Below it no vote succeeds, and many uses would each have less than a policy can write."""
COUNTING = Fraction(1, 5)
"""Of eps_q, for the counts of MURAG-ADA; at most what spec 11.8 allows."""
GOOD, POOR = 0.9, 0.5
"""Chances of a right answer from which on, and below which, a sentence says so."""


@dataclass(frozen=True)
class GenerationPlan:
    """The whole output.

    Attributes:
        terms: that were asked for.
        naive: every question paid by every document.
        murag: by uses of a document, rising.
        advised: the one of them with most right answers.
        counting: of eps_q, for the counts of MURAG-ADA.
        adaptive: MURAG-ADA with as many uses; the best case, in which reading stops where it
            should. None where a fifth of eps_q is too little to count with.
        votes: agreeing voters with which a token is drawn half of the time, under `advised`.
        keywords: DP-KSA, with the uses of which most keywords are released; None where no policy
            can have what is asked for.
        unserved: why not; empty otherwise.
    """

    terms: Terms
    naive: StreamPlan
    murag: tuple[StreamPlan, ...]
    advised: StreamPlan
    counting: Fraction
    adaptive: StreamPlan | None
    votes: int
    keywords: KeywordPlan | None
    unserved: str

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

    exact(terms.epsilon, "epsilon", least=LEAST_EPSILON)
    count(terms.tokens, "tokens", most=MAX_TOKENS)

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
    counting = floor_ratio(min(COUNTING * advised.epsilon_question, Fraction(LARGEST_EXPONENT)))
    keywords, unserved = None, ""
    try:
        keywords = keyword_plan(terms, murag, min(terms.supporting, terms.voters))
    except MalformedPolicy as error:
        unserved = str(error)
    return GenerationPlan(
        terms,
        plan(None),
        murag,
        advised,
        counting,
        plan(advised.uses, counting) if counting * LARGEST_SCALE >= 1 else None,
        even_votes(terms.vocabulary, advised.epsilon_token),
        keywords,
        unserved,
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
            f"A vote cannot succeed: at epsilon {number(advised.epsilon_token)} per token and "
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
            f"Choose M = {advised.uses} and eps_q = {number(advised.epsilon_question)}: at best "
            f"{advised.right:.1f} of {terms.questions} questions are answered rightly."
        )
    elif not found or advised.chance >= POOR:
        found.append(
            f"The best choice is M = {advised.uses} and eps_q = "
            f"{number(advised.epsilon_question)}: at best {advised.right:.1f} of "
            f"{terms.questions} questions are answered rightly."
        )
    if (given := plan.given) is not None and given is not advised:
        found.append(
            f"With M = {given.uses} eps_q is {number(given.epsilon_question)}: at best "
            f"{given.right:.1f} of {terms.questions} questions are answered rightly."
        )
    if plan.adaptive is not None:
        found.append(
            "Under MURAG-ADA a question finds its own threshold: with "
            f"{number(plan.counting)} of eps_q for the counts, the n-th sum has a noise of "
            f"{_count_noise(plan.counting):.1f} times sqrt(n) documents."
        )
    if plan.keywords is None:
        found.append(f"No policy can have DP-KSA at these terms: {plan.unserved}.")
    elif plan.keywords.chance < POOR:
        found.append(
            f"DP-KSA would stay silent: {plan.keywords.gap:.1f} voters must agree for a keyword to "
            "be released half of the time."
        )
    return found


def _count_noise(counting: Fraction) -> float:
    """Return the standard deviation of the first sum, in documents."""
    ratio = math.exp(-float(counting))
    return math.sqrt(2 * ratio) / (1 - ratio)


def document(plan: GenerationPlan) -> dict[str, Any]:
    """Return the plan as a JSON value: epsilons as exact fractions, chances as numbers."""
    terms = plan.terms
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
        "murag_ada": None if plan.adaptive is None else {
            **_stream(plan.adaptive),
            "epsilon_count": str(plan.counting),
            "count_noise": round(_count_noise(plan.counting), 6),
        },
        "votes_for_half": plan.votes,
        "dp_ksa": None if plan.keywords is None else keyword_document(plan.keywords),
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
    if plan.adaptive is not None:
        shown += [(f"MURAG-ADA, M = {plan.adaptive.uses}", plan.adaptive)]
    rows = [header]
    for name, each in shown:
        rows.append([
            name, number(each.epsilon_question), number(each.epsilon_token), str(each.served),
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
    epsilon = number(plan.terms.epsilon)
    promise = (
        f"epsilon {epsilon} of a row for null-replace, {number(2 * plan.terms.epsilon)} for "
        "replace, for any number of accounts"
    )
    votes = (
        f"at the advised epsilon per token, {plan.votes} agreeing voters draw their token half of "
        "the time"
    )
    ksa = [] if plan.keywords is None else [keyword_line(plan.keywords, plan.terms.questions)]
    return [promise, "", *table, "", votes, *ksa, "", *sentences(plan)]


def _shown(plan: GenerationPlan) -> Sequence[StreamPlan]:
    """Return the plans around the advised one, the one that was asked for, and the ends."""
    at = plan.murag.index(plan.advised)
    near = {0, len(plan.murag) - 1, *range(max(0, at - 2), min(len(plan.murag), at + 3))}
    if plan.given is not None:
        near.add(plan.murag.index(plan.given))
    return [plan.murag[each] for each in sorted(near)]
