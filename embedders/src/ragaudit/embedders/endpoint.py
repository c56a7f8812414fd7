"""Any service that speaks OpenAI's `POST /embeddings`.

Nobody can commit to the weights behind an address. What is committed is the declared model and the
embeddings of some probes: an auditor asks the model for them again (`replay`), and finds out a
service that was exchanged, not one that answers the probes apart.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NoReturn, Self

import httpx
import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import distance, quantise_rows
from ragaudit.embedders.base import (
    Embedder,
    EmbedderUnavailable,
    checked_embeddings,
    checked_texts,
)
from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.encoding.json_structure import loads
from ragaudit.http import HttpClient, LongAnswer, PackedAnswer, trusted_authorities
from ragaudit.ledger.messages.manifests import EmbedderManifest, Probe

__all__ = ["NAME", "PROBES", "EndpointEmbedder", "EndpointOptions", "check_probes", "replayed"]

NAME: Final = "openai-compatible"
PROBES: Final = (
    "What does the contract say about termination?",
    "The patient was given 5 mg twice a day for two weeks.",
    "def open_file(path): return open(path, encoding='utf-8')",
    "Wie lange ist die Kündigungsfrist?",
    "Revenue rose by 12 % in the third quarter.",
    "medieval church music",
    "1234567890",
    "東京の天気はどうですか",
)
"""Texts of different kinds, in the manifest where the settings name no others."""

MAX_ANSWER_BYTES = 2**26  # whoever answers must not fill our memory

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EndpointOptions:
    """How the service is reached, and what is asked of it.

    Attributes:
        url: of the API, up to and without ``/embeddings``.
        model: as the service calls it; stands in C_emb.
        dimension: d of its embeddings.
        key: sent as a bearer token; None for a service that asks for none.
        send_dimension: ask the service for embeddings of this length (``dimensions``).
        prompt_template: ``{text}`` stands for the text.
        probes: texts of the manifest.
        batch: texts of one call.
        timeout: seconds for each phase of a call.
        authorities: PEM file of the certificate authorities to trust instead of the usual.
        transport: instead of the network, for tests.
    """

    url: str
    model: str
    dimension: int
    key: str | None = field(default=None, repr=False)
    send_dimension: bool = False
    prompt_template: str = "{text}"
    probes: tuple[str, ...] = PROBES
    batch: int = 64
    timeout: float = 30.0
    authorities: Path | None = None
    transport: httpx.BaseTransport | None = field(default=None, repr=False)


class EndpointEmbedder:
    """An `Embedder` over such a service. Safe to use from several threads.

    Attributes:
        name, dimension: as of `base.Embedder`.
    """

    name = NAME

    def __init__(self, options: EndpointOptions) -> None:
        """Prepare the calls; nothing is sent yet.

        Raises:
            MalformedSettings: no certificates in the file of authorities.
        """
        self.dimension = options.dimension
        self._options = options
        self._http = HttpClient(
            options.url,
            timeout=options.timeout,
            most=MAX_ANSWER_BYTES,
            verify=trusted_authorities(options.authorities, "embedder.endpoint.ca_file"),
            headers={} if options.key is None else {"Authorization": f"Bearer {options.key}"},
            transport=options.transport,
        )
        self._manifest: EmbedderManifest | None = None

    def committed_as(self, manifest: EmbedderManifest) -> Self:
        """Return this embedder with a manifest that was committed before.

        Args:
            manifest: whose probes this embedder has been compared with.
        """
        self._manifest = manifest
        return self

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return float32[n, d]; every text is sent once.

        Args:
            texts: n of them, none empty.

        Raises:
            MalformedError: as `base.Embedder.embed`.
            EmbedderUnavailable: no answer, or not one embedding for each text.
        """
        checked = checked_texts(texts)
        # Not str.format: a text may have braces of its own.
        prompts = [self._options.prompt_template.replace("{text}", text) for text in checked]
        vectors = np.empty((len(prompts), self.dimension), dtype=np.float32)
        for start in range(0, len(prompts), self._options.batch):
            part = prompts[start : start + self._options.batch]
            vectors[start : start + len(part)] = self._ask(part)
        return checked_embeddings(vectors, len(checked), self.dimension)

    def manifest(self) -> EmbedderManifest:
        """Return the manifest; the probes are embedded once, at the first call.

        Raises:
            EmbedderUnavailable: as `embed`.
        """
        if self._manifest is None:
            rows = quantise_rows(self.embed(self._options.probes))
            self._manifest = EmbedderManifest(
                name=NAME,
                dimension=self.dimension,
                prompt_template=self._options.prompt_template,
                schema={
                    "model": self._options.model,
                    "dimensions": "sent" if self._options.send_dimension else "not sent",
                },
                files={},
                kind="endpoint",
                probes=tuple(
                    Probe(text, row.tobytes())
                    for text, row in zip(self._options.probes, rows, strict=True)
                ),
            )
        return self._manifest

    def _ask(self, prompts: list[str]) -> npt.NDArray[np.float32]:
        body: dict[str, Any] = {
            "model": self._options.model,
            "input": prompts,
            "encoding_format": "float",
        }
        if self._options.send_dimension:
            body["dimensions"] = self.dimension
        try:
            answer = self._http.request("POST", "embeddings", json=body)
        except PackedAnswer:
            self._refuse("packed answer", "sent a packed answer")
        except LongAnswer:
            self._refuse("too long", "sent too long an answer")
        except httpx.HTTPError as error:
            self._refuse(f"{type(error).__name__}: {error}", "cannot be reached")
        if answer.status_code != 200:
            self._refuse(f"status {answer.status_code}", f"answered {answer.status_code}")
        try:
            value = loads(answer.content)
        except (ValueError, MalformedError):
            self._refuse("no JSON", "answered something else than JSON")
        rows = _rows(value, len(prompts))
        if rows is None:
            self._refuse("another form", "did not answer one embedding for each text")
        if any(len(row) != self.dimension for row in rows):
            self._refuse(
                f"embeddings of {len(rows[0])} entries",
                f"answered embeddings of another length than {self.dimension}",
            )
        try:
            vectors = np.array(rows, dtype=np.float32)
        except (TypeError, ValueError, OverflowError):
            vectors = np.empty(0, dtype=np.float32)
        if vectors.shape != (len(prompts), self.dimension):
            self._refuse("not numbers", "answered embeddings that are not numbers")
        return vectors

    def _refuse(self, detail: str, what: str) -> NoReturn:
        # Errors go to applications and name no address; the log is the operator's. Neither quotes
        # what the service wrote, which may quote the texts.
        _log.warning("the embedding service at %s: %s", self._options.url, detail[:300])
        raise EmbedderUnavailable(f"the embedding service {what}") from None


def _rows(value: Any, count: int) -> list[list[Any]] | None:
    """Return the embeddings in the order of the texts, None if the answer has another form."""
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(data, list) or len(data) != count:
        return None
    rows: dict[int, list[Any]] = {}
    for item in data:
        match item:
            # The order of the list is no promise; the index is.
            case {"index": int(index), "embedding": list(row)} if 0 <= index < count:
                rows[index] = row
    return [rows[index] for index in range(count)] if len(rows) == count else None


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
