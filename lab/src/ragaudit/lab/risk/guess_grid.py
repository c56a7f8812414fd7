"""The best guess about a continuous record, output by output: inner part of Theorem 4.3.

For one output theta a guess x gains ``integral over [x - eta, x + eta] of w(theta, z) d pi(z)``.
Records are integrated over cells by the prior's distribution function, guesses are searched on a
grid and refined between its points (docs/notes/disclosure-risk.md, claim 5.1).
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from ragaudit.lab.risk.priors import ContinuousPrior
from ragaudit.lab.risk.validation import FloatArray, IntegerArray

__all__ = ["Density", "GuessGrid"]

Density = Callable[[FloatArray, FloatArray], FloatArray]
"""``p(theta | z)`` from outputs and records, broadcast over both."""

_LEAST: Final = 12
"""Fewest steps between two corners of the guesses."""
_CONCENTRATED: Final = 1e-3
"""Largest product of a cell's mass and its width, in scales of the density, that is resolved."""
_TAIL: Final = 1e-14
"""Probability beyond the outermost quantiles."""
# Down to neighboring floats, but for quantiles next to 0.
_BISECTIONS: Final = 60
_STENCIL: Final = np.arange(-2, 3)
_QUARTIC: Final = np.linalg.inv(np.vander(_STENCIL.astype(np.float64), increasing=True))
_NEWTON_STEPS: Final = 4
_CELLS: Final = 2**18
"""Most densities held at a time: what fits a core's cache."""


class _Cells(NamedTuple):
    """Cells of records, each as two equally probable points.

    Attributes:
        masses: prior probability of each cell.
        left, right: the points; with the cell's mean and variance, as far as the distribution
            function at its ends and middle tells them.
    """

    masses: FloatArray
    left: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, prior: ContinuousPrior, low: FloatArray, high: FloatArray) -> "_Cells":
        """Return the cells [low_i, high_i]; moments by parts, integral of F by Simpson's rule."""
        places = np.concatenate([low, (low + high) / 2, high])
        first, middle, last = np.asarray(prior.cdf(places)).reshape(3, len(low))
        masses, width = last - first, high - low
        below = np.full(len(low), 0.5)
        np.divide(middle - first, masses, out=below, where=masses > 0)
        mean = width * (5 - 4 * below) / 6
        variance = width**2 * (2 - 2 * below) / 3 - mean**2
        spread = np.sqrt(np.maximum(variance, 0))
        return cls(
            masses, low + np.maximum(mean - spread, 0), low + np.minimum(mean + spread, width)
        )

    def weigh(self, density: Density, theta: FloatArray) -> FloatArray:
        """Return ``integral of p(theta|z) d pi(z)`` over the cells; broadcast over both."""
        columns = [part.reshape(-1, *[1] * (theta.ndim - 1)) for part in self]
        masses, left, right = columns
        total = density(theta, left)
        total += density(theta, right)
        total *= masses / 2
        return total


