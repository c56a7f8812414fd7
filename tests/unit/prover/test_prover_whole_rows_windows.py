"""Windows of which rows are sampled, with the real verifier: opened once, and what is opened."""

import json
from typing import Any

import pytest
from exact_windows import ask, change, later, start, texts
from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.errors import BackendUnavailable
from ragaudit.prover.store import tables
from scenario import ProverScenario
from sqlalchemy import select
from whole_windows import challenged, verdict

NEW = Document("one-new", "a document that is new")
ALL = {"rows": {"beta": "0.3", "eta": "0.1", "minimum": 100}}
NOISE: dict[str, Any] = {
    "privacy": "gaussian",
    "norm_bound": None,
    "sigma": "40",
    "epsilon_acc": None,
    "public_columns": {},
    "filters": False,
    "query_kinds": ["text"],
}


def begun(make_scenario: Any, embedder: Any, **more: Any) -> ProverScenario:
    """A window whose indexes are sampled whole, in which something was asked."""
    scenario: ProverScenario = make_scenario(embedder=lambda _: embedder)
    start(scenario, texts(), owners=ALL, versions=True, **more)
    ask(scenario, "bread", 3)
    return scenario


def refreshed(scenario: ProverScenario, documents: list[Document]) -> None:
    """Commit to these documents of tenant one, and go to when they are in force."""
    StoredDocuments(scenario.service.store).add("one", documents, replace=True)
    assert scenario.service.refresher.refresh("w1", "one") == 2
    later(scenario, 140)
    ask(scenario, NEW.content, 3)


def of_rows(found: dict[str, Any]) -> dict[str, Any]:
    """What a verdict says of check 32."""
    bad = [each for each in found["checks"] if each["status"] in {"FAIL", "NOT RUN"}]
    assert found["result"] == "PASS", bad
    (check,) = (each for each in found["checks"] if each["id"] == "rows")
    shown: dict[str, Any] = check
    return shown


@pytest.mark.parametrize("noise", [False, True])
def test_every_row_is_opened_as_the_last_version_has_it(
    make_scenario: Any, embedder: Any, noise: bool
) -> None:
    scenario = begun(make_scenario, embedder, **(NOISE if noise else {}))
    refreshed(scenario, [*texts()[1:], NEW])
    scenario.service.driver.checkpoint("w1")
    found = verdict(scenario)
    said = of_rows(found)
    assert said["status"] == "PASS", said
    one, two = found["sampling"]["rows"]["strata"]
    assert (one["id"], one["population"], one["sample"]) == ("rows:one", 13, 13)
    assert (two["id"], two["population"]) == ("rows:two", two["sample"])
    assert said["evidence"][0].startswith(
        "one: 13 of 13 rows sampled, 12 with the vector of their text, 0 not compared, 1 null rows"
    )
    assert all(each.content not in json.dumps(found) for each in [*texts(), NEW])


@pytest.mark.parametrize("noise", [False, True])
def test_a_row_that_changed_behind_the_provers_back_is_said_to_have_changed(
    make_scenario: Any, embedder: Any, noise: bool
) -> None:
    scenario = begun(make_scenario, embedder, **(NOISE if noise else {}))
    change(scenario, "one-3", "another text, as somebody wrote it")
    change(scenario, "one-5", None)
    scenario.service.driver.checkpoint("w1")
    found = verdict(scenario)
    said = of_rows(found)
    assert said["status"] == "NOT ESTABLISHED"
    assert said["reason"].startswith("2 sampled rows are of documents that the store changed")
    assert "10 with the vector of their text" in said["evidence"][0]
    assert found["claims"]["integrity"]["open"] == ["rows"]
    assert "another text" not in json.dumps(found)


def evidence(scenario: ProverScenario) -> dict[str, bytes]:
    """What is stored to be handed over beside responses, by its call."""
    with scenario.service.store.read() as connection:
        found = connection.execute(select(tables.evidence.c.call, tables.evidence.c.message))
        return {row.call: row.message for row in found}


def test_what_was_opened_stays_across_a_restart_and_a_change(
    make_scenario: Any, embedder: Any
) -> None:
    scenario = begun(make_scenario, embedder)
    challenged(scenario)
    scenario.service.driver.step("w1")
    opened = evidence(scenario)
    assert set(opened) == {"challenge/rows/one", "challenge/rows/two"}
    change(scenario, "one-3", "another text, as somebody wrote it")
    scenario.restart()
    scenario.service.driver.step("w1")
    assert evidence(scenario) == opened
    assert of_rows(scenario.decide())["status"] == "PASS"


def test_a_store_that_is_away_keeps_no_proof_waiting(
    make_scenario: Any, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = begun(make_scenario, embedder)
    challenged(scenario)
    fetch = scenario.service.backend.fetch

    def away(*_: Any) -> Any:
        raise BackendUnavailable("the store does not answer")

    monkeypatch.setattr(scenario.service.backend, "fetch", away)
    with pytest.raises(BackendUnavailable):
        scenario.service.driver.step("w1")
    assert evidence(scenario) == {}
    challenge = Challenge.parse(scenario.service.windows.get("w1").challenge or b"")
    with scenario.service.store.read() as connection:
        proven = set(connection.scalars(select(tables.response.c.position)))
    assert proven == challenge.sampled != frozenset()
    monkeypatch.setattr(scenario.service.backend, "fetch", fetch)
    assert of_rows(scenario.decide())["status"] == "PASS"


def test_a_sample_of_rows_that_does_not_recompute_is_not_answered(
    make_scenario: Any, embedder: Any
) -> None:
    """Not even the verifier has rows opened that nobody drew."""
    scenario = make_scenario(embedder=lambda _: embedder)
    few = {"rows": {"beta": "0.3", "eta": "0.3", "minimum": 2}}
    start(scenario, texts(), owners=few, versions=True)
    ask(scenario, "bread", 3)
    challenged(scenario)
    live = scenario.service.open_windows.get("w1")
    worker = scenario.service.driver._challenges
    challenge = Challenge.parse(scenario.service.windows.get("w1").challenge or b"")
    keys = scenario.verifier.app.state.service.keys
    drawn = challenge.sampled_rows["one"]
    other = next(at for at in range(12) if at not in drawn)
    for sample in ((*drawn, other), drawn[:-1], (), tuple(range(12))):
        strata = tuple(
            type(each)(each.id, each.population, tuple(sorted(sample)))
            if each.id == "rows:one"
            else each
            for each in challenge.strata
        )
        forged = Challenge(
            window="w1",
            final_root=challenge.final_root,
            final_size=challenge.final_size,
            preimage=challenge.preimage,
            receipts_list=challenge.receipts_list,
            strata=strata,
            deadline=challenge.deadline,
        ).signed(keys.statement)
        with pytest.raises(RagauditError, match="strata or sample do not recompute"):
            worker.check(live, forged)
    assert worker.check(live, challenge) == tuple(sorted(challenge.sampled))
