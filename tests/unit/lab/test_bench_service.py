"""`ragaudit bench service` and `window`: loads and figures, and small runs; no time is asserted."""

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from databases import SERVER_AT_NIGHT
from ragaudit.cli.processes import ServiceFailed
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench import one_row, service, window
from ragaudit.lab.bench.command import app
from ragaudit.lab.bench.load import (
    Answered,
    Asker,
    Growth,
    Latency,
    MemoryWatch,
    Receipts,
    Spent,
    ask_openly,
    ask_without_pause,
    peaks,
    reset_peaks,
)
from ragaudit.lab.bench.service import Load, ServiceRun
from ragaudit.lab.bench.window import EndToEnd, Phase
from starlette.testclient import TestClient
from typer.testing import CliRunner


class Log(BaseHTTPRequestHandler):
    """Answers a query with the next index, and shows a checkpoint of what it has answered."""

    protocol_version = "HTTP/1.1"
    size, failing = 0, False
    lock = threading.Lock()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            index, Log.size = Log.size, Log.size + 1
        self.reply(json.dumps({"public": {"index": index}}).encode())

    def do_GET(self) -> None:
        self.reply(f"origin\n{self.size}\nroot\n".encode())

    def reply(self, content: bytes) -> None:
        self.send_response(503 if self.failing else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Log.size, Log.failing = 0, False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Log)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_arrival_is_answered_and_every_receipt_seen_complete(url: str) -> None:
    askers = [Asker(url, "/query", [b"{}"], "key") for _ in range(3)]
    receipts = Receipts(url, "bench")
    found = ask_openly(askers, rate=200, seconds=0.2)
    assert sorted(index for index, _ in found.entries) == list(range(40))
    assert len(receipts.completed(found)) == 40 and found.per_second > 0
    assert len(ask_without_pause(askers, 20).seconds) == 20
    assert ask_without_pause(askers, 20, until=time.time()).seconds == []
    for each in askers:
        each.close()


def test_an_answer_counts_from_the_instant_at_which_it_was_due() -> None:
    class Slow(Asker):
        def ask(self) -> int | None:
            time.sleep(0.05)
            return None

    # One client, asked faster than it answers: the wait for it is part of the time.
    found = ask_openly([Slow("http://127.0.0.1:1", "/")], rate=100, seconds=0.1)
    assert len(found.seconds) == 10 and found.seconds == sorted(found.seconds)
    assert found.seconds[-1] > 0.3


def test_a_query_that_is_not_answered_ends_the_load(url: str) -> None:
    Log.failing = True
    asker = Asker(url, "/query", [b"{}"])
    with pytest.raises(ServiceFailed, match="HTTP 503"):
        ask_without_pause([asker], 5)
    asker.close()


