"""The committed language model, where the verifier has one of its own to ask."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragaudit.encoding.errors import (
    InvalidArgumentError,
    MalformedError,
    MalformedSettings,
    RagauditError,
)
from ragaudit.ledger.messages.answerers import KeywordVoting
from ragaudit.ledger.messages.generation_terms import GenerationTerms
from ragaudit.ledger.messages.generator_manifest import GeneratorManifest, Vocabulary
from ragaudit.ledger.messages.items import POLICY
from ragaudit.ledger.messages.policy import Policy
from ragaudit.serving.generators import (
    Asking,
    GeneratorOptions,
    NextTokens,
    WholeAnswers,
    read_tokens,
)
from ragaudit.serving.settings import read_secret_file
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.generator_settings import GeneratorSettings
from ragaudit.verifier.models import OwnGenerator
from ragaudit.verifier.settings import load

__all__ = ["GeneratorService", "committed_generator", "service_of"]

_log = logging.getLogger(__name__)


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


class _Asked:
    """A model behind a service, with the prompt of a manifest."""

    def __init__(self, asking: Asking, vocabulary: Vocabulary, manifest: GeneratorManifest) -> None:
        self.vocabulary = vocabulary
        self._voters = NextTokens(asking, vocabulary, manifest.prompt)

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> Sequence[int | None]:
        """Return the next token of each voter, as `OwnGenerator` says."""
        return self._voters.next_tokens(question, documents, answer)


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
    if isinstance(answerer, KeywordVoting):
        assert manifest.keywords is not None  # a policy names both or neither
        asking = service.asking(manifest.model)
        try:
            yield WholeAnswers(asking, manifest.prompt, manifest.keywords, tokens=answerer.tokens)
        finally:
            asking.close()
        return
    try:
        vocabulary = service.vocabulary(terms.vocabulary.end)
    except InvalidArgumentError as error:
        _log.warning("the committed language model has another vocabulary: %s", error)
        yield None
        return
    asking = service.asking(manifest.model)
    try:
        yield _Asked(asking, vocabulary, manifest)
    finally:
        asking.close()


def _generation(evidence: Evidence) -> GenerationTerms | None:
    try:
        return Policy.parse(evidence[POLICY]).generation
    except (KeyError, RagauditError):  # check 1 says what is wrong with it
        return None
