"""Whole answers: `POST /chat/completions`, for DP-KSA."""

from collections.abc import Sequence
from typing import Any

from ragaudit.serving.generators.asking import Asking, Prompt
from ragaudit.serving.generators.errors import GeneratorNotDeterministic, OddGenerator

__all__ = ["WholeAnswers"]

CHARACTERS = 64
"""The most of an answer, for each of its tokens: no token of a known model is longer."""


class WholeAnswers:
    """`privacy.mechanisms.dp_ksa.ResponseVoters` over a service. Safe to use from several threads.

    Without keywords the prompt of the final answer is that of a voter who reads nothing, byte for
    byte: whether the test failed is not told in another way than by the answer.
    """

    def __init__(self, asking: Asking, prompt: Prompt, keywords: Prompt, *, tokens: int) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            asking: the service; closed by its owner.
            prompt: of a voter.
            keywords: of the final answer; the released keywords are its documents.
            tokens: the most of an answer.
        """
        self._asking = asking
        self._prompt = prompt
        self._keywords = keywords
        self._tokens = tokens

    def responses(self, question: str, documents: Sequence[str]) -> list[str]:
        """Return an answer for each document, "" where a voter gave none.

        Args:
            question, documents: as of `ResponseVoters`.

        Raises:
            GeneratorBusy: too many answers are generated already.
        """
        return ["" if each is None else each for each in self.whole(question, documents)]

    def whole(self, question: str, documents: Sequence[str]) -> list[str | None]:
        """Return an answer for each document, None where a voter gave none.

        Args:
            question, documents: as of `ResponseVoters`.

        Raises:
            GeneratorBusy: too many answers are generated already.
        """

        def ask(prompt: str) -> str | None:
            return self._one(prompt, until)

        prompts = [self._prompt.of((text,), question) for text in documents]
        with self._asking.step() as until:
            return self._asking.each(prompts, ask, None)

    def final(self, question: str, keywords: Sequence[str]) -> str:
        """Return the answer to a question with keywords, or without any.

        Args:
            question, keywords: as of `ResponseVoters`; both are released or public.

        Raises:
            GeneratorUnavailable: no answer, of a kind that says why.
        """
        prompt = self._keywords if keywords else self._prompt
        with self._asking.step() as until:
            return self._one(prompt.of(keywords, question), until)

    def check(self, questions: Sequence[str]) -> list[str]:
        """Return the answer to each public question; all are asked twice, at the same time.

        Args:
            questions: no document in them.

        Raises:
            GeneratorNotDeterministic: an answer differs.
            GeneratorUnavailable: no answer, of a kind that says why.
        """
        prompts = [self._prompt.of((), question) for question in questions]
        with self._asking.step() as until:
            alone = [self._one(prompt, until) for prompt in prompts]
            again = self._asking.each(prompts, lambda prompt: self._one(prompt, until), None)
        if alone != again:
            self._asking.refuse(GeneratorNotDeterministic, "answers the same prompt differently")
        return alone

    def _one(self, prompt: str, until: float) -> str:
        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self._tokens, "temperature": 0, "seed": 0, "n": 1,
        }  # fmt: skip
        match self._asking.post("chat/completions", body, until):
            case [{"message": {"role": "assistant", "content": str(text)}}]:
                pass
            case _:
                self._asking.refuse(OddGenerator, "did not answer one message")
        if len(text) > CHARACTERS * self._tokens:
            self._asking.refuse(OddGenerator, "answered more than it was asked for")
        # JSON can write halves of characters, which nothing that comes after can store.
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._asking.refuse(OddGenerator, "answered what is no text")
        return text
