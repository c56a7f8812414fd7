"""What can be audited: the product's mechanisms with their claims, and broken ones.

Retrieval is the attacker's best case under replace-one: one row that is its question or the
opposite, among rows that are at right angles to it. With half of them selected, the noised score at
the boundary is nearly constant, so whether the row was selected tells nearly all that its noised
score does.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import NoiseParameters, noise_key, table
from ragaudit.circuits.quantise import quantise, quantise_rows
from ragaudit.circuits.selection import scores, select
from ragaudit.encoding.errors import InvalidArgumentError, UnsupportedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.attacks.mechanism.names import SubjectName
from ragaudit.lab.risk.estimation import AdvantageEstimate, certify, from_counts
from ragaudit.lab.risk.general_bounds import Scenario, best_bound
from ragaudit.privacy.accounting.events import NoisyScores
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp
from ragaudit.privacy.mechanisms.dp_rag import DpRag
from ragaudit.privacy.mechanisms.samplers import KeyedCoins

Samples = npt.NDArray[np.generic]
"""Outputs of a mechanism, one per row."""

Evidence = Callable[[Samples], npt.NDArray[np.float64]]
"""An attack's score of each output, float64[n]: larger or smaller for the first data set."""


class Mechanism(Protocol):
    """A randomized mechanism, called as a black box."""

    def __call__(self, dataset: Any, num_samples: int) -> Samples:
        """Return independent outputs about one data set, ``num_samples`` rows of them.

        Args:
            dataset: of the kind that the generator makes.
            num_samples: how many, >= 0.
        """


class DatasetGenerator(Protocol):
    """Pairs of neighboring data sets, one after another."""

    def __call__(self, divergence: float | None) -> tuple[Any, Any]:
        """Return the next pair to try.

        Args:
            divergence: what was found of the last pair, for generators that search; None at first.
        """


class PropertyTester(Protocol):
    """A test of a privacy property on samples of both worlds."""

    @property
    def privacy_property(self) -> Any:
        """What is tested."""

    def estimate_lower_bound(
        self, samples1: Samples, samples2: Samples, failure_probability: float
    ) -> float:
        """Return a lower bound of the divergence that the property limits.

        Args:
            samples1, samples2: outputs about each data set of a pair.
            failure_probability: that the bound does not hold.
        """

    def reject_property(self, lower_bound: float) -> bool:
        """Return whether a divergence of at least this contradicts the property.

        Args:
            lower_bound: as `estimate_lower_bound` returned it.
        """


_SCENARIO = Scenario.uniform(2)
_LEAST = 20
"""Samples of a world: fewer fit no threshold."""


@dataclass(frozen=True)
class Claim:
    """What a mechanism is said to guarantee for two neighboring data sets, replace-one.

    Attributes:
        guarantee: under replace-one.
        slack: what the sampler's distance from its law may add to an advantage (spec 3.5).
    """

    guarantee: ApproximateDp | GaussianDp
    slack: float = 0.0

    @property
    def allowed(self) -> float:
        """The largest advantage of any attack, 0 to 1/2, if the claim is true."""
        return best_bound(_SCENARIO, [self.guarantee]).value + self.slack

    @property
    def deltas(self) -> tuple[float, ...]:
        """Where claim and certificate are set beside each other; a function of the claim alone.

        A Gaussian claim is a curve: at its total variation, where the claimed epsilon is 0, an
        advantage says most.
        """
        if isinstance(self.guarantee, ApproximateDp):
            return (float(self.guarantee.delta),)
        return (1e-6, float(self.guarantee.total_variation().value))

    def epsilon(self, delta: float) -> float:
        """Return the claimed epsilon at a delta of `deltas`.

        Args:
            delta: one of them.
        """
        if isinstance(self.guarantee, ApproximateDp):
            return float(self.guarantee.epsilon)
        # Converting at the total variation itself would leave its last digit as an epsilon.
        if delta >= float(self.guarantee.total_variation().value):
            return 0.0
        return float(self.guarantee.at_delta(delta).epsilon)


