"""What an operator lives through: stuck windows, other tenants, changed keys, full disks."""

import json
import logging
import os
import stat
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from ragaudit.client.cli import app
from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.window_chain import Link, WindowChain
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.command.checks import run_checks
from ragaudit.prover.errors import (
    IndexInUse,
    KeyChanged,
    NotPinned,
    UnpinnedVerifier,
    VerifierRefused,
    VerifierUnreachable,
    WrongState,
)
from ragaudit.prover.http.app import create_app
from ragaudit.prover.http.questions import Questions
from ragaudit.prover.keys import create_key, load_key
from ragaudit.prover.sequencer import aside
from ragaudit.prover.service import Service
from ragaudit.prover.settings import SurfaceSettings, VerifierSettings
from ragaudit.prover.store.fences import check_folder, check_space
from ragaudit.prover.store.states import State
from ragaudit.prover.surfaces.chroma import collection_id
from ragaudit.prover.verifier.connection import check_pins
from ragaudit.verifier.service import providers
from scenario import ProverScenario
from surface_window import CHROMA, SURFACES, VECTOR, WINDOW, logged, start
from typer.testing import CliRunner
from whole_windows import verdict


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
    for query, names in (
        ("", ["w1", "w2"]),
        ("?served=false", ["w1", "w2"]),
        ("?served=true", ["w2"]),
    ):
        shown = scenario.api.get(f"/v1/windows{query}").json()
        assert [each["window"] for each in shown] == names
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


# What accounts and strangers try against an honest provider: its window passes all the same.

SKEW_MS = 5_000


def check_passes(scenario: Any) -> None:
    """Run the window to its end."""
    decided = verdict(scenario)
    wrong = [each for each in decided["checks"] if each["status"] in {"FAIL", "NOT RUN"}]
    assert decided["result"] == "PASS", wrong


def test_a_stranger_cannot_have_an_old_head_cosigned(scenario: Any) -> None:
    """It would make every entry since then seem back-dated: all of a verifier's absence."""
    scenario.open()
    assert scenario.ask("ada").status_code == 200
    scenario.service.driver.checkpoint("w1")
    assert scenario.ask("ada").status_code == 200
    scenario.transport.down = True
    with pytest.raises(VerifierUnreachable):
        scenario.service.driver.checkpoint("w1")
    shown = scenario.api.get("/v1/windows/w1/log/checkpoint").content
    assert scenario.ask("ada").status_code == 200  # after the head that was signed
    scenario.clock.now += 4 * SKEW_MS
    scenario.transport.down = False
    log = scenario.service.open_windows.get("w1").log
    old, new = log.checkpoints.latest(1).head.size, parse_checkpoint(shown).head.size
    request = AddCheckpointRequest(old, log.entries.consistency_proof(old, new), shown)
    scenario.verifier.post("/cosigner/add-checkpoint", content=request.encode())
    check_passes(scenario)


def test_a_nonce_that_is_revealed_at_the_last_moment(
    scenario: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer takes its time, and checkpoints are made meanwhile."""
    scenario.open()
    promised = scenario.promise(0)
    live, honest = scenario.service.open_windows.get("w1"), Mechanism.draw_noise

    def slow(self: Any, *arguments: Any) -> Any:
        monkeypatch.undo()
        scenario.clock.now += SKEW_MS
        assert aside(scenario.ask, "cyd").status_code == 200
        scenario.clock.now += 3_000
        scenario.service.driver.checkpoint("w1")
        return honest(self, *arguments)

    promise = Promise.from_json(promised.json())
    scenario.clock.now = promise.promised.time + live.policy.promise_life - 500
    monkeypatch.setattr(Mechanism, "draw_noise", slow)
    assert scenario.reveal(0).status_code == 409
    claim = {"promise": promise.to_json(), "nonce": scenario.chains["bob"].nonce(0).hex()}
    taken = scenario.verifier.post("/v1/windows/w1/claims", json=claim)
    assert taken.status_code == 422  # nobody can bring it up any more
    check_passes(scenario)


# Between two windows: retries are answered from the store, all else is told when to come back.

ENABLED = ["openai", "chroma", "qdrant", "dify"]


def ask(
    scenario: ProverScenario, surface: str, n: int = 3, account: str = "ada", key: str = ""
) -> Any:
    """A question on a surface with what each leaves to a default left out."""
    body: dict[str, Any]
    idempotent = {"Idempotency-Key": key} if key else {}
    match surface:
        case "openai":
            path, body = "/v1/vector_stores/handbook/search", {"query": "bread"}
            body |= {"max_num_results": n} if n != 3 else {}
        case "dify":
            path = "/retrieval"
            body = {"knowledge_id": "handbook", "query": "bread"}
            body["retrieval_setting"] = {"top_k": n, "score_threshold": 0.0}
        case "chroma":
            path = f"{CHROMA}/{collection_id('handbook')}/query"
            body = {"query_embeddings": [VECTOR], "n_results": n}
        case _:
            path = "/collections/handbook/points/query"
            body = {"query": VECTOR, "limit": n}
    return scenario.api.post(path, json=body, headers={**scenario.headers(account), **idempotent})


def no_window(surface: str, answer: Any) -> str:
    """The text of a 503 in the surface's own shape."""
    assert answer.status_code == 503, answer.text
    body = answer.json()
    match surface:
        case "openai":
            text = body["error"]["message"]
        case "dify":
            text = body["error_msg"]
        case "chroma":
            text = body["message"]
        case _:
            text = body["status"]["error"]
    assert isinstance(text, str) and "no window is open" in text
    return str(answer.headers["Retry-After"])


def end(scenario: ProverScenario) -> None:
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().end)


