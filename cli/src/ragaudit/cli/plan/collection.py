"""The index that a plan is tried on (the provider's own, or the bundled text), and the mechanism.

The mechanism is the deployed one: the compiled sampler, exact scores, selection.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import NoiseParameters, table
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.selection import select
from ragaudit.cli.corpus import Passage, candidates, load_corpus, spread
from ragaudit.embedders import registry
from ragaudit.embedders.base import Embedder, checked_embeddings, checked_texts
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.planning.retrieval import Interval, NoiseSource, Ranking, mean_interval

Vectors = npt.NDArray[np.float32]
Progress = Callable[[str], object]

QUESTIONS_PER_TENANT = 100
"""At most so many of the suggested questions; a file's questions are all asked."""
FEWEST_SUGGESTED = 20
"""With fewer suggested questions than that, the sentences of the texts are asked instead."""
SETTINGS_SUFFIXES = (".yaml", ".yml")

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


class QuestionSource(StrEnum):
    """The origin of the questions."""

    GIVEN = "as given"
    SUGGESTED = "made from the texts"
    SENTENCES = "sentences of the texts themselves"


@dataclass(frozen=True)
class Collection:
    """One tenant's index and the questions that are asked of it.

    Attributes:
        name: for messages.
        rows: int8[N, d], quantised as the prover does.
        questions: int8[Q, d].
        vectors, question_vectors: the same before quantisation, real numbers.
        question_source: where the questions are from.
    """

    name: str
    rows: npt.NDArray[np.int8] = field(repr=False)
    questions: npt.NDArray[np.int8] = field(repr=False)
    vectors: npt.NDArray[np.floating] = field(repr=False)
    question_vectors: npt.NDArray[np.floating] = field(repr=False)
    question_source: QuestionSource

    @classmethod
    def of(
        cls,
        name: str,
        vectors: npt.NDArray[np.floating],
        questions: npt.NDArray[np.floating],
        question_source: QuestionSource = QuestionSource.GIVEN,
    ) -> "Collection":
        """Return the collection with its vectors quantised.

        Args:
            name: for messages.
            vectors: of the index, [N, d].
            questions: their vectors, [Q, d].
            question_source: where they are from.

        Raises:
            MalformedError: different d, or a row that cannot be quantised.
        """
        rows = _quantised(vectors, "index")
        queries = _quantised(questions, "questions")
        if rows.shape[1] != queries.shape[1]:
            raise MalformedError(
                f"questions have {queries.shape[1]} entries",
                where="questions",
                expected=f"{rows.shape[1]}, as the index has",
            )
        return cls(name, rows, queries, vectors, questions, question_source)


@dataclass(frozen=True)
class Loaded:
    """The indexes of a plan's simulation.

    Attributes:
        collections: at least one, each with more than K rows.
        left_out: tenant with no more rows than K -> its number of rows.
    """

    collections: list[Collection]
    left_out: dict[str, int]


def load(
    index: Path | None,
    questions: Path | None,
    tenant: str | None,
    top_k: int,
    progress: Progress,
) -> Loaded:
    """Return the indexes on which a plan's noise is simulated.

    Args:
        index: embeddings (.npy, real [N, d]), the prover's settings (.yaml; the documents that were
            ingested), or text files; None for the bundled text.
        questions: a text file with one question a line, or embeddings (.npy) if the index is; None
            for questions that the texts themselves suggest, or for their sentences.
        tenant: one tenant of the prover's or of the bundled text; None for all of them.
        top_k: K, >= 1; a tenant without more rows is left out.
        progress: called with what is being done.

    Raises:
        MalformedError: a file that cannot be read as such, or no tenant of more than K rows;
            ``where`` begins with the argument's name.
        RagauditError: the prover's database or the embedder is not available.
    """
    # Vectors come without their texts: nothing can suggest questions about them.
    if index is not None and index.suffix == ".npy":
        if tenant is not None:
            raise MalformedError("embeddings have no tenants", where="tenant", expected="none")
        if questions is None or questions.suffix != ".npy":
            raise MalformedError(
                "no questions for the embeddings",
                where="questions",
                expected="an .npy file of their embeddings, [Q, d]",
            )
        progress("reading the embeddings")
        only = Collection.of(index.name, _array(index, "index"), _array(questions, "questions"))
        _check_rows({only.name: len(only.rows)}, top_k)
        return Loaded([only], {})
    if questions is not None and questions.suffix == ".npy":
        raise MalformedError(
            "embeddings of questions for an index of texts",
            where="questions",
            expected="a text file with one question a line",
        )
    lines = None if questions is None else _lines(questions)
    progress("reading the texts")
    embedder_name, texts = _texts(index)
    if tenant is not None:
        if tenant not in texts:
            raise MalformedError(
                f"no tenant {tenant!r}", where="tenant", expected=", ".join(sorted(texts))
            )
        texts = {tenant: texts[tenant]}
    sizes = {name: len(passages) for name, passages in sorted(texts.items())}
    _check_rows(sizes, top_k)
    progress("loading the embedder")
    embedder = registry.load(embedder_name)
    return Loaded(
        [
            _embedded(name, texts[name], lines, embedder, progress)
            for name, rows in sizes.items()
            if rows > top_k
        ],
        {name: rows for name, rows in sizes.items() if rows <= top_k},
    )


