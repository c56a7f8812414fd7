"""Bounds on disclosure, one at a time, each kind beside a plain way to the same value.

Known noise on a line: beside rounding the output to 10,000 cells and enumerating them. Continuous
records: beside the paper's nested Monte Carlo. Everything else: beside Theorem 4.3 enumerated for
the same records under randomized response, the smallest channel that has them all.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.bench.harness import Measurement, Notify, measure, silent
from ragaudit.lab.risk.continuous import continuous_advantage, monte_carlo_advantage
from ragaudit.lab.risk.general_bounds import Scenario, best_bound, exact_guess_bound
from ragaudit.lab.risk.mechanisms import (
    AdditiveNoise,
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    finite_advantage,
    grr_advantage,
    grr_channel,
    oue_advantage,
    ss_advantage,
)
from ragaudit.lab.risk.one_dimensional import line_advantage
from ragaudit.lab.risk.threat import ContinuousPrior, FinitePrior, SuccessSets, ThreatModel
from ragaudit.lab.risk.validation import FloatArray
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp

_CELLS: Final = 10_000
_SCALE: Final = 0.1
_EPSILON: Final = 2.0
_MANY: Final = 100_000
_SEED: Final = 1

Bench = tuple[str, Callable[[], object]]


@dataclass(frozen=True)
class Domain:
    """m records, equally spaced on [0, 1], more probable the lower their number (Zipf)."""

    domain: int

    @property
    def positions(self) -> FloatArray:
        """Shape (domain,)."""
        return np.linspace(0, 1, self.domain)

    @property
    def prior(self) -> FinitePrior:
        """Probabilities proportional to ``1/rank``."""
        return _zipf(self.domain)


def bounds(
    domain: Domain, runs: int, allowance: float, notify: Notify = silent
) -> list[Measurement]:
    """Time one bound of every kind, each group beside a plain way to the same value.

    Args:
        domain: the records.
        runs: under the clock, at most.
        allowance: seconds after which no further run of a bound is begun.
        notify: told which bound is timed.
    """

    def timed(bench: Bench) -> Measurement:
        notify(bench[0], 0, 0)
        return measure(*bench, runs, allowance=allowance)

    found = []
    for group in (_of_given_records(domain), _on_a_line(domain), _continuous()):
        baseline = timed(next(group))
        found += [baseline, *(timed(bench).beside(baseline) for bench in group)]
    return found


def _of_given_records(domain: Domain) -> Iterator[Bench]:
    threat = ThreatModel.reconstruction(domain.prior)
    scenario = Scenario.of_threat(threat)
    many = Scenario.of_threat(ThreatModel.reconstruction(_zipf(_MANY)))
    pure = ApproximateDp.of(_EPSILON, 0, NeighboringRelation.REPLACE)
    approximate = ApproximateDp.of(_EPSILON, 1e-6, NeighboringRelation.REPLACE)
    gaussian = GaussianDp.of(1, NeighboringRelation.REPLACE)
    omega = max(1, domain.domain // 8)
    yield (
        "enumerate randomized response",
        lambda: finite_advantage(grr_channel(domain.domain, _EPSILON), threat),
    )
    yield "randomized response, closed form", lambda: grr_advantage(threat, _EPSILON)
    yield "unary encoding, closed form", lambda: oue_advantage(threat, _EPSILON)
    yield "subset selection, closed form", lambda: ss_advantage(threat, _EPSILON, omega)
    yield "Theorem 5.5", lambda: exact_guess_bound(scenario, approximate)
    yield f"Theorem 5.5, m = {_MANY:,}", lambda: exact_guess_bound(many, approximate)
    yield (
        "best bound of three guarantees",
        lambda: best_bound(scenario, [pure, approximate, gaussian]),
    )


def _on_a_line(domain: Domain) -> Iterator[Bench]:
    exact = ThreatModel.reconstruction(domain.prior)
    near = ThreatModel.reconstruction(
        domain.prior, SuccessSets.on_line(domain.positions, 2.5 / domain.domain)
    )
    member = ThreatModel.membership(domain.prior)

    def advantage(noise: AdditiveNoise, threat: ThreatModel) -> Callable[[], object]:
        return lambda: line_advantage(domain.positions, noise, threat)

    laplace, gaussian = LaplaceNoise(_SCALE), GaussianNoise(_SCALE)
    yield f"round to {_CELLS:,} cells, enumerate", lambda: _rounded(domain, laplace, exact)
    yield "Laplace noise, exact guesses", advantage(laplace, exact)
    yield "Laplace noise, near misses count", advantage(laplace, near)
    yield "Laplace noise, membership", advantage(laplace, member)
    yield "Gaussian noise, exact guesses", advantage(gaussian, exact)
    yield "Gaussian noise, near misses count", advantage(gaussian, near)
    yield "Gaussian noise, membership", advantage(gaussian, member)


def _continuous() -> Iterator[Bench]:
    exponential = ExponentialMechanism(5.0)
    uniform, beta = ContinuousPrior.uniform(0, 1), ContinuousPrior.beta(0.1, 0.1)
    generator = np.random.default_rng(_SEED)
    yield (
        "nested Monte Carlo, 1,000 x 1,000",
        lambda: monte_carlo_advantage(
            generator.random, exponential, 0.1, outer=1000, inner=1000, guesses=41,
            generator=generator,
        ),
    )  # fmt: skip
    for name, prior in (("uniform", uniform), ("Beta(.1, .1)", beta)):
        yield f"exponential, {name}", _of_interval(prior, exponential)
        yield f"Laplace, {name}", _of_interval(prior, LaplaceNoise(_SCALE))
        yield f"Gaussian, {name}", _of_interval(prior, GaussianNoise(_SCALE))


def _of_interval(
    prior: ContinuousPrior, mechanism: ExponentialMechanism | AdditiveNoise
) -> Callable[[], object]:
    return lambda: continuous_advantage(prior, mechanism, 0.1)


def _rounded(domain: Domain, noise: AdditiveNoise, threat: ThreatModel) -> float:
    reach = 20 * noise.scale
    edges = np.concatenate([[-np.inf], np.linspace(-reach, 1 + reach, _CELLS - 1), [np.inf]])
    channel = np.diff(noise.cdf(edges - domain.positions[:, None]), axis=1)
    return finite_advantage(channel / channel.sum(axis=1, keepdims=True), threat)


def _zipf(records: int) -> FinitePrior:
    weights = 1 / np.arange(1, records + 1)
    return FinitePrior(weights / weights.sum())
