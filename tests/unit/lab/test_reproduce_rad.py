"""Figures of RAD, reproduced and simulated."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from for_each import for_each
from ragaudit.encoding.errors import UnavailableError
from ragaudit.lab.reproduce import (
    rad,
    rad_audits,
    rad_bounds,
    rad_examples,
    rad_figures,
    rad_utility,
)
from ragaudit.lab.reproduce.command import app
from ragaudit.lab.reproduce.comparison import Comparison, Table, as_text, sampling_tolerance
from ragaudit.lab.reproduce.rad_published import FIGURE_2, FIGURE_6, FIGURE_6_CLAIMS, FIGURE_11
from ragaudit.lab.risk.mechanisms import LaplaceNoise, oue_advantage_uniform
from scipy import stats
from typer.testing import CliRunner

ORACLE = json.loads((Path(__file__).parents[2] / "vectors" / "dp_oracle.json").read_bytes())
ENTRIES: dict[str, Any] = {entry["id"]: entry for entry in ORACLE["entries"]}


def rows(tables: tuple[Table, ...]) -> dict[str, Comparison]:
    return {row.quantity: row for table in tables for row in table.rows}


EXAMPLES = rows(rad_examples.tables())


def test_examples_and_bounds_meet_their_references() -> None:
    for table in (*rad_examples.tables(), *rad_bounds.tables()):
        assert not table.disagreements, table.name
    assert all(row.agrees for row in rad_audits.applicability())


@for_each(
    ("quantity", "entry", "member"),
    [
        ("Example 4.4, m = 2, RAD 0.1: epsilon", "worked.grr.binary", None),
        ("Example 4.7, m = 11: Laplace is below OUE up to epsilon", "lap.vs.oue.cross", None),
        ("least sigma: Theorem 5.1, second form", "worked.dpsgd.sigma.thm51", None),
        ("least sigma: Theorem 5.1, first form", "worked.dpsgd.sigma.thm51.first", None),
        ("least sigma: Theorem 4.2", "worked.dpsgd.sigma.thm42", None),
        ("least sigma: Theorem 5.1, two records", "worked.dpsgd.sigma.replace", None),
        (
            "m = 3, sigma = 22: advantage of the optimal attack",
            "refute.ex57.simplex.m3.s22",
            "exact_rad",
        ),
        ("m = 3, sigma = 22: bound as printed", "refute.ex57.simplex.m3.s22", "paper_bound"),
        (
            "m = 3, sigma = 22: bound with mu = 2 sqrt(T)/sigma",
            "refute.ex57.simplex.m3.s22",
            "corrected_bound",
        ),
        ("Laplace, m = 11, eps = 50: prior 1/2, 1/2", "worst_prior.laplace", "two_extremes"),
        ("Laplace, m = 11, eps = 50: uniform prior", "worst_prior.laplace", "uniform_prior"),
    ],
)
def test_ours_meets_the_oracle_in_full(quantity: str, entry: str, member: str | None) -> None:
    expected = ENTRIES[entry]["expected"]
    value = expected if member is None else expected[member]
    assert EXAMPLES[quantity].ours == pytest.approx(value, abs=ENTRIES[entry]["atol"])


def test_a_wrong_value_of_ours_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rad_examples, "grr_epsilon", lambda *_: 2.503)
    wrong = {row.quantity for table in rad_examples.tables() for row in table.disagreements}
    assert "Example 4.4, m = 100, RAD 0.1: epsilon" in wrong


def test_every_difference_from_the_paper_has_its_reason() -> None:
    for table in (*rad_examples.tables(), *rad_bounds.tables()):
        for row in table.rows:
            if (
                row.paper is not None
                and not Comparison(row.quantity, row.paper, None, row.ours).agrees
            ):
                assert row.reason, row.quantity


PRINTED = {
    "worked-examples": {"0.405", "12.2087", "2.503", "0.1", "14", "12.25"}, "claims": set(),
    "dp-sgd-scales": {"22"}, "dp-sgd-refutation": set(), "figure-1": set(), "figure-3": set(),
    "figure-10": set(),
}  # fmt: skip
"""All that the paper prints in digits."""


def test_unmarked_digits_are_those_of_the_paper() -> None:
    for table in (*rad_examples.tables(), *rad_bounds.tables()):
        unmarked = {row.paper for row in table.rows if row.paper and not row.formula}
        assert unmarked == PRINTED[table.name], table.name


def test_skewed_priors_are_named() -> None:
    assert "GRR, prior .9, .05, .05, eps = 0.2: Algorithm 1" in EXAMPLES
    assert "GRR, prior .4, .3, .15, .1, .05, eps = 1: Algorithm 1" in EXAMPLES


def test_figure_1_says_which_gaussian_and_where_it_is_weaker() -> None:
    table = rad_bounds.tables()[0]
    assert any("No Gaussian noise is epsilon-DP" in note for note in table.notes)
    found = {row.quantity: row.ours for row in table.rows}
    assert found["Gaussian, sd = 1/eps, is below Laplace up to epsilon"] < 14
    assert found["Gaussian, sd = 1/14"] > found["Laplace, eps = 14"] > found["OUE, eps = 14"]
    # The reason's "at most a fifth": the ratio is least at small epsilon, sqrt(2/pi) there.
    curves = {name.split(",")[0]: y for name, (_, y) in rad_bounds.mechanism_curves().items()}
    assert np.all(curves["Gaussian"] / curves["Laplace"] > math.sqrt(2 / math.pi) - 1e-3)


# --- Table 1 ---


def test_table_1_names_the_least_bound_first() -> None:
    rows = {(row.notion, row.knowledge, row.eta): row for row in rad_audits.applicability()}
    row = rows["f-DP", "none", "exact"]
    assert row.paper is None
    assert set(row.ours.bounds[:2]) == {"Theorem 5.5", "Corollary 5.6"}
    values = dict(zip(row.ours.bounds, row.values, strict=True))
    assert values["Corollary 5.6"] == pytest.approx(0.25847, abs=5e-6)
    assert values["Theorem 5.1"] == pytest.approx(0.28719, abs=5e-6)
    for each in rows.values():
        assert list(each.values) == pytest.approx(sorted(each.values), rel=1e-13)


def test_table_1_has_composition_and_reconstruction_robustness() -> None:
    rows = rad_audits.applicability()
    assert [row.ours.composition for row in rows].count("joint law only") == 1
    for row in rows:
        assert bool(row.ours.robustness) == (row.knowledge == "none")
        if row.notion == "(epsilon, delta)" and row.knowledge == "none":
            assert row.ours.robustness == ("Eq. (3)", "Eq. (1) if delta = 0")
    text = rad_audits.table_1_text(rows)
    assert "no such row" in text and "not valid with target-specific knowledge" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_missing_bound_of_table_1_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rad_audits, "_robustness", lambda *_: ())
    assert not all(row.agrees for row in rad_audits.applicability())


# --- the refutation of Example 5.7 ---


@for_each("m", [2, 3, 5, 10, 50])
@for_each("sigma", [2.0, 5.0, 10.0, 22.0, 44.0, 100.0])
def test_the_corrected_bound_holds_for_simplex_gradients(m: int, sigma: float) -> None:
    exact = rad_examples.simplex_advantage(m, sigma)
    # For m = 2 the bound is reached; 1e-12 is the quadrature's own error.
    assert exact <= rad_examples.printed_gradient_bound(m, sigma, replaced=True) + 1e-12


@pytest.mark.parametrize(("m", "sigma"), [(2, 22.0), (3, 22.0), (10, 5.0)])
def test_the_printed_bound_is_exceeded(m: int, sigma: float) -> None:
    exact = rad_examples.simplex_advantage(m, sigma)
    assert exact > rad_examples.printed_gradient_bound(m, sigma, replaced=False) + 1e-4


def test_the_simplex_integral_by_simulation() -> None:
    # Success among 3 simplex vertices of norm 1 at noise 22/10 per summed coordinate; 2e5 draws,
    # Hoeffding's half-width at 1e-6 is .0060.
    generator, m, sigma = np.random.default_rng(1), 3, 2.2
    vertices = np.linalg.qr(np.eye(m) - 1 / m)[0][:, : m - 1]
    vertices = (np.eye(m) - 1 / m) * math.sqrt(m / (m - 1))
    assert np.linalg.norm(vertices, axis=1) == pytest.approx(np.ones(m))
    targets = generator.integers(0, m, 200_000)
    seen = vertices[targets] + sigma * generator.standard_normal((200_000, m))
    success = float(np.mean((seen @ vertices.T).argmax(axis=1) == targets))
    exact = rad_examples.simplex_advantage(3, 22.0)
    assert success - 1 / 3 == pytest.approx(exact, abs=0.006)


def unmarked(table: Table) -> set[str]:
    """What stands under paper as if the paper printed it."""
    return {row.paper for row in table.rows if row.paper is not None and not row.formula}


# --- Figure 2 ---


def test_figure_2_meets_its_references_and_claims_no_printed_digits() -> None:
    table = rad_utility.utility_table()
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
def hours() -> Iterator[tuple[rad_utility.Hours, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rad_utility, "EPSILONS", (1.0, 4.0, 10.0))
        yield rad_utility.points(4000, np.random.default_rng(1), lambda done: None)


def test_figure_6_meets_its_references(hours: tuple[rad_utility.Hours, ...]) -> None:
    # 36 simulated rows, each wrong at 4e-9.
    table = rad_utility.hours_table(hours)
    assert [row.quantity for row in table.disagreements] == []
    assert len(table.rows) == 2 * len(FIGURE_6) + len(FIGURE_6_CLAIMS) + 1
    assert unmarked(table) == set()
    for row in table.rows:
        if row.formula and row.difference:
            assert row.reason, row.quantity


def test_a_wrong_attack_is_a_disagreement(hours: tuple[rad_utility.Hours, ...]) -> None:
    wrong = tuple(replace(each, simulated=each.simulated + 0.2) for each in hours)
    assert len(rad_utility.hours_table(wrong).disagreements) == len(FIGURE_6)


def test_success_keeps_its_bound_and_certainty_is_no_advantage(
    hours: tuple[rad_utility.Hours, ...],
) -> None:
    for each in hours:
        # Hoeffding at 1e-9: sqrt(ln(1e9)/(2 n)).
        assert each.success <= each.success_bound + math.sqrt(math.log(1e9) / (2 * each.runs))
        if each.eta == 100:
            assert each.success == each.success_bound == 1.0
            assert each.simulated == pytest.approx(0, abs=1e-12)


def test_the_stand_in_has_the_counts_that_are_known() -> None:
    prior = rad_utility.priors()[rad_utility.PRIORS[1]].probabilities
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
    prior = rad_utility.priors()[name].probabilities
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
        patch.setattr(rad_bounds, "CONTINUOUS_EPSILONS", (5.0,))
        found = rad_bounds.points(20_000, np.random.default_rng(9))
    table = rad_bounds.table(found)
    assert len(table.rows) == 2 * len(rad_bounds.ETAS)
    assert not table.disagreements and unmarked(table) == set()
    assert {each.prior for each in found} == set(rad_bounds.PRIORS)
    assert any("no digits" in note for note in table.notes)


# --- Table 2 ---


@pytest.fixture(scope="module")
def imputations() -> Iterator[tuple[rad_utility.Imputation, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rad_utility, "LARGEST_UNIVERSE", 200)
        patch.setattr(rad_utility, "REPEATS", 2)
        patch.setattr(rad_utility, "TREES", 10)
        yield rad_utility.impute(np.random.default_rng(2))


def test_an_imputation_has_no_advantage_however_often_it_succeeds(
    imputations: tuple[rad_utility.Imputation, ...],
) -> None:
    table = rad_utility.imputation_table(imputations)
    assert not table.disagreements and unmarked(table) == {"0"}
    assert [each.labels for each in imputations] == [10, 2]
    for each in imputations:
        assert min(each.success) > 2 / each.labels * 0.8
        assert np.abs(each.advantage).max() < 1e-12
    text = " ".join(as_text(table).split())
    assert "the paper has 0.81 for Census" in text and "0.73 for Texas" in text
    wrong = tuple(replace(each, advantage=(1e-6, 1e-6)) for each in imputations)
    assert len(rad_utility.imputation_table(wrong).disagreements) == len(imputations)


def test_an_attack_that_looks_at_the_target_has_an_advantage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The game can tell: the same code, but what is named depends on who was in the data."""
    original = rad_utility.contributions  # type: ignore[attr-defined]

    def leaking(targets: np.ndarray, guesses: np.ndarray, threat: object) -> np.ndarray:
        told = np.array(guesses)
        half = np.arange(0, len(told), 2)
        told[half] = np.asarray(targets)[half, None]
        return original(targets, told, threat)  # type: ignore[arg-type]

    monkeypatch.setattr(rad_utility, "contributions", leaking)
    monkeypatch.setattr(rad_utility, "LARGEST_UNIVERSE", 100)
    monkeypatch.setattr(rad_utility, "REPEATS", 2)
    monkeypatch.setattr(rad_utility, "TREES", 2)
    found = rad_utility.impute(np.random.default_rng(3))
    assert all(min(each.advantage) > 0.1 for each in found)
    assert rad_utility.imputation_table(found).disagreements