def _check_rows(sizes: dict[str, int], top_k: int) -> None:
    largest = max(sizes, key=sizes.__getitem__)
    if top_k >= sizes[largest]:
        raise MalformedError(
            f"top_k is {top_k}, and {largest} has {sizes[largest]} rows",
            where="top_k",
            expected="K below the number of rows",
        )


def _texts(index: Path | None) -> tuple[str, dict[str, list[Passage]]]:
    """Return the embedder's name and tenant -> passages."""
    if index is None:
        return registry.DEFAULT, load_corpus()
    if index.suffix in SETTINGS_SUFFIXES:
        return _ingested(index)
    # Imported here: only a provider's own texts need the prover.
    from ragaudit.prover.command.ingest import read_files  # noqa: PLC0415

    with _reading(index):
        documents = read_files([index])
    return registry.DEFAULT, {index.name: [Passage(item.id, item.content) for item in documents]}


def _ingested(settings: Path) -> tuple[str, dict[str, list[Passage]]]:
    from ragaudit.prover.backends.stored import StoredDocuments  # noqa: PLC0415 - as above
    from ragaudit.prover.settings import load_settings  # noqa: PLC0415
    from ragaudit.prover.store.database import Store  # noqa: PLC0415

    with _reading(settings):
        loaded = load_settings(settings)
    _check_database(loaded.store.url)
    store = Store.open(loaded.store.url)
    try:
        documents = StoredDocuments(store)
        texts = {
            tenant: [
                Passage(document.id, document.content)
                for page in documents.pages(tenant, loaded.backend.page_rows)
                for document in page
            ]
            for tenant in documents.tenants()
        }
    finally:
        store.close()
    if not texts:
        raise MalformedError(
            "no documents in the store", where="index", expected="`ragaudit prover ingest` first"
        )
    return loaded.embedder.name, texts


@contextmanager
def _reading(index: Path) -> Iterator[None]:
    """Name the argument and the file in errors raised in the block."""
    try:
        yield
    except MalformedError as error:
        where = f"index, {error.where or index}"
        raise MalformedError(error.what, where=where, expected=error.expected) from error


def _check_database(url: str) -> None:
    """Check that an SQLite database exists: opening it would make an empty one."""
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not path.is_file():
        raise MalformedError(
            f"no database {path}", where="index", expected="`ragaudit prover init` first"
        )


def _embedded(
    name: str,
    passages: Sequence[Passage],
    texts: Sequence[str] | None,
    embedder: Embedder,
    progress: Progress,
) -> Collection:
    progress(f"embedding {len(passages)} passages of {name}")
    source = QuestionSource.GIVEN
    if texts is None:
        texts, source = _suggested(name, passages)
    return Collection.of(
        name, _embed(embedder, [part.text for part in passages]), _embed(embedder, texts), source
    )


def _suggested(name: str, passages: Sequence[Passage]) -> tuple[list[str], QuestionSource]:
    """Return questions that the texts suggest, or else their sentences; not too many."""
    texts, source = list(candidates(passages)), QuestionSource.SUGGESTED
    if len(texts) < FEWEST_SUGGESTED:
        texts, source = _sentences(passages), QuestionSource.SENTENCES
    if len(texts) < 2:
        raise MalformedError(
            f"{name} has {len(texts)} different sentences to ask",
            where="questions",
            expected="a text file with one question a line",
        )
    return spread(texts, QUESTIONS_PER_TENANT), source


