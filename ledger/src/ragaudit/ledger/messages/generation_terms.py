"""The generation channel in a policy (docs/spec/11-generation.md §11.8), read strictly.

Epsilons are exact fractions: what a document has left is compared with what a question costs, and
no rounding may decide that.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from types import NoneType
from typing import Annotated, Final, Literal, TypeAlias

from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.text import LONGEST_WORD, parse_ratio, words
from ragaudit.ledger.messages.kernel import (
    Converted,
    Integer,
    Items,
    Nested,
    OneOf,
    OrNull,
    Text,
)
from ragaudit.ledger.messages.manifests import GeneratorManifest, VocabularyTerms
from ragaudit.ledger.messages.policy_terms import PolicyMember

_LONGEST_RATIO: Final = 25


def ratios(least: Fraction | None = None, most: int | Fraction | None = None) -> Converted:
    """Return the form of an exact fraction of one spelling, above 0 or at least ``least``."""
    low = "above 0" if least is None else f"at least {least}"

    def read(text: str) -> Fraction:
        value = parse_ratio(text)
        if value < least if least is not None else value <= 0:
            raise MalformedError("out of range", expected=low)
        if most is not None and value > most:
            raise MalformedError("out of range", expected=f"at most {most}")
        return value

    said = low if most is None else f"{low}, at most {most}"
    return Converted(Text(1, _LONGEST_RATIO), read, str, f"fraction in lowest terms, {said}")


Ratio: TypeAlias = Annotated[Fraction, ratios()]
MAX_BINS: Final = 64
_MAX_ENOUGH: Final = 2**32
_LARGEST_SCALE: Final = 2**16
"""Of the noise of a count (11.2), which is 1/eps_thr."""
_LARGEST_EPSILON: Final = 44
"""Of a count: with more there is no noise to speak of."""


class AdaptiveTerms(PolicyMember):
    """Bins of scores, read from the highest down until there is enough.

    Attributes:
        edges: the lower edge of each bin, falling, 0..B², 1 to 64 of them. A bin reaches from its
            edge, which is not in it, up to the edge before, and the first one up to B². So there is
            no gap, and the rows that were counted are all those above the last edge.
        epsilon: eps_thr, of one count, 2^-16..44.
        enough: reading stops after the first released sum above it, 0..2^32.
    """

    edges: Annotated[tuple[Annotated[int, Integer(0, SQUARED_NORM)], ...], Items(1, MAX_BINS)]
    epsilon: Annotated[Fraction, ratios(Fraction(1, _LARGEST_SCALE), _LARGEST_EPSILON)]
    enough: Annotated[int, Integer(0, _MAX_ENOUGH)]

    def threshold_of(self, sums: Sequence[int]) -> int:
        """Return tau_t, as the released sums of a question say.

        Args:
            sums: of the bins that were read, in their order.

        Raises:
            RejectedError: reading stopped elsewhere than after the first sum above `enough`, or
                after the last bin.
        """
        reading = [total <= self.enough for total in sums]
        last = len(self.edges)
        if not all(reading[:-1]) or len(sums) > last or (len(sums) < last and all(reading)):
            raise RejectedError(
                f"{len(sums)} bins were read",
                expected=f"up to the first sum above {self.enough}, at most {last}",
            )
        return self.edges[len(sums) - 1]

    def _check(self) -> None:
        if any(below >= above for above, below in pairwise(self.edges)):
            expected = "each below the one before"
            raise MalformedError("edges that do not fall", where="edges", expected=expected)


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


def _check_weights(name: str, epsilon: Fraction, voters: int) -> None:
    """Check the exponent of a weight: with less than what is left of one none would be possible."""
    if epsilon * voters > 4 * LARGEST_EXPONENT:
        expected = f"at most {4 * LARGEST_EXPONENT} with all voters"
        raise MalformedError("weights would be rounded away", where=name, expected=expected)


class TokenVoting(PolicyMember):
    """The answerer DP-RAG (11.4).

    Attributes:
        epsilon_token: eps_0, of one private token.
        voters, slots_per_voter: m and k'; their product is the number of retrieved slots.
        threshold: theta, in votes; None for half of the voters.
        tokens: the most of an answer, 1..4096.
    """

    epsilon_token: Ratio
    voters: Annotated[int, Integer(1, MAX_SLOTS)]
    slots_per_voter: Annotated[int, Integer(1, MAX_SLOTS)]
    threshold: Annotated[Fraction, ratios(Fraction(0))] | None
    tokens: Annotated[int, Integer(1, MAX_TOKENS)]
    kind: Literal["dp-rag"] = "dp-rag"

    @property
    def slots(self) -> int:
        """n_retrieve, m times k'."""
        return self.voters * self.slots_per_voter

    @property
    def votes(self) -> int:
        """Of an answer at most: of each voter, and of who reads nothing, for each token."""
        return self.tokens * (self.voters + 1)

    def _check(self) -> None:
        # eps_expo · m / 2, with eps_expo = eps_0/2.
        _check_weights("epsilon_token", self.epsilon_token, self.voters)
        if self.slots > MAX_SLOTS:
            expected = f"1..{MAX_SLOTS // self.voters}"
            raise MalformedError("too many slots", where="slots_per_voter", expected=expected)


