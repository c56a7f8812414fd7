"""Every scenario runs at small sizes and says what it is compared with; no time is asserted."""

import json
import os
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from for_each import for_each
from ragaudit import core
from ragaudit.cli.processes import ServiceFailed
from ragaudit.encoding.errors import InternalError, MalformedError
from ragaudit.lab.bench.answering import InProcess
from ragaudit.lab.bench.auditing import AuditedWindow
from ragaudit.lab.bench.command import app
from ragaudit.lab.bench.workload import Sizes, Workload
from ragaudit.lab.demo import services
from ragaudit.lab.scenario.accounts import Asked
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.verifier.terms import Terms
from typer.testing import CliRunner

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "benchmarks" / "results.schema.json").read_text())
SIZES = ["--rows", "20", "--dim", "8", "--top-k", "3"]
SMALL = [*SIZES, "--sigma", "2", "--runs", "2"]
OF_RECORDS = {"index": 1, "prove": 1, "verify": 4, "reference": 1, "answer": 1}


def report(scenario: str, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [scenario, *options, "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(found, {"$ref": "#/$defs/report", "$defs": SCHEMA["$defs"]})
    return found


@pytest.mark.parametrize("scenario", OF_RECORDS)
def test_scenarios_report_medians_memory_and_a_baseline(scenario: str) -> None:
    records = OF_RECORDS[scenario]
    batch = ["--records", str(records)] if records > 1 else []
    found = report(scenario, *SMALL, *batch)
    assert found["scenario"] == scenario
    expected = {"rows": 20, "dimension": 8, "top_k": 3, "sigma": "2", "records": records}
    assert found["sizes"] == {**expected, "queries": 100}
    baseline, *others = found["measurements"]
    assert baseline["ratio"] is None
    assert others
    for each in others:
        assert each["baseline"] == baseline["name"]
        per_record = each["median"] / each["records"]
        assert each["ratio"] == pytest.approx(per_record / baseline["median"])
        assert each["runs"] == 2
        assert each["lowest"] <= each["median"] <= each["highest"]
        assert each["name"].startswith("of it: ") or each["peak_mib"] > 0
    assert found["peak_memory_mib"] == max(each["peak_mib"] or 0 for each in found["measurements"])


def test_an_index_is_committed_and_proven_then_verified() -> None:
    found = {each["name"]: each for each in report("index", *SIZES, "--runs", "1")["measurements"]}
    whole = found["commit the rows and prove the index"]
    halves = (found["of it: commit"], found["of it: prove"])
    assert whole["median"] == pytest.approx(sum(each["median"] for each in halves), rel=0.1)
    assert whole["size_bytes"] == found["verify the index proof"]["size_bytes"] > 0


def test_proofs_are_of_the_size_that_their_undecided_rows_fix() -> None:
    """docs/spec/04-arguments.md: 32 (48 + 3m + 2k) bytes."""
    _, committing, proving = report("prove", *SMALL)["measurements"]
    assert committing["name"] == "commit the rows, once for an index"
    u, d = int(proving["details"]["undecided"]), 8
    m = u.bit_length()  # ceil(log2(u + 1))
    k = (u + d + 3 * m + 8 - 1).bit_length()
    assert proving["size_bytes"] == 32 * (48 + 3 * m + 2 * k)


def test_making_the_commitments_is_no_part_of_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where it takes longer than a first run may that does not count, either."""
    honest = core.commit_rows

    def slow(*rows: Any) -> bytes:
        time.sleep(1.5)
        return honest(*rows)

    monkeypatch.setattr(core, "commit_rows", slow)
    _, committing, proving = report("prove", *SMALL, "--seconds", "1")["measurements"]
    assert (committing["runs"], committing["warmed_up"]) == (1, False)
    assert committing["lowest"] >= 1.5 > proving["highest"]


def test_little_noise_leaves_every_row_undecided() -> None:
    _, checking, cold = report(
        "verify", *SIZES, "--sigma", "0.05", "--records", "3", "--runs", "1"
    )["measurements"]
    assert checking["details"] == cold["details"]
    assert checking["details"] == {"above": 0, "undecided": 20, "distinct": 3}


def test_the_steps_of_an_answer_add_up_to_its_whole() -> None:
    measured = report("answer", *SMALL, "--runs", "1")["measurements"]
    whole = next(each for each in measured if each["name"] == "answer one query, nothing durable")
    steps = [each["median"] for each in measured if each["name"].startswith("of it: ")]
    assert len(steps) == 10
    assert sum(steps) == pytest.approx(whole["median"], rel=0.2)
    assert [each["name"] for each in measured][:2] == [
        "NumPy exact search, bare",
        "FAISS exact search, bare",
    ]


def test_an_audit_measures_both_sides_once() -> None:
    found = report("audit", *SIZES, "--sigma", "4", "--records", "6")
    drawing, keys, proving, checking = found["measurements"]
    assert drawing["ratio"] is None
    for each in (keys, proving, checking):
        assert (each["records"], each["runs"], each["warmed_up"]) == (6, 1, False)
        assert each["baseline"] == drawing["name"]
    assert proving["size_bytes"] > 6 * 32 * 48


def test_an_audit_whose_proofs_do_not_hold_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = AuditedWindow.prove

    def forged(window: AuditedWindow, asked: Asked) -> bytes:
        proof = honest(window, asked)
        return proof[:-1] + bytes([proof[-1] ^ 1])

    monkeypatch.setattr(AuditedWindow, "prove", forged)
    found = CliRunner().invoke(app, ["audit", *SIZES, "--sigma", "4", "--records", "2"])
    assert isinstance(found.exception, InternalError)
    assert "check selection" in str(found.exception)


OVER_HTTP = ["answer-http", "--rows", "60", "--dim", "256"]


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_answering_over_http_with_more_runs_than_an_account_has_queries() -> None:
    baseline, answer, proven, *busy = report(*OVER_HTTP, "--runs", "41")["measurements"]
    assert (baseline["runs"], answer["runs"], proven["runs"]) == (41, 41, 41)
    assert answer["baseline"] == baseline["name"]
    assert [each["records"] for each in busy] == [41, 8 * 41]
    assert all(each["median"] > 0 for each in busy)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_window_over_http_that_the_verifier_refuses_is_told_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(services, "TERMS", Terms.of({}))  # which want a larger coalition
    result = CliRunner().invoke(app, [*OVER_HTTP, "--runs", "1"])
    assert isinstance(result.exception, ServiceFailed)
    assert "refused: " in str(result.exception)
    assert "coalition_max" in str(result.exception)


def test_the_table_names_the_baseline_and_the_cores() -> None:
    result = CliRunner().invoke(app, ["verify", *SMALL, "--runs", "1", "--cores", "1"])
    assert result.exit_code == 0
    assert "baseline" in result.stdout
    assert f"1 of {os.cpu_count()} cores" in result.stdout
    assert "undecided" in result.stdout


def test_rows_are_kept_for_other_processes(tmp_path: Path) -> None:
    keep = ["--keep", str(tmp_path / "kept")]
    report("index", *SMALL, *keep)
    names = sorted(each.name.split("-")[0] for each in (tmp_path / "kept").iterdir())
    assert names == ["blindings", "commitments", "rows"]
    before = {each.name: each.read_bytes() for each in (tmp_path / "kept").iterdir()}
    report(
        "verify", *SMALL, "--runs", "1", *keep
    )  # a proof over other commitments would not verify
    assert before == {each.name: each.read_bytes() for each in (tmp_path / "kept").iterdir()}


def test_k_must_be_below_n() -> None:
    result = CliRunner().invoke(app, ["prove", "--rows", "3", "--top-k", "3"])
    assert isinstance(result.exception, MalformedError)
    assert "below N" in str(result.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cores", "4096"], "4096 cores"),
        (["--sigma", "0.0001"], "sigma out of range"),
        (["--sigma", "two"], "not a decimal"),
    ],
)
def test_what_the_machine_or_the_sampler_cannot_do_is_refused(
    options: list[str], message: str
) -> None:
    result = CliRunner().invoke(app, ["prove", *SIZES, *options])
    assert isinstance(result.exception, MalformedError)
    assert message in str(result.exception)


@for_each(
    "options",
    [
        ["index", "--rows", "1"],
        ["index", "--rows", str(2**24 + 1)],
        ["index", "--dim", "4097"],
        ["index", "--records", "2"],
        ["verify", "--records", "0"],
        ["prove", "--runs", "0"],
        ["prove", "--cores", "0"],
        ["answer", "--seconds", "-1"],
        ["audit", "--runs", "2"],
        ["answer-http", "--keep", "folder"],
        ["all", "--max-rows", "1"],
    ],
)
def test_options_out_of_range_are_refused(options: list[str]) -> None:
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 2, result.output


BASELINES = {
    "enumerate randomized response": 6,
    "round to 10,000 cells, enumerate": 6,
    "nested Monte Carlo, 1,000 x 1,000": 6,
}


def test_every_bound_stands_beside_its_baseline() -> None:
    result = CliRunner().invoke(app, ["bounds", "--domain", "12", "--runs", "1", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["scenario"] == "bounds"
    assert found["sizes"] == {"domain": 12}
    measured = {each["name"]: each for each in found["measurements"]}
    assert {name for name, each in measured.items() if each["baseline"] is None} == set(BASELINES)
    for baseline, count in BASELINES.items():
        beside = [each for each in measured.values() if each["baseline"] == baseline]
        assert len(beside) == count
        for each in beside:
            assert each["ratio"] == pytest.approx(each["median"] / measured[baseline]["median"])


def test_the_table_names_the_domain() -> None:
    result = CliRunner().invoke(app, ["bounds", "--domain", "9", "--runs", "1"])
    assert result.exit_code == 0, result.output
    assert "bounds: m = 9" in result.stdout
    assert CliRunner().invoke(app, ["bounds", "--domain", "2"]).exit_code == 2


def test_every_reply_is_another_record_and_fits_its_receipt(tmp_path: Path) -> None:
    bench = InProcess(Workload(Sizes(60, 16, 3, "2", queries=40)), tmp_path, queries=42)
    files = [ReceiptFile.parse(bench.answer()) for _ in range(42)]
    bench.close()
    public = [each.public for each in files]
    records = [each.query for each in public]
    assert [(each.slot, each.counter) for each in records[38:]] == [
        (0, 38),
        (0, 39),
        (1, 0),
        (1, 1),
    ]
    assert [each.index for each in public] == list(range(2, 44))  # after two registrations
    for number, file in enumerate(files):
        private = file.private
        assert file.request == Request(f"Question number {number}?", 3)
        file.verify_answer_digest()
        assert 1 <= len(private.selected) <= 3
        assert [each.position for each in private.rows] == list(private.selected)
        assert [each.id for each in private.rows] == [str(at) for at in private.selected]
