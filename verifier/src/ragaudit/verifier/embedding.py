"""The committed embedder, where the verifier has it: by its files, or as a service it can ask.

Embedders are an optional part of the verifier: they are imported only when a window names one.
"""

import logging
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy.typing as npt
from ragaudit.circuits.metrics import scaled
from ragaudit.circuits.quantise import IntegerRows
from ragaudit.encoding.errors import RagauditError, UnavailableError
from ragaudit.encoding.parameters import B
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest
from ragaudit.ledger.messages.items import EMBEDDER, POLICY
from ragaudit.ledger.messages.policy import Policy
from ragaudit.serving.settings import read_secret_file
from ragaudit.verifier.bundle import open_bundle
from ragaudit.verifier.embedder_settings import BUNDLED, EmbedderSettings, EndpointSettings
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.models import CommittedEmbedder
from ragaudit.verifier.settings import load

__all__ = ["InstalledEmbedder", "committed_embedder", "embedder_of"]

_log = logging.getLogger(__name__)


class InstalledEmbedder:
    """An embedder that is at hand, as the procedure uses it."""

    def __init__(self, embedder: Any, embed_quantised: Callable[..., IntegerRows]) -> None:
        self._embedder = embedder
        self._embed = embed_quantised
        self._digest: bytes = embedder.manifest().digest()

    @property
    def digest(self) -> bytes:
        """C_emb of the files that it runs, or of the service whose probes it was compared with."""
        return self._digest

    def embed(self, text: str, norm_bound: int = B) -> npt.NDArray[Any]:
        """Return the quantised embedding of a text, integers [d]; RagauditError if it has none.

        Args:
            text: what was asked.
            norm_bound: B of the policy.
        """
        vector: npt.NDArray[Any] = self._embed(self._embedder, [text], norm_bound)[0]
        return vector

    def embed_row(
        self, text: str, *, metric: str, largest_norm: Decimal | None, norm_bound: int
    ) -> npt.NDArray[Any]:
        """Return the row of a text in an index, integers [d]; RagauditError if there is none.

        Args:
            text: of a document, not blank.
            metric, largest_norm, norm_bound: of the policy.
        """
        vectors = self._embedder.embed([text])
        row: npt.NDArray[Any] = scaled(vectors, metric, largest_norm, norm_bound)[0]
        return row


def committed_embedder(
    evidence: Evidence, own: EmbedderSettings = BUNDLED
) -> CommittedEmbedder | None:
    """Return the embedder that the evidence names, None where this verifier does not have it.

    Whether files are the committed ones is check 18's to say, which compares C_emb. A service is
    asked for its committed probes here (docs/spec/05-records.md §5.3); one that answers others is
    not the committed one.

    Args:
        evidence: of a window.
        own: what this verifier has beside the bundled embedder.
    """
    try:
        manifest = EmbedderManifest.parse(evidence[EMBEDDER])
        if manifest.kind == "none":  # vectors are compared without one
            return None
        if manifest.kind == "endpoint":
            return _asked(manifest, own.endpoint, Policy.parse(evidence[POLICY]).embedder_tolerance)
        return _installed(manifest.name, own.folder)
    except (ImportError, KeyError, RagauditError) as error:
        _log.warning("the committed embedder is not at hand: %s", error)
        return None


def embedder_of(bundle: Path, settings: Path | None) -> CommittedEmbedder | None:
    """Return the embedder that an evidence bundle names; None as `committed_embedder`.

    Args:
        bundle: a file. Of its public part alone nothing is embedded: texts are confidential.
        settings: of a verifier, whose section ``embedder`` counts; None: the bundled one only.

    Raises:
        MalformedError: not a bundle, or not settings.
    """
    own = BUNDLED if settings is None else load(settings).embedder
    with open_bundle(bundle) as opened:
        return committed_embedder(opened.evidence, own) if opened.part == "all" else None


def _asked(
    manifest: EmbedderManifest, own: EndpointSettings | None, tolerance: int
) -> InstalledEmbedder:
    model = manifest.schema.get("model", "")
    # The provider declared the model: one of its own making could be any function of the texts.
    if own is None or model not in own.models:
        raise UnavailableError("no endpoint of this verifier serves the declared model")
    endpoint = import_module("ragaudit.embedders.endpoint")
    options = endpoint.EndpointOptions(
        url=own.url,
        model=model,
        dimension=manifest.dimension,
        key=None if own.key_file is None else read_secret_file(own.key_file),
        timeout=own.timeout_seconds,
        authorities=own.ca_file,
    )
    base = import_module("ragaudit.embedders.base")
    return InstalledEmbedder(endpoint.replayed(manifest, options, tolerance), base.embed_quantised)


@lru_cache(maxsize=2)  # loading takes a second, and leaves tens of megabytes in pieces
def _installed(name: str, folder: Path | None) -> InstalledEmbedder:
    registry = import_module("ragaudit.embedders.registry")
    base = import_module("ragaudit.embedders.base")
    embedder = registry.load(name, registry.EmbedderOptions(folder=folder))
    return InstalledEmbedder(embedder, base.embed_quantised)
