"""A window with further cosigners: receipts and status name the quorum; nothing depends on it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from further_cosigners import CosignedProver
from ragaudit.client.log_commands import read_finding, read_trust
from ragaudit.ledger.log.checkpoints import Checkpoint, parse_checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.policy import Policy

WAIT_SECONDS = 15


class Cosigned(CosignedProver):
    """A window whose prover has three further cosigners, of whom two suffice."""

    def open(self) -> None:
        self.scenario.open()
        self.parties.take_up(self.scenario.policy().keys.log)

    def step(self) -> bool:
        """Ask the others once; whether there is more to ask for."""
        cosigning = self.scenario.service.cosigning
        going = cosigning.step("w1")
        assert cosigning._cosigners is not None
        cosigning._cosigners.wait()
        return going

    def ask(self) -> int:
        answer = self.scenario.ask()
        assert answer.status_code == 200
        self.scenario.service.driver.checkpoint("w1")
        return int(answer.json()["public"]["index"])

    def proof(self, index: int) -> Any:
        return self.scenario.api.get(f"/v1/windows/w1/receipts/{index}/proof")

    def status(self) -> Any:
        path = "/v1/operator/windows/w1"
        return self.scenario.api.get(path, headers=self.scenario.operator).json()["cosigners"]


@pytest.fixture
def cosigned(scenario: Any, tmp_path: Path) -> Iterator[Cosigned]:
    made = Cosigned(scenario, tmp_path, wait_seconds=WAIT_SECONDS)
    yield made
    made.parties.close()


def test_receipts_and_status_name_the_quorum(cosigned: Cosigned, tmp_path: Path) -> None:
    cosigned.open()
    before = cosigned.status()
    assert (before["quorum"], before["reached"], before["failures"]) == ("them", None, {})
    assert before["latest"]["reached"] is False
    index = cosigned.ask()
    assert cosigned.proof(index).status_code == 425  # the others are still to be asked
    assert cosigned.step()
    proof = cosigned.proof(index)
    assert proof.status_code == 200
    (tmp_path / "note").write_bytes(TlogProof.parse(proof.content).checkpoint)
    finding = read_finding(
        tmp_path / "note", read_trust(cosigned.trust), cosigned.scenario.policy().keys.log
    )
    assert finding.reached and list(finding.cosignatures) == ["one", "two", "three"]
    status = cosigned.status()
    assert status["latest"] == status["reached"] == finding.to_json()
    assert status["policy"] == read_trust(cosigned.trust).digest.hex()


def test_without_the_quorum_a_receipt_is_complete_after_the_wait(cosigned: Cosigned) -> None:
    cosigned.open()
    for name in ("one", "three"):
        cosigned.parties.of[name].instead = lambda _request: httpx.Response(503)
    index = cosigned.ask()
    cosigned.step()
    assert cosigned.proof(index).status_code == 425
    cosigned.scenario.clock.now += 1000 * (WAIT_SECONDS + 2)
    assert cosigned.proof(index).status_code == 200
    status = cosigned.status()
    assert status["reached"] is None and status["latest"]["cosigned"].keys() == {"two"}
    assert status["failures"] == {"one": "it answered 503", "three": "it answered 503"}


def test_third_parties_see_only_what_the_verifier_has_cosigned(cosigned: Cosigned) -> None:
    cosigned.open()
    cosigned.step()
    before = [len(party.asked) for party in cosigned.parties.of.values()]
    cosigned.scenario.transport.down = True
    assert cosigned.scenario.ask().status_code == 200
    cosigned.scenario.service.open_windows.get("w1").log.sign()
    assert cosigned.step()
    assert [len(party.asked) for party in cosigned.parties.of.values()] == before


def test_a_whole_window_passes_and_its_successor_names_two_lines(cosigned: Cosigned) -> None:
    cosigned.open()
    cosigned.ask()
    cosigned.step()
    scenario = cosigned.scenario
    scenario.hand_over()
    assert cosigned.step()
    final = parse_checkpoint(scenario.service.windows.get("w1").final_checkpoint or b"")
    assert len(final.note.signatures) == 2
    assert cosigned.status()["reached"]["size"] == final.head.size
    scenario.draw()
    verdict = scenario.decide()
    assert verdict["result"] == "PASS"
    assert not cosigned.step()  # nothing is left to ask for
    assert cosigned.status()["reached"]["size"] == final.head.size
    scenario.create("w2")
    policy = Policy.parse(scenario.service.windows.get("w2").policy)
    assert policy.previous_checkpoint == final.encode().decode()


def test_a_checkpoint_that_the_database_has_lost_stops_the_window(cosigned: Cosigned) -> None:
    cosigned.open()
    live = cosigned.scenario.service.open_windows.get("w1")
    lost = MemoryTree(str(i).encode() for i in range(99))
    signed = sign_checkpoint(Checkpoint(live.origin, lost.head()), live.log.key)
    request = AddCheckpointRequest(0, (), signed.encode()).encode()
    cosigned.parties.of["one"].cosigner.add_checkpoint(request)
    cosigned.step()
    assert not cosigned.step()
    unusable = cosigned.scenario.service.windows.get("w1").unusable
    assert "cosigner one has a checkpoint of ours with more entries" in str(unusable)


def test_without_a_policy_nothing_is_asked_and_nothing_waits(scenario: Any) -> None:
    scenario.open()
    index = int(scenario.ask().json()["public"]["index"])
    scenario.service.driver.checkpoint("w1")
    assert scenario.api.get(f"/v1/windows/w1/receipts/{index}/proof").status_code == 200
    assert not scenario.service.cosigning.step("w1")
    answer = scenario.api.get("/v1/operator/windows/w1", headers=scenario.operator)
    assert answer.json()["cosigners"] is None
