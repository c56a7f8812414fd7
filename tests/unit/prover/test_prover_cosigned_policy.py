"""A policy that names further cosigners: what has their quorum reaches the verifier's verdict."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from databases import ON_EACH_ENGINE
from exact_windows import ask, start
from further_cosigners import CosignedProver, key
from ragaudit.client.cli import app as receipts
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.prover.errors import VerifierRefused
from scenario import ProverScenario
from typer.testing import CliRunner

pytestmark = ON_EACH_ENGINE


class Asked(CosignedProver):
    """A window without noise whose policy names three cosigners, of whom two must sign."""

    def start(self, demand: str = "required") -> None:
        start(self.scenario, cosigners=demand)
        self.parties.take_up(self.scenario.policy().keys.log)
        self.round()

    def finish(self) -> Any:
        """The predicate of the verdict."""
        self.scenario.hand_over()
        self.round()
        self.scenario.draw()
        return self.scenario.decide()


@pytest.fixture
def asked(scenario: ProverScenario, tmp_path: Path) -> Iterator[Asked]:
    made = Asked(scenario, tmp_path)
    yield made
    made.parties.close()


def test_the_verdict_names_the_quorum(asked: Asked) -> None:
    asked.start()
    ask(asked.scenario, "bread", 2)
    asked.round()
    predicate = asked.finish()
    assert predicate["result"] == "PASS"
    stated = predicate["attested"]["cosigners"]
    # The third may be late: the window ends as soon as there is the quorum.
    cosigned = stated["final"]["cosigned"].keys()
    assert len(cosigned) >= 2 and cosigned <= {"one", "two", "three"}
    assert (stated["records"], stated["records_in_time"]) == (1, 1)
    assert predicate["checks"][-1]["id"] == "cosigners"
    assert predicate["scope"]["cosigners"]["demand"] == "required"


@pytest.mark.parametrize(("demand", "result"), [("required", "FAIL"), ("reported", "PASS")])
def test_cosigners_that_are_away_at_the_end(asked: Asked, demand: str, result: str) -> None:
    asked.start(demand)
    for name in ("one", "three"):
        asked.parties.of[name].instead = lambda _request: httpx.Response(503)
    predicate = asked.finish()
    assert predicate["result"] == result
    assert predicate["attested"]["cosigners"]["final"] is None
    check = predicate["checks"][-1]
    assert "no final checkpoint has the quorum them" in check["reason"]


def test_a_receipts_check_says_who_stands_behind_it(asked: Asked, tmp_path: Path) -> None:
    asked.start()
    for name in ("two", "three"):
        asked.parties.of[name].instead = lambda _request: httpx.Response(503)
    scenario = asked.scenario
    file = ask(scenario, "bread", 2)
    (tmp_path / "policy.json").write_bytes(scenario.policy().canonical)
    (tmp_path / "window.json").write_bytes(scenario.api.get("/v1/windows/w1").content)

    def checked(proof: str | None, *options: str) -> tuple[int, Any]:
        """The exit code, and what was found last."""
        (tmp_path / "answer.json").write_bytes(
            dumps({**file.to_json(), "public": replace(file.public, proof=proof).to_json()})
        )
        known = [f"--{each}={tmp_path}/{each}.json" for each in ("policy", "window")]
        command = ["check", f"{tmp_path}/answer.json", *known, "--json", *options]
        result = CliRunner().invoke(receipts, command)
        document = json.loads(result.stdout)
        return result.exit_code, document["error"] or document["checks"][-1]

    def proof() -> str:
        asked.round()
        scenario.clock.now += 60_000  # nobody holds it back any longer
        path = f"/v1/windows/w1/receipts/{file.public.index}/proof"
        return str(scenario.api.get(path).text)

    code, step = checked(None)
    assert (code, step["name"], step["status"]) == (0, "cosigners", "not done")
    assert "outstanding" in step["detail"]
    code, step = checked(proof())
    assert (code, step["status"]) == (0, "not done")
    assert "quorum them NOT reached: cosigned by one (1 of 3)" in step["detail"]
    assert checked(proof(), "--strict")[0] == 5
    asked.parties.of["three"].instead = None
    code, step = checked(complete := proof())
    assert (code, step["status"]) == (0, "done")
    assert "quorum them reached: cosigned by one, three (2 of 3), since 20" in step["detail"]
    # The last line of the note is a cosignature of theirs.
    code, error = checked(f"{complete[:-12]}AAAA{complete[-8:]}")
    assert code == 1 and "step 11 (cosigners)" in error and "does not verify" in error


def test_after_a_restart_all_of_it_is_given_again(asked: Asked) -> None:
    asked.start()
    cosigning = asked.scenario.service.cosigning
    given = dict(cosigning._given)
    assert given["w1"] > 0
    cosigning._given.clear()
    cosigning.step("w1")
    assert cosigning._given == given


def test_what_the_verifier_does_not_take(asked: Asked) -> None:
    asked.start()
    scenario = asked.scenario
    live = scenario.service.open_windows.get("w1")
    (shown, *_) = live.log.checkpoints.reached(-1, 1)

    def give(note: bytes) -> None:
        scenario.service.verifier.put_cosigned("w1", [note])

    give(shown.encode())  # once more
    bare = parse_checkpoint(live.log.checkpoints.demanded(shown).encode())
    with pytest.raises(VerifierRefused, match="quorum them NOT reached"):
        give(bare.encode())
    # Signed and never shown to the verifier: third parties would be the only ones who know it.
    ask(scenario, "bread", 2)
    signed = live.log.sign()
    lines = [cosign(signed.note.text, key(name), 1_900_000_000) for name in ("one", "two")]
    with pytest.raises(VerifierRefused, match="not cosigned here"):
        give(signed.note.with_signatures(lines).encode())
    scenario.clock.at(scenario.policy().sampling_instant)
    with pytest.raises(VerifierRefused, match="taken no more"):
        give(shown.encode())


def test_without_such_a_policy_nothing_is_given(asked: Asked) -> None:
    start(asked.scenario)
    asked.parties.take_up(asked.scenario.policy().keys.log)
    asked.round()
    assert asked.scenario.service.cosigning._given == {}
    with pytest.raises(VerifierRefused, match="names no further cosigners"):
        asked.scenario.service.verifier.put_cosigned("w1", [])


def test_a_policy_cannot_name_nobody(scenario: ProverScenario) -> None:
    with pytest.raises(MalformedSettings, match="no further cosigners"):
        start(scenario, cosigners="required")
