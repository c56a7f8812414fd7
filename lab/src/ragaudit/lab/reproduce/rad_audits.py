"""Optimal attacks on GRR, SS and OUE and audits by them, simulated: Figures 7 to 9; Table 1.

The paper's location data cannot be had; universes of the same sizes stand in. Nothing is lost:
prior and attack know no more of a record than its number. Beside the model-based estimate and the
certified bound stands LDP-Auditor's value. Table 1: which bounds apply, whether they compose, and
what reconstruction robustness has.
"""

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.reproduce.comparison import Comparison, Table
from ragaudit.lab.reproduce.rad_published import TABLE_1, Cells
from ragaudit.lab.risk.estimation import (
    AdvantageEstimate,
    certify,
    estimate_from_model,
    from_counts,
    ldp_auditor_epsilon,
)
from ragaudit.lab.risk.general_bounds import (
    LABEL,
    BestBound,
    Scenario,
    SuccessBound,
    best_bound,
    pure_dp_success_bound,
    trade_off_success_bound,
)
from ragaudit.lab.risk.known_mechanisms import LocalMechanism, exact_bounds
from ragaudit.lab.risk.mechanisms import subset_size
from ragaudit.lab.risk.optimal_attack import simulate
from ragaudit.lab.risk.threat import FinitePrior, SuccessSets, ThreatModel
from ragaudit.lab.risk.trade_off import Guarantee
from ragaudit.lab.risk.validation import AssumptionError
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, TotalVariation

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


CAPS = {10**6: ("about 12.25", "12.025")}
"""LDP-Auditor's largest value by runs, as printed and corrected."""

HEADER = (
    "mechanism  true epsilon  from its formula  certified  LDP-Auditor  nearer than LDP-Auditor"
)
NOTES = """Means over the repetitions; of what is infinite in some of them, the mean is infinite.
From its formula: the mechanism is presumed, no certificate. Certified and LDP-Auditor: lower
confidence bounds, each repetition for itself. Nearer: repetitions in which the estimate from the
formula is nearer to the true epsilon than LDP-Auditor's value; an infinite estimate never is.
The paper prints no digits in these figures."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """One audit, the means over its repetitions.

    Attributes:
        universe, records, kind, epsilon, runs: of the audit.
        model_based: mean estimate from the mechanism's formula; inf if one is infinite.
        infinite: how many are.
        certified: mean lower bound.
        ldp_auditor: mean of LDP-Auditor's values; -inf if one is.
        nearer: repetitions whose model-based estimate is nearer to the truth than LDP-Auditor's.
    """

    universe: str
    records: int
    kind: str
    epsilon: float
    runs: int
    model_based: float
    infinite: int
    certified: float
    ldp_auditor: float
    nearer: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of the paper, as printed, corrected where it can be, and as found."""

    quantity: str
    paper: str
    corrected: str
    ours: str


def rivals(audits: Sequence[Audit]) -> tuple[Rivals, ...]:
    """Return the means over the repeats of each audit."""
    return tuple(map(_means, audits))


def statements(audits: Sequence[Audit]) -> tuple[Statement, ...]:
    """Return what section 7.3.4 says of LDP-Auditor, as printed, corrected and found.

    Args:
        audits: all of one number of runs.
    """
    found, runs = rivals(audits), audits[0].runs
    by_mean = sum(_nearer(each.model_based, each.ldp_auditor, each.epsilon) for each in found)
    certified = sum(_nearer(each.certified, each.ldp_auditor, each.epsilon) for each in found)
    repetitions = f"{sum(each.nearer for each in found)} of {REPEATS * len(found)}"
    last = max(audit.epsilon for audit in audits)
    printed, _ = CAPS.get(runs, ("", ""))
    return (
        Statement("estimate from the formula nearer to the truth than LDP-Auditor: audits, by mean",
                  "all", "", f"{by_mean} of {len(found)}"),
        Statement("the same, single repetitions", "", "", repetitions),
        Statement("certified bound nearer to the truth than LDP-Auditor: audits, by mean",
                  "", "", f"{certified} of {len(found)}"),
        *(
            Statement(f"largest value that LDP-Auditor can report, {count:,} runs", paper,
                      corrected, _shown(_cap(count)))
            for count, (paper, corrected) in {runs: ("", ""), **CAPS}.items()
        ),
        *(
            Statement(f"largest that it reports of {kind} at epsilon {last:g}, {runs:,} runs",
                      printed if kind != "OUE" else "", "",
                      _shown(_largest(audits, kind, last)))
            for kind in dict.fromkeys(audit.kind for audit in audits)
        ),
    )  # fmt: skip


