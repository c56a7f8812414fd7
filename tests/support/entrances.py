"""A public function or class with arguments that are right, of which a test changes one."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy import guarantees
from ragaudit.privacy.accounting.events import NoisyScores

REPLACE = NeighboringRelation.REPLACE
HALF, TENTH = Fraction(1, 2), Fraction(1, 8)
EVENT = NoisyScores.of_policy("9", "replace", 1, 20)
EPSILON = guarantees.ApproximateDp.of(1, "0.001", REPLACE)
MU = guarantees.GaussianDp.of(1, REPLACE)


class Entrance(NamedTuple):
    """A call that is right; ``numbers`` are the arguments that any kind of number may be."""

    call: Callable[..., Any]
    arguments: dict[str, Any]
    numbers: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.call.__module__.rpartition('.')[2]}.{self.call.__qualname__}"


NUMBERS = [
    "alpha",
    "advantage",
    "a",
    "b",
    "beta",
    "clipping_norm",
    "collision_probability",
    "confidence",
    "delta",
    "delta_acc",
    "delta_comp",
    "delta_policy",
    "delta_q",
    "deviation",
    "distance",
    "epsilon",
    "epsilon_acc",
    "epsilon_q",
    "epsilon_value",
    "eta",
    "exponent",
    "factor",
    "gamma",
    "high",
    "largest",
    "largest_ball",
    "largest_density",
    "least_ball",
    "length",
    "limit",
    "low",
    "mu",
    "noise_multiplier",
    "order",
    "presence",
    "releases",
    "rho",
    "scale",
    "sensitivity",
    "sigma",
    "sigma_units",
    "slack",
    "span",
    "target",
    "theta",
    "value",
    "collision",
    "largest_ball",
]


def entrance(call: Callable[..., Any], *others: str, **arguments: Any) -> Entrance:
    """``others``: arguments with a number's name that are none here."""
    numbers = tuple(name for name in arguments if name in NUMBERS and name not in others)
    return Entrance(call, arguments, numbers)