class KeywordVoting(PolicyMember):
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

    epsilon_choice: Annotated[Fraction, ratios(Fraction(1, 10**9))]
    sigma: Annotated[Fraction, ratios(Fraction(1, 100), _LARGEST_SIGMA)]
    delta_test: Annotated[Fraction, ratios(most=Fraction(1, 2))]
    delta_conversion: Annotated[Fraction, ratios(most=Fraction(1, 2))]
    voters: Annotated[int, Integer(1, MAX_RESPONSES)]
    sizes: Annotated[tuple[Annotated[int, Integer(1, MAX_KEYWORDS)], ...], Items(1, _MAX_SIZES)]
    stop_words: Annotated[
        tuple[Annotated[str, Text(0, 4 * LONGEST_WORD)], ...], Items(0, _MAX_STOP_WORDS)
    ]
    tokens: Annotated[int, Integer(1, MAX_RESPONSE_TOKENS)]
    final: Literal["model", "keywords"]
    kind: Literal["dp-ksa"] = "dp-ksa"

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

    def _check(self) -> None:
        # d_k / s at most, with s = 4/eps_em.
        _check_weights("epsilon_choice", self.epsilon_choice, self.voters)
        # One set, one spelling.
        if list(self.sizes) != sorted(set(self.sizes)):
            raise MalformedError("does not rise", where="sizes", expected="in order, each once")
        if list(self.stop_words) != sorted(set(self.stop_words)):
            expected = "in order, each once"
            raise MalformedError("does not rise", where="stop_words", expected=expected)
        # One that no text can hold would stop nothing.
        if any(words(each) != {each} for each in self.stop_words):
            expected = "letters and digits, case-folded"
            raise MalformedError("not a word", where="stop_words", expected=expected)


Answerer = TokenVoting | KeywordVoting


_ANSWERER: Final = OneOf(
    lambda value: isinstance(value, dict) and value.get("kind") == "dp-ksa",
    Nested(KeywordVoting),
    Nested(TokenVoting),
)

Mechanism = Literal["murag", "murag-ada", "naive"]
Proving = Literal["sampled", "all"]

_THRESHOLD: Final = OrNull(
    OneOf(lambda value: isinstance(value, dict), Nested(AdaptiveTerms), Integer(0, SQUARED_NORM))
)


class ChargeTerms(PolicyMember):
    """What charges are proven of.

    Attributes:
        prove: whether all charge entries are proven, or those of the sample.
        group: the most charge entries of one argument.
    """

    prove: Proving
    group: Annotated[int, Integer(1, 2**16)]


class ReplayTerms(PolicyMember):
    """How an answer is replayed.

    Attributes:
        differing_votes: how many votes of one answer may differ when it is replayed, without
            being a fault; where one does, nothing is established.
    """

    differing_votes: Annotated[int, Integer(0, 10**6)]


