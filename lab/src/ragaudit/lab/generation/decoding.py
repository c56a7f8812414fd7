"""Greedy decoding, in batches of prompts of one length."""

from collections.abc import Sequence

import numpy as np
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.generation.transformer import PLACES, Array, Context, Transformer
from ragaudit.lab.generation.vocabulary import BEGIN, END, decode, encode

__all__ = ["completed", "next_logits", "prompt_tokens"]


def prompt_tokens(text: str) -> tuple[int, ...]:
    """Return the tokens of a prompt.

    Args:
        text: of the prompt.

    Raises:
        MalformedError: no token of an answer has a place after it.
    """
    tokens = (BEGIN, *encode(text))
    if len(tokens) >= PLACES:
        raise MalformedError("too long a prompt", where="prompt", expected=f"< {PLACES} tokens")
    return tokens


def next_logits(model: Transformer, prompts: Sequence[str]) -> Array:
    """Return float32[prompts, tokens], of the next token of each prompt.

    Args:
        model: that is asked.
        prompts: texts.

    Raises:
        MalformedError: a prompt is too long.
    """
    tokens = [prompt_tokens(each) for each in prompts]
    found: list[Array | None] = [None] * len(tokens)
    for places in _by_length(tokens):
        context = model.read(np.array([tokens[place] for place in places]))
        for place, logits in zip(places, context.logits, strict=True):
            found[place] = logits
    return np.array(found, dtype=np.float32)


def completed(model: Transformer, prompts: Sequence[str], most: int) -> list[str]:
    """Return the greedy continuation of each prompt, up to its end token.

    Args:
        model: that is asked.
        prompts: texts.
        most: tokens of a continuation, >= 1.

    Raises:
        MalformedError: a prompt is too long.
    """
    tokens = [prompt_tokens(each) for each in prompts]
    found = [""] * len(tokens)
    for places in _by_length(tokens):
        context = model.read(np.array([tokens[place] for place in places]))
        room = min(most, PLACES - len(tokens[places[0]]))
        for place, answer in zip(places, _greedy(model, context, room), strict=True):
            found[place] = decode(answer)
    return found


def _greedy(model: Transformer, context: Context, most: int) -> list[list[int]]:
    best = [int(each) for each in context.logits.argmax(axis=-1)]
    answers = [[each] for each in best]
    while len(answers[0]) < most and not all(END in answer for answer in answers):
        context = model.go_on(context, best)
        best = [int(each) for each in context.logits.argmax(axis=-1)]
        for answer, token in zip(answers, best, strict=True):
            answer.append(token)
    return answers


def _by_length(tokens: Sequence[tuple[int, ...]]) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for place, each in enumerate(tokens):
        groups.setdefault(len(each), []).append(place)
    return list(groups.values())
