"""Checks 29 and 30: the committed generator, and answers that are computed again (spec 11.12).

Answers of DP-KSA among them (docs/spec/11-generation.md §11.5).
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.noise import COIN_TAG
from ragaudit.encoding.errors import RejectedError, UnavailableError
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.challenge import Replay, Response, Votes, longest_replay
from ragaudit.ledger.messages.commitments import content_digest, row_digest
from ragaudit.ledger.messages.entries import Charge, Generated
from ragaudit.ledger.messages.generation_terms import AdaptiveTerms, KeywordVoting
from ragaudit.ledger.messages.receipts import GeneratedAnswer, GeneratedKeywords
from ragaudit.ledger.messages.requests import Question
from ragaudit.ledger.messages.verdict import Status
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa, counted
from ragaudit.privacy.mechanisms.dp_rag import DpRag
from ragaudit.privacy.mechanisms.retrieval import Row, best_rows, top_slots
from ragaudit.privacy.mechanisms.samplers import Coins, KeyedCoins
from ragaudit.privacy.mechanisms.streams import bin_counts, running_sums
from ragaudit.verifier.models import AnswerGenerator, OwnGenerator, TokenGenerator
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput, demand, known_or_missing
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.generation_checks import demand_charged, due_threshold
from ragaudit.verifier.procedure.logged import Logged
from ragaudit.verifier.procedure.sample_checks import drawn_key

T = TypeVar("T")

OTHER_KEYWORDS = "votes and coins give other keywords than were released"
OTHER_VOTES = "votes are not those of the committed model"


def _asked(count: int, ask: Callable[[], Sequence[T | None]]) -> Sequence[T | None]:
    """What the verifier's own model answers, of which so many are due; None where it does not."""
    try:
        return ask()
    except UnavailableError:
        return [None] * count


class StatedResponses:
    """The provider's voters for one answer, each compared with the verifier's own model.

    Attributes:
        differing: how many votes the verifier's model gives otherwise.
        unasked: whether it did not answer for one of them, or for the final text.
    """

    def __init__(
        self,
        votes: Sequence[str],
        stated: GeneratedKeywords,
        own: AnswerGenerator | None,
        *,
        tolerated: int,
        by_model: bool,
    ) -> None:
        """Note what the provider says.

        Args:
            votes: whole answers, by voter.
            stated: the answer.
            own: the verifier's model, if it has one.
            tolerated: how many votes may differ: greedy decoding is not the same to the bit on
                every machine.
            by_model: whether a model writes the final text.
        """
        self._votes, self._stated, self._own = votes, stated, own
        self._tolerated, self._by_model = tolerated, by_model
        self.differing = 0
        self.unasked = False

    def responses(self, question: str, documents: Sequence[str]) -> Sequence[str]:
        """Return the stated votes, as `ResponseVoters` says; RejectedError."""
        if len(self._votes) != len(documents):
            raise RejectedError(f"{len(self._votes)} votes", expected=str(len(documents)))
        if self._own is not None:
            own = self._own
            found = _asked(len(documents), lambda: own.whole(question, documents))
            # What our own model did not say is nothing that the provider did.
            self.unasked = None in found
            self.differing = sum(
                mine is not None and counted(mine) != theirs
                for mine, theirs in zip(found, self._votes, strict=True)
            )
        if self.differing > self._tolerated:
            expected = f"at most {self._tolerated}"
            raise RejectedError(f"{self.differing} {OTHER_VOTES}", expected=expected)
        return self._votes

    def final(self, question: str, keywords: Sequence[str]) -> str:
        """Return the stated text, if it is that of these keywords; RejectedError."""
        if tuple(keywords) != (self._stated.keywords or ()):
            raise RejectedError(OTHER_KEYWORDS)
        # A text that was only near the due one would have no bound on what it tells.
        due: str | None = " ".join(keywords)
        if self._by_model:
            due = None if self._own is None else self._written(self._own, question, keywords)
        if due is not None and due != self._stated.text:
            raise RejectedError("the final text is not that of the released keywords")
        return self._stated.text

    def _written(self, own: AnswerGenerator, question: str, keywords: Sequence[str]) -> str | None:
        try:
            return own.final(question, keywords)
        except UnavailableError:
            self.unasked = True
            return None


