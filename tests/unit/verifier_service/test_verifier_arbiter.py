"""The arbiter: its own key and store, findings without positions, nothing kept of a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from procedure_cases import use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, RefusedError, RejectedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.disputes import Finding, file_digest
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.verifier import arbiter as arbiter_module
from ragaudit.verifier import arbiter as arbiters
from ragaudit.verifier import keys
from ragaudit.verifier.arbiter import FINDINGS_FOLDER, KEY_FILE, Arbiter, create_app, read_window
from ragaudit.verifier.command.cli import app
from ragaudit.verifier.engines import engine
from typer.testing import CliRunner

use_cached_table()


@pytest.fixture
def arbiter(tmp_path: Path) -> Arbiter:
    return Arbiter.create(tmp_path / "arbiter")


def played(arbiter: Arbiter) -> Window:
    window = Window(overrides={"keys/arbiter": arbiter.public.raw.hex()})
    window.play()
    return window


def shown(window: Window) -> dict[str, Any]:
    """What the provider's `GET /v1/windows/{w}` says of the window."""
    _, salt, body = window.entries[0]
    return {
        "window": window.window,
        "state": "open",
        "policy": window.policy.to_json(),
        "policy_digest": window.policy.digest.hex(),
        "countersignature": canonical_json.loads(window.countersignature()),
        "opening": {"index": 0, "salt": salt.hex(), "body": body.hex()},
        "embedder": window.model.manifest().to_json(),
        "activations": [],
        "versions": [],
    }


def other_content(window: Window, value: dict[str, Any]) -> dict[str, Any]:
    """The provider signs another text than it committed to."""
    for part in (value["answer"]["documents"][0], value["private"]["rows"][0]):
        part["content"] = "nobody committed to this"
    halves = [canonical_json.dumps(value[name]) for name in ("request", "answer", "private")]
    public = PublicReceipt.from_json(value["public"])
    signed = PublicReceipt(origin=public.origin, index=public.index, salt=public.salt,
        body=public.body, issued=public.issued,
        answer_digest=structure("answer", bytes.fromhex(value["private"]["salt_r"]), *halves),
    ).signed(window.provider_key)  # fmt: skip
    return {**value, "public": signed.to_json()}


def test_findings(arbiter: Arbiter, tmp_path: Path) -> None:
    window = played(arbiter)
    view = read_window(shown(window), window.verifier_key.public)
    honest = window.receipt_file(window.asked[4]).to_json()
    false = other_content(window, window.receipt_file(window.asked[0]).to_json())
    for file, step in ((honest, 0), (false, 8)):
        finding, public = arbiter.judge(file, view, engine("core"), lambda: 1_900_000_000_000)
        finding.verify(arbiter.public)
        assert (finding.step, finding.file_digest) == (step, file_digest(file))
        assert public.to_json() == {**file["public"], "proof": None}
        again, _ = arbiter.judge(file, view, engine("core"), lambda: 0)
        assert again == finding
    stored = (tmp_path / "arbiter" / FINDINGS_FOLDER / "rag.example" / "w1.jsonl").read_text()
    assert len(stored.splitlines()) == 2
    assert "nobody committed to this" not in stored
    for secret in ("salt_r", "selected", "selection_blinding", "position", "vector"):
        assert secret not in stored
    assert [each.step for each in arbiter.findings()] == [0, 8]


