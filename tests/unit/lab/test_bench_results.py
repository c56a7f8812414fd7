"""The matrix of benchmarks: its cases, what is stored, and what stored results are shown as."""

import json
import math
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bench_results import HEAD, INPUTS, outcome, proving, result
from ragaudit.encoding.errors import InternalError, MalformedError, UnsupportedError
from ragaudit.lab.bench import groth16, matrix, profiles, suite
from ragaudit.lab.bench.command import app
from ragaudit.lab.bench.harness import Measurement, report
from ragaudit.lab.bench.matrix import (
    UNCOMMITTED,
    Case,
    Results,
    commit,
    fit,
    load_cases,
    local_exponent,
)
from ragaudit.lab.bench.workload import Sizes
from typer.testing import CliRunner

# --- fitting -----------------------------------------------------------------------------------


def test_an_exact_power_law_is_found_exactly() -> None:
    found = fit([(x, 3 * x**0.75) for x in (10.0, 100.0, 1000.0)])
    assert found is not None
    assert found.exponent == pytest.approx(0.75)
    assert found.factor == pytest.approx(3)
    assert found.half_width == pytest.approx(0, abs=1e-9)


def test_the_interval_is_students_t_for_the_scatter() -> None:
    """x = 1, e, e^2; log y = 0, 1.5, 1.5: slope 0.75, residuals -1/4, 1/2, -1/4.

    Variance (1/16 + 1/4 + 1/16) / 1 = 3/8 over a spread of 2; t(0.975, 1) = tan(0.475 pi).
    """
    points = [(1.0, 1.0), (math.e, math.exp(1.5)), (math.e**2, math.exp(1.5))]
    found = fit(points)
    assert found is not None
    assert found.exponent == pytest.approx(0.75)
    assert found.half_width == pytest.approx(math.tan(0.475 * math.pi) * math.sqrt(3 / 16))


def test_two_points_have_no_interval_and_one_no_line() -> None:
    found = fit([(1.0, 8.0), (2.0, 4.0)])
    assert found is not None
    assert (found.exponent, found.half_width) == (pytest.approx(-1), None)  # type: ignore[comparison-overlap]
    assert fit([(1.0, 8.0)]) is None
    assert fit([(2.0, 8.0), (2.0, 9.0)]) is None
    assert local_exponent([(1.0, 8.0)]) is None


def test_the_last_step_is_between_the_two_largest() -> None:
    assert local_exponent([(100.0, 90.0), (1.0, 5.0), (10.0, 9.0)]) == pytest.approx(1)


# --- series, tables, profiles --------------------------------------------------------------------


def test_series_collect_what_varies() -> None:
    found = Results(
        (
            proving(1000, 0.4, undecided=100.0),
            proving(1000, 0.9, cores=1, undecided=100.0),
            proving(1000, 0.1, sigma="4", undecided=10.0),
            proving(100, 0.1, undecided=90.0),
        )
    )
    goals = [
        each for each in matrix.load_targets(INPUTS / "targets.toml") if each.scenario == "prove"
    ]
    by_rows = {each.name: each.points for each in matrix.against_rows(goals, found)}
    assert by_rows["prove one record"] == ((100.0, 0.1), (1000.0, 0.4))
    by_undecided = {each.name: each.points for each in matrix.against_undecided(found, 1000, 2)}
    assert by_undecided["prove one record"] == ((10.0, 0.1), (100.0, 0.4))
    (by_cores,) = matrix.against_cores(found)
    assert by_cores.points == ((1.0, 0.9), (2.0, 0.4))
    shown = suite.cores_table([by_cores])
    assert "| 1 core | 2 cores | speed-up | exponent |" in shown
    assert "| 900 ms | 400 ms | 2.25 | -1.17 |" in shown


def test_tables_have_a_cell_for_every_heading() -> None:
    shown = suite.growth_table(
        [matrix.Series("a", ((10.0, 1.0), (100.0, 10.0))), matrix.Series("b", ((10.0, 64.0),))],
        "N",
        {"b": "bytes"},
    )
    lines = shown.splitlines()
    assert {line.count("|") for line in lines} == {7}
    assert lines[2] == "| a | 1.00 s | 10.0 s | 1.00 | two points | 1.00 |"
    assert lines[3] == "| b | 64 bytes |  |  |  |  |"


