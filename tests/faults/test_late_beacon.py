"""A beacon that comes late, and forged from one of two sources, between processes of both sides."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prover_process import PLAIN, Setting, body_of
from ragaudit.encoding.text import b64_decode
from ragaudit.lab.scenario.third_parties import SigningChain
from ragaudit.ledger.messages.beacon import BeaconRound
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.window.windows import Windows
from round_api import RoundApi
from verifier_process import VerifierProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LATE = 6  # seconds after it was due, a round reaches the honest source
CHAIN = SigningChain(period=1, genesis=int(time.time()) - 1000)


class LatePublisher(threading.Thread):
    """Writes each round into a folder, `LATE` seconds after it was due."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        folder.mkdir()
        self.done = threading.Event()

    def run(self) -> None:
        number = CHAIN.chain.first_from(int(time.time()))
        while not self.done.wait(0.2):
            while CHAIN.chain.time(number) + LATE <= time.time():
                path = self.folder / f"{number}.json"
                path.with_suffix(".new").write_bytes(CHAIN.round(number).encode())
                path.with_suffix(".new").rename(path)
                number += 1

    def end(self) -> None:
        self.done.set()
        self.join()


class Waiting(threading.Thread):
    """Notes what the prover says that it waits for."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting, self.done = setting, threading.Event()
        self.waited: list[dict[str, Any]] = []

    def run(self) -> None:
        while not self.done.wait(0.5):
            try:
                status = self.setting.prover.operator("GET", "/windows/w1")
            except (AssertionError, httpx.HTTPError):
                continue  # not yet
            if status["beacon"] and status["beacon"]["waits_for"]:
                self.waited.append({"state": status["state"], **status["beacon"]["waits_for"]})

    def end(self) -> None:
        self.done.set()
        self.join()


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    chain, rounds = tmp_path / "chain.json", tmp_path / "rounds"
    chain.write_text(json.dumps(CHAIN.info()))
    # The first source shows the signature of another round under every number.
    forger = RoundApi(b"")

    def forged() -> tuple[int, dict[str, str], bytes]:
        number = int(forger.paths[-1].rpartition("/")[2])
        return 200, {}, BeaconRound(number, CHAIN.round(1).signature).encode()

    forger.answer = forged
    publisher = LatePublisher(rounds)
    publisher.start()
    (tmp_path / "verifier").mkdir()
    verifier = VerifierProcess(
        tmp_path / "verifier",
        tick_seconds=0.2,
        beacon={"chain_file": str(chain), "sources": [forger.url, str(rounds)]},
    )
    verifier.start()
    made = Setting(tmp_path, verifier)
    made.prover.environment = {"RAGAUDIT_PROVER__BEACON__CHAIN_FILE": str(chain)}
    yield made
    made.stop()
    publisher.end()
    forger.close()


def test_a_late_and_a_forged_beacon_delay_and_change_nothing(setting: Setting) -> None:
    waiting = Waiting(setting)
    waiting.start()
    setting.open(
        opens_after_seconds=15,
        length_seconds=29,
        activation_every_seconds=12,
        release_seconds=2,
        claim_margin_seconds=1,
        privacy="gaussian",
        beacon_delay_seconds=1,
    )
    for number in range(3):
        for account in PLAIN:
            answer = setting.post(account, "query", body_of(number))
            assert answer.status_code == 200, answer.text
    setting.prover.wait_for(lambda: setting.prover.state() == "archived", 300)
    waiting.end()
    _, store = setting.log()
    policy = Policy.parse(Windows(store).get("w1").policy)
    store.close()
    rounds = [policy.round_of(a) for a in range(1, policy.activations + 1)]
    # Both the opening and the sample waited for their rounds.
    waited = {(each["state"], each["round"]) for each in waiting.waited}
    assert {("countersigned", rounds[0]), ("closed", rounds[-1])} <= waited, waited
    due = {each["round"]: each["since"] for each in waiting.waited}
    assert due[rounds[0]] == policy.release_instant(1)

    verifier = httpx.Client(base_url=setting.verifier.url, timeout=20)
    with verifier:
        status = verifier.get("/v1/windows/w1").json()
        envelope = verifier.get("/v1/windows/w1/verdict").json()
        report = verifier.get("/v1/windows/w1/report.txt").text
    predicate = json.loads(b64_decode(envelope["payload"]))["predicate"]
    faults = {
        each["id"]: each["reason"] for each in predicate["checks"] if each["status"] == "FAIL"
    }
    assert (predicate["result"], faults) == ("PASS", {})
    assert predicate["attested"]["beacon"]["rounds"] == rounds
    assert status["beacon"]["mixed_in"] == rounds and status["beacon"]["waits_for"] is None
    (why,) = status["beacon"]["failures"].values()
    assert "signature does not verify" in why
    assert "; ".join(f"{each:,}" for each in rounds) in report, report
