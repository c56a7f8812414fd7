"""The commands of docs/tenant-developer.md, run as they stand against both services over HTTP."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from procedure_cases import use_cached_table
from ragaudit.attacks.stage.play import Play
from ragaudit.ledger.receipts import ReceiptFile
from ragaudit.prover.service import Components

CHAPTER = Path(__file__).parents[2] / "docs" / "tenant-developer.md"
COMMANDS = re.findall(r"```bash\n(.*?)```", CHAPTER.read_text(encoding="utf-8"), re.DOTALL)
SECONDS = 600

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


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


class ByHand(Play):
    """Runs the chapter's commands for bob, and nobody else asks."""

    outputs: list[str]

    def _register(self, name: str) -> None:
        if name != "bob":
            super()._register(name)
            return
        with served(self.prover.app) as prover:
            self.outputs = [self._shell(COMMANDS[0], PROVER=prover)]

    def _window(self) -> None:
        first, *_ = self.prover.policy.activation_instants
        self.clock.at(first)
        self.troubles += self.prover.drive()
        self.clock.at(first + 1)
        with served(self.prover.app) as prover, served(self.verifier.app) as verifier:
            for command in COMMANDS[1:]:
                if "receipt complete" in command:
                    self.prover.checkpoint()
                key = self.verifier.key
                done = self._shell(command, PROVER=prover, VERIFIER=verifier, VERIFIER_KEY=key)
                self.outputs.append(done)

    def _shell(self, command: str, **variables: str) -> str:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "API_KEY": self.keys["bob"],
            **variables,
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            env=environment, cwd=self.folder, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def _played(self) -> Any:
        return self


def test_the_commands_run_as_they_stand(tmp_path_factory: pytest.TempPathFactory) -> None:
    use_cached_table()
    folder = tmp_path_factory.mktemp("window")
    played: Any = ByHand(folder, Components()).run()
    assert played.troubles == []
    assert '"slot"' in played.outputs[0]
    file = ReceiptFile.parse((folder / "answer.json").read_bytes())
    assert file.public.proof is not None
    assert file.request.query == "what does the second document say?"
    assert "1 completed" in played.outputs[-1]
    assert "No check failed" in played.outputs[-1]
    assert "1 accepted, 0 known already" in played.outputs[-1]
