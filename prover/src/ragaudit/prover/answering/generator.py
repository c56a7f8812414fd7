"""The language model of the settings: what its manifest commits to, and how it answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ragaudit.encoding.errors import InvalidArgumentError, MalformedError, MalformedSettings
from ragaudit.ledger.messages.challenge import Votes, VotesOfAnswer
from ragaudit.ledger.messages.generation_terms import GenerationTerms, KeywordVoting, TokenVoting
from ragaudit.ledger.messages.manifests import GeneratorManifest, Vocabulary
from ragaudit.ledger.messages.receipts import AnyAnswer, GeneratedAnswer, GeneratedKeywords
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa, ResponseVoters, counted
from ragaudit.privacy.mechanisms.dp_rag import DpRag, TokenVoters
from ragaudit.privacy.mechanisms.samplers import Coins
from ragaudit.prover.backend_settings import GeneratorSettings
from ragaudit.serving.generators import (
    Asking,
    GeneratorOptions,
    NextTokens,
    WholeAnswers,
    read_json,
    read_tokens,
)
from ragaudit.serving.settings import read_secret_file


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


@dataclass(frozen=True)
class Answered:
    """An answer, and the votes from which whoever has the coins computes it again."""

    answer: AnyAnswer
    votes: VotesOfAnswer = field(repr=False)


def answered(
    generator: Generator,
    terms: GenerationTerms,
    question: str,
    texts: Sequence[str],
    coins: Coins,
) -> Answered:
    """Return the answer to a question that was charged.

    Args:
        generator: whose manifest is that of the terms.
        terms: of the window.
        question: as it was asked.
        texts: of the documents for its slots, the best first; the rest of the slots is empty.
        coins: of this question; those of the released sums are drawn.

    Raises:
        GeneratorUnavailable: nothing is released.
    """
    voting = terms.answerer
    slots = [*texts, *[""] * (voting.slots - len(texts))]
    if isinstance(voting, KeywordVoting):
        return _by_keywords(generator, voting, question, slots, coins)
    voters = _Noted(generator.voters)
    found = token_mechanism(terms, voting).answer(question, slots, voters, coins)
    text = generator.vocabulary.text(found.tokens)
    return Answered(GeneratedAnswer(text, found.tokens, found.private), tuple(voters.votes))


def token_mechanism(terms: GenerationTerms, voting: TokenVoting) -> DpRag:
    """Return DP-RAG with the parameters of a policy."""
    vocabulary = terms.vocabulary
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


def _by_keywords(
    generator: Generator,
    voting: KeywordVoting,
    question: str,
    slots: Sequence[str],
    coins: Coins,
) -> Answered:
    mechanism = DpKsa(
        voting.epsilon_choice,
        voting.sigma,
        voting.delta_test,
        slots=voting.voters,
        sizes=voting.sizes,
        stop_words=frozenset(voting.stop_words),
    )
    voters = _NotedResponses(generator.whole_answers(voting.tokens), voting.final)
    found = mechanism.answer(question, slots, voters, coins)
    return Answered(GeneratedKeywords(found.text, found.keywords), tuple(voters.votes))


class _Noted:
    """`TokenVoters` whose votes are noted."""

    def __init__(self, voters: TokenVoters) -> None:
        self._voters = voters
        self.votes: list[Votes] = []

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> Sequence[int | None]:
        """Return the votes for the next place of an answer, as `TokenVoters` says."""
        found = self._voters.next_tokens(question, documents, answer)
        # Without one of who reads nothing there is no answer.
        if found and found[0] is not None:
            self.votes.append(Votes(found[0], tuple(found[1:])))
        return found


class _NotedResponses:
    """`ResponseVoters` whose answers are noted as they count."""

    def __init__(self, voters: ResponseVoters, final: str) -> None:
        """Prepare.

        Args:
            final: "model" or "keywords", as the terms have it.
        """
        self._voters = voters
        self._final = final
        self.votes: list[str] = []

    def responses(self, question: str, documents: Sequence[str]) -> Sequence[str]:
        """Return an answer for each document, as `ResponseVoters` says."""
        self.votes = [counted(text) for text in self._voters.responses(question, documents)]
        return self.votes

    def final(self, question: str, keywords: Sequence[str]) -> str:
        """Return the final text: the model's, or the keywords themselves."""
        if self._final == "keywords":
            return " ".join(keywords)
        return self._voters.final(question, keywords)
