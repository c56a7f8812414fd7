"""The generation channel in a policy (docs/spec/11-generation.md §11.8), read strictly.

Epsilons are exact fractions: what a document has left is compared with what a question costs, and
no rounding may decide that.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, cast

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.messages.adaptive_terms import AdaptiveTerms
from ragaudit.ledger.messages.answerers import (
    Answerer,
    TokenVoting,
    read_answerer,
)
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.generator_manifest import GeneratorManifest, VocabularyTerms
from ragaudit.ledger.messages.ratios import read_ratio

__all__ = ["GenerationTerms", "Mechanism"]

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
