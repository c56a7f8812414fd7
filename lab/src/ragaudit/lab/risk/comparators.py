"""Other auditors' numbers, for comparison; each is labelled with what it is.

LDP-Auditor: Arcolezi and Gambs, PoPETs 2024(4). One run: Steinke, Nasr, Jagielski, "Privacy
auditing with one (1) training run", 2023, Theorem 5.2.
"""

import math

from ragaudit.lab.risk.estimation import (
    LARGEST_TRIALS,
    check_confidence,
    proportion_high,
    proportion_low,
)
from ragaudit.lab.risk.validation import check_delta, check_integer, check_non_negative
from scipy import stats

__all__ = ["ldp_auditor_epsilon", "one_run_epsilon", "one_run_p_value"]

LARGEST_EPSILON = 1e4
LARGEST_CANARIES = 10**7
"""Most canaries of one run: with a delta every one is gone through."""
_STEPS = 200


def ldp_auditor_epsilon(
    true_positives: int, false_positives: int, trials: int, alpha: float, delta: float = 0.0
) -> float:
    """Return LDP-Auditor's estimate ``ln((TPR_low - delta)/FPR_high)``.

    As its code does: ``alpha/2`` goes into a *two-sided* Clopper-Pearson interval of each rate,
    so each side has ``alpha/4`` and both together err with probability at most ``alpha/2``.
    The largest value that n trials can give is that of n true and no false positives.

    Args:
        true_positives: successes among ``trials`` attacks on the named value.
        false_positives: namings of that value among ``trials`` attacks on another.

    Returns:
        natural logarithm; negative where the rates say nothing, minus infinity where
        ``TPR_low <= delta``.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    n = check_integer(trials, "trials", least=1, most=LARGEST_TRIALS)
    level = 1 - check_confidence(alpha, "alpha") / 2
    hits = check_integer(true_positives, "true_positives", least=0, most=n)
    errors = check_integer(false_positives, "false_positives", least=0, most=n)
    side = (1 + level) / 2
    least, most = proportion_low(hits, n, side), proportion_high(errors, n, side)
    excess = least - check_delta(delta)
    return math.log(excess / most) if excess > 0 else -math.inf


def one_run_p_value(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float = 0.0
) -> float:
    """Return how plausible ``correct`` is under (epsilon, delta)-DP, with every canary in one run.

    Each of ``canaries`` records was included by its own fair coin; the auditor guessed about
    ``guesses`` of them and was right about ``correct``.

    Args:
        canaries: m, 1 to 10^7.
        guesses: r, 1 to ``canaries``.
        correct: v, 0 to ``guesses``.
        epsilon: >= 0.
        delta: 0 to 1.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    m = check_integer(canaries, "canaries", least=1, most=LARGEST_CANARIES)
    r = check_integer(guesses, "guesses", least=1, most=m)
    v = check_integer(correct, "correct", least=0, most=r)
    loss = check_non_negative(epsilon, "epsilon")
    accuracy = 1 / (1 + math.exp(-loss))
    tail = float(stats.binom.sf(v - 1, r, accuracy))
    slack = check_delta(delta)
    if slack == 0 or v == 0:
        return min(1.0, tail)
    # max over i of P[v > B >= v - i]/i, B binomial: what delta can add per canary.
    steps = range(1, v + 1)
    below = float(stats.binom.cdf(v - 1, r, accuracy))
    gaps = below - stats.binom.cdf([v - i - 1 for i in steps], r, accuracy)
    steepest = max(float(gap) / i for gap, i in zip(gaps, steps, strict=True))
    return min(1.0, tail + 2 * m * slack * steepest)


def one_run_epsilon(
    canaries: int, guesses: int, correct: int, confidence: float, delta: float = 0.0
) -> float:
    """Return the largest epsilon (found from below) that one run refutes with this confidence.

    Args:
        canaries, guesses, correct, delta: as of :func:`one_run_p_value`.
        confidence: between 0 and 1.

    Returns:
        0 if not even epsilon = 0 is refuted; at most 10^4.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    alpha = 1 - check_confidence(confidence)

    def refuted(epsilon: float) -> bool:
        return one_run_p_value(canaries, guesses, correct, epsilon, delta) < alpha

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high) and high < LARGEST_EPSILON:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
