"""Theorem 4.3 for discrete records on a line, released with additive noise.

Any prior, eta and auxiliary knowledge; by quadrature, since there is no closed form
(docs/notes/disclosure-risk.md §4).
"""

from collections.abc import Sequence

import numpy as np
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.risk.finite import best_gains
from ragaudit.privacy.risk.mechanisms import AdditiveNoise
from ragaudit.privacy.risk.quadrature import NumericalAdvantage, integrate
from ragaudit.privacy.risk.threat import ThreatModel
from ragaudit.privacy.risk.validation import FloatArray, check_finite, check_vector

__all__ = ["LARGEST_LINE", "line_advantage"]

LARGEST_LINE = 2048
"""Most records that are integrated; the uniform prior has a closed form for any number."""

_TOLERANCE = 1e-11
_LEVELS = 30
_CELLS = 2**22
"""Most densities held at a time."""


def line_advantage(
    positions: Sequence[float] | FloatArray,
    noise: AdditiveNoise,
    threat: ThreatModel,
    *,
    clamp: tuple[float, float] | None = None,
    allow_abstain: bool = False,
) -> NumericalAdvantage:
    """Return the optimal advantage against ``position + noise``.

    Args:
        positions: shape (records,), where each record lies, in the unit of the noise's scale.
        noise: the law of the noise.
        threat: over the same records; its success sets are not derived from ``positions``
            (see ``SuccessSets.on_line``).
        clamp: (least, largest) output; outputs beyond are moved there. None: the whole line.
        allow_abstain: as in :func:`~ragaudit.privacy.risk.finite.finite_advantage`.

    Raises:
        InvalidArgumentError: bad positions, more than ``LARGEST_LINE``, an empty clamp.
    """
    x = check_vector(positions, "positions", least=2)
    if len(x) != threat.records:
        raise InvalidArgumentError(
            f"{len(x)} records", where="positions", expected=f"{threat.records}, as the threat has"
        )
    if len(x) > LARGEST_LINE:
        raise InvalidArgumentError(
            f"{len(x)} records", where="positions", expected=f"at most {LARGEST_LINE}"
        )

    def gain(theta: FloatArray) -> FloatArray:
        batch = max(1, _CELLS // len(x))
        parts = [
            best_gains(
                noise.density(part[None, :] - x[:, None]), threat, allow_abstain=allow_abstain
            )
            for part in np.split(theta, range(batch, len(theta), batch))
        ]
        return np.concatenate(parts)

    low, high = _panels(x, noise, clamp)
    if len(low):
        inside = integrate(gain, low, high, tolerance=_TOLERANCE, levels=_LEVELS)
    else:
        inside = NumericalAdvantage(0.0, 0.0)
    if clamp is None:
        return inside
    atoms = np.stack([noise.cdf(clamp[0] - x), noise.cdf(x - clamp[1])], axis=1)
    at_ends = float(best_gains(atoms, threat, allow_abstain=allow_abstain).sum())
    return NumericalAdvantage(inside.value + at_ends, inside.error)


def _panels(
    x: FloatArray, noise: AdditiveNoise, clamp: tuple[float, float] | None
) -> tuple[FloatArray, FloatArray]:
    """Panels split at records, midpoints and clamp, at most 4 scales wide.

    Stretches farther than the noise's reach from every record are left out.
    """
    where = np.unique(x)
    breaks = np.unique(
        np.concatenate(
            [where, (where[1:] + where[:-1]) / 2, where - noise.reach, where + noise.reach]
        )
    )
    if clamp is not None:
        least, largest = check_finite(clamp[0], "clamp"), check_finite(clamp[1], "clamp")
        if not least < largest:
            raise InvalidArgumentError("empty interval", where="clamp", expected="least < largest")
        inner = breaks[(breaks > least) & (breaks < largest)]
        breaks = np.concatenate([[least], inner, [largest]])
    low, high = breaks[:-1], breaks[1:]
    near = _distance((low + high) / 2, where) <= noise.reach
    low, high = low[near], high[near]
    counts = np.maximum(1, np.ceil((high - low) / (4 * noise.scale))).astype(np.int64)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    index = np.arange(int(counts.sum())) - first
    width = np.repeat((high - low) / counts, counts)
    start = np.repeat(low, counts) + index * width
    return start, start + width


def _distance(points: FloatArray, where: FloatArray) -> FloatArray:
    """Distance of each point to the nearest of the sorted ``where``."""
    right = np.clip(np.searchsorted(where, points), 1, len(where) - 1)
    return np.asarray(np.minimum(np.abs(points - where[right - 1]), np.abs(points - where[right])))
