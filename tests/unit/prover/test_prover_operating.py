"""What an operator lives through: stuck windows, other tenants, changed keys, full disks."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.command.checks import run_checks
from ragaudit.prover.errors import (
    IndexInUse,
    KeyChanged,
    NotPinned,
    UnpinnedVerifier,
    VerifierRefused,
    WrongState,
)
from ragaudit.prover.http.app import create_app
from ragaudit.prover.keys import load_key
from ragaudit.prover.service import Service
from ragaudit.prover.settings import VerifierSettings
from ragaudit.prover.store.fences import check_folder, check_space
from ragaudit.prover.store.states import State
from ragaudit.prover.verifier.connection import check_pins
from ragaudit.verifier.service import providers


def forget_the_provider(scenario: Any) -> None:
    """The regulator has not pinned the key, or pinned another."""
    providers.remove(scenario.verifier.app.state.service.database, "provider.example")


def new_documents(count: int = 8) -> list[Document]:
    return [Document(f"new-{n}", f"a new document about bread, number {n}") for n in range(count)]


def test_a_window_that_nobody_countersigns_ends_at_its_start(scenario: Any) -> None:
    forget_the_provider(scenario)
    scenario.create()
    scenario.drive(State.COMMITTED)
    with pytest.raises(VerifierRefused, match="401"):
        scenario.service.driver.step("w1")
    scenario.service.driver.failures["w1"] = "the verifier answered 401"
    status = scenario.api.get("/v1/operator/windows/w1", headers=scenario.operator).json()
    assert status["last_error"] == "the verifier answered 401"
    scenario.clock.at(status["start"])
    assert scenario.service.driver.step("w1")
    window = scenario.service.windows.get("w1")
    assert window.state is State.ABANDONED and "401" in window.unusable
    assert scenario.service.windows.unfinished() == []
    scenario.service.check_ready()  # an abandoned window is no fault of the service
    assert StoredDocuments(scenario.service.store).add("one", new_documents()) == 20
    scenario.create("w2")


def test_a_window_is_abandoned_before_the_countersignature_only(scenario: Any) -> None:
    scenario.create()
    path = "/v1/operator/windows/w1/abandon"
    assert scenario.api.post(path).status_code == 401
    done = scenario.api.post(path, headers=scenario.operator)
    assert done.status_code == 200 and done.json()["state"] == "abandoned"
    assert scenario.api.post(path, headers=scenario.operator).status_code == 409
    scenario.create("w2")
    scenario.drive(State.COUNTERSIGNED, "w2")
    with pytest.raises(WrongState):
        scenario.service.abandon_window("w2")
    listed = scenario.api.get("/v1/operator/windows", headers=scenario.operator).json()
    assert [(each["window"], each["state"]) for each in listed] == [
        ("w1", "abandoned"),
        ("w2", "countersigned"),
    ]


def test_documents_of_others_and_of_new_tenants_change_while_a_window_is_open(
    scenario: Any,
) -> None:
    scenario.open()
    documents = StoredDocuments(scenario.service.store)
    with pytest.raises(IndexInUse, match="w1"):
        documents.add("one", new_documents())
    assert documents.add("three", new_documents()) == 8
    key = scenario.service.accounts.add("three", "dot")
    scenario.keys["dot"] = key
    refused = scenario.post("/v1/windows/w1/registration", "dot", {"anchor": None})
    assert refused.status_code == 409 and "three" in refused.json()["detail"]
    assert scenario.ask().status_code == 200


def test_a_changed_provider_key_is_refused_at_the_start(scenario: Any) -> None:
    scenario.create()
    path = scenario.settings.keys.provider_file
    path.write_text(PrivateKey.generate().seed().hex() + "\n")
    scenario.service.stop()
    service = create_app(scenario.settings, components=scenario.components).state.service
    with pytest.raises(KeyChanged, match="w1"):
        service.start()
    service.stop()


def test_a_second_prover_is_refused_before_there_is_a_window(scenario: Any) -> None:
    scenario.service.start()
    second = Service(scenario.settings, scenario.components)
    with pytest.raises(RefusedError, match="another process serves this database"):
        second.start()
    second.stop()
    scenario.service.stop()
    third = Service(scenario.settings, scenario.components)
    third.start()
    third.stop()


def test_check_makes_a_signed_call(scenario: Any) -> None:
    client = scenario.service.verifier
    client.check_pinned()
    forget_the_provider(scenario)
    key = load_key(scenario.settings.keys.provider_file).public.raw.hex()
    with pytest.raises(NotPinned, match=f"provider add provider.example --key {key}"):
        client.check_pinned()


def test_another_key_of_the_provider_is_told_too(scenario: Any) -> None:
    forget_the_provider(scenario)
    database = scenario.verifier.app.state.service.database
    providers.add(database, "provider.example", PrivateKey.generate().public)
    with pytest.raises(NotPinned):
        scenario.service.verifier.check_pinned()


def with_pins(scenario: Any, **changes: Any) -> Any:
    """The scenario's prover with other pins."""
    verifier = scenario.settings.verifier.model_copy(update=changes)
    return scenario.settings.model_copy(update={"verifier": verifier})