def test_receipts_that_stay_incomplete_are_said(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragaudit.lab.bench.load._COMPLETE_SECONDS", 0.1)
    receipts = Receipts(url, "bench")
    with pytest.raises(ServiceFailed, match="not complete"):
        receipts.completed(Answered(entries=[(7, 0.0)]))


def test_a_line_through_memory_is_flat_or_not() -> None:
    seconds = [float(second) for second in range(40)]
    # What fills at first is no growth.
    filled = Growth.of(seconds, [50.0] * 10 + [100.0] * 30)
    assert filled is not None and filled.flat and filled.per_minute == pytest.approx(0.0)
    rising = Growth.of(seconds, [100.0 + second for second in seconds])
    assert rising is not None and not rising.flat and rising.per_minute == pytest.approx(60.0)
    assert Growth.of(seconds[:8], [1.0] * 8) is None


def test_memory_of_a_process_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragaudit.lab.bench.load._SAMPLE_SECONDS", 0.01)
    own = {"own": os.getpid()}
    with MemoryWatch(own) as watch:
        time.sleep(0.1)
    assert watch.resident["own"] and watch.resident["own"][0] > 1
    reset_peaks(own)
    assert peaks(own)["own"] > 1


def made(**changes: object) -> ServiceRun:
    figures = {
        "load": Load(1500, 5, 200.0, 30.0, 8, 10.0, 1), "store": "sqlite", "search": 0.0002,
        "idle": Latency(0.001, 0.004, 0.01), "answers": Latency(0.02, 0.1, 0.2),
        "receipts": Latency(0.2, 0.4, 0.5), "per_second": 199.0, "most_per_second": 210.0,
        "cores": {"prover": 0.5, "verifier": 0.1, "machine": 0.7},
        "spent": Spent({"commit": 0.002, "noise": 0.001}, 0.003, 0.0015, 4.0),
        "growth": {"prover": Growth(100.0, 101.0, 0.1), "verifier": None},
    } | changes  # fmt: skip
    return ServiceRun(**figures)  # type: ignore[arg-type]


def test_what_bounds_the_rate_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert made().ratio == pytest.approx(20) and made().ratio_tail == pytest.approx(25)
    assert "phase 'commit'" in made().bound
    busy = {"prover": 0.95, "verifier": 0.1, "machine": 1.2}
    assert made(cores=busy).bound.startswith("one interpreter")
    assert made(cores={**busy, "machine": 1.9}).bound.startswith("the machine")


def test_a_load_is_shown_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    service.show(made(), as_json=False)
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("20.00 x", "flat", "without a pause 210.0", "4.0 answers in it", "bounds it"):
        assert words in shown
    service.show(made(), as_json=True)
    run = json.loads(capsys.readouterr().out)["run"]
    assert run["growth"]["prover"]["flat"] is True and run["growth"]["verifier"] is None


def test_a_window_is_shown_with_its_largest_memory(capsys: pytest.CaptureFixture[str]) -> None:
    phases = (
        Phase("queries", 2.0, 10, {"prover": 90.0, "verifier": 50.0}),
        Phase("audit", 1.0, 10, {"prover": 80.0, "verifier": 70.0}),
    )
    run = EndToEnd(100, 4, 12, 10, 3, "sqlite", "PASS", 12_345, phases)
    assert run.peak_mib == {"prover": 90.0, "verifier": 70.0}
    window.show(run, as_json=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "200 ms" in shown and "3 records were sampled; verdict PASS" in shown
    assert "2 questions were left out" in shown
    window.show(run, as_json=True)
    assert json.loads(capsys.readouterr().out)["run"]["peak_mib"]["prover"] == 90.0


@pytest.mark.parametrize("options", [["--top-k", "100"], ["--provers", "2"]])
def test_what_cannot_be_measured_is_refused(options: list[str]) -> None:
    done = CliRunner().invoke(app, ["service", "--rows", "100", "--seconds", "0.5", *options])
    assert isinstance(done.exception, MalformedError)


@pytest.mark.slow
@SERVER_AT_NIGHT
def test_a_small_load_on_real_services(engine_name: str, make_database: Callable[..., str]) -> None:
    options = ["--rows", "60", "--rate", "5", "--seconds", "2", "--accounts", "2"]
    if engine_name == "postgresql":
        options += ["--postgresql", make_database(engine_name, lambda _: None)]
    done = CliRunner().invoke(app, ["service", *options, "--json"])
    assert done.exit_code == 0, done.output + str(done.exception)
    run = json.loads(done.stdout)["run"]
    assert run["store"] == engine_name and run["answers"]["p50"] > 0 and run["ratio"] > 0
    assert run["receipts"]["p99"] > 0 and run["spent"]["answers"] >= 1


@pytest.mark.nightly
def test_a_small_window_to_its_verdict() -> None:
    options = ["--records", "20", "--rows", "60", "--accounts", "2", "--rate", "2"]
    done = CliRunner().invoke(app, ["window", *options, "--json"])
    assert done.exit_code == 0, done.output + str(done.exception)
    run = json.loads(done.stdout)["run"]
    assert run["result"] == "PASS" and run["sampled"] > 0 and run["bundle_bytes"] > 0
    named = [phase["name"] for phase in run["phases"]]
    assert {"queries", "close and hand over", "sampling", "proofs", "audit"} <= set(named)
    assert set(run["peak_mib"]) == {"prover", "verifier"}


def test_the_service_that_answers_stand_beside_commits_a_row_for_each_request(
    tmp_path: Path,
) -> None:
    file = tmp_path / "rows.sqlite"
    body = {"query": "bread", "top_k": 5, "filter": "", "kind": "text"}
    with TestClient(one_row.application(str(file))) as client:
        assert client.get(one_row.READY).status_code == 200
        assert [client.post(one_row.ROUTE, json=body).json() for _ in range(2)] == [
            {"id": 1}, {"id": 2}
        ]  # fmt: skip
        # Of another connection: what is not committed it does not see.
        with closing(sqlite3.connect(file)) as other:
            rows = other.execute("SELECT query, top_k FROM question").fetchall()
        assert rows == [("bread", 5), ("bread", 5)]
