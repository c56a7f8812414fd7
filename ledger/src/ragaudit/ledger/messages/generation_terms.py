"""The generation channel in a policy (docs/spec/11-generation.md §11.8), read strictly.

Epsilons are exact fractions: what a document has left is compared with what a question costs, and
no rounding may decide that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, Literal, cast

from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.encoding.text import LONGEST_WORD, parse_ratio, words
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.manifests import GeneratorManifest, VocabularyTerms


def read_ratio(f: Fields, name: str, *, least: Fraction | None = None) -> Fraction:
    """Return an exact fraction of one spelling, above 0 or at least ``least``; MalformedPolicy."""
    text = f.raw(name)
    try:
        value = parse_ratio(text if isinstance(text, str) else "")
    except MalformedError as error:
        raise f.error(name, error.what, error.expected or "") from error
    if value < least if least is not None else value <= 0:
        raise f.error(name, "out of range", "above 0" if least is None else f"at least {least}")
    return value


MAX_BINS: Final = 64
_MAX_ENOUGH: Final = 2**32
_LARGEST_SCALE: Final = 2**16
"""Of the noise of a count (11.2), which is 1/eps_thr."""
_LARGEST_EPSILON: Final = 44
"""Of a count: with more there is no noise to speak of."""


@dataclass(frozen=True, slots=True)
class AdaptiveTerms:
    """Bins of scores, read from the highest down until there is enough.

    Attributes:
        edges: the lower edge of each bin, falling, 0..B², 1 to 64 of them. A bin reaches from its
            edge, which is not in it, up to the edge before, and the first one up to B². So there is
            no gap, and the rows that were counted are all those above the last edge.
        epsilon: eps_thr, of one count, 2^-16..44.
        enough: reading stops after the first released sum above it, 0..2^32.
    """

    edges: tuple[int, ...]
    epsilon: Fraction
    enough: int

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

    @classmethod
    def read(cls, value: Any, where: str) -> "AdaptiveTerms":
        """Return the terms of a JSON value; MalformedPolicy."""
        f = Fields(value, "edges epsilon enough", MalformedPolicy, where)
        edges = f.integers("edges", (1, MAX_BINS), 0, SQUARED_NORM)
        if any(below >= above for above, below in pairwise(edges)):
            raise f.error("edges", "edges that do not fall", "each below the one before")
        epsilon = read_ratio(f, "epsilon", least=Fraction(1, _LARGEST_SCALE))
        if epsilon > _LARGEST_EPSILON:
            raise f.error("epsilon", "out of range", f"at most {_LARGEST_EPSILON}")
        return cls(
            edges=edges,
            epsilon=epsilon,
            enough=f.integer("enough", 0, _MAX_ENOUGH),
        )


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


Mechanism = Literal["murag", "murag-ada", "naive"]
Proving = Literal["sampled", "all"]

_MEMBERS = """mechanism answerer epsilon uses threshold charges replay generator
    answer_delay_seconds reuse"""


@dataclass(frozen=True, slots=True)
class GenerationTerms:
    """What a policy says of its generation channel.

    Attributes:
        mechanism: "murag", "murag-ada" or "naive".
        answerer: of one question.
        epsilon: eps_q, of one question for each document that pays for it; under DP-KSA of all
            the uses of a document together, since divergences add up and epsilons do not.
        uses: M, 1..65536: uses of a document, under NAIVE questions of a tenant.
        threshold: tau in lattice units, 0..B², under MURAG; else None.
        adaptive: how a question finds its threshold, under MURAG-ADA; else None.
        prove: whether all charge entries are proven, or those of the sample.
        group: the most charge entries of one argument, 1..65536.
        differing_votes: how many votes of one answer may differ when it is replayed, without
            being a fault; where one does, nothing is established. None: no answer is replayed.
        generator: the committed model.
        answer_delay_seconds: between a charge and its answer.
        reuse: whether an account's identical request has its stored answer for the whole window,
            and not only within ``retry_seconds``.
    """

    mechanism: Mechanism
    answerer: Answerer
    epsilon: Fraction
    uses: int
    threshold: int | None
    adaptive: AdaptiveTerms | None
    prove: Proving
    group: int
    differing_votes: int | None
    generator: GeneratorManifest
    answer_delay_seconds: int
    reuse: bool

    @property
    def vocabulary(self) -> VocabularyTerms:
        """Of the committed model, which is asked for tokens; not under DP-KSA."""
        assert self.generator.vocabulary is not None  # `read` refuses whole answers
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

    @classmethod
    def read(cls, f: Fields, *, noised: bool) -> "GenerationTerms":
        """Return the terms among the members of a policy.

        Args:
            f: the policy, with a member ``generation``.
            noised: of the window: without it no keys are committed to that coins could come from.

        Raises:
            MalformedPolicy: ill-typed or out of range.
            UnsupportedError: a mechanism, or a window, that cannot be served.
        """
        where = f.path("generation")
        if not noised or f.raw("versions") is True or "text" not in f.raw("query_kinds"):
            raise UnsupportedError(
                "no generation channel in such a window",
                where=where,
                expected='privacy "gaussian", one version of each index, and texts as queries',
            )
        g = Fields(f.raw("generation"), _MEMBERS, MalformedPolicy, where)
        mechanism = cast("Mechanism", g.choice("mechanism", "murag", "murag-ada", "naive"))
        threshold = adaptive = None
        if mechanism == "murag":
            threshold = g.integer("threshold", 0, SQUARED_NORM)
        elif mechanism == "murag-ada":
            adaptive = AdaptiveTerms.read(g.raw("threshold"), g.path("threshold"))
        else:
            g.constant("threshold", None)
        epsilon = read_ratio(g, "epsilon")
        answerer = read_answerer(g.raw("answerer"), g.path("answerer"))
        generator = g.message("generator", GeneratorManifest)
        uses = g.integer("uses", 1, 2**16)
        if isinstance(answerer, TokenVoting):
            # Not one private token: documents would pay for what they are not asked for.
            least = answerer.epsilon_token + (adaptive.epsilon if adaptive else 0)
            if epsilon < least:
                raise g.error("epsilon", "buys no token", f"at least {least}")
            if generator.vocabulary is None:
                raise g.error("generator", "a model of whole answers", "one with a vocabulary")
        else:
            # There is no epsilon of one answer that the others could charge.
            if mechanism != "murag":
                kind = g.path("mechanism")
                raise UnsupportedError(f"dp-ksa under {mechanism}", where=kind, expected="murag")
            # A divergence of g rows at once is none of g times one row.
            if f.raw("rows_per_document") != 1:
                what = "dp-ksa with documents of several rows"
                raise UnsupportedError(what, where=f.path("rows_per_document"), expected="1")
            if answerer.delta(uses) >= 1:
                raise g.error("uses", "a delta of 1 says nothing", "fewer, or smaller deltas")
            if generator.keywords is None:
                raise g.error("generator", "a model of tokens", "one with a prompt for keywords")
        charges = Fields(g.raw("charges"), "prove group", MalformedPolicy, g.path("charges"))
        differing = None
        # Nothing tells which rows are the best of all of them: an answer would prove nothing.
        if mechanism == "naive":
            g.constant("replay", None)
        # Nothing else ties the released sums to the index.
        elif g.raw("replay") is None and mechanism == "murag-ada":
            raise g.error("replay", "null under murag-ada", "an object")
        elif g.raw("replay") is not None:
            replay = Fields(g.raw("replay"), "differing_votes", MalformedPolicy, g.path("replay"))
            differing = replay.integer("differing_votes", 0, 10**6)
        return cls(
            mechanism=mechanism,
            answerer=answerer,
            epsilon=epsilon,
            uses=uses,
            threshold=threshold,
            adaptive=adaptive,
            prove=cast("Proving", charges.choice("prove", "sampled", "all")),
            group=charges.integer("group", 1, 2**16),
            differing_votes=differing,
            generator=generator,
            answer_delay_seconds=g.integer("answer_delay_seconds", 1, 3600),
            reuse=g.boolean("reuse"),
        )
