"""What the prover's operator sees: metrics of windows and budgets, the audit stream of answers."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.prover.http.app import create_app

QUERY = "how do I return a product"


def metrics(scenario: Any) -> dict[tuple[str, str], float]:
    """The gauges of windows by name and label."""
    text = generate_latest(scenario.service.observer.metrics.registry).decode()
    return {
        (sample.name.removeprefix("ragaudit_"), "".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def watched(scenario: Any, **operation: Any) -> None:
    """Start the prover again with other settings of its section `operation`."""
    changed = scenario.settings.operation.model_copy(update=operation)
    scenario.settings = scenario.settings.model_copy(update={"operation": changed})
    scenario.restart()


def test_windows_and_budgets_are_shown_under_aliases_only(scenario: Any) -> None:
    watched(scenario, tenant_aliases={"one": "first"})
    assert metrics(scenario)["window_age_seconds", ""] == 0
    scenario.open()
    before = metrics(scenario)
    assert before["windows", "open"] == 1 and before["windows", "draft"] == 0
    assert before["window_documents", ""] == 24
    assert scenario.ask(query=QUERY).status_code == 200
    scenario.clock.at(scenario.policy().start + 7)
    after = metrics(scenario)
    assert [int(each["window_age_seconds", ""]) for each in (before, after)] == [0, 7]
    assert after["budget_remaining", "first"] == before["budget_remaining", "first"] - 1
    assert after["budget_remaining", "other"] == before["budget_remaining", "other"]
    assert not {"one", "two", "w1", "ada"} & {label for _, label in after}


def test_a_database_that_is_away_leaves_the_rest_of_the_metrics(
    scenario: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(scenario.service.windows, "all", away)
    found = metrics(scenario)
    assert ("windows", "open") not in found and ("requests_in_flight", "") in found


def test_an_answer_is_in_log_and_audit_stream_by_its_receipt(
    scenario: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    stream = tmp_path / "audit.jsonl"
    scenario.open()
    watched(scenario, audit_file=stream)
    caplog.set_level(logging.INFO)
    with scenario.service.observer:
        index = json.loads(scenario.ask(query=QUERY).content)["public"]["index"]
        assert scenario.ask("bob", query=QUERY).status_code == 409
        scenario.api.get("/v1/operator/windows", headers=scenario.operator)
        scenario.api.post("/v1/operator/windows/w9/close", headers=scenario.operator)
        scenario.api.post("/v1/windows/w1/query", headers={"Authorization": "Bearer guess"})
    asked, declined, operated = map(json.loads, stream.read_text().splitlines())
    assert asked["user"]["name"] == "ada" and asked["organization"]["name"] == "one"
    assert asked["ragaudit"] == {
        "surface": "account", "window": "w1", "receipt": {"index": index},
    }  # fmt: skip
    assert declined["user"]["name"] == "bob" and declined["event"]["reason"] == "account-anchored"
    assert operated["event"]["action"] == "closeWindow"
    assert f"answered: receipt w1.{index}" in caplog.text
    assert QUERY not in stream.read_text() and QUERY not in caplog.text


def test_a_stream_that_loses_events_is_not_ready(scenario: Any, tmp_path: Path) -> None:
    stream = tmp_path / "audit.jsonl"
    watched(scenario, audit_file=stream)
    with scenario.service.observer:
        stream.unlink()
        stream.mkdir()
        scenario.api.post("/v1/operator/windows/w9/close", headers=scenario.operator)
        assert scenario.api.get("/readyz").status_code == 503


def test_the_observer_is_open_while_the_service_runs(scenario: Any, tmp_path: Path) -> None:
    settings = scenario.settings.operation.model_copy(update={"audit_file": tmp_path / "a.jsonl"})
    changed = scenario.settings.model_copy(update={"operation": settings})
    app = create_app(changed, components=scenario.components)
    assert not (tmp_path / "a.jsonl").exists()
    scenario.service.stop()
    with TestClient(app):
        assert (tmp_path / "a.jsonl").exists()
    assert (tmp_path / "a.jsonl").read_text() == ""
