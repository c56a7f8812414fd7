"""The language model of the settings, and what its manifest commits to."""

from ragaudit.encoding.errors import InvalidArgumentError, MalformedError, MalformedSettings
from ragaudit.ledger.messages.generation_terms import GenerationTerms
from ragaudit.ledger.messages.generator_manifest import GeneratorManifest, Vocabulary
from ragaudit.privacy.mechanisms.dp_rag import DpRag
from ragaudit.prover.generation_settings import GeneratorSettings
from ragaudit.serving.generators.asking import Asking, GeneratorOptions
from ragaudit.serving.generators.files import read_json, read_tokens
from ragaudit.serving.generators.tokens import NextTokens
from ragaudit.serving.secret_files import read_secret_file

__all__ = ["Generator", "mechanism_of"]


class Generator:
    """A committed model, and how this prover reaches it. Safe to use from several threads.

    Attributes:
        manifest: what a new window's policy says of it.
        vocabulary: that the manifest commits to.
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
            tokens = read_tokens(path := settings.vocabulary_file)
            terms = self.manifest.vocabulary
            self.vocabulary = Vocabulary(tokens, 0 if terms is None else terms.end)
            self.manifest.check_vocabulary(self.vocabulary)
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
    def voters(self) -> NextTokens:
        """The voters, and the one that reads nothing."""
        return NextTokens(self._asking, self.vocabulary, self.manifest.prompt)

    def close(self) -> None:
        """Release the connections."""
        self._asking.close()


def mechanism_of(terms: GenerationTerms) -> DpRag:
    """Return the answerer that a policy names."""
    voting, vocabulary = terms.token_voting, terms.vocabulary
    return DpRag(
        epsilon=terms.answer_epsilon,
        epsilon_token=voting.epsilon_token,
        voters=voting.voters,
        slots_per_voter=voting.slots_per_voter,
        vocabulary=vocabulary.size,
        end=vocabulary.end,
        tokens=voting.tokens,
        threshold=voting.threshold,
    )
