"""The mechanisms that are known by name: guarantee, exact optimal advantage and optimal attack.

Local mechanisms (GRR, OUE, SS) of one parameter epsilon; noise on a line, of one parameter 1/scale.
The exact advantage is a closed form where there is one, else enumeration or quadrature.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, Protocol, runtime_checkable

import numpy as np
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk import mechanisms, optimal_attack
from ragaudit.lab.risk.general_bounds import Assumptions, Bound, Scenario
from ragaudit.lab.risk.mechanisms import GaussianNoise, LaplaceNoise, finite_advantage
from ragaudit.lab.risk.one_dimensional import line_advantage
from ragaudit.lab.risk.threat import ThreatModel
from ragaudit.lab.risk.validation import (
    AssumptionError,
    FloatArray,
    check_epsilon,
    check_integer,
    check_non_negative,
    check_vector,
    typed,
)
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp
from ragaudit.privacy.numbers import instance, shown

_LARGEST_EPSILON: Final = 1e4
_LARGEST_GAP: Final = 100.0
"""In scales of the noise: records this far apart are told apart, but for less than 1e-21."""


@runtime_checkable
class KnownMechanism(Protocol):
    """A family of mechanisms with one parameter that grows as privacy falls."""

    @property
    def name(self) -> str:
        """In words, for reports."""

    @property
    def parameter(self) -> str:
        """What the parameter is, for reports."""

    @property
    def largest(self) -> float:
        """From this value on the advantage is its supremum, to the precision of floats."""

    def guarantee(self, value: float) -> ApproximateDp | GaussianDp:
        """Return what the mechanism guarantees between two records, whatever they are.

        Args:
            value: of the parameter, >= 0.
        """

    def advantage(self, threat: ThreatModel, value: float) -> float:
        """Return the largest advantage of any attack (Theorem 4.3), in [0, 1 - kappa].

        Args:
            threat: over the mechanism's records.
            value: of the parameter, >= 0.
        """

    def total_variation(self, records: int, value: float) -> float:
        """Return the largest total variation between two records, in [0, 1].

        Args:
            records: m >= 2.
            value: of the parameter, >= 0.
        """

    def attacked(self, value: float) -> optimal_attack.Attacked:
        """Return the optimal attack on the mechanism, for simulation.

        Args:
            value: of the parameter, >= 0.
        """


@dataclass(frozen=True)
class LocalMechanism:
    """Generalized randomized response, optimal unary encoding or subset selection.

    Attributes:
        kind: "grr", "oue" or "ss".
        subset: of subset selection, the size of the reported subset.
    """

    kind: Literal["grr", "oue", "ss"]
    subset: int = 1

    def __post_init__(self) -> None:
        _check_kind(self.kind, "grr", "oue", "ss")
        check_integer(self.subset, "subset", least=1)

    @property
    def name(self) -> str:
        """See :class:`KnownMechanism`."""
        words = {"grr": "generalized randomized response", "oue": "optimal unary encoding"}
        return words.get(self.kind, f"subset selection of {self.subset}")

    @property
    def parameter(self) -> str:
        """See :class:`KnownMechanism`."""
        return "epsilon"

    @property
    def largest(self) -> float:
        """See :class:`KnownMechanism`."""
        return _LARGEST_EPSILON

    def guarantee(self, value: float) -> ApproximateDp:
        """See :class:`KnownMechanism`."""
        return ApproximateDp.of(check_epsilon(value), 0, NeighboringRelation.REPLACE)

    def advantage(self, threat: ThreatModel, value: float) -> float:
        """See :class:`KnownMechanism`."""
        forms: dict[str, Callable[[], float]] = {
            "grr": lambda: mechanisms.grr_advantage(threat, value),
            "oue": lambda: self._oue(threat, value),
            "ss": lambda: self._ss(threat, value),
        }
        try:
            return forms[self.kind]()
        except AssumptionError:
            return finite_advantage(self._channel(threat.records, value), threat)

    def total_variation(self, records: int, value: float) -> float:
        """See :class:`KnownMechanism`."""
        if self.kind == "grr":
            return mechanisms.grr_total_variation(records, value)
        if self.kind == "oue":
            return mechanisms.oue_total_variation(value)
        return mechanisms.ss_total_variation(records, value, self.subset)

    def attacked(self, value: float) -> optimal_attack.Attacked:
        """See :class:`KnownMechanism`."""
        epsilon = check_epsilon(value)
        if self.kind == "grr":
            return optimal_attack.RandomizedResponse(epsilon)
        if self.kind == "oue":
            return optimal_attack.UnaryEncoding(epsilon)
        return optimal_attack.SubsetSelection(epsilon, self.subset)

    def _oue(self, threat: ThreatModel, value: float) -> float:
        if _plain_uniform(threat):
            return mechanisms.oue_advantage_uniform(threat.records, value)
        return mechanisms.oue_advantage(threat, value)

    def _ss(self, threat: ThreatModel, value: float) -> float:
        if _plain_uniform(threat):
            return mechanisms.ss_advantage_uniform(threat.records, value, self.subset)
        return mechanisms.ss_advantage(threat, value, self.subset)

    def _channel(self, records: int, value: float) -> FloatArray:
        if self.kind == "grr":
            return mechanisms.grr_channel(records, value)
        if self.kind == "oue":
            return mechanisms.oue_channel(records, value)
        return mechanisms.ss_channel(records, value, self.subset)


@dataclass(frozen=True, eq=False)
class NoiseMechanism:
    """Laplace or Gaussian noise on records that lie on a line; the parameter is range/scale.

    For Laplace noise it is epsilon; for Gaussian noise it is mu, range over standard deviation.
    At 0 the noise is infinite, and nothing is told.

    Attributes:
        kind: "laplace" or "gaussian".
        positions: shape (records,), rising strictly.
        eta: >= 0, the distance within which a guess counts, in the positions' unit.
    """

    kind: Literal["laplace", "gaussian"]
    positions: FloatArray
    eta: float = 0.0

    def __post_init__(self) -> None:
        _check_kind(self.kind, "laplace", "gaussian")
        positions = check_vector(self.positions, "positions", least=2)
        if not (np.diff(positions) > 0).all():
            raise InvalidArgumentError("not rising", where="positions", expected="strictly rising")
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "eta", check_non_negative(self.eta, "eta"))

    @property
    def span(self) -> float:
        """Distance of the extreme records."""
        return float(self.positions[-1] - self.positions[0])

    @property
    def name(self) -> str:
        """See :class:`KnownMechanism`."""
        return f"{self.kind.capitalize()} noise"

    @property
    def parameter(self) -> str:
        """See :class:`KnownMechanism`."""
        return "epsilon" if self.kind == "laplace" else "mu"

    @cached_property
    def largest(self) -> float:
        """See :class:`KnownMechanism`."""
        return _LARGEST_GAP * self.span / float(np.diff(self.positions).min())

    def noise(self, value: float) -> LaplaceNoise | GaussianNoise | None:
        """Return the noise at a parameter; None if it is infinite.

        Args:
            value: range/scale, >= 0; above `largest` it counts as that, lest the scale underflow.
        """
        share = min(check_non_negative(value, self.parameter), self.largest)
        scale = self.span / share if share else math.inf
        if math.isinf(scale):
            return None
        return LaplaceNoise(scale) if self.kind == "laplace" else GaussianNoise(scale)

    def guarantee(self, value: float) -> ApproximateDp | GaussianDp:
        """See :class:`KnownMechanism`."""
        if self.kind == "laplace":
            return ApproximateDp.of(value, 0, NeighboringRelation.REPLACE)
        return GaussianDp.of(value, NeighboringRelation.REPLACE)

    def advantage(self, threat: ThreatModel, value: float) -> float:
        """See :class:`KnownMechanism`."""
        noise = self.noise(value)
        if noise is None:
            return 0.0
        if value >= self.largest:  # the record itself, as randomized response without the random
            return LocalMechanism("grr").advantage(threat, _LARGEST_EPSILON)
        if _plain_uniform(threat):
            return mechanisms.noise_advantage_uniform(self.positions, noise)
        return max(0.0, line_advantage(self.positions, noise, threat).value)

    def total_variation(self, records: int, value: float) -> float:
        """See :class:`KnownMechanism`."""
        noise = self.noise(value)
        return 0.0 if noise is None else noise.total_variation(self.span)

    def attacked(self, value: float) -> optimal_attack.Attacked:
        """See :class:`KnownMechanism`."""
        noise = self.noise(value)
        if noise is None:  # any guess is as good: so is a random one
            return optimal_attack.RandomizedResponse(0.0)
        return optimal_attack.NoisyPosition(self.positions, noise, self.eta)


@typed
def exact_bounds(mechanism: KnownMechanism, threat: ThreatModel, value: float) -> tuple[Bound, ...]:
    """Return Theorem 4.3 for the mechanism itself, and Theorem 4.2 with its total variation.

    Args:
        mechanism: whose advantage is known.
        threat: over its records.
        value: of its parameter, >= 0.
    """
    scenario = Scenario.of_threat(threat)
    exact = Assumptions(
        prior=scenario.prior_name,
        auxiliary="none" if threat.auxiliary.is_none else "as given",
        eta="exact guesses" if threat.success.is_exact else "as given",
        relation=scenario.relation,
        mechanism=f"known: {mechanism.name}",
    )
    variation = mechanism.total_variation(threat.records, value)
    return (
        Bound(mechanism.advantage(threat, value), "Theorem 4.3", exact, composes=False),
        Bound(
            variation * (1 - threat.prior.collision_probability),
            "Theorem 4.2, exact total variation",
            exact._replace(auxiliary="any", eta="any"),
        ),
    )


def _check_kind(kind: object, *known: str) -> None:
    instance(kind, str, "kind")
    if kind not in known:
        raise InvalidArgumentError(
            f"unknown kind {shown(kind)}", where="kind", expected=", ".join(known)
        )


def _plain_uniform(threat: ThreatModel) -> bool:
    return threat.prior.is_uniform and threat.success.is_exact and threat.auxiliary.is_none
