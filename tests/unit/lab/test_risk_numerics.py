"""The evaluators of Theorem 4.3 on a line, against closed forms, finer grids and other orders.

Claims are those of docs/notes/disclosure-risk.md.
"""

import numpy as np
import pytest
from for_each import for_each
from ragaudit.lab.risk import continuous, mechanisms, one_dimensional
from ragaudit.lab.risk.continuous import GuessGrid, continuous_advantage
from ragaudit.lab.risk.mechanisms import (
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    best_gains,
    finite_advantage,
)
from ragaudit.lab.risk.one_dimensional import integrate, line_advantage
from ragaudit.lab.risk.threat import (
    AuxiliaryKnowledge,
    ContinuousPrior,
    FinitePrior,
    SuccessSets,
    ThreatModel,
)


def random_line(rng: np.random.Generator) -> tuple[np.ndarray, ThreatModel]:
    records = int(rng.integers(2, 9))
    positions = np.sort(rng.random(records)) * rng.choice([1.0, 5.0, 20.0])
    prior = FinitePrior(rng.dirichlet(np.full(records, rng.choice([0.3, 1.0, 10.0]))))
    success = [
        SuccessSets.exact(records),
        SuccessSets.on_line(positions, float(rng.random()) * positions[-1]),
        SuccessSets.from_losses(rng.random((records, records)) * (1 - np.eye(records)), 0.4),
    ][rng.integers(3)]
    auxiliary = [
        AuxiliaryKnowledge.none(records),
        AuxiliaryKnowledge.full(records),
        AuxiliaryKnowledge.of_labels(rng.integers(0, 3, records).tolist()),
    ][rng.integers(3)]
    return positions, ThreatModel(prior, success, auxiliary)


@for_each("seed", range(40))
def test_claim_4_1_agrees_with_integrating_the_best_gain(seed: int) -> None:
    """Adaptive quadrature of the maximum itself, kinks cornered by halving; another method."""
    rng = np.random.default_rng(seed)
    positions, threat = random_line(rng)
    noise = LaplaceNoise(1.0) if seed % 2 else GaussianNoise(1.0)
    middles = (positions[1:] + positions[:-1]) / 2
    grid = np.linspace(positions[0] - noise.reach, positions[-1] + noise.reach, 60)
    breaks = np.unique(np.concatenate([grid, positions, middles]))
    integral = integrate(
        lambda theta: best_gains(noise.density(theta - positions[:, None]), threat),
        breaks,
        tolerance=1e-11,
        levels=30,
    )
    found = line_advantage(positions, noise, threat)
    assert found.value == pytest.approx(integral.value, abs=5e-11)
    assert found.error < 2e-12


@for_each("seed", range(20))
def test_order_of_the_records_does_not_matter(seed: int) -> None:
    """Success sets that are runs of records are summed in another way than others."""
    rng = np.random.default_rng(seed)
    positions, threat = random_line(rng)
    order = rng.permutation(threat.records)
    table = threat.success.table
    shuffled = ThreatModel(
        FinitePrior(threat.prior.probabilities[order]),
        threat.success
        if table is None
        else SuccessSets.from_losses((~table[np.ix_(order, order)]).astype(float), 0.5),
        AuxiliaryKnowledge.of_labels(threat.auxiliary.labels[order].tolist()),
    )
    noise = GaussianNoise(2.0)
    value = line_advantage(positions, noise, threat).value
    assert line_advantage(positions[order], noise, shuffled).value == pytest.approx(
        value, abs=1e-11
    )
    channel = rng.dirichlet(np.ones(5), size=threat.records)
    for allow_abstain in (False, True):
        assert finite_advantage(
            channel[order], shuffled, allow_abstain=allow_abstain
        ) == pytest.approx(
            finite_advantage(channel, threat, allow_abstain=allow_abstain), abs=1e-14
        )


def test_claim_4_1_the_error_is_above_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without looking for crossings the value falls, by less than the error says."""
    positions = np.linspace(0, 1, 12)
    prior = FinitePrior(np.random.default_rng(8).dirichlet(np.ones(12)))
    threat = ThreatModel.reconstruction(prior, SuccessSets.on_line(positions, 0.2))
    for noise in (LaplaceNoise(0.1), GaussianNoise(0.1)):
        exact = line_advantage(positions, noise, threat)
        with monkeypatch.context() as patch:
            patch.setattr(one_dimensional, "_TOLERANCE", 1.0)
            rough = line_advantage(positions, noise, threat)
        lost = exact.value - rough.value
        assert lost > 1e-6 > 1e-12 > exact.error
        assert lost <= rough.error <= 10 * lost


def test_claim_4_1a_gaussian_noise_with_any_loss_table() -> None:
    """Guesses that are the best on less than a standard deviation; against 20,000 cells.

    With these last four seeds the best guess at both ends of a cell is not always the best within:
    without probing, 4e-4 to 9e-4 would be lost.
    """
    for seed in (*range(20), 786, 2274, 2601, 2726):
        rng = np.random.default_rng(seed)
        records = int(rng.integers(4, 12))
        positions = np.sort(rng.random(records))
        losses = rng.random((records, records)) * (1 - np.eye(records))
        threat = ThreatModel.reconstruction(
            FinitePrior(rng.dirichlet(np.ones(records))), SuccessSets.from_losses(losses, 0.3)
        )
        noise = GaussianNoise(float(10 ** rng.uniform(-1.5, 0.3)))
        value = line_advantage(positions, noise, threat).value
        low, high = positions[0] - 9 * noise.scale, positions[-1] + 9 * noise.scale
        edges = np.linspace(low, high, 20_001)
        channel = np.diff(
            noise.cdf(np.concatenate([[-np.inf], edges, [np.inf]]) - positions[:, None]), axis=1
        )
        rounded = best_gains(channel, threat).sum()
        assert -1e-12 <= value - rounded <= 1e-7


def test_claim_4_1a_laplace_noise_needs_no_finer_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells as wide as the gaps between the records, and cells of a tenth of a scale."""
    for seed in range(20):
        positions, threat = random_line(np.random.default_rng(seed))
        values = []
        for step in (1e9, 0.1):
            monkeypatch.setattr(one_dimensional, "_STEP", step)
            values.append(line_advantage(positions, LaplaceNoise(0.7), threat).value)
        assert values[0] == pytest.approx(values[1], abs=2e-12)


