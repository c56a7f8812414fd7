"""A window goes on after a restore: under a new seed, at the next instant, and the audit passes."""

import json
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from exact_windows import change, start
from ragaudit.encoding.text import b64_decode
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.messages.entries import Epoch, Record
from ragaudit.ledger.messages.shown import ShownWindow
from ragaudit.prover.errors import ClocksDiffer, VerifierUnreachable, WrongState
from ragaudit.prover.lifecycle.restoring import Restored
from ragaudit.prover.service import restorer_of
from ragaudit.prover.store import tables
from ragaudit.prover.store.states import State
from ragaudit.prover.window.records import entries_of
from ragaudit.verifier.procedure.covered import EPOCHS
from restoring import BackUp
from scenario import ProverScenario
from sqlalchemy import select

pytestmark = ON_EACH_ENGINE

GAUSSIAN: dict[str, Any] = {"privacy": "gaussian"}


def lose_fence(scenario: ProverScenario) -> None:
    """The fence's disk is lost while the prover is down; the database is as it was."""
    scenario.service.stop()
    for file in (scenario.folder / "prover/fences").iterdir():
        file.unlink()
    scenario.restart()
    scenario.service.start()
    scenario.restart()
    assert "fence is missing" in str(scenario.service.windows.get("w1").unusable)


def restore(scenario: ProverScenario, reason: str = "restore") -> Restored:
    """Restore, as the command does while no service runs, and start one."""
    scenario.restart()
    try:
        return restorer_of(scenario.service).restore("w1", reason)
    finally:
        scenario.restart()


def epochs(scenario: ProverScenario) -> list[Epoch]:
    with scenario.service.store.read() as connection:
        return [Epoch.parse(entry.body) for entry in entries_of(connection, "w1", Epoch.KIND)]


def to_next_instant(scenario: ProverScenario, number: int) -> None:
    scenario.service.driver.step("w1")
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().activation_instants[number - 1])
    scenario.service.driver.step("w1")


def verdict_of(scenario: ProverScenario) -> Any:
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().end)
    scenario.drive(State.CLOSED)
    scenario.service.driver.step("w1")
    scenario.clock.at(scenario.policy().sampling_instant)
    scenario.drive(State.CHALLENGED)
    scenario.clock.now = scenario.policy().release_time
    for _ in range(400):
        scenario.service.driver.step("w1")
        if scenario.state() is State.ARCHIVED:
            break
        scenario.verifier.get("/v1/windows/w1/progress")
    stored = scenario.service.windows.get("w1").verdict
    assert stored is not None
    return json.loads(b64_decode(json.loads(stored)["payload"]))["predicate"]


def test_a_window_whose_fence_is_lost_goes_on_at_the_next_instant(
    scenario: ProverScenario,
) -> None:
    scenario.open(**GAUSSIAN)
    assert [scenario.ask(query=text).status_code for text in ("bread", "trains")] == [200, 200]
    assert scenario.promise(0).status_code == 200 and scenario.reveal(0).status_code == 200
    scenario.service.driver.checkpoint("w1")
    lose_fence(scenario)
    assert scenario.ask(query="violin").status_code == 503
    done = restore(scenario)
    assert (done.epoch, done.instant) == (2, scenario.policy().activation_instants[1])
    # Between the restore and the instant nothing is answered.
    early = scenario.ask(query="violin")
    assert early.status_code == 503 and "new seed" in early.json()["detail"]
    assert early.headers["retry-after"]
    to_next_instant(scenario, 2)
    answers = [scenario.ask(query=text) for text in ("violin", "cello")]
    assert [each.status_code for each in answers] == [200, 200]
    records = [Record.parse(bytes.fromhex(each.json()["public"]["body"])) for each in answers]
    assert [(each.epoch, each.counter, each.activation) for each in records] == [
        (2, 2, 2), (2, 3, 2),
    ]  # fmt: skip
    assert scenario.promise(1).status_code == 200 and scenario.reveal(1).status_code == 200
    scenario.service.driver.checkpoint("w1")
    window = ShownWindow.from_json(scenario.api.get("/v1/windows/w1").json())
    assert [body.epoch for _, body in window.logged_epochs()] == [2]
    predicate = verdict_of(scenario)
    assert predicate["result"] == "PASS", predicate["checks"]
    assert predicate["counts"]["epochs"] == 1 and EPOCHS in predicate["not_covered"]
    (line,) = history_of(predicate)
    assert "seed epoch 2" in line and "restored or lost" in line


@pytest.mark.slow
def test_without_noise_too_and_with_a_version_that_counts_from_the_same_instant(
    scenario: ProverScenario,
) -> None:
    start(scenario, versions=True)
    assert scenario.ask(query="bread").status_code == 200
    scenario.service.driver.checkpoint("w1")
    lose_fence(scenario)
    assert restore(scenario).epoch == 2
    change(scenario, "one-2", "a text that is new")
    assert scenario.service.refresher.refresh("w1", "one") == 2
    to_next_instant(scenario, 2)
    answer = scenario.ask(query="bread")
    record = Record.parse(bytes.fromhex(answer.json()["public"]["body"]))
    assert (record.version, record.epoch, record.activation, record.counter) == (2, 2, 2, 1)
    predicate = verdict_of(scenario)
    assert predicate["result"] == "PASS", predicate["checks"]
    lines = history_of(predicate)
    assert "seed epoch 2" in lines[0] and "version 2 of the index of one" in lines[1]


def history_of(predicate: Any) -> list[str]:
    lines: list[str] = next(
        check["evidence"] for check in predicate["checks"] if check["id"] == "schedule"
    )
    return lines


