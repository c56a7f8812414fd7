"""DP-KSA: one question, answered from the keywords that many voters name.

Every voter reads one slot and answers; only the set of its words counts. The number of keywords is
chosen by the exponential mechanism, and the set is released if the gap below it is so large that no
single voter could have changed it. The answer is then written from question and keywords alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.text import words
from ragaudit.privacy.mechanisms.retrieval import groups
from ragaudit.privacy.mechanisms.samplers import LARGEST_EXPONENT, Coins, gaussian_threshold
from ragaudit.privacy.numbers import count, exact

LONGEST_RESPONSE = 2**14
"""Bytes of UTF-8: a voter's answer that is longer counts as none."""
GAP_SENSITIVITY = 2
"""One changed slot moves one count up and one down: a gap of two counts moves by 2 at most."""


class ResponseVoters(Protocol):
    """A language model, asked for whole answers."""

    def responses(self, question: str, documents: Sequence[str]) -> Sequence[str]:
        """Return an answer for each document, each a function of its own document only."""

    def final(self, question: str, keywords: Sequence[str]) -> str:
        """Return the answer to a question with keywords; without any it is the plain question."""


@dataclass(frozen=True, slots=True)
class KeywordAnswer:
    """What is released.

    Attributes:
        text: of the final answer.
        keywords: in alphabetic order, since their ranks are private; None where the test failed.
    """

    text: str
    keywords: tuple[str, ...] | None


def counted(text: str) -> str:
    """Return a voter's answer as it counts: "" if it is longer than 2^14 bytes."""
    return text if len(text.encode(errors="replace")) <= LONGEST_RESPONSE else ""


def keywords(text: str, stop_words: frozenset[str]) -> frozenset[str]:
    """Return the words of a response without the stop words."""
    return words(text) - stop_words


def histogram(responses: Sequence[frozenset[str]]) -> Counter[str]:
    """Return in how many responses each word is."""
    return Counter(word for response in responses for word in response)


def gaps(counts: Mapping[str, int], most: int) -> list[int]:
    """Return ``d_k = H_(k) - H_(k+1)`` for k = 1..most; words that nobody named count 0."""
    ordered = sorted(counts.values(), reverse=True) + [0] * (most + 1)
    return [ordered[k - 1] - ordered[k] for k in range(1, most + 1)]


@dataclass(frozen=True, slots=True)
class DpKsa:
    """Algorithms 1 to 3 of the source paper, corrected (docs/notes/generation.md).

    Attributes:
        epsilon_choice: of the choice of k, above 0.
        sigma: the noise on the gap has a deviation of 2 sigma; above 0.
        delta_test: that a set is released whose gap is not above 2; at most 1/2.
        slots: N, the voters; each reads one.
        sizes: the numbers of keywords to choose from; public, none twice.
        preferences: added to a size's gap in the choice; public, 0 to `slots`, 0 if not named.
        stop_words: that never count; public.

    Raises:
        InvalidArgumentError: a value out of its range.
    """

    epsilon_choice: Fraction
    sigma: Fraction
    delta_test: Fraction
    slots: int
    sizes: tuple[int, ...]
    preferences: Mapping[int, Fraction] = field(default_factory=dict)
    stop_words: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name, value in (
            ("epsilon_choice", exact(self.epsilon_choice, "epsilon_choice", above=0)),
            ("sigma", exact(self.sigma, "sigma", above=0)),
            ("delta_test", exact(self.delta_test, "delta_test", above=0, most=Fraction(1, 2))),
        ):
            object.__setattr__(self, name, value)
        count(self.slots, "slots", most=2**16)
        # Fixed before any data is seen: a range up to the words that were named would tell them.
        if not self.sizes or len(set(self.sizes)) != len(self.sizes):
            raise InvalidArgumentError(
                "no sizes to choose from, or one twice", where="sizes", expected="as 1, 2, 3"
            )
        for size in self.sizes:
            count(size, "sizes", most=2**16)
        for size, value in self.preferences.items():
            exact(value, "preferences", least=0, most=self.slots)
            if size not in self.sizes:
                raise InvalidArgumentError(
                    f"of a size that is none: {size}", where="preferences", expected="of `sizes`"
                )
        if self._most > LARGEST_EXPONENT * self.choice_scale:
            raise InvalidArgumentError(
                "slots and epsilon_choice make weights that would be rounded",
                where="epsilon_choice",
                expected=f"epsilon_choice · slots at most {4 * LARGEST_EXPONENT}",
            )

    @property
    def _most(self) -> int:
        largest = max(self.preferences.values(), default=Fraction(0))
        return self.slots + -(-largest.numerator // largest.denominator)

    @property
    def choice_scale(self) -> Fraction:
        """Of the Gumbel noise on a gap: twice the sensitivity over epsilon.

        The paper prints half of it, which is twice as much loss as it accounts for.
        """
        return 2 * GAP_SENSITIVITY / self.epsilon_choice

    @property
    def deviation(self) -> Fraction:
        """Of the noise on the gap that is tested."""
        return GAP_SENSITIVITY * self.sigma

    @property
    def shift(self) -> int:
        """What is taken off the noisy gap: of the noise, at most ``delta_test`` lies above it."""
        return gaussian_threshold(self.deviation, self.delta_test)

    def choose_size(self, counts: Mapping[str, int], coins: Coins) -> int:
        """Return how many keywords are to be released (Algorithm 3, with its scale corrected)."""
        found = gaps(counts, max(self.sizes))
        utilities = {
            place: Fraction(found[size - 1]) + self.preferences.get(size, 0)
            for place, size in enumerate(self.sizes)
        }
        place = coins.choose(
            {each: utility for each, utility in utilities.items() if utility},
            len(self.sizes),
            most=self._most,
            scale=self.choice_scale,
        )
        return self.sizes[place]

    def passes(self, gap: int, coins: Coins) -> bool:
        """Return whether a gap is large enough, by a noisy test (Algorithm 2).

        Gaps up to 2 are treated as 2: neighbours that both have one are then told apart by nothing.
        """
        noisy = max(GAP_SENSITIVITY, gap) + coins.gaussian(self.deviation) - self.shift
        return noisy > GAP_SENSITIVITY

    def answer(
        self, question: str, slots: Sequence[str], voters: ResponseVoters, coins: Coins
    ) -> KeywordAnswer:
        """Answer a question from its slots.

        Args:
            question: as it was asked.
            slots: exactly `slots` texts, "" where there is no document.
            voters: the language model.
            coins: of this question.

        Raises:
            InvalidArgumentError: another number of slots, or of answers.
        """
        count(len(slots), "slots", least=self.slots, most=self.slots)
        order = coins.permutation(self.slots)
        documents = [text for (text,) in groups(slots, order, 1)]
        responses = voters.responses(question, documents)
        count(len(responses), "responses", least=self.slots, most=self.slots)
        counts = histogram([keywords(counted(text), self.stop_words) for text in responses])
        size = self.choose_size(counts, coins)
        if not self.passes(gaps(counts, size)[-1], coins):
            return KeywordAnswer(voters.final(question, ()), None)
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        released = tuple(sorted(ordered[:size]))
        return KeywordAnswer(voters.final(question, released), released)
