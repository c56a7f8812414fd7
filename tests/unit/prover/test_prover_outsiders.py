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


def check_passes(world: Any) -> None:
    """Run the window to its end."""
    world.service.driver.checkpoint("w1")
    world.clock.at(world.policy().end)
    world.drive(State.CLOSED)
    world.service.driver.step("w1")
    world.clock.at(world.policy().sampling_instant)
    world.drive(State.CHALLENGED)
    world.service.driver.step("w1")
    world.clock.at(world.policy().release_time // 1000)
    for _ in range(200):
        if world.state() is State.ARCHIVED:
            break
        world.service.driver.step("w1")
        world.verifier.get("/v1/windows/w1/progress")
    envelope = json.loads(world.service.windows.get("w1").verdict)
    verdict = json.loads(b64_decode(envelope["payload"]))["predicate"]
    wrong = [each for each in verdict["checks"] if each["status"] in {"FAIL", "NOT RUN"}]
    assert verdict["result"] == "PASS", wrong


def test_a_stranger_cannot_have_an_old_head_cosigned(world: Any) -> None:
    """It would make every entry since then seem back-dated: all of a verifier's absence."""
    world.open()
    assert world.ask("ada").status_code == 200
    world.service.driver.checkpoint("w1")
    assert world.ask("ada").status_code == 200
    world.transport.down = True
    with pytest.raises(VerifierUnreachable):
        world.service.driver.checkpoint("w1")
    shown = world.api.get("/v1/windows/w1/log/checkpoint").content
    assert world.ask("ada").status_code == 200  # after the head that was signed
    world.clock.now += 4 * SKEW_MS
    world.transport.down = False
    log = world.service.open_windows.get("w1").log
    old, new = log.checkpoints.latest(1).head.size, parse_checkpoint(shown).head.size
    request = AddCheckpointRequest(old, log.entries.consistency_proof(old, new), shown)
    world.verifier.post("/cosigner/add-checkpoint", content=request.encode())
    check_passes(world)


def test_a_nonce_that_is_revealed_at_the_last_moment(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer takes its time, and checkpoints are made meanwhile."""
    world.open()
    promised = world.promise(0)
    live, honest = world.service.open_windows.get("w1"), Mechanism.draw_noise

    def slow(self: Any, *arguments: Any) -> Any:
        monkeypatch.undo()
        world.clock.now += SKEW_MS
        assert world.ask("cyd").status_code == 200
        world.clock.now += 3_000
        world.service.driver.checkpoint("w1")
        return honest(self, *arguments)

    promise = Promise.from_json(promised.json())
    world.clock.now = promise.record.time + live.policy.promise_life - 500
    monkeypatch.setattr(Mechanism, "draw_noise", slow)
    assert world.reveal(0).status_code == 409
    claim = {"promise": promise.to_json(), "nonce": world.chains["bob"].nonce(0).hex()}
    taken = world.verifier.post("/v1/windows/w1/claims", json=claim)
    assert taken.status_code == 422  # nobody can bring it up any more
    check_passes(world)
