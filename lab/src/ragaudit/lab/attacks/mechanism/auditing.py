"""An audit: choose the attack in training, try it a fixed number of times, set it by the claim.

Many audits of one claim: how often it is refuted, beside how often chance may refute it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.attacks.mechanism.subjects import (
    PropertyTester,
    Subject,
    ThresholdAttack,
    certified,
)
from ragaudit.lab.risk.estimation import AdvantageEstimate, from_counts
from scipy.stats import binom

_PAIR_TRIALS = 64
"""Samples of each data set by which one pair is preferred to another."""


class Verdict(StrEnum):
    """What the audit says of the claim."""

    REFUTED = "CLAIM REFUTED"
    NOT_REFUTED = "NOT REFUTED"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Audit:
    """How an audit is made, declared before it starts.

    Attributes:
        trials: tries of the chosen attack, >= 40; as many samples train it.
        confidence: one-sided: a true claim is refuted with at most one minus this probability.
        pairs: data sets that are tried in training, >= 1.
        seed: of which world each trial is.
    """

    trials: int = 2000
    confidence: float = 0.999
    pairs: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("trials", 40), ("pairs", 1), ("seed", 0)):
            value = getattr(self, name)
            if value < least:
                raise InvalidArgumentError(str(value), where=name, expected=f"at least {least}")

    @property
    def samples(self) -> int:
        """Outputs that are asked of the mechanism, all in all."""
        preferring = 2 * _PAIR_TRIALS * self.pairs if self.pairs > 1 else 0
        return preferring + 2 * (self.trials // 2) + self.trials


@dataclass(frozen=True)
class Comparison:
    """The certificate beside the claim, at one delta.

    Attributes:
        delta: of both.
        claimed: epsilon.
        certified: no smaller epsilon is possible, with the audit's confidence.
    """

    delta: float
    claimed: float
    certified: float


@dataclass(frozen=True)
class Result:
    """What an audit found.

    Attributes:
        verdict: from the lower confidence bound alone.
        why: the verdict, in words.
        estimate: the attack's advantage, 0 (guessing) to 1/2, with its lower bound.
        successes: right guesses.
        allowed: the largest advantage under the claim.
        comparisons: by delta.
        attack: what was done, in words.
    """

    verdict: Verdict
    why: str
    estimate: AdvantageEstimate
    successes: int
    allowed: float
    comparisons: tuple[Comparison, ...]
    attack: str


def audit(
    subject: Subject, how: Audit | None = None, done: Callable[[int], object] = lambda samples: None
) -> Result:
    """Return what the attack certifies about a mechanism.

    Args:
        subject: mechanism, data sets and claim.
        how: numbers that are fixed beforehand.
        done: is called with numbers of samples as they are drawn.
    """
    how = how or Audit()
    first, second = _best_pair(subject, how, done)
    ask = subject.mechanism
    evidence = subject.evidence(first) if subject.evidence else None
    half = how.trials // 2
    fitted = ThresholdAttack.fit(ask(first, half), ask(second, half), evidence)
    done(2 * half)
    # Trials are independent fair coins: that both worlds come in two batches changes nothing.
    of_first = int(np.random.default_rng(how.seed).binomial(how.trials, 0.5))
    right = int(fitted.attack.names_first(ask(first, of_first)).sum())
    right += int((~fitted.attack.names_first(ask(second, how.trials - of_first))).sum())
    done(how.trials)
    estimate = from_counts(right, how.trials, 2, how.confidence)
    verdict, why = _judged(estimate, subject.claim.allowed)
    comparisons = tuple(
        Comparison(delta, subject.claim.epsilon(delta), certified(estimate, delta))
        for delta in subject.claim.deltas
    )
    return Result(
        verdict, why, estimate, right, subject.claim.allowed, comparisons, _words(fitted.attack)
    )


def test_by(
    subject: Subject, tester: PropertyTester, how: Audit,
    done: Callable[[int], object] = lambda samples: None,
) -> tuple[float, bool]:  # fmt: skip
    """Return the lower bound of somebody else's tester on the chosen pair, and whether it rejects.

    The larger one of both orders, as their runner has it: a hockey-stick divergence is no symmetric
    one. Each order gets half of the probability to fail. Where the subject has evidence, it is what
    the tester sees, in place of the outputs: testers that count values need one number of each.

    Args:
        subject: mechanism and data sets.
        tester: of DP-Auditorium's interface.
        how: `trials` samples are drawn of each data set.
        done: is called with numbers of samples as they are drawn.
    """
    first, second = _best_pair(subject, how, done)
    seen = subject.evidence(first) if subject.evidence else lambda samples: samples
    one, other = (seen(subject.mechanism(world, how.trials)) for world in (first, second))
    done(2 * how.trials)
    failing = (1 - how.confidence) / 2
    # Their testers name these arguments differently: by position.
    orders = ((one, other), (other, one))
    lower = max(float(tester.estimate_lower_bound(*order, failing)) for order in orders)
    return lower, bool(tester.reject_property(lower))


def _best_pair(
    subject: Subject, how: Audit, done: Callable[[int], object]
) -> tuple[object, object]:
    """The pair whose worlds differ most in training; the later trials are about it alone."""
    best, most, divergence = subject.generator(None), -1.0, None
    if how.pairs == 1:
        return best
    pair = best
    for number in range(how.pairs):
        pair = subject.generator(divergence) if number else pair
        evidence = subject.evidence(pair[0]) if subject.evidence else None
        samples = [subject.mechanism(world, _PAIR_TRIALS) for world in pair]
        divergence = ThresholdAttack.fit(samples[0], samples[1], evidence).gain
        done(2 * _PAIR_TRIALS)
        if divergence > most:
            best, most = pair, divergence
    return best


def _judged(estimate: AdvantageEstimate, allowed: float) -> tuple[Verdict, str]:
    if estimate.lower > allowed:
        return Verdict.REFUTED, "the attack gains more than the claim allows"
    reach = from_counts(estimate.trials, estimate.trials, 2, estimate.confidence).lower
    if reach <= allowed:
        return (
            Verdict.INCONCLUSIVE,
            "so few trials cannot refute a claim as weak as this, whatever they show",
        )
    # An attack that is nearly the best one exceeds a tight claim by chance in half of all audits.
    if estimate.advantage > allowed:
        return Verdict.NOT_REFUTED, "what the attack gains beyond the claim is explained by chance"
    return Verdict.NOT_REFUTED, "this attack gains no more than the claim allows"


def _words(attack: ThresholdAttack) -> str:
    what = f"column {attack.column} of the output"
    if attack.evidence is not None:
        what = "the evidence about the changed record"
    return f"first data set where {what} is {'above' if attack.above else 'at most'} " + (
        f"{attack.threshold:g}"
    )


@dataclass(frozen=True)
class Repeated:
    """What the audits found.

    Attributes:
        runs: audits.
        refuted: of them, how many refuted the claim.
        chance: at most the probability that as many do if the claim is true.
        pooled: advantage of all guesses together, with its lower bound. Whatever attack an audit
            chose, a guess is right with at most the claim's probability, so that Clopper and
            Pearson's bound holds of the sum.
        successes: right guesses.
        allowed: the largest advantage under the claim.
    """

    runs: int
    refuted: int
    chance: float
    pooled: AdvantageEstimate
    successes: int
    allowed: float

    @property
    def verdict(self) -> Verdict:
        """From the pooled lower bound alone."""
        return Verdict.REFUTED if self.pooled.lower > self.allowed else Verdict.NOT_REFUTED


def repeat(
    make: Callable[[int], Subject], how: Audit, runs: int,
    done: Callable[[int], object] = lambda samples: None,
) -> Repeated:  # fmt: skip
    """Audit again and again, each time with another seed.

    Args:
        make: the subject of a seed.
        how: of each audit; the seeds follow its.
        runs: >= 2.
        done: is called with numbers of samples as they are drawn.

    Raises:
        InvalidArgumentError: fewer than two audits.
    """
    if runs < 2:
        raise InvalidArgumentError(str(runs), where="runs", expected="at least 2")
    refuted = right = 0
    allowed = 0.0
    for seed in range(how.seed, how.seed + runs):
        found = audit(make(seed), replace(how, seed=seed), done)
        refuted += found.verdict is Verdict.REFUTED
        right += found.successes
        allowed = found.allowed
    pooled = from_counts(right, runs * how.trials, 2, how.confidence)
    chance = float(binom.sf(refuted - 1, runs, 1 - how.confidence))
    return Repeated(runs, refuted, chance, pooled, right, allowed)
