"""`ragaudit reproduce accounting`: each row meets its reference and explains its difference."""

import csv
import io
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from ragaudit.cli import main
from ragaudit.encoding.errors import MalformedError, RagauditError, UnavailableError
from ragaudit.lab.reproduce import accounting, command
from ragaudit.lab.reproduce.accounting import CELLS, LOOKUP, PREDICTED, PaperCell, figures
from ragaudit.lab.reproduce.command import app
from ragaudit.lab.reproduce.comparison import (
    COLUMNS,
    NOT_PRINTED,
    Comparison,
    Table,
    as_csv,
    as_json,
    as_text,
    write_files,
)
from typer.testing import CliRunner

RUNNER = CliRunner()
FIGURES = {"auc-by-coalition", "epsilon-by-coalition"}
ORACLE = json.loads((Path(__file__).parents[2] / "vectors" / "oracle.json").read_bytes())


@pytest.fixture(scope="module")
def tables() -> tuple[Table, ...]:
    return accounting.tables()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduce") / "results"
    result = RUNNER.invoke(app, ["accounting", "--output", str(folder)])
    assert result.exit_code == 0, result.output
    assert "epsilon_audit of the lookup (section 3.8)" in result.stdout
    return folder


def test_the_group_is_registered() -> None:
    helped = RUNNER.invoke(main.app, ["reproduce", "accounting", "--help"])
    assert helped.exit_code == 0
    assert "Example" in helped.stdout


def test_every_row_meets_its_reference(tables: tuple[Table, ...]) -> None:
    missed = [row.quantity for table in tables for row in table.disagreements]
    assert missed == []
    assert [table.name for table in tables] == [
        "scope", "reading", "lookup", "lower-bound", "exact-against-closed-form", "renyi",
        "calibration", "auc", "auc-reported",
    ]  # fmt: skip


def test_every_difference_has_its_reason(tables: tuple[Table, ...]) -> None:
    for table in tables:
        for row in table.rows:
            if row.paper is not None and row.difference is not None:
                digits = Decimal(row.paper).as_tuple().exponent
                assert isinstance(digits, int)
                if abs(Decimal(row.difference)) > Decimal(1).scaleb(digits):
                    assert row.reason, row.quantity


def test_the_lookup_has_every_printed_value(tables: tuple[Table, ...]) -> None:
    rows = {row.quantity: row for row in tables[2].rows}
    for (epsilon_acc, accounts), printed in LOOKUP.items():
        row = rows[f"k = {accounts}, eps_acc = {epsilon_acc}: leading term"]
        assert row.paper == printed
        assert row.ours == pytest.approx(float(printed), abs=0.005)


def test_references_are_those_of_the_oracle() -> None:
    """The digits of the recomputation are the oracle's, wherever that has the cell."""
    values = {entry["name"]: entry for entry in ORACLE["values"]}
    fields = {
        "comp/closed_leading": "leading", "comp/gdp_exact_eps_d1e-6": "exact",
        "comp/gdp_exact_eps_djoint": "exact_joint", "comp/rdp_opt_3.6": "renyi",
        "comp/rdp_grid_2_64_R3": "grid", "comp/rdp_grid_2_64_CKS": "canonne",
    }  # fmt: skip
    by_cell = {(float(cell.epsilon_acc), cell.accounts): cell for cell in CELLS}
    compared = 0
    for name, entry in values.items():
        prefix = next((key for key in fields if name.startswith(f"{key}/")), None)
        if prefix is not None:
            cell = by_cell[float(entry["inputs"]["eps_acc"]), entry["inputs"]["k"]]
            assert float(getattr(cell, fields[prefix])) == pytest.approx(entry["value"], abs=6e-5)
            compared += 1
    assert compared > 50


def test_the_best_order_of_the_grid_is_the_recomputed_one() -> None:
    from ragaudit.privacy.accounting import renyi
    from ragaudit.privacy.normal import decimal_of

    for cell in CELLS:
        rho = decimal_of(
            PaperCell(cell.epsilon_acc, cell.accounts).gaussian.zero_concentrated().rho
        )
        best = min(
            range(2, 65), key=lambda a: renyi.mironov_epsilon(rho, Decimal("1e-6"), Decimal(a))
        )
        assert best == cell.grid_order


