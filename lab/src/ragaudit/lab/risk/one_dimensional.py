"""Theorem 4.3 for discrete records on a line, released with additive noise.

Any prior, eta and auxiliary knowledge; there is no closed form, but one for every stretch of the
line on which the best guess is the same: between two places where the largest of many smooth
functions becomes another one, one guess is the best throughout, and its gain integrates in closed
form (docs/notes/disclosure-risk.md §4, claim 4.1). Else adaptive Gauss-Lobatto integration of many
panels at once has an error estimate.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.mechanisms import AdditiveNoise, Options, guess_options, record_gains
from ragaudit.lab.risk.threat import LONGEST, SHORTEST, ThreatModel
from ragaudit.lab.risk.validation import FloatArray, IntegerArray, check_finite, check_vector, typed

_POINTS: Final = 8
_DROPPED: Final = [3, 4]
"""Nodes that the coarser rule of the same panel leaves out: the two around its middle."""


def _lobatto(points: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on [-1, 1], both ends included; exact to degree ``2 points - 3``.

    The ends matter: a kink between an end and the first inner node is invisible to a rule
    without them, and panels would settle on a wrong value.
    """
    polynomial = np.polynomial.Legendre.basis(points - 1)
    nodes = np.concatenate([[-1.0], np.sort(polynomial.deriv().roots().real), [1.0]])
    weights = 2 / (points * (points - 1) * polynomial(nodes) ** 2)
    return nodes, weights


def _coarser(nodes: FloatArray) -> FloatArray:
    """Weights of the interpolatory rule on ``nodes`` without ``_DROPPED``, which weigh 0."""
    kept = np.delete(np.arange(len(nodes)), _DROPPED)
    degrees = np.arange(len(kept))
    moments = (1 - (-1.0) ** (degrees + 1)) / (degrees + 1)
    weights = np.zeros(len(nodes))
    weights[kept] = np.linalg.solve(nodes[kept] ** degrees[:, None], moments)
    return weights


_NODES, _WEIGHTS = _lobatto(_POINTS)
_COARSE_WEIGHTS = _coarser(_NODES)


class NumericalAdvantage(NamedTuple):
    """A value computed numerically.

    Attributes:
        value: the advantage.
        error: estimate (no bound) of its absolute error.
    """

    value: float
    error: float


class Integral(NamedTuple):
    """What :func:`integrate` found.

    Attributes:
        value: the integral.
        error: estimate (no bound) of its absolute error.
        unrefined: the estimate from the panels as they were given.
    """

    value: float
    error: float
    unrefined: float


def integrate(
    function: Callable[[FloatArray], FloatArray],
    breaks: FloatArray,
    *,
    tolerance: float,
    levels: int,
) -> Integral:
    """Integrate over the panels between ``breaks``; halve those that have not settled.

    A panel has settled when its eight-point rule and the rule on six of the eight points differ
    by at most ``tolerance`` divided by the number of panels given. Kinks (the maximum over
    guesses has many) are cornered by halving; after ``levels`` halvings what remains is taken
    as it is, and its difference goes into the error.

    Args:
        function: continuous (a jump may go unseen), vectorized, shape (n,) to (n,).
        breaks: shape (panels + 1,), ascending.
        tolerance: absolute, for the whole integral.
        levels: most halvings of a panel.
    """
    low, high = breaks[:-1], breaks[1:]
    share = tolerance / len(low)
    value = error = unrefined = 0.0
    for level in range(levels + 1):
        half = (high - low) / 2
        nodes = low[:, None] + half[:, None] * (1 + _NODES)
        # Exactly: the sum may round to beyond the end, where the function need not be defined.
        nodes[:, -1] = high
        heights = function(nodes.ravel()).reshape(nodes.shape)
        estimates = half * (heights @ _WEIGHTS)
        differences = half * np.abs(heights @ (_WEIGHTS - _COARSE_WEIGHTS))
        if level == 0:
            unrefined = float(estimates.sum())
        open_ = differences > share if level < levels else np.zeros(len(low), dtype=np.bool_)
        value += float(estimates[~open_].sum())
        error += float(differences[~open_].sum())
        if not open_.any():
            break
        low, high = low[open_], high[open_]
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return Integral(value, error, unrefined)


Functions = Callable[[FloatArray], FloatArray]
"""Many functions at once: shape (n,) to (groups, functions, n)."""

_LEVELS: Final = 60
_BISECT_EVERY: Final = 3
"""Every third guess at a crossing is the middle, so that no bracket stays wide."""


class Envelope(NamedTuple):
    """Cells within which, as far as seen, one function of each group is the largest.

    Attributes:
        breaks: the given points and the crossings, ascending.
        loss: what is lost at most, summed over groups, by taking one function per cell, if the
            largest function lies below its chords (as that of straight lines does).
    """

    breaks: FloatArray
    loss: float