def rivals_text(audits: Sequence[Audit]) -> str:
    """Return a table for each universe, then the paper's statements."""
    found = rivals(audits)
    blocks = ["Audits against LDP-Auditor (Figures 8 and 9)"]
    for universe, records in UNIVERSES.items():
        rows = [each for each in found if each.records == records]
        title = f"{records:,} synthetic records (for {universe}), {audits[0].runs:,} runs"
        blocks.append("\n".join([f"{title}, {REPEATS} times", HEADER, *map(_line, rows)]))
    lines = [_cells("", "paper", "corrected", "ours")]
    lines += [
        _cells(each.quantity, each.paper, each.corrected, each.ours) for each in statements(audits)
    ]
    return "\n\n".join([*blocks, "\n".join(lines), NOTES]) + "\n"


def _means(audit: Audit) -> Rivals:
    pairs = zip(audit.estimates, audit.ldp_auditor, strict=True)
    return Rivals(
        audit.universe, audit.records, audit.kind, audit.epsilon, audit.runs,
        float(np.mean(audit.estimates)), sum(map(math.isinf, audit.estimates)),
        float(np.mean(audit.certified)), float(np.mean(audit.ldp_auditor)),
        sum(_nearer(estimate, rival, audit.epsilon) for estimate, rival in pairs),
    )  # fmt: skip


def _nearer(value: float, rival: float, truth: float) -> bool:
    return abs(value - truth) < abs(rival - truth)


def _cap(runs: int) -> float:
    """LDP-Auditor's value with as many successes as runs and no false positive."""
    return ldp_auditor_epsilon(runs, 0, runs, ALPHA)


def _largest(audits: Sequence[Audit], kind: str, epsilon: float) -> float:
    chosen = (audit for audit in audits if (audit.kind, audit.epsilon) == (kind, epsilon))
    return max(value for audit in chosen for value in audit.ldp_auditor)


def _line(each: Rivals) -> str:
    estimate = _shown(each.model_based)
    if each.infinite:
        estimate = f"inf ({each.infinite} of {REPEATS})"
    return (
        f"{each.kind:9}  {each.epsilon:12g}  {estimate:>16}  {_shown(each.certified):>9}  "
        f"{_shown(each.ldp_auditor):>11}  {each.nearer} of {REPEATS}"
    )


def _cells(quantity: str, paper: str, corrected: str, ours: str) -> str:
    return f"{quantity:81}  {paper:11}  {corrected:9}  {ours}".rstrip()


def _shown(value: float) -> str:
    return f"{value:.3f}"


RECORDS = 4
_REPLACE = NeighboringRelation.REPLACE
VARIATION = TotalVariation.of(0.25, _REPLACE)
GAUSSIAN = GaussianDp.of(1, _REPLACE)
APPROXIMATE = ApproximateDp.of(1, 1e-5, _REPLACE)
GUARANTEES: dict[str, Guarantee] = {
    "total variation": VARIATION, "f-DP": GAUSSIAN, "(epsilon, delta)": APPROXIMATE,
}  # fmt: skip
TWICE: dict[str, Guarantee] = {
    "total variation": TotalVariation.compose([VARIATION] * 2),
    "f-DP": GaussianDp.compose([GAUSSIAN] * 2),
    "(epsilon, delta)": ApproximateDp.compose([APPROXIMATE] * 2),
}
"""The guarantee of two releases."""

EXAMPLE = (
    f"Values: {RECORDS} records on a line, uniform prior; a guess may miss by 1, or has to be\n"
    "exact; total variation 0.25, 1-GDP, (1, 1e-5)-DP, GRR at epsilon 1. The least comes first."
)
REFUTED = f"ReRo bounds: {LABEL}."


@dataclass(frozen=True, slots=True)
class Applicability:
    """A row of Table 1.

    Attributes:
        notion, knowledge, eta: what is known of the mechanism, to the attacker, and of guesses.
        paper: what the paper lists, or None where it has no such row.
        corrected, ours: all that hold: as corrected, and as our code finds.
        values: of our bounds in an example, in their order, the least first.
        reason: what is to be added to the paper's row.
    """

    notion: str
    knowledge: str
    eta: str
    paper: Cells | None
    corrected: Cells
    ours: Cells
    values: tuple[float, ...]
    reason: str

    @property
    def agrees(self) -> bool:
        """Whether ours is the corrected row; the order of the bounds is the example's."""
        return self.corrected == self.ours._replace(bounds=tuple(sorted(self.ours.bounds)))


def applicability() -> tuple[Applicability, ...]:
    """Return Table 1, as our code applies it."""
    return tuple(
        _row(notion, knowledge, eta, paper, corrected, reason)
        for notion, knowledge, eta, paper, corrected, reason in TABLE_1
    )


