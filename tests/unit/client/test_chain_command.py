"""`ragaudit receipt verify-windows`: what it prints, and how it ends."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client import transport
from ragaudit.client.cli import app
from ragaudit.lab.scenario.policy import seeded
from typer.testing import CliRunner
from vector_scripts import VECTORS, script

RUNNER = CliRunner()
REAL = httpx.AsyncClient
VECTOR: dict[str, Any] = json.loads((VECTORS / "chain.json").read_bytes())
PINNED = ("--verifier-key", VECTOR["verifier"])


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.json"
    # As curl saves it, in any spelling.
    path.write_text(json.dumps(json.loads(VECTOR["chain"]), indent=2))
    return path


def verified(*options: str) -> tuple[int, str]:
    done = RUNNER.invoke(app, ["verify-windows", *options])
    return done.exit_code, done.output


def test_a_chain_is_shown_window_by_window(chain: Path) -> None:
    code, output = verified(str(chain), *PINNED)
    lines = output.splitlines()
    assert (code, len(lines)) == (0, 3)
    assert lines[0].startswith("w1: begins anew; ended with 5 entries; log key rag.example.com/")
    assert lines[2].startswith("w3: continues w2; has not ended;")
    code, output = verified(str(chain), *PINNED, "--json")
    windows = json.loads(output)["windows"]
    assert code == 0 and [each["continues"] for each in windows] == [None, "w1", "w2"]


def test_a_provider_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/v1/window-chain"
        return httpx.Response(200, text=VECTOR["chain"])

    def mocked(**arguments: Any) -> httpx.AsyncClient:
        return REAL(**{**arguments, "transport": httpx.MockTransport(handle)})

    monkeypatch.setattr(transport.httpx, "AsyncClient", mocked)  # type: ignore[attr-defined]
    assert verified("--prover", "http://provider", *PINNED)[0] == 0


def test_a_false_chain_is_false(chain: Path) -> None:
    value = json.loads(chain.read_text())
    chain.write_text(json.dumps({**value, "windows": value["windows"][1:]}))
    code, output = verified(str(chain), *PINNED)
    assert (code, "not listed before it" in output) == (1, True)
    chain.write_text(json.dumps({**value, "windows": 1}))
    assert verified(str(chain), *PINNED)[0] == 2
    chain.write_text("{")
    assert verified(str(chain), *PINNED)[0] == 2


def test_a_later_window_that_begins_anew_is_told_by_the_exit_code(chain: Path) -> None:
    made = script("make_chain")
    windows = [made.chained("w1", 0, None)[0], made.chained("w2", 1, None)[0]]
    chain.write_text(json.dumps({**json.loads(VECTOR["chain"]), "windows": windows}))
    code, output = verified(str(chain), *PINNED)
    assert (code, "w2: begins anew" in output) == (5, True)


def test_pins_are_demanded_and_compared(chain: Path) -> None:
    code, output = verified(str(chain))
    assert (code, "nothing is pinned" in output) == (2, True)
    assert verified(str(chain), "--allow-unpinned")[0] == 0
    other = ("--verifier-key", seeded("another").public.raw.hex())
    code, output = verified(str(chain), *other)
    assert (code, "another verifier's" in output) == (1, True)
    assert verified(str(chain), *PINNED, *PINNED)[0] == 0


def test_one_source_is_needed(chain: Path) -> None:
    assert verified(*PINNED)[0] == 2
    assert verified(str(chain), "--prover", "http://provider", *PINNED)[0] == 2
