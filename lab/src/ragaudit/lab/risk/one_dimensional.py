"""Theorem 4.3 for discrete records on a line, released with additive noise.

Any prior, eta and auxiliary knowledge; there is no closed form, but one for every stretch of the
line on which the best guess is the same (docs/notes/disclosure-risk.md §4).
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.finite import Options, guess_options, record_gains
from ragaudit.lab.risk.mechanisms import AdditiveNoise
from ragaudit.lab.risk.priors import LONGEST, SHORTEST
from ragaudit.lab.risk.quadrature import NumericalAdvantage
from ragaudit.lab.risk.threat import ThreatModel
from ragaudit.lab.risk.typed import typed
from ragaudit.lab.risk.upper_envelope import upper_envelope
from ragaudit.lab.risk.validation import FloatArray, check_finite, check_vector

__all__ = ["LARGEST_LINE", "line_advantage"]

LARGEST_LINE: Final = 2048
"""Most records that are integrated; the uniform prior has a closed form for any number."""

_TOLERANCE: Final = 1e-12
_STEP: Final = 2.0
"""Widest cell, in scales of the noise, that is looked into for crossings."""
_CELLS: Final = 2**18
"""Most densities held at a time, but for crossings: what fits a core's cache."""


@typed
def line_advantage(
    positions: Sequence[float] | FloatArray,
    noise: AdditiveNoise,
    threat: ThreatModel,
    *,
    clamp: tuple[float, float] | None = None,
    allow_abstain: bool = False,
) -> NumericalAdvantage:
    """Return the optimal advantage against ``position + noise``, to about 1e-11.

    The outputs are cut where the best guess changes, and the optimum is that of the channel that
    releases the piece in which the output lies. So, but for rounding, the value is reached by
    an attack and never too large.

    Args:
        positions: shape (records,), where each record lies, in the unit of the noise's scale.
        noise: the law of the noise.
        threat: over the same records; its success sets are not derived from ``positions``
            (see ``SuccessSets.on_line``).
        clamp: (least, largest) output; outputs beyond are moved there. None: the whole line.
        allow_abstain: as in :func:`~ragaudit.lab.risk.finite.finite_advantage`.

    Raises:
        InvalidArgumentError: bad positions, more than ``LARGEST_LINE``, an empty clamp, or
            lengths outside of 1e-100 to 1e100.
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
    if not SHORTEST <= noise.scale <= LONGEST:
        raise InvalidArgumentError(
            f"scale {noise.scale:g}", where="noise", expected=f"{SHORTEST:g} to {LONGEST:g}"
        )
    if np.abs(x).max() > LONGEST:
        raise InvalidArgumentError(
            f"a record at {x[np.abs(x).argmax()]:g}", where="positions", expected=f"<= {LONGEST:g}"
        )
    stretches = _stretches(_points(x, noise, clamp), max(2, _CELLS // len(x)))
    parts = [(options, stretch)
        for options in guess_options(threat, allow_abstain=allow_abstain)
        for stretch in stretches
    ]  # fmt: skip
    pieces = [
        _advantage_between(x, noise, threat, options, stretch, _TOLERANCE / len(parts))
        for options, stretch in parts
    ]
    return NumericalAdvantage(
        math.fsum(piece.value for piece in pieces), math.fsum(piece.error for piece in pieces)
    )


def _advantage_between(
    x: FloatArray,
    noise: AdditiveNoise,
    threat: ThreatModel,
    options: Options,
    points: FloatArray,
    tolerance: float,
) -> NumericalAdvantage:
    """What the outputs from the first point to the last contribute for some classes."""

    def gains(theta: FloatArray) -> FloatArray:
        return options(record_gains(noise.density(theta - x[:, None]), threat))

    breaks, loss = upper_envelope(
        gains, points[np.isfinite(points)], tolerance=tolerance, hidden=not noise.has_kink
    )
    channel = np.diff(noise.cdf(np.union1d(points, breaks) - x[:, None]), axis=1)
    best = options(record_gains(channel, threat)).max(axis=1)
    return NumericalAdvantage(math.fsum(best.sum(axis=0)), loss)


def _points(x: FloatArray, noise: AdditiveNoise, clamp: tuple[float, float] | None) -> FloatArray:
    """Records, midpoints, clamp and both infinities; within reach, at most a scale apart.

    All of a clamped output lies on the clamp or between: beyond it there are no points.
    """
    where = np.unique(x)
    middles = (where[1:] + where[:-1]) / 2
    points = np.unique(np.concatenate([where, middles, where - noise.reach, where + noise.reach]))
    if clamp is not None:
        if len(clamp) != 2:
            raise InvalidArgumentError(
                f"{len(clamp)} outputs", where="clamp", expected="the least and the largest"
            )
        least, largest = check_finite(clamp[0], "clamp"), check_finite(clamp[1], "clamp")
        if not least < largest:
            raise InvalidArgumentError("empty interval", where="clamp", expected="least < largest")
        inner = points[(points > least) & (points < largest)]
        points = np.concatenate([[least], inner, [largest]])
    low, width = points[:-1], np.diff(points)
    near = _distance(low + width / 2, where) <= noise.reach
    counts = np.where(near, np.ceil(width / (_STEP * noise.scale)), 1).astype(np.int64)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    index = np.arange(int(counts.sum())) - first
    fine = np.repeat(low, counts) + index * np.repeat(width / counts, counts)
    return np.concatenate([[-np.inf], fine, points[-1:], [np.inf]])


def _distance(points: FloatArray, where: FloatArray) -> FloatArray:
    """Distance of each point to the nearest of the sorted ``where``."""
    right = np.clip(np.searchsorted(where, points), 1, len(where) - 1)
    return np.asarray(np.minimum(np.abs(points - where[right - 1]), np.abs(points - where[right])))


def _stretches(points: FloatArray, most: int) -> list[FloatArray]:
    """The points in runs of about ``most``, each beginning where the one before ends."""
    starts = range(0, max(1, len(points) - 2), most)
    return [points[start : start + most + 1] for start in starts]