def test_calling_again_does_no_harm(scenario: ProverScenario) -> None:
    scenario.open(**GAUSSIAN)
    assert scenario.ask().status_code == 200
    scenario.service.driver.checkpoint("w1")
    lose_fence(scenario)
    first = restore(scenario)
    lose_fence(scenario)  # as if the process had ended before the fence was made
    assert restore(scenario) == first
    assert [each.epoch for each in epochs(scenario)] == [2]
    to_next_instant(scenario, 2)
    assert scenario.ask(query="violin").status_code == 200
    # Now noise was drawn under epoch 2: another restore needs another seed.
    assert restore(scenario, "key-loss").epoch == 3
    seeds = [each.seed_root for each in epochs(scenario)]
    assert [each.reason for each in epochs(scenario)] == ["restore", "key-loss"]
    assert len(set(seeds)) == 2 and epochs(scenario)[1].previous_root == seeds[0]
    with scenario.service.store.read() as connection:
        stored = connection.scalars(select(tables.seed_epoch.c.noise_seed)).all()
    assert len({bytes(each) for each in stored}) == 2


def test_before_any_noise_was_drawn_the_first_seed_stays(scenario: ProverScenario) -> None:
    scenario.create(**GAUSSIAN)
    scenario.drive(State.COUNTERSIGNED)
    scenario.register("ada")
    lose_fence(scenario)
    assert restore(scenario).epoch == 1
    assert epochs(scenario) == []


def test_a_backup_that_lacks_what_was_cosigned_is_refused(scenario: ProverScenario) -> None:
    scenario.open(**GAUSSIAN)
    assert scenario.ask().status_code == 200
    backup = BackUp(scenario.settings.store.url)
    assert scenario.ask(query="trains").status_code == 200
    scenario.service.driver.checkpoint("w1")
    scenario.service.stop()
    backup.restore()
    for lost in (False, True):  # the fence, too: the cosigner alone remembers
        if lost:
            (scenario.folder / "prover/fences/w1.fence").unlink()
        with pytest.raises(RestoredBackup, match="the database has 5 entries") as raised:
            restore(scenario)
        assert "were cosigned" in str(raised.value) and "later backup" in str(raised.value)
        assert "under another name" in str(raised.value)
        assert epochs(scenario) == []
        assert scenario.ask(query="violin").status_code == 503


def test_a_backup_that_lacks_what_was_answered_is_refused(scenario: ProverScenario) -> None:
    """Nobody cosigned it, but an account has the receipt, which would convict the provider."""
    scenario.open(**GAUSSIAN)
    scenario.service.driver.checkpoint("w1")
    backup = BackUp(scenario.settings.store.url)
    assert scenario.ask(query="trains").status_code == 200
    scenario.service.stop()
    backup.restore()
    with pytest.raises(RestoredBackup, match="have answers that left"):
        restore(scenario)
    assert epochs(scenario) == [] and scenario.ask(query="violin").status_code == 503


@pytest.mark.slow
def test_a_promise_from_before_the_restore_is_claimed(scenario: ProverScenario) -> None:
    scenario.open(**GAUSSIAN)
    promised = scenario.promise(0)
    assert promised.status_code == 200
    scenario.service.driver.checkpoint("w1")
    lose_fence(scenario)
    restore(scenario)
    to_next_instant(scenario, 2)
    answer = scenario.reveal(0)
    assert answer.status_code == 409 and "before a restore" in answer.json()["detail"]
    nonce = scenario.chains["bob"].nonce(0).hex()
    claimed = scenario.verifier.post(
        "/v1/windows/w1/claims",
        json={"promise": promised.json(), "nonce": nonce, "registration": None},
    )
    assert claimed.status_code == 200, claimed.text
    predicate = verdict_of(scenario)
    assert predicate["result"] == "PASS", predicate["checks"]
    assert predicate["counts"]["records"] == 1


@pytest.mark.slow
def test_without_an_instant_left_the_window_only_closes(scenario: ProverScenario) -> None:
    scenario.open(**GAUSSIAN)
    assert scenario.ask().status_code == 200
    instants = scenario.policy().activation_instants
    for number in range(2, len(instants)):
        to_next_instant(scenario, number)
    lose_fence(scenario)
    assert restore(scenario).instant is None
    assert scenario.ask(query="violin").status_code == 503
    predicate = verdict_of(scenario)
    assert predicate["result"] == "PASS", predicate["checks"]
    (line,) = history_of(predicate)
    assert "never in force" in line


def test_what_is_refused_changes_nothing(scenario: ProverScenario) -> None:
    scenario.open(**GAUSSIAN)
    assert scenario.ask().status_code == 200
    scenario.service.driver.checkpoint("w1")
    lose_fence(scenario)
    scenario.restart()
    scenario.transport.down = True
    with pytest.raises(VerifierUnreachable):
        restorer_of(scenario.service).restore("w1")
    scenario.transport.down = False
    scenario.restart()
    with pytest.raises(ClocksDiffer):
        restorer = restorer_of(scenario.service)
        restorer._clock = lambda: scenario.clock() + 3_600_000
        restorer.restore("w1")
    assert epochs(scenario) == []
    assert scenario.service.windows.get("w1").unusable is not None


def test_a_policy_without_epochs_is_told_so(scenario: ProverScenario) -> None:
    scenario.open(privacy="gaussian", epochs=False)
    lose_fence(scenario)
    with pytest.raises(WrongState, match="allows no seed epochs"):
        restore(scenario)


def test_a_window_that_was_handed_over_has_nothing_to_go_on_with(scenario: ProverScenario) -> None:
    scenario.open(**GAUSSIAN)
    scenario.clock.at(scenario.policy().end)
    scenario.drive(State.CLOSED)
    scenario.service.driver.step("w1")
    with pytest.raises(WrongState, match="closed"):
        restore(scenario)
