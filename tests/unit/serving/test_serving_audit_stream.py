"""Each line of the audit stream is written whole, or counts as lost."""

import json
import os
import resource
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from ragaudit.encoding.errors import UnavailableError
from ragaudit.serving.audit_stream import AuditStream, events
from ragaudit.serving.exchange import Exchange, Look, Receipt
from ragaudit.serving.observed import Observer
from ragaudit.serving.settings import STANDARD_OUTPUT, OperationSettings


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