def test_the_sampling_tolerance_covers_what_few_samples_do_not_show() -> None:
    # A miss of probability 1e-3 in 1,000 samples is absent in 37 % of them; its mean is 1e-3.
    assert sampling_tolerance(0.0, 1000) > 1e-3
    assert sampling_tolerance(0.01, 10**9) == pytest.approx(0.0644, abs=1e-4)


# --- audits ---


@pytest.fixture(scope="module")
def audits() -> Iterator[tuple[rad_audits.Audit, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rad_audits, "EPSILONS", (2.0, 8.0, 12.0))
        yield rad_audits.audits(2000, np.random.default_rng(2), lambda done: None)


def test_simulated_audits_meet_their_references(audits: tuple[rad_audits.Audit, ...]) -> None:
    # Six standard errors or more for each of about 40 comparisons: below 1e-6 together.
    for table in rad_audits.tables(audits):
        assert not table.disagreements
        assert table.rows
    by_case = {(a.kind, a.records, a.epsilon): a for a in audits}
    for (kind, records, epsilon), audit in by_case.items():
        # GRR >= SS >= OUE, exactly.
        if kind == "OUE":
            assert audit.exact <= by_case["SS", records, epsilon].exact + 1e-12
        if kind == "SS":
            assert audit.exact <= by_case["GRR", records, epsilon].exact + 1e-12
        assert audit.records in (3052, 5356)


def test_certificates_do_not_exceed_the_truth(audits: tuple[rad_audits.Audit, ...]) -> None:
    # 90 bounds of confidence .99: at most the 1 - 1e-6 quantile of Binomial(90, .01).
    wrong = sum(low > audit.epsilon for audit in audits for low in audit.certified)
    assert wrong <= stats.binom.isf(1e-6, 90, 0.01)


def test_ldp_auditor_is_capped(audits: tuple[rad_audits.Audit, ...]) -> None:
    from ragaudit.lab.risk.estimation import ldp_auditor_epsilon

    cap = ldp_auditor_epsilon(2000, 0, 2000, rad_audits.ALPHA)
    assert max(max(audit.ldp_auditor) for audit in audits) <= cap


def audit_like(epsilon: float, **changed: Any) -> rad_audits.Audit:
    """OUE on 3,052 records with 20,000 runs, where nothing is changed."""
    fields: dict[str, Any] = {
        "universe": "Porto", "records": 3052, "kind": "OUE", "epsilon": epsilon, "runs": 20_000,
        "exact": oue_advantage_uniform(3052, epsilon),
        "advantages": (0.1,) * 5, "estimates": (epsilon,) * 5, "certified": (epsilon - 1,) * 5,
        "ldp_auditor": (epsilon - 2,) * 5,
    }  # fmt: skip
    return rad_audits.Audit(**{**fields, **changed})


def test_what_figure_8_leaves_out_is_said() -> None:
    infinite = audit_like(14.0, estimates=(12.0, math.inf, 12.0, math.inf, 12.0))
    found = (audit_like(8.0), audit_like(1.0, runs=1000), audit_like(10.0, runs=10_000), infinite)
    assert rad_audits.unsettled(found[0]) == ""
    table = rad_audits.tables(found)[1]
    assert len(table.rows) == 1
    assert table.notes[1:] == (
        "Left out, standard error of the mean above 0.1: OUE, m = 3052, eps = 1.",
        "Left out, advantage too flat in epsilon for so few runs: OUE, m = 3052, eps = 10.",
        "Left out, 2 of 5 estimates infinite: OUE, m = 3052, eps = 14.",
    )


def test_every_audit_is_compared_or_left_out(audits: tuple[rad_audits.Audit, ...]) -> None:
    table = rad_audits.tables(audits)[1]
    left_out = [audit for audit in audits if rad_audits.unsettled(audit)]
    assert left_out and len(table.rows) + len(left_out) == len(audits)


def test_rivals_are_means_and_infinite_ones_stay_so() -> None:
    infinite = audit_like(14.0, estimates=(13.0, math.inf, 13.0, 1.0, 13.0))
    first, second = rad_audits.rivals((audit_like(8.0), infinite))
    assert (first.model_based, first.certified, first.ldp_auditor) == (8.0, 7.0, 6.0)
    assert (first.infinite, first.nearer) == (0, 5)
    assert (second.model_based, second.infinite, second.nearer) == (math.inf, 1, 3)
    found = {each.quantity: each for each in rad_audits.statements((audit_like(8.0), infinite))}
    nearer = next(each for name, each in found.items() if "by mean" in name)
    assert (nearer.paper, nearer.ours) == ("all", "1 of 2")
    assert found["the same, single repetitions"].ours == "8 of 10"


def test_the_table_against_ldp_auditor_has_every_audit(
    audits: tuple[rad_audits.Audit, ...],
) -> None:
    text = rad_audits.rivals_text(audits)
    lines = [line for line in text.splitlines() if line.startswith(rad_audits.KINDS)]
    assert len(lines) == len(audits)
    cap = next(line for line in text.splitlines() if "1,000,000 runs" in line)
    assert cap.split()[-4:] == ["about", "12.25", "12.025", "12.025"]
    assert "at epsilon 12, 2,000 runs" in text


def test_a_broken_simulation_is_a_disagreement(audits: tuple[rad_audits.Audit, ...]) -> None:
    from dataclasses import replace

    broken = tuple(
        replace(audit, advantages=tuple(value + 0.2 for value in audit.advantages))
        for audit in audits
    )
    assert rad_audits.tables(broken)[0].disagreements


def test_digits_settled_by_runs() -> None:
    assert rad_audits._digits(0.12345, 0.0006) == "0.123"
    assert rad_audits._digits(0.12345, 0.5) == "0"
    assert rad_audits._digits(0.5, 0.0) == "0.500000000"


# --- continuous records and DP-SGD on digits ---


@pytest.fixture(scope="module")
def points() -> Iterator[tuple[rad_bounds.Point, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rad_bounds, "CONTINUOUS_EPSILONS", (2.0, 10.0))
        yield rad_bounds.points(20_000, np.random.default_rng(3))


def test_the_simulated_attack_on_continuous_records_reaches_the_quadrature(
    points: tuple[rad_bounds.Point, ...],
) -> None:
    # Normal intervals of level .95 at 20000 samples, widened to six standard errors.
    for point in points:
        six = 6 * point.half_width / rad_bounds.NORMAL_95
        assert abs(point.simulated - point.quadrature) <= six, point


@pytest.fixture(scope="module")
def attacks() -> Iterator[tuple[rad_examples.Attack, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rad_examples, "KNOWN", 99)
        patch.setattr(rad_examples, "NOISE_MULTIPLIERS", (10.0,))
        yield rad_examples.attack_digits(np.random.default_rng(4), lambda done: None, 4)


def test_attacks_on_digits_respect_the_corrected_bound(
    attacks: tuple[rad_examples.Attack, ...],
) -> None:
    assert [attack.knowledge for attack in attacks] == ["none", "label", "full"]
    for attack in attacks:
        # The optimal attack's expectation given the output is at least the printed rule's.
        assert attack.advantage >= attack.printed_rule - 1e-12
        assert attack.bound > attack.printed_bound
    # More knowledge never lowers the optimum given the same outputs.
    none, label, full = (attack.advantage for attack in attacks)
    assert none <= label + 1e-12 <= full + 2e-12


@pytest.mark.nightly
def test_expected_and_observed_advantage_agree() -> None:
    # Observed: 48 samples in [-1, 1] per cell, 12 cells; the largest of the differences of means
    # stays below Hoeffding's half-width at 1e-6: sqrt(ln(2e6 * 12)/(2 * 48)) * 2 = .84.
    found = rad_examples.attack_digits(np.random.default_rng(5), lambda done: None, 48)
    differences = [attack.advantage - attack.observed for attack in found]
    assert max(map(abs, differences)) < 0.84
    # Together (the cells of a sigma share trainings): 4 means of 48, each in [-1, 1].
    assert abs(float(np.mean(differences))) < 0.42
    for attack in found:
        assert attack.advantage <= attack.bound + 6 * attack.error


# --- the command ---


@pytest.fixture(scope="module")
def simulations(
    audits: tuple[rad_audits.Audit, ...],
    attacks: tuple[rad_examples.Attack, ...],
    points: tuple[rad_bounds.Point, ...],
) -> rad.Simulations:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rad_utility, "EPSILONS", (1.0, 4.0, 10.0))
        patch.setattr(rad_utility, "GRID", 201)
        patch.setattr(rad_utility, "LARGEST_UNIVERSE", 100)
        patch.setattr(rad_utility, "REPEATS", 2)
        patch.setattr(rad_utility, "TREES", 5)
        hours = rad_utility.points(1000, np.random.default_rng(6), lambda done: None)
        imputations = rad_utility.impute(np.random.default_rng(7))
    return rad.Simulations(audits, attacks, points, hours, imputations)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, simulations: rad.Simulations) -> None:
    """Simulations of the command replaced by those of this module, which are the same code."""
    monkeypatch.setattr(rad, "_simulated", lambda *_, **__: simulations)


@pytest.mark.usefixtures("quick")
def test_the_command_writes_tables_and_stand_ins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rad_figures, "figures", lambda *_: {"figure-1.png": b"drawn"})
    result = CliRunner().invoke(app, ["rad", "--output", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "2.504379" in result.stdout and "MNIST is not used" in result.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"table-1.txt", "worked-examples.csv", "audits.csv", "stand-ins.txt"}
    assert names >= {"table-1.csv", "figure-8-ldp-auditor.csv", "figure-8-ldp-auditor.txt"}
    assert names >= {"figure-2.csv", "figure-6.txt", "figure-11.txt", "table-2.txt"}
    assert names >= {"figure-6-data.csv", "figure-10-data.csv", "table-2-data.csv"}
    digits = (tmp_path / "out" / "dp-sgd-digits.txt").read_text()
    assert "Attacks above the printed bound by three standard errors:" in digits
    assert digits in result.stdout
    assert "figure-1.png" in names
    document = json.loads((tmp_path / "out" / "rad.json").read_text())
    assert document["worked-examples"]["rows"][0]["agrees"] is True
    assert len(document["audits"]) == len(document["figure-8-ldp-auditor"]) == 18
    assert document["figure-8-statements"][0]["paper"] == "all"
    assert any("MNIST" in text for text in document["stand_ins"])


@pytest.mark.slow
def test_every_figure_is_drawn(simulations: rad.Simulations) -> None:
    files = rad_figures.figures(simulations)
    for stem in ("figure-1", "figure-2", "figure-3", "figure-4-digits", "figure-6",
                 "figure-7-3052", "figure-7-5356", "figure-8-3052", "figure-8-5356", "figure-10",
                 "figure-11", "dp-sgd-refutation"):  # fmt: skip
        assert files[f"{stem}.png"].startswith(b"\x89PNG")
        assert b"<svg" in files[f"{stem}.svg"]


@pytest.mark.usefixtures("quick")
def test_one_json_object(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(app, ["rad", "--json"])
    assert json.loads(result.stdout)["table-1"][0]["agrees"] is True
    assert result.exit_code == 0
    monkeypatch.setattr(rad_examples, "grr_epsilon", lambda *_: 2.503)
    assert CliRunner().invoke(app, ["rad", "--json"]).exit_code == 1


@pytest.mark.usefixtures("quick")
def test_an_unwritable_folder_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rad_figures, "figures", lambda *_: {})
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = CliRunner().invoke(app, ["rad", "--output", str(blocked / "in")])
    assert isinstance(result.exception, UnavailableError)


def test_infinite_estimates_are_marked_not_averaged() -> None:
    infinite = audit_like(14.0, estimates=(12.0, math.inf, 12.0, math.inf, 12.0))
    nothing = audit_like(1.0, ldp_auditor=(-math.inf, -2.0, -2.0, -2.0, -2.0))
    drawn = rad_figures._estimates("Porto", 3052, (infinite, nothing))["figure-8-3052.svg"].decode()
    assert ">2/5<" in drawn and ">1/5<" in drawn and "k/5: infinite in k" in drawn
    plain = rad_figures._estimates("Porto", 3052, (audit_like(8.0),))["figure-8-3052.svg"].decode()
    assert "/5" not in plain


def test_figures_are_the_same_every_time() -> None:
    first = rad_figures._fixed()
    assert first == rad_figures._fixed()
    assert b"<dc:date>" not in first["dp-sgd-refutation.svg"]


def test_help_has_an_example() -> None:
    shown = CliRunner().invoke(app, ["rad", "--help"]).stdout
    assert "ragaudit reproduce rad --output" in shown
