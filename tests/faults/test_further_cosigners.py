"""Three cosigners as processes, killed, stopped and started anew while a log goes on."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cosigner_service import CosignerProcess
from ledger_logs import COSIGNER, COSIGNERS, KEY, fill
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.prover.settings import CosignerSettings
from ragaudit.prover.verifier.cosigners import AskedLog, Cosigners

pytestmark = pytest.mark.slow

NAMES = ("one", "two", "three")


class Scene:
    """A log, and the prover's side of three processes of which two suffice."""

    def __init__(self, folder: Path) -> None:
        self.processes = {name: CosignerProcess(folder / name, KEY) for name in NAMES}
        lines = [
            f"witness {name} {process.keys[0].verifier_key} {process.url}"
            for name, process in self.processes.items()
        ]
        text = "\n".join([*lines, "group them 2 one two three", "quorum them", ""])
        self.policy = TrustPolicy.parse(text.encode())
        self.engine = open_engine(f"sqlite:///{folder}/log.db")
        self.store = LogStore.create(self.engine, KEY.verifier_key)
        self.checkpoints = CheckpointStore(self.store, COSIGNERS, self.policy)
        # Of a stopped process the connection stands, and no answer comes.
        self.client = Cosigners(self.policy, CosignerSettings(timeout_seconds=2))

    def round(self) -> set[str]:
        """Let the log grow by one, and ask; return who cosigned."""
        fill(self.store, 1)
        signed = self.checkpoints.sign(KEY)
        line = cosign(signed.note.text, COSIGNER, 1_800_000_000)
        signed = self.checkpoints.add_cosignatures(signed.head.size, [line])
        self.client.ask(AskedLog(self.store, self.checkpoints), signed)
        self.client.wait()
        found = self.checkpoints.finding(self.checkpoints.at(signed.head.size))
        assert found is not None
        reached = self.checkpoints.latest(quorum=True)
        assert found.reached == (reached is not None and reached.head == signed.head)
        return set(found.cosignatures)

    def signal(self, name: str, number: signal.Signals) -> None:
        process = self.processes[name].process
        assert process is not None
        os.kill(process.pid, number)

    def close(self) -> None:
        self.client.close()
        self.engine.dispose()
        for process in self.processes.values():
            if process.process is not None and process.process.poll() is None:
                os.kill(process.process.pid, signal.SIGCONT)
            process.stop()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with closing(Scene(tmp_path)) as made:
        yield made


def test_the_quorum_goes_on_without_one_and_says_when_it_does_not(scene: Scene) -> None:
    for process in scene.processes.values():
        process.start()
    assert scene.round() == {"one", "two", "three"}
    scene.processes["one"].kill()
    assert scene.round() == {"two", "three"}
    assert "cannot be reached" in scene.client.failures(KEY.name)["one"]
    scene.signal("two", signal.SIGSTOP)
    assert scene.round() == {"three"}  # one of three: not the quorum, and told so
    assert scene.client.failures(KEY.name)["two"] == "no answer in time"
    # It comes back, and has perhaps cosigned what it was asked and could not answer.
    scene.signal("two", signal.SIGCONT)
    scene.processes["one"].start()
    for _ in range(3):
        cosigned = scene.round()
    assert cosigned == {"one", "two", "three"}
    assert scene.client.failures(KEY.name) == {}
