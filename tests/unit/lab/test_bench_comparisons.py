"""Groth16 reports and published figures beside our results."""

from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.errors import InternalError, MalformedError, UnsupportedError
from ragaudit.lab.bench.measure import Measurement
from ragaudit.lab.bench.report import report
from ragaudit.lab.bench.suite import groth16, published
from ragaudit.lab.bench.suite.results import Results
from ragaudit.lab.bench.workload import Sizes

ROOT = Path(__file__).parents[3]
HEAD = "0123456789abcdef0123456789abcdef01234567"


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
            "circuit": "naive",
            "rows": 1000,
            "constraints": 8.7e5,
            "prove_seconds": 0.9,
            "setup_seconds": 0.4,
        }
    ],
    "published": [
        {
            "system": "a|b",
            "proves": "search",
            "setting": "one core",
            "figure": "50 s",
            "note": "none",
            "source": "https://example.org/other",
            "version_date": "2026-01-02",
            "opened": "2026-02-03",
        }
    ],
}


def test_the_papers_table_stands_beside_the_built_circuits() -> None:
    shown = published.render(FIGURES, [theirs(index="free", constraints=510_335)])
    assert "- source: https://example.org/paper\n- kind: a model\n" in shown
    assert "| naive | 1,000 | 870,000 | 510,335 |  | 0.9 s | 0.4 s |" in shown
    assert "| a\\|b | search | one core | 50 s | none | <https://example.org/other>" in shown
    assert published.render({}, []) == published.NONE


def test_a_figure_without_its_source_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "published.toml"
    assert published.load(path) == {}
    path.write_text('[[published]]\nsystem = "x"\nfigure = "1 s"\n')
    with pytest.raises(MalformedError, match="source"):
        published.load(path)
    path.write_text("[")
    with pytest.raises(MalformedError):
        published.load(path)
