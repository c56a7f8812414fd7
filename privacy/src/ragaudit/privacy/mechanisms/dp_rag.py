"""DP-RAG: one question, answered by a private vote on every token.

Each voter reads a few of the retrieved slots and names the next token. Where noisy agreement with a
model that reads nothing is large enough, its token is taken and costs nothing; otherwise the token
is drawn by the exponential mechanism over the whole vocabulary, and one of ``c`` is used up.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.mechanisms.retrieval import groups
from ragaudit.privacy.mechanisms.samplers import LARGEST_EXPONENT, Coins
from ragaudit.privacy.numbers import count, exact


class TokenVoters(Protocol):
    """A language model with a fixed public vocabulary, asked for one next token at a time."""

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> Sequence[int | None]:
        """Return the next token of each voter.

        Args:
            question: as it was asked.
            documents: what each voter reads; an empty tuple for who reads nothing.
            answer: the tokens so far.

        Returns:
            A token of ``range(vocabulary)`` for each voter; None for one that gave none, which is
            an empty vote: were it an error, a document could be felt by making its voter fail. Each
            is a function of its own documents only: decoding is deterministic, or seeded for each
            voter on its own.
        """


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """What is released, and what it used of its budget.

    Attributes:
        tokens: of the vocabulary, the end token included where the answer ended with it.
        private: how many of them the documents were asked for, by the exponential mechanism.
        public_only: the budget held no private token, so no document was read.
    """

    tokens: tuple[int, ...]
    private: int
    public_only: bool


@dataclass(frozen=True, slots=True)
class DpRag:
    """Algorithm 5 of the source paper, corrected (docs/notes/generation.md).

    Attributes:
        epsilon: of one question, above 0; pure DP for one changed slot.
        epsilon_token: of one private token, above 0.
        voters: m, >= 1.
        slots_per_voter: k', >= 1.
        vocabulary: how many tokens there are; fixed and public, the end token among them.
        end: the token that ends an answer.
        tokens: the most of an answer, >= 0.
        threshold: votes with the public token that are agreement; half the voters if None.

    Raises:
        InvalidArgumentError: a value out of its range, or an exponent so large that weights of the
            exponential mechanism would be rounded.
    """

    epsilon: Fraction
    epsilon_token: Fraction
    voters: int
    slots_per_voter: int
    vocabulary: int
    end: int
    tokens: int
    threshold: Fraction | None = None
    private_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        epsilon = exact(self.epsilon, "epsilon", above=0)
        each = exact(self.epsilon_token, "epsilon_token", above=0)
        count(self.voters, "voters", most=2**16)
        count(self.slots_per_voter, "slots_per_voter", most=2**16)
        count(self.vocabulary, "vocabulary", most=2**32)
        count(self.end, "end", least=0, most=self.vocabulary - 1)
        count(self.tokens, "tokens", least=0, most=2**32)
        threshold = Fraction(self.voters, 2) if self.threshold is None else self.threshold
        for name, value in (
            ("epsilon", epsilon),
            ("epsilon_token", each),
            ("threshold", exact(threshold, "threshold")),
            # Exact: in floats, 0.3/0.1 has room for two tokens.
            ("private_tokens", epsilon // each),
        ):
            object.__setattr__(self, name, value)
        if self.voters > LARGEST_EXPONENT * self.choice_scale:
            raise InvalidArgumentError(
                "voters and epsilon_token make weights that would be rounded",
                where="epsilon_token",
                expected=f"epsilon_token · voters at most {4 * LARGEST_EXPONENT}",
            )

    @property
    def slots(self) -> int:
        """Retrieved documents of one question: voters times slots of each."""
        return self.voters * self.slots_per_voter

    @property
    def price(self) -> Fraction:
        """Pure epsilon of one question for the slots."""
        return self.epsilon

    @property
    def threshold_scale(self) -> Fraction:
        """Of the noise on the threshold, drawn once: half of a token's epsilon pays for tests."""
        return 2 / (self.epsilon_token / 2)

    @property
    def test_scale(self) -> Fraction:
        """Of the noise on each count, in votes."""
        return 4 / (self.epsilon_token / 2)

    @property
    def choice_scale(self) -> Fraction:
        """Votes for which a token's weight grows by e: votes move by 1, both ways."""
        return 2 / (self.epsilon_token / 2)

    def spent(self, private: int) -> Fraction:
        """Return what an answer with so many private tokens has cost, at most ``epsilon``.

        The threshold is not drawn anew after a private token (Lyu, Su, Li 2017).

        Args:
            private: tokens by the exponential mechanism, 0 to ``private_tokens``.
        """
        half = self.epsilon_token / 2
        return half / 2 + private * (half / 2 + half) if self.private_tokens else Fraction(0)

    def answer(
        self, question: str, slots: Sequence[str], voters: TokenVoters, coins: Coins
    ) -> TokenAnswer:
        """Answer a question from its slots.

        Args:
            question: as it was asked.
            slots: exactly `slots` texts, "" where there is no document.
            voters: the language model.
            coins: of this question.

        Raises:
            InvalidArgumentError: another number of slots, a token outside the vocabulary, or none
                of who reads nothing.
        """
        count(len(slots), "slots", least=self.slots, most=self.slots)
        left = self.private_tokens
        # No private token fits: nothing of the documents may be used, also not by the tests.
        asked = groups(slots, coins.permutation(self.slots), self.slots_per_voter) if left else []
        assert self.threshold is not None  # half of the voters, if nobody said
        threshold = self.threshold + (coins.laplace(self.threshold_scale) if left else 0)
        tokens: list[int] = []
        while len(tokens) < self.tokens and (left or not self.private_tokens):
            public, votes = self._votes(question, asked, voters, tokens)
            token = public
            if left:
                counts = Counter(vote for vote in votes if vote is not None)
                noisy = counts[public] + coins.laplace(self.test_scale)
                if noisy <= threshold:
                    weights = {vote: Fraction(number) for vote, number in counts.items()}
                    token = coins.choose(
                        weights, self.vocabulary, most=self.voters, scale=self.choice_scale
                    )
                    left -= 1
            tokens.append(token)
            if token == self.end:
                break
        private = self.private_tokens - left
        return TokenAnswer(tuple(tokens), private, public_only=not self.private_tokens)

    def _votes(
        self,
        question: str,
        asked: Sequence[tuple[str, ...]],
        voters: TokenVoters,
        tokens: Sequence[int],
    ) -> tuple[int, Sequence[int | None]]:
        """Return the token of who reads nothing, and the voters'."""
        first, *votes = voters.next_tokens(question, [(), *asked], tokens)
        count(len(votes), "voters", least=len(asked), most=len(asked))
        for vote in votes:
            if vote is not None:
                count(vote, "token", least=0, most=self.vocabulary - 1)
        if first is None:
            raise InvalidArgumentError(
                "no token of who reads nothing", where="token", expected="one of the vocabulary"
            )
        return count(first, "token", least=0, most=self.vocabulary - 1), votes
