"""A window goes on after a restore: under a new seed, at the next instant, and the audit passes."""

import shutil
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from exact_windows import change, start
from ragaudit.ledger.errors import CorruptLog, NoteRejected, RestoredBackup, StoreUnavailable
from ragaudit.ledger.log import schema
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
from sqlalchemy import Connection, delete, event, func, select, update
from whole_windows import verdict

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
    predicate = verdict(scenario)
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
    predicate = verdict(scenario)
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
    predicate = verdict(scenario)
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
    predicate = verdict(scenario)
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
    scenario.hand_over()
    with pytest.raises(WrongState, match="closed"):
        restore(scenario)


# Head and stored entries are compared with what was cosigned, before anything is signed again.


def signed_sizes(scenario: ProverScenario) -> list[int]:
    with scenario.service.store.read() as connection:
        sizes = connection.scalars(select(schema.checkpoint.c.size).order_by("size"))
        return list(sizes)


class Whole:
    """Database and fence at one moment: a whole machine's back-up, which must not hold a fence."""

    def __init__(self, scenario: ProverScenario) -> None:
        self._rows = BackUp(scenario.settings.store.url)
        self._fence = scenario.folder / "prover/fences/w1.fence"
        self._copy = scenario.folder / "w1.fence.copy"
        shutil.copy(self._fence, self._copy)

    def restore(self) -> None:
        self._rows.restore()
        shutil.copy(self._copy, self._fence)


@pytest.fixture
def restored(scenario: ProverScenario) -> ProverScenario:
    """A prover that came back whole, one cosigned record short."""
    scenario.open()
    assert scenario.ask().status_code == 200
    scenario.service.driver.checkpoint("w1")
    scenario.service.stop()
    saved = Whole(scenario)
    scenario.restart()
    assert scenario.ask(query="trains").status_code == 200
    scenario.service.driver.checkpoint("w1")
    scenario.service.stop()
    saved.restore()
    scenario.restart()
    return scenario


def test_a_start_behind_what_was_cosigned_answers_and_signs_nothing(
    restored: ProverScenario,
) -> None:
    """The fence agrees, since it was restored, too: the cosigner alone remembers."""
    before = signed_sizes(restored)
    restored.service.start()
    try:
        reason = restored.service.windows.get("w1").unusable
        assert reason is not None and "the cosigner has seen a larger tree" in reason
        assert "another name" in reason  # how to go on
        answer = restored.ask(query="violin")
        assert answer.status_code == 503
        assert answer.json()["refusal"]["reason"] == "unavailable"
        assert restored.api.get("/readyz").status_code == 503
        restored.service.driver.checkpoint("w1")
        assert signed_sizes(restored) == before
    finally:
        restored.service.stop()
    restored.restart()
    assert restored.ask(query="violin").status_code == 503  # for good


def test_a_restored_prover_signs_nothing_before_it_was_told(restored: ProverScenario) -> None:
    """Without the verifier it starts, as always; its first signature waits for the comparison."""
    before = signed_sizes(restored)
    restored.transport.down = True
    restored.service.driver.compare("w1")  # as at a start: told in the log, not raised
    assert restored.service.windows.get("w1").unusable is None
    with pytest.raises(VerifierUnreachable):
        restored.service.driver.checkpoint("w1")
    restored.transport.down = False
    restored.service.driver.checkpoint("w1")
    assert "larger tree" in str(restored.service.windows.get("w1").unusable)
    assert signed_sizes(restored) == before


