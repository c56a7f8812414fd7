"""Our tester: the advantage of the best threshold attack, with an exact confidence bound.

The interfaces have the names of DP-Auditorium's (google/differential-privacy,
`dp_auditorium.interfaces`). They are protocols only: objects of that library satisfy them as they
are, and nothing of it is needed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.estimation import AdvantageEstimate, certify, from_counts
from ragaudit.lab.risk.general_bounds import Scenario, best_bound
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp

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
