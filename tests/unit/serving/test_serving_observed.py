"""What an operator sees of requests: metrics, log lines, audit stream, spans, a slow goodbye."""

import io
import json
import logging
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families
from ragaudit.encoding.errors import RefusedError, UnavailableError, UnsupportedError
from ragaudit.http import carried
from ragaudit.serving import exchange, log_lines
from ragaudit.serving.application import application
from ragaudit.serving.audit_stream import AuditStream, events
from ragaudit.serving.exchange import Exchange, Look, Receipt, note, phase
from ragaudit.serving.observed import MetricsServer, Observed, Observer
from ragaudit.serving.settings import STANDARD_OUTPUT, OperationSettings
from ragaudit.serving.spans import Spans
from starlette.testclient import TestClient

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
QUERY = "why is my salary lower"


def observed(observer: Observer) -> FastAPI:
    app = application("observed")

    @app.get("/ask/{document}", tags=["native"], operation_id="ask")
    def ask(document: str) -> dict[str, str]:
        note(account="ada", tenant="shop", receipt=Receipt("2026-11", 4))
        note(receipt=Receipt("2026-11", 5))
        with phase("score"), phase("noise"):
            return dict(carried.get()())

    @app.get("/watch", tags=["operator"], operation_id="watch")
    def watch() -> None:
        note(operator=True)

    @app.post("/operate", tags=["operator"], operation_id="operate")
    def operate() -> None:
        note(operator=True)

    @app.get("/bypass", operation_id="bypass")
    def bypass() -> None:
        note(account="ada", tenant="shop", denied=True)
        raise RefusedError(f"not served: {QUERY}")

    @app.get("/away", tags=["native"])
    def away() -> None:
        class StoreUnavailable(UnavailableError):
            pass

        raise StoreUnavailable("gone")

    app.add_middleware(Observed, observer=observer)
    return app


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def observer(stream: Path) -> Iterator[Observer]:
    settings = OperationSettings(audit_file=stream, metrics_port=0)
    with Observer(settings, service="ragaudit-prover", name="example.org") as made:
        yield made


@pytest.fixture
def api(observer: Observer) -> TestClient:
    return TestClient(observed(observer), client=("192.0.2.7", 1))


def samples(observer: Observer) -> dict[tuple[str, frozenset[str]], float]:
    """Every sample that Prometheus would read, by name and values of its labels."""
    server = MetricsServer(observer.metrics, "127.0.0.1", 0)
    try:
        text = httpx.get(f"http://127.0.0.1:{server.port}/metrics").text
    finally:
        server.close()
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_requests_are_counted_by_surface_status_and_problem(
    api: TestClient, observer: Observer
) -> None:
    for path in ("ask/a", "ask/b", "bypass", "away", "nowhere"):
        api.get(f"/{path}")
    found = samples(observer)
    assert found["ragaudit_requests_total", frozenset({"native", "200"})] == 2
    assert found["ragaudit_requests_total", frozenset({"none", "409"})] == 1
    assert found["ragaudit_requests_total", frozenset({"none", "404"})] == 1
    assert found["ragaudit_refused_total", frozenset({"refused"})] == 1
    assert found["ragaudit_refused_total", frozenset({"not-found"})] == 1
    assert found["ragaudit_receipts_total", frozenset()] == 4
    assert found["ragaudit_bypass_denied_total", frozenset()] == 1
    assert found["ragaudit_store_errors_total", frozenset()] == 1
    assert found["ragaudit_retrieval_seconds_count", frozenset({"score"})] == 2
    assert found["ragaudit_requests_in_flight", frozenset()] == 0


def test_a_change_behind_the_service_is_an_event_and_counted(
    observer: Observer, stream: Path
) -> None:
    for outcome in ("same", "changed", "failed", "same"):
        observer.compared("2026-11", "shop", outcome)
    found = samples(observer)
    outcomes = {
        outcome: found["ragaudit_store_comparisons_total", frozenset({outcome})]
        for outcome in ("same", "changed", "failed")
    }
    assert outcomes == {"same": 2, "changed": 1, "failed": 1}
    [event] = lines(stream)
    assert event["event"]["action"] == "index-stale"
    assert event["organization"] == {"name": "shop"}
    assert event["ragaudit"] == {"window": "2026-11"}