def test_the_simulation_is_of_the_right_attack() -> None:
    """A mistaken factor of sqrt 2 in the prediction would be 7 standard errors away."""
    cell = PaperCell("4", 20)
    run = accounting.simulate(cell, 1)
    assert run.error == pytest.approx(0.00408, abs=5e-6)
    assert abs(run.auc - cell.auc()) < 5 * run.error
    assert abs(run.auc - (1 + cell.advantage()) / 2) > 5 * run.error
    assert accounting.simulate(cell, 1) == run
    assert len(PREDICTED) == 15


def test_the_ends_of_figure_2a_and_its_growth_are_printed_and_ours(
    tables: tuple[Table, ...],
) -> None:
    rows = {row.quantity: row for row in tables[8].rows}
    ends = [rows[f"AUC, eps_acc = 4, k = {k}"] for k in (1, 20)]
    assert [row.paper for row in ends] == ["0.535", "0.640"]
    low, high = (2 * row.ours - 1 for row in ends)
    where = "growth of 2 AUC - 1 from k = 1 to 20, eps_acc = 4"
    assert rows[f"{where}: measured"].paper == "4.0"
    assert rows[f"{where}: measured"].ours == pytest.approx(high / low, rel=1e-12)
    assert rows[f"{where}: predicted"].paper == "4.5"
    # A million trials tell the theory's 4.386 from sqrt(20)'s 4.472 no better than at 1.5 standard
    # errors, but from the square-root of the AUC itself, or no growth, at many.
    many = rows[f"{where}: our simulation, T = 1000000"]
    assert many.tolerance == pytest.approx(5 * 0.058, abs=0.005)
    assert abs(many.ours - high / low) < many.tolerance  # type: ignore[operator]


def test_a_growth_has_the_error_of_a_ratio() -> None:
    """Against 4,000 simulated pairs of AUCs; the standard deviation of so many is within 6 %."""
    import numpy as np

    low, high, error = 0.6, 0.7, 0.004
    found = accounting.growth(accounting.Simulated(low, error), accounting.Simulated(high, error))
    draws = np.random.default_rng(8).normal([low, high], error, (4000, 2))
    ratios = (2 * draws[:, 1] - 1) / (2 * draws[:, 0] - 1)
    assert found.auc == pytest.approx(2.0)
    assert found.error == pytest.approx(ratios.std(), rel=0.06)


def test_files_hold_the_same_tables(written: Path, tables: tuple[Table, ...]) -> None:
    names = {f"{table.name}.{kind}" for table in tables for kind in ("txt", "csv")}
    names |= {f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")}
    assert {path.name for path in written.iterdir()} == names | {"accounting.json"}
    document = json.loads((written / "accounting.json").read_bytes())
    for table in tables:
        rows = list(csv.reader(io.StringIO((written / f"{table.name}.csv").read_text())))
        assert tuple(rows[0]) == (*COLUMNS, "formula")
        assert len(rows) - 1 == len(table.rows) == len(document[table.name]["rows"])
        for cells, row, member in zip(
            rows[1:], table.rows, document[table.name]["rows"], strict=True
        ):
            assert float(cells[3]) == row.ours == member["ours"]
            assert cells[5] == row.reason == member["reason"]
            assert cells[6] == row.formula == member["formula"]
            assert member["agrees"] is True
        assert table.title in (written / f"{table.name}.txt").read_text()


def test_figures_are_the_same_every_time(written: Path) -> None:
    for name, content in figures().items():
        assert (written / name).read_bytes() == content
        if name.endswith(".svg"):
            assert b"<dc:date>" not in content
            assert b"coalition" in content
        else:
            assert content.startswith(b"\x89PNG")
            assert b"matplotlib" not in content.lower()


def _wrong() -> tuple[Table, ...]:
    return (Table("t", "T", "s", (Comparison("q", "1", "2.00", 2.02),)),)


def test_a_missed_reference_has_its_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "tables", _wrong)
    result = RUNNER.invoke(app, ["accounting", "--json"])
    assert result.exit_code == command.EXIT_DISAGREES
    assert json.loads(result.stdout)["t"]["rows"][0]["agrees"] is False


