"""Figures 2, 6 and 11 and Table 2 of the disclosure-risk paper: references by other means."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from ragaudit.lab.reproduce import rad_continuous, rad_hours, rad_imputation, rad_utility
from ragaudit.lab.reproduce.comparison import Table, as_text, sampling_tolerance
from ragaudit.lab.reproduce.rad_published import FIGURE_2, FIGURE_6, FIGURE_6_CLAIMS, FIGURE_11
from ragaudit.lab.risk.mechanisms import LaplaceNoise
from scipy import stats


def unmarked(table: Table) -> set[str]:
    """What stands under paper as if the paper printed it."""
    return {row.paper for row in table.rows if row.paper is not None and not row.formula}


# --- Figure 2 ---


def test_figure_2_meets_its_references_and_claims_no_printed_digits() -> None:
    table = rad_utility.table()
    assert not table.disagreements
    assert len(table.rows) == 3 * len(FIGURE_2) and unmarked(table) == set()


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("ball", [0.0, 0.01, 0.1, 0.4, 0.5, 0.8, 1.0])
def test_laplace_success_is_the_power_of_the_best_test(ball: float, epsilon: float) -> None:
    """Of size ball, between Laplace noise around 0 and around 1: by likelihood ratio on a grid."""
    scale = 1 / epsilon
    edges = np.linspace(-40 * scale, 1 + 40 * scale, 400_001)
    sizes, powers = (np.diff(stats.laplace(at, scale).cdf(edges)) for at in (0.0, 1.0))
    order = np.argsort(-(powers / np.maximum(sizes, 1e-300)), kind="stable")
    power = np.interp(ball, np.cumsum(sizes[order]), np.cumsum(powers[order]))
    assert rad_utility.laplace_success(ball, epsilon) == pytest.approx(power, abs=1e-3)


@pytest.mark.parametrize("risk", [0.2, 0.5, 0.8])
def test_the_calibrated_noise_has_that_risk(risk: float) -> None:
    """RAD by the nearest of ten records, from Laplace's distribution function."""
    scale = rad_utility.advantage_error(risk) / math.log(20)
    positions = np.linspace(0, 1, 10)
    cuts = np.concatenate([[-np.inf], (positions[1:] + positions[:-1]) / 2, [np.inf]])
    hit = np.diff(stats.laplace(0, scale).cdf(cuts - positions[:, None]), axis=1).diagonal()
    assert hit.mean() - 0.1 == pytest.approx(risk, abs=1e-9)
    again = math.log(20) / rad_utility.success_error(risk)
    assert rad_utility.laplace_success(0.1, again) == pytest.approx(risk, abs=1e-9)


def test_figure_2_curves_are_in_order() -> None:
    rad, same_number, same_attack = (y for _, y in rad_utility.curves().values())
    assert np.all(rad < same_attack) and np.all(same_attack < same_number)


# --- Figure 6 ---


