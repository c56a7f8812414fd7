"""The power goes at every moment of a window: what was told is there, and nothing forks.

Prover and verifier run once through a whole window while everything that they write is noted. Then
the store of each is looked at as a loss of power would leave it at each synchronisation of a file,
beside what the other one and the accounts had been told by then.
"""

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from disk_trace import SYNCING, SYNCING_FOLDER, DiskTrace
from invariants import Attested, Standing, check_prover, check_verifier, prover_settings
from prover_process import ANCHORED, PLAIN, Setting, body_of
from ragaudit.prover.store.states import State
from verifier_process import VerifierProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

QUERIES = 5  # of each account
TIMES = {
    "opens_after_seconds": 15,
    "length_seconds": 12,
    "merge_delay_seconds": 15,
    "sampling_after_seconds": 20,
}


class Recorded:
    """A window that was recorded, and what was told of it when.

    Attributes:
        told: how long the trace was when somebody had read it, and a leaf that it binds.
    """

    def __init__(self, folder: Path) -> None:
        self.site, scratch = folder / "site", folder / "scratch"
        (self.site / "verifier").mkdir(parents=True)
        scratch.mkdir()
        self.trace = DiskTrace(self.site, scratch)
        self.verifier = VerifierProcess(self.site / "verifier", tick_seconds=0.2)
        self.setting = Setting(self.site, self.verifier)
        self.told: list[tuple[int, dict[str, Any]]] = []

    def record(self) -> None:
        """Run the window through, with everything noted."""
        environment = self.trace.environment
        self.verifier.environment = self.setting.prover.environment = environment
        self.trace.begin()
        self.verifier.start()
        self.setting.open(
            **TIMES,
            release_seconds=2,
            claim_margin_seconds=1,
            audit={"mode": "A", "deadline_seconds": 3000},
        )
        for account in PLAIN:
            again = self.setting.post(account, "registration", {"anchor": None}).json()
            self.tell({"kind": "registration", **again["registration"]})
        threads = [
            threading.Thread(target=self.ask, args=(account,)) for account in (*PLAIN, ANCHORED)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.finish()
        self.stop()

    def ask(self, account: str) -> None:
        for number in range(QUERIES):
            if account == ANCHORED:
                body = {**body_of(number), "counter": number}
                assert self.setting.post(account, "promise", body).status_code == 200
                assert self.setting.chain is not None
                nonce = self.setting.chain.nonce(number).hex()
                answer = self.setting.post(account, "reveal", {"counter": number, "nonce": nonce})
            else:
                answer = self.setting.post(account, "query", body_of(number))
            assert answer.status_code == 200, answer.text
            self.tell(answer.json()["public"])
            time.sleep(0.3)  # so that there are checkpoints in between

    def tell(self, leaf: dict[str, Any]) -> None:
        self.told.append((self.trace.position, leaf))

    def told_before(self, position: int) -> list[dict[str, Any]]:
        return [leaf for place, leaf in self.told if place <= position]

    def finish(self) -> None:
        """Wait for the verdict; PASS."""
        self.setting.prover.wait_for(lambda: self.setting.prover.state() == "archived", 300)
        shown = httpx.get(f"{self.verifier.url}/v1/windows/w1", trust_env=False).json()
        assert shown["result"] == "PASS"

    def stop(self) -> None:
        self.setting.prover.kill(signal.SIGTERM)
        self.verifier.stop()

    def close(self) -> None:
        self.setting.stop()
        self.verifier.stop()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    made = Recorded(tmp_path_factory.mktemp("power"))
    try:
        made.record()
        yield made
    finally:
        made.close()


@dataclass
class Cut:
    """A moment: what the prover's disk then holds, and what the verifier had attested."""

    standing: Standing
    attested: Attested


def cuts(recorded: Recorded, scratch: Path) -> Iterator[Cut]:
    """Every moment at which a file is synchronised; what is left is checked on the way."""
    disk, ours, theirs = recorded.trace.disk(), scratch / "ours", scratch / "theirs"
    standing, attested = Standing(), Attested()
    changed = {"prover": True, "verifier": True}
    for number, each in enumerate(recorded.trace.operations()):
        party = Path(each.path).relative_to(recorded.site).parts[:1]
        if each.kind in {SYNCING, SYNCING_FOLDER} and party:
            told = recorded.told_before(each.end)
            # What the other side was told is what it has when its own power stays.
            if party[0] == "prover":
                if changed["verifier"]:
                    disk.write("kept", theirs, part="verifier")
                    attested = check_verifier(theirs / "verifier/verifier.yaml", Standing())
                    changed["verifier"] = False
                for how in ("synced", "torn"):
                    disk.write(how, ours, number, part="prover")
                    standing = check_prover(prover_settings(ours / "prover"), told, attested.heads)
                yield Cut(standing, attested)
            else:
                if changed["prover"]:
                    disk.write("kept", ours, part="prover")
                    standing = check_prover(prover_settings(ours / "prover"), told, ())
                    changed["prover"] = False
                for how in ("synced", "torn"):
                    disk.write(how, theirs, number, part="verifier")
                    check_verifier(theirs / "verifier/verifier.yaml", standing)
        disk.apply(each)
        if party:
            changed[party[0]] = True


def test_the_power_goes_at_every_synchronisation(recorded: Recorded, tmp_path: Path) -> None:
    found = list(cuts(recorded, tmp_path))
    print(len(found), "moments of the prover's disk")  # with -s
    asked = [each for each in found if each.standing.state is State.OPEN]
    # Moments between any two steps are among them, or this would have looked at nothing.
    assert any(each.standing.logged > each.standing.fenced for each in asked)
    assert any(each.standing.signed > each.standing.cosigned for each in asked)
    assert any(head.size > each.standing.cosigned for each in asked for head in each.attested.heads)
    states = {each.standing.state for each in found}
    assert states >= {None, *State} - {State.REFUSED, State.ABANDONED, State.ACTIVATED}
