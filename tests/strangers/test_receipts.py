"""Our offline proofs and cosignatures, read by the code of transparency-dev."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ledger_logs import COSIGNER, KEY, leaf
from published_log import Published, ask, b64
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.log.tlog_proof import TlogProof

pytestmark = [pytest.mark.strangers, pytest.mark.timeout(900)]

FROZEN = Path(__file__).parents[1] / "frozen" / "0.1.0"
INDEX = 66_000


@pytest.fixture
def task(published: Published) -> dict[str, Any]:
    proof = published.checkpoints.tlog_proof(INDEX)
    assert proof is not None
    return {
        "proof": proof.encode().decode(),
        "vkey": published.vkey,
        "cosigners": [str(COSIGNER.verifier_key)],
        "entry": b64(leaf(INDEX)),
    }


def test_a_cosigned_proof_is_accepted(programs: Path, task: dict[str, Any]) -> None:
    assert ask(programs / "proof", task) == (0, f"{INDEX} 70000 [1790000000]\n")


def test_a_receipt_of_a_whole_audit_is_accepted(programs: Path) -> None:
    keys = json.loads((FROZEN / "keys.json").read_bytes())
    receipt = json.loads((FROZEN / "receipt.json").read_bytes())["public"]
    with zipfile.ZipFile(FROZEN / "bundle.zip") as bundle:
        leaves = bundle.read("public/leaves.bin")
    index = receipt["index"]
    task = {
        "proof": receipt["proof"],
        "vkey": keys["log"],
        "cosigners": [keys["cosigner"]],
        "entry": b64(leaves[32 * index : 32 * index + 32]),
    }
    code, said = ask(programs / "proof", task)
    assert code == 0, said
    size = TlogProof.parse(receipt["proof"].encode()).checkpoint.split(b"\n")[1].decode()
    assert said.startswith(f"{index} {size} [")


def test_another_entry_is_rejected(programs: Path, task: dict[str, Any]) -> None:
    code, said = ask(programs / "proof", {**task, "entry": b64(leaf(INDEX + 1))})
    assert code == 1
    assert "calculated root" in said


def test_another_index_is_rejected(programs: Path, task: dict[str, Any]) -> None:
    proof = task["proof"].replace(f"index {INDEX}\n", f"index {INDEX + 1}\n")
    code, _ = ask(programs / "proof", {**task, "proof": proof})
    assert code == 1


def test_a_cosigner_that_did_not_sign_is_missed(programs: Path, task: dict[str, Any]) -> None:
    other = SigningKey("cosigner.example/2", COSIGNATURE_V1, PrivateKey.from_seed(b"\x03" * 32))
    cosigners = [*task["cosigners"], str(other.verifier_key)]
    code, said = ask(programs / "proof", {**task, "cosigners": cosigners})
    assert code == 1
    assert "2 good signatures of 3" in said


def test_a_changed_cosignature_is_rejected(programs: Path, task: dict[str, Any]) -> None:
    forger = SigningKey(COSIGNER.name, COSIGNATURE_V1, PrivateKey.from_seed(b"\x04" * 32))
    code, said = ask(programs / "proof", {**task, "cosigners": [str(forger.verifier_key)]})
    assert code == 1
    assert "1 good signatures of 2" in said


def test_another_log_is_rejected(programs: Path, task: dict[str, Any]) -> None:
    other = SigningKey(KEY.name, KEY.algorithm, PrivateKey.from_seed(b"\x05" * 32))
    code, _ = ask(programs / "proof", {**task, "vkey": str(other.verifier_key)})
    assert code == 1