class GenerationTerms(PolicyMember):
    """What a policy says of its generation channel.

    Attributes:
        mechanism: "murag", "murag-ada" or "naive".
        answerer: of one question.
        epsilon: eps_q, of one question for each document that pays for it; under DP-KSA of all
            the uses of a document together, since divergences add up and epsilons do not.
        uses: M, 1..65536: uses of a document, under NAIVE questions of a tenant.
        threshold: tau in lattice units, 0..B², under MURAG; how a question finds its threshold,
            under MURAG-ADA; else None.
        charges: how they are proven.
        replay: None: no answer is replayed.
        generator: the committed model.
        answer_delay_seconds: between a charge and its answer.
        reuse: whether an account's identical request has its stored answer for the whole window,
            and not only within ``retry_seconds``.
    """

    mechanism: Mechanism
    answerer: Annotated[Answerer, _ANSWERER]
    epsilon: Ratio
    uses: Annotated[int, Integer(1, 2**16)]
    threshold: Annotated[int | AdaptiveTerms | None, _THRESHOLD]
    charges: ChargeTerms
    replay: ReplayTerms | None
    generator: GeneratorManifest
    answer_delay_seconds: Annotated[int, Integer(1, 3600)]
    reuse: bool

    @property
    def adaptive(self) -> AdaptiveTerms | None:
        """How a question finds its threshold, under MURAG-ADA; else None."""
        return self.threshold if isinstance(self.threshold, AdaptiveTerms) else None

    @property
    def differing_votes(self) -> int | None:
        """How many votes of one replayed answer may differ; None: no answer is replayed."""
        return None if self.replay is None else self.replay.differing_votes

    @property
    def vocabulary(self) -> VocabularyTerms:
        """Of the committed model, which is asked for tokens; not under DP-KSA."""
        assert self.generator.vocabulary is not None  # `_check` refuses whole answers
        return self.generator.vocabulary

    @property
    def token_voting(self) -> TokenVoting:
        """The answerer, where it is DP-RAG; UnsupportedError where it is another."""
        if not isinstance(self.answerer, TokenVoting):
            raise UnsupportedError("no votes on tokens", where="answerer.kind", expected="dp-rag")
        return self.answerer

    @property
    def charges_rows(self) -> bool:
        """Whether documents pay: there are budgets, and arguments about them."""
        return self.mechanism != "naive"

    @property
    def answer_epsilon(self) -> Fraction:
        """What the answer to a question has of eps_q: all but what counting has cost."""
        return self.epsilon - (self.adaptive.epsilon if self.adaptive else 0)

    @property
    def replays(self) -> bool:
        """Whether sampled answers are recomputed; otherwise the claim is conditional."""
        return self.differing_votes is not None

    def _check(self) -> None:
        due = {"murag": int, "murag-ada": AdaptiveTerms, "naive": NoneType}[self.mechanism]
        if type(self.threshold) is not due:
            what = f"not a threshold of {self.mechanism}"
            raise MalformedError(what, where="threshold", expected="integer, object or null")
        if isinstance(self.answerer, TokenVoting):
            # Not one private token: documents would pay for what they are not asked for.
            least = self.answerer.epsilon_token
            least += self.adaptive.epsilon if self.adaptive else 0
            if self.epsilon < least:
                expected = f"at least {least}"
                raise MalformedError("buys no token", where="epsilon", expected=expected)
            if self.generator.vocabulary is None:
                expected = "one with a vocabulary"
                raise MalformedError("whole answers", where="generator", expected=expected)
        else:
            self._check_keywords(self.answerer)
        # Nothing tells which rows are the best of all of them: an answer would prove nothing.
        if self.mechanism == "naive" and self.replay is not None:
            raise MalformedError("a replay under naive", where="replay", expected="null")
        # Nothing else ties the released sums to the index.
        if self.mechanism == "murag-ada" and self.replay is None:
            raise MalformedError("null under murag-ada", where="replay", expected="an object")

    def _check_keywords(self, answerer: KeywordVoting) -> None:
        # There is no epsilon of one answer that the others could charge.
        if self.mechanism != "murag":
            what = f"dp-ksa under {self.mechanism}"
            raise UnsupportedError(what, where="mechanism", expected="murag")
        if answerer.delta(self.uses) >= 1:
            expected = "fewer, or smaller deltas"
            raise MalformedError("a delta of 1 says nothing", where="uses", expected=expected)
        if self.generator.keywords is None:
            expected = "one with a prompt for keywords"
            raise MalformedError("a model of tokens", where="generator", expected=expected)
