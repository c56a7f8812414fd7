"""The committed embedder, where it is installed: an optional part of the verifier."""

import importlib
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import RagauditError
from ragaudit.verifier.evidence import EMBEDDER, Evidence
from ragaudit.verifier.procedure.context import CommittedEmbedder

_log = logging.getLogger(__name__)


class InstalledEmbedder:
    """An installed embedder as the procedure uses it."""

    def __init__(self, embedder: Any, embed_quantised: Callable[..., npt.NDArray[np.int8]]) -> None:
        self._embedder = embedder
        self._embed = embed_quantised
        self._digest: bytes = embedder.manifest().digest()

    @property
    def digest(self) -> bytes:
        """C_emb of the files that it runs."""
        return self._digest

    def embed(self, text: str) -> npt.NDArray[np.int8]:
        """int8[d]."""
        vector: npt.NDArray[np.int8] = self._embed(self._embedder, [text])[0]
        return vector


def committed_embedder(evidence: Evidence) -> CommittedEmbedder | None:
    """The embedder that the evidence names, if it is installed here; check 18 compares C_emb."""
    try:
        manifest = canonical_json.loads(evidence[EMBEDDER])
        return _installed(manifest["name"])
    except (ImportError, KeyError, TypeError, RagauditError) as error:
        _log.warning("the committed embedder is not at hand: %s", error)
        return None


@lru_cache(maxsize=2)  # loading takes a second, and leaves tens of megabytes in pieces
def _installed(name: str) -> InstalledEmbedder:
    registry = importlib.import_module("ragaudit.embedders.registry")
    quantised = importlib.import_module("ragaudit.embedders.quantised")
    return InstalledEmbedder(registry.load(name), quantised.embed_quantised)
