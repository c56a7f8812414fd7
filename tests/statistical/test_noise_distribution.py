"""The reference sampler against exact probabilities (docs/spec/03-noise.md).

Seeds are fixed, so a passing suite passes always. Each test draws under a key derived from
its own name and rejects at ALPHA = 1e-6; before the keys were fixed, the chance that a right
sampler fails any of them was below (number of tests) · 1e-6 < 1e-4.
"""

from fractions import Fraction
from hashlib import sha256

import numpy as np
import numpy.typing as npt
import pytest
from for_each import for_each
from ragaudit.circuits.noise import NoiseParameters, sample_noise, table
from scipy import stats

ALPHA = 1e-6
UNITS = {
    "16": Fraction(16),
    "0.25": Fraction("0.25") * 16129,
    "2": Fraction(2) * 16129,
    "10": Fraction(10) * 16129,
    "50": Fraction(50) * 16129,
    "2^40": Fraction(2**40),
}
COUNT = 200_000


@pytest.fixture(scope="module", params=UNITS)
def drawn(request: pytest.FixtureRequest) -> tuple[NoiseParameters, npt.NDArray[np.int64]]:
    parameters = NoiseParameters.for_units(UNITS[request.param], request.param)
    key = sha256(b"distribution test " + request.param.encode()).digest()
    return parameters, sample_noise(table(parameters), key, COUNT)


def cell_probabilities(parameters: NoiseParameters, edges: npt.NDArray[np.int64]) -> list[float]:
    """P[edges[i-1] < z <= edges[i]] of the discrete Gaussian, with open ends.

    Up to sigma_units = 10^6 by summing exp(-v²/2S²) over all integers within 13 S; above, by
    the normal law at half integers, whose error is below 1/S² (Euler-Maclaurin) < 1e-12.
    """
    s = float(parameters.sigma_units)
    if s > 1e6:
        cdf = stats.norm.cdf((edges + 0.5) / s)
    else:
        v = np.arange(-int(13 * s), int(13 * s) + 1)
        p = np.exp(-(v.astype(np.float64) ** 2) / (2 * s * s))
        cumulative = np.cumsum(p) / np.sum(p)
        cdf = cumulative[edges - v[0]]
    return list(np.diff(np.concatenate(([0.0], cdf, [1.0]))))


def test_chi_square_over_the_line(
    drawn: tuple[NoiseParameters, npt.NDArray[np.int64]],
) -> None:
    """100 cells of nearly equal probability (single integers where S is small)."""
    parameters, z = drawn
    s = float(parameters.sigma_units)
    edges = np.unique(np.floor(stats.norm.ppf(np.arange(1, 100) / 100) * s).astype(np.int64))
    expected = COUNT * np.array(cell_probabilities(parameters, edges))
    observed = np.bincount(np.searchsorted(edges, z, side="left"), minlength=len(expected))
    assert np.min(expected) > 20
    assert stats.chisquare(observed, expected).pvalue > ALPHA


def test_every_value_of_the_smallest_sigma() -> None:
    """Chi-square over single integers within 4 standard deviations, tails pooled."""
    parameters = NoiseParameters.for_units(Fraction(16), "16")
    z = sample_noise(table(parameters), sha256(b"single integers").digest(), COUNT)
    edges = np.arange(-64, 65)
    expected = COUNT * np.array(cell_probabilities(parameters, edges))
    observed = np.bincount(np.searchsorted(edges, z, side="left"), minlength=len(expected))
    assert stats.chisquare(observed, expected).pvalue > ALPHA


def test_kolmogorov_smirnov(drawn: tuple[NoiseParameters, npt.NDArray[np.int64]]) -> None:
    """Smoothed by an independent uniform on (-1/2, 1/2).

    The smoothed law is within total variation 0.0202/S² < 1e-4 of the normal law, far below
    the critical distance sqrt(ln(2/ALPHA)/(2 COUNT)) = 0.006.
    """
    parameters, z = drawn
    s = float(parameters.sigma_units)
    smoothing = np.random.default_rng(5).uniform(-0.5, 0.5, COUNT)
    assert stats.kstest((z + smoothing) / s, "norm").pvalue > ALPHA


@for_each("modulus", [2, 3, "K", "K²"])
def test_residues_are_uniform(
    drawn: tuple[NoiseParameters, npt.NDArray[np.int64]], modulus: int | str
) -> None:
    """Convolutions with weight K fail here first if K is too large for the base parameter.

    The discrete Gaussian's residues are uniform to within exp(-2 pi² S²/m²) < 1e-30 for the
    moduli used (m <= S/2).
    """
    parameters, z = drawn
    factor = parameters.factor if parameters.levels else 5
    m = {"K": factor, "K²": min(factor**2, 2000)}.get(str(modulus), modulus)
    assert isinstance(m, int)
    if 2 * m > parameters.sigma_units:
        m = 7
    observed = np.bincount(z % m, minlength=m)
    assert stats.chisquare(observed).pvalue > ALPHA


def test_variance_and_sign(drawn: tuple[NoiseParameters, npt.NDArray[np.int64]]) -> None:
    parameters, z = drawn
    scaled = z / float(parameters.sigma_units)
    # sum z²/S² is chi-square with COUNT degrees of freedom up to O(1/S²).
    low, high = stats.chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], COUNT)
    assert low < np.sum(scaled**2) < high
    bound = stats.norm.isf(ALPHA / 2)
    assert abs(np.sum(np.sign(z))) < bound * np.sqrt(COUNT)


@for_each("lag", [1, 2, 3, 4, 8])
def test_neighbours_are_uncorrelated(
    drawn: tuple[NoiseParameters, npt.NDArray[np.int64]], lag: int
) -> None:
    """Correlation of z and of |z| at a lag, each N(0, 1/n) under independence."""
    _, z = drawn
    bound = stats.norm.isf(ALPHA / 2) / np.sqrt(COUNT - lag)
    for values in (z.astype(np.float64), np.abs(z).astype(np.float64)):
        assert abs(np.corrcoef(values[:-lag], values[lag:])[0, 1]) < bound


def test_keys_give_independent_noise() -> None:
    parameters = NoiseParameters.for_sigma("2")
    a, b = (sample_noise(table(parameters), sha256(name).digest(), 20_000) for name in (b"a", b"b"))
    bound = stats.norm.isf(ALPHA / 2) / np.sqrt(20_000)
    assert abs(np.corrcoef(a, b)[0, 1]) < bound


def test_a_wrong_sampler_would_be_noticed() -> None:
    """Power: the same chi-square rejects a variance that is off by two percent."""
    parameters = NoiseParameters.for_units(Fraction(2 * 16129), "2")
    wrong = NoiseParameters.for_units(Fraction(2 * 16129) * Fraction(102, 100), "2.04")
    z = sample_noise(table(wrong), sha256(b"power").digest(), COUNT)
    s = float(parameters.sigma_units)
    edges = np.unique(np.floor(stats.norm.ppf(np.arange(1, 100) / 100) * s).astype(np.int64))
    expected = COUNT * np.array(cell_probabilities(parameters, edges))
    observed = np.bincount(np.searchsorted(edges, z, side="left"), minlength=len(expected))
    assert stats.chisquare(observed, expected).pvalue < ALPHA
