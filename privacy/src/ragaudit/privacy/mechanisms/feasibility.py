"""Whether a private vote can succeed at all: the chance of a right answer where voters agree.

The laws of the mechanisms themselves, for the best case that a provider can hope for: so many
documents support the answer, every voter who reads one of them names it, and the other voters read
nothing and vote as the public model does. What a real model and real documents do is worse.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from ragaudit.encoding.text import floor_ratio
from ragaudit.privacy.accounting.generation import calibrated, pass_probability
from ragaudit.privacy.mechanisms.dp_rag import DpRag
from ragaudit.privacy.mechanisms.samplers import LARGEST_EXPONENT
from ragaudit.privacy.numbers import Number, count, exact

_TAIL = 40
"""Scales of a Laplace law beyond which there is less than 1e-17 of it."""
_MOST_NOISES = 2**11
"""On each side: beyond them the sum is one of blocks, right to a part in thousands."""


def choice_chance(vocabulary: int, votes: int, epsilon_token: Number, *, against: int = 0) -> float:
    """Return how often the exponential mechanism draws a token.

    Args:
        vocabulary: tokens that it draws from, >= 2.
        votes: of the token.
        epsilon_token: of one private token, above 0; a vote counts a quarter of it.
        against: votes of one other token, which all other voters name.
    """
    count(vocabulary, "vocabulary", least=2)
    vote = float(exact(epsilon_token, "epsilon_token", above=0)) / 4
    lead = count(votes, "votes", least=0) - count(against, "against", least=0)
    others = (vocabulary - 2) * math.exp(-vote * votes)
    return 1 / (1 + math.exp(min(700.0, -vote * lead)) + others)


def even_votes(vocabulary: int, epsilon_token: Number) -> int:
    """Return the fewest votes, all others absent, with which a token is drawn half of the time.

    Args:
        vocabulary, epsilon_token: as of `choice_chance`.
    """
    count(vocabulary, "vocabulary", least=2)
    vote = float(exact(epsilon_token, "epsilon_token", above=0)) / 4
    return max(1, math.ceil(math.log(vocabulary - 1) / vote))


def answer_chance(rag: DpRag, votes: int, tokens: int) -> float:
    """Return how often DP-RAG answers rightly.

    Args:
        rag: the terms of a question.
        votes: voters who name every token of the right answer; the others, and the public model,
            agree on another one. At most the voters.
        tokens: of the right answer that the public model does not know, >= 1; its end is public.
    """
    count(votes, "votes", least=0, most=rag.voters)
    if count(tokens, "tokens") > rag.private_tokens:
        return 0.0
    against = rag.voters - votes
    drawn = choice_chance(rag.vocabulary, votes, rag.epsilon_token, against=against)
    # Given the threshold's noise, which is drawn once, the tokens of an answer are independent.
    return sum(mass * (private * drawn) ** tokens for mass, private in _tests(rag, against))


def private_chance(rag: DpRag, agreeing: int) -> float:
    """Return how often the first token of an answer is drawn from the documents.

    Args:
        rag: the terms of a question.
        agreeing: voters who name the public model's token, at most the voters.
    """
    count(agreeing, "agreeing", least=0, most=rag.voters)
    return sum(mass * private for mass, private in _tests(rag, agreeing))


def _tests(rag: DpRag, agreeing: int) -> Iterator[tuple[float, float]]:
    """Yield each noise of the threshold as its chance, and how often a test then finds it above."""
    assert rag.threshold is not None  # half of the voters, if nobody said
    scale, test = float(rag.threshold_scale), float(rag.test_scale)
    width = int(_TAIL * scale) + 1
    # One by one, or as many together as make no difference: a small epsilon has a wide noise.
    step, threshold = max(1, width // _MOST_NOISES), math.floor(rag.threshold)
    for noise in range(-width, width + 1, step):
        room = threshold + noise + step // 2 - agreeing
        if step == 1:
            mass = _laplace_mass(noise, scale)
        else:
            mass = _laplace_below(noise + step - 1, scale) - _laplace_below(noise - 1, scale)
        yield mass, _laplace_below(room, test)


def _laplace_mass(n: int, scale: float) -> float:
    return math.tanh(1 / (2 * scale)) * math.exp(-abs(n) / scale)


def _laplace_below(n: int, scale: float) -> float:
    """Return ``P[noise <= n]`` of the discrete Laplace law."""
    ratio = math.exp(-1 / scale)
    if n < 0:
        return math.exp(n / scale) / (1 + ratio)
    return 1 - math.exp(-(n + 1) / scale) / (1 + ratio)


def keyword_gap(epsilon: Number, delta: Number, questions: int = 1) -> float:
    """Return the gap, in voters, that passes the test of DP-KSA half of the time.

    Args:
        epsilon: of all questions together.
        delta: of all together; half of it for the conversion, half for the tests.
        questions: >= 1.
    """
    half = exact(delta, "delta", above=0, below=1) / 2
    return float(calibrated(epsilon, half, questions).even_gap(half / questions))


def keyword_chance(votes: int, epsilon: Number, delta: Number, questions: int = 1) -> float:
    """Return how often DP-KSA releases one keyword that so many voters name, and no other word.

    Args:
        votes: of voters, >= 0.
        epsilon, delta, questions: as of `keyword_gap`.
    """
    half = exact(delta, "delta", above=0, below=1) / 2
    sigma = calibrated(epsilon, half, questions).sigma
    return float(pass_probability(votes, sigma, half / questions))


@dataclass(frozen=True)
class StreamPlan:
    """What a stream of questions gets under one number of uses.

    Attributes:
        uses: M, of a document; None for NAIVE, where every question costs every document.
        epsilon_question: eps_q.
        epsilon_token: of one private token.
        served: questions that find their documents alive.
        chance: of a right answer to one of them, at best.
    """

    uses: int | None
    epsilon_question: Fraction
    epsilon_token: Fraction
    served: int
    chance: float

    @property
    def right(self) -> float:
        """Questions that are answered rightly, at best."""
        return self.served * self.chance


def stream_plan(
    epsilon: Fraction,
    uses: int | None,
    *,
    questions: int,
    asked: int,
    supporting: int,
    voters: int,
    vocabulary: int,
    tokens: int,
    counting: Fraction = Fraction(0),
) -> StreamPlan:
    """Return what a budget buys; but for NAIVE, with epsilons that a policy can have (11.8).

    Args:
        epsilon: of a document, over all accounts and questions.
        uses: M, or None for NAIVE.
        questions: of the stream, >= 1.
        asked: questions that one document is relevant to, 1 to `questions`; every answer beyond
            the M-th finds it spent.
        supporting: documents that hold the answer to a question.
        voters: m; each reads one document.
        vocabulary: tokens of the model.
        tokens: of an answer that the public model does not know.
        counting: of eps_q, for the counts of a question (MURAG-ADA); below eps_q.
    """
    count(asked, "asked", most=count(questions, "questions"))
    whole = exact(epsilon, "epsilon", above=0)
    # NAIVE is there to be compared with, however little a question of it has.
    granted = Fraction if uses is None else floor_ratio
    price = granted(whole / (questions if uses is None else count(uses, "uses")))
    answering = price - exact(counting, "counting", least=0, below=price)
    token = granted(_bounded(answering / count(tokens, "tokens"), voters))
    rag = DpRag(answering, token, voters, 1, vocabulary, 0, tokens)
    served = questions if uses is None else questions * min(uses, asked) // asked
    votes = min(count(supporting, "supporting", least=0), voters)
    return StreamPlan(uses, price, rag.epsilon_token, served, answer_chance(rag, votes, tokens))


def _bounded(token: Fraction, voters: int) -> Fraction:
    """Return the epsilon of a token, or the largest at which no weight is rounded (spec 11.2)."""
    return min(token, Fraction(4 * LARGEST_EXPONENT, count(voters, "voters", most=2**16)))


def best(plans: Iterable[StreamPlan]) -> StreamPlan:
    """Return the plan with most right answers; of equal ones the first."""
    return max(plans, key=lambda plan: plan.right)
