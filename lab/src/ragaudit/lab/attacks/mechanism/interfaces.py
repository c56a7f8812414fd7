"""The interface names of DP-Auditorium (google/differential-privacy, `dp_auditorium.interfaces`).

Protocols only: objects of that library satisfy them as they are, and nothing of it is needed.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["DatasetGenerator", "Evidence", "Mechanism", "PropertyTester", "Samples"]

Samples = npt.NDArray[np.generic]
"""Outputs of a mechanism, one per row."""

Evidence = Callable[[Samples], npt.NDArray[np.float64]]
"""An attack's score of each output, float64[n]: larger or smaller for the first data set."""


class Mechanism(Protocol):
    """A randomized mechanism, called as a black box."""

    def __call__(self, dataset: Any, num_samples: int) -> Samples:
        """Return independent outputs about one data set, ``num_samples`` rows of them.

        Args:
            dataset: of the kind that the generator makes.
            num_samples: how many, >= 0.
        """


class DatasetGenerator(Protocol):
    """Pairs of neighboring data sets, one after another."""

    def __call__(self, divergence: float | None) -> tuple[Any, Any]:
        """Return the next pair to try.

        Args:
            divergence: what was found of the last pair, for generators that search; None at first.
        """


class PropertyTester(Protocol):
    """A test of a privacy property on samples of both worlds."""

    @property
    def privacy_property(self) -> Any:
        """What is tested."""

    def estimate_lower_bound(
        self, samples1: Samples, samples2: Samples, failure_probability: float
    ) -> float:
        """Return a lower bound of the divergence that the property limits.

        Args:
            samples1, samples2: outputs about each data set of a pair.
            failure_probability: that the bound does not hold.
        """

    def reject_property(self, lower_bound: float) -> bool:
        """Return whether a divergence of at least this contradicts the property.

        Args:
            lower_bound: as `estimate_lower_bound` returned it.
        """
