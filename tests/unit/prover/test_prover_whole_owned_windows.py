"""Windows in which owners check, from the opening to the verdict, with the real verifier."""

from typing import Any

import pytest
from exact_windows import ask, later, start, texts
from ragaudit.ledger.messages.documents import check_secret, id_key
from ragaudit.ledger.messages.entries import Documents, Opening
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.index.committed import load_indexes
from ragaudit.prover.window.lists import document_list
from ragaudit.prover.window.records import entries_of
from scenario import ProverScenario
from whole_windows import checked, verdict

NEW = Document("one-new", "a document that is new")


def refreshed(scenario: ProverScenario, documents: list[Document], at: int) -> int:
    """Commit to these documents, and go to when the version is in force."""
    StoredDocuments(scenario.service.store).add("one", documents, replace=True)
    version = scenario.service.refresher.refresh("w1", "one")
    later(scenario, at)
    return version


def lives(scenario: ProverScenario, secret: bytes) -> dict[str, Any]:
    """What the log lists of each document, by the secret of the tenant."""
    found = {}
    with scenario.service.store.read() as connection:
        [entry] = entries_of(connection, "w1", Opening.KIND)
        opened = Opening.parse(entry.body).tenant("one")
        check_secret("w1", "one", secret, opened.id_commitment)
        made = document_list(connection, "w1", "one")
        logged = [Documents.parse(e.body) for e in entries_of(connection, "w1", Documents.KIND)]
    assert made.entry in logged
    for each in [*texts(), NEW, Document("one-never", "")]:
        rows = made.prove(id_key("w1", "one", secret, each.id))
        found[each.id] = made.lives(made.position(rows[0])) if len(rows) == 1 else None
    return found


@pytest.mark.parametrize("account_index", [True, False])
def test_a_window_without_noise(make_scenario: Any, embedder: Any, account_index: bool) -> None:
    """A document is added, one goes for good, and one goes and comes back."""
    scenario = make_scenario(embedder=lambda _: embedder)
    same = [Document(f"same-{n}", "the same text for all") for n in range(5)]
    first = [*texts(), *same]
    start(scenario, first, owners={}, versions=True, account_index=account_index)
    ties = "the same text for all"
    files = [ask(scenario, "bread", 3), ask(scenario, ties, 2)]
    without = [each for each in first if each.id not in {"one-3", "one-5"}]
    assert refreshed(scenario, [*without, NEW], 140) == 2
    files += [ask(scenario, NEW.content, 3), ask(scenario, ties, 2)]
    back = [*without, NEW, next(each for each in first if each.id == "one-5")]
    assert refreshed(scenario, back, 240) == 3
    files += [ask(scenario, "document 5 of one", 3), ask(scenario, ties, 3)]
    assert [file.public.query.version for file in files] == [1, 1, 2, 2, 3, 3]
    assert "one-5" in {each.id for each in files[4].answer.documents}
    assert all(file.private.ties is not None for file in (files[1], files[3], files[5]))
    scenario.service.driver.checkpoint("w1")
    checked(scenario, files, embedder)
    found = verdict(scenario)
    bad = [each for each in found["checks"] if each["status"] in {"FAIL", "NOT RUN"}]
    assert found["result"] == "PASS", bad
    ids = [check["id"] for check in found["checks"]][21:]
    assert ids == ["accounts"] * account_index + ["documents"]
    (one, *_) = found["documents"]
    assert (one["tenant"], one["listed"]) == ("one", 18)
    assert one["versions"] == [
        {"version": 1, "rows": 17, "marked": 0},
        {"version": 2, "rows": 18, "marked": 2},
        {"version": 3, "rows": 18, "marked": 1},
    ]
    (secret,) = {file.private.document_secret for file in files}
    assert secret is not None and secret.hex() not in str(found)
    listed = lives(scenario, secret)
    assert listed.pop("one-3") == ((1, 1),) and listed.pop("one-5") == ((1, 1), (3, 3))
    assert listed.pop(NEW.id) == ((2, 3),) and listed.pop("one-never") is None
    assert set(listed.values()) == {((1, 3),)}


def test_a_window_with_noise(make_scenario: Any, embedder: Any) -> None:
    """Nothing shows which document is gone, but its row."""
    scenario = make_scenario(embedder=lambda _: embedder)
    noise: dict[str, Any] = {
        "privacy": "gaussian",
        "norm_bound": None,
        "sigma": "40",
        "epsilon_acc": None,
    }
    columns: dict[str, Any] = {"public_columns": {}, "filters": False, "query_kinds": ["text"]}
    start(scenario, texts(), owners={}, versions=True, **noise, **columns)
    files = [ask(scenario, "bread", 3)]
    assert refreshed(scenario, [*texts()[1:], NEW], 140) == 2
    files.append(ask(scenario, "bread", 3))
    assert [file.public.query.version for file in files] == [1, 2]
    scenario.service.driver.checkpoint("w1")
    checked(scenario, files, embedder)
    found = verdict(scenario)
    bad = [each for each in found["checks"] if each["status"] in {"FAIL", "NOT RUN"}]
    assert found["result"] == "PASS", bad
    assert [check["id"] for check in found["checks"]][21:] == ["accounts", "documents"]
    assert found["documents"][0]["versions"][1] == {"version": 2, "rows": 13, "marked": None}
    assert {file.private.document_secret for file in files} == {None}
    with scenario.service.store.read() as connection:
        secret = load_indexes(connection, "w1")["one"].document_secret
    for row in (row for file in files for row in file.private.rows):
        assert row.id_key == id_key("w1", "one", secret, row.id)
    assert all(secret.hex() not in file.encode().decode() for file in files)
    listed = lives(scenario, secret)
    assert listed.pop(NEW.id) == ((2, 2),) and listed.pop("one-never") is None
    assert set(listed.values()) == {((1, 2),)}
