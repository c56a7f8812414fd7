"""Embedders by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragaudit.embedders import sentence_transformers, wordllama
from ragaudit.embedders.base import NONE, Embedder, EmbedderUnavailable, NoEmbedder
from ragaudit.embedders.sentence_transformers import SentenceTransformersEmbedder
from ragaudit.embedders.wordllama import WordLlamaEmbedder
from ragaudit.encoding.errors import UnsupportedError

if TYPE_CHECKING:
    from ragaudit.embedders.endpoint import EndpointOptions

__all__ = ["DEFAULT", "ENDPOINT", "EmbedderOptions", "load", "names"]

DEFAULT = wordllama.NAME
ENDPOINT: Final = "openai-compatible"  # endpoint.NAME, whose module needs an extra


@dataclass(frozen=True)
class EmbedderOptions:
    """What an embedder needs beside its name; each takes what is its own.

    Attributes:
        dimension: returns d of the vectors that applications send; for "none".
        folder: of the model; for "sentence-transformers".
        endpoint: for "openai-compatible".
    """

    dimension: Callable[[], int] | None = None
    folder: Path | None = None
    endpoint: "EndpointOptions | None" = None


def names() -> tuple[str, ...]:
    """Return the names that :func:`load` knows."""
    return tuple(_KNOWN)


def load(name: str = DEFAULT, options: EmbedderOptions = EmbedderOptions()) -> Embedder:
    """Return a loaded embedder.

    Args:
        name: one of :func:`names`.
        options: of this embedder.

    Raises:
        UnsupportedError: no embedder of this name.
        EmbedderUnavailable: its library, files or options are missing, or are not the pinned ones.
    """
    if name not in _KNOWN:
        raise UnsupportedError(f"unknown embedder {name!r}", expected=", ".join(_KNOWN))
    return _KNOWN[name](options)


def _wordllama(_: EmbedderOptions) -> Embedder:
    return WordLlamaEmbedder()


def _none(options: EmbedderOptions) -> Embedder:
    if options.dimension is None:
        raise EmbedderUnavailable("nothing says how long vectors are", expected="stored vectors")
    return NoEmbedder(options.dimension)


def _sentence_transformers(options: EmbedderOptions) -> Embedder:
    if options.folder is None:
        raise EmbedderUnavailable("no model is named", expected="the folder of one")
    return SentenceTransformersEmbedder(options.folder)


def _endpoint(options: EmbedderOptions) -> Embedder:
    if options.endpoint is None:
        raise EmbedderUnavailable("no endpoint is named", expected="its address and model")
    if find_spec("httpx") is None:
        raise EmbedderUnavailable(
            "httpx is not installed", expected='pip install "ragaudit-embedders[endpoint]"'
        )
    # An extra: an auditor of other windows does without a client.
    from ragaudit.embedders.endpoint import EndpointEmbedder  # noqa: PLC0415

    return EndpointEmbedder(options.endpoint)


# A fixed table: a name that stands in a policy must never become an import.
_KNOWN: Mapping[str, Callable[[EmbedderOptions], Embedder]] = {
    DEFAULT: _wordllama,
    NONE: _none,
    sentence_transformers.NAME: _sentence_transformers,
    ENDPOINT: _endpoint,
}
