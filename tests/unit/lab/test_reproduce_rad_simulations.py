"""`ragaudit reproduce rad`: simulations, the command's files, honest stand-ins."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
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
from ragaudit.lab.reproduce.comparison import Comparison, Table
from ragaudit.lab.risk.finite import oue_advantage_uniform
from scipy import stats
from typer.testing import CliRunner


def rows(tables: tuple[Table, ...]) -> dict[str, Comparison]:
    return {row.quantity: row for table in tables for row in table.rows}


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
    first = rad_figures._refutation()
    assert first == rad_figures._refutation()
    assert b"<dc:date>" not in first["dp-sgd-refutation.svg"]


def test_help_has_an_example() -> None:
    shown = CliRunner().invoke(app, ["rad", "--help"]).stdout
    assert "ragaudit reproduce rad --output" in shown
