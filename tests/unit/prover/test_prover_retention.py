"""What the prover has of a finished window goes, whole, and is stated; its public part stays."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from finished_windows import Finished
from ragaudit.encoding.errors import RagauditError, RejectedError, TooEarly
from ragaudit.ledger.messages.custody import ProviderDeletion
from ragaudit.prover.errors import VerifierUnreachable, WrongState
from ragaudit.prover.lifecycle import retention
from ragaudit.prover.lifecycle.retention import DAY_MS, Retention
from ragaudit.prover.store.states import State
from ragaudit.verifier.later_statements import Judged
from scenario import ProverScenario

pytestmark = ON_EACH_ENGINE


def test_all_but_the_public_part_goes(finished: Finished, tmp_path: Path) -> None:
    public = finished.public()
    assert 0 not in finished.rows().values()
    finished.delete()
    assert set(finished.rows().values()) == {0}
    assert finished.public() == public
    window = finished.scenario.service.windows.get("w1")
    assert not window.noise_seed + window.log_seed + window.pseudonym_key
    assert window.slot_roots is window.challenge is None and window.verdict is not None

    stated = ProviderDeletion.parse(finished.statement())
    assert stated.entries == 2
    key = finished.scenario.service.verifier.keys().verdict
    judged = Judged.read(finished.bundle(tmp_path), key)
    judged.verify_deletion(stated)


def test_what_asks_for_it_is_told(finished: Finished) -> None:
    assert finished.get("/v1/windows/w1/account/count", "ada").status_code == 200
    finished.delete()
    for path in (f"/v1/receipts/{finished.receipt}", "/v1/windows/w1/account/count"):
        answer = finished.get(path, "ada")
        assert answer.status_code == 404 and "deleted at" in answer.json()["detail"], answer.text
    assert finished.ask("k1").status_code == 409  # closed, as for any other question
    status = finished.scenario.api.get(
        "/v1/operator/windows/w1", headers=finished.scenario.operator
    ).json()
    assert status["deleted"]["done"] and status["records"] == 0


def test_only_a_finished_window_is_deleted(scenario: ProverScenario) -> None:
    found = Finished(scenario)
    with pytest.raises(WrongState, match="the window is open"):
        found.retention.state("w1")
    scenario.clock.at(found.end)
    scenario.drive(State.CLOSED)
    scenario.service.driver.step("w1")
    # Whatever the operator wants: an audit and a dispute may still ask for it.
    scenario.draw()
    with pytest.raises(WrongState, match="the window is challenged"):
        found.retention.state("w1")
    assert 0 not in {count for name, count in found.rows().items() if name != "prover_response"}
    assert not list((scenario.folder / "prover/fences").glob("*.deletion"))


def test_answers_that_are_given_again_stay(scenario: ProverScenario) -> None:
    found = Finished(scenario, retry_seconds=3600).archive()
    with pytest.raises(TooEarly) as raised:
        found.retention.state("w1")
    assert raised.value.retry_after is not None
    scenario.clock.now += 1000 * int(raised.value.retry_after)
    found.retention.state("w1")


def test_the_settings_say_when(finished: Finished) -> None:
    scenario = finished.scenario
    finished.retention.step()
    assert 0 not in finished.rows().values()
    store = scenario.settings.store.model_copy(update={"retention_days": 2})
    scenario.settings = scenario.settings.model_copy(update={"store": store})
    scenario.restart()
    scenario.clock.now = 1000 * finished.end + 2 * DAY_MS - 60_000
    finished.retention.step()
    assert 0 not in finished.rows().values()
    scenario.clock.now += 120_000
    finished.retention.step()
    assert set(finished.rows().values()) == {0}


def test_one_that_ends_on_the_way_goes_on(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 0
    honest = Retention._delete_some

    def dying(self: Retention, *arguments: Any) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return honest(self, *arguments)

    monkeypatch.setattr(retention, "_TABLES", [(table, 1) for table, _ in retention._TABLES])
    monkeypatch.setattr(Retention, "_delete_some", dying)
    finished.scenario.clock.at(finished.end + 601)
    finished.retention.state("w1")
    statement = (finished.scenario.folder / "prover/fences/w1.deletion").read_bytes()
    turns = 0
    while turns < 100:
        left, turns = turns, turns + 1
        # Half of it is gone: nothing is given, and nobody says yet that nothing is there.
        assert finished.get(f"/v1/receipts/{finished.receipt}", "ada").status_code == 404
        assert finished.get("/v1/windows/w1/deletion").status_code == 404
        try:
            finished.retention.step()
            break
        except KeyboardInterrupt:
            finished.scenario.restart()
            finished.retention.state("w1")  # asked for again, which changes nothing
    assert len(retention._TABLES) < turns < 100
    assert set(finished.rows().values()) == {0}
    assert finished.statement() == statement


def away(window: str) -> bytes | None:
    raise VerifierUnreachable("cannot be reached", where=window)


def test_one_that_answers_no_more_is_deleted_once_it_is_judged(
    scenario: ProverScenario, tmp_path: Path
) -> None:
    found = Finished(scenario)
    scenario.service.driver.checkpoint("w1")
    scenario.service.windows.note("w1", unusable="what was cosigned is lost")
    scenario.service.open_windows.forget("w1")
    scenario.clock.at(found.end)
    assert not scenario.service.driver.step("w1")
    # It may still be restored: nobody has said that the window has failed.
    with pytest.raises(TooEarly, match="not judged"):
        found.retention.state("w1")
    found.retention.step()
    assert scenario.state() is State.OPEN

    scenario.clock.at(scenario.policy().sampling_instant + 1)
    for _ in range(500):
        scenario.verifier.get("/v1/windows/w1/progress")
        envelope = scenario.service.verifier.verdict("w1")
        if envelope is not None:
            break
    assert envelope is not None
    # What is no verdict about this window's policy deletes nothing.
    forged = envelope.replace(b'"sig":"', b'"sig":"A', 1)
    with pytest.raises(RagauditError):
        replace(found.retention, verdict=lambda _: forged).state("w1")
    window, slots = scenario.service.windows.get("w1"), scenario.policy().slots
    other = replace(
        window,
        policy=window.policy.replace(f'"slots":{slots}'.encode(), f'"slots":{slots + 1}'.encode()),
    )
    assert other.policy != window.policy
    with pytest.raises(RejectedError, match="another policy"):
        found.retention._judged(other)
    assert scenario.state() is State.OPEN and found.rows()["records"] == 2

    scenario.clock.at(found.end + 601)
    # A verifier that is away holds up this window alone, and says so.
    with pytest.raises(VerifierUnreachable):
        replace(found.retention, verdict=away, days=0).step()
    found.delete()
    assert scenario.state() is State.ARCHIVED
    assert set(found.rows().values()) == {0}
    stated = ProviderDeletion.parse(found.statement())
    assert stated.checkpoint is None and stated.entries == 2
    key = scenario.service.verifier.keys().verdict
    judged = Judged.read(found.bundle(tmp_path), key)
    assert judged.verdict.result == "FAIL"
    judged.verify_deletion(stated)