class GuessGrid:
    """Guesses on [low, high], and cells that every success set is a whole number of.

    Guesses crowd at both ends and on both sides of the corners ``low + eta`` and ``high - eta``:
    there priors such as Beta(0.1, 0.1) have their mass, and gains their kinks. If a prior has more
    of its mass in a cell than the cells resolve, or is not known to be smooth, guesses also lie at
    its quantiles and eta below and above them, where success sets begin and end. Where the density
    has a kink at the output, gains peak within eta of it, ever more sharply as eta falls; if the
    grid is too coarse to see it, five more guesses lie around each output, ``eta/2`` apart.

    Args:
        prior: of the records.
        density: of the outputs.
        scale: length over which the density changes, in the records' unit.
        eta: > 0, largest distance that counts as success, below the interval's length.
        guesses: about how many.
        has_kink: whether the density has a kink where output and record coincide.
    """

    def __init__(
        self,
        prior: ContinuousPrior,
        density: Density,
        scale: float,
        eta: float,
        guesses: int,
        *,
        has_kink: bool,
    ) -> None:
        self._prior, self._density, self._eta = prior, density, eta
        self._has_kink = has_kink
        families = _crowded(prior, eta, guesses)
        self._crowded = np.concatenate(families)
        self._is_sharp = has_kink and bool(2 * eta < 5 * np.diff(self._crowded).max())
        self._lay_out(families)
        width = np.minimum(np.diff(self._edges) / scale, 1)
        concentrated = bool((width * self._cells.masses).max() > _CONCENTRATED)
        if concentrated or not prior.is_smooth:
            self._lay_out([*families, *_at_quantiles(prior, eta, guesses // 2)])

    def _lay_out(self, families: list[FloatArray]) -> None:
        """Take these guesses, families between whose members gains are smooth."""
        prior, eta = self._prior, self._eta
        self._centers = centers = np.concatenate(families)
        sizes = np.array([len(family) for family in families])
        ends = np.cumsum(sizes)
        self._before, self._after = np.repeat(ends - sizes, sizes), np.repeat(ends - 1, sizes)
        first = np.maximum(centers - eta, prior.low)
        last = np.minimum(centers + eta, prior.high)
        self._edges = np.unique(np.concatenate([centers, first, last]))
        self._cells = _Cells.of(prior, self._edges[:-1], self._edges[1:])
        self._first = np.searchsorted(self._edges, first)
        self._last = np.searchsorted(self._edges, last)
        masses = np.concatenate([[0.0], np.cumsum(self._cells.masses)])
        self._balls = masses[self._last] - masses[self._first]

    def best_gains(self, theta: FloatArray) -> FloatArray:
        """Return the best guess's gain for each output.

        Args:
            theta: shape (outputs,), in the records' unit.

        Returns:
            Shape (outputs,).
        """
        batch = max(1, _CELLS // len(self._edges))
        parts = np.split(theta, range(batch, len(theta), batch))
        return np.concatenate([self._best_gains(part) for part in parts])

    def _best_gains(self, theta: FloatArray) -> FloatArray:
        outputs = self._released(theta)
        gains = outputs.sums[self._last]
        gains -= outputs.sums[self._first]
        gains -= self._balls[:, None] * outputs.sums[-1]
        best = gains.argmax(axis=0)
        largest: FloatArray = gains[best, np.arange(len(theta))]
        guesses = self._between(gains, best)[None, :]
        if self._is_sharp:
            guesses = np.concatenate([guesses, self._near(outputs)])
        refined: FloatArray = self._gains_at(guesses, outputs).max(axis=0)
        return np.maximum(largest, refined)

    def _released(self, theta: FloatArray) -> "_Outputs":
        """Integrals up to each edge; the cell around an output is integrated in two."""
        weights = self._cells.weigh(self._density, theta[None, :])
        cell, below = np.full(len(theta), -1), np.zeros(len(theta))
        if self._has_kink:
            inside = np.flatnonzero((theta > self._prior.low) & (theta < self._prior.high))
            output = theta[inside]
            found = np.searchsorted(self._edges, output, side="right") - 1
            lower = _Cells.of(self._prior, self._edges[found], output)
            upper = _Cells.of(self._prior, output, self._edges[found + 1])
            cell[inside], below[inside] = found, lower.weigh(self._density, output)
            weights[found, inside] = below[inside] + upper.weigh(self._density, output)
        sums = np.zeros((len(self._edges), len(theta)))
        np.cumsum(weights, axis=0, out=sums[1:])
        return _Outputs(theta, sums, cell, below)

    def _between(self, gains: FloatArray, best: IntegerArray) -> FloatArray:
        """Where the quartic through the best five guesses of a family peaks, for each output."""
        before, after = self._before[best], self._after[best]
        center = np.clip(best, before + 2, np.maximum(after - 2, before + 2))
        rows = np.minimum(center + _STENCIL[:, None], after)
        at = _peak(gains[rows, np.arange(gains.shape[1])], best - center)
        return _quartic_at(self._centers[rows], at)

    def _near(self, outputs: "_Outputs") -> FloatArray:
        """Five guesses within eta of each output, and where the quartic through them peaks."""
        guesses = outputs.theta + self._eta / 2 * _STENCIL[:, None]
        gains = self._gains_at(guesses, outputs)
        peak = outputs.theta + self._eta / 2 * _peak(gains, gains.argmax(axis=0) - 2)
        return np.concatenate([guesses, peak[None, :]])

    def _gains_at(self, guesses: FloatArray, outputs: "_Outputs") -> FloatArray:
        """What any guesses gain; shape (n, outputs) to the same. Guesses that are no records are
        moved to the nearest that is."""
        prior, eta = self._prior, self._eta
        centers = np.clip(guesses, prior.low, prior.high)
        ends = np.stack(
            [np.maximum(centers - eta, prior.low), np.minimum(centers + eta, prior.high)]
        )
        below, above = self._up_to(ends, outputs)
        masses = np.asarray(prior.cdf(ends.ravel())).reshape(ends.shape)
        return np.asarray(above - below - (masses[1] - masses[0]) * outputs.sums[-1])

    def _up_to(self, places: FloatArray, outputs: "_Outputs") -> FloatArray:
        """``integral up to the place of p(theta|z) d pi(z)``; places of shape (..., outputs)."""
        theta, sums, cell, lower = outputs
        before = np.searchsorted(self._edges, places, side="right") - 1
        before = np.clip(before, 0, len(self._edges) - 2)
        beyond = (before == cell) & (places > theta)
        start = np.where(beyond, theta, self._edges[before])
        whole = sums[before, np.arange(len(theta))] + np.where(beyond, lower, 0.0)
        rest = _Cells.of(self._prior, start.ravel(), places.ravel())
        output = np.broadcast_to(theta, places.shape).ravel()
        return np.asarray(whole + rest.weigh(self._density, output).reshape(places.shape))


class _Outputs(NamedTuple):
    """Outputs with what is known of them.

    Attributes:
        theta: shape (n,).
        sums: shape (edges, n), ``integral up to the edge of p(theta|z) d pi(z)``.
        cell: shape (n,), the cell in which the output lies and has a kink, or -1.
        below: shape (n,), the integral over the part of that cell below the output.
    """

    theta: FloatArray
    sums: FloatArray
    cell: IntegerArray
    below: FloatArray


def _peak(values: FloatArray, start: IntegerArray) -> FloatArray:
    """Where the quartic through five values peaks, within a step of the largest of them.

    Args:
        values: shape (5, n), at -2 .. 2.
        start: shape (n,), where the largest of the five is.
    """
    _, b, c, d, e = _QUARTIC @ values
    low, high = np.maximum(start - 1.0, -2.0), np.minimum(start + 1.0, 2.0)
    at = start.astype(np.float64)
    for _ in range(_NEWTON_STEPS):
        slope = b + at * (2 * c + at * (3 * d + at * 4 * e))
        bend = 2 * c + at * (6 * d + at * 12 * e)
        step = np.zeros_like(at)
        np.divide(-slope, bend, out=step, where=bend < 0)
        at = np.clip(at + step, low, high)
    return at


def _quartic_at(values: FloatArray, at: FloatArray) -> FloatArray:
    """The quartic through five values, shape (5, n), at one place each."""
    a, b, c, d, e = _QUARTIC @ values
    return np.asarray(a + at * (b + at * (c + at * (d + at * e))))


def _crowded(prior: ContinuousPrior, eta: float, guesses: int) -> list[FloatArray]:
    """Guesses between each two corners, both included."""
    low, high = prior.low, prior.high
    corners = np.unique(np.clip([low, low + eta, high - eta, high], low, high))
    families = []
    for start, end in pairwise(corners):
        count = max(_LEAST, math.ceil(guesses * (end - start) / (high - low)))
        inner = start + (end - start) * _smooth_step(np.arange(count) / count)
        families.append(np.append(inner, end))
    return families


def _at_quantiles(prior: ContinuousPrior, eta: float, count: int) -> list[FloatArray]:
    """Guesses at quantiles of the prior, and eta below and above them, as far as they are records.

    Quantiles crowd at levels 0 and 1: tails are narrow in probability, not in length.
    """
    levels = np.clip(_smooth_step(np.arange(count + 1) / count), _TAIL, 1 - _TAIL)
    low, high = np.full(len(levels), prior.low), np.full(len(levels), prior.high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = np.asarray(prior.cdf(middle)) < levels
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    shifted = [high, high - eta, high + eta]
    inside = [each[(each >= prior.low) & (each <= prior.high)] for each in shifted]
    return [each for each in inside if len(each)]


def _smooth_step(u: FloatArray) -> FloatArray:
    """A map of [0, 1] onto itself with three vanishing derivatives at both ends."""
    return np.asarray(u**4 * (35 - 84 * u + 70 * u**2 - 20 * u**3))