@pytest.mark.parametrize("surface", ENABLED)
def test_a_retry_is_answered_after_the_end(scenario: ProverScenario, surface: str) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 3600})
    first = ask(scenario, surface)
    assert first.status_code == 200, first.text
    count = logged(scenario)
    end(scenario)
    # Some moments behind: the state says that it is open.
    for state in (State.OPEN, State.CLOSED):
        scenario.drive(state)
        again = ask(scenario, surface)
        assert again.status_code == 200, again.text
        assert again.json() == first.json()
        assert again.headers["Ragaudit-Receipt"] == first.headers["Ragaudit-Receipt"]
        assert no_window(surface, ask(scenario, surface, 2)) == "60"
    assert logged(scenario) == count


@pytest.mark.parametrize("surface", ENABLED)
def test_a_search_that_skips_the_application_is_answered_alike(
    scenario: ProverScenario, surface: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 3600})
    skipped, honest = list[str](), Questions._answer

    async def counted(self: Questions, route: Any, *rest: Any) -> None:
        skipped.append(route.operation_id)
        await honest(self, route, *rest)

    def answers() -> list[tuple[int, bytes, dict[str, str]]]:
        asked = [ask(scenario, surface), ask(scenario, surface, 10**6)]
        asked.append(ask(scenario, surface, key="k" * 300))
        return [(each.status_code, each.content, dict(each.headers)) for each in asked]

    ask(scenario, surface)  # whose key is known is read when somebody comes with one that is not
    monkeypatch.setattr(Questions, "_answer", counted)
    fast = answers()
    assert len(skipped) == 3 and all(each.startswith(surface) for each in skipped)
    monkeypatch.setattr(Questions, "_caller", lambda *_: None)
    assert answers() == fast and len(skipped) == 3
    assert [status for status, *_ in fast] == [200, 400, 400]


def test_a_retry_is_answered_after_the_verdict(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 3600})
    first = {surface: ask(scenario, surface) for surface in ENABLED}
    own = {"query": "rolls", "kind": "text", "top_k": 2}
    key = {**scenario.headers("ada"), "Idempotency-Key": "k1"}
    file = scenario.api.post("/v1/windows/w1/query", json=own, headers=key)
    assert file.status_code == 200
    assert verdict(scenario)["result"] == "PASS"
    assert scenario.state() is State.ARCHIVED
    for surface, answer in first.items():
        assert ask(scenario, surface).json() == answer.json()
        assert no_window(surface, ask(scenario, surface, 2)) == "60"
    again = scenario.api.post("/v1/windows/w1/query", json=own, headers=key)
    assert (again.status_code, again.content) == (200, file.content)
    other = scenario.api.post("/v1/windows/w1/query", json={**own, "top_k": 1}, headers=key)
    assert other.status_code == 409 and "used for another request" in other.text
    del key["Idempotency-Key"]
    new = scenario.api.post("/v1/windows/w1/query", json={**own, "top_k": 1}, headers=key)
    assert new.status_code == 409 and "refusal" in new.json()


def test_a_retry_that_is_too_late_is_none(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 60})
    assert ask(scenario, "openai").status_code == 200
    end(scenario)
    scenario.drive(State.CLOSED)
    assert no_window("openai", ask(scenario, "openai")) == "60"


def test_a_retry_by_key_is_known_however_late(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 0})
    first = ask(scenario, "chroma", key="first")
    end(scenario)
    scenario.drive(State.CLOSED)
    again = ask(scenario, "chroma", key="first")
    assert (again.status_code, again.content) == (200, first.content)


def test_nobody_gets_the_answer_of_another(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 3600})
    assert ask(scenario, "openai", account="ada").status_code == 200
    end(scenario)
    scenario.drive(State.CLOSED)
    assert no_window("openai", ask(scenario, "openai", account="bob")) == "60"


