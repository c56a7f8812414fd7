"""The answerer that a policy names, asked with this prover's model; its votes are noted."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ragaudit.ledger.messages.answerers import KeywordVoting, TokenVoting
from ragaudit.ledger.messages.generated_answers import (
    AnyAnswer,
    GeneratedAnswer,
    GeneratedKeywords,
)
from ragaudit.ledger.messages.generation_terms import GenerationTerms
from ragaudit.ledger.messages.replays import Votes, VotesOfAnswer
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa, ResponseVoters, counted
from ragaudit.privacy.mechanisms.dp_rag import DpRag, TokenVoters
from ragaudit.privacy.mechanisms.samplers import Coins
from ragaudit.prover.generation.generator import Generator

__all__ = ["Answered", "answered", "token_mechanism"]


@dataclass(frozen=True)
class Answered:
    """An answer, and the votes from which whoever has the coins computes it again."""

    answer: AnyAnswer
    votes: VotesOfAnswer = field(repr=False)


def answered(
    generator: Generator,
    terms: GenerationTerms,
    question: str,
    texts: Sequence[str],
    coins: Coins,
) -> Answered:
    """Return the answer to a question that was charged.

    Args:
        generator: whose manifest is that of the terms.
        terms: of the window.
        question: as it was asked.
        texts: of the documents for its slots, the best first; the rest of the slots is empty.
        coins: of this question; those of the released sums are drawn.

    Raises:
        GeneratorUnavailable: nothing is released.
    """
    voting = terms.answerer
    slots = [*texts, *[""] * (voting.slots - len(texts))]
    if isinstance(voting, KeywordVoting):
        return _by_keywords(generator, voting, question, slots, coins)
    voters = _Noted(generator.voters)
    found = token_mechanism(terms, voting).answer(question, slots, voters, coins)
    text = generator.vocabulary.text(found.tokens)
    return Answered(GeneratedAnswer(text, found.tokens, found.private), tuple(voters.votes))


def token_mechanism(terms: GenerationTerms, voting: TokenVoting) -> DpRag:
    """Return DP-RAG with the parameters of a policy."""
    vocabulary = terms.vocabulary
    return DpRag(
        epsilon=terms.answer_epsilon,
        epsilon_token=voting.epsilon_token,
        voters=voting.voters,
        slots_per_voter=voting.slots_per_voter,
        vocabulary=vocabulary.size,
        end=vocabulary.end,
        tokens=voting.tokens,
        threshold=voting.threshold,
    )


def _by_keywords(
    generator: Generator,
    voting: KeywordVoting,
    question: str,
    slots: Sequence[str],
    coins: Coins,
) -> Answered:
    mechanism = DpKsa(
        voting.epsilon_choice,
        voting.sigma,
        voting.delta_test,
        slots=voting.voters,
        sizes=voting.sizes,
        stop_words=frozenset(voting.stop_words),
    )
    voters = _NotedResponses(generator.whole_answers(voting.tokens), voting.final)
    found = mechanism.answer(question, slots, voters, coins)
    return Answered(GeneratedKeywords(found.text, found.keywords), tuple(voters.votes))


class _Noted:
    """`TokenVoters` whose votes are noted."""

    def __init__(self, voters: TokenVoters) -> None:
        self._voters = voters
        self.votes: list[Votes] = []

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> Sequence[int | None]:
        """Return the votes for the next place of an answer, as `TokenVoters` says."""
        found = self._voters.next_tokens(question, documents, answer)
        # Without one of who reads nothing there is no answer.
        if found and found[0] is not None:
            self.votes.append(Votes(found[0], tuple(found[1:])))
        return found


class _NotedResponses:
    """`ResponseVoters` whose answers are noted as they count."""

    def __init__(self, voters: ResponseVoters, final: str) -> None:
        """Prepare.

        Args:
            final: "model" or "keywords", as the terms have it.
        """
        self._voters = voters
        self._final = final
        self.votes: list[str] = []

    def responses(self, question: str, documents: Sequence[str]) -> Sequence[str]:
        """Return an answer for each document, as `ResponseVoters` says."""
        self.votes = [counted(text) for text in self._voters.responses(question, documents)]
        return self.votes

    def final(self, question: str, keywords: Sequence[str]) -> str:
        """Return the final text: the model's, or the keywords themselves."""
        if self._final == "keywords":
            return " ".join(keywords)
        return self._voters.final(question, keywords)
