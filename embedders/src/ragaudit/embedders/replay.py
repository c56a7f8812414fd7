"""An auditor's look at a committed endpoint: the probes are asked again (spec 5.3)."""

from dataclasses import replace

import numpy as np
from ragaudit.circuits.quantise import distance, quantise_rows
from ragaudit.embedders.base import Embedder, EmbedderUnavailable
from ragaudit.embedders.endpoint import NAME, EndpointEmbedder, EndpointOptions
from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest

__all__ = ["check_probes", "replayed"]


def check_probes(manifest: EmbedderManifest, embedder: Embedder, tolerance: int) -> None:
    """Check that an embedder gives the committed embeddings of the probes.

    Args:
        manifest: as committed, of the kind "endpoint".
        embedder: the one at hand.
        tolerance: of the policy (spec 2.2), for integers of norm 127.

    Raises:
        RejectedError: a probe's embedding is farther away, or has another length.
        EmbedderUnavailable: the service does not answer.
    """
    if embedder.dimension != manifest.dimension:
        raise RejectedError(
            f"embeddings of {embedder.dimension} entries", expected=f"{manifest.dimension}"
        )
    try:
        rows = quantise_rows(embedder.embed([probe.text for probe in manifest.probes]))
    except MalformedError as error:
        raise RejectedError(f"a probe has no embedding: {error.what}") from error
    for number, (probe, row) in enumerate(zip(manifest.probes, rows, strict=True)):
        found = distance(np.frombuffer(probe.vector, dtype=np.int8), row)
        if found > tolerance:
            raise RejectedError(
                "the service gives another embedding than the committed one",
                where=f"probe {number}",
                expected=f"a distance of at most {tolerance}, not {found}",
            )


def replayed(
    manifest: EmbedderManifest, endpoint: EndpointOptions | None, tolerance: int
) -> EndpointEmbedder:
    """Return the committed endpoint's embedder, after its probes were asked again.

    Args:
        manifest: as committed.
        endpoint: how the auditor reaches the declared model; model, d, template and probes are the
            manifest's, whatever it says of them.
        tolerance: of the policy.

    Raises:
        UnsupportedError: the committed embedder is not an endpoint.
        EmbedderUnavailable: the auditor has no endpoint, or it does not answer.
        RejectedError: it is not the committed one.
    """
    if manifest.kind != "endpoint" or manifest.name != NAME:
        raise UnsupportedError(
            f"embedder {manifest.name!r} is no endpoint", expected=f"the embedder {NAME}"
        )
    if endpoint is None:
        raise EmbedderUnavailable(
            "no endpoint to ask the probes of",
            expected=f"one that serves {manifest.schema.get('model')}",
        )
    options = replace(
        endpoint,
        model=manifest.schema.get("model", ""),
        dimension=manifest.dimension,
        send_dimension=manifest.schema.get("dimensions") == "sent",
        prompt_template=manifest.prompt_template or "{text}",
        probes=tuple(probe.text for probe in manifest.probes),
    )
    embedder = EndpointEmbedder(options)
    try:
        check_probes(manifest, embedder, tolerance)
    except BaseException:
        embedder.close()
        raise
    # Its own manifest would have the embeddings of today: C_emb is of the committed ones.
    return embedder.committed_as(manifest)