@dataclass(frozen=True)
class ThresholdAttack:
    """Name the first data set where one number of the output is high enough, or low enough.

    Attributes:
        evidence: the number; None for column ``column`` of the output.
        column: of the outputs, flattened.
        threshold: between two values that were seen.
        above: whether high values speak for the first data set.
    """

    evidence: Evidence | None
    column: int
    threshold: float
    above: bool

    @classmethod
    def fit(cls, samples1: Samples, samples2: Samples, evidence: Evidence | None) -> "Fitted":
        """Return the attack that tells training samples best apart, and how well it does.

        Args:
            samples1, samples2: outputs about each data set.
            evidence: the number to look at; None to look at every column.

        Raises:
            InvalidArgumentError: too few samples.
        """
        first, second = _columns(samples1, evidence), _columns(samples2, evidence)
        if min(len(first), len(second)) < _LEAST:
            raise InvalidArgumentError(
                f"{min(len(first), len(second))} training samples of a data set",
                where="samples", expected=f"at least {_LEAST}",
            )  # fmt: skip
        best = Fitted(cls(evidence, 0, 0.0, above=True), -1.0)
        for column in range(first.shape[1]):
            one, two = np.sort(first[:, column]), np.sort(second[:, column])
            values = np.unique(np.concatenate([one, two]))
            below = np.searchsorted(one, values, "right") / len(one)
            gap = np.searchsorted(two, values, "right") / len(two) - below
            at = int(np.argmax(np.abs(gap)))
            if abs(gap[at]) > best.gain:
                least = values[at + 1] if at + 1 < len(values) else values[at] + 1
                middle = float(values[at] + least) / 2
                attack = cls(evidence, column, middle, above=bool(gap[at] >= 0))
                best = Fitted(attack, float(abs(gap[at])))
        return best

    def names_first(self, samples: Samples) -> npt.NDArray[np.bool_]:
        """Return for each output whether the attack names the first data set, bool[n].

        Args:
            samples: outputs about either.
        """
        if not len(samples):
            return np.zeros(0, dtype=np.bool_)
        high = _columns(samples, self.evidence)[:, self.column] > self.threshold
        return high if self.above else ~high


@dataclass(frozen=True)
class Fitted:
    """An attack that was chosen on training samples.

    Attributes:
        attack: to be tried on others.
        gain: true less false positive rate on the training samples: optimistic.
    """

    attack: ThresholdAttack
    gain: float


@dataclass
class AdvantageTester:
    """`PropertyTester` for a claim: a certified lower bound of epsilon by the advantage.

    The attack is chosen on the first half of the samples. On the second, fair coins choose of which
    data set the attack sees the output; its right guesses have Clopper and Pearson's limit, and
    Corollary 5.6 turns the advantage into an epsilon (docs/notes/risk-audits.md).

    Attributes:
        claim: what is tested.
        evidence: what the attack looks at; None for any column of the output.
        seed: of the coins.
    """

    claim: Claim
    evidence: Evidence | None = None
    seed: int = 0
    _rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    @property
    def privacy_property(self) -> ApproximateDp | GaussianDp:
        """The claim that is tested."""
        return self.claim.guarantee

    def estimate_lower_bound(
        self, samples1: Samples, samples2: Samples, failure_probability: float
    ) -> float:
        """Return a lower bound of epsilon at the claim's sharpest delta (`Claim.deltas`, the last).

        Args:
            samples1, samples2: as many outputs about each data set, at least 40.
            failure_probability: that epsilon is smaller.

        Raises:
            InvalidArgumentError: too few samples, or not as many of each.
        """
        if len(samples1) != len(samples2):
            raise InvalidArgumentError(
                f"{len(samples1)} and {len(samples2)} samples", where="samples",
                expected="as many of each",
            )  # fmt: skip
        half = len(samples1) // 2
        fitted = ThresholdAttack.fit(samples1[:half], samples2[:half], self.evidence)
        first = self._rng.integers(0, 2, len(samples1) - half).astype(np.bool_)
        right = fitted.attack.names_first(samples1[half:][first]).sum()
        right += (~fitted.attack.names_first(samples2[half:][~first])).sum()
        estimate = from_counts(int(right), len(first), 2, 1 - failure_probability)
        return certified(estimate, self.claim.deltas[-1])

    def reject_property(self, lower_bound: float) -> bool:
        """Return whether an epsilon of at least this contradicts the claim.

        Args:
            lower_bound: as `estimate_lower_bound` returned it.
        """
        return lower_bound > self.claim.epsilon(self.claim.deltas[-1])


def certified(estimate: AdvantageEstimate, delta: float) -> float:
    """Return the certified lower bound of epsilon at ``delta``: Eq. 61 with delta, two records.

    Args:
        estimate: of guesses between two equally probable data sets.
        delta: in [0, 1].
    """
    return certify(estimate, _SCENARIO, delta).epsilon


def _columns(samples: Samples, evidence: Evidence | None) -> npt.NDArray[np.float64]:
    values = samples if evidence is None else evidence(samples)
    found = np.asarray(values, dtype=np.float64).reshape(len(samples), -1)
    if found.shape[1] == 0 or not np.isfinite(found).all():
        raise InvalidArgumentError("no number, or none that is finite", where="samples")
    return found


