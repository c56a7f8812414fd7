"""Many audits of one claim: how often is it refuted, beside how often chance may refute it?"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.attacks.mechanism.auditing import Audit, Verdict, audit
from ragaudit.lab.attacks.mechanism.subjects import Subject
from ragaudit.lab.risk.estimation import AdvantageEstimate, from_counts
from scipy.stats import binom

__all__ = ["Repeated", "repeat"]


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
