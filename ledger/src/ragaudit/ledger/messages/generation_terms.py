"""The generation channel in a policy (docs/spec/11-generation.md §11.8), read strictly.

Epsilons are exact fractions: what a document has left is compared with what a question costs, and
no rounding may decide that.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, cast

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.messages.adaptive_terms import AdaptiveTerms
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.generator_manifest import GeneratorManifest, VocabularyTerms
from ragaudit.ledger.messages.ratios import read_ratio

__all__ = ["GenerationTerms", "Mechanism", "TokenVoting"]

Mechanism = Literal["murag", "murag-ada", "naive"]
Proving = Literal["sampled", "all"]

MAX_SLOTS: Final = 2**16
MAX_TOKENS: Final = 4096  # of an answer
LARGEST_EXPONENT: Final = 44
"""Of a weight of the exponential mechanism (11.2): above it weights would be rounded away."""

_MEMBERS = """mechanism answerer epsilon uses threshold charges replay generator
    answer_delay_seconds reuse"""


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

    @classmethod
    def read(cls, value: Any, where: str) -> "TokenVoting":
        """Return the terms of a JSON value; MalformedPolicy, UnsupportedError."""
        names = "kind epsilon_token voters slots_per_voter threshold tokens"
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind == "dp-ksa":
            raise UnsupportedError("not supported", where=f"{where}.kind", expected="dp-rag")
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
class GenerationTerms:
    """What a policy says of its generation channel.

    Attributes:
        mechanism: "murag", "murag-ada" or "naive".
        answerer: of one question.
        epsilon: eps_q, of one question for each document that pays for it.
        uses: M, 1..65536: uses of a document, under NAIVE questions of a tenant.
        threshold: tau in lattice units, 0..B², under MURAG; else None.
        adaptive: how a question finds its threshold, under MURAG-ADA; else None.
        prove: whether all charge entries are proven, or those of the sample.
        group: the most charge entries of one argument, 1..65536.
        differing_votes: how many votes of one answer may differ when it is replayed; None: no
            answer is.
        generator: the committed model.
        answer_delay_seconds: between a charge and its answer.
        reuse: whether an account's identical request has its stored answer for the whole window,
            and not only within ``retry_seconds``.
    """

    mechanism: Mechanism
    answerer: TokenVoting
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
        """Of the committed model."""
        assert self.generator.vocabulary is not None  # `read` refuses whole answers
        return self.generator.vocabulary

    @property
    def charges_rows(self) -> bool:
        """Whether documents pay: there are budgets, and arguments about them."""
        return self.mechanism != "naive"

    @property
    def answer_epsilon(self) -> Fraction:
        """What the answer to a question has of eps_q: all but what counting has cost."""
        return self.epsilon - (self.adaptive.epsilon if self.adaptive else 0)

    @property
    def total_epsilon(self) -> Fraction:
        """M · eps_q: of one document changed to or from a null row, for all questions together."""
        return self.uses * self.epsilon

    @property
    def replays(self) -> bool:
        """Whether sampled answers are recomputed; otherwise the claim is conditional."""
        return self.differing_votes is not None

    @classmethod
    def read(cls, f: Fields, *, noised: bool) -> "GenerationTerms":
        """Return the terms among the members of a policy of version 2.

        Args:
            f: the policy, with a member ``generation``.
            noised: of the window: without it no keys are committed to that coins could come from.

        Raises:
            MalformedPolicy: ill-typed or out of range.
            UnsupportedError: a mechanism, or a window, that this version does not serve.
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
        answerer = TokenVoting.read(g.raw("answerer"), g.path("answerer"))
        # Not one private token: documents would pay for what they are not asked for.
        least = answerer.epsilon_token + (adaptive.epsilon if adaptive else 0)
        if epsilon < least:
            raise g.error("epsilon", "buys no token", f"at least {least}")
        generator = g.message("generator", GeneratorManifest)
        if generator.vocabulary is None:
            raise g.error("generator", "a model of whole answers", "one with a vocabulary")
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
            uses=g.integer("uses", 1, 2**16),
            threshold=threshold,
            adaptive=adaptive,
            prove=cast("Proving", charges.choice("prove", "sampled", "all")),
            group=charges.integer("group", 1, 2**16),
            differing_votes=differing,
            generator=generator,
            answer_delay_seconds=g.integer("answer_delay_seconds", 1, 3600),
            reuse=g.boolean("reuse"),
        )
