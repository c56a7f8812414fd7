"""Theorem 4.3 for continuous records on an interval, by deterministic quadrature.

Loss ``|z' - z|``, no auxiliary knowledge. For one output theta a guess x gains ``integral over
[x - eta, x + eta] of w(theta, z) d pi(z)``. Records are integrated over cells by the prior's
distribution function (docs/notes/disclosure-risk.md §5, claim 5.1).

A cell in which the output lies is integrated in two, since Laplace's and the exponential
mechanism's densities have a kink there. Guesses lie on a grid that crowds at both ends and on both
sides of the corners ``low + eta`` and ``high - eta``. If a cell holds more of the prior than the
density resolves (mass times width in scales above 1e-3), or the prior is not known to be smooth,
guesses also lie at the prior's quantiles and eta below and above them. For each output the quartic
through the best five says where between them the gain peaks. If the density has a kink and eta is
below 2.5 of the grid's widest steps, five guesses around the output itself see the peak there. The
outer integral halves panels of eight Gauss-Lobatto points until they agree with a rule on six of
them; the rule includes the ends of a panel: with Gauss-Legendre points a kink between the end and
the first point is seen by no level.

Balboa et al., Appendix A.2, nest Monte Carlo procedures instead. That, with its concentration bound
corrected, is a cross-check here (``monte_carlo_advantage``): slower and far less exact, but it
shares nothing with the quadrature, no cells, no distribution function.
"""

import math
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.lab.risk.mechanisms import AdditiveNoise, ExponentialMechanism
from ragaudit.lab.risk.one_dimensional import NumericalAdvantage, integrate
from ragaudit.lab.risk.threat import ContinuousPrior
from ragaudit.lab.risk.validation import (
    FloatArray,
    IntegerArray,
    check_integer,
    check_non_negative,
    check_positive,
    check_probability,
    typed,
)

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


SMALLEST_SCALE: Final = 1 / 100
"""Least scale of the mechanism, as a share of the interval, that the grid resolves."""

# At least so many, and so many per scale of the mechanism.
_GUESSES: Final = 160
_GUESSES_PER_SCALE: Final = 12
_PANELS: Final = 8
_LEVELS: Final = 6
_TOLERANCE: Final = 2e-6


class ExactGuessWarning(UserWarning):
    """Exact guesses of a continuous record never succeed; near misses are not counted."""