def test_no_label_is_chosen_by_a_caller(api: TestClient, observer: Observer) -> None:
    api.get("/ask/a-document")
    before = set(samples(observer))
    for path in ("ask/another", "bypass/of/mine", "ask/third?tenant=shop"):
        api.get(f"/{path}")
    new = set(samples(observer)) - before
    # A path that does not exist is one more pair of surface and status, whatever it is called.
    assert {labels for _, labels in new} <= {
        frozenset({"none", "404"}), frozenset({"not-found"}), frozenset({"none"}),
        *(labels for _, labels in new if "none" in labels),
    }  # fmt: skip
    values = {value for _, labels in samples(observer) for value in labels}
    assert not values & {"ada", "shop", "2026-11", "a-document", "another"}


def test_the_audit_stream_says_who_asked_whom_and_nothing_of_what(
    api: TestClient, stream: Path
) -> None:
    api.get(f"/ask/{QUERY}", headers={"traceparent": PARENT})
    first, second = lines(stream)
    assert first["event"]["action"] == "retrieval" and first["event"]["outcome"] == "success"
    assert first["user"] == {"name": "ada"} and first["organization"] == {"name": "shop"}
    assert first["service"] == {"name": "example.org", "type": "ragaudit-prover"}
    assert first["source"] == {"ip": "192.0.2.7"} and first["ecs"]["version"]
    assert first["trace"] == {"id": PARENT.split("-")[1]}
    assert first["ragaudit"] == {"surface": "native", "window": "2026-11", "receipt": {"index": 4}}
    assert second["ragaudit"]["receipt"] == {"index": 5}
    assert first["event"]["id"] == second["event"]["id"]
    assert first["@timestamp"].endswith("Z")
    assert QUERY not in stream.read_text()
    assert stat.S_IMODE(stream.stat().st_mode) == 0o600


def test_refusals_and_operators_are_in_the_stream_and_strangers_are_not(
    api: TestClient, stream: Path
) -> None:
    for path in ("bypass", "nowhere", "away", "watch"):
        api.get(f"/{path}")
    api.post("/operate")
    refused, operated = lines(stream)
    assert refused["event"]["action"] == "bypass" and refused["event"]["reason"] == "refused"
    assert refused["event"]["outcome"] == "failure" and "denied" in refused["event"]["type"]
    assert "receipt" not in refused["ragaudit"] and QUERY not in json.dumps(refused)
    assert operated["user"] == {"name": "operator", "roles": ["operator"]}
    assert operated["event"]["action"] == "operate"


def test_a_rotated_stream_goes_on_in_a_new_file(api: TestClient, stream: Path) -> None:
    api.post("/operate")
    stream.rename(stream.with_suffix(".1"))
    api.post("/operate")
    assert len(lines(stream)) == len(lines(stream.with_suffix(".1"))) == 1


def test_a_lost_event_is_counted_and_makes_the_service_not_ready(
    api: TestClient, observer: Observer, stream: Path, caplog: pytest.LogCaptureFixture
) -> None:
    observer.check()
    stream.rename(stream.with_suffix(".1"))
    stream.mkdir()
    assert api.post("/operate").status_code == 200
    with pytest.raises(UnavailableError, match="was not written"):
        observer.check()
    assert "cannot be written" in caplog.text
    assert samples(observer)["ragaudit_audit_stream_failures_total", frozenset()] == 1
    stream.rmdir()
    api.post("/operate")
    observer.check()


def test_a_stream_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no such file or directory"):
        AuditStream(tmp_path / "none" / "audit.jsonl")
    settings = OperationSettings(audit_file=tmp_path / "none" / "audit.jsonl")
    with pytest.raises(UnavailableError), Observer(settings, service="s", name="n"):
        raise AssertionError("it was entered")


def test_the_port_of_the_metrics_may_be_taken(observer: Observer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UnavailableError, match="metrics cannot be shown: address already in"):
            MetricsServer(observer.metrics, "127.0.0.1", port)


@pytest.mark.parametrize(
    "parent",
    [
        "", "00-0-0-0", PARENT.upper(), f"ff{PARENT[2:]}", f"{PARENT}\nX-Evil: 1",
        f"00-{'0' * 32}-b7ad6b7169203331-01", f"00-{'1' * 32}-{'0' * 16}-01",
    ],
)  # fmt: skip
def test_only_a_valid_trace_is_passed_on(parent: str) -> None:
    made = Exchange.of({"traceparent": parent, "tracestate": "a=b"})
    with exchange.begun(made):
        assert carried.get()() == {} and made.trace == ""


