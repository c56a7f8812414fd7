"""The best guess about a continuous record, output by output: inner part of Theorem 4.3.

For one output theta a guess x gains ``integral over [x - eta, x + eta] of w(theta, z) d pi(z)``.
Records are integrated over cells by the prior's distribution function, guesses are searched on a
grid and refined between its points (docs/notes/disclosure-risk.md, claim 5.1).
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from ragaudit.privacy.risk.priors import ContinuousPrior
from ragaudit.privacy.risk.validation import FloatArray, IntegerArray

__all__ = ["Density", "GuessGrid"]

Density = Callable[[FloatArray, FloatArray], FloatArray]
"""``p(theta | z)`` from outputs and records, broadcast over both."""

_LEAST: Final = 12
"""Fewest steps between two corners of the guesses."""
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
        """The cells [low_i, high_i]; moments by parts, ``integral of F`` by Simpson's rule."""
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
    there priors such as Beta(0.1, 0.1) have their mass, and gains their kinks. Where the density
    has a kink at the output, gains peak within eta of it, ever more sharply as eta falls; if the
    grid is too coarse to see it, five more guesses lie around each output, ``eta/2`` apart.

    Args:
        prior: of the records.
        density: of the outputs.
        eta: > 0, largest distance that counts as success, below the interval's length.
        guesses: about how many.
        has_kink: whether the density has a kink where output and record coincide.
    """

    def __init__(
        self,
        prior: ContinuousPrior,
        density: Density,
        eta: float,
        guesses: int,
        *,
        has_kink: bool,
    ) -> None:
        self._prior, self._density, self._eta = prior, density, eta
        centers, self._corner_before, self._corner_after = _crowded(prior, eta, guesses)
        self._centers = centers
        self._has_kink = has_kink
        self._is_sharp = has_kink and bool(2 * eta < 5 * np.diff(centers).max())
        first = np.maximum(centers - eta, prior.low)
        last = np.minimum(centers + eta, prior.high)
        self._edges = np.unique(np.concatenate([centers, first, last]))
        self._cells = _Cells.of(prior, self._edges[:-1], self._edges[1:])
        self._first = np.searchsorted(self._edges, first)
        self._last = np.searchsorted(self._edges, last)
        masses = np.concatenate([[0.0], np.cumsum(self._cells.masses)])
        self._balls = masses[self._last] - masses[self._first]

    def best_gains(self, theta: FloatArray) -> FloatArray:
        """Return the best guess's gain for each output; shape (outputs,) to (outputs,)."""
        batch = max(1, _CELLS // len(self._edges))
        parts = np.split(theta, range(batch, len(theta), batch))
        return np.concatenate([self._best_gains(part) for part in parts])

    def _best_gains(self, theta: FloatArray) -> FloatArray:
        weights = self._cells.weigh(self._density, theta[None, :])
        inside = np.flatnonzero((theta > self._prior.low) & (theta < self._prior.high))
        output = theta[inside]
        cell = np.searchsorted(self._edges, output, side="right") - 1
        if self._has_kink:
            below, above = self._halves(output, cell)
            weights[cell, inside] = below + above
        sums = np.zeros((len(self._edges), len(theta)))
        np.cumsum(weights, axis=0, out=sums[1:])
        best = self._best_on_grid(theta, sums)
        if self._is_sharp:
            near = self._best_near_output(output, cell, sums[:, inside], below)
            best[inside] = np.maximum(best[inside], near)
        return best

    def _halves(self, output: FloatArray, cell: IntegerArray) -> tuple[FloatArray, FloatArray]:
        """The integrals over the cell around each output, below and above it: there is a kink."""
        low, high = self._edges[cell], self._edges[cell + 1]
        halves = _Cells.of(
            self._prior, np.concatenate([low, output]), np.concatenate([output, high])
        )
        both = halves.weigh(self._density, np.concatenate([output, output]))
        return both[: len(output)], both[len(output) :]

    def _best_on_grid(self, theta: FloatArray, sums: FloatArray) -> FloatArray:
        """The largest gain of a guess on the grid or between.

        Args:
            theta: shape (outputs,).
            sums: shape (edges, outputs), ``integral up to the edge of p(theta|z) d pi(z)``.
        """
        gains = sums[self._last]
        gains -= sums[self._first]
        gains -= self._balls[:, None] * sums[-1]
        best = gains.argmax(axis=0)
        largest: FloatArray = gains[best, np.arange(len(theta))]
        before, after = self._smooth_range(theta, best)
        wide = np.flatnonzero(after - before >= 4)
        center = np.clip(best, before + 2, after - 2)[wide]
        values = gains[center + _STENCIL[:, None], wide]
        largest[wide] = _peak(values, best[wide] - center)
        return largest

    def _smooth_range(
        self, theta: FloatArray, guess: IntegerArray
    ) -> tuple[IntegerArray, IntegerArray]:
        """First and last guess around each that no kink parts from it.

        Kinks lie at the corners and at ``theta - eta`` and ``theta + eta``. The latter two are
        mild (the second derivative jumps), unless they are so close that both fit in a stencil.
        """
        before, after = self._corner_before[guess], self._corner_after[guess]
        if not self._is_sharp:
            return before, after
        first = np.searchsorted(self._centers, theta - self._eta, side="left")
        last = np.searchsorted(self._centers, theta + self._eta, side="right") - 1
        before = np.where(guess > last, np.maximum(before, last + 1), before)
        before = np.where((guess >= first) & (guess <= last), np.maximum(before, first), before)
        after = np.where(guess < first, np.minimum(after, first - 1), after)
        after = np.where((guess >= first) & (guess <= last), np.minimum(after, last), after)
        return before, after

    def _best_near_output(
        self, output: FloatArray, cell: IntegerArray, sums: FloatArray, below: FloatArray
    ) -> FloatArray:
        """The largest gain of a guess within eta of the output.

        Args:
            output: shape (n,), within the interval; ``cell`` is where it lies.
            sums: shape (edges, n), as above, for these outputs.
            below: shape (n,), the integral over the part of the cell below the output.
        """
        low, high, eta = self._prior.low, self._prior.high, self._eta
        ends = output + eta / 2 * np.arange(-4, 5)[:, None]
        place = np.clip(ends, low, high)
        before = np.clip(np.searchsorted(self._edges, place, side="right") - 1, 0, len(sums) - 2)
        beyond = (before == cell) & (place > output)
        start = np.where(beyond, output, self._edges[before])
        up_to = sums[before, np.arange(len(output))] + np.where(beyond, below, 0.0)
        rest = _Cells.of(self._prior, start.ravel(), place.ravel())
        up_to += rest.weigh(self._density, np.tile(output, len(place))).reshape(place.shape)
        masses = np.asarray(self._prior.cdf(place.ravel())).reshape(place.shape)
        gains = up_to[4:] - up_to[:-4] - (masses[4:] - masses[:-4]) * sums[-1]
        guesses = ends[2:-2]
        gains[(guesses < low) | (guesses > high)] = -np.inf
        whole = (ends[0] >= low) & (ends[-1] <= high)
        best: FloatArray = gains.max(axis=0)
        best[whole] = _peak(gains[:, whole], gains[:, whole].argmax(axis=0) - 2)
        return best


def _peak(values: FloatArray, start: IntegerArray) -> FloatArray:
    """The largest value of the quartic through five, within a step of the largest of them.

    Args:
        values: shape (5, n), at -2 .. 2.
        start: shape (n,), where the largest of the five is.
    """
    a, b, c, d, e = _QUARTIC @ values
    low, high = np.maximum(start - 1.0, -2.0), np.minimum(start + 1.0, 2.0)
    at = start.astype(np.float64)
    for _ in range(_NEWTON_STEPS):
        slope = b + at * (2 * c + at * (3 * d + at * 4 * e))
        bend = 2 * c + at * (6 * d + at * 12 * e)
        step = np.zeros_like(at)
        np.divide(-slope, bend, out=step, where=bend < 0)
        at = np.clip(at + step, low, high)
    between = a + at * (b + at * (c + at * (d + at * e)))
    return np.asarray(np.maximum(between, values.max(axis=0)), dtype=np.float64)


def _crowded(
    prior: ContinuousPrior, eta: float, guesses: int
) -> tuple[FloatArray, IntegerArray, IntegerArray]:
    """Guesses, and for each the indices of the corners before and after it."""
    low, high = prior.low, prior.high
    corners = np.unique(np.clip([low, low + eta, high - eta, high], low, high))
    shares = np.diff(corners) / (high - low)
    steps = np.maximum(_LEAST, np.ceil(guesses * shares)).astype(np.int64)
    ends = np.cumsum(steps)
    parts = [
        start + (end - start) * _smooth_step(np.arange(count) / count)
        for start, end, count in zip(corners[:-1], corners[1:], steps, strict=True)
    ]
    before = np.append(np.repeat(ends - steps, steps), ends[-1] - steps[-1])
    after = np.append(np.repeat(ends, steps), ends[-1])
    return np.concatenate([*parts, [high]]), before, after


def _smooth_step(u: FloatArray) -> FloatArray:
    """A map of [0, 1] onto itself with three vanishing derivatives at both ends."""
    return np.asarray(u**4 * (35 - 84 * u + 70 * u**2 - 20 * u**3))