def test_nothing_is_served_without_pins(scenario: Any, caplog: pytest.LogCaptureFixture) -> None:
    names = ("cosigner_key", "verifier_key", "verdict_key")
    settings = with_pins(scenario, **dict.fromkeys(names))
    found = run_checks(settings)
    told = ", ".join(f"verifier.{name}" for name in names)
    assert told in str(found["pins"]) and "allow_unpinned" in str(found["pins"])
    service = create_app(settings, components=scenario.components).state.service
    with pytest.raises(UnpinnedVerifier, match="whichever server answers first is trusted"):
        service.start()
    service.verifier.close()
    settings = with_pins(scenario, **dict.fromkeys(names), allow_unpinned=True)
    assert run_checks(settings)["pins"] is None
    service = create_app(settings, components=scenario.components).state.service
    service.start()
    assert "verifier.verdict_key is not pinned" in caplog.text
    service.stop()
    pins: dict[str, Any] = {
        "cosigner_key": "x",
        "verifier_key": "00" * 32,
        "verdict_key": "00" * 32,
    }
    check_pins(VerifierSettings(**pins))
    with pytest.raises(UnpinnedVerifier, match="verdict_key"):
        check_pins(VerifierSettings(**pins | {"verdict_key": None}))


def test_a_full_disk_is_not_ready(scenario: Any) -> None:
    assert scenario.api.get("/readyz").status_code == 200
    store = scenario.settings.store.model_copy(update={"free_bytes_min": 2**50})
    scenario.settings = scenario.settings.model_copy(update={"store": store})
    scenario.restart()
    answer = scenario.api.get("/readyz")
    assert answer.status_code == 503 and "disk is full" in answer.json()["detail"]


def test_fences_that_cannot_be_written_are_not_ready(scenario: Any) -> None:
    scenario.service.start()
    assert scenario.api.get("/readyz").status_code == 200
    folder = scenario.settings.store.fence_folder
    assert not list(folder.glob(".writable*"))
    gone = folder.rename(folder.with_name("gone"))  # as of a disk that is not mounted
    answer = scenario.api.get("/readyz")
    assert answer.status_code == 503 and "cannot write" in answer.json()["detail"]
    assert not folder.exists()
    gone.rename(folder)
    assert scenario.api.get("/readyz").status_code == 200


def test_space_is_that_of_the_disk(tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    check_space(tmp_path, 0)
    check_space(tmp_path / "none", 2**50)
    check_space(None, 2**50)
    with pytest.raises(StoreUnavailable):
        check_space(tmp_path, found.f_blocks * found.f_frsize + 1)


def test_folders_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    check_folder(tmp_path / "new" / "fences")
    assert stat.S_IMODE((tmp_path / "new" / "fences").stat().st_mode) == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="cannot write"):
        check_folder(tmp_path / "file" / "fences")


def test_what_holds_secrets_is_for_its_owner_only(scenario: Any) -> None:
    scenario.open()
    private = [
        scenario.settings.store.fence_folder / "w1.fence",
        scenario.folder / "prover/prover.yaml",
    ]
    private += sorted((scenario.folder / "prover").glob("prover.db*"))
    assert len(private) >= 3
    for file in private:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    (scenario.folder / "prover/prover.db").chmod(0o644)
    found = run_checks(scenario.settings)
    assert "others may read the database" in str(found["permissions"])


@pytest.mark.parametrize(
    "text",
    [
        '{"query": "a", "query": "b", "top_k": 2, "filter": ""}',
        '{"query": "a", "top_k": 2, "top_k": 3, "filter": ""}',
        '{"query": "a", "top_k": 2.0, "filter": ""}',
        '{"query": "a", "top_k": 2, "filter": NaN}',
        '{"query": "a", "top_k": ' + "[" * 100 + "]" * 100 + "}",
        '{"query": "\\ud800", "top_k": 2, "filter": ""}',
        '{"query": "a", "top_k": ' + "9" * 5000 + "}",
    ],
)
def test_a_body_has_one_meaning(open_scenario: Any, text: str) -> None:
    headers = open_scenario.headers("ada") | {"Content-Type": "application/json"}
    answer = open_scenario.api.post("/v1/windows/w1/query", content=text, headers=headers)
    assert answer.status_code == 400, answer.text
    assert answer.json()["type"] == "urn:ragaudit:problem:malformed-request"


def test_patterns_are_said_in_words(open_scenario: Any) -> None:
    answer = open_scenario.api.get("/v1/windows/Not A Name")
    assert answer.status_code == 400 and answer.json()["expected"].startswith("1 to 64 of a-z")
    body = {"counter": 0, "nonce": "no"}
    answer = open_scenario.post("/v1/windows/w1/reveal", "bob", body)
    assert answer.json()["expected"] == "64 digits 0-9a-f" and "^" not in answer.text


def test_the_public_log_of_a_finished_window_loads_nothing(scenario: Any, embedder: Any) -> None:
    scenario.open()
    assert scenario.ask().status_code == 200
    scenario.service.driver.checkpoint("w1")
    with scenario.service.store.write() as connection:
        for before, after in (
            (State.OPEN, State.CLOSED),
            (State.CLOSED, State.CHALLENGED),
            (State.CHALLENGED, State.ARCHIVED),
        ):
            scenario.service.windows.advance(connection, "w1", before, after)
    scenario.service.open_windows.forget("w1")
    for path in ("log/checkpoint", "log/tile/0/000.p/5", "receipts/4/proof"):
        assert scenario.api.get(f"/v1/windows/w1/{path}").status_code == 200, path
    assert scenario.ask().status_code == 409
    headers = scenario.headers("ada")
    assert scenario.api.get("/v1/windows/w1/account", headers=headers).status_code == 409
    assert scenario.service.open_windows._loaded == {}
    scenario.restart()
    assert scenario.api.get("/v1/windows/w1/log/checkpoint").status_code == 200
    assert scenario.service.open_windows._loaded == {}


def test_the_driver_lets_go_of_what_is_finished(scenario: Any) -> None:
    scenario.open()
    fence = scenario.service.open_windows.get("w1").fence
    scenario.service.open_windows.forget("w1")
    scenario.service.open_windows.forget("w1")
    assert fence._fence is None
    assert scenario.ask().status_code == 200  # an open window is loaded again
