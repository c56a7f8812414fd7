"""Figures 7 and 8: optimal attacks on GRR, SS and OUE, and audits by them, simulated.

The paper's location data cannot be had; universes of the same sizes stand in. Nothing is lost:
prior and attack know no more of a record than its number.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from ragaudit.lab.reproduce.comparison import Comparison, Table
from ragaudit.lab.risk.auditing import certify, estimate_from_model
from ragaudit.lab.risk.comparators import ldp_auditor_epsilon
from ragaudit.lab.risk.estimation import AdvantageEstimate, from_counts
from ragaudit.lab.risk.known_mechanisms import LocalMechanism
from ragaudit.lab.risk.mechanisms import subset_size
from ragaudit.lab.risk.priors import FinitePrior
from ragaudit.lab.risk.scenario import Scenario
from ragaudit.lab.risk.simulation import simulate
from ragaudit.lab.risk.threat import ThreatModel

__all__ = ["ALPHA", "EPSILONS", "KINDS", "REPEATS", "UNIVERSES", "Audit", "audits", "cases",
           "mechanism", "tables", "unsettled"]  # fmt: skip

UNIVERSES = {"Porto": 3052, "Geolife": 5356}
"""Sizes of the paper's two sets of locations."""

EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 9.0, 10.0, 12.0, 14.0)
KINDS = ("GRR", "SS", "OUE")
REPEATS = 5
ALPHA = 0.01
"""Of LDP-Auditor; our lower bound has confidence 1 - ALPHA."""

STANDARD_ERRORS = 6
"""A simulated value may miss its reference by this many, or by more where digits end earlier."""

LARGEST_ERROR = 0.1
"""Standard error of a mean estimate of epsilon above which it is not compared."""

TIES = "Simulated; the reference is Theorem 4.3's closed form, in as many digits as runs settle."
PLATEAU = (
    "OUE's advantage tends to (m-1)/(2m): from epsilon of about 9 on (the paper has <= 9) runs no "
    "longer tell epsilons apart, and an estimate may be infinite."
)


@dataclass(frozen=True)
class Audit:
    """One mechanism at one epsilon, attacked ``REPEATS`` times.

    Attributes:
        universe, records: which size.
        kind: GRR, SS or OUE.
        epsilon: the true one.
        runs: attacks per repeat.
        exact: the optimal advantage.
        advantages: estimated, per repeat.
        estimates: model-based epsilon, per repeat; inf where no epsilon explains the mean.
        certified: lower bound on epsilon, confidence 1 - ALPHA each.
        ldp_auditor: LDP-Auditor's estimate, per repeat.
    """

    universe: str
    records: int
    kind: str
    epsilon: float
    runs: int
    exact: float
    advantages: tuple[float, ...]
    estimates: tuple[float, ...]
    certified: tuple[float, ...]
    ldp_auditor: tuple[float, ...]


def audits(
    runs: int, generator: np.random.Generator, advance: Callable[[int], object]
) -> tuple[Audit, ...]:
    """Simulate every audit of Figures 7 to 9.

    There are ``2 * runs * REPEATS`` runs per audit: as many attacks on another record, which
    LDP-Auditor needs.

    Args:
        runs: of one repeat.
        generator: of all randomness.
        advance: called with the number of runs done since the last call.
    """
    return tuple(
        _audit(universe, records, kind, epsilon, runs, generator, advance)
        for universe, records, kind, epsilon in cases()
    )


def cases() -> Iterator[tuple[str, int, str, float]]:
    """Yield universe, its size, mechanism and epsilon of each audit."""
    for universe, records in UNIVERSES.items():
        for kind in KINDS:
            for epsilon in EPSILONS:
                yield universe, records, kind, epsilon


def mechanism(kind: str, records: int, epsilon: float) -> LocalMechanism:
    """Return the mechanism of an audit.

    Args:
        kind: of `KINDS`.
        records: m.
        epsilon: subset selection takes its size from it, by the paper's rule.
    """
    if kind == "SS":
        return LocalMechanism("ss", subset_size(records, epsilon))
    return LocalMechanism("grr" if kind == "GRR" else "oue")


def _audit(
    universe: str, records: int, kind: str, epsilon: float, runs: int,
    generator: np.random.Generator, advance: Callable[[int], object],
) -> Audit:  # fmt: skip
    prior, known = FinitePrior.uniform(records), mechanism(kind, records, epsilon)
    threat = ThreatModel.reconstruction(prior)
    attacked, scenario = known.attacked(epsilon), Scenario.uniform(records)
    estimates: list[AdvantageEstimate] = []
    auditor = []
    for _ in range(REPEATS):
        found = simulate(attacked, prior, runs, generator, advance)
        estimates.append(from_counts(found.successes, runs, records, 1 - ALPHA))
        # LDP-Auditor's false positives: a record is named that another's report is about.
        absent = simulate(attacked, prior, runs, generator, advance)
        named = generator.integers(0, records - 1, runs)
        # Uniform over all records but the target.
        named += named >= absent.targets
        wrong = int(np.count_nonzero(absent.guesses == named))
        auditor.append(ldp_auditor_epsilon(found.successes, wrong, runs, ALPHA))

    def optimum(value: float) -> float:
        return known.advantage(threat, value)

    return Audit(
        universe, records, kind, epsilon, runs, optimum(epsilon),
        tuple(each.advantage for each in estimates),
        tuple(estimate_from_model(each, known.name, optimum).value for each in estimates),
        tuple(certify(each, scenario, 0.0).epsilon for each in estimates),
        tuple(auditor),
    )  # fmt: skip