@pytest.mark.parametrize("surface", ENABLED)
def test_the_next_window_is_announced(scenario: ProverScenario, surface: str) -> None:
    start(scenario, WINDOW)
    end(scenario)
    scenario.drive(State.CLOSED)
    scenario.service.create_window("w2", WINDOW)
    soon = scenario.service.policy_of("w2").start - scenario.policy().end
    assert no_window(surface, ask(scenario, surface)) == str(soon)
    scenario.clock.at(scenario.service.policy_of("w2").start - 7)
    assert no_window(surface, ask(scenario, surface)) == "7"


def test_a_window_that_was_stopped_is_none(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 3600})
    first = ask(scenario, "openai")
    scenario.service.stop_window("w1")
    assert ask(scenario, "openai").json() == first.json()
    assert no_window("openai", ask(scenario, "openai", 2)) == "60"


@pytest.mark.parametrize("surface", ENABLED)
def test_before_the_first_window(scenario: ProverScenario, surface: str) -> None:
    given = SurfaceSettings.model_validate(SURFACES)
    scenario.settings = scenario.settings.model_copy(update={"surfaces": given})
    scenario.restart()
    assert no_window(surface, ask(scenario, surface)) == "60"
    scenario.service.create_window("w1", WINDOW)
    scenario.clock.at(scenario.service.policy_of("w1").start - 30)
    assert no_window(surface, ask(scenario, surface)) == "30"


# The chain of windows as the service publishes it (docs/spec/08-services.md §8.11).


def shown(scenario: ProverScenario) -> list[tuple[str, int | None, str | None]]:
    chain = WindowChain.from_json(scenario.api.get("/v1/window-chain").json())
    links: tuple[Link, ...] = chain.verify([scenario.policy().keys.verifier])
    return [(link.window, link.size, link.continues) for link in links]


def test_each_window_is_shown_with_its_end_and_the_one_it_continues(make_scenario: Any) -> None:
    scenario: ProverScenario = make_scenario()
    assert scenario.api.get("/v1/window-chain").json()["windows"] == []
    scenario.open()
    assert shown(scenario) == [("w1", None, None)]
    scenario.ask()
    assert verdict(scenario)["result"] == "PASS"
    scenario.create("w2")
    scenario.drive(State.COUNTERSIGNED, "w2")
    # A window that nobody countersigned is none of the chain.
    scenario.create("w3")
    final, keys = scenario.service.windows.get("w1").final_checkpoint, scenario.policy().keys
    assert final is not None
    end = verify_cosigned(final, keys.log, CosignerPolicy((keys.cosigner,), 1)).signed.head
    assert shown(scenario) == [("w1", end.size, None), ("w2", None, "w1")]


def test_the_providers_key_is_changed_between_windows(make_scenario: Any) -> None:
    """The log's key is another one in each window anyway."""
    scenario: ProverScenario = make_scenario()
    file, verifier = scenario.settings.keys.provider_file, cast(Any, scenario.verifier.app)
    pinned = verifier.state.service.database
    old_file = file.read_bytes()
    scenario.open()
    receipt = scenario.ask().json()["public"]
    file.unlink()
    new = create_key(file).public
    # Not within a window: its policy names the key that signs.
    scenario.restart()
    with pytest.raises(KeyChanged):
        scenario.service.start()
    new_file = file.read_bytes()
    file.write_bytes(old_file)
    scenario.restart()
    assert verdict(scenario)["result"] == "PASS"
    old = scenario.policy().keys.provider
    file.write_bytes(new_file)
    providers.remove(pinned, "provider.example")
    providers.add(pinned, "provider.example", new)
    scenario.restart()
    scenario.open("w2")
    assert scenario.ask(name="w2").status_code == 200
    scenario.service.driver.checkpoint("w2")
    chain = WindowChain.from_json(scenario.api.get("/v1/window-chain").json())
    links = chain.verify([scenario.policy("w2").keys.verifier])
    assert [link.provider_key for link in links] == [old, new]
    assert [link.continues for link in links] == [None, "w1"]
    assert len({link.log for link in links}) == 2
    shown = scenario.folder / "chain.json"
    shown.write_bytes(chain.encode())
    pin = scenario.policy("w2").keys.verifier.raw.hex()
    said = CliRunner().invoke(app, ["verify-windows", str(shown), "--verifier-key", pin]).output
    first, second = said.splitlines()
    assert "provider key" not in first
    assert second.endswith(f"new provider key {new.raw.hex()}")
    # What was signed before stays what it was, under the key of its own window.
    PublicReceipt.from_json({**receipt, "proof": None}).verify(old)
    assert scenario.api.get(f"/v1/windows/w1/receipts/{receipt['index']}/proof").status_code == 200


# What the prover's operator sees: metrics of windows and budgets, the audit stream of answers.

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
