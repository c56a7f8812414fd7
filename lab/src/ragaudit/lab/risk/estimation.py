"""Estimating an attack's advantage from its guesses, with a one-sided confidence bound.

One simulation is enough. With target z, output theta and g(x) the record named for class x,

    [g(a(z)) succeeds for z] - sum over z' of pi_z' [g(a(z')) succeeds for z']

has the advantage (RAD) as its expectation: the second term is the success against a target that
was not there, averaged exactly instead of simulated. Without auxiliary knowledge it is the prior
probability of the guess's success set. A sample lies in [-1, 1].

The point estimate exceeds the truth about half the time; only the lower bound is evidence. Number
of trials, confidence and method are fixed before the data are seen, and the attack is chosen on
other data (docs/notes/risk-audits.md).

Beside it, other auditors' numbers, each labelled with what it is: LDP-Auditor (Arcolezi and Gambs,
PoPETs 2024(4)); one run (Steinke, Nasr, Jagielski, "Privacy auditing with one (1) training run",
2023, Theorem 5.2). And tests that rank: the area under the ROC curve of a score is the probability
that a member's is above a non-member's, ties counting half (Mann and Whitney 1947). The largest
that a guarantee admits is :func:`ragaudit.lab.risk.translation.largest_auc`.

From an observed advantage to an epsilon there are two kinds of answer that are never mixed. A
:class:`CertifiedLowerBound` says that no mechanism with a smaller epsilon, whatever it is, explains
what was seen, with a stated confidence. A :class:`ModelBasedEstimate` says which parameter the
*claimed* mechanism would need to show the observed mean; a fault in the code is invisible to it,
and being a point estimate it is too high about half the time. They share no base class, and neither
is a number. Derivations: docs/notes/risk-audits.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk.calibration import (
    continuous_least_parameter,
    least_parameter,
    uniform_exact_guess_epsilon,
)
from ragaudit.lab.risk.general_bounds import (
    Assumptions,
    BestBound,
    Knowledge,
    Scenario,
    best_bound,
    uniform_exact_guess_bound,
)
from ragaudit.lab.risk.threat import FinitePrior, ThreatModel
from ragaudit.lab.risk.validation import (
    AssumptionError,
    FloatArray,
    IntegerArray,
    check_delta,
    check_finite,
    check_integer,
    check_non_negative,
    check_positive,
    check_probability,
    check_vector,
    integer_array,
    typed,
)
from ragaudit.privacy.guarantees import ApproximateDp
from ragaudit.privacy.numbers import real
from scipy import special, stats

LARGEST_TRIALS: Final = 10**12
"""Most independent attacks: beyond it binary arithmetic does not carry the limits."""

_ROUNDING: Final = 1e-12
"""More than the incomplete beta function and its inverse lose, relatively."""

IMPLAUSIBLE: Final = 1e-9
"""Targets less plausible than this as draws from the stated prior are refused."""


class Method(StrEnum):
    """How the confidence bound is made: declared beforehand, never chosen by its result."""

    CLOPPER_PEARSON = "clopper-pearson"
    HOEFFDING = "hoeffding"
    EMPIRICAL_BERNSTEIN = "empirical-bernstein"


@dataclass(frozen=True, slots=True)
class AdvantageEstimate:
    """What was observed of one attack.

    Attributes:
        advantage: mean of the samples, in [-1, 1]: an estimate, not a bound.
        lower: the attack's advantage is at least this, with the stated confidence; in [-1, 1].
        confidence: in (0, 1), one-sided.
        trials: number of independent attacks.
        method: how ``lower`` was found.
    """

    advantage: float
    lower: float
    confidence: float
    trials: int
    method: Method


def check_confidence(confidence: object, name: str = "confidence") -> float:
    """Return a confidence strictly between 0 and 1.

    Args:
        confidence: a number of any kind.
        name: of the argument, for the error.
    """
    return real(confidence, name, above=0, below=1)


def from_counts(successes: int, trials: int, records: int, confidence: float) -> AdvantageEstimate:
    """Estimate from counts: uniform prior, no auxiliary knowledge, exact guesses.

    The advantage is the success probability less 1/records; its lower limit is that of Clopper
    and Pearson, exact for independent trials.

    Args:
        successes: 0 to ``trials``.
        records: number of candidates, at least 2.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    n = check_integer(trials, "trials", least=1, most=LARGEST_TRIALS)
    s = check_integer(successes, "successes", least=0, most=n)
    m = check_integer(records, "records", least=2)
    level = check_confidence(confidence)
    # The difference may be rounded up by half a unit; what is certified may not.
    lower = math.nextafter(proportion_low(s, n, level) - 1 / m, -math.inf)
    return AdvantageEstimate(s / n - 1 / m, lower, level, n, Method.CLOPPER_PEARSON)