def check_keywords(
    answerer: KeywordVoting,
    question: str,
    slots: Sequence[str],
    voters: StatedResponses,
    stated: GeneratedKeywords,
    coins: Coins,
) -> None:
    """Check that votes and coins give the released keywords, and the text follows from them.

    Args:
        slots: exactly ``answerer.slots`` texts.
        coins: of the question's key, after those of released sums.

    Raises:
        RejectedError: they do not.
    """
    mechanism = DpKsa(
        epsilon_choice=answerer.epsilon_choice,
        sigma=answerer.sigma,
        delta_test=answerer.delta_test,
        slots=answerer.slots,
        sizes=answerer.sizes,
        stop_words=frozenset(answerer.stop_words),
    )
    found = mechanism.answer(question, slots, voters, coins)
    # No set, and a set without a word, are two answers.
    if found.keywords != stated.keywords:
        raise RejectedError(OTHER_KEYWORDS)


NOT_REPLAYED = (
    "charges and budgets are proven; that the answers used only charged rows, the votes, the "
    "noise, and the tokens or keywords are the provider's word, and the channel's epsilon is "
    "conditional on it"
)

OTHER_TOKENS = "votes and coins give other tokens than were answered"
OTHER_PUBLIC = "the vote that reads no document is not that of the committed model"


def check_generator(context: Context, found: Findings) -> None:
    """29: the committed generator is the one that the verifier has of its own."""
    manifest, own = context.generation.generator, context.own_generator
    if own is None:
        # A model with other tokens is another one: that says nothing of the provider.
        found.downgrade(
            Status.NOT_ESTABLISHED,
            f"no model of the verifier's own with the committed vocabulary is compared with the "
            f"committed {manifest.model}",
        )
        return
    for probe in manifest.probes:
        with found.attempt(f"probe {probe.question!r}"):
            try:
                text = _unread(own, probe.question)
            except UnavailableError:
                found.downgrade(Status.NOT_ESTABLISHED, "the model at hand does not answer")
                return
            if text != probe.answer:
                raise RejectedError("the model at hand answers otherwise than was committed")
    found.summary = f"{manifest.model} answers all {len(manifest.probes)} probes as committed"


def _unread(own: OwnGenerator, question: str) -> str | None:
    """Return what a model answers to a question without a document; UnavailableError."""
    if isinstance(own, AnswerGenerator):
        return own.final(question, ())
    (token,) = own.next_tokens(question, [()], ())
    return None if token is None else own.vocabulary.text([token])


def check_replay(context: Context, found: Findings) -> None:
    """30: of each sampled entry, rows, sums, voters, votes, coins and tokens are the due ones."""
    terms, adaptive = context.generation, context.generation.adaptive
    if not terms.replays:
        found.downgrade(
            Status.NOT_ESTABLISHED, f"the policy has no answer replayed: {NOT_REPLAYED}"
        )
        return
    closed = context.policy.query_text_disclosure == "none"
    own = context.own_generator
    replayed = differing = gone = unasked = 0
    for logged in context.challenged_charges:
        with found.attempt(logged.name):
            answer = context.answer_of(logged.entry)
            if closed or answer is None:  # void, or check 28's
                # Sums are released whatever becomes of the answer, and are of no text.
                if adaptive is not None:
                    _Replayed(context, logged, answer).check_opened()
                continue
            one = _Replayed(context, logged, answer)
            differing += one.check()
            replayed, gone, unasked = replayed + 1, gone + one.gone, unasked + one.unasked
    if closed:
        found.downgrade(
            Status.NOT_ESTABLISHED, f"the policy discloses no questions: {NOT_REPLAYED}"
        )
    elif own is None or context.embedder is None:
        missing = "model" if own is None else "embedder"
        found.downgrade(
            Status.NOT_ESTABLISHED,
            f"no {missing} of the verifier's own is at hand, so nobody asked it again: "
            f"{NOT_REPLAYED}",
        )
    elif differing:
        # Which votes differ may follow from any document, charged or not, and from the coins.
        found.downgrade(
            Status.NOT_ESTABLISHED,
            f"{differing} votes differ, as the policy tolerates and no epsilon bounds: "
            f"{NOT_REPLAYED}",
        )
    elif unasked:
        found.downgrade(
            Status.NOT_ESTABLISHED,
            f"the model at hand did not answer for {unasked} of the answers: {NOT_REPLAYED}",
        )
    elif gone:
        found.downgrade(
            Status.NOT_ESTABLISHED,
            f"{gone} used documents are said to be gone, which nothing shows: {NOT_REPLAYED}",
        )
    counted = "" if adaptive is None else ", and the released sums of all sampled entries"
    found.summary = f"{replayed} answers computed again{counted}, no vote differs"


