"""A clock that is set or goes back: nothing is attested across it; activations are strict."""

from __future__ import annotations

import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from ragaudit.encoding.errors import ClockStepped
from ragaudit.encoding.signing import verify
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.serving.clock import PATIENCE_MS, TOLERANCE_MS, UNTIL_IT_STAYS, EvenClock
from ragaudit.verifier.service import audit as audits
from verifier_service_harness import (
    INSTANTS,
    NOW,
    ORIGIN,
    SAMPLING,
    START,
    WINDOW,
    Story,
    VerifierScenario,
    problem_of,
)

pytestmark = ON_EACH_ENGINE

HOUR = 3_600_000
BASE = f"/v1/windows/{WINDOW}"


class Hands:
    """A wall clock and a steady one; only the first is ever set."""

    def __init__(self, now: int = 10**12) -> None:
        self.passed, self.offset = 0, now

    def wall(self) -> int:
        return self.offset + self.passed

    def steady(self) -> int:
        return self.passed

    def clock(self) -> EvenClock:
        return EvenClock(UNTIL_IT_STAYS, self.wall, self.steady)


@pytest.mark.parametrize("step", [20_000, -20_000, HOUR, -HOUR, TOLERANCE_MS + 1])
def test_a_step_gives_no_time_until_it_is_taken_back(step: int) -> None:
    hands = Hands()
    clock = hands.clock()
    before = clock()
    hands.offset += step
    for _ in range(2):
        hands.passed += 1000
        with pytest.raises(ClockStepped, match="was set by"):
            clock()
    hands.offset -= step
    assert clock() == before + 2000


def test_a_step_that_stays_is_believed() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.offset += HOUR
    with pytest.raises(ClockStepped):
        clock()
    hands.passed += PATIENCE_MS - 1
    with pytest.raises(ClockStepped):
        clock()
    hands.passed += 1
    assert clock() == hands.wall()
    hands.passed += 1
    assert clock() == hands.wall()


def test_a_clock_that_is_set_again_and_again_is_not_believed() -> None:
    hands = Hands()
    clock = hands.clock()
    for _ in range(10):
        hands.offset += HOUR
        hands.passed += PATIENCE_MS // 2
        with pytest.raises(ClockStepped):
            clock()


def test_slow_corrections_are_followed() -> None:
    hands = Hands()
    clock = hands.clock()
    for _ in range(100):
        hands.offset += TOLERANCE_MS
        hands.passed += 1000
        assert clock() == hands.wall()


def test_a_pause_between_the_readings_is_no_step() -> None:
    hands, pauses = Hands(), [0, 0, 1300, 700, 51, 50]

    def wall() -> int:
        read = hands.wall()
        hands.passed += pauses.pop(0)
        return read

    clock = EvenClock(UNTIL_IT_STAYS, wall, hands.steady)
    assert clock() == hands.wall()
    assert clock() == hands.wall() - 50 and pauses == []


class SetClock(Clock):
    """The harness's clock as a guarded one; ``ahead`` milliseconds are how far it was set."""

    def __init__(self) -> None:
        super().__init__(NOW)
        self.ahead = 0
        self.even = EvenClock(UNTIL_IT_STAYS, lambda: self.now + self.ahead, lambda: self.now)

    def __call__(self) -> int:
        return self.even()


def test_an_hour_ahead_for_a_moment_draws_no_sample(tmp_path: Path, auditor: Any) -> None:
    clock = SetClock()
    scenario = VerifierScenario(tmp_path, auditor, clock)
    with scenario.running():
        scenario.open_window()
        story = Story(scenario)
        story.finish()
        clock.ahead = 1000 * (SAMPLING - START)
        with pytest.raises(ClockStepped):
            scenario.service.scheduler.tick()
        problem_of(story.send("GET", "challenge"), 503, "clock-stepped")
        clock.ahead = 0
        assert scenario.client.get(BASE).json()["state"] == "closed"
        clock.at(SAMPLING)
        scenario.service.scheduler.tick()
        assert scenario.client.get(BASE).json()["state"] == "challenged"
        assert story.send("GET", "challenge").status_code == 200


