"""A backup that is too old, and one that is not; cosigners that fail; a database that goes away.

All in one window, with the commands and processes of a real one: the audit passes, and the report
says what happened.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from cosigner_service import CosignerProcess
from databases import ON_EACH_ENGINE
from moved_window import MovedWindow
from postgresql_server import Server
from prover_process import PATIENCE, body_of
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import b64_decode
from ragaudit.lab.scenario.policy import small_terms_file
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.messages.entries import Record
from ragaudit.verifier.cosigner.store import Store as CosignerStore
from restoring import BackUp

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    *ON_EACH_ENGINE,
]

NAMES = ("good", "slow", "stale", "wrong")
COMMAND = "from ragaudit.prover.command.cli import app; app()"
QUESTIONS = 12


class Scene(MovedWindow):
    """A window whose policy names four cosigners; one of them signs with a key of its own."""

    def __init__(self, folder: Path) -> None:
        self.cosigners = {name: CosignerProcess(folder / name) for name in NAMES}
        self.other = SigningKey("wrong.example", COSIGNATURE_V1, PrivateKey.generate())
        keys = {
            name: self.other if name == "wrong" else each.keys[0]
            for name, each in self.cosigners.items()
        }
        known = sorted(str(key.verifier_key) for key in keys.values())
        terms = small_terms_file(folder / "terms", further_cosigners=known)
        super().__init__(folder, terms=str(terms))
        self.answers: list[dict[str, Any]] = []
        lines = []
        for name, each in self.cosigners.items():
            each.prelude = self.clock.prelude
            lines.append(f"witness {name} {keys[name].verifier_key} {each.url}")
        policy = folder / "cosigners.policy"
        policy.write_text("\n".join([*lines, f"group them 2 {' '.join(NAMES)}", "quorum them", ""]))
        self.prover.environment = {
            "RAGAUDIT_PROVER__COSIGNERS__POLICY_FILE": str(policy),
            "RAGAUDIT_PROVER__COSIGNERS__EVERY_SECONDS": "1",
            "RAGAUDIT_PROVER__COSIGNERS__TIMEOUT_SECONDS": "2",
        }

    def take_up(self) -> None:
        """Tell the cosigners the log's key, and start them."""
        for each in self.cosigners.values():
            store = CosignerStore(each.settings.database_url, lambda: 0)
            store.add(self.policy().keys.log)
            store.close()
            each.start()

    def standing(self) -> Any:
        """What the prover says of its cosigners."""
        return self.prover.operator("GET", "/windows/w1")["cosigners"]

    def restore(self) -> tuple[int, Any]:
        """Call `ragaudit prover restore`; exit code and output."""
        script = f"{self.prover.prelude}\n{COMMAND}"
        settings = ["--settings", str(self.setting.made.settings), "--json"]
        done = subprocess.run(
            [sys.executable, "-c", script, "restore", "w1", *settings],
            env=self.prover.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, json.loads(done.stdout)

    def twice(self, number: int) -> None:
        """Ask one question over two connections, both of which repeat it: one answer."""
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(self.repeated, (number, number))
        assert first == second
        self.answers.append(first)

    def repeated(self, number: int) -> dict[str, Any]:
        """Ask until there is an answer."""
        found: list[dict[str, Any]] = []

        def answered() -> bool:
            reply = self.ask(number)
            assert reply.status_code in {200, 429, 503}, reply.text
            if reply.is_success:
                found.append(reply.json())
            return reply.is_success

        self.until(answered)
        return found[0]

    def ask(self, number: int) -> httpx.Response:
        headers = {
            "Authorization": f"Bearer {self.setting.keys['ada']}",
            "Idempotency-Key": f"question {number}",
        }
        path = "/v1/windows/w1/query"
        return self.prover.http.post(path, json=body_of(number), headers=headers)

    def close(self) -> None:
        for each in self.cosigners.values():
            if each.process is not None and each.process.poll() is None:
                os.kill(each.process.pid, signal.SIGCONT)
            each.stop()
        super().close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with closing(Scene(tmp_path)) as made:
        yield made


def test_faults_that_the_report_tells(
    scene: Scene, request: pytest.FixtureRequest, engine_name: str
) -> None:
    scene.begin(privacy="gaussian", cosigners="reported")
    scene.take_up()
    scene.until(lambda: scene.standing()["reached"])
    scene.clock.reach(scene.policy().start)
    scene.until(lambda: scene.prover.state() == "open")

    for number in range(3):
        scene.twice(number)
    old = BackUp(scene.setting.settings.store.url)
    cosigners_fail(scene)
    server = request.getfixturevalue("postgresql") if engine_name == "postgresql" else None
    go_on_through_outages(scene, server)
    before = len(scene.answers)
    restore_in_time(scene, old)
    for number in range(200, 203):
        scene.twice(number)
    all_cosigned(scene)
    scene.finish()

    report, result = scene.shown("/report.txt").text, scene.shown().json()["result"]
    envelope = json.loads(scene.window().verdict or b"")
    scene.close()
    assert result == "PASS", report
    attested = json.loads(b64_decode(envelope["payload"]))["predicate"]["attested"]["cosigners"]
    assert len(attested["opening"]["cosigned"]) >= 2 and attested["known"] == 4
    assert "database or fence had been restored or lost" in report
    assert "seed epoch 2" in report
    public = [each["public"] for each in scene.answers]
    records = [Record.parse(bytes.fromhex(each["body"])) for each in public]
    assert [each.counter for each in records] == list(range(len(records)))
    assert [each.epoch for each in records] == [1] * before + [2] * 3
    scene.check(public)


def cosigners_fail(scene: Scene) -> None:
    """One is slow, one gone and then behind, one has another key: told, and nobody waits."""
    slow, stale = scene.cosigners["slow"], scene.cosigners["stale"]
    assert slow.process is not None
    before = stale.path.parent / "before"
    stale.stop()
    shutil.copytree(stale.settings.data, before)
    stale.start()
    scene.until(lambda: set(scene.standing()["latest"]["cosigned"]) == {"good", "slow", "stale"})
    os.kill(slow.process.pid, signal.SIGSTOP)
    stale.kill()
    scene.twice(100)
    scene.until(
        lambda: (
            set(scene.standing()["failures"]) == {"slow", "stale", "wrong"}
            and set(scene.standing()["latest"]["cosigned"]) == {"good"}
        )
    )
    told = scene.standing()
    assert told["failures"]["slow"] == "no answer in time"
    assert "cannot be reached" in told["failures"]["stale"]
    assert told["failures"]["wrong"] == "cosignatures of other keys only"
    assert not told["latest"]["reached"]
    os.kill(slow.process.pid, signal.SIGCONT)
    # What it cosigned last is forgotten: it says how far it is, and is led on from there.
    shutil.rmtree(stale.settings.data)
    shutil.copytree(before, stale.settings.data)
    stale.start()
    scene.until(lambda: set(scene.standing()["latest"]["cosigned"]) == {"good", "slow", "stale"})
    assert set(scene.standing()["failures"]) == {"wrong"}


def go_on_through_outages(scene: Scene, server: Server | None) -> None:
    """The database goes away and comes back, or else the prover does, while accounts repeat."""

    def ask() -> None:
        for number in range(10, 10 + QUESTIONS):
            scene.twice(number)

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        for count in (2, 6):
            least = len(scene.answers) + count
            while len(scene.answers) < least and not asking.done():
                time.sleep(PATIENCE)
            if server is None:
                scene.prover.kill()
                scene.prover.launch()
            else:
                server.crash()
                time.sleep(1)
                server.start()
        asking.result()
    # Whoever asks once more, long afterwards, has the same answer, and no other record.
    for number, known in zip((0, 1, 2), scene.answers, strict=False):
        assert scene.repeated(number) == known
    all_cosigned(scene)


def restore_in_time(scene: Scene, old: BackUp) -> None:
    """A backup that is too old is refused, with what would help; one that is not goes on."""
    scene.prover.kill()
    late = BackUp(scene.setting.settings.store.url)
    old.restore()
    code, said = scene.restore()
    assert (code, said["problem"]) == (4, "restored-backup")
    assert "were cosigned" in said["detail"] and "a later backup" in said["detail"]
    scene.prover.start()
    assert scene.prover.http.get("/readyz").status_code == 503
    assert scene.ask(199).status_code == 503
    scene.prover.kill()

    late.restore()
    code, said = scene.restore()
    assert (code, said["epoch"]) == (0, 2), said
    scene.prover.start()
    early = scene.ask(199)
    assert early.status_code == 503 and "new seed" in early.json()["detail"]
    scene.until(lambda: scene.cosigned() > said["entry"])
    now = scene.clock() // 1000
    instants = scene.policy().activation_instants
    scene.clock.reach(next(each for each in instants if each > now))


def all_cosigned(scene: Scene) -> None:
    """Wait until a cosigned checkpoint covers every answer."""
    scene.until(lambda: scene.cosigned() > scene.answers[-1]["public"]["index"])
