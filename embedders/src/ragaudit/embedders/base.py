""""""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, overload

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import IntegerRows, quantise_rows
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.encoding.parameters import B
from ragaudit.ledger.messages.manifests import EmbedderManifest

__all__ = [
    "NONE",
    "Embedder",
    "EmbedderUnavailable",
    "NoEmbedder",
    "checked_embeddings",
    "checked_texts",
    "embed_quantised",
    "file_digest",
]


class EmbedderUnavailable(UnavailableError):
    """The embedder's files are missing or are not the pinned ones."""


class Embedder(Protocol):
    """A fixed map from texts to vectors: no function of the index (docs/spec/README.md)."""

    @property
    def name(self) -> str:
        """Return the name under which a registry loads it."""

    @property
    def dimension(self) -> int:
        """Return d, the number of entries of an embedding."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return float32[n, d], row i for text i, whatever the other texts are.

        Args:
            texts: n of them, none empty.

        Raises:
            MalformedError: a text that is empty or not Unicode, or that has no embedding
                (NaN, infinity, all zero); ``where`` names it.
        """

    def manifest(self) -> EmbedderManifest:
        """Return the manifest, made from the files that this embedder loaded."""


def checked_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list.

    Args:
        texts: as a caller gives them.

    Raises:
        MalformedError: a text that is empty or not Unicode; ``where`` names the first.
    """
    # A text is a sequence of texts too: of its characters.
    if isinstance(texts, str):
        raise MalformedError("one text instead of several", expected="a sequence of texts")
    for number, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise MalformedError("empty text", where=f"text {number}", expected="some words")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise MalformedError("text has lone surrogates", where=f"text {number}") from error
    return list(texts)


def checked_embeddings(
    vectors: npt.NDArray[np.float32], count: int, dimension: int
) -> npt.NDArray[np.float32]:
    """Return the vectors if they are float32[count, dimension], finite and never all zero.

    Args:
        vectors: row i for text i.
        count: n, number of texts.
        dimension: d.

    Raises:
        MalformedError: any other shape, NaN, infinity or a null vector; ``where`` names it.
    """
    if vectors.dtype != np.float32 or vectors.shape != (count, dimension):
        raise MalformedError(
            f"embeddings are {vectors.dtype}{list(vectors.shape)}",
            expected=f"float32[{count}, {dimension}]",
        )
    # A sum of squares that is a number, and not 0, tells of every query that all is well.
    squares = np.einsum("ij,ij->i", vectors, vectors)
    if all(0 < square < np.inf for square in squares.tolist()):
        return vectors
    infinite = ~np.all(np.isfinite(vectors), axis=1)
    zero = ~np.any(vectors, axis=1)
    # None of them can be quantised (spec 2.1).
    for bad, what in ((infinite, "embedding with NaN or infinity"), (zero, "null embedding")):
        if np.any(bad):
            raise MalformedError(what, where=f"text {int(np.argmax(bad))}", expected="known words")
    return vectors


_BLOCK = 2**20


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; OSError if it cannot be read.

    Args:
        path: of a file of any size; one block of it is in memory.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


@overload
def embed_quantised(embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.int8]: ...
@overload
def embed_quantised(embedder: Embedder, texts: Sequence[str], norm_bound: int) -> IntegerRows: ...
def embed_quantised(embedder: Embedder, texts: Sequence[str], norm_bound: int = B) -> IntegerRows:
    """Return integers [n, d], every row of Euclidean norm at most B: int8 for 127, int16 for 4095.

    The order of calls is always embed, check, quantise: an embedder of any origin passes here.

    Args:
        embedder: of any origin.
        texts: n of them, perhaps none.
        norm_bound: B of the policy.

    Raises:
        MalformedError: an empty text, or an embedding that is NaN, infinite or all zero.
    """
    checked = checked_texts(texts)
    if not checked:
        shape = (0, embedder.dimension)
        return np.empty(shape, np.int8) if norm_bound == B else np.empty(shape, np.int16)
    vectors = checked_embeddings(embedder.embed(checked), len(checked), embedder.dimension)
    return quantise_rows(vectors, norm_bound)


NONE: Final = "none"


class NoEmbedder:
    """What stands where an embedder would: it knows d and embeds nothing.

    Attributes:
        name: as of `base.Embedder`.
    """

    name = NONE

    def __init__(self, dimension: Callable[[], int]) -> None:
        """Keep where d comes from; it is asked when it is needed.

        Args:
            dimension: returns d, of the vectors of a store.
        """
        self._ask = dimension
        self._dimension: int | None = None

    @property
    def dimension(self) -> int:
        """Return d."""
        if self._dimension is None:
            self._dimension = self._ask()
        return self._dimension

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Refuse: a text that is asked here has no vector.

        Raises:
            MalformedError: always.
        """
        raise MalformedError(
            "a text was asked, and no embedder is configured", expected="a query vector"
        )

    def manifest(self) -> EmbedderManifest:
        """Return the manifest, which commits to d and to nothing else."""
        return EmbedderManifest.of_none(self.dimension)
