"""Checks policy and replay where DP-KSA answers: keywords, texts and losses that are not due."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Final

from ragaudit.lab.attacks.cheats.generation import constructed
from ragaudit.lab.scenario.charging import Charged
from ragaudit.lab.scenario.keywords import AnsweringModel, KeywordWindow
from ragaudit.privacy.mechanisms.dp_ksa import (
    DpKsa,
    KeywordAnswer,
    ResponseVoters,
    gaps,
    keywords,
)
from ragaudit.privacy.mechanisms.samplers import Coins


class _NothingPasses(KeywordWindow):
    """The noise of the test is far larger than any gap of the voters."""

    test_sigma = Fraction(8)


class _Untested(DpKsa):
    """Every gap passes."""

    def passes(self, gap: int, coins: Coins) -> bool:
        """Draw as is due, and let it pass."""
        super().passes(gap, coins)
        return True


class _ChoosesObserved(DpKsa):
    """Chooses among the sizes with a gap, which are those that the responses have."""

    def choose_size(self, counts: Mapping[str, int], coins: Coins) -> int:
        """Return the first size with a gap."""
        super().choose_size(counts, coins)
        return 1 + next(place for place, gap in enumerate(gaps(counts, len(counts))) if gap)


class _OtherSize(_Untested):
    """Chooses the other one of two sizes."""

    def choose_size(self, counts: Mapping[str, int], coins: Coins) -> int:
        """Return the size that was not drawn."""
        return 3 - super().choose_size(counts, coins)


def _as(kind: type[DpKsa], honest: DpKsa) -> DpKsa:
    return kind(**{each.name: getattr(honest, each.name) for each in fields(DpKsa)})


class AnswersAFailedTest(_NothingPasses):
    """The set is released although its gap did not pass.

    Check 30 (`replay`) draws the noise of the test again.
    """

    def keyword_mechanism(self) -> DpKsa:
        return _as(_Untested, super().keyword_mechanism())


class ChoosesAmongObservedSizes(KeywordWindow):
    """The size is one that the responses have a gap at: which those are is told for free.

    Check 30 (`replay`) chooses among all sizes of the policy, which here are nearly alike.
    """

    epsilon_choice = Fraction(1, 1000)
    sizes = tuple(range(1, 65))

    def keyword_mechanism(self) -> DpKsa:
        return _as(_ChoosesObserved, super().keyword_mechanism())


class ReleasesAnotherSize(KeywordWindow):
    """Another number of keywords is released than the coins chose.

    Check 30 (`replay`).
    """

    sizes = (1, 2)

    def keyword_mechanism(self) -> DpKsa:
        return _as(_OtherSize, super().keyword_mechanism())


class ReleasesOneVotersWords(_NothingPasses):
    """The keywords are those of the first voter, whatever the others say.

    Check 30 (`replay`).
    """

    def release(
        self, asked: Charged, slots: Sequence[str], voters: ResponseVoters, coins: Coins
    ) -> KeywordAnswer:
        super().release(asked, slots, voters, coins)
        question = asked.request.query
        first = keywords(voters.responses(question, slots)[0], frozenset())
        released = tuple(sorted(first))
        return KeywordAnswer(voters.final(question, released), released)


class _Other(AnsweringModel):
    """Another model: every voter says the same."""

    def responses(self, question: str, documents: Sequence[str]) -> list[str]:
        return [" tofuna"] * len(documents)


class AsksAnotherModelForAnswers(KeywordWindow):
    """The votes are those of another model than the committed one.

    Check 30 (`replay`) asks the verifier's own.
    """

    @property
    def answering(self) -> ResponseVoters:
        return _Other()


class AddsAWordToTheText(KeywordWindow):
    """The final text has a word that was not released.

    Check 30 (`replay`): the verifier's own model writes it from question and keywords.
    """

    def final_text(self, found: KeywordAnswer) -> str:
        return super().final_text(found) + " kolupe"


class StatesHalfTheEpsilon(KeywordWindow):
    """The policy states half of what the uses of a document cost.

    Check 1 (`policy`) computes it.
    """

    def epsilon(self) -> Fraction:
        return super().epsilon() / 2


class StatesALargeDelta(KeywordWindow):
    """The policy has a delta that says little.

    Check 1 (`policy`): it is above that of the verifier's terms.
    """

    delta_test = Fraction(1, 1000)


CHEATS: Final = (
    constructed(
        name="failed-test-answered",
        description="Releases keywords although their gap did not pass the noisy test.",
        window=AnswersAFailedTest,
        checks=("replay",),
        reason="other keywords",
    ),
    constructed(
        name="observed-sizes-only",
        description="Chooses the number of keywords among those that the responses have.",
        window=ChoosesAmongObservedSizes,
        checks=("replay",),
        reason="other keywords",
    ),
    constructed(
        name="another-number-of-keywords",
        description="Releases another number of keywords than the coins chose.",
        window=ReleasesAnotherSize,
        checks=("replay",),
        reason="other keywords",
    ),
    constructed(
        name="keywords-of-one-voter",
        description="Releases the words of one voter, whatever the others say.",
        window=ReleasesOneVotersWords,
        checks=("replay",),
        reason="other keywords",
    ),
    constructed(
        name="answers-of-another-model",
        description="Takes the whole answers of another model as votes.",
        window=AsksAnotherModelForAnswers,
        checks=("replay",),
        reason="votes are not those of the committed model",
    ),
    constructed(
        name="text-of-no-keyword",
        description="Puts a word into the final text that was not released.",
        window=AddsAWordToTheText,
        checks=("replay",),
        reason="the final text is not that of the released keywords",
    ),
    constructed(
        name="epsilon-below-the-uses",
        description="States half of the epsilon that the uses of a document cost.",
        window=StatesHalfTheEpsilon,
        checks=("policy",),
        reason="uses of a document",
    ),
    constructed(
        name="delta-above-the-terms",
        description="States a delta that is above that of the verifier's terms.",
        window=StatesALargeDelta,
        checks=("policy",),
        reason="the delta of one document",
    ),
)