def test_a_trace_is_passed_on_as_it_came(api: TestClient) -> None:
    given = {"traceparent": PARENT, "tracestate": "a=b"}
    assert api.get("/ask/a", headers=given).json() == given
    assert api.get("/ask/a", headers={"traceparent": PARENT, "tracestate": "a\x01"}).json() == {
        "traceparent": PARENT
    }
    assert api.get("/ask/a").json() == {} and carried.get()() == {}


def test_spans_are_children_of_the_caller_and_parents_of_what_is_called(
    observer: Observer, api: TestClient
) -> None:
    exporter = InMemorySpanExporter()
    observer.spans = Spans("http://127.0.0.1:1", "ragaudit-prover", exporter=exporter)
    passed = api.get(f"/ask/{QUERY}", headers={"traceparent": PARENT}).json()["traceparent"]
    observer.spans.close()
    (span,) = exporter.get_finished_spans()
    assert span.context is not None and span.parent is not None
    assert passed.split("-")[1:3] == [
        PARENT.split("-")[1],
        f"{span.context.span_id:016x}",
    ]
    assert f"{span.parent.span_id:016x}" == PARENT.split("-")[2]
    attributes = dict(span.attributes or {})
    assert attributes["http.route"] == "/ask/{document}"
    assert attributes["ragaudit.receipts"] == ("2026-11.4", "2026-11.5")
    assert QUERY not in span.to_json()


def test_traces_without_the_extra_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ragaudit.serving.spans", None)
    settings = OperationSettings(trace_url="http://127.0.0.1:4318")
    with pytest.raises(UnsupportedError, match="the extra otel"):
        Observer(settings, service="s", name="n")


def test_json_lines_name_receipts_and_no_text_of_an_exception(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    log_lines.configure("info", "json")
    api.get(f"/ask/{QUERY}", headers={"traceparent": PARENT})
    try:
        raise KeyError(QUERY)
    except KeyError:
        logging.getLogger("ragaudit.x").exception("two\nlines of %s", "text")
    found = [json.loads(line) for line in written.getvalue().splitlines()]
    answered, fault = (each for each in found if each["logger"].startswith("ragaudit."))
    assert answered["message"] == "answered: receipt 2026-11.4, 2026-11.5"
    assert answered["receipts"] == ["2026-11.4", "2026-11.5"]
    assert answered["trace"] == PARENT.split("-")[1] and answered["surface"] == "native"
    assert answered["level"] == "info" and answered["time"].endswith("Z")
    assert fault["message"] == "two\nlines of text" and "KeyError at " in fault["exception"]
    assert QUERY not in written.getvalue()


def test_notes_outside_of_a_request_do_nothing() -> None:
    note(account="ada", receipt=Receipt("w", 1))
    with phase("sign"):
        assert exchange.current() is None


PROGRAM = """
import sys, time
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from ragaudit.serving import server
from ragaudit.serving.settings import OperationSettings

def answer(request):
    return PlainTextResponse("here")

def slow(request):
    print("arrived", flush=True)
    time.sleep(2)
    return PlainTextResponse("done")

routes = [Route("/readyz", answer), Route("/", answer), Route("/slow", slow)]
server.run(lambda: Starlette(routes=routes), host="127.0.0.1", port=int(sys.argv[1]),
           operation=OperationSettings(drain_seconds=float(sys.argv[2])))
"""
PATIENCE = 90.0


class Draining:
    """The program above, until it answers."""

    def __init__(self, seconds: float) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        port = self.url.rpartition(":")[2]
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, port, str(seconds)], stdout=subprocess.PIPE, text=True
        )
        self.until(lambda: self.get("/readyz").status_code == 200)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=PATIENCE)

    def until(self, true: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                if true():
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise AssertionError("it did not happen")


@pytest.fixture
def draining(request: pytest.FixtureRequest) -> Iterator[Draining]:
    made = Draining(request.param)
    yield made
    made.process.kill()
    made.process.communicate()


@pytest.mark.parametrize("draining", [600.0], indirect=True)
def test_it_serves_on_while_balancers_find_out(draining: Draining) -> None:
    draining.process.send_signal(signal.SIGTERM)
    draining.until(lambda: draining.get("/readyz").status_code == 503)
    problem = draining.get("/readyz").json()
    assert problem["detail"] == "the service stops (expected another instance)"
    kept = draining.get("/")
    assert kept.text == "here" and kept.headers["connection"] == "close"
    draining.process.send_signal(signal.SIGTERM)  # told twice: at once
    assert draining.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("draining", [0.0], indirect=True)
def test_what_is_being_answered_is_finished(draining: Draining) -> None:
    answers: list[str] = []
    asking = threading.Thread(target=lambda: answers.append(draining.get("/slow").text))
    asking.start()
    assert draining.process.stdout is not None
    assert draining.process.stdout.readline() == "arrived\n"
    draining.process.send_signal(signal.SIGTERM)
    asking.join(PATIENCE)
    assert answers == ["done"] and draining.process.wait(PATIENCE) == 0


# Each line of the audit stream is written whole, or counts as lost.


def answered(observer: Observer, *places: int) -> None:
    exchange = Exchange(
        account="ada", tenant="shop", receipts=[Receipt("2026-11", place) for place in places]
    )
    observer.finished(exchange, {"type": "http", "method": "POST"}, 200, 0.1)


def lost(observer: Observer) -> float:
    [metric] = observer.metrics.audit_failures.collect()
    return metric.samples[0].value


def test_a_line_that_is_written_in_part_is_lost_and_ended_before_the_next(
    tmp_path: Path,
) -> None:
    stream = tmp_path / "audit.jsonl"
    settings = OperationSettings(audit_file=stream)
    with Observer(settings, service="ragaudit-prover", name="example.org") as observer:
        answered(observer, 1)
        whole = stream.stat().st_size
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (whole + 40, hard))
        try:
            # Two receipts are two lines, and each that is lost counts.
            answered(observer, 2, 3)
            with pytest.raises(UnavailableError, match="was not written"):
                observer.check()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert lost(observer) == 2
        assert stream.stat().st_size == whole + 40, "a part of the line was not written"
        answered(observer, 4)
        observer.check()
    first, torn, last = stream.read_text().splitlines()
    places = [json.loads(line)["ragaudit"]["receipt"]["index"] for line in (first, last)]
    assert places == [1, 4]
    with pytest.raises(ValueError):
        json.loads(torn)


