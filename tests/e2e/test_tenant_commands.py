"""The commands of docs/tenant-developer.md, run as they stand against both services over HTTP."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from procedure_cases import use_cached_table
from ragaudit.encoding.signing import PublicKey
from ragaudit.lab.scenario.scenario import Conclusion, Scenario
from ragaudit.lab.scenario.services import PRIVATE, SETTINGS, Clock
from ragaudit.ledger.messages.disputes import Finding
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.service import Components
from ragaudit.verifier.arbiter import create_app
from ragaudit.verifier.engines import fastest_engine

CHAPTER = Path(__file__).parents[2] / "docs" / "tenant-developer.md"
BLOCKS = re.compile(r"```bash\n(.*?)```", re.DOTALL)
SECONDS = 600

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


def commands(heading: str) -> list[str]:
    """The commands of one section of the chapter, in order."""
    _, _, text = CHAPTER.read_text(encoding="utf-8").partition(f"\n{heading}\n")
    return BLOCKS.findall(re.split(r"\n##+ ", text)[0])


PLAIN = commands("## Without our client")
[_chain] = commands("### With a nonce chain, without our client")
CHAIN = _chain.splitlines()
SCRIPT = CHAPTER.parents[1] / "examples" / "anchored_without_client.sh"
DISPUTE = commands("## Disputes")


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The application on a port of this machine."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(SECONDS)


class Live(Clock):
    """The scenario's clock, begun in the past, until it goes with the machine's: for commands."""

    def __init__(self) -> None:
        super().__init__()
        self.now -= 60_000
        self.live = False

    def __call__(self) -> int:
        if self.live:
            self.now = max(self.now, time.time_ns() // 1_000_000)
        return self.now


class ByHand(Scenario):
    """Runs the chapter's commands for bob (plain) and alice (a chain), and nobody else asks."""

    outputs: list[str]

    def open(self, stack: Any) -> None:
        self.clock, self.outputs = Live(), []
        super().open(stack)
        self.accounts.clear()  # the libraries'

    def _register(self, name: str) -> None:
        if name == "bob":
            self._run(name, PLAIN[0])
        if name == "alice":
            self._run(name, CHAIN[0])

    def before_second(self, at: int) -> None:
        self.clock.live = True  # type: ignore[attr-defined]
        for name, commands in (("bob", PLAIN), ("alice", CHAIN)):
            for command in commands[1:]:
                if "receipt complete" in command or "submit" in command:
                    self.prover.checkpoint()
                self._run(name, command)

    def after_second(self, at: int) -> None:
        """Nobody asks any more."""

    def after_submission(self) -> None:
        self.clock.live = False  # type: ignore[attr-defined]
        self._run("alice", DISPUTE[0])

    def after_sampling(self) -> None:
        for command in DISPUTE[1:]:
            self._run("alice", command)

    def _run(self, name: str, command: str) -> None:
        """Run a command of the chapter in the account's folder, with all services up."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        shutil.copy(SCRIPT, folder)
        judge = create_app(
            self.verifier.arbiter,
            PublicKey.from_raw(bytes.fromhex(self.verifier.key)),
            fastest_engine(),
            self.clock,
        )
        with (
            served(self.prover.app) as prover,
            served(self.verifier.app) as verifier,
            served(judge) as arbiter,
        ):
            environment = {
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "API_KEY": self.keys[name],
                "PROVER": prover,
                "VERIFIER": verifier,
                "VERIFIER_KEY": self.verifier.key,
                "PROVIDER": self.prover.policy.provider,
                "ARBITER": arbiter,
            }
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                env=environment, cwd=folder, capture_output=True, text=True,
                timeout=SECONDS, check=False,
            )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        self.outputs.append(done.stdout)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[ByHand, Conclusion]:
    """A window in which every command of the chapter was run, and its audit."""
    use_cached_table()
    long = {"length_seconds": 900, "activation_every_seconds": 450, "promise_life_seconds": 300}
    with pytest.MonkeyPatch.context() as patch:
        offer = replace(PRIVATE, settings=SETTINGS.model_copy(update=long))
        patch.setattr(ByHand, "offer", offer)
        play = ByHand(tmp_path_factory.mktemp("window"), Components())
        return play, play.run()


def test_the_commands_run_as_they_stand(played: tuple[ByHand, Conclusion]) -> None:
    play, window = played
    assert play.troubles == []
    assert window.outcome.result == "PASS", window.outcome
    for name, query in (
        ("bob", "what does the second document say?"),
        ("alice", "what does the third document say?"),
    ):
        file = ReceiptFile.parse((play.folder / name / "answer.json").read_bytes())
        assert file.public.proof is not None
        assert file.request.query == query
    said = "".join(play.outputs)
    assert said.count("1 completed") == said.count("1 accepted, 0 known already") == 2
    assert said.count("No check failed") == 2
    assert "reveal within " in said
    counts = window.outcome.counts
    assert (counts["anchored"], counts["disputes"]) == (1, 1)


def test_the_arbiter_judges_a_sampled_record_for_the_account(
    played: tuple[ByHand, Conclusion],
) -> None:
    """By one command, and again by hand: the same finding, which the verifier has already."""
    play, _ = played
    by_command, by_hand = play.outputs[-2:]
    assert by_command == "dismissed\n"
    standing, taken = by_hand.split("}", 1)
    assert json.loads(standing + "}") == {"sampled": True, "step": 0}
    assert json.loads(taken) == {"accepted": 0, "known": 1}
    finding = json.loads((play.folder / "alice" / "finding.json").read_text())["finding"]
    Finding.from_json(finding).verify(play.verifier.arbiter.public)
    assert finding["step"] == 0
