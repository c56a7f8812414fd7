"""An embedder that needs no files: a text's hash seeds its vector."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import quantise
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest


class HashEmbedder:
    """Deterministic vectors of ``dimension`` entries; alike texts are nothing special to it."""

    name = "hash"

    def __init__(self, dimension: int = 8) -> None:
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """float32[n, d]."""
        return np.stack([self._vector(text) for text in texts])

    def manifest(self) -> EmbedderManifest:
        """It has no files; the name says everything."""
        return EmbedderManifest(self.name, self.dimension, "{text}", {}, {})

    def _vector(self, text: str) -> npt.NDArray[np.float32]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")
        return np.random.default_rng(seed).normal(size=self.dimension).astype(np.float32)


class VerifierEmbedder:
    """The same embedder, as the audit procedure uses one."""

    def __init__(self, embedder: HashEmbedder) -> None:
        self._embedder = embedder
        self._digest = embedder.manifest().digest()

    @property
    def digest(self) -> bytes:
        """C_emb."""
        return self._digest

    def embed(self, text: str) -> npt.NDArray[np.int8]:
        """int8[d]."""
        return quantise(self._embedder.embed([text])[0])