def test_a_verdict_waits_for_the_clock(
    tmp_path: Path, auditor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step comes while the audit runs: it is neither lost nor done twice."""
    monkeypatch.setattr(audits, "RETRY_SECONDS", 0.01)
    clock = SetClock()
    scenario = VerifierScenario(tmp_path, auditor, clock)
    judged = auditor.audit

    def audit(*arguments: Any) -> Any:
        clock.ahead = HOUR
        return judged(*arguments)

    auditor.audit = audit
    with scenario.running():
        scenario.open_window()
        clock.at(SAMPLING)  # nothing was closed or handed over: there is nothing to wait for
        scenario.service.scheduler.tick()
        while clock.ahead == 0:
            time.sleep(0.01)
        assert scenario.service.runner.busy()
        clock.ahead = 0
        while scenario.service.runner.busy():
            time.sleep(0.01)
        assert scenario.client.get(BASE).json()["state"] == "decided"


def test_an_audit_that_cannot_begin_is_begun_again(tmp_path: Path, auditor: Any) -> None:
    clock = SetClock()
    scenario = VerifierScenario(tmp_path, auditor, clock)
    with scenario.running():
        scenario.open_window()
        clock.at(SAMPLING)
        clock.ahead = HOUR
        scenario.service.runner.start(ORIGIN)
        while scenario.service.runner.busy():
            time.sleep(0.01)
        assert scenario.service.runner.progress(ORIGIN).step == ""  # not "failed"
        clock.ahead = 0
        scenario.service.scheduler.tick()
        while scenario.service.runner.busy():
            time.sleep(0.01)
        assert scenario.client.get(BASE).json()["state"] == "decided"


@pytest.fixture
def opened(scenario: Any) -> Any:
    scenario.open_window()
    return scenario


def ask(scenario: Any, a: object) -> Any:
    return scenario.client.get(f"/v1/windows/{WINDOW}/activations/{a}")


def cosign(scenario: Any, old: int, size: int) -> None:
    while scenario.log.tree.size < size:
        scenario.log.tree.append(sha256(str(scenario.log.tree.size).encode()).digest())
    assert scenario.add_checkpoint(scenario.log.add_request(old, size)).status_code == 200


def test_before_the_instant(opened: Any) -> None:
    opened.clock.now = 1000 * INSTANTS[0] - 1
    answer = ask(opened, 1)
    problem_of(answer, 425, "too-early")
    assert answer.headers["retry-after"] == "1"
    opened.clock.now = 1000 * INSTANTS[0] - 90_500
    assert ask(opened, 1).headers["retry-after"] == "91"


def test_at_the_instant(opened: Any) -> None:
    anchor = bytes.fromhex(opened.countersign().json()["activation_anchor"])
    opened.clock.at(INSTANTS[0])
    message = ask(opened, 1).json()
    preimage = bytes.fromhex(message["preimage"])
    verify_activation_preimage(WINDOW, anchor, 1, preimage)
    verify(
        opened.keys.statement.public, bytes.fromhex(message["signature"]), "activation", WINDOW, 1,
        preimage, message["covered_size"], message["time"], None, None,
    )  # fmt: skip
    assert message["time"] == opened.clock.now
    problem_of(ask(opened, 2), 425, "too-early")


def test_the_answer_never_changes(opened: Any) -> None:
    opened.clock.at(INSTANTS[0])
    first = ask(opened, 1).content
    cosign(opened, 0, 3)
    opened.clock.at(INSTANTS[0] + 50)
    assert ask(opened, 1).content == first


def test_covered_size_counts_what_was_cosigned_strictly_before(opened: Any) -> None:
    opened.clock.now = 1000 * INSTANTS[0] - 1
    cosign(opened, 0, 2)
    opened.clock.at(INSTANTS[0])
    cosign(opened, 2, 5)
    assert ask(opened, 1).json()["covered_size"] == 2
    opened.clock.at(INSTANTS[1])
    cosign(opened, 5, 6)
    assert ask(opened, 2).json()["covered_size"] == 5


def test_nothing_cosigned_covers_nothing(opened: Any) -> None:
    opened.clock.at(INSTANTS[1])
    assert ask(opened, 1).json()["covered_size"] == 0


def test_the_sampling_nonce_is_no_activation(opened: Any) -> None:
    opened.clock.at(INSTANTS[-1] + 1000)
    problem_of(ask(opened, len(INSTANTS)), 404, "not-found")
    problem_of(ask(opened, 0), 404, "not-found")
    problem_of(ask(opened, -1), 404, "not-found")
    problem_of(ask(opened, "x"), 400, "malformed-request")
    problem_of(ask(opened, 10**30), 404, "not-found")


def test_no_activation_without_a_countersignature(scenario: Any) -> None:
    scenario.clock.at(INSTANTS[0])
    problem_of(ask(scenario, 1), 404, "not-found")
    scenario.register()
    problem_of(ask(scenario, 1), 409, "conflict")


def test_once_released_nothing_is_cosigned_before_the_instant(opened: Any) -> None:
    """A clock set back must not let a checkpoint count as cosigned before t_a."""
    opened.clock.at(INSTANTS[0])
    assert ask(opened, 1).status_code == 200
    opened.clock.now = 1000 * INSTANTS[0] - 1
    opened.log.tree.append(b"x")
    problem_of(opened.add_checkpoint(opened.log.add_request(0)), 503, "clock-stepped")


def test_the_release_survives_a_restart(tmp_path: Path, auditor: Any) -> None:
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running():
        scenario.open_window()
        scenario.clock.at(INSTANTS[0])
        first = ask(scenario, 1).content
    again = VerifierScenario(tmp_path, auditor)
    again.clock.at(INSTANTS[0] + 5)
    with again.running():
        assert ask(again, 1).content == first