@typed
def continuous_advantage(
    prior: ContinuousPrior, mechanism: ExponentialMechanism | AdditiveNoise, eta: float
) -> NumericalAdvantage:
    """Return the optimal advantage against a record of the interval, to about 1e-6.

    Args:
        prior: of the records.
        mechanism: the exponential mechanism on the same interval, or additive noise; its
            outputs are taken over the interval, or over the whole line.
        eta: largest distance that counts as success, in the records' unit. 0 gives 0, with an
            ExactGuessWarning.

    Returns:
        The value, and as error that of the outer quadrature plus a third of the difference to
        half as many guesses.

    Raises:
        InvalidArgumentError: negative eta, another interval than the prior's, or a mechanism
            whose scale is below ``SMALLEST_SCALE`` of the interval: use Theorem 4.2 there.
    """
    reach = check_non_negative(eta, "eta")
    span = prior.high - prior.low
    if mechanism.scale < SMALLEST_SCALE * span:
        raise InvalidArgumentError(
            f"scale {mechanism.scale:g} is too small for the grid",
            where="mechanism",
            expected=f"at least {SMALLEST_SCALE * span:g}; otherwise a bound",
        )
    breaks = _output_breaks(prior, mechanism)
    if reach == 0:
        warnings.warn(
            "exact guesses of a continuous record have advantage 0, whatever is released",
            ExactGuessWarning,
            stacklevel=2,
        )
        return NumericalAdvantage(0.0, 0.0)
    if reach >= span:
        return NumericalAdvantage(0.0, 0.0)  # every guess succeeds, seen or unseen
    guesses = max(_GUESSES, math.ceil(_GUESSES_PER_SCALE * span / mechanism.scale))
    fine = _grid(prior, mechanism, reach, guesses)
    coarse = _grid(prior, mechanism, reach, guesses // 2)
    found = integrate(fine.best_gains, breaks, tolerance=_TOLERANCE, levels=_LEVELS)
    check = integrate(coarse.best_gains, breaks, tolerance=_TOLERANCE, levels=0)
    return NumericalAdvantage(found.value, found.error + abs(found.unrefined - check.unrefined) / 3)


def _grid(
    prior: ContinuousPrior,
    mechanism: ExponentialMechanism | AdditiveNoise,
    eta: float,
    guesses: int,
) -> GuessGrid:
    if isinstance(mechanism, ExponentialMechanism):
        return GuessGrid(prior, mechanism.density, mechanism.scale, eta, guesses, has_kink=True)
    return GuessGrid(
        prior,
        lambda theta, record: mechanism.density(theta - record),
        mechanism.scale,
        eta,
        guesses,
        has_kink=mechanism.has_kink,
    )


def _output_breaks(
    prior: ContinuousPrior, mechanism: ExponentialMechanism | AdditiveNoise
) -> FloatArray:
    """Break points of the outer integral: a scale apart inside, ever farther apart outside."""
    panels = max(_PANELS, math.ceil((prior.high - prior.low) / mechanism.scale))
    inside = np.linspace(prior.low, prior.high, panels + 1)
    if isinstance(mechanism, ExponentialMechanism):
        if (mechanism.low, mechanism.high) != (prior.low, prior.high):
            raise InvalidArgumentError(
                "another interval than the prior's",
                where="mechanism",
                expected=f"[{prior.low:g}, {prior.high:g}]",
            )
        return inside
    tail = mechanism.reach * 2.0 ** np.arange(-5, 1)
    return np.concatenate([prior.low - tail[::-1], inside, prior.high + tail])


@typed
def monte_carlo_advantage(
    draw: Callable[[int], FloatArray],
    mechanism: ExponentialMechanism,
    eta: float,
    *,
    outer: int,
    inner: int,
    guesses: int,
    generator: np.random.Generator,
) -> float:
    """Estimate the optimal advantage of :func:`continuous_advantage` by sampling.

    For each of ``outer`` outputs, uniform on the mechanism's interval, the mixture and the
    gains are means over ``inner`` fresh records each. Only the exponential mechanism: uniform
    outputs would miss the tails of noise on the whole line.

    Args:
        draw: returns that many independent records of the prior, within the interval.
        eta: largest distance that counts as success, >= 0.
        outer, inner, guesses: >= 2; the guesses are equally spaced over the interval.
        generator: the only other source of randomness.
    """
    reach = check_non_negative(eta, "eta")
    for value, name in ((outer, "outer"), (inner, "inner"), (guesses, "guesses")):
        check_integer(value, name, least=2)
    low, high = mechanism.low, mechanism.high
    centers = np.linspace(low, high, guesses)
    total = 0.0
    for theta in generator.uniform(low, high, outer):
        records = _drawn(draw, inner, mechanism)
        # Records of its own: with those of the gains both means would err together.
        mixture = float(mechanism.density(theta, _drawn(draw, inner, mechanism)).mean())
        records.sort()
        gains = np.concatenate([[0.0], np.cumsum(mechanism.density(theta, records) - mixture)])
        first = np.searchsorted(records, centers - reach, side="left")
        last = np.searchsorted(records, centers + reach, side="right")
        total += float((gains[last] - gains[first]).max()) / inner
    return (high - low) * total / outer


def outer_deviation(
    deviation: float, *, samples: int, largest_density: float, length: float = 1.0
) -> float:
    """Bound P[|estimate - value| > deviation] when only the outer integral is sampled.

    ``2 exp(-N t^2/(2 M^2 L^2))``, at most 1: Hoeffding for summands in [-M, M].

    Args:
        deviation: t >= 0.
        samples: N >= 1.
        largest_density: M > 0.
        length: L > 0, of the interval of outputs.
    """
    t = check_non_negative(deviation, "deviation")
    n = check_integer(samples, "samples", least=1)
    m = check_positive(largest_density, "largest_density")
    return min(1.0, 2 * _tail(n, t / check_positive(length, "length"), m))


def nested_deviation(
    deviation: float,
    *,
    outer: int,
    inner: int,
    guesses: int,
    largest_density: float,
    largest_ball: float,
    length: float = 1.0,
) -> float:
    """Bound P[|estimate - value| >= deviation] of :func:`monte_carlo_advantage`.

    The value is that for the same grid of guesses. A third of the deviation each goes to the
    outer mean, the gains and the mixture; 1 where a third is within the bias of its mean.

    Args:
        deviation: t >= 0.
        outer, inner, guesses: as in the estimate.
        largest_density: M > 0.
        largest_ball: ``kappa_plus`` in (0, 1].
        length: > 0, of the interval of outputs.
    """
    third = check_non_negative(deviation, "deviation") / check_positive(length, "length") / 3
    n = check_integer(outer, "outer", least=1)
    m = check_positive(largest_density, "largest_density")
    per_record = m / math.sqrt(check_integer(inner, "inner", least=1))
    ball = check_positive(check_probability(largest_ball, "largest_ball"), "largest_ball")
    candidates = check_integer(guesses, "guesses", least=1)
    gains = third - per_record * math.sqrt(2 * math.log(2 * candidates))
    mixture = third / ball - per_record / 2
    if min(gains, mixture) <= 0:
        return 1.0
    return min(1.0, 2 * _tail(n, third, m) + _tail(n, gains, m) + _tail(n, mixture, m))


def _tail(samples: int, deviation: float, bound: float) -> float:
    """``exp(-n t^2/(2 M^2))``, for the smallest and the largest numbers too."""
    share = deviation / bound
    return math.exp(-samples / 2 * share * share)


def _drawn(
    draw: Callable[[int], FloatArray], count: int, mechanism: ExponentialMechanism
) -> FloatArray:
    records = np.array(draw(count), dtype=np.float64)
    inside = (records >= mechanism.low) & (records <= mechanism.high)
    if records.shape != (count,) or not inside.all():
        raise InvalidArgumentError(
            "not that many records of the interval", where="draw", expected=f"{count} records"
        )
    return records
