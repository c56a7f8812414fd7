"""SIGKILL of prover and verifier at every step of one window: one log, one verdict, PASS."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from asking import Asking
from dying import Mortal, Step
from moved_window import MovedWindow
from prover_process import ANCHORED, PATIENCE, PLAIN
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import verify_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tiles import bundles_of, entries_path, tile_path, tiles_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

_STORE = "ragaudit.ledger.log.checkpoint_store:"
_LOG = "ragaudit.prover.window.log_transaction:LogTransaction."
_CALLS = "ragaudit.prover.verifier.client:VerifierClient."
_CHALLENGES = "ragaudit.prover.lifecycle.challenges:ChallengeWorker."
_SERVICE = "ragaudit.verifier.service."
_PARTS = f"{_SERVICE}handover:Handover."
_SAMPLER = f"{_SERVICE}challenge:Sampler."
_AUDIT = f"{_SERVICE}audit:AuditRunner."

PROVER = (
    Step("a checkpoint is signed, and not stored", f"{_STORE}sign_checkpoint", "after"),
    Step("it is stored, and not cosigned", f"{_STORE}CheckpointStore._insert", "after"),
    Step("it is cosigned, and nobody knows here", f"{_CALLS}add_checkpoint", "after"),
    Step("its cosignature is kept", f"{_STORE}CheckpointStore.add_cosignatures", "after"),
    Step("an answer is written, and not durable", f"{_LOG}flush", "after"),
    Step("a receipt is signed", "ragaudit.prover.answering.query:receipt_file", "after"),
    Step("the log ends", "ragaudit.prover.lifecycle.closing:Closing._log_close", "after"),
    Step("a part of the handover is sent", f"{_CALLS}put_part", "before"),
    Step("all parts are taken", f"{_CALLS}put_parts", "after"),
    Step("the window is closed there", f"{_CALLS}close_window", "after"),
    Step("the challenge is checked", f"{_CHALLENGES}check", "after"),
    Step("the first proofs are kept", f"{_CHALLENGES}_keep", "after"),
    Step("a response is taken", f"{_CALLS}put_response", "after"),
    Step("the verdict is there", "ragaudit.prover.lifecycle.driver:Driver._move", "before"),
)
"""Up to the receipt while accounts ask; then the steps after the window's end."""

VERIFIER = (
    Step("an activation is made", f"{_SERVICE}challenge:ensure_activation", "after"),
    Step("it is released", f"{_SERVICE}routes:release_activation", "after"),
    Step("a cosignature is made", f"{_SERVICE}cosigner:_persist", "after"),
    Step("it is kept", f"{_SERVICE}cosigner:add_checkpoint", "after"),
    Step("a part of the handover is read", f"{_SERVICE}handover:check_part", "after"),
    Step("the part is kept", f"{_PARTS}put_part", "after"),
    Step("the parts are joined and read", f"{_SERVICE}handover:_derive", "after"),
    Step("the handover is taken", f"{_PARTS}put_parts", "after"),
    Step("the log is closed", f"{_SERVICE}handover:Handover.close", "after"),
    Step("the receipts list is signed", f"{_SAMPLER}sign_list", "after"),
    Step("a sample is drawn", f"{_SERVICE}challenge:draw_strata", "after"),
    Step("the challenge is kept", f"{_SAMPLER}draw", "after"),
    Step("a response is kept", f"{_SAMPLER}respond", "after"),
    Step("the evidence is sealed", f"{_SERVICE}evidence:seal", "after"),
    Step("half of it is checked", f"{_AUDIT}_report", "before", after=12),
    Step("the verdict is signed", f"{_AUDIT}_decide", "before"),
    Step("the verdict is kept", f"{_AUDIT}_decide", "after"),
)

PUBLISHED = (
    Step("no file is written", "ragaudit.ledger.log.published_files:_write", "before"),
    Step("the checkpoint is not", "ragaudit.ledger.log.published_files:synchronise", "after"),
)


class Scene(MovedWindow):
    """A window whose two services die at every step."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.dying = Mortal(self.prover, PROVER), Mortal(self.verifier, VERIFIER)
        self.verdicts: set[bytes] = set()
        self.over = threading.Event()
        self.watching = threading.Thread(target=self.watch)

    def begin(self, **overrides: Any) -> None:
        super().begin(**overrides)
        for each in self.dying:
            each.start()
        self.verifier.kill()
        self.prover.kill()
        self.watching.start()

    def watch(self) -> None:
        """Ask for the verdict all the time."""
        while not self.over.wait(PATIENCE):
            with suppress(httpx.HTTPError):
                shown = self.shown("/verdict")
                if shown.status_code == 200:
                    self.verdicts.add(shown.content)

    def look(self) -> None:
        for each in self.dying:
            each.check()

    def publish(self, folder: Path, step: Step | None = None) -> int:
        """Publish the log as files, perhaps to die on the way; the exit code."""
        prelude = "" if step is None else step.prelude
        script = f"{prelude}\nfrom ragaudit.prover.command.cli import app; app()"
        settings = ["--settings", str(self.setting.made.settings)]
        command = [sys.executable, "-c", script, "window", "publish", "w1", str(folder), *settings]
        return subprocess.run(command, capture_output=True, check=False).returncode

    def close(self) -> None:
        self.over.set()
        for each in self.dying:
            if each.is_alive():
                each.end()
        if self.watching.is_alive():
            self.watching.join()
        super().close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with closing(Scene(tmp_path)) as made:
        yield made


def test_everybody_dies_at_each_step(scene: Scene, tmp_path: Path) -> None:
    scene.begin()
    scene.clock.reach(scene.policy().start)
    scene.until(lambda: scene.prover.state() == "open")
    asking = [Asking(scene.setting, account) for account in (*PLAIN, ANCHORED)]
    for each in asking:
        each.start()
    prover, verifier = scene.dying
    scene.until(lambda: prover.has_died(PROVER[5]) and verifier.has_died(VERIFIER[3]))
    for each in asking:
        each.end()
    # Nobody waits for the verifier; that it was away for long is told in the end.
    with verifier.away():
        asking[0].ask()
        scene.clock.reach(scene.clock() // 1000 + 400)
    answered = [public for each in asking for public in each.public]
    scene.until(lambda: scene.cosigned() > max(each["index"] for each in answered))
    check_published(scene, tmp_path / "published")
    scene.finish()

    verdict, report = scene.window().verdict, scene.shown("/report.txt").text
    result = scene.shown().json()["result"]
    scene.close()
    assert prover.died == [step.name for step in PROVER]
    assert verifier.died == [step.name for step in VERIFIER]
    assert result == "PASS", report
    assert scene.verdicts == {verdict}
    assert "no checkpoint was cosigned while" in report
    for thread in asking:
        thread.check()
    scene.check(answered)


def check_published(scene: Scene, folder: Path) -> None:
    """Files that were cut off on the way are never shown, and the next run mends them."""
    assert scene.publish(folder, PUBLISHED[0]) < 0
    assert scene.publish(folder, PUBLISHED[1]) < 0
    assert not (folder / "checkpoint").exists()
    assert scene.publish(folder) == 0
    log, store = scene.setting.log()
    size = log.head().size
    shown = CheckpointStore(log, CosignerPolicy((scene.verifier.keys.cosigner.verifier_key,), 1))
    for path in (*map(tile_path, tiles_of(size)), *map(entries_path, bundles_of(size))):
        assert (folder / path).read_bytes() == shown.resource(path)
    signed = verify_checkpoint((folder / "checkpoint").read_bytes(), log.log_key)
    assert signed.head == log.head()
    store.close()
