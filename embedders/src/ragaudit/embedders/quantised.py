"""Embeddings as the committed integers (docs/spec/02-integers.md §2.1)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.embedders.base import Embedder, checked_embeddings, checked_texts

__all__ = ["embed_quantised"]


def embed_quantised(embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.int8]:
    """Return int8[n, d], every row of Euclidean norm at most 127.

    The order of calls is always embed, check, quantise: an embedder of any origin passes here.

    Args:
        embedder: of any origin.
        texts: n of them, perhaps none.

    Raises:
        MalformedError: an empty text, or an embedding that is NaN, infinite or all zero.
    """
    checked = checked_texts(texts)
    if not checked:
        return np.empty((0, embedder.dimension), dtype=np.int8)
    vectors = checked_embeddings(embedder.embed(checked), len(checked), embedder.dimension)
    return quantise_rows(vectors)
