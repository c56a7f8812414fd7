"""Embedders by name."""

from collections.abc import Callable, Mapping

from ragaudit.embedders.base import Embedder
from ragaudit.embedders.wordllama import NAME, WordLlamaEmbedder
from ragaudit.encoding.errors import UnsupportedError

__all__ = ["DEFAULT", "load", "names"]

DEFAULT = NAME
# A fixed table: a name that stands in a policy must never become an import.
_KNOWN: Mapping[str, Callable[[], Embedder]] = {NAME: WordLlamaEmbedder}


def names() -> tuple[str, ...]:
    """Return the names that :func:`load` knows."""
    return tuple(_KNOWN)


def load(name: str = DEFAULT) -> Embedder:
    """Return a loaded embedder.

    Args:
        name: one of :func:`names`.

    Raises:
        UnsupportedError: no embedder of this name.
        EmbedderUnavailable: its library or files are missing, or are not the pinned ones.
    """
    if name not in _KNOWN:
        raise UnsupportedError(f"unknown embedder {name!r}", expected=", ".join(_KNOWN))
    return _KNOWN[name]()
