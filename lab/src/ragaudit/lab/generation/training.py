"""Train the model: ``python -m ragaudit.lab.generation.training OUTPUT``.

Backpropagation by hand, Adam, one core, minutes; every draw follows from the seed. OUTPUT gets
``weights.npz`` (float16) and ``weights.json``: the seed, the terms, and what the weights can do on
episodes that nobody has trained on.
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt
from ragaudit.lab.generation.transformer import (
    HEADS,
    LAYERS,
    SHIFTS,
    WIDTH,
    Array,
    Transformer,
    attention,
    embedded,
    heads_of,
    merged,
    normed,
    shapes,
)
from ragaudit.lab.generation.vocabulary import (
    BEGIN,
    CONTENT,
    END,
    FIRST,
    INNER,
    SYLLABLES,
    UNKNOWN,
    token,
)

Tokens = npt.NDArray[np.int64]
ANSWER = CONTENT + 1
"""Tokens of an answer of one name, with its end."""


@dataclass(frozen=True)
class Episodes:
    """Episodes of one length.

    Attributes:
        tokens: int64[episodes, length], prompts followed by their answers.
        answers: int64[episodes, positions], the token that follows each of the last positions.
        counts: bool, of the same shape: positions that are part of the answer.
    """

    tokens: Tokens
    answers: Tokens
    counts: npt.NDArray[np.bool_]


def record_episodes(rng: np.random.Generator, episodes: int, records: int) -> Episodes:
    """Return questions about a disease, with so many records as their context.

    Args:
        rng: draws every name.
        episodes: how many, >= 1.
        records: of each context, >= 0; three of four contexts hold the answer.
    """
    disease, answer = _names(rng, episodes), _names(rng, episodes)
    asked = np.where(rng.random(episodes) < 0.5, token(" treatment"), token(" symptom"))
    holds = rng.random(episodes) < 0.75
    where = rng.integers(max(records, 1), size=episodes)
    parts = [np.full((episodes, 1), BEGIN)]
    for place in range(records):
        here = holds & ((where == place) | (rng.random(episodes) < 0.3))
        named = np.where(here[:, None], disease, _other_names(rng, disease))
        values = {}
        for attribute in (" treatment", " symptom"):
            copied = here & (asked == token(attribute))
            values[attribute] = np.where(copied[:, None], answer, _names(rng, episodes))
        parts.append(_record(_names(rng, episodes), named, values))
    parts.append(_question(asked, disease))
    known = holds & (records > 0)
    unknown = np.full((episodes, ANSWER), END)
    unknown[:, 0] = UNKNOWN
    ended = np.concatenate([answer, np.full((episodes, 1), END)], axis=1)
    return _joined(parts, np.where(known[:, None], ended, unknown))


def keyword_episodes(rng: np.random.Generator, episodes: int, keywords: int) -> Episodes:
    """Return questions with keywords as their context; the answer is the keywords.

    Args:
        rng, episodes: as of `record_episodes`.
        keywords: of each context, >= 1.
    """
    words = np.concatenate([_names(rng, episodes) for _ in range(keywords)], axis=1)
    asked = np.where(rng.random(episodes) < 0.5, token(" treatment"), token(" symptom"))
    start = np.tile([BEGIN, token(" keywords")], (episodes, 1))
    stop = np.full((episodes, 1), token(" ."))
    parts = [start, words, stop, _question(asked, _names(rng, episodes))]
    return _joined(parts, np.concatenate([words, np.full((episodes, 1), END)], axis=1))


def _names(rng: np.random.Generator, count: int) -> Tokens:
    names = rng.integers(len(SYLLABLES), size=(count, CONTENT)) + INNER
    names[:, 0] += FIRST - INNER
    return names


def _other_names(rng: np.random.Generator, names: Tokens) -> Tokens:
    """Return other names, every third of them different in one syllable only."""
    fresh = _names(rng, len(names))
    near = names.copy()
    rows, place = np.arange(len(names)), rng.integers(CONTENT, size=len(names))
    base = np.where(place == 0, FIRST, INNER)
    step = rng.integers(1, len(SYLLABLES), size=len(names))
    near[rows, place] = (near[rows, place] - base + step) % len(SYLLABLES) + base
    return np.where((rng.random(len(names)) < 1 / 3)[:, None], near, fresh)


def _record(patient: Tokens, disease: Tokens, values: dict[str, Tokens]) -> Tokens:
    def word(text: str) -> Tokens:
        return np.full((len(patient), 1), token(text))

    parts = [word(" patient"), patient]
    for attribute, value in values.items():
        parts += [word(" ;"), word(attribute), word(" of"), disease, word(" :"), value]
    return np.concatenate([*parts, word(" .")], axis=1)


def _question(asked: Tokens, disease: Tokens) -> Tokens:
    def word(text: str) -> Tokens:
        return np.full((len(disease), 1), token(text))

    return np.concatenate([asked[:, None], word(" of"), disease, word(" ?")], axis=1)


def _joined(parts: list[Tokens], answers: Tokens) -> Episodes:
    # The last token is predicted, never read; what follows an end is not part of the answer.
    tokens = np.concatenate([*parts, answers[:, :-1]], axis=1)
    counts = np.cumsum(answers == END, axis=1) - (answers == END) == 0
    return Episodes(tokens, answers, counts)


_ROOT = np.float32(np.sqrt(WIDTH // HEADS))
_KINDS = (
    ("records", 1), ("records", 2), ("records", 4), ("keywords", 1), ("records", 1),
    ("records", 2), ("records", 0), ("records", 1), ("records", 3), ("keywords", 3),
    ("records", 1), ("records", 2), ("keywords", 2),
)  # fmt: skip
"""What the batches are made of, in turn: a kind of context and its size."""


@dataclass(frozen=True)
class Terms:
    """Of a training; the defaults made the weights of this package."""

    seed: int = 20261123
    steps: int = 4000
    tokens: int = 2048
    rate: float = 2e-3
    warm_up: int = 100


def initial(rng: np.random.Generator) -> dict[str, Array]:
    """Return weights before the first step."""
    found = {}
    for name, shape in shapes().items():
        if name.endswith("gain"):
            found[name] = np.ones(shape, np.float32)
        elif name in ("embedding", "place"):
            found[name] = rng.normal(0, 0.05, shape).astype(np.float32)
        else:
            # What is added to the stream is smaller, the more layers add to it.
            depth = 2 * LAYERS if name.endswith(("out", "down")) else 1
            found[name] = rng.normal(0, (shape[0] * depth) ** -0.5, shape).astype(np.float32)
    return found


def batches(rng: np.random.Generator, terms: Terms) -> Iterator[Episodes]:
    """Yield the batches, each of about so many tokens."""
    for step in range(terms.steps):
        kind, size = _KINDS[step % len(_KINDS)]
        yield drawn(rng, kind, size, terms.tokens // (10 + 24 * size))


def drawn(rng: np.random.Generator, kind: str, size: int, episodes: int) -> Episodes:
    """Return episodes of a kind."""
    make = record_episodes if kind == "records" else keyword_episodes
    return make(rng, episodes, size)


def gradients(weights: dict[str, Array], batch: Episodes) -> tuple[float, dict[str, Array]]:
    """Return the mean loss of the answers' tokens in nats, and its gradient in every weight."""
    tokens, found = batch.tokens, {}
    none = np.empty((len(tokens), 0), np.int64)
    x = embedded(weights, tokens, none, 0)
    kept = []
    for layer in range(LAYERS):
        enters = x
        h, factor = normed(x, weights[f"{layer}.attention_gain"])
        q, k, v = heads_of(h @ weights[f"{layer}.qkv"])
        shares = attention(q, k)
        mixed = merged(shares @ v)
        x = x + mixed @ weights[f"{layer}.out"]
        between = x
        h2, factor2 = normed(x, weights[f"{layer}.mlp_gain"])
        hidden = np.maximum(h2 @ weights[f"{layer}.up"], 0)
        x = x + hidden @ weights[f"{layer}.down"]
        kept.append((enters, h, factor, q, k, v, shares, mixed, between, h2, factor2, hidden))
    places = batch.answers.shape[1]
    tail = np.ascontiguousarray(x[:, -places:])
    last, factor = normed(tail, weights["last_gain"])
    table = weights["embedding"][0]
    logits = last @ table.T
    logits -= logits.max(axis=-1, keepdims=True)
    chances = np.exp(logits)
    chances /= chances.sum(axis=-1, keepdims=True)
    rows, columns = np.indices(batch.answers.shape)
    right = chances[rows, columns, batch.answers]
    total = int(batch.counts.sum())
    loss = float(-(np.log(right + 1e-30) * batch.counts).sum() / total)
    back = chances
    back[rows, columns, batch.answers] -= 1
    back *= (batch.counts / np.float32(total))[..., None].astype(np.float32)
    from_output = np.einsum("bpv,bpd->vd", back, last, optimize=True)
    dx = np.zeros_like(x)
    dx[:, -places:], found["last_gain"] = _back_normed(
        back @ table, tail, factor, weights["last_gain"]
    )
    for layer in reversed(range(LAYERS)):
        enters, h, factor, q, k, v, shares, mixed, between, h2, factor2, hidden = kept[layer]
        found[f"{layer}.down"] = _product(hidden, dx)
        up = (dx @ weights[f"{layer}.down"].T) * (hidden > 0)
        found[f"{layer}.up"] = _product(h2, up)
        part, found[f"{layer}.mlp_gain"] = _back_normed(
            up @ weights[f"{layer}.up"].T, between, factor2, weights[f"{layer}.mlp_gain"]
        )
        dx = dx + part
        found[f"{layer}.out"] = _product(mixed, dx)
        dmixed = _split(dx @ weights[f"{layer}.out"].T)
        dshares = dmixed @ v.transpose(0, 1, 3, 2)
        dv = shares.transpose(0, 1, 3, 2) @ dmixed
        dscores = shares * (dshares - (dshares * shares).sum(axis=-1, keepdims=True)) / _ROOT
        dq, dk = dscores @ k, dscores.transpose(0, 1, 3, 2) @ q
        dqkv = np.concatenate([merged(dq), merged(dk), merged(dv)], axis=-1)
        found[f"{layer}.qkv"] = _product(h, dqkv)
        part, found[f"{layer}.attention_gain"] = _back_normed(
            dqkv @ weights[f"{layer}.qkv"].T, enters, factor, weights[f"{layer}.attention_gain"]
        )
        dx = dx + part
    found["place"] = np.zeros_like(weights["place"])
    found["place"][: tokens.shape[1]] = dx.sum(axis=0)
    found["embedding"] = np.stack(
        [_back_embedded(tokens, dx, shift, table) for shift in range(SHIFTS)]
    )
    found["embedding"][0] += from_output
    return loss, found


