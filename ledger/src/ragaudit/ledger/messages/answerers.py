"""Who answers a question of the generation channel (docs/spec/11-generation.md §11.8)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from ragaudit.encoding.text import LONGEST_WORD, words
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.ratios import read_ratio

__all__ = ["Answerer", "KeywordVoting", "TokenVoting", "read_answerer"]

MAX_SLOTS: Final = 2**16
MAX_TOKENS: Final = 4096  # of an answer
LARGEST_EXPONENT: Final = 44
"""Of a weight of the exponential mechanism (11.2): above it weights would be rounded away."""

MAX_RESPONSES: Final = 2**11
"""Voters of DP-KSA: their whole answers are half of the longest replay."""
MAX_RESPONSE_TOKENS: Final = 256
MAX_KEYWORDS: Final = 256
_MAX_SIZES: Final = 64
_MAX_STOP_WORDS: Final = 1000
_LARGEST_SIGMA: Final = 256


@dataclass(frozen=True, slots=True)
class TokenVoting:
    """The answerer DP-RAG (11.4).

    Attributes:
        epsilon_token: eps_0, of one private token.
        voters, slots_per_voter: m and k'; their product is the number of retrieved slots.
        threshold: theta, in votes; None for half of the voters.
        tokens: the most of an answer, 1..4096.
    """

    epsilon_token: Fraction
    voters: int
    slots_per_voter: int
    threshold: Fraction | None
    tokens: int

    @property
    def slots(self) -> int:
        """n_retrieve, m times k'."""
        return self.voters * self.slots_per_voter

    @property
    def votes(self) -> int:
        """Of an answer at most: of each voter, and of who reads nothing, for each token."""
        return self.tokens * (self.voters + 1)

    @classmethod
    def read(cls, value: Any, where: str) -> "TokenVoting":
        """Return the terms of a JSON value; MalformedPolicy."""
        names = "kind epsilon_token voters slots_per_voter threshold tokens"
        f = Fields(value, names, MalformedPolicy, where)
        f.constant("kind", "dp-rag")
        voters = f.integer("voters", 1, MAX_SLOTS)
        each = read_ratio(f, "epsilon_token")
        # eps_expo · m / 2, with eps_expo = eps_0/2: weights of 0 would make tokens impossible.
        if each * voters > 4 * LARGEST_EXPONENT:
            expected = f"at most {4 * LARGEST_EXPONENT} with all voters"
            raise f.error("epsilon_token", "weights would be rounded away", expected)
        return cls(
            epsilon_token=each,
            voters=voters,
            slots_per_voter=f.integer("slots_per_voter", 1, MAX_SLOTS // voters),
            threshold=None
            if f.raw("threshold") is None
            else read_ratio(f, "threshold", least=Fraction(0)),
            tokens=f.integer("tokens", 1, MAX_TOKENS),
        )


@dataclass(frozen=True, slots=True)
class KeywordVoting:
    """The answerer DP-KSA (11.5); a voter reads one slot.

    Attributes:
        epsilon_choice: eps_em, of the choice of how many keywords.
        sigma: the noise of the test has a deviation of 2 sigma; 1/100..256.
        delta_test: delta_ptr, at most 1/2.
        delta_conversion: of the conversion from a Rényi divergence, below 1.
        voters: N, 1..2048.
        sizes: the k to choose from, rising, 1..64 of them, each 1..256.
        stop_words: that never count, rising, at most 1000.
        tokens: the most of a voter's answer and of the final one, 1..256.
        final: "model", which writes the answer from the keywords, or "keywords", which are it.
    """

    epsilon_choice: Fraction
    sigma: Fraction
    delta_test: Fraction
    delta_conversion: Fraction
    voters: int
    sizes: tuple[int, ...]
    stop_words: tuple[str, ...]
    tokens: int
    final: str

    @property
    def slots(self) -> int:
        """n_retrieve: one for each voter."""
        return self.voters

    @property
    def votes(self) -> int:
        """Whole answers that are written for one: of each voter, and the final one."""
        return self.voters + 1

    def delta(self, uses: int) -> Fraction:
        """Return the delta of so many uses of a document.

        Args:
            uses: >= 1.
        """
        return self.delta_conversion + uses * self.delta_test

    @classmethod
    def read(cls, value: Any, where: str) -> "KeywordVoting":
        """Return the terms of a JSON value; MalformedPolicy."""
        names = """kind epsilon_choice sigma delta_test delta_conversion voters sizes stop_words
            tokens final"""
        f = Fields(value, names, MalformedPolicy, where)
        f.constant("kind", "dp-ksa")
        voters = f.integer("voters", 1, MAX_RESPONSES)
        choice = read_ratio(f, "epsilon_choice", least=Fraction(1, 10**9))
        # d_k / s at most, with s = 4/eps_em.
        if choice * voters > 4 * LARGEST_EXPONENT:
            expected = f"at most {4 * LARGEST_EXPONENT} with all voters"
            raise f.error("epsilon_choice", "weights would be rounded away", expected)
        sizes = f.integers("sizes", (1, _MAX_SIZES), 1, MAX_KEYWORDS)
        stop_words = f.texts("stop_words", _MAX_STOP_WORDS, 4 * LONGEST_WORD)
        # One set, one spelling.
        rising = {
            "sizes": list(sizes) == sorted(set(sizes)),
            "stop_words": list(stop_words) == sorted(set(stop_words)),
        }
        for name, rises in rising.items():
            if not rises:
                raise f.error(name, "does not rise", "in order, each once")
        # One that no text can hold would stop nothing.
        if any(words(each) != {each} for each in stop_words):
            raise f.error("stop_words", "not a word", "letters and digits, case-folded")
        sigma = read_ratio(f, "sigma", least=Fraction(1, 100))
        test, conversion = read_ratio(f, "delta_test"), read_ratio(f, "delta_conversion")
        for name, number, most in (
            ("sigma", sigma, Fraction(_LARGEST_SIGMA)),
            ("delta_test", test, Fraction(1, 2)),
            ("delta_conversion", conversion, Fraction(1, 2)),
        ):
            if number > most:
                raise f.error(name, "out of range", f"at most {most}")
        return cls(
            epsilon_choice=choice,
            sigma=sigma,
            delta_test=test,
            delta_conversion=conversion,
            voters=voters,
            sizes=sizes,
            stop_words=stop_words,
            tokens=f.integer("tokens", 1, MAX_RESPONSE_TOKENS),
            final=f.choice("final", "model", "keywords"),
        )


Answerer = TokenVoting | KeywordVoting


def read_answerer(value: Any, where: str) -> Answerer:
    """Return the answerer of a JSON value, by its kind; MalformedPolicy."""
    kind = value.get("kind") if isinstance(value, dict) else None
    return (KeywordVoting if kind == "dp-ksa" else TokenVoting).read(value, where)
