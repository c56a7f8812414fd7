"""The next token of each voter: `POST /completions` with logprobs, for DP-RAG."""

from collections.abc import Sequence
from typing import Any

from ragaudit.ledger.messages.generator_manifest import Vocabulary
from ragaudit.serving.generators.asking import Asking, Prompt
from ragaudit.serving.generators.errors import (
    GeneratorNotDeterministic,
    OddGenerator,
    TokenOutsideVocabulary,
)

__all__ = ["NextTokens", "Vocabulary"]

_LARGEST = 10**9  # of a logprob that is read, without its sign; -inf is none


class NextTokens:
    """`privacy.mechanisms.dp_rag.TokenVoters` over a service. Safe to use from several threads.

    Only a service that decodes greedily for temperature 0 can be used; `check` finds out one that
    does not, as far as asking twice can.
    """

    def __init__(self, asking: Asking, vocabulary: Vocabulary, prompt: Prompt) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            asking: the service; closed by its owner.
            vocabulary: fixed and public.
            prompt: of a voter.
        """
        self._asking = asking
        self._vocabulary = vocabulary
        self._prompt = prompt

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int | None]:
        """Return the next token of each voter, None where a voter gave none.

        Args:
            question, documents, answer: as of `TokenVoters`.

        Raises:
            GeneratorUnavailable: one that reads nothing gave none; of a kind that says why.
        """
        so_far = self._vocabulary.text(answer)
        prompts = [self._prompt.of(texts, question) + so_far for texts in documents]
        public = [place for place, texts in enumerate(documents) if not texts]
        private = [place for place, texts in enumerate(documents) if texts]
        found: list[int | None] = [None] * len(prompts)
        with self._asking.step() as until:
            for place in public:
                # Never in one call with documents, which could spoil it.
                found[place] = self._batch([prompts[place]], until)[0]
            size = self._asking.options.batch
            parts = [private[start : start + size] for start in range(0, len(private), size)]

            def ask(part: Sequence[int]) -> list[int] | None:
                return self._batch([prompts[place] for place in part], until)

            answers = self._asking.each(parts, ask, None)
            # One document of a call that fails is to blame: each is asked alone.
            alone = [
                [place]
                for part, tokens in zip(parts, answers, strict=True)
                if tokens is None and len(part) > 1
                for place in part
            ]
            answers += self._asking.each(alone, ask, None)
        for part, tokens in zip(parts + alone, answers, strict=True):
            for place, token in zip(part, tokens or (), strict=tokens is not None):
                found[place] = token
        return found

    def check(self, questions: Sequence[str]) -> list[int]:
        """Return the next token of each public question, asked alone, together and turned around.

        Args:
            questions: none empty, no document in them.

        Raises:
            GeneratorNotDeterministic: an answer differs.
            GeneratorUnavailable: no answer, of a kind that says why.
        """
        prompts = [self._prompt.of((), question) for question in questions]
        with self._asking.step() as until:
            alone = [self._batch([prompt], until)[0] for prompt in prompts]
            together = self._batch(prompts, until)
            turned = self._batch(prompts[::-1], until)[::-1]
        if not alone == together == turned:
            self._asking.refuse(GeneratorNotDeterministic, "answers the same prompt differently")
        return alone

    def _batch(self, prompts: list[str], until: float) -> list[int]:
        body = {
            "prompt": prompts, "max_tokens": 1, "temperature": 0, "seed": 0, "n": 1, "logprobs": 1,
        }  # fmt: skip
        choices = self._asking.post("completions", body, until)
        # The order of the list is no promise; the index is.
        places: dict[int, dict[str, Any]] = {}
        for each in choices:
            match each:
                case {"index": int(index)} if 0 <= index < len(prompts):
                    places[index] = each
        if len(choices) != len(prompts) or len(places) != len(prompts):
            self._asking.refuse(OddGenerator, "did not answer one choice for each prompt")
        return [self._token(places[index]) for index in range(len(prompts))]

    def _token(self, choice: dict[str, Any]) -> int:
        text, likeliest = _likeliest(choice)
        if text is None and choice.get("finish_reason") == "stop" and choice.get("text") == "":
            return self._vocabulary.end  # services that do not write the end token
        if text is None:
            self._asking.refuse(OddGenerator, "did not answer one token with its logprobs")
        if text not in likeliest:
            self._asking.refuse(OddGenerator, "chose a token that is not its likeliest")
        token = self._vocabulary.id_of(text)
        if token is None:
            self._asking.refuse(
                TokenOutsideVocabulary, "answered a token that the vocabulary does not have"
            )
        return token


def _likeliest(choice: dict[str, Any]) -> tuple[str | None, set[str]]:
    """Return the only token of a choice, and those that were as likely as any.

    OpenAI's form (``tokens``, ``top_logprobs``), and the one of newer servers, that of their chat
    (``content``).
    """
    match choice.get("logprobs"):
        case {"tokens": [str(text)], "token_logprobs": [own], "top_logprobs": [dict(top)]}:
            pairs = [(text, own), *top.items()]
        case {"content": [{"token": str(text), "logprob": own, "top_logprobs": list(top)}]}:
            pairs = [(text, own)]
            for each in top:
                match each:
                    case {"token": str(token), "logprob": logprob}:
                        pairs.append((token, logprob))
                    case _:
                        return None, set()
        case _:
            return None, set()
    if not all(_is_logprob(logprob) for _, logprob in pairs):
        return None, set()
    most = max(float(logprob) for _, logprob in pairs)
    return text, {token for token, logprob in pairs if float(logprob) == most}


def _is_logprob(value: object) -> bool:
    # A sum of rounded chances may be a little above 1. No whole number is compared as a float
    # before its range is known: JSON may hold one that no float does.
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -_LARGEST <= value <= 0.01
    )