PERF = """# To display the perf.data header info, please use --header/--header-only options.
#
# Overhead;Shared Object;Symbol
 38.14% ;_core.abi3.so       ;[.] <&a::FieldElement as <&a::FieldElement as core::ops::Mul>::mul
  9.62% ;_core.abi3.so       ;[.] curve25519_dalek::backend::serial::u64::scalar::Scalar52::mul
  2.00% ;libc.so.6           ;[.] __memmove_avx512_unaligned_erms
  1.99% ;libc.so.6           ;[.] rare
"""


def test_perfs_report_is_read_down_to_two_percent() -> None:
    found = profiles.parse(PERF)
    assert [(share, library) for share, library, _ in found] == [
        (38.14, "_core.abi3.so"), (9.62, "_core.abi3.so"), (2.0, "libc.so.6"),
    ]  # fmt: skip
    assert [name for _, _, name in found] == [
        "FieldElement::mul", "Scalar52::mul", "__memmove_avx512_unaligned_erms",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("symbol", "short"),
    [
        (
            "<&dalek::avx2::Element4 as <&dalek::Element4 as Mul>::mul::__X__>::_impl_mul",
            "Element4::mul",
        ),
        ("hashbrown::raw::RawTable<(K, V), A>::reserve_rehash", "RawTable::reserve_rehash"),
        ("dalek::scalar::<impl dalek::u64::Scalar52>::pack", "scalar::pack"),
        ("main", "main"),
    ],
)
def test_functions_have_short_names(symbol: str, short: str) -> None:
    ((_, _, name),) = profiles.parse(f" 50.00% ;core.so ;[.] {symbol}\n")
    assert name == short


def test_what_is_not_met_says_what_bounds_it_and_shows_its_profile(tmp_path: Path) -> None:
    taken = profiles.Profile("index", 1000, HEAD, "ragaudit bench prove", profiles.parse(PERF))
    profiles.save(tmp_path / "profiles.json", [taken])
    assert profiles.load(tmp_path / "profiles.json") == [taken]
    assert profiles.load(tmp_path / "none.json") == []
    (tmp_path / "bounds.toml").write_text(
        '[[bound]]\nwhat = "index"\nrows = 1000\nwhy = "Group additions."\n'
    )
    known = profiles.bounds(tmp_path / "bounds.toml")
    shown = profiles.unmet([outcome(1.0)], [taken], known)
    assert "### index, N = 1,000\n\nGroup additions." in shown
    assert "| 9.6 % |" in shown
    assert "No profile is stored." in profiles.unmet([outcome(1.0)], [], {})
    assert "is met" in profiles.unmet([outcome(0.1)], [taken], known)
    (tmp_path / "profiles.json").write_text('[{"what": "x"}]')
    with pytest.raises(MalformedError):
        profiles.load(tmp_path / "profiles.json")


def test_every_target_is_measured_by_the_matrix() -> None:
    declared = load_cases(INPUTS / "matrix.toml", 2)
    for target in matrix.load_targets(INPUTS / "targets.toml"):
        rows = {
            case.rows
            for case in declared
            if target.applies(
                {
                    "scenario": case.scenario,
                    "cores": case.cores,
                    "sizes": {
                        "dimension": case.dimension,
                        "top_k": case.top_k,
                        "records": case.records,
                        "sigma": case.sigma,
                    },
                }
            )
        }
        assert set(target.most) <= rows, target.what


def test_a_target_is_met_by_time_and_memory() -> None:
    assert outcome(0.2).met is True
    assert outcome(0.21).met is False
    assert outcome(0.1, peak=1025.0).met is False


def test_a_target_that_was_not_measured_is_neither() -> None:
    (target, *_) = matrix.load_targets(INPUTS / "targets.toml")
    found = list(matrix.outcomes([target], Results()))
    assert [each.met for each in found] == [None] * 4
    assert suite.reached(found).count("not measured") == 4