def test_claim_4_1_many_records_are_cut_into_stretches() -> None:
    """The uniform prior's closed form, with more densities than are held at a time."""
    positions = np.cumsum(np.random.default_rng(3).random(700)) / 10
    noise = LaplaceNoise(0.5)
    threat = ThreatModel.reconstruction(FinitePrior.uniform(700))
    found = line_advantage(positions, noise, threat)
    expected = mechanisms.noise_advantage_uniform(positions, noise)
    assert found.value == pytest.approx(expected, abs=1e-11)


def test_claim_4_1_equal_records_and_far_ones() -> None:
    """Two records at one place, and gaps beyond the noise's reach: nothing but the overlap."""
    positions = np.array([0.0, 0.0, 1e6])
    threat = ThreatModel.reconstruction(FinitePrior([0.2, 0.3, 0.5]))
    found = line_advantage(positions, GaussianNoise(1.0), threat).value
    # Named are the second record near 0 and the third far away: .3 (1 - .5) + .5 (1 - .5).
    assert found == pytest.approx(0.3 * 0.5 + 0.5 * 0.5, abs=1e-12)


@for_each("noise", [LaplaceNoise(0.1), LaplaceNoise(1.0), GaussianNoise(0.1)])
@for_each("eta", [0.02, 0.3, 0.9])
def test_claim_5_1_the_best_guess_against_the_closed_form(
    noise: LaplaceNoise | GaussianNoise, eta: float
) -> None:
    """Uniform prior: a guess gains a difference of distribution functions; 20,001 guesses."""
    prior = ContinuousPrior.uniform(0, 1)
    theta = np.linspace(-0.5, 1.5, 41)
    x = np.linspace(0, 1, 20_001)[:, None]
    low, high = np.maximum(x - eta, 0), np.minimum(x + eta, 1)
    mixture = noise.cdf(1 - theta) - noise.cdf(-theta)
    gains = noise.cdf(high - theta) - noise.cdf(low - theta) - (high - low) * mixture
    grid = GuessGrid(
        prior, lambda t, z: noise.density(t - z), noise.scale, eta, 160, has_kink=noise.has_kink
    )
    assert np.abs(grid.best_gains(theta) - gains.max(axis=0)).max() < 1e-6


def uniform_within(low: float, high: float) -> ContinuousPrior:
    """Uniform on a part of [0, 1]."""
    return ContinuousPrior(0.0, 1.0, lambda x: np.clip((x - low) / (high - low), 0, 1))


def closed_best_gain(
    theta: np.ndarray, low: float, high: float, noise: LaplaceNoise | GaussianNoise, eta: float
) -> np.ndarray:
    """The largest gain under that prior in closed form, by golden sections around the best."""

    def gains(x: np.ndarray) -> np.ndarray:
        ends = [np.clip(x + side * eta, low, high) for side in (-1, 1)]
        mixture = (noise.cdf(high - theta) - noise.cdf(low - theta)) / (high - low)
        inside = noise.cdf(ends[1] - theta) - noise.cdf(ends[0] - theta)
        return (inside - (ends[1] - ends[0]) * mixture) / (high - low)

    near = np.linspace(low - eta, high + eta, 1001)
    x = np.unique(np.clip(np.concatenate([near, [low + eta, high - eta, 0, 1]]), 0, 1))
    table = gains(x[:, None])
    best = table.argmax(axis=0)
    left, right = x[np.maximum(best - 1, 0)], x[np.minimum(best + 1, len(x) - 1)]
    for _ in range(40):
        third = (right - left) * (3 - 5**0.5) / 2
        lower = gains(left + third) < gains(right - third)
        left, right = np.where(lower, left + third, left), np.where(lower, right, right - third)
    return np.asarray(np.maximum(table.max(axis=0), gains((left + right) / 2)))