def table_1_text(rows: tuple[Applicability, ...]) -> str:
    """Return the table as text, a block for each row."""
    blocks = ["Which bounds apply (Table 1)", *map(_block, rows), EXAMPLE, REFUTED]
    return "\n\n".join(blocks) + "\n"


def as_records(rows: tuple[Applicability, ...]) -> list[dict[str, Any]]:
    """Return a flat record for each row; several bounds of one cell are a tuple."""
    return [
        {
            "notion": row.notion, "knowledge": row.knowledge, "eta": row.eta,
            **_named("paper", row.paper), **_named("corrected", row.corrected),
            **_named("ours", row.ours), "values": row.values,
            "reason": row.reason, "agrees": row.agrees,
        }
        for row in rows
    ]  # fmt: skip


def _named(column: str, cells: Cells | None) -> dict[str, Any]:
    values: tuple[Any, ...] = cells or ((), "", ())
    return {f"{column}_{name}": value for name, value in zip(Cells._fields, values, strict=True)}


def _block(row: Applicability) -> str:
    found = zip(row.ours.bounds, row.values, strict=True)
    bounds = ", ".join(f"{name} {value:.5f}" for name, value in found)
    ours = (bounds, row.ours.composition, _listed(row.ours.robustness))
    paper = ("no such row",) * 3 if row.paper is None else _shown_value(row.paper)
    lines = [f"{row.notion}; knowledge {row.knowledge}; guesses {row.eta}"]
    for name, theirs, mine in zip(("RAD", "composition", "ReRo"), paper, ours, strict=True):
        start = f"    {name:11}  paper: {theirs:16}  ours: "
        lines.append(textwrap.fill(mine, 100, initial_indent=start,
                                   subsequent_indent=" " * len(start)))  # fmt: skip
    return "\n".join([*lines, f"    {row.reason}"] if row.reason else lines)


def _shown_value(cells: Cells) -> tuple[str, str, str]:
    return _listed(cells.bounds), cells.composition, _listed(cells.robustness)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


def _row(
    notion: str, knowledge: str, eta: str, paper: Cells | None, corrected: Cells, reason: str
) -> Applicability:
    threat = _threat(knowledge, eta)
    scenario, guarantee = Scenario.of_threat(threat), GUARANTEES.get(notion)
    if guarantee is None:
        found = best_bound(scenario, [], exact_bounds(LocalMechanism("grr"), threat, 1.0))
    else:
        found = best_bound(scenario, [guarantee])
    least = _least(found)
    composition = _composition(scenario, notion, found)
    ours = Cells(tuple(least), composition, _robustness(scenario, guarantee))
    values = tuple(least.values())
    return Applicability(notion, knowledge, eta, paper, corrected, ours, values, reason)


def _threat(knowledge: str, eta: str) -> ThreatModel:
    prior = FinitePrior.uniform(RECORDS)
    success = SuccessSets.on_line(np.arange(float(RECORDS)), 0.0 if eta == "exact" else 1.0)
    if knowledge == "none":
        return ThreatModel.reconstruction(prior, success)
    return ThreatModel(prior, success, ThreatModel.membership(prior).auxiliary)


def _least(found: BestBound) -> dict[str, float]:
    """The value of each theorem, the least first; of a theorem's two forms the smaller."""
    values: dict[str, float] = {}
    for bound in found.applicable:
        values.setdefault(bound.theorem.split(",")[0], bound.value)
    return values


def _composition(scenario: Scenario, notion: str, found: BestBound) -> str:
    """Whether two releases have the same bounds, of the composed guarantee; if there is one."""
    if notion not in TWICE:
        return "joint law only"
    composed = best_bound(scenario, [TWICE[notion]])
    return "yes" if _least(composed).keys() == _least(found).keys() else "no"


def _robustness(scenario: Scenario, guarantee: Guarantee | None) -> tuple[str, ...]:
    """The equations that hold; Eq. (1) is tried with the guarantee's delta and with none."""
    if guarantee is None:
        return ()
    found = _equation(lambda: trade_off_success_bound(scenario, guarantee))
    if isinstance(guarantee, ApproximateDp):
        pure = ApproximateDp.of(guarantee.epsilon, 0, guarantee.relation)
        found += _equation(lambda: pure_dp_success_bound(scenario, guarantee))
        found += [
            f"{name} if delta = 0"
            for name in _equation(lambda: pure_dp_success_bound(scenario, pure))
        ]
    return tuple(found)


def _equation(bound: Callable[[], SuccessBound]) -> list[str]:
    """The bound's equation, or none where an assumption of it is not met."""
    try:
        return [bound().equation]
    except AssumptionError:
        return []
