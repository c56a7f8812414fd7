"""The matrix of benchmarks: its cases, what is stored, what the command renders."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bench_results import HEAD, INPUTS, proving, result
from ragaudit.encoding.errors import InternalError, MalformedError
from ragaudit.lab.bench import matrix, suite
from ragaudit.lab.bench.command import app
from ragaudit.lab.bench.matrix import UNCOMMITTED, Case, Results, commit, load_cases
from typer.testing import CliRunner

SCHEMA = json.loads((INPUTS / "results.schema.json").read_text())
MATRIX = """
[defaults]
dimension = 8
top_k = 3
sigma = "2"
records = 1
cores = "all"
runs = 1

[[case]]
scenario = ["prove", "verify"]
rows = [20, 30]
"""


# --- matrix ------------------------------------------------------------------------------------


def cases(text: str, folder: Path, cores: int = 2, max_rows: int | None = None) -> list[Case]:
    path = folder / "matrix.toml"
    path.write_text(text)
    return load_cases(path, cores, max_rows)


def test_lists_are_multiplied_out_and_sorted_by_rows(tmp_path: Path) -> None:
    found = cases(MATRIX, tmp_path)
    assert [(each.rows, each.scenario) for each in found] == [
        (20, "prove"), (20, "verify"), (30, "prove"), (30, "verify"),
    ]  # fmt: skip
    assert {each.cores for each in found} == {2}
    assert [each.rows for each in cases(MATRIX, tmp_path, max_rows=20)] == [20, 20]


def test_a_case_is_measured_once_and_only_with_cores_that_there_are(tmp_path: Path) -> None:
    more = MATRIX + '[[case]]\nscenario = "prove"\nrows = 20\ncores = ["all", 1, 2, 8]\n'
    found = [each for each in cases(more, tmp_path) if each.rows == 20]
    assert [(each.scenario, each.cores) for each in found] == [
        ("prove", 2), ("prove", 1), ("verify", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[case]]\nscenario = 'prove'\n", "members"),
        (MATRIX + "wide = true\n", "wide"),
        (MATRIX.replace('"prove", "verify"', '"sing"'), "sing"),
        (MATRIX.replace('"2"', "2"), "sigma is not text"),
        (MATRIX.replace("runs = 1", "runs = 0"), "runs is 0"),
        ("not toml", "matrix"),
    ],
)
def test_a_matrix_that_does_not_say_what_to_measure_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(MalformedError, match=message):
        cases(text, tmp_path)


def test_every_declared_case_is_a_command() -> None:
    found = load_cases(INPUTS / "matrix.toml", 2)
    assert {each.scenario for each in found} == set(SCHEMA_SCENARIOS)
    for case in found:
        command = [*case.arguments(Path("kept")), "--help"]
        assert CliRunner().invoke(app, command).exit_code == 0, command


SCHEMA_SCENARIOS = SCHEMA["$defs"]["report"]["properties"]["scenario"]["enum"]


# --- results -----------------------------------------------------------------------------------


def test_results_are_stored_and_replaced_by_case(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "results.json"
    (case,) = [each for each in cases(MATRIX, tmp_path, max_rows=20) if each.scenario == "prove"]
    first = proving(20, 1.0, dimension=8)
    first["sizes"]["top_k"] = 3
    other = proving(1000, 1.0)
    Results((other,)).with_result(case, first).save(path)
    jsonschema.validate(json.loads(path.read_text()), SCHEMA)
    found = Results.load(path)
    assert found.of(case) == first
    second = {**first, "commit": HEAD[::-1]}
    assert found.with_result(case, second).results == (other, second)


def test_only_a_clean_commit_counts_as_measured(tmp_path: Path) -> None:
    (case, *_) = cases(MATRIX, tmp_path)
    stored = proving(20, 1.0, dimension=8)
    stored["sizes"]["top_k"] = 3
    assert Results((stored,)).has(case, HEAD)
    assert not Results((stored,)).has(case, HEAD[::-1])
    changed = HEAD + UNCOMMITTED
    assert not Results(({**stored, "commit": changed},)).has(case, changed)
    assert not Results().has(case, HEAD)


@pytest.mark.parametrize("text", ["", "[]", '{"format": "other", "results": []}'])
def test_a_file_that_holds_no_results_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(MalformedError):
        Results.load(tmp_path / "results.json")
    assert Results.load(tmp_path / "none.json") == Results()


def test_a_folder_without_history_has_no_commit(tmp_path: Path) -> None:
    assert commit(tmp_path) == "unknown" + UNCOMMITTED


def test_a_failed_measurement_keeps_what_was_measured_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = cases(MATRIX, tmp_path)
    told: list[str] = []

    def measured(case: Case, folder: Path) -> dict[str, Any]:
        if case.rows == 30:
            raise InternalError("exit status 1", where=str(case))
        found = result(case.scenario, "x", case.rows, 1.0, dimension=8)
        found["sizes"]["top_k"] = 3
        return found

    monkeypatch.setattr(matrix, "_measured", measured)
    path = tmp_path / "results.json"
    with pytest.raises(InternalError):
        matrix.run_cases(several, path, HEAD, told.append, tmp_path)
    assert [each["sizes"]["rows"] for each in Results.load(path).results] == [20, 20]
    told.clear()
    with pytest.raises(InternalError):
        matrix.run_cases(several, path, HEAD, told.append, tmp_path)
    assert [line.endswith("stored") for line in told] == [True, True]


# --- the document ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_measures_stores_and_renders(tmp_path: Path) -> None:
    inputs, output = tmp_path / "inputs", tmp_path / "output"
    inputs.mkdir()
    for name in ("targets.toml", "document.md", "bounds.toml"):
        (inputs / name).write_text((INPUTS / name).read_text())
    (inputs / "matrix.toml").write_text(MATRIX)
    options = ["all", "--inputs", str(inputs), "--output", str(output), "--max-rows", "20"]
    found = CliRunner().invoke(app, options)
    assert found.exit_code == 0, found.output
    stored = json.loads((output / "results.json").read_text())
    jsonschema.validate(stored, SCHEMA)
    assert [each["scenario"] for each in stored["results"]] == ["prove", "verify"]
    made = {each.name: each.read_bytes() for each in output.rglob("*.*") if each.is_file()}
    again = CliRunner().invoke(app, [*options, "--render-only"])
    assert again.exit_code == 0, again.output
    assert made == {each.name: each.read_bytes() for each in output.rglob("*.*") if each.is_file()}
    assert {"benchmarks.md", "rows.svg", "undecided.svg", "memory.svg", "cores.svg"} <= set(made)


def test_a_template_that_names_nothing_known_is_refused(tmp_path: Path) -> None:
    empty = suite.Inputs("$nothing", [], Results(), [], {}, [], {})
    with pytest.raises(MalformedError, match="nothing"):
        suite.render_document(empty, tmp_path / "document.md", tmp_path)
    assert not (tmp_path / "document.md").exists()


def test_the_committed_document_is_what_the_stored_results_render_to(tmp_path: Path) -> None:
    """`make benchmarks` writes both; `ragaudit bench all --render-only` renders again."""
    places = suite.Places.of(INPUTS, None)
    if not places.measured.exists():
        assert not places.document.exists()
        pytest.skip("no results are stored")
    stored = json.loads(places.measured.read_text())
    jsonschema.validate(stored, SCHEMA)
    assert stored["results"]
    made = suite.Places(INPUTS, places.results, tmp_path / "benchmarks.md", tmp_path / "benchmarks")
    suite.render(made)
    assert made.document.read_text() == places.document.read_text()
    for figure in sorted(made.figures.iterdir()):
        committed = places.figures / figure.name
        assert figure.read_bytes() == committed.read_bytes(), figure.name
        assert committed.stat().st_size < 150_000
