"""Generated answers by keywords and sums: what is counted, and what is released."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.selection import scores
from ragaudit.lab.attacks.cheats.generation import constructed
from ragaudit.lab.scenario.generating import AdaptiveWindow, AnsweringModel, Charged, KeywordWindow
from ragaudit.privacy.mechanisms.dp_ksa import (
    DpKsa,
    KeywordAnswer,
    ResponseVoters,
    gaps,
    keywords,
)
from ragaudit.privacy.mechanisms.samplers import Coins

# --- keywords ------------------------------------------------------------------------------------


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


@constructed("failed-test-answered", checks=("replay",), reason="other keywords")
class AnswersAFailedTest(_NothingPasses):
    """Releases keywords although their gap did not pass the noisy test.

    Check 30 (`replay`) draws the noise of the test again.
    """

    def keyword_mechanism(self) -> DpKsa:
        return _as(_Untested, super().keyword_mechanism())


@constructed("observed-sizes-only", checks=("replay",), reason="other keywords")
class ChoosesAmongObservedSizes(KeywordWindow):
    """Chooses the number of keywords among those that the responses have.

    Which sizes these are is told for free.

    Check 30 (`replay`) chooses among all sizes of the policy, which here are nearly alike.
    """

    epsilon_choice = Fraction(1, 1000)
    sizes = tuple(range(1, 65))

    def keyword_mechanism(self) -> DpKsa:
        return _as(_ChoosesObserved, super().keyword_mechanism())


@constructed("another-number-of-keywords", checks=("replay",), reason="other keywords")
class ReleasesAnotherSize(KeywordWindow):
    """Releases another number of keywords than the coins chose.

    Check 30 (`replay`).
    """

    sizes = (1, 2)

    def keyword_mechanism(self) -> DpKsa:
        return _as(_OtherSize, super().keyword_mechanism())


@constructed("keywords-of-one-voter", checks=("replay",), reason="other keywords")
class ReleasesOneVotersWords(_NothingPasses):
    """Releases the words of one voter, whatever the others say.

    It is the first voter.

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


@constructed(
    "answers-of-another-model",
    checks=("replay",),
    reason="votes are not those of the committed model",
)
class AsksAnotherModelForAnswers(KeywordWindow):
    """Takes the whole answers of another model as votes.

    Check 30 (`replay`) asks the verifier's own.
    """

    @property
    def answering(self) -> ResponseVoters:
        return _Other()


@constructed(
    "text-of-no-keyword",
    checks=("replay",),
    reason="the final text is not that of the released keywords",
)
class AddsAWordToTheText(KeywordWindow):
    """Puts a word into the final text that was not released.

    Check 30 (`replay`): the verifier's own model writes it from question and keywords.
    """

    def final_text(self, found: KeywordAnswer) -> str:
        return super().final_text(found) + " kolupe"


@constructed("epsilon-below-the-uses", checks=("policy",), reason="uses of a document")
class StatesHalfTheEpsilon(KeywordWindow):
    """States half of the epsilon that the uses of a document cost.

    Check 1 (`policy`) computes it.
    """

    def epsilon(self) -> Fraction:
        return super().epsilon() / 2


@constructed("delta-above-the-terms", checks=("policy",), reason="the delta of one document")
class StatesALargeDelta(KeywordWindow):
    """States a delta that is above that of the verifier's terms.

    Check 1 (`policy`): it is above that of the verifier's terms.
    """

    delta_test = Fraction(1, 1000)


# --- sums of votes -------------------------------------------------------------------------------


@constructed(
    "counts-without-noise", checks=("replay",), reason="rows and coins give other sums", slow=False
)
class ReleasesExactCounts(AdaptiveWindow):
    """Releases exact counts as sums.

    They are those of the second question, whose threshold is as they say.

    Check 30 (`replay`): the noise is that of the coins.
    """

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        if not self.lies:
            return super().count(counts, coins)
        sums = list(accumulate(counts))
        read = sum(total <= self.adaptive.enough for total in sums)
        return tuple(sums[: read + 1])

    @property
    def lies(self) -> bool:
        """Whether the next charge entry is the one that lies."""
        return len(self.charged) == 1


@constructed(
    "counts-of-a-void-without-noise", checks=("replay",), reason="rows and coins give other sums"
)
class ReleasesExactCountsOfAVoid(ReleasesExactCounts):
    """Releases exact counts of a question, and voids it.

    Check 30 (`replay`): sums are released whatever becomes of the answer.
    """

    @property
    def lies(self) -> bool:
        return len(self.charged) == 2


@constructed(
    "sums-of-another-question", checks=("replay",), reason="rows and coins give other sums"
)
class RepeatsTheSums(AdaptiveWindow):
    """Releases the sums of the question before.

    The second question has those of the first, which was alike.

    Check 30 (`replay`): each question has coins of its own.
    """

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        return (
            self.charged[0].charge.sums if len(self.charged) == 1 else super().count(counts, coins)
        )


@constructed("reading-stopped-early", checks=("charges",), reason="bins were read")
class StopsABinEarly(AdaptiveWindow):
    """Stops counting although the sum is not above what is enough.

    The first question reads a bin less, and saves the documents of that bin.

    Check 27 (`charges`): where reading stops is a function of the sums.
    """

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        honest = super().count(counts, coins)
        return honest if self.charged else honest[:-1]

    def stated_threshold(self, sums: Sequence[int]) -> int:
        return self.adaptive.edges[len(sums) - 1]


@constructed("reading-stopped-late", checks=("charges",), reason="bins were read")
class StopsABinLate(AdaptiveWindow):
    """Counts on although the sum is above what is enough.

    The first question reads a bin more, and drains the documents of that bin.

    Check 27 (`charges`).
    """

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        honest = super().count(counts, coins)
        if self.charged:
            return honest
        more = honest[-1] + counts[len(honest)] + int(coins.laplace(1 / self.adaptive.epsilon))
        return (*honest, more)

    def stated_threshold(self, sums: Sequence[int]) -> int:
        return self.adaptive.edges[len(sums) - 1]


@constructed("threshold-of-another-bin", checks=("charges",), reason="as the released sums say")
class StatesAnotherThreshold(AdaptiveWindow):
    """Charges documents down to a bin that was not read.

    It does so for the first question.

    Check 27 (`charges`): tau_t is the lower edge of the last bin that was read.
    """

    def stated_threshold(self, sums: Sequence[int]) -> int:
        below = 0 if self.charged else 1
        return self.adaptive.edges[len(sums) - 1 + below]


@constructed("counted-document-uncharged", checks=("charges",), reason="charge entry")
class LeavesACountedRowUncharged(AdaptiveWindow):
    """Counts a document, and leaves it out of the charge.

    That document then answers longer than others.

    Check 27 (`charges`): every live document above the threshold pays.
    """

    def due_rows(
        self, tenant: str, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, ...]:
        due = super().due_rows(tenant, embedding, allowed)
        exact = scores(self.indices[tenant].vectors, embedding)
        best = max(due, key=lambda i: int(exact[i]), default=None)
        return due if self.charged else tuple(i for i in due if i != best)