class _Votes:
    """The provider's votes for one answer, each compared with the verifier's own model."""

    def __init__(
        self, votes: Sequence[Votes | str], tokens: tuple[int, ...], own: TokenGenerator | None
    ) -> None:
        self._stated, self._tokens, self._own = votes, tokens, own
        self.differing = 0
        self.unasked = False  # whether the verifier's model did not answer

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> Sequence[int | None]:
        """Return the votes for the next place of an answer, that of who reads nothing first."""
        if tuple(answer) != self._tokens[: len(answer)]:
            raise RejectedError(OTHER_TOKENS)
        if len(answer) >= len(self._stated):
            raise RejectedError("votes for fewer tokens than the answer has")
        shown = self._stated[len(answer)]
        if isinstance(shown, str):
            raise RejectedError("whole answers of voters", expected="votes on tokens")
        votes = (shown.public, *shown.voters)
        if len(votes) != len(documents):
            raise RejectedError(f"{len(shown.voters)} votes", expected=str(len(documents) - 1))
        if self._own is not None and not self.unasked:
            own = self._own
            found = _asked(len(documents), lambda: own.next_tokens(question, documents, answer))
            # What our own model did not say is nothing that the provider did.
            self.unasked = None in found
            # It takes the free branch wherever it names what the voters do: no machine's rounding.
            if found[0] is not None and found[0] != votes[0]:
                raise RejectedError(OTHER_PUBLIC)
            self.differing += sum(
                mine is not None and mine != theirs
                for mine, theirs in zip(found, votes, strict=True)
            )
        return votes


