"""Models of the verifier's own: the committed embedder, and the committed generator.

An embedder is at hand by its files, or as a service that is asked; a language model as a service.
Embedders are an optional part of the verifier: they are imported only when a window names one.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt
from ragaudit.circuits.metrics import scaled
from ragaudit.circuits.quantise import IntegerRows
from ragaudit.encoding.errors import (
    InvalidArgumentError,
    MalformedError,
    MalformedSettings,
    RagauditError,
    UnavailableError,
)
from ragaudit.encoding.parameters import B
from ragaudit.ledger.messages.generation_terms import GenerationTerms, KeywordVoting
from ragaudit.ledger.messages.items import EMBEDDER, POLICY
from ragaudit.ledger.messages.manifests import EmbedderManifest, Vocabulary
from ragaudit.ledger.messages.policy import Policy
from ragaudit.serving.generators import (
    Asking,
    GeneratorOptions,
    NextTokens,
    WholeAnswers,
    read_tokens,
)
from ragaudit.serving.settings import read_secret_file
from ragaudit.verifier.bundle import open_bundle
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.settings import (
    BUNDLED,
    EmbedderSettings,
    EndpointSettings,
    GeneratorSettings,
    load,
)

__all__ = [
    "AnswerGenerator",
    "CommittedEmbedder",
    "GeneratorService",
    "InstalledEmbedder",
    "OwnGenerator",
    "TokenGenerator",
    "committed_embedder",
    "committed_generator",
    "embedder_of",
    "service_of",
]


class CommittedEmbedder(Protocol):
    """The committed embedder, where it is at hand."""

    @property
    def digest(self) -> bytes:
        """C_emb of the artefacts that it runs."""

    def embed(self, text: str, norm_bound: int = B) -> npt.NDArray[Any]:
        """Return the quantised embedding of a text, integers [d].

        Args:
            text: what was asked.
            norm_bound: B of the policy.

        Raises:
            RagauditError: the text has none.
        """

    def embed_row(
        self, text: str, *, metric: str, largest_norm: Decimal | None, norm_bound: int
    ) -> npt.NDArray[Any]:
        """Return the row of a text in an index, integers [d] (spec 2.5).

        Args:
            text: of a document, not blank.
            metric, largest_norm, norm_bound: of the policy.

        Raises:
            RagauditError: the text has no embedding, or the metric no row for it.
        """


@runtime_checkable
class TokenGenerator(Protocol):
    """The committed generator of tokens (DP-RAG), at an address of the verifier's own."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that it is asked for."""

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> Sequence[int | None]:
        """Return the next token of each voter, as `TokenVoters` says.

        Raises:
            UnavailableError: the model does not answer.
        """


@runtime_checkable
class AnswerGenerator(Protocol):
    """The committed generator of whole answers (DP-KSA), at an address of the verifier's own."""

    def whole(self, question: str, documents: Sequence[str]) -> Sequence[str | None]:
        """Return the answer of a voter to each document; None where the model gives none."""

    def final(self, question: str, keywords: Sequence[str]) -> str:
        """Return the final answer, as `ResponseVoters` says.

        Raises:
            UnavailableError: the model does not answer.
        """


OwnGenerator = TokenGenerator | AnswerGenerator


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


class GeneratorService:
    """A service with language models that this verifier believes.

    Raises:
        MalformedSettings: the vocabulary, or the file of a key, cannot be read.
    """

    def __init__(self, settings: GeneratorSettings) -> None:
        self._settings = settings
        path = settings.vocabulary_file
        try:
            self._tokens = () if path is None else read_tokens(path)
        except MalformedError as error:
            raise MalformedSettings(error.what, where=f"generator: {path}") from error
        self._key = None if settings.key_file is None else read_secret_file(settings.key_file)

    def has(self, model: str) -> bool:
        """Return whether this verifier believes the service about a model."""
        return model in self._settings.models

    def asking(self, model: str) -> Asking:
        """Return calls to the service for one of its models; close them."""
        own = self._settings
        options = GeneratorOptions(
            own.url,
            model,
            served_as=own.served_as,
            key=self._key,
            timeout=own.timeout_seconds,
            batch=own.batch,
            parallel=own.parallel,
            authorities=own.ca_file,
        )
        return Asking(options)

    def vocabulary(self, end: int) -> Vocabulary:
        """Return the tokens; InvalidArgumentError if ``end`` is none of them."""
        return Vocabulary(self._tokens, end)


def service_of(settings: Path | None) -> GeneratorService | None:
    """Return the service of a verifier's settings, if they name one.

    Raises:
        MalformedError: not settings, or its files cannot be read.
    """
    own = None if settings is None else load(settings).generator
    return None if own is None else GeneratorService(own)


@contextmanager
def committed_generator(
    evidence: Evidence, service: GeneratorService | None
) -> Iterator[OwnGenerator | None]:
    """Yield the model that the evidence names; None where this verifier does not have it.

    Whether it answers as was committed is check 29's to say, which asks it for the probes.

    Args:
        evidence: of a window, with or without a generation channel.
        service: of this verifier, if it has one.
    """
    terms = _generation(evidence)
    # The provider named the model: one of its own making could be any function of documents.
    if service is None or terms is None or not service.has(terms.generator.model):
        yield None
        return
    manifest, answerer = terms.generator, terms.answerer
    vocabulary = None
    if not isinstance(answerer, KeywordVoting):
        try:
            vocabulary = service.vocabulary(terms.vocabulary.end)
        except InvalidArgumentError as error:
            _log.warning("the committed language model has another vocabulary: %s", error)
            yield None
            return
    with closing(service.asking(manifest.model)) as asking:
        if vocabulary is not None:
            yield NextTokens(asking, vocabulary, manifest.prompt)
        else:
            assert manifest.keywords is not None  # a policy names both or neither
            yield WholeAnswers(asking, manifest.prompt, manifest.keywords, tokens=answerer.tokens)


def _generation(evidence: Evidence) -> GenerationTerms | None:
    try:
        return Policy.parse(evidence[POLICY]).generation
    except (KeyError, RagauditError):  # check 1 says what is wrong with it
        return None