def test_a_line_that_another_process_left_torn_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    for before, after in (("", []), ("{}\n", ["{}"]), ('{"torn', ['{"torn'])):
        file.write_text(before)
        made = AuditStream(file)
        made.write({"a": 1})
        with file.open("a") as other:
            other.write('{"killed')
        made.write({"a": 2})
        made.close()
        found = file.read_text().splitlines()
        assert found == [*after, '{"a":1}', '{"killed', '{"a":2}'], before


def test_a_device_without_room_loses_each_line() -> None:
    made = AuditStream(Path("/dev/full"))
    for _ in range(2):
        with pytest.raises(UnavailableError, match="no space left on device"):
            made.write({"a": 1})
        with pytest.raises(UnavailableError, match="was not written"):
            made.check()
    made.close()


def test_lines_go_to_standard_output_whatever_became_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as standard:
        monkeypatch.setattr(sys, "stdout", standard)
        os.set_blocking(writing, False)
        made = AuditStream(STANDARD_OUTPUT)
        with pytest.raises(UnavailableError, match="cannot be written"):
            made.write({"long": "x" * 200_000})  # more than a pipe takes
        os.read(reading, 200_000)
        made.write({"a": 1})
        assert os.read(reading, 100).splitlines()[-1] == b'{"a":1}'
        made.check()
        made.close()
    os.close(reading)


def test_an_owner_is_told_of_with_the_digests_of_the_ids_that_it_asked_for() -> None:
    look = Look.of("2026-11", ["faq-1", "faq-\u00e9"], positions=2)
    exchange = Exchange(owner=True, tenant="shop", surface="owner", look=look)
    [event] = events(
        exchange, service="ragaudit-prover", name="example.org", action="ownerRows", method="GET",
        peer="192.0.2.7", status=200, seconds=0.1, ended=0.0,
    )  # fmt: skip
    assert event["user"] == {"name": "owner", "roles": ["owner"]}
    assert event["organization"] == {"name": "shop"}
    digests = [sha256(each.encode()).hexdigest() for each in ("faq-1", "faq-\u00e9")]
    told = {"window": "2026-11", "look": {"ids": digests, "positions": 2}}
    assert event["ragaudit"] == {"surface": "owner", **told}
    assert "faq" not in json.dumps(event)
