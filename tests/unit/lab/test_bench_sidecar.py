"""`ragaudit bench sidecar`: its figures, and one small run in front of Chroma's own server."""

import json

import pytest
from ragaudit.lab.bench import sidecar
from ragaudit.lab.bench.command import app
from ragaudit.lab.bench.load import Answered, Spent, values
from ragaudit.lab.bench.sidecar import Latency, SidecarRun
from typer.testing import CliRunner


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