def _product(left: Array, right: Array) -> Array:
    found: Array = left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])
    return found


def _split(x: Array) -> Array:
    prompts, length, _ = x.shape
    return x.reshape(prompts, length, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)


def _back_normed(back: Array, x: Array, factor: Array, gain: Array) -> tuple[Array, Array]:
    gains = (back * x * factor).reshape(-1, WIDTH).sum(axis=0)
    scaled = back * gain
    inner = (scaled * x).mean(axis=-1, keepdims=True)
    return factor * scaled - x * factor**3 * inner, gains


def _back_embedded(tokens: Tokens, dx: Array, shift: int, table: Array) -> Array:
    length = tokens.shape[1]
    read, back = tokens[:, : length - shift].reshape(-1), dx[:, shift:].reshape(-1, WIDTH)
    marks = np.zeros((len(read), len(table)), np.float32)
    marks[np.arange(len(read)), read] = 1
    found: Array = marks.T @ back
    return found


def train(terms: Terms, *, every: int = 0) -> dict[str, Array]:
    """Return trained weights, rounded to float16 as they are stored.

    Args:
        terms: of the training.
        every: steps between two lines on standard error; 0 for none.
    """
    rng = np.random.default_rng(terms.seed)
    weights = initial(rng)
    first = {name: np.zeros_like(each) for name, each in weights.items()}
    second = {name: np.zeros_like(each) for name, each in weights.items()}
    losses: list[float] = []
    for step, batch in enumerate(batches(rng, terms), 1):
        loss, found = gradients(weights, batch)
        losses.append(loss)
        norm = float(np.sqrt(sum(float((each * each).sum()) for each in found.values())))
        clip = min(1.0, 1.0 / (norm + 1e-9))
        rate = terms.rate * min(1.0, step / terms.warm_up)
        rate *= 0.5 * (1 + np.cos(np.pi * step / terms.steps)) * 0.98 + 0.02
        for name in found:
            gradient = found[name] * np.float32(clip)
            first[name] += np.float32(0.1) * (gradient - first[name])
            second[name] += np.float32(0.02) * (gradient * gradient - second[name])
            mean = first[name] / np.float32(1 - 0.9**step)
            spread = np.sqrt(second[name] / np.float32(1 - 0.98**step)) + np.float32(1e-8)
            weights[name] -= np.float32(rate) * mean / spread
        if every and step % every == 0:
            line = f"{step} of {terms.steps}: {np.mean(losses[-every:]):.4f} nats a token"
            print(line, file=sys.stderr, flush=True)
    return {name: each.astype(np.float16).astype(np.float32) for name, each in weights.items()}


