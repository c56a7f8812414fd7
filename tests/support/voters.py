"""Models whose every word is known, and terms of small mechanisms that ask them."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ragaudit.privacy.mechanisms.dp_ksa import DpKsa
from ragaudit.privacy.mechanisms.dp_rag import DpRag

END = 0


class Copier:
    """A model whose next token stands in its document, at the answer's place; 1 without one."""

    def __init__(self) -> None:
        self.asked: list[list[tuple[str, ...]]] = []

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int]:
        self.asked.append(list(documents))
        return [self.token_of("".join(each), len(answer)) for each in documents]

    @staticmethod
    def token_of(text: str, place: int) -> int:
        return int(text[place]) if place < len(text) else 1


def rag(epsilon: str = "2", token: str = "1", **given: Any) -> DpRag:
    common = {"voters": 3, "slots_per_voter": 1, "vocabulary": 3, "end": END, "tokens": 3}
    return DpRag(Fraction(epsilon), Fraction(token), **{**common, **given})


class Speaker:
    """A model that answers with its document, and writes what it was given."""

    def responses(self, question: str, documents: Sequence[str]) -> list[str]:
        return list(documents)

    def final(self, question: str, keywords: Sequence[str]) -> str:
        return " ".join([question, *keywords])


def ksa(**given: Any) -> DpKsa:
    common = {
        "epsilon_choice": Fraction(1), "sigma": Fraction(1), "delta_test": Fraction(1, 100),
        "slots": 12, "sizes": (1, 2, 3),
    }  # fmt: skip
    return DpKsa(**{**common, **given})