@pytest.fixture(scope="module")
def hours() -> Iterator[tuple[rad_hours.Hours, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rad_hours, "EPSILONS", (1.0, 4.0, 10.0))
        yield rad_hours.points(4000, np.random.default_rng(1), lambda done: None)


def test_figure_6_meets_its_references(hours: tuple[rad_hours.Hours, ...]) -> None:
    # 36 simulated rows, each wrong at 4e-9.
    table = rad_hours.table(hours)
    assert [row.quantity for row in table.disagreements] == []
    assert len(table.rows) == 2 * len(FIGURE_6) + len(FIGURE_6_CLAIMS) + 1
    assert unmarked(table) == set()
    for row in table.rows:
        if row.formula and row.difference:
            assert row.reason, row.quantity


def test_a_wrong_attack_is_a_disagreement(hours: tuple[rad_hours.Hours, ...]) -> None:
    wrong = tuple(replace(each, simulated=each.simulated + 0.2) for each in hours)
    assert len(rad_hours.table(wrong).disagreements) == len(FIGURE_6)


def test_success_keeps_its_bound_and_certainty_is_no_advantage(
    hours: tuple[rad_hours.Hours, ...],
) -> None:
    for each in hours:
        # Hoeffding at 1e-9: sqrt(ln(1e9)/(2 n)).
        assert each.success <= each.success_bound + math.sqrt(math.log(1e9) / (2 * each.runs))
        if each.eta == 100:
            assert each.success == each.success_bound == 1.0
            assert each.simulated == pytest.approx(0, abs=1e-12)


def test_the_stand_in_has_the_counts_that_are_known() -> None:
    prior = rad_hours.priors()[rad_hours.PRIORS[1]].probabilities
    assert prior.sum() == pytest.approx(1)
    assert prior[40] * 32561 == pytest.approx(15217) and prior[[0, 100]].tolist() == [0, 0]
    assert np.count_nonzero(prior) == 99


def midpoint_sum(prior: np.ndarray, epsilon: float, eta: float, cells: int) -> float:
    """The optimum over outputs in small cells, and the clamp's two atoms."""
    records, scale = np.arange(101.0), 100 / epsilon
    near = (np.abs(records[:, None] - records) <= eta).astype(float)
    edges = np.linspace(0, 100, cells + 1)
    noise = LaplaceNoise(scale)
    middles = (edges[1:] + edges[:-1]) / 2
    channel = noise.density(middles - records[:, None]) * 100 / cells
    atoms = np.stack([noise.cdf(-records), noise.cdf(records - 100)], axis=1)
    channel = np.concatenate([channel, atoms], axis=1)
    gains = prior[:, None] * (channel - prior @ channel)
    return float((near @ gains).max(axis=0).sum())


@pytest.mark.parametrize(
    ("name", "eta"), [("uniform", 0), ("uniform", 40), ("stand-in for Adult's", 80)]
)
def test_figure_6_references_by_a_sum(name: str, eta: int) -> None:
    prior = rad_hours.priors()[name].probabilities
    found = midpoint_sum(prior, 4.0, eta, 4000)
    assert found == pytest.approx(float(FIGURE_6[name, 4.0, eta]), abs=2e-5)


# --- Figure 11 ---


@pytest.mark.parametrize(("epsilon", "eta"), [(1.0, 0.5), (10.0, 0.25), (15.0, 0.75)])
def test_figure_11_references_by_records_of_equal_probability(epsilon: float, eta: float) -> None:
    scale, count, outputs = 2 / epsilon, 4000, 300
    records = stats.beta(0.1, 0.1).ppf((np.arange(count) + 0.5) / count)
    norm = scale * (2 - np.exp(-records / scale) - np.exp(-(1 - records) / scale))
    guesses = np.linspace(0, 1, 401)
    first = np.searchsorted(records, guesses - eta - 1e-12, "left")
    last = np.searchsorted(records, guesses + eta + 1e-12, "right")
    total = 0.0
    for theta in (np.arange(outputs) + 0.5) / outputs:
        density = np.exp(-np.abs(theta - records) / scale) / norm
        gains = np.concatenate([[0.0], np.cumsum(density - density.mean())])
        total += (gains[last] - gains[first]).max() / count
    assert total / outputs == pytest.approx(float(FIGURE_11[epsilon, eta]), abs=1e-3)


def test_figure_11_rows_meet_them_and_say_that_nothing_is_printed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rad_continuous, "EPSILONS", (5.0,))
        found = rad_continuous.points(20_000, np.random.default_rng(9))
    table = rad_continuous.table(found)
    assert len(table.rows) == 2 * len(rad_continuous.ETAS)
    assert not table.disagreements and unmarked(table) == set()
    assert {each.prior for each in found} == set(rad_continuous.PRIORS)
    assert any("no digits" in note for note in table.notes)


# --- Table 2 ---


@pytest.fixture(scope="module")
def imputations() -> Iterator[tuple[rad_imputation.Imputation, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rad_imputation, "LARGEST_UNIVERSE", 200)
        patch.setattr(rad_imputation, "REPEATS", 2)
        patch.setattr(rad_imputation, "TREES", 10)
        yield rad_imputation.impute(np.random.default_rng(2))


def test_an_imputation_has_no_advantage_however_often_it_succeeds(
    imputations: tuple[rad_imputation.Imputation, ...],
) -> None:
    table = rad_imputation.table(imputations)
    assert not table.disagreements and unmarked(table) == {"0"}
    assert [each.labels for each in imputations] == [10, 2]
    for each in imputations:
        assert min(each.success) > 2 / each.labels * 0.8
        assert np.abs(each.advantage).max() < 1e-12
    text = " ".join(as_text(table).split())
    assert "the paper has 0.81 for Census" in text and "0.73 for Texas" in text
    wrong = tuple(replace(each, advantage=(1e-6, 1e-6)) for each in imputations)
    assert len(rad_imputation.table(wrong).disagreements) == len(imputations)


def test_an_attack_that_looks_at_the_target_has_an_advantage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The game can tell: the same code, but what is named depends on who was in the data."""
    original = rad_imputation.contributions  # type: ignore[attr-defined]

    def leaking(targets: np.ndarray, guesses: np.ndarray, threat: object) -> np.ndarray:
        told = np.array(guesses)
        half = np.arange(0, len(told), 2)
        told[half] = np.asarray(targets)[half, None]
        return original(targets, told, threat)  # type: ignore[arg-type]

    monkeypatch.setattr(rad_imputation, "contributions", leaking)
    monkeypatch.setattr(rad_imputation, "LARGEST_UNIVERSE", 100)
    monkeypatch.setattr(rad_imputation, "REPEATS", 2)
    monkeypatch.setattr(rad_imputation, "TREES", 2)
    found = rad_imputation.impute(np.random.default_rng(3))
    assert all(min(each.advantage) > 0.1 for each in found)
    assert rad_imputation.table(found).disagreements


def test_the_sampling_tolerance_covers_what_few_samples_do_not_show() -> None:
    # A miss of probability 1e-3 in 1,000 samples is absent in 37 % of them; its mean is 1e-3.
    assert sampling_tolerance(0.0, 1000) > 1e-3
    assert sampling_tolerance(0.01, 10**9) == pytest.approx(0.0644, abs=1e-4)
