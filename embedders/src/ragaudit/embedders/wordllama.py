"""WordLlama, 256 dimensions: the mean of static token vectors, from files inside its wheel.

Nothing is ever downloaded: the files are looked up in the installed package, compared with
pinned digests, and only then loaded.
"""

import importlib.util
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.embedders.base import (
    EmbedderUnavailable,
    checked_embeddings,
    checked_texts,
    file_digest,
)
from ragaudit.ledger.messages.manifests import EmbedderManifest

__all__ = ["PINNED", "WordLlamaEmbedder"]

NAME: Final = "wordllama-l2-supercat-256"
DIMENSION: Final = 256
PINNED: Final = {
    "weights/l2_supercat_256.safetensors": (
        "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
    ),
    "tokenizers/l2_supercat_tokenizer_config.json": (
        "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
    ),
}
"""SHA-256 of the files of wordllama 0.4; C_emb follows from them."""

# Longer texts are embedded alone: a batch is padded to its longest text, in 256 floats a token.
_LONG_TEXT = 4096
_BATCH = 64


class WordLlamaEmbedder:
    """The default embedder: deterministic, offline, no trained state of the index.

    Attributes:
        name, dimension: as of `base.Embedder`.
    """

    name = NAME
    dimension = DIMENSION

    def __init__(self) -> None:
        """Load the model.

        Raises:
            EmbedderUnavailable: wordllama is not installed, or its files are not the pinned ones.
        """
        folder = _package_folder()
        self._files = _checked_files(folder)
        self._model = _load(folder)

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return float32[n, 256]; a row depends on its own text only.

        Args:
            texts: n of them, none empty.

        Raises:
            MalformedError: as `base.Embedder.embed`.
        """
        checked = checked_texts(texts)
        vectors = np.empty((len(checked), DIMENSION), dtype=np.float32)
        for positions in _batches(checked):
            vectors[positions] = self._model.embed([checked[i] for i in positions])
        return checked_embeddings(vectors, len(checked), DIMENSION)

    def manifest(self) -> EmbedderManifest:
        """Return the manifest, with the digests of the files that were loaded."""
        return EmbedderManifest(
            name=NAME,
            dimension=DIMENSION,
            prompt_template="{text}",
            schema={"pooling": "mean of the token vectors", "special_tokens": "none"},
            files=self._files,
        )


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderUnavailable(
            "wordllama is not installed",
            where=f"embedder {NAME}",
            expected='pip install "ragaudit-embedders[wordllama]", or another embedder',
        )
    return Path(spec.submodule_search_locations[0])


def _checked_files(folder: Path) -> dict[str, str]:
    """Return the digests of the files, computed from the disk and equal to the pinned ones."""
    digests = {}
    for path, pinned in PINNED.items():
        try:
            digests[path] = file_digest(folder / path)
        except OSError as error:
            raise EmbedderUnavailable("a file of wordllama is missing", where=path) from error
        # Before anything parses the file.
        if digests[path] != pinned:
            raise EmbedderUnavailable("a file of wordllama is another", where=path, expected=pinned)
    return digests


@lru_cache(maxsize=1)
def _load(folder: Path) -> Any:
    """The model, which never changes: one for all embedders, each of which compared its files."""
    with _root_logger_untouched():
        from wordllama import WordLlama  # noqa: PLC0415 - slow, and it configures logging

        # A file that it fetched now would not be one whose digest was compared.
        return WordLlama.load("l2_supercat", cache_dir=folder, dim=DIMENSION, disable_download=True)


@contextmanager
def _root_logger_untouched() -> Iterator[None]:
    """Restore the root logger: wordllama calls logging.basicConfig when it is imported."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield positions of the texts in groups, each of texts of similar length."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    short = [i for i in order if len(texts[i]) <= _LONG_TEXT]
    for start in range(0, len(short), _BATCH):
        yield short[start : start + _BATCH]
    for i in order[len(short) :]:
        yield [i]
