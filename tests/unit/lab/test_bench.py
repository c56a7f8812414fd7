"""Measurements: how one is made, logged, and what each suite measures."""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from for_each import for_each
from ragaudit import core
from ragaudit.cli.processes import ServiceFailed
from ragaudit.encoding.errors import InternalError, MalformedError
from ragaudit.lab.bench import generation, harness, sidecar
from ragaudit.lab.bench.answering import InProcess
from ragaudit.lab.bench.auditing import AuditedWindow
from ragaudit.lab.bench.coalition import CoalitionSizes, coalition
from ragaudit.lab.bench.command import app
from ragaudit.lab.bench.harness import (
    Measurement,
    digits,
    duration,
    measure,
    measure_once,
    silent,
    summarise,
)
from ragaudit.lab.bench.load import Answered, Spent, values
from ragaudit.lab.bench.sidecar import Latency, SidecarRun
from ragaudit.lab.bench.workload import NUMPY, Sizes, Workload
from ragaudit.lab.demo import services
from ragaudit.lab.scenario.opening import Asked
from ragaudit.ledger.log.database import open_engine, write_transaction
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.verifier.engines import engine
from ragaudit.verifier.terms import Terms
from sqlalchemy import inspect, text
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
    assert [each["records"] for each in busy] == [41, 41, 8 * 41, 8 * 41]
    assert all(each["median"] > 0 for each in busy)
    for route, prover in (busy[:2], busy[2:]):
        assert "FastAPI" in route["name"] and prover["baseline"] == route["name"]


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


GENERATION_SIZES = generation.GenerationSizes(
    rows=20, dimension=3, records=6, charged=4, uses=2, group=3
)


def test_what_is_charged_is_within_the_budgets_and_due() -> None:
    charges = generation.Charges(GENERATION_SIZES)
    statement, charged, _ = charges.budget
    assert len(charged) == len(statement.charges) // 32 == 6
    assert sum(map(len, charged)) == 24
    group, due, _ = charges.group
    assert len(group.entries) == len(due) == 3
    # The float baseline decides as the integers do: these scores are below 2^24.
    assert charges.score()[0].nonzero()[0].tolist() == due[0]
    engine("core").verify_charges([(group, charges.prove_group())])


def test_both_arguments_are_measured_beside_the_bare_decision() -> None:
    found = {each.name: each for each in generation.generation(GENERATION_SIZES, 1, 0.0)}
    assert found[generation.PROVE_BUDGET].baseline == generation.COUNT
    assert found[generation.VERIFY_GROUP].baseline == generation.SCORE
    # mx = 4, my = 5, k = 6; mx = 2, my = 5, k = 6.
    assert found[generation.PROVE_BUDGET].size_bytes == 32 * (9 + 2 + 27 + 12)
    assert found[generation.PROVE_GROUP].size_bytes == 32 * (3 * 16 + 30 + 13 + 21 + 12)