def test_other_sizes_do_not_count_for_a_target() -> None:
    (target,) = [
        each
        for each in matrix.load_targets(INPUTS / "targets.toml")
        if each.what == "prove one record"
    ]
    for other in (
        proving(1000, 1.0, sigma="0.25"),
        proving(1000, 1.0, cores=1),
        proving(1000, 1.0, records=2),
        proving(1000, 1.0, dimension=256),
    ):
        assert not target.applies(other)
    assert target.applies(proving(1000, 1.0))


def test_a_batch_counts_for_each_of_its_records() -> None:
    target = matrix.Target("v", "verify", "v", "seconds a record", {10: 1.0}, records=100)
    assert target.value(result("verify", "v", 10, 50.0, records=100)) == 0.5
    with pytest.raises(MalformedError, match="no measurement"):
        target.value(result("verify", "w", 10, 50.0, records=100))


def test_targets_are_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "targets.toml"
    for text in ("", "[[target]]\nwhat = 'x'\n", '[[target]]\nunit = "hours"\nmost = {1 = 2}\n'):
        path.write_text(text)
        with pytest.raises(MalformedError, match="targets"):
            matrix.load_targets(path)


ROOT = Path(__file__).parents[3]


def theirs(**changes: Any) -> dict[str, Any]:
    """As `groth16-comparison --json` prints it, of made-up numbers."""
    measured = {
        "setup_seconds": 30.0, "setup_processor_seconds": None, "synthesis_seconds": 2.0,
        "prove_seconds": 20.0, "prove_processor_seconds": None,
        "prove_microseconds_per_constraint": 10.0, "setup_microseconds_per_constraint": 15.0,
        "verify_seconds": 0.002, "proof_bytes": 128, "proof_bytes_uncompressed": 256,
        "proving_key_bytes": 2**30, "verifying_key_bytes": 500, "setup_peak_bytes": None,
        "prove_peak_bytes": 2**31,
    }  # fmt: skip
    return {
        "schema": "ragaudit/groth16-comparison/1", "circuit": "naive", "index": "committed",
        "rows": 1000, "dimension": 384, "top_k": 5, "noise_bits": 24, "noise_deviation": 3.0,
        "constraints": 2_000_000, "constraints_by_part": {"scores": 2_000_000},
        "witness_variables": 1, "public_inputs": 1, "domain_size": 2**21, "rows_checked": 1000,
        "threads": 2, "assembly": False, "measured": measured, **changes,
    }  # fmt: skip


def ours(scenario: str, name: str, seconds: float, cores: int = 2) -> dict[str, Any]:
    found = Measurement(name, seconds, seconds, seconds, 5)
    return report(scenario, Sizes(1000, 384, 5, "2"), cores, [found])


def test_groth16_is_shown_beside_our_argument_of_the_same_sizes() -> None:
    reports = [theirs(), theirs(circuit="optimised", measured=None), theirs(rows=100)]
    results = Results(
        (
            ours("prove", "prove one record", 0.05),
            ours("prove", "prove one record", 9.0, cores=1),
            ours("verify", "verify one batch of records", 0.004),
        )
    )
    lines = groth16.render(reports, results).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert "×" not in lines[2]  # nothing of ours at 100 rows
    assert "| 400 × | 2.00 ms | 0.500 × | 128 bytes | 1,024 MiB | 2,048 MiB | 2 |" in lines[3]
    assert "counted only" in lines[4]
    assert groth16.render([], results) == groth16.NONE


def test_declared_circuits_are_multiplied_out() -> None:
    found = groth16.circuits(ROOT / "benchmarks" / "matrix.toml")
    assert len(found) == len(set(found)) >= 2
    assert {each.circuit for each in found} == {"naive", "optimised"}


@pytest.mark.parametrize("text", ["[[groth16]]\nrows = 5\n", "groth16 = 3\n", "["])
def test_circuits_that_are_not_declared_whole_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "matrix.toml").write_text(text)
    with pytest.raises(MalformedError, match="groth16"):
        groth16.circuits(tmp_path / "matrix.toml")


