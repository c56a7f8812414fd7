"""Head and stored entries are compared with what was cosigned, before anything is signed again."""

import shutil
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from ragaudit.ledger.errors import CorruptLog, NoteRejected, StoreUnavailable
from ragaudit.ledger.log import schema
from ragaudit.prover.errors import VerifierUnreachable
from ragaudit.prover.store import tables
from restoring import BackUp
from scenario import ProverScenario
from sqlalchemy import Connection, delete, event, func, select, update

pytestmark = ON_EACH_ENGINE


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
        for table in (tables.answered, tables.record, tables.entry):
            connection.execute(delete(table).where(table.c.position == last))
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