def test_the_command_reports() -> None:
    arguments = ["generation", "--rows", "20", "--dim", "3", "--records", "6", "--charged", "4"]
    arguments += ["--group", "3", "--runs", "1", "--seconds", "0", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["scenario"] == "generation"
    names = [each["name"] for each in report["measurements"]]
    assert len(names) == 12
    # The steps are parts of the whole.
    place = names.index(generation.LOG)
    steps = report["measurements"][place + 1 : place + 5]
    assert all(each["name"].startswith("of it: ") for each in steps)
    assert sum(each["lowest"] for each in steps) < report["measurements"][place]["highest"]


def test_growth_is_beside_the_base() -> None:
    base = generation.generation(GENERATION_SIZES, 1, 0.0)
    found = {each.name: each for each in generation.growth(GENERATION_SIZES, base, 1, 0.0)}
    assert len(found) == 6 + 2 + 2 + 4
    assert found["prove the budgets, R doubled"].baseline == generation.PROVE_BUDGET
    assert found["verify a group of charges, T doubled"].baseline == generation.VERIFY_GROUP
    assert all(each.ratio is not None and each.ratio > 0 for each in found.values())


def test_what_a_question_is_charged_is_committed_to() -> None:
    charges = generation.Charges(GENERATION_SIZES)
    (due, *_) = charges.score()
    positions = np.flatnonzero(due).tolist()
    assert charges.charge() == core.commit_selection(positions, bytes(32))


def test_charging_goes_through_the_provers_code() -> None:
    charges = generation.Charges(GENERATION_SIZES)
    with generation.prover(charges.work, 4, 2, 1) as desk:
        first, second = desk.charge(), desk.charge()
    bodies = (first.body, second.body)
    assert [body.number for body in bodies] == [0, 1]
    assert bodies[0].charge == core.commit_selection(first.rows.tolist(), first.blinding)
    assert 0 < len(first.rows) <= 20


def test_a_small_log_passes_every_check_that_is_measured() -> None:
    options = ["log", "--records", "40", "--accounts", "3", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sizes"] == {"records": 40, "accounts": 3}
    named = [each["name"] for each in found["measurements"]]
    checks = {name.removeprefix("check ") for name in named if name.startswith("check ")}
    assert checks >= {"log", "registrations", "counters", "schedule", "accounts"}
    assert {"download, rehash"} <= set(named)
    assert all(each["runs"] >= 1 for each in found["measurements"])


def test_appends_are_compared_with_the_bare_database_which_is_left_empty(
    engine_name: str, make_database: Callable[..., str]
) -> None:
    url = make_database(engine_name, lambda _: None)
    options = ["--database", url, "--entries", "600", "--batch", "100", "--runs", "2"]
    result = CliRunner().invoke(app, ["ledger", *options, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sizes"] == {"entries": 600, "batch": 100}
    named = {each["name"]: each for each in found["measurements"]}
    bare = named["insert and commit, bare"]
    for name in ("append, durable", "append, durable, checkpointed"):
        assert named[name]["baseline"] == bare["name"] and named[name]["runs"] == 2
        assert named[name]["ratio"] == pytest.approx(named[name]["median"] / bare["median"])
        assert named[name]["details"]["a second"] == pytest.approx(100 / named[name]["median"])
    for name in ("connect, inclusion proof", "inclusion proof"):
        assert named[name]["details"]["entries"] == 600
        assert named[name]["baseline"] == "connect, read a row"
    engine = open_engine(url)
    assert inspect(engine).get_table_names() == []
    with write_transaction(engine) as connection:
        connection.execute(text("CREATE TABLE somebodys (id INTEGER)"))
    refused = CliRunner().invoke(app, ["ledger", "--database", url])
    assert isinstance(refused.exception, MalformedError)
    assert inspect(engine).get_table_names() == ["somebodys"]
    engine.dispose()


@pytest.mark.slow
def test_workers_do_the_work_of_one_process(make_database: Callable[..., str]) -> None:
    sizes = ["--rows", "300", "--dim", "16", "--records", "70", "--workers", "2", "--runs", "1"]
    options = ["jobs", "--database", make_database("postgresql"), *sizes, "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sizes"] == {"rows": 300, "dimension": 16, "records": 70, "workers": 2}
    one, several = found["measurements"]
    assert (one["name"], several["name"]) == ("one process", "2 workers over a queue")
    assert several["baseline"] == one["name"] and several["ratio"] > 0


@pytest.mark.slow
def test_a_file_has_no_queue(make_database: Callable[..., str]) -> None:
    options = ["jobs", "--database", make_database("sqlite"), "--rows", "20", "--records", "1"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code != 0 and "PostgreSQL" in str(result.exception)


def test_exact_scores_stand_beside_search_that_is_not_exact() -> None:
    options = ["scores", "--rows", "70", "--dim", "40", "--questions", "3", "--runs", "1", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    measured = json.loads(result.stdout)["measurements"]
    assert len(measured) == 7
    for each in measured:
        assert each["baseline"] == (None if each["name"] == NUMPY else NUMPY)
        assert each["records"] == (3 if each["name"].endswith("3 at once") else 1)


def test_each_window_is_estimated_beside_every_pair() -> None:
    options = ["coalition", "--records", "300", "--accounts", "60", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sizes"] == {"records": 300, "accounts": 60, "bits": 256}
    named = {each["name"]: each for each in found["measurements"]}
    assert len(named) == 4 * 3
    for name, each in named.items():
        window = name.partition(":")[0]
        slow = f"{window}: every pair of 300"
        assert each["baseline"] == (None if name == slow else slow)
        assert name == slow or each["ratio"] > 0
    sizes = {
        name.removesuffix(": estimate"): each["details"]["k-hat"]
        for name, each in named.items()
        if name.endswith(": estimate")
    }
    instants = {name: size for name, size in sizes.items() if name != "a day"}
    assert instants == {
        "an instant, none alike": 1,
        "an instant, two by two": 2,
        "an instant, all alike": 60,
    }
    assert named["an instant, none alike: estimate"]["details"]["pairs"] == 300 * 299 / 2


def test_other_components_than_every_pair_gives_end_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def alone(accounts: Any, *_: Any, **__: Any) -> Any:
        return np.arange(accounts.max() + 1)

    monkeypatch.setattr(core, "link_accounts", alone)
    with pytest.raises(InternalError, match="two by two: other components"):
        coalition(CoalitionSizes(40, 40, 64), silent)


def test_sketches_are_of_whole_words() -> None:
    result = CliRunner().invoke(app, ["coalition", "--bits", "72"])
    assert result.exit_code != 0 and "multiple of 64" in str(result.exception)


MIB = 2**20


def test_measure_warms_up_once_and_counts_runs() -> None:
    calls: list[int] = []
    found = measure("count", lambda: calls.append(1), 5)
    assert len(calls) == 6
    assert (found.runs, found.warmed_up) == (5, True)
    assert found.ratio is None


def test_no_run_is_begun_once_the_allowance_is_used_up() -> None:
    calls: list[int] = []
    found = measure("long", lambda: calls.append(1), 5, allowance=0)
    assert (len(calls), found.runs, found.warmed_up) == (1, 1, False)


def test_once_is_once() -> None:
    calls: list[int] = []
    found = measure_once("once", lambda: calls.append(1), records=7)
    assert (len(calls), found.runs, found.warmed_up, found.records) == (1, 1, False, 7)
    assert found.per_record == found.median / 7


def test_a_median_is_a_median() -> None:
    found = summarise("three", [3.0, 1.0, 2.0])
    assert (found.median, found.lowest, found.highest) == (2.0, 1.0, 3.0)
    beside = found.beside(summarise("one", [0.5]), 7, {"rows": 3.0})
    assert (beside.baseline, beside.ratio, beside.size_bytes) == ("one", 4.0, 7)
    assert beside.details == {"rows": 3.0}


def test_ratios_are_for_each_record() -> None:
    batch = Measurement("batch", 4.0, 4.0, 4.0, 1, records=8)
    assert batch.beside(summarise("one", [0.25])).ratio == 2.0


def test_a_peak_that_is_over_is_forgotten() -> None:
    def take() -> None:
        np.ones(64 * MIB, dtype=np.uint8)

    take()
    high = measure_once("take", take)
    low = measure_once("nothing", lambda: None)
    assert high.peak_mib is not None
    assert low.peak_mib is not None
    if low.peak_of_process:
        pytest.skip("this system does not let a process reset its peak")
    assert high.peak_mib - low.peak_mib > 32


def test_a_system_without_the_files_falls_back_and_says_so(tmp_path: Path) -> None:
    assert harness.reset_peak(tmp_path / "none" / "clear_refs") is False
    assert 10 < harness.peak_memory_mib(tmp_path / "status") < 100_000
    (tmp_path / "status").write_text("Name:\tpython\nVmHWM:\t   2048 kB\n")
    assert harness.peak_memory_mib(tmp_path / "status") == 2.0


def test_a_limit_holds_for_every_thread_and_is_lifted() -> None:
    before = os.sched_getaffinity(0)
    stop, found = threading.Event(), []
    waiting = threading.Thread(target=stop.wait)
    waiting.start()
    with harness.limited_to(1) as cores:
        assert cores == 1
        found = [os.sched_getaffinity(0), os.sched_getaffinity(waiting.native_id or 0)]
        assert harness.available_cores() == 1
    stop.set()
    waiting.join()
    assert [len(each) for each in found] == [1, 1]
    assert os.sched_getaffinity(0) == before


def test_no_limit_and_too_many_cores() -> None:
    with harness.limited_to(None) as cores:
        assert cores == len(os.sched_getaffinity(0))
    with pytest.raises(MalformedError, match="cores"), harness.limited_to(10_000):
        pass


def test_the_machine_is_described_without_its_name() -> None:
    found = harness.machine()
    assert found["cores"] == os.cpu_count()
    assert found["memory_gib"] > 0
    assert os.uname().nodename not in found.values()
    assert harness.software()["ragaudit-core"] != "not installed"


def test_a_sampled_measurement_talks_to_perf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("control", "acknowledged"):
        os.mkfifo(tmp_path / name)
    monkeypatch.setenv(harness.PIPES, str(tmp_path))
    monkeypatch.setenv(harness.WANTED, "this one")
    heard: list[str] = []

    def perf() -> None:
        for _ in range(2):
            heard.append((tmp_path / "control").read_text())
            (tmp_path / "acknowledged").write_text("ack\n")

    listening = threading.Thread(target=perf)
    listening.start()
    measure("another", lambda: heard.append("another\n"), 1)
    measure("this one", lambda: heard.append("run\n"), 1)
    listening.join()
    assert heard == ["another\n", "another\n", "enable\n", "run\n", "run\n", "disable\n"]


def test_numbers_have_three_digits() -> None:
    assert [digits(each) for each in (1234.5, 123.4, 12.34, 0.01234)] == [
        "1,234",
        "123",
        "12.3",
        "0.0123",
    ]
    assert [duration(each) for each in (75, 0.0123, 4.5e-6)] == ["75.0 s", "12.3 ms", "4.50 µs"]


def test_a_workload_is_the_same_again_and_its_rows_do_not_depend_on_blocks() -> None:
    sizes = Sizes(40, 8, 3, "0.5")
    first, second = Workload(sizes), Workload(sizes)
    assert np.array_equal(first.rows, second.rows)
    assert np.array_equal(first.query(3), second.query(3))
    assert not np.array_equal(first.query(3), first.query(4))
    assert not np.array_equal(first.draw_noise(3), first.draw_noise(4))
    assert np.array_equal(np.sum(first.rows.astype(np.int64) ** 2, axis=1), [16129] * 40)


def made(**changes: object) -> SidecarRun:
    figures = {
        "rows": 1000, "dimension": 8, "top_k": 5, "clients": 4,
        "store": Latency(0.004, 0.008, 250.0), "sidecar": Latency(0.006, 0.012, 160.0),
        "store_busy": Latency(0.01, 0.02, 400.0), "sidecar_busy": Latency(0.02, 0.06, 200.0),
        "spent": Spent({"fetch": 0.001, "commit": 0.002}, 0.003, 0.0015, 1.0),
        "spent_busy": Spent({"fetch": 0.004, "commit": 0.008}, 0.006, 0.003, 5.5),
        "first_receipt": 9.5, "memory": (),
    } | changes  # fmt: skip
    return SidecarRun(**figures)  # type: ignore[arg-type]


def test_ratios_are_of_medians_alone_and_of_tails_together() -> None:
    run = made()
    assert run.ratio == pytest.approx(1.5) and run.ratio_busy == pytest.approx(3.0)
    assert run.growth is None
    found = Latency.of(Answered([0.001] * 99 + [1.0], wall=2.0))
    assert (found.p50, found.per_second) == (0.001, 50.0) and found.p99 > 0.001


METRICS = """# HELP ragaudit_commit_seconds Time.
ragaudit_commit_seconds_count {commits}
ragaudit_commit_seconds_sum {durable}
ragaudit_commit_answers_sum {answers}
ragaudit_retrieval_seconds_bucket{{phase="fetch",le="0.001"}} 3.0
ragaudit_retrieval_seconds_sum{{phase="fetch"}} {fetch}
ragaudit_request_seconds_count{{surface="chroma"}} {answers}
ragaudit_request_seconds_sum{{surface="chroma"}} {whole}
ragaudit_request_seconds_sum{{surface="qdrant"}} 99.0
process_cpu_seconds_total 5.0
"""


def test_what_was_spent_is_between_two_readings() -> None:
    before = values(METRICS.format(commits=10, durable=1.0, answers=20, fetch=1.0, whole=4.0))
    after = values(METRICS.format(commits=15, durable=1.5, answers=30, fetch=1.5, whole=6.0))
    spent = Spent.between(before, after)
    assert spent.phases == pytest.approx({"fetch": 0.05})
    assert spent.rest == pytest.approx(0.15)  # of 0.2 for each of ten answers
    assert spent.durable == pytest.approx(0.1) and spent.answers == 2.0


def test_growth_leaves_out_the_beginning() -> None:
    # The first tenth fills caches; from then on it is flat but for one unit at the end.
    assert made(memory=(50.0, *[100.0] * 8, 101.0)).growth == pytest.approx(1.0)


def test_it_is_shown_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    sidecar.show([made(), made(rows=10_000, memory=(1.0,) * 60)], as_json=False)
    shown = capsys.readouterr().out
    assert "N = 10,000" in shown and "1.50 x" in shown and "not measured" in shown
    for words in ("fetch", "commit", "rest: HTTP", "in a transaction", "8.0 ms", "5.5"):
        assert words in " ".join(shown.split())
    sidecar.show([made()], as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["runs"][0]["ratio"] == pytest.approx(1.5) and document["machine"]


def test_k_is_below_n() -> None:
    done = CliRunner().invoke(app, ["sidecar", "--rows", "20", "--top-k", "20"])
    assert done.exit_code != 0 and "below N = 20" in str(done.exception)


@pytest.mark.slow
def test_a_small_run() -> None:
    arguments = ["--rows", "60", "--dim", "16", "--runs", "5", "--clients", "2", "--top-k", "3"]
    done = CliRunner().invoke(app, ["sidecar", *arguments, "--minutes", "0.2", "--json"])
    assert done.exit_code == 0, done.output + str(done.exception)
    (run,) = json.loads(done.stdout)["runs"]
    assert run["ratio"] > 0 and run["first_receipt"] > 0 and run["memory"]
    assert {"admit", "score", "fetch", "commit", "sign"} <= run["spent"]["phases"].keys()
    assert run["spent"]["answers"] == 1.0 and run["spent_busy"]["rest"] > 0
