"""Confidence intervals of means over questions."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import MalformedError

__all__ = ["CONFIDENCE", "Interval", "mean_interval"]

CONFIDENCE = 0.95
"""Coverage of every interval of a plan, two-sided."""


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval, in the unit of the values.

    Attributes:
        mean: the estimate.
        low, high: ends of the interval, ``low <= mean <= high``.
    """

    mean: float
    low: float
    high: float


def mean_interval(
    values: npt.NDArray[np.float64], *, lowest: float = 0.0, highest: float
) -> Interval:
    """Return the mean of independent values with Student's t interval at 95 %.

    The unit is one value, here one question with all its trials averaged, so the interval covers
    the questions that these are a sample of, not these alone. It is cut to the range of possible
    means. Where all n values agree, t would give no width; then other values have a probability of
    at most ``1 - 0.025^(1/n)``, which bounds the mean.

    Args:
        values: float64[n], n >= 2, each between ``lowest`` and ``highest``.
        lowest, highest: finite ends of the range that a value can have.

    Raises:
        MalformedError: fewer than two values, one outside the range, or an infinite range.
    """
    if not math.isfinite(highest - lowest):
        raise MalformedError("an infinite range", where="highest", expected="a finite number")
    if values.ndim != 1 or len(values) < 2:
        raise MalformedError(
            f"{values.size} questions", where="questions", expected="at least 2 for an interval"
        )
    if not np.all((values >= lowest) & (values <= highest)):
        raise MalformedError(
            "value out of range", where="values", expected=f"{lowest} to {highest}"
        )
    # Imported here: half a second, and only a simulation needs it.
    from scipy.special import stdtrit  # noqa: PLC0415

    mean = float(np.mean(values))
    if np.all(values == values[0]):
        others = 1 - ((1 - CONFIDENCE) / 2) ** (1 / len(values))
        return Interval(mean, mean - others * (mean - lowest), mean + others * (highest - mean))
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    margin = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * error
    return Interval(mean, max(lowest, mean - margin), min(highest, mean + margin))