Integers = npt.NDArray[np.int64]
_DIMENSION = 2


@dataclass(frozen=True)
class Terms:
    """The parameters that a claim speaks of; the attack sees none but the sizes.

    Attributes:
        sigma: of the retrieval, a decimal of a policy, in cosine units.
        rows: N >= 4 documents.
        questions: asked of one account, about the same row.
        epsilon: of the private vote on one token.
        seed: of the keys.
    """

    sigma: str = "1"
    rows: int = 64
    questions: int = 1
    epsilon: Fraction = Fraction(1)
    seed: int = 0


@dataclass(frozen=True)
class Subject:
    """A mechanism to be audited, with the data sets that tell most.

    Attributes:
        name: of the catalogue, or as the user calls it.
        mechanism: the black box.
        generator: of the pairs of data sets that are tried in training.
        claim: what the mechanism is said to guarantee.
        evidence: the attack's number of the outputs about a pair; None: every column is tried.
    """

    name: str
    mechanism: Mechanism
    generator: DatasetGenerator
    claim: Claim
    evidence: Callable[[Any], Evidence] | None = None


@dataclass(frozen=True)
class Documents:
    """Data sets of documents as unit vectors, and which of them the pair differs in.

    Attributes:
        vectors: float64[N, 2].
        target: position of the row that differs.
    """

    vectors: npt.NDArray[np.float64]
    target: int


@dataclass
class Positions:
    """`DatasetGenerator`: the row that differs stands at one position after another."""

    rows: int
    _next: "count[int]" = field(default_factory=count)

    def __call__(self, divergence: float | None) -> tuple[Documents, Documents]:
        at = next(self._next) % self.rows
        vectors = np.tile([0.0, 1.0], (self.rows, 1))
        opposite = vectors.copy()
        vectors[at], opposite[at] = (1.0, 0.0), (-1.0, 0.0)
        return Documents(vectors, at), Documents(opposite, at)


