"""Growth as a power law: the exponent fitted by least squares on logarithms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import t

__all__ = ["Fit", "fit", "local_exponent"]

LEVEL = 0.95

Point = tuple[float, float]


@dataclass(frozen=True)
class Fit:
    """``y = factor · x^exponent``.

    Attributes:
        half_width: of the exponent's 95 % interval, from the scatter around the line (Student's
            t with n - 2 degrees of freedom); None where two points fix the line.
    """

    exponent: float
    factor: float
    half_width: float | None
    points: int


def fit(points: Sequence[Point]) -> Fit | None:
    """Return the least-squares line through (log x, log y).

    Args:
        points: (x, y), all positive.

    Returns:
        The fit; None unless two x differ.

    Raises:
        ValueError: a coordinate is not positive.
    """
    x = [math.log(each) for each, _ in points]
    y = [math.log(each) for _, each in points]
    count = len(points)
    if len(set(x)) < 2:
        return None
    mean_x, mean_y = math.fsum(x) / count, math.fsum(y) / count
    spread = math.fsum((each - mean_x) ** 2 for each in x)
    slope = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    factor = math.exp(mean_y - slope * mean_x)
    if count < 3:
        return Fit(slope, factor, None, count)
    left = (b - mean_y - slope * (a - mean_x) for a, b in zip(x, y, strict=True))
    variance = math.fsum(each**2 for each in left) / (count - 2)
    half_width = float(t.ppf((1 + LEVEL) / 2, count - 2)) * math.sqrt(variance / spread)
    return Fit(slope, factor, half_width, count)


def local_exponent(points: Sequence[Point]) -> float | None:
    """Return the slope between the two largest x; None unless there are two.

    Args:
        points: (x, y), all positive, in any order.
    """
    ordered = sorted(points)[-2:]
    found = fit(ordered) if len(ordered) == 2 else None
    return None if found is None else found.exponent
