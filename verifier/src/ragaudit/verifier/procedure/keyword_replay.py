"""Answers of DP-KSA that are computed again (docs/spec/11-generation.md §11.5, §11.12)."""

from collections.abc import Sequence

from ragaudit.encoding.errors import RejectedError, UnavailableError
from ragaudit.ledger.messages.answerers import KeywordVoting
from ragaudit.ledger.messages.generated_answers import GeneratedKeywords
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa, counted
from ragaudit.privacy.mechanisms.samplers import Coins
from ragaudit.verifier.models import AnswerGenerator

__all__ = ["OTHER_KEYWORDS", "OTHER_VOTES", "StatedResponses", "check_keywords"]

OTHER_KEYWORDS = "votes and coins give other keywords than were released"
OTHER_VOTES = "votes are not those of the committed model"


class StatedResponses:
    """The provider's voters for one answer, each compared with the verifier's own model.

    Attributes:
        differing: how many votes the verifier's model gives otherwise.
        unasked: whether it did not answer for one of them, or for the final text.
    """

    def __init__(
        self,
        votes: Sequence[str],
        stated: GeneratedKeywords,
        own: AnswerGenerator | None,
        *,
        tolerated: int,
        by_model: bool,
    ) -> None:
        """Note what the provider says.

        Args:
            votes: whole answers, by voter.
            stated: the answer.
            own: the verifier's model, if it has one.
            tolerated: how many votes may differ: greedy decoding is not the same to the bit on
                every machine.
            by_model: whether a model writes the final text.
        """
        self._votes, self._stated, self._own = votes, stated, own
        self._tolerated, self._by_model = tolerated, by_model
        self.differing = 0
        self.unasked = False

    def responses(self, question: str, documents: Sequence[str]) -> Sequence[str]:
        """Return the stated votes, as `ResponseVoters` says; RejectedError."""
        if len(self._votes) != len(documents):
            raise RejectedError(f"{len(self._votes)} votes", expected=str(len(documents)))
        if self._own is not None:
            found = self._ask(self._own, question, documents)
            # What our own model did not say is nothing that the provider did.
            self.unasked = None in found
            self.differing = sum(
                mine is not None and counted(mine) != theirs
                for mine, theirs in zip(found, self._votes, strict=True)
            )
        if self.differing > self._tolerated:
            expected = f"at most {self._tolerated}"
            raise RejectedError(f"{self.differing} {OTHER_VOTES}", expected=expected)
        return self._votes

    def final(self, question: str, keywords: Sequence[str]) -> str:
        """Return the stated text, if it is that of these keywords; RejectedError."""
        if tuple(keywords) != (self._stated.keywords or ()):
            raise RejectedError(OTHER_KEYWORDS)
        # A text that was only near the due one would have no bound on what it tells.
        due: str | None = " ".join(keywords)
        if self._by_model:
            due = None if self._own is None else self._written(self._own, question, keywords)
        if due is not None and due != self._stated.text:
            raise RejectedError("the final text is not that of the released keywords")
        return self._stated.text

    def _written(self, own: AnswerGenerator, question: str, keywords: Sequence[str]) -> str | None:
        try:
            return own.final(question, keywords)
        except UnavailableError:
            self.unasked = True
            return None

    @staticmethod
    def _ask(own: AnswerGenerator, question: str, documents: Sequence[str]) -> Sequence[str | None]:
        try:
            return own.whole(question, documents)
        except UnavailableError:
            return [None] * len(documents)


def check_keywords(
    answerer: KeywordVoting,
    question: str,
    slots: Sequence[str],
    voters: StatedResponses,
    stated: GeneratedKeywords,
    coins: Coins,
) -> None:
    """Check that votes and coins give the released keywords, and the text follows from them.

    Args:
        slots: exactly ``answerer.slots`` texts.
        coins: of the question's key, after those of released sums.

    Raises:
        RejectedError: they do not.
    """
    mechanism = DpKsa(
        epsilon_choice=answerer.epsilon_choice,
        sigma=answerer.sigma,
        delta_test=answerer.delta_test,
        slots=answerer.slots,
        sizes=answerer.sizes,
        stop_words=frozenset(answerer.stop_words),
    )
    found = mechanism.answer(question, slots, voters, coins)
    # No set, and a set without a word, are two answers.
    if found.keywords != stated.keywords:
        raise RejectedError(OTHER_KEYWORDS)
