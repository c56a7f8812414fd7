"""What accounts and strangers try against an honest provider: its window passes all the same."""

import json
from typing import Any

import pytest
from ragaudit.encoding.text import b64_decode
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest
from ragaudit.ledger.messages.promises import Promise
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.errors import VerifierUnreachable
from ragaudit.prover.store.states import State

SKEW_MS = 5_000


def check_passes(scenario: Any) -> None:
    """Run the window to its end."""
    scenario.service.driver.checkpoint("w1")
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
    verdict = json.loads(b64_decode(envelope["payload"]))["predicate"]
    wrong = [each for each in verdict["checks"] if each["status"] in {"FAIL", "NOT RUN"}]
    assert verdict["result"] == "PASS", wrong


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
        assert scenario.ask("cyd").status_code == 200
        scenario.clock.now += 3_000
        scenario.service.driver.checkpoint("w1")
        return honest(self, *arguments)

    promise = Promise.from_json(promised.json())
    scenario.clock.now = promise.record.time + live.policy.promise_life - 500
    monkeypatch.setattr(Mechanism, "draw_noise", slow)
    assert scenario.reveal(0).status_code == 409
    claim = {"promise": promise.to_json(), "nonce": scenario.chains["bob"].nonce(0).hex()}
    taken = scenario.verifier.post("/v1/windows/w1/claims", json=claim)
    assert taken.status_code == 422  # nobody can bring it up any more
    check_passes(scenario)
