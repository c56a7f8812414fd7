"""A directory that sentence-transformers loads: weights, tokenizer and configuration, all in C_emb.

Nothing is downloaded, no code of the directory is run, and pickled weights are refused.
"""

import importlib.util
import threading
from collections.abc import Sequence
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

__all__ = ["NAME", "SentenceTransformersEmbedder", "folder_digests"]

NAME: Final = "sentence-transformers"
_MOST_FILES = 200  # a model has twenty; a folder of something else is not read to its end
_NO_MODEL = {".md", ".txt.gz", ".onnx"}  # notes, and exports that are not loaded
_PICKLED = {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"}


class SentenceTransformersEmbedder:
    """An `Embedder` from a directory. Safe to use from several threads.

    Attributes:
        name, dimension: as of `base.Embedder`.
    """

    name = NAME

    def __init__(self, folder: Path) -> None:
        """Load the model.

        Args:
            folder: as `SentenceTransformer.save` writes it, or a snapshot of a model hub.

        Raises:
            EmbedderUnavailable: the library is not installed, or the folder holds no such model.
        """
        if importlib.util.find_spec("sentence_transformers") is None:
            raise EmbedderUnavailable(
                "sentence-transformers is not installed",
                expected='pip install "ragaudit-embedders[sentence-transformers]"',
            )
        # Before anything parses the files.
        self._files = folder_digests(folder)
        self._model = _load(folder)
        self.dimension = int(self._model.get_sentence_embedding_dimension() or 0)
        # Tokenizers refuse a second caller ("Already borrowed").
        self._one_at_a_time = threading.Lock()

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return float32[n, d]; longer texts than the model takes are cut by it.

        Args:
            texts: n of them, none empty.

        Raises:
            MalformedError: as `base.Embedder.embed`.
        """
        checked = checked_texts(texts)
        if not checked:
            return np.empty((0, self.dimension), dtype=np.float32)
        with self._one_at_a_time:
            found = self._model.encode(
                checked, batch_size=32, convert_to_numpy=True, show_progress_bar=False
            )
        vectors = np.asarray(found, dtype=np.float32)
        return checked_embeddings(vectors, len(checked), self.dimension)

    def manifest(self) -> EmbedderManifest:
        """Return the manifest, with the digests of the files that were loaded."""
        return EmbedderManifest(
            name=NAME,
            dimension=self.dimension,
            prompt_template="{text}",
            schema={"loader": "sentence-transformers, device cpu, binary32"},
            files=self._files,
        )


def folder_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a model's folder, by path below it.

    Notes (``*.md``), exports that are not loaded and hidden files are left out.

    Args:
        folder: of the model.

    Raises:
        EmbedderUnavailable: it is no folder of a model, or holds pickled weights.
    """
    if not (folder / "modules.json").is_file():
        raise EmbedderUnavailable(
            "no model of sentence-transformers", where=str(folder), expected="modules.json in it"
        )
    digests: dict[str, str] = {}
    for file in sorted(folder.rglob("*")):
        place = file.relative_to(folder)
        hidden = any(part.startswith(".") for part in place.parts)
        if hidden or not file.is_file() or file.suffix in _NO_MODEL:
            continue
        if file.suffix in _PICKLED:
            # Loading a pickle runs whatever its author wrote.
            raise EmbedderUnavailable(
                "pickled weights", where=place.as_posix(), expected="model.safetensors"
            )
        if len(digests) == _MOST_FILES:
            raise EmbedderUnavailable(
                "too many files for a model", where=str(folder), expected=f"at most {_MOST_FILES}"
            )
        digests[place.as_posix()] = file_digest(file)
    return digests


def _load(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - seconds, and an extra

    try:
        model = SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
    except Exception as error:  # whatever the libraries below raise: the folder is no model
        raise EmbedderUnavailable(
            f"sentence-transformers does not load it: {type(error).__name__}", where=str(folder)
        ) from error
    return model.float().eval()