def test_reports_are_stored_one_by_one_and_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = [groth16.Circuit("naive", "free", rows, 384, 5, 2) for rows in (100, 1000)]

    def measured(circuit: groth16.Circuit, root: Path) -> dict[str, Any]:
        if circuit.rows == 1000:
            raise InternalError("exit status 1", where=str(root))
        return theirs(rows=circuit.rows, index="free")

    monkeypatch.setattr(groth16, "_measured", measured)
    path, told = tmp_path / "results" / "groth16.json", list[str]()
    for _ in range(2):
        with pytest.raises(InternalError):
            groth16.run(several, path, tmp_path, HEAD, told.append)
    (stored,) = groth16.load(path)
    assert (stored["commit"], stored["rows"]) == (HEAD, 100)
    assert [line.endswith("stored") for line in told] == [False, True]


def test_without_the_crate_there_is_no_comparison(tmp_path: Path) -> None:
    circuit = groth16.Circuit("naive", "free", 100, 384, 5, 2)
    with pytest.raises(UnsupportedError, match="groth16-comparison"):
        groth16.run([circuit], tmp_path / "groth16.json", tmp_path, HEAD, print)


@pytest.mark.parametrize("text", ["{}", '[{"schema": "another"}]', "[", "[1]"])
def test_other_files_are_not_taken_for_reports(tmp_path: Path, text: str) -> None:
    (tmp_path / "groth16.json").write_text(text)
    with pytest.raises(MalformedError):
        groth16.load(tmp_path / "groth16.json")
    assert groth16.load(tmp_path / "none.json") == []


FIGURES: dict[str, Any] = {
    "source_of_table1": {"source": "https://example.org/paper", "kind": "a model"},
    "table1": [
        {
            "circuit": "naive", "rows": 1000, "constraints": 8.7e5, "prove_seconds": 0.9,
            "setup_seconds": 0.4,
        }
    ],
    "published": [
        {
            "system": "a|b", "proves": "search", "setting": "one core", "figure": "50 s",
            "note": "none", "source": "https://example.org/other", "version_date": "2026-01-02",
            "opened": "2026-02-03",
        }
    ],
}  # fmt: skip


def test_the_papers_table_stands_beside_the_built_circuits() -> None:
    shown = suite.render_published(FIGURES, [theirs(index="free", constraints=510_335)])
    assert "- source: https://example.org/paper\n- kind: a model\n" in shown
    assert "| naive | 1,000 | 870,000 | 510,335 |  | 0.9 s | 0.4 s |" in shown
    assert "| a\\|b | search | one core | 50 s | none | <https://example.org/other>" in shown
    assert suite.render_published({}, []) == suite.NONE


def test_a_figure_without_its_source_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "published.toml"
    assert suite.load_published(path) == {}
    path.write_text('[[published]]\nsystem = "x"\nfigure = "1 s"\n')
    with pytest.raises(MalformedError, match="source"):
        suite.load_published(path)
    path.write_text("[")
    with pytest.raises(MalformedError):
        suite.load_published(path)


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
    for name in ("targets.toml", "document.md", "bounds.toml", "once.toml"):
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
    assert {"measurements.md", "rows.svg", "undecided.svg", "memory.svg", "cores.svg"} <= set(made)


def test_a_template_that_names_nothing_known_is_refused(tmp_path: Path) -> None:
    empty = suite.Inputs("$nothing", [], Results(), [], {}, [], {})
    with pytest.raises(MalformedError, match="nothing"):
        suite.render_document(empty, tmp_path / "document.md", tmp_path)
    assert not (tmp_path / "document.md").exists()


def test_the_documents_figures_are_those_of_the_stored_results(tmp_path: Path) -> None:
    """`make benchmarks` stores results and plots; `make docs` renders the document again."""
    places = suite.Places.of(INPUTS, None)
    stored = json.loads(places.measured.read_text())
    jsonschema.validate(stored, SCHEMA)
    assert stored["results"]
    made = suite.Places(INPUTS, places.results, tmp_path / "x.md", tmp_path / "benchmarks")
    suite.render(made)
    for figure in sorted(made.figures.iterdir()):
        committed = places.figures / figure.name
        assert figure.read_bytes() == committed.read_bytes(), figure.name
        assert committed.stat().st_size < 150_000
    page = (INPUTS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    stated = re.findall(r"^(\| [^|]+ \| [\d,]+ \| .*) \|$", page, re.MULTILINE)
    rendered = made.document.read_text().splitlines()
    assert len(stated) > 10
    assert [line for line in stated if not any(each.startswith(line) for each in rendered)] == []
