"""An embedder that needs no files: a text's hash is its vector."""

from collections.abc import Sequence
from hashlib import shake_256

import numpy as np
import numpy.typing as npt
from ragaudit.embedders.base import embed_quantised
from ragaudit.ledger.messages.manifests import EmbedderManifest
from ragaudit.verifier.models import InstalledEmbedder


class HashEmbedder:
    """Deterministic vectors of ``dimension`` entries; alike texts are nothing special to it."""

    # Sketch seeds are drawn anew in every run, and in few dimensions some pair of texts is alike by
    # chance: with 8, up to every second window would hold a coalition that nobody formed; with 64,
    # fewer than one window in 10^5.
    def __init__(self, dimension: int = 64, name: str = "hash") -> None:
        self.dimension = dimension
        self.name = name

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vector of each text, float32[n, d] with integer entries in [-2^15, 2^15).

        Entries are pairs of bytes of SHAKE-256 of the text. They are far longer than B until the
        caller quantises them (docs/spec/02-integers.md §2.1).
        """
        hashes = b"".join(shake_256(text.encode()).digest(2 * self.dimension) for text in texts)
        entries = np.frombuffer(hashes, dtype="<i2").reshape(-1, self.dimension)
        return entries.astype(np.float32)

    def manifest(self) -> EmbedderManifest:
        """Return the manifest; there are no files, so the name says everything."""
        return EmbedderManifest(self.name, self.dimension, "{text}", {}, {})

    def installed(self) -> InstalledEmbedder:
        """Return the same embedder as the audit procedure uses one."""
        return InstalledEmbedder(self, embed_quantised)
