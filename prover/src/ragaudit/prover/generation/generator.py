"""The language model of the settings, and what its manifest commits to."""

from pathlib import Path

from ragaudit.encoding.errors import InvalidArgumentError, MalformedError, MalformedSettings
from ragaudit.ledger.messages.generator_manifest import GeneratorManifest, Vocabulary
from ragaudit.prover.generation_settings import GeneratorSettings
from ragaudit.serving.generators import (
    Asking,
    GeneratorOptions,
    NextTokens,
    WholeAnswers,
    read_json,
    read_tokens,
)
from ragaudit.serving.settings import read_secret_file

__all__ = ["Generator"]


class Generator:
    """A committed model, and how this prover reaches it. Safe to use from several threads.

    Attributes:
        manifest: what a new window's policy says of it.
        at_once: how many answers may be generated at a time.
    """

    def __init__(self, settings: GeneratorSettings) -> None:
        """Read manifest and vocabulary; the service is not asked yet.

        Raises:
            MalformedSettings: a file that is missing or none of its kind, or a vocabulary that is
                not the manifest's.
        """
        path = settings.manifest_file
        try:
            self.manifest = GeneratorManifest.from_json(read_json(path))
            path = settings.vocabulary_file or path
            self._vocabulary = _vocabulary(self.manifest, settings.vocabulary_file)
        except (MalformedError, InvalidArgumentError) as error:
            raise MalformedSettings(
                error.what, where=f"{path}: {error.where}", expected=error.expected
            ) from error
        self.at_once = settings.questions
        key = settings.key_file
        self._asking = Asking(
            GeneratorOptions(
                settings.url,
                self.manifest.model,
                served_as=settings.served_as,
                key=None if key is None else read_secret_file(key),
                timeout=settings.timeout_seconds,
                deadline=settings.deadline_seconds,
                batch=settings.batch,
                parallel=settings.parallel,
                questions=settings.questions,
                authorities=settings.ca_file,
            )
        )

    @property
    def vocabulary(self) -> Vocabulary:
        """That the manifest commits to, of a model that is asked for tokens."""
        assert self._vocabulary is not None  # a policy with token votes has one
        return self._vocabulary

    @property
    def voters(self) -> NextTokens:
        """The voters on a token, and the one that reads nothing."""
        return NextTokens(self._asking, self.vocabulary, self.manifest.prompt)

    def whole_answers(self, tokens: int) -> WholeAnswers:
        """Return the voters of a model that is asked for whole answers.

        Args:
            tokens: the most of an answer.
        """
        keywords = self.manifest.keywords
        assert keywords is not None  # a policy with keywords has such a model
        return WholeAnswers(self._asking, self.manifest.prompt, keywords, tokens=tokens)

    def close(self) -> None:
        """Release the connections."""
        self._asking.close()


def _vocabulary(manifest: GeneratorManifest, path: Path | None) -> Vocabulary | None:
    terms = manifest.vocabulary
    if path is None:
        if terms is not None:
            raise MalformedError(
                "a vocabulary without its tokens", where="vocabulary", expected="vocabulary_file"
            )
        return None
    vocabulary = Vocabulary(read_tokens(path), 0 if terms is None else terms.end)
    manifest.check_vocabulary(vocabulary)
    return vocabulary
