"""Each fault beside the check that stops it, and what comes of it where that check is removed."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from databases import ON_EACH_ENGINE
from ragaudit.encoding.text import b64_decode
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.promises import Promise
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Admitted, Selected
from ragaudit.prover.store.states import State
from ragaudit.prover.window.log_transaction import WindowFence
from ragaudit.verifier.service import cosigner
from restoring import BackUp

pytestmark = ON_EACH_ENGINE

SKEW = 5


class Drawing(Mechanism):
    """Remembers the noise of every record; may be slow between drawing it and the log."""

    def __init__(self, embedder: Any) -> None:
        super().__init__(embedder)
        self.drawn: list[list[int]] = []
        self.meanwhile: Any = lambda: None

    def draw_noise(self, *arguments: Any) -> Any:
        noise = super().draw_noise(*arguments)
        self.drawn.append(noise.tolist())
        self.meanwhile()
        return noise


def record_of(answer: Any) -> Record:
    assert answer.status_code == 200, answer.text
    return Record.parse(bytes.fromhex(answer.json()["public"]["body"]))


# --- the fence's comparison in every transaction that commits ---


@pytest.mark.parametrize("checked", [True, False])
def test_lost_records_and_the_comparison_of_the_head(
    make_scenario: Any, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    if not checked:
        monkeypatch.setattr(
            WindowFence, "check_head", lambda self, connection: self.entries.head(connection)
        )
        monkeypatch.setattr(WindowFence, "check_account", lambda *_: None)
    scenario = make_scenario(mechanism=Drawing)
    scenario.open()
    scenario.ask()
    database = BackUp(scenario.settings.store.url)
    before = record_of(scenario.ask(query="trains"))
    database.restore()
    again = scenario.ask(query="violin")
    if checked:
        assert again.status_code == 503 and "behind the fence" in again.json()["detail"]
        return
    # Another question under the same counter, with the same noise: it can be subtracted.
    assert record_of(again).counter == before.counter
    drawn = scenario.service.mechanism.drawn
    assert drawn[-1] == drawn[-2] != drawn[0]


@pytest.mark.parametrize("checked", [True, False])
def test_a_lost_promise_and_the_comparison_of_the_counter(
    scenario: Any, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    """The log did not grow with the promise, so that its head says nothing."""
    if not checked:
        monkeypatch.setattr(WindowFence, "check_account", lambda *_: None)
    scenario.open()
    database = BackUp(scenario.settings.store.url)
    first = Promise.from_json(scenario.promise(0, query="trains").json())
    database.restore()
    again = scenario.promise(0, query="violin")
    if checked:
        assert again.status_code == 503 and "counter is behind the fence" in again.json()["detail"]
        return
    second = Promise.from_json(again.json())  # two for one counter: evidence, check 12
    assert second.record.counter == first.record.counter and second.identity != first.identity


# --- times: what they have to do with the checkpoints around them ---


@pytest.fixture
def timed(make_scenario: Any, embedder: Any) -> Any:
    """A scenario whose window can be audited, and whose answers can be slow."""
    return make_scenario(embedder=lambda _: embedder, mechanism=Drawing)


def failed(scenario: Any) -> list[str]:
    """Run the window to its end; return the names of the checks that failed."""
    scenario.clock.at(scenario.policy().end)
    scenario.drive(State.CLOSED)
    scenario.service.driver.step("w1")
    scenario.clock.at(scenario.policy().sampling_instant)
    scenario.drive(State.CHALLENGED)
    scenario.service.driver.step("w1")
    scenario.clock.at(scenario.policy().release_time // 1000)
    for _ in range(200):
        if scenario.state() is State.ARCHIVED:
            break
        scenario.service.driver.step("w1")
        scenario.verifier.get("/v1/windows/w1/progress")
    envelope = json.loads(scenario.service.windows.get("w1").verdict)
    checks = json.loads(b64_decode(envelope["payload"]))["predicate"]["checks"]
    return [each["id"] for each in checks if each["status"] == "FAIL"]


@pytest.mark.parametrize("checked", [True, False])
def test_a_late_request_for_a_cosignature(
    timed: Any, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    """It hangs for longer than the skew, and does not cover an entry that is made meanwhile."""
    honest = cosigner.add_checkpoint
    if not checked:
        monkeypatch.setattr(
            cosigner,
            "add_checkpoint",
            lambda *arguments, **options: honest(*arguments, **{**options, "read": None}),
        )
    timed.open()
    record_of(timed.ask())
    forward, waits = timed.transport.handle_request, iter([True])

    def slow(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("add-checkpoint") and next(waits, False):
            record_of(timed.ask("cyd"))
            timed.clock.now += 1000 * (SKEW + 2)
        return forward(request)

    monkeypatch.setattr(timed.transport, "handle_request", slow)
    if checked:
        with pytest.raises(Exception, match="answered 503"):
            timed.service.driver.checkpoint("w1")
    timed.service.driver.checkpoint("w1")
    assert failed(timed) == ([] if checked else ["schedule"])


@pytest.mark.parametrize("checked", [True, False])
def test_an_answer_that_takes_longer_than_the_skew(
    timed: Any, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    """A checkpoint is cosigned while it is computed: its time is that of its commit, or too old."""
    if not checked:
        record = Admitted.record
        monkeypatch.setattr(
            Admitted, "record", lambda *arguments: replace(record(*arguments), time=timed.clock())
        )
        monkeypatch.setattr(Selected, "stamp", lambda self, current, record: record)
    timed.open()

    def meanwhile() -> None:
        timed.service.mechanism.meanwhile = lambda: None
        record_of(timed.ask("cyd"))
        timed.clock.now += 1000 * (SKEW + 2)
        timed.service.driver.checkpoint("w1")

    timed.service.mechanism.meanwhile = meanwhile
    record_of(timed.ask("ada"))
    timed.service.driver.checkpoint("w1")
    assert failed(timed) == ([] if checked else ["schedule"])
