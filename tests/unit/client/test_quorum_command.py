"""`ragaudit receipt quorum`: who stands behind a receipt, by a trust policy of one's own."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ragaudit.client.cli import app
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.log.tlog_proof import TlogProof
from receipt_scene import COSIGNER, LOG, scene, tlog_proof
from typer.testing import CliRunner

OTHER = SigningKey("other.example", COSIGNATURE_V1, PrivateKey.from_seed(b"\x31" * 32))
LISTED = f"log {LOG.verifier_key}\n"
WITNESSES = f"witness regulator {COSIGNER.verifier_key}\nwitness other {OTHER.verifier_key}\n"
PROOF = str(scene().file().public.proof)


def run(folder: Path, data: bytes, trust: str, *options: str) -> tuple[int, Any]:
    (folder / "file").write_bytes(data)
    (folder / "trust").write_text(trust, "utf-8")
    result = CliRunner().invoke(
        app,
        ["quorum", str(folder / "file"), "--trust", str(folder / "trust"), "--json", *options],
    )
    return result.exit_code, json.loads(result.stdout)


def receipt(proof: str | None = PROOF) -> bytes:
    file = scene().file()
    return dumps({**file.to_json(), "public": replace(file.public, proof=proof).to_json()})


def test_a_receipt_with_the_quorum(tmp_path: Path) -> None:
    trust = LISTED + WITNESSES + "group G any regulator other\nquorum G\n"
    code, found = run(tmp_path, receipt(), trust)
    assert (code, found["reached"], found["cosigned"]) == (0, True, {"regulator": 1201})
    public = dumps(scene().file().public.to_json())
    assert run(tmp_path, public, trust) == (0, found)
    note = TlogProof.parse(PROOF.encode()).checkpoint
    assert run(tmp_path, note, trust) == (0, found)


def test_a_receipt_without_the_quorum(tmp_path: Path) -> None:
    trust = LISTED + WITNESSES + "group G all regulator other\nquorum G\n"
    code, found = run(tmp_path, receipt(), trust)
    assert (code, found["reached"], found["known"]) == (5, False, 2)


def test_what_a_person_reads(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(receipt())
    (tmp_path / "trust").write_text(LISTED + WITNESSES + "quorum other\n", "utf-8")
    command = ["quorum", str(tmp_path / "file"), "--trust", str(tmp_path / "trust")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 5
    assert result.stdout == "quorum other NOT reached: cosigned by regulator (1 of 2)\n"


def test_the_log_may_be_named_beside_a_policy_that_lists_none(tmp_path: Path) -> None:
    trust = WITNESSES + "quorum regulator\n"
    assert run(tmp_path, receipt(), trust, "--log-key", str(LOG.verifier_key))[0] == 0
    code, problem = run(tmp_path, receipt(), trust)
    assert (code, problem["problem"]) == (1, "note-rejected")


@pytest.mark.parametrize(
    ("proof", "words"),
    [
        (tlog_proof(b"another leaf", 3).encode().decode(), "another root"),
        (tlog_proof(b"leaf", 4).encode().decode(), "another index"),
        ("not a proof", "not a tlog-proof"),
        (PROOF[:-12] + "AAAA" + PROOF[-8:], "does not verify"),
    ],
)
def test_a_false_proof_is_told_from_a_missing_quorum(
    tmp_path: Path, proof: str, words: str
) -> None:
    code, problem = run(tmp_path, receipt(proof), LISTED + WITNESSES + "quorum regulator\n")
    assert code == 1, problem
    assert words in problem["detail"]


def test_a_receipt_whose_proof_is_outstanding_is_not_judged(tmp_path: Path) -> None:
    code, problem = run(tmp_path, receipt(None), LISTED + WITNESSES + "quorum regulator\n")
    assert code == 3
    assert "outstanding" in problem["detail"]


def test_a_malformed_policy_is_named_with_its_line(tmp_path: Path) -> None:
    code, problem = run(tmp_path, receipt(), LISTED + "witness w1\nquorum none\n")
    assert (code, problem["problem"]) == (2, "malformed-trust-policy")
    assert f"{tmp_path}/trust, line 2" in problem["detail"]


def test_the_example_of_the_chapter_is_a_policy() -> None:
    chapter = Path(__file__).parents[3] / "docs" / "tenant-developer.md"
    text = chapter.read_text("utf-8").partition("## Cosigners of your own")[2]
    example = re.search(r"\n((?:    [^\n]+\n)+)", text)
    assert example is not None
    lines = [line.removeprefix("    ") for line in example[1].splitlines()]
    keys = {"..1": str(COSIGNER.verifier_key), "..2": str(OTHER.verifier_key)}
    for short, key in keys.items():
        lines = [re.sub(rf"\S+{re.escape(short)}\b", key, line) for line in lines]
    trust = TrustPolicy.parse("".join(line + "\n" for line in lines).encode())
    assert (trust.quorum, len(trust.cosigners)) == ("both", 2)
