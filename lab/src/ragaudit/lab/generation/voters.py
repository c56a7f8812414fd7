"""The model as the voters of the mechanisms, in this process: what is asked twice is read once.

The same prompts and the same tokens as through `serving.generators` and `serving`, which a test
says; without HTTP a stream of questions takes seconds.
"""

from collections.abc import Sequence

import numpy as np
from ragaudit.lab.generation.transformer import Context, Transformer, completed, prompt_tokens
from ragaudit.lab.generation.vocabulary import END, TOKENS
from ragaudit.serving.generators import Prompt, Vocabulary

PROMPT = Prompt("{documents}\n{question}")
"""Of a voter: what the model was trained on."""
KEYWORDS = Prompt("keywords {documents} .\n{question}", between=" ")
"""Of the final answer."""
VOCABULARY = Vocabulary(TOKENS, END)
_KEPT = 16  # contexts of answers begun; each is some MB


class LocalVoters:
    """`TokenVoters` and `ResponseVoters` of one question at a time."""

    def __init__(self, model: Transformer, *, tokens: int = 12) -> None:
        """Prepare.

        Args:
            model: that answers.
            tokens: the most of a whole answer.
        """
        self._model = model
        self._tokens = tokens
        self._question = ""
        self._rows: dict[str, tuple[int, int]] = {}
        self._roots: list[Context] = []
        self._contexts: dict[tuple[int, tuple[int, ...]], Context] = {}
        self._next: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        self._answers: dict[str, str] = {}

    def prepare(self, question: str, documents: Sequence[str]) -> None:
        """Read a question with each document alone, and forget the question before.

        Args:
            question: that is asked next.
            documents: all that a voter may get alone; "" is among them always.
        """
        self._question = question
        self._rows, self._roots, self._contexts, self._next = {}, [], {}, {}
        self._answers = {}
        groups: dict[int, list[tuple[str, tuple[int, ...]]]] = {}
        for text in dict.fromkeys(["", *documents]):
            prompt = PROMPT.of((text,), question)
            tokens = prompt_tokens(prompt)
            groups.setdefault(len(tokens), []).append((prompt, tokens))
        for number, group in enumerate(groups.values()):
            self._roots.append(self._model.read(np.array([tokens for _, tokens in group])))
            for row, (prompt, _) in enumerate(group):
                self._rows[prompt] = number, row

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int | None]:
        """Return the next token of each voter, as `TokenVoters` says."""
        assert question == self._question, "prepare() first"
        begun = tuple(answer)
        found: list[int | None] = []
        for texts in documents:
            group, row = self._rows[PROMPT.of(texts, question)]
            found.append(self._tokens_after(group, begun)[row])
        return found

    def responses(self, question: str, documents: Sequence[str]) -> list[str]:
        """Return an answer for each document, as `ResponseVoters` says."""
        prompts = [PROMPT.of((text,), question) for text in documents]
        missing = [each for each in dict.fromkeys(prompts) if each not in self._answers]
        if missing:
            texts = completed(self._model, missing, self._tokens)
            self._answers |= dict(zip(missing, texts, strict=True))
        return [self._answers[each] for each in prompts]

    def final(self, question: str, keywords: Sequence[str]) -> str:
        """Return the answer to a question with keywords, or without any."""
        prompt = (KEYWORDS if keywords else PROMPT).of(keywords, question)
        return completed(self._model, [prompt], self._tokens)[0]

    def _tokens_after(self, group: int, begun: tuple[int, ...]) -> list[int]:
        key = group, begun
        if key not in self._next:
            logits = self._context(group, begun).logits
            self._next[key] = [int(each) for each in logits.argmax(axis=-1)]
        return self._next[key]

    def _context(self, group: int, begun: tuple[int, ...]) -> Context:
        if not begun:
            return self._roots[group]
        key = group, begun
        if key not in self._contexts:
            before = self._context(group, begun[:-1])
            rows = len(before.last)
            while len(self._contexts) >= _KEPT:
                del self._contexts[next(iter(self._contexts))]
            self._contexts[key] = self._model.go_on(before, [begun[-1]] * rows)
        return self._contexts[key]
