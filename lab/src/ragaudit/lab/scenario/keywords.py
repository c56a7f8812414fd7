"""A window whose questions are answered by keyword sets (DP-KSA under MURAG)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ragaudit.lab.generation.vocabulary import SYLLABLES
from ragaudit.lab.generation.voters import KEYWORDS, LocalVoters
from ragaudit.lab.scenario.charging import Charged, model
from ragaudit.lab.scenario.generating import GeneratingWindow
from ragaudit.ledger.messages.challenge import VotesOfAnswer
from ragaudit.ledger.messages.generated import AnyAnswer, GeneratedKeywords
from ragaudit.ledger.messages.generation_terms import KeywordVoting
from ragaudit.ledger.messages.manifests import GeneratorManifest, GeneratorProbe
from ragaudit.privacy.accounting.generation import channel_loss
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa, KeywordAnswer, ResponseVoters
from ragaudit.privacy.mechanisms.samplers import Coins

TOKENS = 12
"""The most of an answer of the copying model."""


class AnsweringModel(LocalVoters):
    """The copying model as somebody's own, asked for whole answers."""

    def __init__(self) -> None:
        super().__init__(model(), tokens=TOKENS)

    def whole(self, question: str, documents: Sequence[str]) -> Sequence[str | None]:
        """Return the answer of each voter, as `AnswerGenerator` says."""
        return self.responses(question, documents)


class _Noted:
    """Voters whose answers are kept, as a replay shows them."""

    def __init__(self, inner: ResponseVoters) -> None:
        self._inner = inner
        self.votes: tuple[str, ...] = ()

    def responses(self, question: str, documents: Sequence[str]) -> Sequence[str]:
        self.votes = tuple(self._inner.responses(question, documents))
        return self.votes

    def final(self, question: str, keywords: Sequence[str]) -> str:
        return self._inner.final(question, keywords)


class KeywordWindow(GeneratingWindow):
    """The window: every document about a disease names one treatment, so that sets pass."""

    voters_asked = 8
    epsilon_choice = Fraction(8)
    test_sigma = Fraction(1, 4)
    delta_test = delta_conversion = Fraction(1, 10**6)
    sizes: tuple[int, ...] = (1, 2, 3)
    final = "model"

    @property
    def generator(self) -> AnsweringModel:
        return AnsweringModel()

    @property
    def answering(self) -> ResponseVoters:
        """Return the provider's model: a hook for cheats."""
        return AnsweringModel()

    def epsilon(self) -> Fraction:
        """Return what the policy states for all uses: a hook for cheats."""
        return channel_loss(self.epsilon_choice, self.test_sigma, self.uses, self.delta_conversion)

    def terms_json(self) -> dict[str, Any]:
        answerer = {
            "kind": "dp-ksa",
            "epsilon_choice": str(self.epsilon_choice),
            "sigma": str(self.test_sigma),
            "delta_test": str(self.delta_test),
            "delta_conversion": str(self.delta_conversion),
            "voters": self.voters_asked,
            "sizes": list(self.sizes),
            "stop_words": [],
            "tokens": TOKENS,
            "final": self.final,
        }
        return {**super().terms_json(), "answerer": answerer, "epsilon": str(self.epsilon())}

    def generator_manifest(self) -> GeneratorManifest:
        tokens, own = super().generator_manifest(), AnsweringModel()
        probes = tuple(
            GeneratorProbe(each.question, own.final(each.question, ())) for each in tokens.probes
        )
        return replace(tokens, vocabulary=None, keywords=KEYWORDS, probes=probes)

    def texts(self, tenant: str) -> list[str]:
        return [
            f"patient {SYLLABLES[(7 * i + len(tenant)) % len(SYLLABLES)]}{SYLLABLES[i]}lo ; "
            "treatment of bazeli : mirazo ; symptom of bazeli : kolupe ."
            for i in range(self.rows)
        ]

    def keyword_mechanism(self) -> DpKsa:
        """Return the answerer of the policy: a hook for cheats."""
        terms = self.policy.generation
        assert terms is not None and isinstance(terms.answerer, KeywordVoting)
        each = terms.answerer
        return DpKsa(
            epsilon_choice=each.epsilon_choice,
            sigma=each.sigma,
            delta_test=each.delta_test,
            slots=each.voters,
            sizes=each.sizes,
            stop_words=frozenset(each.stop_words),
        )

    def write_answer(
        self, asked: Charged, slots: Sequence[str], coins: Coins
    ) -> tuple[VotesOfAnswer, AnyAnswer]:
        noted = _Noted(self.answering)
        found = self.release(asked, slots, noted, coins)
        votes = self.stated_votes(noted.votes)
        text = self.final_text(found)
        return votes, GeneratedKeywords(text, found.keywords)

    def release(
        self, asked: Charged, slots: Sequence[str], voters: ResponseVoters, coins: Coins
    ) -> KeywordAnswer:
        """Return what is released: a hook for cheats."""
        return self.keyword_mechanism().answer(asked.request.query, slots, voters, coins)

    def stated_votes(self, votes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the votes that a replay shows: a hook for cheats."""
        return votes

    def final_text(self, found: KeywordAnswer) -> str:
        """Return the text of an answer: a hook for cheats."""
        return " ".join(found.keywords or ()) if self.final == "keywords" else found.text