def proportion_low(successes: int, trials: int, confidence: float) -> float:
    """Return Clopper and Pearson's lower limit of a rate, one-sided, never above the exact one.

    The quantile of Beta(s, n - s + 1) at ``1 - confidence``, inverted in binary arithmetic, then
    stepped down until the tail at it, computed forwards, is at most ``1 - confidence`` with room
    for the rounding of both.

    Args:
        successes: s, 0 to ``trials``.
        trials: n, 1 to ``LARGEST_TRIALS``.
        confidence: between 0 and 1.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    n = check_integer(trials, "trials", least=1, most=LARGEST_TRIALS)
    s = check_integer(successes, "successes", least=0, most=n)
    level = check_confidence(confidence)
    if s == 0:
        return 0.0
    # 1 - level is exact for levels of at least a half, and rounded down otherwise.
    share = (1 - level) * (1 - _ROUNDING)
    found = float(special.betaincinv(s, n - s + 1, share))
    step = _ROUNDING
    while found > 0 and not float(special.betainc(s, n - s + 1, found)) <= share:
        found, step = found * (1 - step), 2 * step
    return max(0.0, found * (1 - _ROUNDING))


def proportion_high(successes: int, trials: int, confidence: float) -> float:
    """Return Clopper and Pearson's upper limit of a rate, one-sided, never below the exact one.

    One less the lower limit of the failures' rate.

    Args:
        successes, trials, confidence: as of :func:`proportion_low`.
    """
    n = check_integer(trials, "trials", least=1, most=LARGEST_TRIALS)
    s = check_integer(successes, "successes", least=0, most=n)
    # One less the limit may be rounded down; an upper limit may not.
    return min(1.0, math.nextafter(1 - proportion_low(n - s, n, confidence), math.inf))


@typed
def contributions(targets: IntegerArray, guesses: IntegerArray, threat: ThreatModel) -> FloatArray:
    """Return one sample per attack, shape (n,); their expectation is the advantage.

    Args:
        targets: shape (n,), records drawn from the prior.
        guesses: shape (n,) without auxiliary knowledge, else (n, classes): the record that the
            attack names, for the same output, for a target of each class.

    Raises:
        InvalidArgumentError: shapes that do not belong together, or no such record.
    """
    true = _records(targets, threat.prior, "targets")
    classes = threat.auxiliary.classes
    named = _records(integer_array(guesses, "guesses").reshape(-1), threat.prior, "guesses")
    if named.size != true.size * len(classes):
        raise InvalidArgumentError(
            f"{named.size} guesses", where="guesses", expected=f"{true.size} x {len(classes)}"
        )
    named = named.reshape(true.size, len(classes))
    mine = named[np.arange(true.size), threat.auxiliary.labels[true]]
    table = threat.success.table
    hits = mine == true if table is None else table[mine, true]
    samples = hits.astype(np.float64)
    for label, members in enumerate(classes):
        weights = threat.prior.probabilities[members, None]
        samples -= threat.success.sums(weights, members)[named[:, label], 0]
    return samples


@typed
def from_contributions(
    samples: FloatArray, low: float, high: float, confidence: float, method: Method
) -> AdvantageEstimate:
    """Estimate from independent samples in [low, high].

    Hoeffding 1963, Theorem 2; Maurer and Pontil 2009, Theorem 4 (empirical Bernstein).

    Args:
        samples: shape (n,), n >= 2.
        low, high: what a sample can be at least and at most, whatever the data; never read off
            them.
        confidence: in (0, 1), one-sided.
        method: Hoeffding or empirical Bernstein.

    Raises:
        InvalidArgumentError: a sample outside [low, high], fewer than two samples, or a method
            that needs counts.
    """
    values = check_vector(samples, "samples", least=2)
    level = check_confidence(confidence)
    least, most = check_finite(low, "low"), check_finite(high, "high")
    # Sums of probabilities round; beyond this no rounding explains a sample out of range.
    rounding = 1e-9
    if values.min() < least - rounding or values.max() > most + rounding:
        raise InvalidArgumentError(
            "a sample out of range", where="samples", expected=f"{least:g} to {most:g}"
        )
    n, spread = len(values), most - least
    mean = float(values.mean())
    if method is Method.HOEFFDING:
        width = spread * math.sqrt(-math.log1p(-level) / (2 * n))
    elif method is Method.EMPIRICAL_BERNSTEIN:
        logarithm = math.log(2) - math.log1p(-level)
        variance = float(values.var(ddof=1))
        # ln(2/(1 - level)) where Hoeffding has ln(1/(1 - level)): the variance is estimated too.
        width = math.sqrt(2 * variance * logarithm / n) + 7 * spread * logarithm / (3 * (n - 1))
    else:
        raise AssumptionError(
            f"{method} needs counts", where="method", expected="hoeffding or empirical-bernstein"
        )
    return AdvantageEstimate(mean, max(least, mean - width), level, n, method)


@typed
def from_guesses(
    targets: IntegerArray,
    guesses: IntegerArray,
    threat: ThreatModel,
    confidence: float,
    method: Method | None = None,
) -> AdvantageEstimate:
    """Estimate from targets and guesses; shapes as for :func:`contributions`.

    Args:
        method: by default Clopper-Pearson where it applies (uniform prior, exact guesses, no
            auxiliary knowledge), empirical Bernstein elsewhere.

    Raises:
        InvalidArgumentError: bad pairs, or targets that were not drawn from the prior.
        AssumptionError: Clopper-Pearson where it does not apply.
    """
    check_drawn_from(targets, threat.prior)
    samples = contributions(targets, guesses, threat)
    plain = threat.success.is_exact and threat.auxiliary.is_none
    counted = plain and threat.prior.is_uniform
    chosen = method or (Method.CLOPPER_PEARSON if counted else Method.EMPIRICAL_BERNSTEIN)
    if chosen is Method.CLOPPER_PEARSON:
        if not counted:
            raise AssumptionError(
                "Clopper-Pearson assumes a uniform prior, exact guesses, no auxiliary knowledge",
                where="method",
                expected="hoeffding or empirical-bernstein",
            )
        hits = int(np.count_nonzero(np.asarray(targets) == np.asarray(guesses)))
        return from_counts(hits, len(samples), threat.records, confidence)
    low, high = -1.0, 1.0
    if threat.auxiliary.is_none:
        # A hit gives 1 - ball, a miss -ball.
        low, high = -float(threat.summary.largest_ball), 1 - float(threat.summary.least_ball)
    return from_contributions(samples, low, high, confidence, chosen)


@typed
def check_drawn_from(targets: IntegerArray, prior: FinitePrior) -> None:
    """Refuse targets that are no draws from the prior: an estimate from them says nothing.

    Each record's count is compared with its binomial law; honest draws are refused with
    probability at most 1e-9 (both tails, all records, Bonferroni). That catches a wrong prior and
    a favorite target, not subtle dependence.

    Args:
        targets: shape (n,), record numbers.
        prior: what they are said to be drawn from.

    Raises:
        InvalidArgumentError: the targets are refused, or are no records.
    """
    drawn = _records(targets, prior, "targets")
    counts = np.bincount(drawn, minlength=prior.records)
    tails = np.minimum(
        stats.binom.sf(counts - 1, drawn.size, prior.probabilities),
        stats.binom.cdf(counts, drawn.size, prior.probabilities),
    )
    if 2 * prior.records * float(tails.min()) < IMPLAUSIBLE:
        worst = int(tails.argmin())
        raise InvalidArgumentError(
            f"record {worst} is the target of {counts[worst]} in {drawn.size} attacks",
            where="targets",
            expected="targets drawn independently from the stated prior",
        )


def _records(values: IntegerArray, prior: FinitePrior, name: str) -> IntegerArray:
    records = integer_array(values, name)
    if records.ndim != 1 or records.size == 0:
        raise InvalidArgumentError("not a vector of record numbers", where=name)
    if records.min() < 0 or records.max() >= prior.records:
        raise InvalidArgumentError(
            "no such record", where=name, expected=f"0 to {prior.records - 1}"
        )
    return records


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


def area_under_curve(
    members: Sequence[float] | FloatArray, others: Sequence[float] | FloatArray
) -> float:
    """Return the area under the ROC curve of scores, ties half; 1/2 says nothing, 1 tells all.

    Args:
        members, others: scores of each class, at least one.

    Raises:
        InvalidArgumentError: a class without scores, or a score that is not finite.
    """
    above, below = check_vector(members, "members"), check_vector(others, "others")
    # Ranks of ties are their mean, which counts each tied pair half.
    ranks = stats.rankdata(np.concatenate([above, below]))[: len(above)]
    least = len(above) * (len(above) + 1) / 2
    return float((ranks.sum() - least) / (len(above) * len(below)))


def null_deviation(members: int, others: int) -> float:
    """Return the standard deviation of that area where scores say nothing, without ties.

    ``sqrt((n + m + 1)/(12 n m))``; an upper limit for Gaussian scores with a signal.

    Args:
        members, others: scores of each class, >= 1.
    """
    n = check_integer(members, "members", least=1)
    m = check_integer(others, "others", least=1)
    return math.sqrt((n + m + 1) / (12 * n * m))


def false_alarm(members: int, others: int, threshold: float) -> float:
    """Return how often scores that say nothing reach an area, by the normal approximation.

    Args:
        members, others: scores of each class, >= 1.
        threshold: of the area, 0 to 1.
    """
    apart = check_probability(threshold, "threshold") - 0.5
    return float(stats.norm.sf(apart / null_deviation(members, others)))


_LARGEST = 1e4
"""Up to here epsilons are told apart."""


@dataclass(frozen=True, slots=True)
class CertifiedLowerBound:
    """Every (epsilon', delta)-DP mechanism with epsilon' < ``epsilon`` is refuted.

    Holds with the stated confidence if the targets were drawn independently from the stated prior,
    and trials, attack and method were fixed beforehand.

    Attributes:
        epsilon: >= 0, natural logarithm; 0: nothing is refuted; inf: no finite epsilon explains it.
        delta: of the refuted guarantees.
        relation: of the refuted guarantees: how the tested records differ.
        advantage: the lower confidence bound that was inverted.
        confidence: one-sided.
        theorem: the black-box bound that was inverted.
        assumptions: what it assumes.
    """

    epsilon: float
    delta: float
    relation: NeighboringRelation
    advantage: float
    confidence: float
    theorem: str
    assumptions: Assumptions


@dataclass(frozen=True, slots=True)
class ModelBasedEstimate:
    """The parameter at which the claimed mechanism shows the observed advantage: no certificate.

    Attributes:
        mechanism: as claimed, in words.
        parameter: which one: "epsilon" (natural logarithm) or "mu" (of Gaussian DP).
        value: 0 to inf.
        advantage: the point estimate that was inverted.
    """

    mechanism: str
    parameter: str
    value: float
    advantage: float


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A claimed guarantee against an observed advantage.

    Attributes:
        refuted: whether the lower confidence bound exceeds what the claim allows.
        stated: the claim as it was made.
        claim: the claim under the relation of the tested records.
        allowed: the largest advantage under the claim, with the bound that says so.
        advantage: the lower confidence bound.
        confidence: one-sided: a true claim is refuted with at most one minus this probability.
    """

    refuted: bool
    stated: ApproximateDp
    claim: ApproximateDp
    allowed: BestBound
    advantage: float
    confidence: float


@typed
def certify(estimate: AdvantageEstimate, scenario: Scenario, delta: float) -> CertifiedLowerBound:
    """Turn a lower confidence bound on the advantage into one on epsilon.

    Inverts the best bound for unknown mechanisms that holds in the scenario: for the uniform prior,
    exact guesses and no auxiliary knowledge Corollary 5.6, in closed form (Eq. 61 with delta).

    Args:
        scenario: prior, success sets and knowledge of the attack that was run, and the relation
            between the records it told apart.
        delta: of the guarantees to refute, in [0, 1].

    Raises:
        InvalidArgumentError: delta out of range.
    """
    slack, observed = check_delta(delta), estimate.lower

    def promised(epsilon: float) -> ApproximateDp:
        return ApproximateDp.of(epsilon, slack, scenario.relation)

    plain = scenario.exact_guesses and scenario.knowledge is Knowledge.NONE
    if plain and scenario.is_uniform and scenario.records is not None:
        epsilon = uniform_exact_guess_epsilon(observed, scenario.records, slack)
        inverted = uniform_exact_guess_bound(scenario, promised(min(epsilon, _LARGEST)))
    else:
        epsilon = least_parameter(
            lambda value: best_bound(scenario, [promised(value)]).value, observed
        ).parameter
        inverted = best_bound(scenario, [promised(min(epsilon, _LARGEST))]).winner
    return CertifiedLowerBound(
        epsilon, slack, scenario.relation, observed, estimate.confidence, inverted.theorem,
        inverted.assumptions._replace(mechanism="any"),
    )  # fmt: skip


@typed
def check_claim(
    estimate: AdvantageEstimate, scenario: Scenario, claim: ApproximateDp
) -> ClaimCheck:
    """Compare a claimed (epsilon, delta) with what was seen; the claim is converted by name.

    Args:
        estimate: with its lower confidence bound.
        scenario: prior, success sets and knowledge of the attack that was run.
        claim: under any relation from which the scenario's follows.

    Raises:
        RefusedError: nothing about these records follows from the claim's relation.
    """
    under = claim.under(scenario.relation)
    allowed = best_bound(scenario, [under])
    refuted = estimate.lower > allowed.value
    return ClaimCheck(refuted, claim, under, allowed, estimate.lower, estimate.confidence)


@typed
def estimate_from_model(
    estimate: AdvantageEstimate,
    mechanism: str,
    advantage_at: Callable[[float], float],
    parameter: str = "epsilon",
    largest: float = _LARGEST,
) -> ModelBasedEstimate:
    """Invert a mechanism's own optimal advantage at the observed mean.

    Args:
        mechanism: in words.
        advantage_at: the optimal advantage for each value of the parameter; continuous and
            non-decreasing.
        parameter: its name.
        largest: a value from which on the advantage no longer grows.

    Returns:
        The inverse: the least value whose advantage reaches the observed one, 0 if every one
        does, inf if it is the supremum or above.
    """
    limit = check_positive(largest, "largest")
    found = continuous_least_parameter(advantage_at, estimate.advantage, limit=limit).parameter
    return ModelBasedEstimate(mechanism, parameter, found, estimate.advantage)