@pytest.mark.parametrize(
    ("low", "high", "noise", "eta"),
    [
        (0.3, 0.4, LaplaceNoise(0.05), 0.01),
        (0.501, 0.502, GaussianNoise(0.05), 0.0005),
        (0.501, 0.502, LaplaceNoise(0.5), 0.2),
        (0.1, 0.12, LaplaceNoise(0.02), 0.004),
        (0.0, 0.05, LaplaceNoise(0.1), 0.01),
        (0.6, 0.8, LaplaceNoise(0.3), 0.15),
        (0.2, 0.7, GaussianNoise(0.05), 0.1),
        # No cell holds much, but the density jumps.
        (0.1, 0.9, LaplaceNoise(0.5), 0.1),
        (0.33, 0.67, GaussianNoise(0.5), 0.02),
    ],
)
def test_claim_5_1_priors_with_all_their_mass_in_a_part_of_the_interval(
    low: float, high: float, noise: LaplaceNoise | GaussianNoise, eta: float
) -> None:
    tails = noise.reach * 2.0 ** np.arange(-8, 1)
    breaks = np.unique(np.concatenate([low - tails, np.linspace(low, high, 40), high + tails]))
    exact = integrate(
        lambda theta: closed_best_gain(theta, low, high, noise, eta),
        breaks,
        tolerance=1e-8,
        levels=8,
    )
    found = continuous_advantage(uniform_within(low, high), noise, eta)
    assert found.value == pytest.approx(exact.value, abs=5e-7)
    assert abs(found.value - exact.value) <= 3 * found.error


def test_claim_5_1_two_narrow_groups_of_records() -> None:
    """Naming one of two groups that the noise tells apart: half of their total variation."""
    prior = ContinuousPrior(
        0.0, 1.0, lambda x: (np.clip((x - 0.2) / 0.01, 0, 1) + np.clip((x - 0.7) / 0.01, 0, 1)) / 2
    )
    noise = GaussianNoise(0.1)
    found = continuous_advantage(prior, noise, 0.3)
    # Every record of one group is between .49 and .51 from every one of the other.
    least, most = noise.total_variation(0.49) / 2, noise.total_variation(0.51) / 2
    assert least < found.value < most


PRIORS = [
    ContinuousPrior.uniform(0, 1), ContinuousPrior.beta(0.1, 0.1), ContinuousPrior.beta(2, 5),
    ContinuousPrior.beta(0.1, 8), ContinuousPrior.beta(200, 200),
]  # fmt: skip
MECHANISMS = [
    ExponentialMechanism(0.5), ExponentialMechanism(5.0), ExponentialMechanism(40.0),
    LaplaceNoise(0.1), GaussianNoise(0.1),
]  # fmt: skip


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.name)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_claim_5_1_the_error_covers_what_a_finer_grid_finds(
    prior: ContinuousPrior,
    mechanism: ExponentialMechanism | LaplaceNoise | GaussianNoise,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Six times as many guesses and a four-hundredth of the tolerance."""
    etas = (0.001, 0.02, 0.05, 0.3)
    found = [continuous_advantage(prior, mechanism, eta) for eta in etas]
    monkeypatch.setattr(continuous, "_GUESSES", 960)
    monkeypatch.setattr(continuous, "_GUESSES_PER_SCALE", 72)
    monkeypatch.setattr(continuous, "_TOLERANCE", 1e-8)
    monkeypatch.setattr(continuous, "_LEVELS", 9)
    for eta, each in zip(etas, found, strict=True):
        finer = continuous_advantage(prior, mechanism, eta).value
        assert abs(each.value - finer) < 1.2e-6, eta
        assert abs(each.value - finer) <= 6 * each.error, eta


def test_claim_5_1_a_mechanism_that_tells_all_leaves_the_ball() -> None:
    """At the smallest scale the record is known to within eta: 1 - E pi(ball) is approached."""
    eta = 0.3
    prior = ContinuousPrior.uniform(0, 1)
    found = continuous_advantage(prior, GaussianNoise(0.01), eta)
    # The attacker may choose any guess within eta of the record: the one of least mass.
    z = np.linspace(0, 1, 100_001)
    least = np.minimum(
        prior.ball_masses(np.clip(z - eta, 0, 1), eta),
        prior.ball_masses(np.clip(z + eta, 0, 1), eta),
    )
    assert 1 - least.mean() - 0.05 < found.value < 1 - least.mean()
    assert found.error < 1e-6


def test_claim_5_1_every_interval_is_the_same() -> None:
    """Shifted and stretched by ten, with mechanism and eta; and mirrored, with the prior."""
    beta = continuous_advantage(ContinuousPrior.beta(0.3, 2), ExponentialMechanism(6.0), 0.1).value
    stretched = continuous_advantage(
        ContinuousPrior.beta(0.3, 2, -3.0, 7.0),
        ExponentialMechanism(6.0, -3.0, 7.0, sensitivity=10.0),
        1.0,
    ).value
    mirrored = continuous_advantage(
        ContinuousPrior.beta(2, 0.3), ExponentialMechanism(6.0), 0.1
    ).value
    assert stretched == pytest.approx(beta, abs=1e-9)
    assert mirrored == pytest.approx(beta, abs=1e-6)