def tables(found: tuple[Audit, ...]) -> tuple[Table, ...]:
    """Return the comparisons of Figure 7, and those of Figure 8 that have a reference."""
    return _figure_7(found), _figure_8(found)


def _figure_7(found: tuple[Audit, ...]) -> Table:
    rows = []
    for audit in found:
        mean = float(np.mean(audit.advantages))
        success = audit.exact + 1 / audit.records
        error = math.sqrt(success * (1 - success) / (audit.runs * REPEATS))
        rows.append(
            Comparison(
                f"{audit.kind}, m = {audit.records}, eps = {audit.epsilon:g}: advantage",
                None,
                _digits(audit.exact, STANDARD_ERRORS * error),
                mean,
                TIES,
            )
        )
    return Table(
        "figure-7", "Advantage of the optimal attack, synthetic universes, uniform prior",
        "Figure 7", tuple(rows),
    )  # fmt: skip


def _figure_8(found: tuple[Audit, ...]) -> Table:
    rows = [
        Comparison(
            f"{audit.kind}, m = {audit.records}, eps = {audit.epsilon:g}: model-based epsilon",
            None,
            _digits(audit.epsilon, STANDARD_ERRORS * _epsilon_error(audit)),
            float(np.mean(audit.estimates)),
            PLATEAU if audit.kind == "OUE" else "",
        )
        for audit in found
        if not unsettled(audit)
    ]
    return Table(
        "figure-8", "Epsilon estimated from the mechanism's formula, synthetic universes",
        "Figures 8 and 9", tuple(rows), _left_out(found),
    )  # fmt: skip


def _left_out(found: tuple[Audit, ...]) -> tuple[str, ...]:
    """Which audits the runs leave without a digit to compare, by reason."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for audit in found:
        if reason := unsettled(audit):
            where = f"{audit.kind}, m = {audit.records}, eps = "
            reasons.setdefault(reason, {}).setdefault(where, []).append(f"{audit.epsilon:g}")
    listed = {
        reason: "; ".join(where + ", ".join(each) for where, each in cases.items())
        for reason, cases in reasons.items()
    }
    return tuple(f"Left out, {reason}: {cases}." for reason, cases in listed.items())


def unsettled(audit: Audit) -> str:
    """Return why the runs do not settle a digit of the model-based epsilon; "" if they do."""
    if infinite := sum(map(math.isinf, audit.estimates)):
        return f"{infinite} of {REPEATS} estimates infinite"
    error = _epsilon_error(audit)
    if error > LARGEST_ERROR:
        return f"standard error of the mean above {LARGEST_ERROR:g}"
    return "advantage too flat in epsilon for so few runs" if _flattens(audit, error) else ""


def _epsilon_error(audit: Audit) -> float:
    """Standard error of the mean estimate: that of the advantage over the optimum's slope."""
    success = audit.exact + 1 / audit.records
    error = math.sqrt(success * (1 - success) / (audit.runs * REPEATS))
    slope = _slope(audit)
    return error / slope if slope > 0 else math.inf


def _slope(audit: Audit) -> float:
    """The derivative of the optimal advantage at the true epsilon."""
    step = 1e-3
    low, high = (_optimum(audit, audit.epsilon + sign * step) for sign in (-1, 1))
    return (high - low) / (2 * step)


def _flattens(audit: Audit, error: float) -> bool:
    """Whether the curve bends within the error, so that the mean estimate of epsilon is biased."""
    reach = math.sqrt(REPEATS) * STANDARD_ERRORS * error
    rise = _optimum(audit, audit.epsilon + reach) - audit.exact
    return rise < 0.7 * _slope(audit) * reach


def _optimum(audit: Audit, epsilon: float) -> float:
    threat = ThreatModel.reconstruction(FinitePrior.uniform(audit.records))
    return mechanism(audit.kind, audit.records, audit.epsilon).advantage(threat, epsilon)


def _digits(value: float, tolerance: float) -> str:
    """The value in the most digits of which one unit is at least the tolerance."""
    places = max(0, math.floor(-math.log10(tolerance))) if tolerance > 0 else 9
    return f"{value:.{places}f}"