def test_a_provider_that_signs_without_end(
    arbiter: Arbiter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file is judged, so many of a log are kept, and another log has room of its own."""
    monkeypatch.setattr(arbiters, "MAX_KEPT", 2)
    key = arbiter.public.raw.hex()
    windows = [Window(overrides={"keys/arbiter": key}, provider=name) for name in ("a.b", "b.a")]
    times = iter(range(100))
    for window in windows:
        window.play()
        view = read_window(shown(window), window.verifier_key.public)
        files = [window.receipt_file(each).to_json() for each in window.asked[:3]]
        first, second = (
            [arbiter.judge(file, view, engine("core"), lambda: next(times))[0] for file in files]
            for _ in range(2)
        )
        for found, file in zip((*first, *second), (*files, *files), strict=True):
            found.verify(arbiter.public)
            assert (found.step, found.file_digest) == (0, file_digest(file))
        assert first[:2] == second[:2] and first[2] != second[2]
    kept = [each.origin for each in arbiter.findings()]
    assert kept == ["a.b/ragaudit/w1"] * 2 + ["b.a/ragaudit/w1"] * 2
    files_of_logs = sorted((tmp_path / "arbiter" / FINDINGS_FOLDER).rglob("*.jsonl"))
    assert [each.parent.name for each in files_of_logs] == ["a.b", "b.a"]


def test_what_the_provider_did_not_sign_gets_no_finding(arbiter: Arbiter, tmp_path: Path) -> None:
    window = played(arbiter)
    view = read_window(shown(window), window.verifier_key.public)
    file = window.receipt_file(window.asked[4]).to_json()
    file["answer"]["documents"].pop()
    with pytest.raises(ReceiptRejected, match="another answer was signed"):
        arbiter.judge(file, view, engine("core"), lambda: 0)
    assert list(arbiter.findings()) == []


def test_of_another_arbiters_window(arbiter: Arbiter) -> None:
    window = Window()
    window.play()
    view = read_window(shown(window), window.verifier_key.public)
    with pytest.raises(RejectedError, match="another arbiter"):
        arbiter.judge(
            window.receipt_file(window.asked[4]).to_json(), view, engine("core"), lambda: 0
        )


def test_a_window_is_believed_as_far_as_it_is_countersigned(arbiter: Arbiter) -> None:
    window = played(arbiter)
    value, key = shown(window), window.verifier_key.public
    other = {**value["policy"], "sigma": "4000"}
    signed = value["countersignature"]
    for change in (
        {"policy": other},
        {"opening": {**value["opening"], "salt": "00" * 32}},
        {"countersignature": {**signed, "time": signed["time"] + 1}},
        {"countersignature": {**signed, "terms_digest": "00" * 32}},
    ):
        with pytest.raises((RejectedError, MalformedError)):
            read_window({**value, **change}, key)
    with pytest.raises(RejectedError):
        read_window(value, PrivateKey.generate().public)
    with pytest.raises(MalformedError):
        read_window({}, key)


def test_the_arbiters_folder_is_not_a_verifiers(tmp_path: Path) -> None:
    keys.create(tmp_path / "secrets", "regulator.example/cosigner")
    with pytest.raises(RefusedError, match="verifier's secrets"):
        Arbiter.create(tmp_path / "secrets")
    Arbiter.create(tmp_path / "own")
    with pytest.raises(RefusedError, match="exists"):
        Arbiter.create(tmp_path / "own")
    (tmp_path / "own" / KEY_FILE).chmod(0o644)
    with pytest.raises(MalformedError, match="open to others"):
        Arbiter(tmp_path / "own")
    with pytest.raises(MalformedError):
        Arbiter(tmp_path / "nothing")


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    return done.exit_code, done.output


def test_the_commands(tmp_path: Path) -> None:
    folder = ("--directory", tmp_path / "arbiter")
    code, output = run("arbiter", "init", *folder)
    assert code == 0
    public = output.strip()
    assert run("arbiter", "key", *folder) == (0, public + "\n")
    arbiter = Arbiter(tmp_path / "arbiter")
    window = played(arbiter)
    (tmp_path / "window.json").write_text(json.dumps(shown(window)))
    verifier = ("--verifier-key", window.verifier_key.public.raw.hex())
    common = ("--window", tmp_path / "window.json", *verifier, *folder)
    files = {
        "good.json": (window.receipt_file(window.asked[4]).to_json(), 0),
        "bad.json": (other_content(window, window.receipt_file(window.asked[0]).to_json()), 1),
    }
    for name, (file, expected) in files.items():
        (tmp_path / name).write_text(json.dumps(file))
        code, output = run("arbiter", "judge", tmp_path / name, *common)
        assert code == expected, output
        told = json.loads(output)
        Finding.from_json(told["finding"]).verify(arbiter.public)
        assert told["public"]["proof"] is None
    code, output = run("arbiter", "list", *folder)
    assert (code, len(output.splitlines())) == (0, 2)
    assert run("arbiter", "judge", tmp_path / "none.json", *common)[0] == 2
    (tmp_path / "text.json").write_text("[]")
    assert run("arbiter", "judge", tmp_path / "text.json", *common)[0] == 2
    code, _ = run("arbiter", "judge", tmp_path / "good.json", *common,
                  "--submit", "http://127.0.0.1:9")  # fmt: skip
    assert code == 3


def test_a_finding_is_about_one_file(arbiter: Arbiter) -> None:
    window = played(arbiter)
    view = read_window(shown(window), window.verifier_key.public)
    file = window.receipt_file(window.asked[4]).to_json()
    finding, _ = arbiter.judge(file, view, engine("core"), lambda: 0)
    with pytest.raises(ReceiptRejected):
        replace(finding, step=8).verify(arbiter.public)


def served(arbiter: Arbiter, window: Window) -> TestClient:
    verifier = window.verifier_key.public
    made = create_app(arbiter, verifier, engine("core"), lambda: 1_900_000_000_000)
    return TestClient(made, raise_server_exceptions=False)


def test_a_case_over_http(arbiter: Arbiter) -> None:
    window = played(arbiter)
    client = served(arbiter, window)
    assert client.get("/healthz").json() == {"status": "ok"}
    named = {"arbiter": arbiter.public, "verifier": window.verifier_key.public}
    assert client.get("/v1/keys").json() == {name: key.raw.hex() for name, key in named.items()}
    file = other_content(window, window.receipt_file(window.asked[0]).to_json())
    for _ in range(2):
        answer = client.post("/v1/findings", json={"file": file, "window": shown(window)})
        assert answer.status_code == 200, answer.text
        finding = Finding.from_json(answer.json()["finding"])
        finding.verify(arbiter.public)
        assert (finding.step, finding.file_digest) == (8, file_digest(file))
        assert answer.json()["public"] == {**file["public"], "proof": None}
    assert len(list(arbiter.findings())) == 1


def test_what_is_no_case(arbiter: Arbiter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = played(arbiter)
    client = served(arbiter, window)
    file, view = window.receipt_file(window.asked[4]).to_json(), shown(window)
    altered = {**file, "answer": {**file["answer"], "documents": []}}
    other = Window()
    other.play()
    signed = {**view["countersignature"], "time": 1}
    for body, status in (
        ({"file": altered, "window": view}, 422),
        ({"file": {}, "window": view}, 400),
        ({"file": file, "window": {}}, 400),
        ({"file": file, "window": {**view, "countersignature": signed}}, 422),
        ({"file": file, "window": shown(other)}, 422),
        ({"file": file}, 400),
        ({"file": file, "window": view, "more": 1}, 400),
    ):
        answer = client.post("/v1/findings", json=body)
        assert answer.status_code == status, (status, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert file["private"]["salt_r"] not in answer.text
    assert client.post("/v1/findings", content=b"{").status_code == 400
    assert list(arbiter.findings()) == []
    with monkeypatch.context() as patch:
        patch.setattr(arbiter_module, "MAX_CASE_BYTES", 1000)
        answer = client.post("/v1/findings", json={"file": file, "window": view})
        assert answer.status_code == 413
    (tmp_path / "arbiter" / FINDINGS_FOLDER).write_text("in its place")
    answer = client.post("/v1/findings", json={"file": file, "window": view})
    assert (answer.status_code, "cannot be kept" in answer.text) == (503, True)