def _sentences(passages: Sequence[Passage]) -> list[str]:
    """Return the different sentences of the texts; only questions if there are two or more."""
    every = (part.strip() for passage in passages for part in _SENTENCE_END.split(passage.text))
    sentences = list(dict.fromkeys(sentence for sentence in every if sentence))
    questions = [sentence for sentence in sentences if sentence.endswith("?")]
    return questions if len(questions) >= 2 else sentences


def _embed(embedder: Embedder, texts: Iterable[str]) -> Vectors:
    batch = checked_texts(list(texts))
    return checked_embeddings(embedder.embed(batch), len(batch), embedder.dimension)


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedError(
            f"cannot read {path}", where="questions", expected="a UTF-8 text file"
        ) from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        raise MalformedError(
            f"{len(lines)} questions in {path}", where="questions", expected="at least 2"
        )
    return lines


def _array(path: Path, where: str) -> npt.NDArray[np.floating]:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise MalformedError(
            f"cannot read {path}", where=where, expected="an .npy file of real numbers"
        ) from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or array.ndim != 2:
        raise MalformedError(
            f"{path} holds no matrix of real numbers", where=where, expected="[rows, d]"
        )
    if len(array) < 2:
        raise MalformedError(f"{len(array)} rows in {path}", where=where, expected="at least 2")
    values: npt.NDArray[np.floating] = array if array.dtype.kind == "f" else array.astype(float)
    return values


def _quantised(vectors: npt.NDArray[np.floating], where: str) -> npt.NDArray[np.int8]:
    try:
        return quantise_rows(vectors)
    except MalformedError as error:
        place = f"{where}, {error.where}" if error.where else where
        raise MalformedError(error.what, where=place, expected=error.expected) from error


# Cosines are ranked as integers; steps of 2^-50 are finer than single precision.
_COSINE_UNIT = 2.0**50


class SeededNoise:
    """The discrete Gaussian "ragaudit/v1/dgs" of one sigma, repeatable by a seed.

    Another key for every (seed, sigma, question, trial); these keys serve no deployed window.

    Raises:
        MalformedError: sigma is no decimal, or outside the sampler's range.
    """

    def __init__(self, sigma: str, seed: str) -> None:
        self._sigma = sigma
        self._seed = seed
        self._parameters = NoiseParameters.for_sigma(sigma)
        self._thresholds = table(self._parameters).thresholds

    def __call__(self, question: int, trial: int, count: int) -> npt.NDArray[np.int64]:
        """Return int64[count], the noise of every row in lattice units."""
        key = structure("plan/noise", self._seed, self._sigma, question, trial)
        return core.sample_noise(
            self._thresholds, self._parameters.factor, self._parameters.levels, key, count
        )


def noise_of(sigmas: Sequence[str], seed: str) -> Mapping[str, NoiseSource]:
    """Return sigma (decimal, cosine units) -> its noise.

    Args:
        sigmas: decimals, cosine units.
        seed: makes the draws repeatable.

    Raises:
        MalformedError: as :class:`SeededNoise`.
    """
    return {sigma: SeededNoise(sigma, seed) for sigma in sigmas}


def scored(collections: Sequence[Collection]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the exact scores int64[N] of every question of every collection, one at a time.

    Args:
        collections: their questions follow one another in this order.
    """
    for collection in collections:
        scorer = core.Scorer(collection.rows)
        for question in collection.questions:
            yield scorer.scores(question.astype(np.int16))


def quantised_recall(collections: Sequence[Collection], top_k: int) -> Interval:
    """Return recall@K of noise-free search among the integer vectors, against the real ones.

    What quantisation costs before any noise; the simulation's truth is the integer scores.

    Args:
        collections: each with more than K rows.
        top_k: K, at least 1.
    """
    values = []
    exact = scored(collections)
    for collection in collections:
        rows, queries = _normalized(collection.vectors), _normalized(collection.question_vectors)
        for real in queries:
            truth = np.rint(rows @ real * _COSINE_UNIT).astype(np.int64)
            returned = select(next(exact), top_k)
            values.append(Ranking.of(truth, top_k).recall(returned))
    return mean_interval(np.array(values, dtype=np.float64), highest=1.0)


def _normalized(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    wide /= np.max(np.abs(wide), axis=1, keepdims=True)  # so that no square overflows
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    return wide
