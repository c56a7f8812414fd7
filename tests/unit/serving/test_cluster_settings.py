"""A cluster in the settings, what its driver is told, and what it is started with."""

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from ragaudit.encoding.errors import MalformedError, MalformedSettings, UnsupportedError
from ragaudit.ledger.log.database import close_engine, open_engine
from ragaudit.prover import work as prover
from ragaudit.serving.jobs import opening
from ragaudit.serving.jobs.cluster import Order, Report, environment
from ragaudit.serving.jobs.settings import JobSettings
from ragaudit.verifier import work as verifier


def settings(token_file: Path, **changes: Any) -> JobSettings:
    given = {"executor": "ray", "ray_address": "10.0.0.1:6379", "ray_token_file": token_file}
    return JobSettings.model_validate(given | changes)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("ab" * 32)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"ray_address": None},
        {"ray_token_file": None},
        {"ray_address": "auto"},
        {"ray_address": "ray://10.0.0.1:10001"},
        {"ray_address": "me:s3cret@10.0.0.1:1"},
        {"ray_cores": 0},
    ],
)
def test_a_cluster_is_named_whole(token_file: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(token_file, **changes)


def refused(chosen: JobSettings, service: opening.JobService, folder: Path) -> str:
    engine = open_engine(f"sqlite:///{folder}/jobs.db")
    try:
        with pytest.raises((UnsupportedError, MalformedSettings)) as error:
            opening.open_runner(chosen, service, engine)
    finally:
        close_engine(engine)
    return str(error.value)


def test_a_token_that_others_read_is_refused(token_file: Path) -> None:
    token_file.chmod(0o640)
    assert "others may read" in refused(settings(token_file), prover.JOBS, token_file.parent)


def test_the_verifier_has_no_cluster(token_file: Path) -> None:
    assert "procrastinate" in refused(settings(token_file), verifier.JOBS, token_file.parent)


def test_ray_may_be_missing(token_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda _name: None)
    assert "the extra ray" in refused(settings(token_file), prover.JOBS, token_file.parent)


def test_a_cluster_has_no_queue_and_no_workers_of_ours(token_file: Path) -> None:
    with (
        pytest.raises(UnsupportedError, match="has no queue"),
        opening.open_queue(settings(token_file), prover.JOBS, "sqlite:///jobs.db"),
    ):
        pass


def test_the_driver_has_nothing_of_the_service(
    token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RAGAUDIT_PROVER__STORE__URL", "PGPASSWORD", "AWS_SECRET", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_USE_TLS", "1")
    found = environment(token_file)
    assert "s3cret" not in found.values()
    assert (found["RAY_AUTH_MODE"], found["RAY_AUTH_TOKEN_PATH"]) == ("token", str(token_file))
    assert found["RAY_USE_TLS"] == "1" and found["PATH"] == os.environ["PATH"]


def test_orders_and_reports_are_read_as_written() -> None:
    for order in (Order("k", "kind", "a/w1", b"task"), Order("k")):
        assert Order.parse(order.encode()) == order
    report = Report(Report.DONE, "k", b"result")
    assert Report.parse(report.encode()) == report
    assert "task" not in repr(Order("k", "kind", "w", b"task")).split("kind='kind'")[1]
    for parse in (Order.parse, Report.parse):
        with pytest.raises(MalformedError):
            parse(b"other")