def accuracy(model: Transformer, batch: Episodes) -> float:
    """Return the share of episodes whose whole answer is right, decoded greedily."""
    places = batch.answers.shape[1]
    context = model.read(batch.tokens[:, : batch.tokens.shape[1] - places + 1])
    right = np.ones(len(batch.tokens), bool)
    for place in range(places):
        best = context.logits.argmax(axis=-1)
        right &= (best == batch.answers[:, place]) | ~batch.counts[:, place]
        if place + 1 < places:
            context = model.go_on(context, [int(each) for each in best])
    return float(right.mean())


def figures(model: Transformer, seed: int, episodes: int) -> dict[str, float]:
    """Return the accuracy on fresh episodes, by what the context holds.

    Args:
        model: that is measured.
        seed: of episodes that no training draws.
        episodes: of each kind, a multiple of 200.
    """
    rng = np.random.default_rng([seed, 1])
    found = {}
    for kind, size in dict.fromkeys(_KINDS):
        parts = [accuracy(model, drawn(rng, kind, size, 200)) for _ in range(episodes // 200)]
        found[f"{size} {kind}"] = sum(parts) / len(parts)
    return found


def main() -> None:
    """Train, measure, write."""
    folder, terms = Path(sys.argv[1]), Terms()
    began = time.process_time()
    weights = train(terms, every=50)
    seconds = time.process_time() - began
    folder.mkdir(parents=True, exist_ok=True)
    stored = {name: each.astype(np.float16) for name, each in weights.items()}
    with (folder / "weights.npz").open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **stored)
    report = {
        "script": "python -m ragaudit.lab.generation.training",
        "terms": asdict(terms),
        "sha256": sha256((folder / "weights.npz").read_bytes()).hexdigest(),
        "parameters": sum(each.size for each in weights.values()),
        "processor_seconds": round(seconds),
        "accuracy": figures(Transformer(weights), terms.seed, 2000),
    }
    (folder / "weights.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
