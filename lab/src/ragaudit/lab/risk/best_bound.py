"""The smallest bound that applies, which one it is, and why others do not.

Table 1 of Balboa et al., corrected (docs/notes/disclosure-risk.md §8).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.finite import channel_total_variation, finite_advantage
from ragaudit.lab.risk.general_bounds import (
    approximate_dp_bound,
    exact_guess_bound,
    total_variation_bound,
    trade_off_bound,
    uniform_exact_guess_bound,
)
from ragaudit.lab.risk.scenario import (
    Assumptions,
    Bound,
    NormalizedAdvantage,
    Scenario,
    normalized,
)
from ragaudit.lab.risk.threat import ThreatModel
from ragaudit.lab.risk.trade_off import Guarantee, trade_off
from ragaudit.lab.risk.typed import typed
from ragaudit.lab.risk.validation import AssumptionError, FloatArray
from ragaudit.privacy.numbers import instance, sequence

__all__ = ["BestBound", "best_bound", "channel_bounds"]

_ROWS: tuple[tuple[str, Callable[[Scenario, Guarantee], Bound]], ...] = (
    ("Theorem 4.2", total_variation_bound),
    ("Theorem 5.1", trade_off_bound),
    ("Proposition 5.3", approximate_dp_bound),
    ("Theorem 5.5", exact_guess_bound),
    ("Corollary 5.6", uniform_exact_guess_bound),
)
_ROUNDING = 1e-14  # relative: values that differ by less are equal


@dataclass(frozen=True)
class BestBound:
    """The smallest applicable bound.

    Attributes:
        value: in [0, 1 - kappa]; 1 - kappa itself promises nothing.
        winner: the bound that gave it.
        applicable: all that apply, the winner first, then the smallest.
        refused: theorems that do not apply, with the assumption that is missing.
        normalized: the value divided by 1 - kappa.
    """

    value: float
    winner: Bound
    applicable: tuple[Bound, ...]
    refused: tuple[tuple[str, str], ...]
    normalized: NormalizedAdvantage

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "value": self.value,
            "winner": self.winner.to_json(),
            "applicable": [bound.to_json() for bound in self.applicable],
            "refused": [{"theorem": name, "missing": why} for name, why in self.refused],
            "normalized": self.normalized._asdict(),
        }


@typed
def best_bound(
    scenario: Scenario, guarantees: Sequence[Guarantee], evaluated: Sequence[Bound] = ()
) -> BestBound:
    """Return the minimum of all bounds that hold in the scenario.

    Of bounds that agree up to rounding the first one wins, a known mechanism's own before all:
    which of them is the smaller one in floating point differs between processors.

    Args:
        scenario: attacker and records.
        guarantees: of one mechanism, all under the scenario's relation. Several may be known
            at once; each gives its bounds.
        evaluated: bounds already computed for the known mechanism (:func:`channel_bounds`).

    Raises:
        InvalidArgumentError: neither a guarantee nor an evaluated bound.
        AssumptionError: a guarantee of another kind (``trade_off``), or under another relation
            than the scenario's.
    """
    known = sequence(guarantees, "guarantees")
    applicable = sequence(evaluated, "evaluated")
    for each in applicable:
        instance(each, Bound, "evaluated")
    if not known and not applicable:
        raise InvalidArgumentError("nothing known", where="guarantees", expected="at least one")
    refused: dict[str, str] = {}
    for guarantee in known:
        trade_off(guarantee)
        scenario.require(guarantee)
        for theorem, bound in _ROWS:
            try:
                applicable.append(bound(scenario, guarantee))
            except AssumptionError as error:
                refused[theorem] = str(error)
    least = min(bound.value for bound in applicable)
    winner = next(bound for bound in applicable if bound.value <= least * (1 + _ROUNDING))
    applicable.sort(key=lambda bound: (bound is not winner, bound.value))
    applied = {bound.theorem for bound in applicable}
    value = min(max(0.0, winner.value), 1 - float(scenario.summary.collision_probability))
    return BestBound(
        value,
        winner,
        tuple(applicable),
        tuple((name, why) for name, why in refused.items() if name not in applied),
        normalized(value, scenario.summary),
    )


@typed
def channel_bounds(
    channel: FloatArray | npt.NDArray[np.generic], threat: ThreatModel, name: str
) -> tuple[Bound, Bound]:
    """Return Theorem 4.3 for a known channel, and Theorem 4.2 with its exact total variation.

    The first is the optimum itself. For several releases of the same record the channel must
    be that of all outputs jointly: the values of single releases do not compose.

    Args:
        channel: shape (records, outputs).
        name: of the mechanism, for reports.
    """
    scenario = Scenario.of_threat(threat)
    optimum = max(0.0, finite_advantage(channel, threat))
    variation = channel_total_variation(channel) * (1 - threat.prior.collision_probability)
    exact = Assumptions(
        prior=scenario.prior_name,
        auxiliary="none" if threat.auxiliary.is_none else "as given",
        eta="exact guesses" if threat.success.is_exact else "as given",
        relation=scenario.relation,
        mechanism=f"known: {name}",
    )
    return (
        Bound(optimum, "Theorem 4.3", exact, composes=False),
        Bound(variation, "Theorem 4.2", exact._replace(auxiliary="any", eta="any")),
    )