class _Brackets(NamedTuple):
    """Cells of one group each; heights of all its functions at both ends, shape (n, functions)."""

    group: IntegerArray
    left: FloatArray
    right: FloatArray
    at_left: FloatArray
    at_right: FloatArray

    def where(self, chosen: npt.NDArray[np.bool_]) -> "_Brackets":
        """Return those for which ``chosen``, shape (n,), is true."""
        return _Brackets(
            self.group[chosen],
            self.left[chosen],
            self.right[chosen],
            self.at_left[chosen],
            self.at_right[chosen],
        )

    def leads(self) -> tuple[FloatArray, FloatArray]:
        """Return, for each end, its largest function's lead over the other end's largest there."""
        rows = np.arange(len(self.left))
        first, second = self.at_left.argmax(axis=1), self.at_right.argmax(axis=1)
        return (
            self.at_left[rows, first] - self.at_left[rows, second],
            self.at_right[rows, second] - self.at_right[rows, first],
        )

    def split(self, middle: FloatArray, at_middle: FloatArray) -> "_Brackets":
        """Return both halves of each; ``at_middle`` has the heights at ``middle``."""
        lower = self._replace(right=middle, at_right=at_middle)
        upper = self._replace(left=middle, at_left=at_middle)
        return _Brackets(*(np.concatenate(pair) for pair in zip(lower, upper, strict=True)))


def upper_envelope(
    functions: Functions, points: FloatArray, *, tolerance: float, hidden: bool
) -> Envelope:
    """Find the crossings of the largest functions by regula falsi, all at once.

    A cell whose ends have different largest functions contains a crossing.

    Args:
        functions: smooth between the points.
        points: ascending, distinct.
        tolerance: largest loss, for all cells and groups together.
        hidden: whether a function may be the largest within a cell and at neither end. Then each
            cell is probed where the parabola through its ends and its middle says so.
    """
    share = tolerance / len(points)
    heights = functions(points)
    if hidden and len(points) > 1:
        points, heights = _probed(functions, points, heights, share)
    brackets = _changes(points, heights)
    found = [points]
    loss = 0.0
    for level in range(_LEVELS):
        above_left, above_right = brackets.leads()
        losses = np.minimum(above_left, above_right) * (brackets.right - brackets.left) / 2
        open_ = losses > share
        loss += float(losses[~open_].sum())
        if not open_.any():
            break
        brackets = brackets.where(open_)
        ratio = above_left[open_] / (above_left[open_] + above_right[open_])
        # Where functions bend, regula falsi alone moves one end only and creeps.
        if level % _BISECT_EVERY == _BISECT_EVERY - 1:
            ratio = np.full(len(ratio), 0.5)
        middle = brackets.left + (brackets.right - brackets.left) * ratio
        found.append(middle)
        own = functions(middle)[brackets.group, :, np.arange(len(middle))]
        brackets = brackets.split(middle, own)
    else:
        loss += float(losses[open_].sum())
    return Envelope(np.unique(np.concatenate(found)), loss)


def _changes(points: FloatArray, heights: FloatArray) -> _Brackets:
    """The cells whose ends have different largest functions, group by group."""
    largest = heights.argmax(axis=1)
    group, cell = np.nonzero(largest[:, :-1] != largest[:, 1:])
    return _Brackets(
        group,
        points[cell],
        points[cell + 1],
        heights[group, :, cell],
        heights[group, :, cell + 1],
    )


def _probed(
    functions: Functions, points: FloatArray, heights: FloatArray, share: float
) -> tuple[FloatArray, FloatArray]:
    """More points with their heights: the middles of all cells, and where parabolas rise.

    Through three points each function's distance below the one that is largest at the middle is
    a parabola; of those that fall below 0 by more than ``share`` of area, the deepest of a cell
    is probed.
    """
    middles, half = (points[:-1] + points[1:]) / 2, np.diff(points) / 2
    inner = functions(middles)
    best = inner.argmax(axis=1)[:, None, :]
    with np.errstate(invalid="ignore"):  # of functions that are minus infinity everywhere
        left, middle, right = (
            np.take_along_axis(part, best, axis=1) - part
            for part in (heights[:, :, :-1], inner, heights[:, :, 1:])
        )
        slope, bend = (right - left) / 2, (right + left) / 2 - middle
        # middle + slope t + bend t², t from -1 to 1, is least at -slope/(2 bend).
        falls = (np.abs(slope) < 2 * bend) & (slope**2 > 4 * bend * middle)
    group, _, cell = np.nonzero(falls)
    slope, bend, middle = slope[falls], bend[falls], middle[falls]
    depth = slope**2 / (4 * bend) - middle
    deepest = _first_of_each(group * len(middles) + cell, -depth)
    chosen = deepest[depth[deepest] * half[cell[deepest]] > share]
    place = -slope[chosen] / (2 * bend[chosen])
    probes = np.unique(middles[cell[chosen]] + place * half[cell[chosen]])
    every = np.concatenate([points, middles, probes])
    order = np.argsort(every)
    grown = np.concatenate([heights, inner, functions(probes)], axis=2)
    return every[order], grown[:, :, order]


def _first_of_each(key: IntegerArray, rank: FloatArray) -> IntegerArray:
    """The index of the entry of least rank for each key."""
    order = np.lexsort((rank, key))
    _, first = np.unique(key[order], return_index=True)
    return np.asarray(order[first], dtype=np.int64)


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
        allow_abstain: as in :func:`~ragaudit.lab.risk.mechanisms.finite_advantage`.

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
