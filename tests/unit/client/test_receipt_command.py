"""`ragaudit receipt`: exit codes, one line per check, public halves only."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client import transport
from ragaudit.client.cli import app
from ragaudit.client.client import Client
from ragaudit.encoding.canonical_json import dumps
from typer.testing import CliRunner

RUNNER = CliRunner()
Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def network(provider: Any, verifier: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection ends at the fake provider or the fake verifier."""

    def handle(request: httpx.Request) -> httpx.Response:
        service = verifier if request.url.host == "verifier" else provider
        response: httpx.Response = service.handle(request)
        return response

    real = httpx.Client

    def mocked(**arguments: Any) -> httpx.Client:
        return real(**{**arguments, "transport": httpx.MockTransport(handle)})

    monkeypatch.setattr(transport.httpx, "Client", mocked)  # type: ignore[attr-defined]


@pytest.fixture
def receipt(tmp_path: Path) -> Iterator[Path]:
    """A receipt file of an anchored account, completed."""
    with Client("http://provider", "secret-api-key", window="w1", state_dir=tmp_path) as client:
        result = client.search("what is it?", 3)
        result.receipt.complete()
        assert result.receipt.path is not None
        yield result.receipt.path


def check(receipt: Path, *options: str) -> tuple[int, Any]:
    result = RUNNER.invoke(app, ["check", str(receipt), *options, "--json"])
    return result.exit_code, json.loads(result.stdout)


def test_an_honest_receipt_is_accepted(receipt: Path, provider: Any) -> None:
    key = provider.policy.keys.verifier.raw.hex()
    code, report = check(receipt, "--prover", "http://provider", "--verifier-key", key)
    assert code == 0
    assert report["result"] == "accepted"
    assert len(report["checks"]) == 11
    undone = {each["name"] for each in report["checks"] if each["status"] == "not done"}
    assert undone == {"body", "embedder", "nonce"}


def test_the_policy_is_a_pin_too(receipt: Path, provider: Any, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_bytes(provider.policy.canonical + b"\n")
    code, report = check(receipt, "--prover", "http://provider", "--policy", str(policy))
    assert (code, report["checks"][0]["status"]) == (0, "done")
    other = {**provider.policy.to_json(), "sigma": "0.5"}
    policy.write_bytes(dumps(other))
    code, report = check(receipt, "--prover", "http://provider", "--policy", str(policy))
    assert code == 1
    assert "policy digest" in report["error"]


def test_strict_wants_every_check(receipt: Path) -> None:
    code, _ = check(receipt, "--prover", "http://provider", "--strict")
    assert code == 3


def test_a_forged_receipt_is_rejected_with_its_step(receipt: Path) -> None:
    file = json.loads(receipt.read_bytes())
    file["answer"]["documents"][0]["content"] = "forged"
    receipt.write_bytes(dumps(file))
    code, report = check(receipt, "--prover", "http://provider")
    assert code == 1
    assert report["result"] == "rejected"
    assert "step 4" in report["error"]
    shown = RUNNER.invoke(app, ["check", str(receipt), "--prover", "http://provider"])
    assert shown.exit_code == 1
    assert "step 4" in shown.stderr


def test_a_table_is_printed_without_json(receipt: Path) -> None:
    shown = RUNNER.invoke(app, ["check", str(receipt), "--prover", "http://provider"])
    assert shown.exit_code == 0
    assert "commitments" in shown.stdout
    assert "No check failed" in shown.stdout


@pytest.mark.parametrize("options", [[], ["--prover", "http://provider", "--window", "x"]])
def test_one_source_of_the_window_is_needed(receipt: Path, options: list[str]) -> None:
    code, report = check(receipt, *options)
    assert code == 1
    assert "--window or --prover" in report["error"]


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"not json", b"\xff"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    code, report = check(path, "--prover", "http://provider")
    assert code == 1
    assert report["result"] == "rejected"


def test_submit_sends_the_public_half_alone(receipt: Path, verifier: Any) -> None:
    result = RUNNER.invoke(app, ["submit", str(receipt), "--verifier", "http://verifier", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"accepted": 1, "known": 0}
    public = json.loads(receipt.read_bytes())["public"]
    assert verifier.received == [("receipts", {"receipts": [public]})]


def test_a_public_half_alone_can_be_submitted(receipt: Path, verifier: Any, tmp_path: Path) -> None:
    half = tmp_path / "public.json"
    half.write_bytes(dumps(json.loads(receipt.read_bytes())["public"]))
    result = RUNNER.invoke(app, ["submit", str(half), "--verifier", "http://verifier"])
    assert result.exit_code == 0, result.output
    assert "1 accepted" in result.stdout
    assert len(verifier.received) == 1