def test_without_matplotlib_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(accounting, "tables", _wrong)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    folder = tmp_path / "results"
    result = RUNNER.invoke(app, ["accounting", "--output", str(folder)])
    assert isinstance(result.exception, RagauditError)
    assert "plots" in str(result.exception)
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="cannot write"):
        write_files(tmp_path / "file" / "results", {"a": b""})


# --- comparisons ---


@pytest.mark.parametrize(
    ("corrected", "ours", "agrees"),
    [("0.35", 0.3599, True), ("0.35", 0.361, False), ("12", 12.9, True), ("1e-6", 3e-6, False)],
)
def test_agreement_is_one_unit_of_the_last_digit(corrected: str, ours: float, agrees: bool) -> None:
    assert Comparison("q", None, corrected, ours).agrees is agrees
    assert Comparison("q", corrected, None, ours).agrees is agrees


def test_a_tolerance_replaces_the_digits() -> None:
    assert Comparison("q", None, "0.5000", 0.51, tolerance=0.02).agrees
    assert not Comparison("q", None, "0.5000", 0.53, tolerance=0.02).agrees


@pytest.mark.parametrize(("paper", "corrected"), [(None, None), ("NaN", None), (None, "Infinity")])
def test_comparisons_need_a_number(paper: str | None, corrected: str | None) -> None:
    with pytest.raises(MalformedError) as caught:
        Comparison("q", paper, corrected, 1.0)
    assert caught.value.where == "q"


def test_text_numbers_reasons_once_and_csv_quotes() -> None:
    rows = tuple(Comparison(f"q{i}", "1.0", "2.0", 2.0, 'because, "so"') for i in range(2))
    table = Table("t", "Title", "section 1", (*rows, Comparison("r", "2.0", None, 2.04)))
    lines = as_text(table).splitlines()
    assert lines[0] == "Title (section 1)"
    assert [line.endswith("[1]") for line in lines if line.startswith("q")] == [False, True, True]
    assert lines[-1] == '[1] because, "so"'
    assert "*" not in "".join(lines) and table.notes == ()
    parsed: list[Any] = list(csv.reader(io.StringIO(as_csv(table))))
    assert parsed[1][5] == 'because, "so"'
    assert parsed[3] == ["r", "2.0", "", "2.04", "0.040000000000000036", "", ""]


def test_what_the_paper_does_not_print_is_marked() -> None:
    rows = (
        Comparison("p", "1.0", None, 1.0),
        Comparison("q", "2.0", None, 2.0, formula="(3.4)"),
        Comparison("r", None, "3.0", 3.0),
    )
    table = Table("t", "Title", "section 1", rows, ("One is left out.",))
    text = as_text(table)
    assert [row.cells()[1] for row in rows] == ["1.0", "2.0*", ""]
    assert table.notes[0] == "* Not printed in the paper, evaluated from it: (3.4)."
    assert table.notes[1:] == (NOT_PRINTED, "One is left out.")
    assert text.endswith("\n".join(table.notes) + "\n")
    member: Any = as_json([table])["t"]
    assert member["notes"] == list(table.notes)
    assert [row["formula"] for row in member["rows"]] == ["", "(3.4)", ""]


def test_a_formula_needs_a_value() -> None:
    with pytest.raises(MalformedError, match=r"no value of \(3\.4\)"):
        Comparison("q", None, "1.0", 1.0, formula="(3.4)")


def test_a_rounding_error_is_shown_as_zero() -> None:
    row = Comparison("q", "0.0000", None, -4.944e-17)
    assert row.cells()[3:5] == ("0.00000", "+0")
    assert Comparison("q", "1e-9", None, 2e-9).cells()[3] == "2.000e-09"


PRINTED = {
    "lookup": {"3.16", "7.07", "14.14", "10.00"},
    "exact-against-closed-form": set(),
    "calibration": {"0.5", "1", "2", "4"},
    "auc": set(),
    "reading": {"3.2", "2e-5", "1.025", "1", "2", "4"},
}
"""Of these tables: all that the collusion paper prints in digits."""


def test_unmarked_digits_are_those_of_the_paper(tables: tuple[Table, ...]) -> None:
    for table in tables:
        if table.name in PRINTED:
            unmarked = {row.paper for row in table.rows if row.paper and not row.formula}
            assert unmarked == PRINTED[table.name], table.name