class Retrieval:
    """Noise on every score, then the top K: one key for each question, as the service derives it.

    The output counts for each row how many of the questions selected it, int64[n, N].
    """

    def __init__(self, terms: Terms) -> None:
        """Prepare the noise.

        Args:
            terms: sigma, questions and seed are read.
        """
        self._table = table(NoiseParameters.for_sigma(terms.sigma))
        self._questions = terms.questions
        self._secret = _bytes(terms.seed, b"retrieval")
        self._asked = count()

    def __call__(self, dataset: Documents, num_samples: int) -> Samples:
        exact = scores(quantise_rows(dataset.vectors), quantise([1.0, 0.0]).astype(np.int16))
        found = np.zeros((num_samples, len(exact)), dtype=np.int64)
        for sample in found:
            for _ in range(self._questions):
                sample[list(self.answer(exact, len(exact) // 2))] += 1
        return found

    def answer(self, exact: Integers, top_k: int) -> tuple[int, ...]:
        """Return T, rising positions.

        Args:
            exact: scores, int64[N].
            top_k: K.
        """
        return select(exact + self.noise(next(self._asked), len(exact)), top_k)

    def noise(self, counter: int, rows: int) -> Integers:
        """Return z, int64[N], of one question.

        Args:
            counter: of the question.
            rows: N.
        """
        key = noise_key(
            self._secret, window="audit", tenant="audit", version=1, pseudonym=bytes(32), epoch=0,
            slot=0, counter=counter, activation_randomness=bytes(32), nonce=b"",
        )  # fmt: skip
        known = self._table.parameters
        return core.sample_noise(self._table.thresholds, known.factor, known.levels, key, rows)


class _HalfTheSigma(Retrieval):
    """The right key, a distribution half as wide."""

    def noise(self, counter: int, rows: int) -> Integers:
        return super().noise(counter, rows) // 2


class _NoiseOnWinners(Retrieval):
    """Noise decides among the 3/4 N best rows; the others are kept out."""

    def answer(self, exact: Integers, top_k: int) -> tuple[int, ...]:
        best = np.argsort(-exact, kind="stable")[: 3 * len(exact) // 4].tolist()
        noised = exact + self.noise(next(self._asked), len(exact))
        return select(noised, top_k, sorted(best))


class _SeedReuse(Retrieval):
    """The key leaves out the counter: all questions have the same noise."""

    def noise(self, counter: int, rows: int) -> Integers:
        return super().noise(0, rows)


class Voting:
    """DP-RAG's answer of one token (`ragaudit.privacy.mechanisms`), int64[n].

    One document was found; all other voters read nothing, and do not vote.
    """

    def __init__(self, terms: Terms) -> None:
        """Prepare the terms of a question.

        Args:
            terms: epsilon and seed are read.
        """
        # No agreement reaches the threshold, so that every token is drawn privately.
        self._terms = DpRag(
            terms.epsilon, terms.epsilon, _VOTERS, 1, _VOCABULARY, 0, 1, Fraction(2**16)
        )
        self._secret = _bytes(terms.seed, b"voting")
        self._asked = count()

    def __call__(self, dataset: Sequence[str], num_samples: int) -> Samples:
        tokens = [
            self._terms.answer("", dataset, _Reader(), self.coins(self._key())).tokens[0]
            for _ in range(num_samples)
        ]
        return np.array(tokens, dtype=np.int64)

    def coins(self, key: bytes) -> KeyedCoins:
        """Return the coins of a question.

        Args:
            key: 32 bytes.
        """
        return KeyedCoins(key)

    def _key(self) -> bytes:
        return hmac.digest(self._secret, next(self._asked).to_bytes(8, "little"), "sha256")


class _Reader:
    """A model whose next token is the number that its document is; it abstains without one."""

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int | None]:
        return [1, *(int(text) if text else None for text in map("".join, documents[1:]))]


class _ObservedCoins(KeyedCoins):
    """The exponential mechanism over the tokens that somebody voted for."""

    def choose(
        self, utilities: Mapping[int, Fraction], size: int, *, most: int, scale: Fraction
    ) -> int:
        seen = sorted(utilities)
        if not seen:
            return super().choose(utilities, size, most=most, scale=scale)
        votes = {at: utilities[token] for at, token in enumerate(seen)}
        return seen[super().choose(votes, len(seen), most=most, scale=scale)]


class _ObservedTokens(Voting):
    """A token that nobody voted for is never drawn: which ones were is told."""

    def coins(self, key: bytes) -> KeyedCoins:
        return _ObservedCoins(key)


_VOTERS, _VOCABULARY = 4, 4
_TOKENS = ("2", "3")


def _votes(divergence: float | None) -> tuple[list[str], list[str]]:
    first, second = ([token] + [""] * (_VOTERS - 1) for token in _TOKENS)
    return first, second


def _retrieval(name: str, kind: type[Retrieval]) -> Callable[[Terms], Subject]:
    def made(terms: Terms) -> Subject:
        event = NoisyScores.of_policy(terms.sigma, "replace", 1, terms.questions)
        claim = Claim(
            GaussianDp.of(event.mu(), NeighboringRelation.REPLACE), slack=float(event.slack)
        )
        return Subject(name, kind(terms), Positions(terms.rows), claim, _hits)

    return made


def _hits(pair: Documents) -> Evidence:
    return lambda samples: samples[:, pair.target].astype(np.float64)


def _voting(name: str, kind: type[Voting]) -> Callable[[Terms], Subject]:
    def made(terms: Terms) -> Subject:
        claim = Claim(ApproximateDp.of(terms.epsilon, 0, NeighboringRelation.REPLACE))
        return Subject(name, kind(terms), _votes, claim, _named)

    return made


def _named(pair: object) -> Evidence:
    return lambda samples: (samples == int(_TOKENS[0])).astype(np.float64)


SUBJECTS: Final[Mapping[str, Callable[[Terms], Subject]]] = {
    SubjectName.RETRIEVAL: _retrieval(SubjectName.RETRIEVAL, Retrieval),
    SubjectName.VOTING: _voting(SubjectName.VOTING, Voting),
    SubjectName.NOISE_ON_WINNERS: _retrieval(SubjectName.NOISE_ON_WINNERS, _NoiseOnWinners),
    SubjectName.HALF_THE_SIGMA: _retrieval(SubjectName.HALF_THE_SIGMA, _HalfTheSigma),
    SubjectName.SEED_REUSE: _retrieval(SubjectName.SEED_REUSE, _SeedReuse),
    SubjectName.OBSERVED_TOKENS: _voting(SubjectName.OBSERVED_TOKENS, _ObservedTokens),
}


def subject(name: str, terms: Terms | None = None) -> Subject:
    """Return a subject of the catalogue.

    Args:
        name: a key of `SUBJECTS`.
        terms: of the mechanism and its claim.

    Raises:
        UnsupportedError: there is none of this name.
        MalformedError: terms out of their range.
    """
    if name not in SUBJECTS:
        raise UnsupportedError(f"no mechanism {name!r}", expected=", ".join(SUBJECTS))
    return SUBJECTS[name](terms or Terms())


def _bytes(seed: int, purpose: bytes) -> bytes:
    return hmac.digest(purpose, repr(seed).encode(), "sha256")