def test_a_process_that_stood_still_takes_nothing_for_restored(
    scenario: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its signature and its request another one led, answered, and had more cosigned."""
    scenario.open()
    verifier, live = scenario.service.verifier, scenario.service.open_windows.get("w1")
    assert scenario.ask().status_code == 200
    honest = verifier.add_checkpoint

    def late(request: Any, read: int) -> Any:
        monkeypatch.setattr(verifier, "add_checkpoint", honest)
        assert scenario.ask(query="trains").status_code == 200
        scenario.service.driver._checkpointer._step(live.log)  # the other process's
        return honest(request, read)

    monkeypatch.setattr(verifier, "add_checkpoint", late)
    scenario.service.driver.checkpoint("w1")
    assert scenario.service.windows.get("w1").unusable is None
    latest = live.log.checkpoints.cosigned()
    assert latest is not None and latest.head.size == live.log.entries.head().size
    assert scenario.ask(query="violin").status_code == 200


def test_another_history_of_the_same_size_is_noticed(restored: ProverScenario) -> None:
    """It went on meanwhile, so that sizes say nothing: the root does."""
    restored.transport.down = True
    assert restored.ask(query="violin").status_code == 200
    assert restored.ask(query="cello").status_code == 200
    restored.transport.down = False
    restored.service.driver.checkpoint("w1")
    assert "another history" in str(restored.service.windows.get("w1").unusable)
    assert restored.ask(query="flute").status_code == 503


def test_an_honest_restart_compares_once_and_goes_on(scenario: ProverScenario) -> None:
    scenario.open()
    assert scenario.ask().status_code == 200
    scenario.service.driver.checkpoint("w1")
    scenario.restart()
    calls = scenario.transport.calls
    calls.clear()
    for query in ("trains", "violin"):
        assert scenario.ask(query=query).status_code == 200
        scenario.service.driver.checkpoint("w1")
    shown = [path for method, path in calls if method == "GET" and path.startswith("/cosigner/")]
    assert len(shown) == 1
    live = scenario.service.open_windows.get("w1")
    assert signed_sizes(scenario)[-1] == live.log.entries.head().size


def test_a_checkpoint_that_nobody_signed_is_not_believed(
    scenario: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever answers in the verifier's place could close the window."""
    scenario.open()
    live = scenario.service.open_windows.get("w1")
    scenario.service.driver.checkpoint("w1")
    bare = live.log.checkpoints.latest()
    assert bare is not None
    lone = f"{bare.note.text}\n".encode() + bare.encode().split(b"\n\n")[1].split(b"\n")[0] + b"\n"
    scenario.restart()
    monkeypatch.setattr(scenario.service.verifier, "cosigned", lambda _origin: lone)
    before = signed_sizes(scenario)
    assert scenario.ask().status_code == 200
    with pytest.raises(NoteRejected, match="cosigned by 0"):
        scenario.service.driver.checkpoint("w1")
    assert signed_sizes(scenario) == before
    assert scenario.service.windows.get("w1").unusable is None


@pytest.mark.parametrize("what", ["body", "salt", "leaf"])
def test_a_bit_that_flipped_in_an_entry_is_named_and_not_signed_over(
    scenario: ProverScenario, what: str
) -> None:
    scenario.open()
    for query in ("bread", "trains", "violin"):
        assert scenario.ask(query=query).status_code == 200
    live = scenario.service.open_windows.get("w1")
    before, position = signed_sizes(scenario), live.log.entries.head().size - 2
    column = {"leaf": schema.entry.c.leaf_data}.get(what, tables.entry.c.get(what))
    assert column is not None
    place = column.table.c.position == position
    with scenario.service.store.write() as connection:
        value = bytearray(connection.scalars(select(column).where(place)).one())
        value[5] ^= 4
        connection.execute(update(column.table).where(place).values({column.name: bytes(value)}))
    with pytest.raises(CorruptLog) as caught:
        scenario.service.driver.checkpoint("w1")
    assert caught.value.where == f"entry {position}"
    assert signed_sizes(scenario) == before


def test_an_entry_whose_content_is_gone_is_not_signed_over(scenario: ProverScenario) -> None:
    scenario.open()
    assert scenario.ask().status_code == 200
    with scenario.service.store.write() as connection:
        last = connection.scalar(select(func.max(tables.entry.c.position)))
        connection.execute(delete(tables.entry).where(tables.entry.c.position == last))
    with pytest.raises(CorruptLog) as caught:
        scenario.service.driver.checkpoint("w1")
    assert caught.value.where == f"entry {last}"


def test_a_clock_set_back_between_two_processes_stamps_nothing(scenario: ProverScenario) -> None:
    """The new process never saw the clock run: what it knows of time is what was cosigned."""
    scenario.open()
    scenario.clock.at(scenario.policy().start + 200)
    assert scenario.ask().status_code == 200
    scenario.service.driver.checkpoint("w1")
    skew = scenario.policy().clock_skew_seconds
    now = scenario.clock.now
    scenario.restart()
    scenario.clock.now = now - 1000 * (skew + 60)
    answer = scenario.ask("cyd", query="trains")
    assert answer.status_code == 503, answer.text
    assert "behind the cosigner" in answer.json()["detail"]
    scenario.clock.now = now + 1000
    assert scenario.ask("cyd", query="trains").status_code == 200


@pytest.mark.parametrize("covered", [False, True])
def test_clocks_set_back_between_two_processes_confirm_nothing(
    scenario: ProverScenario, covered: bool
) -> None:
    """The cosigner's, too: a head that it has too early is as if the entry were dated ahead."""
    scenario.open()
    skew = scenario.policy().clock_skew_seconds
    scenario.clock.at(scenario.policy().start + 200)
    assert scenario.ask().status_code == 200
    if covered:
        scenario.service.driver.checkpoint("w1")
    now, log = scenario.clock.now, scenario.service.open_windows.get("w1").log
    cosigned = log.checkpoints.latest(cosignatures=1)
    scenario.restart()
    scenario.clock.now = now - 1000 * (skew + 60)
    answer = scenario.ask("cyd", query="trains")
    assert answer.status_code == 503 and "behind" in answer.json()["detail"]
    # Dated as late as the account's last one, and so is what must be confirmed.
    assert scenario.ask("ada", query="trains").status_code == 200
    for behind in (1000 * (skew + 60), 1000):
        scenario.clock.now = now - behind
        with pytest.raises(ClocksDiffer, match="behind a time in the log"):
            scenario.service.driver.checkpoint("w1")
        log = scenario.service.open_windows.get("w1").log
        assert log.checkpoints.latest(cosignatures=1) == cosigned
    scenario.clock.now = now
    assert scenario.ask("cyd", query="trains").status_code == 200
    scenario.service.driver.checkpoint("w1")
    assert scenario.service.open_windows.get("w1").log.head_is_cosigned()


def test_a_registration_is_not_confirmed_before_its_time(scenario: ProverScenario) -> None:
    scenario.create()
    scenario.drive(State.COUNTERSIGNED)
    scenario.register("cyd")
    now = scenario.clock.now
    scenario.restart()
    scenario.clock.now = now - 60_000
    with pytest.raises(ClocksDiffer, match="behind a time in the log"):
        scenario.service.driver.checkpoint("w1")
    scenario.clock.now = now
    scenario.service.driver.checkpoint("w1")
    assert scenario.service.open_windows.get("w1").log.head_is_cosigned()


def test_a_store_that_turned_read_only_answers_and_signs_nothing(scenario: ProverScenario) -> None:
    scenario.open()
    assert scenario.ask().status_code == 200
    engine, before = scenario.service.store.engine, signed_sizes(scenario)
    size = scenario.service.open_windows.get("w1").log.entries.head().size

    def read_only(connection: Connection) -> None:
        sqlite = connection.dialect.name == "sqlite"
        connection.exec_driver_sql(
            "PRAGMA query_only=ON" if sqlite else "SET TRANSACTION READ ONLY"
        )

    event.listen(engine, "begin", read_only)
    answer = scenario.ask(query="trains")
    assert answer.status_code == 503, answer.text
    assert answer.json()["type"] == "urn:ragaudit:problem:store-unavailable"
    assert scenario.api.get("/readyz").status_code == 503
    with pytest.raises(StoreUnavailable):
        scenario.service.driver.checkpoint("w1")
    event.remove(engine, "begin", read_only)
    engine.dispose()
    assert signed_sizes(scenario) == before
    assert scenario.ask(query="trains").status_code == 200
    scenario.service.driver.checkpoint("w1")
    assert signed_sizes(scenario)[-1] == size + 1
