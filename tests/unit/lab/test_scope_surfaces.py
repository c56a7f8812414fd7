"""Our surfaces before a store in memory: nothing is found, and what is broken in them is."""

import hashlib
from pathlib import Path

import pytest
import scope_runs
from leaking_ports import Answering, Fetching, filled
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.signed import EnvelopeRejected
from ragaudit.ledger.messages.signed_results import MembershipResult, ResultReference, ScopeResult
from surface_app import KEYS, NAMES, MemoryPort, serving, surface_app

STORES = ("chroma", "qdrant", "openai", "mcp", "dify")


def findings_of(
    port: MemoryPort, store: str, folder: Path, *arguments: str
) -> set[tuple[str, str]]:
    keys = {account.tenant: key for key, account in KEYS.items()}
    path = scope_runs.target(folder, store, "http://x", keys, collections=NAMES)
    app = surface_app(filled(port, folder / "canaries.jsonl"))
    with serving(app) as number:
        scope_runs.target(folder, store, f"http://127.0.0.1:{number}", keys, collections=NAMES)
        report = scope_runs.scope(path, "--rounds", "2", *arguments)
    assert report["controlled"] == ["acme", "globex"]
    return scope_runs.found(report)


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_nothing_is_found(store: str, tmp_path: Path) -> None:
    assert findings_of(MemoryPort(), store, tmp_path) == set()


@pytest.mark.parametrize("store", STORES)
def test_rows_of_others_in_an_answer_are_found(store: str, tmp_path: Path) -> None:
    found = findings_of(Answering(), store, tmp_path, "--only", "nearest")
    assert ("nearest", "id" if store == "mcp" else "content") in found
    if store in ("chroma", "qdrant"):
        assert ("nearest", "vector") in found


@pytest.mark.parametrize(
    ("store", "probe"), [("chroma", "get-ids"), ("qdrant", "get-ids"), ("mcp", "fetch-id")]
)
def test_rows_by_ids_of_others_are_found(store: str, probe: str, tmp_path: Path) -> None:
    assert (probe, "content") in findings_of(Fetching(), store, tmp_path, "--only", probe)


def test_the_result_is_signed_and_a_verdict_may_refer_to_it(tmp_path: Path) -> None:
    private = PrivateKey.from_seed(b"t" * 32)
    key, policy_file = tmp_path / "sign.key", tmp_path / "policy.json"
    key.touch(mode=0o600)
    key.write_text(private.seed().hex())
    policy = Window().policy.canonical
    policy_file.write_bytes(policy)
    report, signed = tmp_path / "leaks.json", tmp_path / "leaks.dsse.json"
    words = ("--report", str(report), "--signed", str(signed), "--policy", str(policy_file))
    found = findings_of(
        Answering(), "openai", tmp_path, "--only", "nearest", *words, "--sign-key", str(key)
    )
    envelope = signed.read_bytes()
    result = ScopeResult.verify(envelope, private.public)
    assert found and (result.result, result.detail["store"]) == ("LEAK", "openai")
    written = hashlib.sha256(report.read_bytes()).hexdigest()
    assert result.subjects["leaks.json"] == written
    assert result.to_json()["predicate"]["result"] == "FAILED"
    reference = ResultReference.of("scope", envelope, private.public, policy)
    assert reference.digest == hashlib.sha256(envelope).digest()
    with pytest.raises(EnvelopeRejected):
        ScopeResult.verify(envelope, PrivateKey.generate().public)
    membership = MembershipResult({"e": "ab" * 32}, "ab" * 32, "PASS", None, {}).issue(private)
    with pytest.raises(MalformedError, match="not the result of a scope test"):
        ScopeResult.verify(membership, private.public)
