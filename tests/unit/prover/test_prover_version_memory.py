"""Which versions of an index are in memory, and what is still proven of those that are not."""

import gc
import weakref
from typing import Any

import pytest
from exact_windows import ask, change, later, start
from ragaudit.encoding.errors import InternalError
from ragaudit.prover.index.committed import CommittedIndex, load_index
from ragaudit.prover.lifecycle import open_windows
from ragaudit.prover.window.open_window import IndexVersions
from scenario import ProverScenario
from whole_windows import checked, verdict


def versions(scenario: ProverScenario) -> IndexVersions:
    return scenario.service.open_windows.get("w1").versions


def refresh(scenario: ProverScenario, text: str) -> None:
    """Change a document and log the version that has it."""
    change(scenario, "one-3", text)
    scenario.service.refresher.mark_stale("one")
    scenario.service.refresher.refresh("w1", "one")


def test_superseded_versions_are_let_go_and_still_proven(
    scenario: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(scenario, versions=True)
    files = [ask(scenario, "bread")]
    held = versions(scenario)
    refs = [weakref.ref(held.latest("one"))]
    refresh(scenario, "a second text")
    # Not in force yet: both are needed.
    assert held.in_memory("one") == [1, 2]
    later(scenario, 140)
    files.append(ask(scenario, "rolls"))
    assert held.in_memory("one") == [2]
    refs.append(weakref.ref(held.latest("one")))
    refresh(scenario, "a third text")
    later(scenario, 240)
    files.append(ask(scenario, "cake"))
    assert held.in_memory("one") == [3]
    gc.collect()
    assert [ref() for ref in refs] == [None, None]
    # What was answered from them is had again, and is proven after the window.
    scenario.service.driver.checkpoint("w1")
    for file in files:
        name = f"w1.{file.public.index}"
        again = scenario.api.get(f"/v1/receipts/{name}", headers=scenario.headers("ada"))
        assert again.content == file.encode()
    checked(scenario, files)
    loaded: list[tuple[str, int]] = []

    def noted(connection: Any, window: str, tenant: str, version: int) -> CommittedIndex:
        loaded.append((tenant, version))
        return load_index(connection, window, tenant, version)

    monkeypatch.setattr(open_windows, "load_index", noted)
    predicate = verdict(scenario)
    assert predicate["result"] == "PASS", predicate["checks"]
    assert {file.public.query.version for file in files} == {1, 2, 3}
    assert set(loaded) == {("one", 1), ("one", 2)}


def test_a_restart_holds_no_more(scenario: ProverScenario) -> None:
    start(scenario, versions=True)
    before = versions(scenario).latest("one").root
    refresh(scenario, "a second text")
    scenario.service.driver.checkpoint("w1")
    scenario.restart()
    assert versions(scenario).in_memory("one") == [1, 2]
    later(scenario, 140)
    scenario.restart()
    assert versions(scenario).in_memory("one") == [2]
    assert ask(scenario, "rolls").public.query.version == 2
    assert versions(scenario).get("one", 1).root == before


def test_only_versions_that_are_logged(scenario: ProverScenario) -> None:
    start(scenario, versions=True)
    with pytest.raises(InternalError, match="no version 2"):
        versions(scenario).get("one", 2)
