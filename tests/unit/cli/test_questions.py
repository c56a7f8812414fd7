"""The corpus and the questions of the demonstration."""

import numpy as np
from ragaudit.cli.corpus import (
    LARGEST_COSINE,
    PASSAGES_PER_TENANT,
    candidates,
    distinct,
    load_corpus,
)
from ragaudit.embedders.base import embed_quantised
from ragaudit.embedders.registry import load


def test_corpus_has_three_tenants_and_enough_passages() -> None:
    corpus = load_corpus()
    assert len(corpus) >= 3
    assert sum(map(len, corpus.values())) >= 1500
    for passages in corpus.values():
        assert len(passages) <= PASSAGES_PER_TENANT
        assert len({passage.id for passage in passages}) == len(passages)
        assert all(len(passage.id.encode()) <= 512 for passage in passages)
    assert load_corpus() == corpus


def test_questions_are_many_and_far_apart() -> None:
    embedder = load()
    taken: list[np.ndarray[tuple[int], np.dtype[np.int8]]] = []
    total = 0
    for passages in load_corpus().values():
        questions = list(candidates(passages))
        vectors = embed_quantised(embedder, questions)
        chosen = distinct(vectors, taken, 1000)
        taken += [vectors[i] for i in chosen]
        total += len(chosen)
        assert all(questions[i].endswith("?") for i in chosen)
        assert len(chosen) >= 90
    rows = np.array(taken, dtype=np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T - 2 * np.eye(len(rows))
    assert cosines.max() <= LARGEST_COSINE + 1e-12
    assert total >= 400
