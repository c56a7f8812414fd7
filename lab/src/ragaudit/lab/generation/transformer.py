"""A small transformer in NumPy: pre-norm, causal attention, tied output, float32.

A token enters as the sum of its embedding, of those of the five tokens before it, and of its
place's: what stands after "treatment of bazeli" is then found by one look, and the model learns to
copy within minutes on one core.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.generation.vocabulary import BEGIN, END, TOKENS, decode, encode

Array = npt.NDArray[np.float32]
Tokens = npt.NDArray[np.int64]

WIDTH, HEADS, LAYERS, HIDDEN = 128, 2, 2, 256
PLACES = 128
"""The most tokens of prompt and answer together."""
SHIFTS = 6
"""Embeddings that are added up: of a token and of those before it."""
_SMALL = np.float32(1e-6)


def shapes() -> dict[str, tuple[int, ...]]:
    """Return the shape of every array of weights, by name."""
    found: dict[str, tuple[int, ...]] = {
        "embedding": (SHIFTS, len(TOKENS), WIDTH), "place": (PLACES, WIDTH), "last_gain": (WIDTH,),
    }  # fmt: skip
    for layer in range(LAYERS):
        found |= {
            f"{layer}.attention_gain": (WIDTH,), f"{layer}.qkv": (WIDTH, 3 * WIDTH),
            f"{layer}.out": (WIDTH, WIDTH), f"{layer}.mlp_gain": (WIDTH,),
            f"{layer}.up": (WIDTH, HIDDEN), f"{layer}.down": (HIDDEN, WIDTH),
        }  # fmt: skip
    return found


@dataclass(frozen=True)
class Context:
    """Prompts of one length that were read: what the model goes on from.

    Attributes:
        keys, values: of each layer, float32[prompts, heads, length, width / heads].
        last: int64[prompts, up to 5], the tokens before the next one.
        logits: float32[prompts, tokens] of the next token.
    """

    keys: tuple[Array, ...]
    values: tuple[Array, ...]
    last: Tokens
    logits: Array


class Transformer:
    """The model. It holds no state but its weights."""

    def __init__(self, weights: dict[str, Array]) -> None:
        """Take the weights.

        Raises:
            MalformedError: an array is missing, too many, or of another shape.
        """
        if {name: array.shape for name, array in weights.items()} != shapes():
            raise MalformedError("not these weights", where="weights", expected="as `shapes` says")
        self.weights = {name: array.astype(np.float32) for name, array in weights.items()}

    @classmethod
    def load(cls, path: Path | None = None) -> "Transformer":
        """Return the model of a file of weights; of the one in this package without a path."""
        with (files(__package__) / "weights.npz" if path is None else path).open("rb") as file:
            return cls(dict(np.load(file)))

    def read(self, prompts: Tokens) -> Context:
        """Read prompts of one length.

        Args:
            prompts: int64[prompts, length], 1 <= length <= `PLACES`.

        Raises:
            MalformedError: a prompt is empty or too long.
        """
        _check_length(prompts.shape[1])
        return self._forward(prompts, None)

    def go_on(self, context: Context, tokens: Sequence[int]) -> Context:
        """Read one more token of each prompt.

        Raises:
            MalformedError: there is no place for it.
        """
        _check_length(context.keys[0].shape[2] + 1)
        return self._forward(np.array(tokens, dtype=np.int64)[:, None], context)

    def _forward(self, tokens: Tokens, context: Context | None) -> Context:
        weights = self.weights
        start = 0 if context is None else context.keys[0].shape[2]
        before = np.empty((len(tokens), 0), np.int64) if context is None else context.last
        x = embedded(weights, tokens, before, start)
        keys, values = [], []
        for layer in range(LAYERS):
            h = normed(x, weights[f"{layer}.attention_gain"])[0]
            q, k, v = heads_of(h @ weights[f"{layer}.qkv"])
            if context is not None:
                k = np.concatenate([context.keys[layer], k], axis=2)
                v = np.concatenate([context.values[layer], v], axis=2)
            keys.append(k)
            values.append(v)
            mixed = attention(q, k) @ v
            x = x + merged(mixed) @ weights[f"{layer}.out"]
            h = normed(x, weights[f"{layer}.mlp_gain"])[0]
            x = x + np.maximum(h @ weights[f"{layer}.up"], 0) @ weights[f"{layer}.down"]
        last = normed(x[:, -1], weights["last_gain"])[0]
        seen = np.concatenate([before, tokens], axis=1)[:, -(SHIFTS - 1) :]
        return Context(tuple(keys), tuple(values), seen, last @ weights["embedding"][0].T)


def embedded(weights: dict[str, Array], tokens: Tokens, before: Tokens, start: int) -> Array:
    """Return what enters the first layer.

    Args:
        weights: of the model.
        tokens: int64[prompts, length].
        before: the tokens before these, as many of the last `SHIFTS` - 1 as there are.
        start: place of the first of the tokens.
    """
    length = tokens.shape[1]
    line = np.concatenate([before, tokens], axis=1)
    x = np.broadcast_to(weights["place"][start : start + length], (*tokens.shape, WIDTH)).copy()
    for shift in range(SHIFTS):
        # The first tokens of all have none so far before them.
        first = before.shape[1] - shift
        part = line[:, max(0, first) : max(0, first + length)]
        x[:, length - part.shape[1] :] += weights["embedding"][shift][part]
    return x


def normed(x: Array, gain: Array) -> tuple[Array, Array]:
    """Return x with a root mean square of 1 times the gain, and the factor of each row."""
    factor = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + _SMALL)
    return x * factor * gain, factor


def heads_of(qkv: Array) -> tuple[Array, Array, Array]:
    """Return queries, keys and values, each float32[prompts, heads, length, width / heads]."""
    prompts, length, _ = qkv.shape
    q, k, v = qkv.reshape(prompts, length, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
    return q, k, v


def merged(heads: Array) -> Array:
    """Return float32[prompts, length, width] of what `heads_of` took apart."""
    prompts, _, length, _ = heads.shape
    return heads.transpose(0, 2, 1, 3).reshape(prompts, length, WIDTH)


def attention(queries: Array, keys: Array) -> Array:
    """Return the weights of attention; the queries are those of the last places."""
    scores = queries @ keys.transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS))
    asking, asked = scores.shape[-2:]
    later = np.arange(asked)[None, :] > np.arange(asked - asking, asked)[:, None]
    scores[..., later] = -np.inf
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def _check_length(length: int) -> None:
    if not 1 <= length <= PLACES:
        raise MalformedError(f"{length} tokens", where="prompt", expected=f"1 to {PLACES}")


# --- greedy decoding, in batches of prompts of one length ----------------------------------------


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
