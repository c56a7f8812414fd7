"""Table 1: which bounds apply, whether they compose, and what reconstruction robustness has."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.reproduce.rad_published import TABLE_1, Cells
from ragaudit.lab.risk.best_bound import BestBound, best_bound
from ragaudit.lab.risk.known_mechanisms import LocalMechanism, exact_bounds
from ragaudit.lab.risk.priors import FinitePrior
from ragaudit.lab.risk.reconstruction_robustness import (
    LABEL,
    SuccessBound,
    pure_dp_success_bound,
    trade_off_success_bound,
)
from ragaudit.lab.risk.scenario import Scenario
from ragaudit.lab.risk.threat import SuccessSets, ThreatModel
from ragaudit.lab.risk.trade_off import Guarantee
from ragaudit.lab.risk.validation import AssumptionError
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp, TotalVariation

__all__ = ["Applicability", "applicability", "as_records", "as_text"]

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


def as_text(rows: tuple[Applicability, ...]) -> str:
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
    paper = ("no such row",) * 3 if row.paper is None else _shown(row.paper)
    lines = [f"{row.notion}; knowledge {row.knowledge}; guesses {row.eta}"]
    for name, theirs, mine in zip(("RAD", "composition", "ReRo"), paper, ours, strict=True):
        start = f"    {name:11}  paper: {theirs:16}  ours: "
        lines.append(textwrap.fill(mine, 100, initial_indent=start,
                                   subsequent_indent=" " * len(start)))  # fmt: skip
    return "\n".join([*lines, f"    {row.reason}"] if row.reason else lines)


def _shown(cells: Cells) -> tuple[str, str, str]:
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
