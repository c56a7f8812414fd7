"""Checks answers, generator and replay: answers that are not what votes and coins give."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from ragaudit.lab.attacks.cheats.generation import constructed
from ragaudit.lab.scenario.generating import Charged, CopyGenerator, GeneratingWindow
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.policy import SMALL_TERMS
from ragaudit.ledger.messages.entries import Charge
from ragaudit.ledger.messages.items import replay_name
from ragaudit.ledger.messages.manifests import GeneratorManifest
from ragaudit.privacy.mechanisms.dp_rag import TokenAnswer, TokenVoters
from ragaudit.privacy.mechanisms.retrieval import Row, best_rows, top_slots
from ragaudit.privacy.mechanisms.samplers import Coins
from ragaudit.verifier.terms import Terms

TOLERATES: Final = Terms.of({**SMALL_TERMS.to_json(), "most_differing_votes": 10**6})


@constructed("answered-before-charged", checks=("answers",), reason="before its charge entry")
class AnswersFirst(GeneratingWindow):
    """Logs an answer before the charge that pays for it.

    Check 28 (`answers`).
    """

    def script(self) -> list[Event]:
        return [event for event in super().script() if event != ("reply", 1, 5)]

    def log_charge(self, found: Charged) -> None:
        if len(self.charged) != 1:
            super().log_charge(found)
            return
        found.index = self.tree.size + 1
        self.charged.append(found)
        self.reply(1, 5)
        self.append(Charge.KIND, found.body)


@constructed("answered-twice", checks=("answers",), reason="was answered before")
class AnswersTwice(GeneratingWindow):
    """Draws a second answer for one charge.

    Each document pays one use for two draws.

    Check 28 (`answers`): one answer for each charge entry.
    """

    def script(self) -> list[Event]:
        return [*super().script()[:-1], ("again", 1, 19), ("checkpoint", 20)]

    def again(self, number: int, time: int) -> None:
        """Log another answer to a charged question; arguments as of `reply`."""
        held = self.charged[number]
        kept = held.votes, held.used, held.answer, held.salt_a, held.reply
        self.reply(number, time)
        held.votes, held.used, held.answer, held.salt_a, held.reply = kept


@constructed("charge-unanswered", checks=("answers",), reason="neither answered nor void")
class AnswersNothing(GeneratingWindow):
    """Leaves a charge without an answer or a void.

    Check 28 (`answers`).
    """

    def script(self) -> list[Event]:
        return [event for event in super().script() if event != ("reply", 1, 5)]


@constructed("answer-dated-back", checks=("answers",), reason="earlier than the account's")
class DatesAnAnswerBack(GeneratingWindow):
    """Dates an answer before its charge.

    Check 28 (`answers`).
    """

    def script(self) -> list[Event]:
        return [("reply", 0, 0) if each == ("reply", 0, 4) else each for each in super().script()]


@constructed(
    "probes-of-another-model", checks=("generator",), reason="answers otherwise than was committed"
)
class CommitsToAnotherModel(GeneratingWindow):
    """Commits to probes of another model.

    Check 29 (`generator`) asks the verifier's own.
    """

    def generator_manifest(self) -> GeneratorManifest:
        honest = super().generator_manifest()
        first, *others = honest.probes
        return replace(honest, probes=(replace(first, answer=" patient"), *others))


@constructed(
    "uncharged-document-used", checks=("replay",), reason="other rows were used", slow=False
)
class UsesAnUnchargedRow(GeneratingWindow):
    """Lets a voter read a document that did not pay.

    It is a voter of the first answer.

    Check 30 (`replay`): the best of the charged rows are used, and no others.
    """

    def slot_texts(self, asked: Charged) -> list[str]:
        if asked is not self.charged[0]:
            return super().slot_texts(asked)
        uncharged = next(i for i in range(self.rows) if i not in asked.positions)
        rows = [*self.ranked(asked, asked.positions)[:-1], *self.ranked(asked, [uncharged])]
        asked.used = tuple(sorted(row.id for row in rows))
        return top_slots(rows, self.mechanism.slots)


@constructed("slots-by-content", checks=("replay",), reason="other rows were used")
class PicksSlotsByContent(GeneratingWindow):
    """Chooses among the charged documents by what they say.

    It does not use the best of them.

    Check 30 (`replay`).
    """

    threshold = 0
    """More rows are charged than voters can read."""

    def ranked(self, asked: Charged, positions: Sequence[int]) -> list[Row]:
        texts = self.indices[asked.charge.tenant].texts
        chosen = [Row(i, Fraction(-i), texts[i]) for i in positions]
        return best_rows(chosen, self.mechanism.slots)


class _Ranked:
    """Coins of a mechanism that gives each voter its rank."""

    def __init__(self, inner: Coins) -> None:
        self._inner = inner
        self.laplace, self.gaussian, self.choose = inner.laplace, inner.gaussian, inner.choose

    def permutation(self, size: int) -> list[int]:
        """Return the ranks as they are."""
        self._inner.permutation(size)
        return list(range(size))


@constructed(
    "voters-by-rank", checks=("replay",), reason="votes are not those of the committed model"
)
class VotesByRank(GeneratingWindow):
    """Gives each document the voter of its rank.

    Check 30 (`replay`): voters get slots in an order that the record's key gives.
    """

    def generate(
        self, asked: Charged, slots: Sequence[str], voters: TokenVoters, coins: Coins
    ) -> TokenAnswer:
        return super().generate(asked, slots, voters, _Ranked(coins))


class _Observed:
    """Coins that choose among the candidates with a vote only."""

    def __init__(self, inner: Coins) -> None:
        self._inner = inner
        self.laplace, self.gaussian = inner.laplace, inner.gaussian
        self.permutation = inner.permutation

    def choose(
        self, utilities: Mapping[int, Fraction], size: int, *, most: int, scale: Fraction
    ) -> int:
        """Return one of the observed candidates."""
        seen = sorted(utilities) or [0]
        few = {place: utilities.get(each, Fraction(0)) for place, each in enumerate(seen)}
        return seen[self._inner.choose(few, len(seen), most=most, scale=scale)]


@constructed("observed-tokens-only", checks=("replay",), reason="votes and coins give other tokens")
class ChoosesAmongObservedTokens(GeneratingWindow):
    """Runs the exponential mechanism over tokens with a vote only.

    Which tokens these are is told for free.

    Check 30 (`replay`): it runs over the whole vocabulary.
    """

    epsilons = ("3/2", "1/2")

    def generate(
        self, asked: Charged, slots: Sequence[str], voters: TokenVoters, coins: Coins
    ) -> TokenAnswer:
        return super().generate(asked, slots, voters, _Observed(coins))


class _Other(CopyGenerator):
    """Another model: every voter names one token."""

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int | None]:
        public, *votes = super().next_tokens(question, documents, answer)
        return [public, *(5 for _ in votes)]


class _Agreeing(CopyGenerator):
    """A model that says without a document what most voters say with theirs."""

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int | None]:
        public, *votes = super().next_tokens(question, documents, answer)
        return [Counter(votes).most_common(1)[0][0] if votes else public, *votes]


@constructed(
    "tolerance-above-the-terms", checks=("policy",), reason="votes of an answer that may differ"
)
class Tolerant(GeneratingWindow):
    """Lets more votes differ than the verifier's terms do.

    The policy has a million votes of an answer differ, with nothing that pays for them.

    Check 1 (`policy`): the verifier's terms allow none.
    """

    def terms_json(self) -> dict[str, Any]:
        return {**super().terms_json(), "replay": {"differing_votes": 10**6}}


@constructed(
    "votes-of-another-model",
    checks=("replay",),
    reason="votes are not those of the committed model",
)
class AsksAnotherModel(GeneratingWindow):
    """Takes the votes of another model.

    Check 30 (`replay`) asks the verifier's own.
    """

    @property
    def voters(self) -> TokenVoters:
        return _Other()


@constructed(
    "free-branch-taken",
    checks=("replay",),
    given={"terms": TOLERATES},
    reason="the vote that reads no document",
    slow=False,
)
class TakesTheFreeBranch(Tolerant):
    """Says that the model that reads no document agrees with those that do.

    Check 30 (`replay`): the policy lets votes differ, and that one never does.
    """

    @property
    def voters(self) -> TokenVoters:
        return _Agreeing()


@constructed(
    "votes-invented-within-a-tolerance",
    checks=("replay",),
    given={"terms": TOLERATES},
    reason="votes differ, as the policy tolerates",
    conditional=True,
)
class InventsVotesWithinATolerance(Tolerant):
    """Invents every vote, as far as the policy lets votes differ.

    Check 30 (`replay`) establishes nothing where one does.
    """

    @property
    def voters(self) -> TokenVoters:
        return _Other()


@constructed(
    "enormous-replay", checks=("replay",), reason="replay: 12000004 bytes (expected at most"
)
class SendsAnEnormousReplay(GeneratingWindow):
    """Shows a replay that is longer than any of the policy.

    The first answer's replay is a list of millions of lists.

    Check 30 (`replay`): how long one may be follows from policy and index, and a longer one is
    not parsed.
    """

    def items(self) -> dict[str, bytes]:
        enormous = b"[" + b"[]," * 4_000_000 + b"[]]"
        return {**super().items(), replay_name(self.charged[0].index): enormous}


@constructed("answer-of-no-vote", checks=("replay",), reason="votes and coins give other tokens")
class AnswersSomethingElse(GeneratingWindow):
    """Answers something that votes and coins do not give.

    It is the first answer.

    Check 30 (`replay`).
    """

    def generate(
        self, asked: Charged, slots: Sequence[str], voters: TokenVoters, coins: Coins
    ) -> TokenAnswer:
        found = super().generate(asked, slots, voters, coins)
        other = tuple(token + 1 if token else token for token in found.tokens)
        return replace(found, tokens=other) if asked is self.charged[0] else found


@constructed("charges-unsampled", checks=("sampling",), reason="the sample is not the one")
class SamplesNoCharges(GeneratingWindow):
    """Draws a challenge without any charge entry.

    Check 16 (`sampling`) draws them too.
    """

    def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
        strata = super().draw_sample(receipts)
        return [each for each in strata if not each["id"].startswith("charges:")]