class _Replayed:
    """One sampled entry; everything in it raises RejectedError, MalformedError, MissingInput.

    Args:
        answer: None of a void.
    """

    def __init__(self, context: Context, logged: Logged[Charge], answer: Generated | None) -> None:
        self._context, self._logged, self._answer = context, logged, answer
        nonce = None if answer is None else answer.nonce
        self.gone = 0  # used documents that are said to be no longer there
        self.unasked = False  # whether the verifier's model did not answer for it
        self._response: Response = context.response(logged)
        rows = context.stated_index(logged.body.tenant, 1).rows
        most = longest_replay(context.generation.answerer, context.policy.dimension, rows)
        name, parse = items.replay_name(logged.entry), partial(Replay.parse, most=most)
        self._replay = context.parsed(name, "replay", parse)
        key = drawn_key(context, logged.body, self._response, nonce, COIN_TAG)
        self._coins = KeyedCoins(key)

    def check_opened(self) -> None:
        """Check that the opened rows are the charged ones, and what was released of them."""
        if self._answer is None and self._replay.answer is not None:
            raise RejectedError("an answer to a void is opened")
        self._check_charged()
        if self._context.generation.adaptive is not None:
            self._check_sums(self._context.generation.adaptive)

    def check(self) -> int:
        """Return how many votes the verifier's model gives otherwise."""
        context, replay = self._context, self._replay
        terms = context.generation
        stated, logged = replay.answer, self._answer
        # Of a void nothing is asked.
        if stated is None or replay.salt_a is None or logged is None:
            raise RejectedError("no answer is opened")
        self.check_opened()
        question = self._question()
        slots = top_slots(self._rows(), terms.answerer.slots)
        keywords = isinstance(terms.answerer, KeywordVoting)
        if isinstance(stated, GeneratedKeywords) != keywords:
            raise RejectedError("the answer of another answerer")
        if isinstance(stated, GeneratedKeywords):
            differing = self._check_keywords(question, slots, stated)
        else:
            differing = self._check_tokens(question, slots, stated)
        if stated.digest(replay.salt_a) != logged.generated_digest:
            raise RejectedError("another answer than the logged one")
        return differing

    def _check_keywords(
        self, question: str, slots: Sequence[str], stated: GeneratedKeywords
    ) -> int:
        answerer, terms = self._context.generation.answerer, self._context.generation
        assert isinstance(answerer, KeywordVoting)  # the caller compared it with the answer
        voters = StatedResponses(
            [each for each in self._replay.votes if isinstance(each, str)],
            stated,
            self._context.own_answers,
            tolerated=terms.differing_votes or 0,
            by_model=answerer.final == "model",
        )
        check_keywords(answerer, question, slots, voters, stated, self._coins)
        self.unasked = voters.unasked
        return voters.differing

    def _check_tokens(self, question: str, slots: Sequence[str], stated: GeneratedAnswer) -> int:
        context, replay, terms = self._context, self._replay, self._context.generation
        answerer, vocabulary = terms.token_voting, terms.vocabulary
        mechanism = DpRag(
            epsilon=terms.answer_epsilon,
            epsilon_token=answerer.epsilon_token,
            voters=answerer.voters,
            slots_per_voter=answerer.slots_per_voter,
            vocabulary=vocabulary.size,
            end=vocabulary.end,
            tokens=answerer.tokens,
            threshold=answerer.threshold,
        )
        own = context.own_tokens
        votes = _Votes(replay.votes, stated.tokens, own)
        found = mechanism.answer(question, slots, votes, self._coins)
        self.unasked = votes.unasked
        most = terms.differing_votes or 0
        # Greedy decoding is not the same to the bit on every machine.
        if votes.differing > most:
            raise RejectedError(
                f"{votes.differing} {OTHER_VOTES}",
                expected=f"at most {most}",
            )
        if len(replay.votes) != len(found.tokens):
            raise RejectedError("votes for more tokens than the answer has")
        if (found.tokens, found.private) != (stated.tokens, stated.private):
            raise RejectedError(OTHER_TOKENS)
        if own is not None and own.vocabulary.text(stated.tokens) != stated.text:
            raise RejectedError("the text is not that of the tokens")
        return votes.differing

    def _check_charged(self) -> None:
        """The opened rows are exactly those that the entry charges, each as it is committed to."""
        charge, replay, context = self._logged.body, self._replay, self._context
        # Where charges are no sets of rows, there is none to open.
        context.demand_budget(charge.tenant)
        positions = [row.position for row in replay.rows]
        index = context.accepted_index(charge.tenant)
        if any(position >= index.rows for position in positions):
            raise RejectedError("a row that the index does not have")
        if context.engine.commit_selection(positions, replay.blinding) != charge.charge:
            raise RejectedError("other rows than were charged")
        for row in replay.rows:
            at = 32 * row.position
            if len(row.vector) != context.policy.dimension + 4:
                raise RejectedError("a row of another dimension")
            found = context.engine.commit_row(row.vector, row.blinding)
            if found != index.commitments[at : at + 32]:
                raise RejectedError(f"row {row.position} is not the committed one")

    def _check_sums(self, adaptive: AdaptiveTerms) -> None:
        """The released sums are those of rows and coins."""
        context, logged, charge = self._context, self._logged, self._logged.body
        # D holds every row of the bins that were read, and no other: if the entry charges exactly
        # the live rows above the lower edge of the last one.
        demand(known_or_missing("charges", lambda: due_threshold(charge, context.generation)))
        demand_charged(context, logged)
        counts = bin_counts(self._scores(), adaptive.edges)
        found = running_sums(counts, adaptive.epsilon, adaptive.enough, self._coins)
        if tuple(int(total) for total in found) != charge.sums:
            raise RejectedError("rows and coins give other sums than were released")

    def _scores(self) -> npt.NDArray[np.int64]:
        """The scores of the charged rows, int64, in their order."""
        query = np.array(self._response.embedding, dtype=np.int64)
        vectors = [row.vector[:-4] for row in self._replay.rows]
        return np.array(vectors, dtype=np.int64).reshape(len(vectors), len(query)) @ query

    def _rows(self) -> list[Row]:
        """The rows that the due ones of the charged rows are, with their texts."""
        context, replay = self._context, self._replay
        scored = [
            Row(row.position, Fraction(int(score)), "")
            for row, score in zip(replay.rows, self._scores(), strict=True)
        ]
        best = best_rows(scored, context.generation.answerer.slots)
        used = {row.position: row for row in replay.used}
        # Also a row that nobody charged, or a worse one: whatever is not due.
        if used.keys() != {row.id for row in best}:
            raise RejectedError("other rows were used than the best of those that were charged")
        index = context.accepted_index(self._logged.body.tenant)
        for position, row in used.items():
            if row.content is None:
                self.gone += 1
                continue
            digest = row_digest(row.salt, row.id, content_digest(row.content, row.attributes))
            if digest != index.row_digests[32 * position : 32 * position + 32]:
                raise RejectedError(f"row {position} has another text than the committed one")
        return [Row(row.id, row.score, used[row.id].content or "") for row in best]

    def _question(self) -> str:
        response = self._response
        if response.query is None:
            raise MissingInput("charges", f"{self._logged.name}: the text is not disclosed")
        return Question.parse(response.query, self._context.policy).text
