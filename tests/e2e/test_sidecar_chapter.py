"""docs/sidecar.md as it stands, with Chroma's own server and shorter times: to a verdict."""

import json
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import chroma_server
import httpx
import pytest
import yaml
from chapters import DOCS, blocks, run_program, shell
from chroma_program import filled, run
from ragaudit.cli.processes import ServiceProcess
from ragaudit.lab.demo.plan import measure_pace

pytestmark = pytest.mark.slow
CHAPTER = (DOCS / "sidecar.md").read_text(encoding="utf-8")
TIMES = {
    "opens_after_seconds": 40,
    "length_seconds": 70,
    "sampling_after_seconds": 25,
    "release_seconds": 5,
}


def block(language: str) -> str:
    (found,) = blocks(CHAPTER, language)
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Place:
    """The folder of the chapter's reader; ports of this machine instead of the chapter's."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.ports = {"8742": free_port(), "8080": free_port(), "9464": free_port()}
        self._pace = measure_pace()  # a busy machine needs longer for what happens in a window

    def moved(self, text: str) -> str:
        """A block with this machine's ports and shorter times."""
        for written, used in self.ports.items():
            text = text.replace(written, str(used))
        for name, seconds in TIMES.items():
            text = re.sub(rf"{name}=\d+", f"{name}={round(self._pace * seconds)}", text)
        return text

    def run(self, language: str, **environment: str) -> str:
        return shell(self.moved(block(language)), self.folder, **environment)

    def serve(self, language: str, port: str, **environment: str) -> None:
        """Start the service of a block, and wait until it is ready."""
        words = self.moved(block(language)).split()
        assert words[0] == "ragaudit"
        command = " ".join([sys.executable, "-m", "ragaudit.cli", *words[1:]])
        process = ServiceProcess(
            language,
            ["sh", "-c", f"cd {self.folder} && exec {command}"],
            url=f"http://127.0.0.1:{self.ports[port]}",
            log=self.folder / f"{language}.log",
            environment=environment,
        )  # fmt: skip
        self._stack.enter_context(process)
        process.wait_ready(180)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(tmp_path, stack)


@pytest.fixture
def chroma() -> Iterator[str]:
    with chroma_server.ChromaServer() as server:
        assert run(server.url, "", filled("handbook", 200)) == [None, None]
        yield server.url


def hasty_terms(place: Place) -> None:
    """Terms of a regulator for whom nobody waits for an hour."""
    terms = place.folder / "verifier" / "terms.toml"
    terms.write_text("least_sampling_delay_seconds = 0\n", encoding="utf-8")
    path = place.folder / "verifier" / "verifier.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**document, "terms": terms.name}), encoding="utf-8")


def settings_of_the_chapter(place: Place, chroma: str, keys: dict[str, str]) -> None:
    """What the reader writes into prover.yaml."""
    path = place.folder / "prover" / "prover.yaml"
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    document |= yaml.safe_load(place.moved(block("yaml")))
    document["verifier"] |= {
        f"{role}_key": keys[role] for role in ("cosigner", "verifier", "verdict")
    }
    document["window"] |= {"merge_delay_seconds": 20}  # the sample is drawn after it
    document["server"]["port"] = place.ports["8080"]
    document["backend"]["chroma"]["url"] = chroma
    path.write_text(yaml.safe_dump(document), encoding="utf-8")


@pytest.mark.timeout(1800)  # two windows of waiting, and a dozen starts of Python
def test_the_chapter_leads_to_a_verdict(place: Place, chroma: str) -> None:
    keys = dict(re.findall(r"^(\w+): (\S+)$", place.run("sh-verifier"), re.MULTILINE))
    hasty_terms(place)
    made = dict(re.findall(r"^(\w+): (\S+)$", place.run("sh-prover"), re.MULTILINE))
    # The regulator's command, beside the running service.
    place.serve("sh-verifier-service", "8742")
    place.run("sh-pin", PROVIDER_KEY=made["provider_key"])
    settings_of_the_chapter(place, chroma, keys)
    printed = place.run("sh-dispute-key")
    dispute_key = re.fullmatch(r"dispute.key: (\w+)", printed.splitlines()[0])
    assert dispute_key is not None
    first, *rest = place.run("sh-check", DISPUTE_KEY=dispute_key[1]).splitlines()
    assert all(line.endswith(": good") for line in rest), rest
    key = json.loads(first)["key"]
    place.serve("sh-prover-service", "8080")
    (program,) = blocks(CHAPTER, "python")
    run_it = [sys.executable, "-c", program]
    before = {
        "CHROMA_KEY": "none",
        "CHROMA_HOST": "127.0.0.1",
        "CHROMA_PORT": chroma.rpartition(":")[2],
    }
    stored = run_program(run_it, place.folder, **before)
    place.run("sh-window")
    where = {"CHROMA_KEY": key, "CHROMA_HOST": "127.0.0.1"}
    account = {"CHROMA_KEY": key, "VERIFIER_KEY": keys["verifier"]}
    assert "first: registered with this key" in place.run("sh-registered", **account)
    answered = run_program(run_it, place.folder, CHROMA_PORT=str(place.ports["8080"]), **where)
    assert answered == stored and "d" in answered
    metrics = httpx.get(f"http://127.0.0.1:{place.ports['9464']}/metrics").text
    assert "ragaudit_receipts_total 1.0" in metrics
    stream = (place.folder / "prover" / "audit.jsonl").read_text().splitlines()
    (retrieval,) = [
        each for each in map(json.loads, stream) if each["event"]["action"] == "retrieval"
    ]
    assert (retrieval["user"]["name"], retrieval["organization"]["name"]) == ("acme-app", "acme")
    checked = place.run("sh-receipt", **account)
    assert "No check failed." in checked and "warning" not in checked
    assert "entry 2 is disputed" in place.run("sh-dispute")
    verdict = place.run("sh-audit", COLUMNS="200")
    assert "PASS" in verdict and "NOT CLAIMED" in verdict, verdict
    # It was sampled, as the only one: no verifier may see the file, and there is no arbiter.
    verifier = f"http://127.0.0.1:{place.ports['8742']}/v1/windows/first"
    assert httpx.get(f"{verifier}/disputes/2").json() == {"sampled": True, "step": None}
    assert "Disputes that nobody judged" in httpx.get(f"{verifier}/report.txt").text


def test_the_commands_that_are_not_run_exist() -> None:
    looked = re.findall(r"^```\n(ragaudit up .*?)\n^```$", CHAPTER, re.MULTILINE | re.DOTALL)
    assert len(looked) == 2
    shown = run_program([sys.executable, "-m", "ragaudit.cli", "up", "--help"], Path.cwd())
    for option in set(re.findall(r"--[a-z-]+", " ".join(looked) + " --keep --port")):
        assert option in shown, option
