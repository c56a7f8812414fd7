"""No embedder: applications send vectors, and the query is the vector (spec 5.3)."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest

__all__ = ["NAME", "NoEmbedder"]

NAME: Final = "none"


class NoEmbedder:
    """What stands where an embedder would: it knows d and embeds nothing.

    Attributes:
        name: as of `base.Embedder`.
    """

    name = NAME

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
